"""``netproof verdict --all``: verdict, matrix, landmarks; on any width no figure is cut."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path

import pytest
from made_calls import called
from made_reports import altered, busy, cases_in
from made_text import printed as text

from netproof.measurement.links import Transport
from netproof.present.document import Cell
from netproof.present.html.report import Report
from netproof.present.session import whole
from netproof.session import session
from netproof.verdict import file_names, files, session_verdict

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("project")]

ROOT = Path(__file__).resolve().parents[3]
RECORDED = ROOT / "tests" / "data" / "sessions"
SICK = RECORDED / "sick.json"

shown = functools.partial(called, "verdict", "--all")


def printed(width: int, system: str = "testbed", path: Path = SICK) -> str:
    judged = session_verdict.judge_session(session.load(path), system=system)
    parts = whole(Report(judged))
    return "".join(
        text([Cell(str(title), "heading"), *blocks], width) for _, title, blocks in parts
    )


@pytest.mark.parametrize("recorded", ["sick", "healthy", "netpipe", "ranges", "osu"])
def test_a_finding_has_sentences_of_at_most_thirty_words_and_a_unit_of_rates(judge, recorded):
    if recorded == "osu":
        paths = file_names.files_in([RECORDED.with_name(recorded)])
        cases = files.judge(paths, link=files.link("10G", None, Transport.TCP)).curves
    else:
        cases = judge(f"{recorded}.json").verdict.cases
    reasons = {finding.reason for case in cases for finding in case.findings}
    assert reasons
    sentences = {one for reason in reasons for one in re.split(r"\. (?=[A-Z9])", reason)}
    assert [one for one in sentences if len(one.split()) > 30] == []
    assert not [one for one in reasons if "MB/s" in one and "Mbit/s" in one]


def row_of(text: str, *begins: str) -> list[str]:
    return next(
        line.split() for line in text.splitlines() if line.split()[: len(begins)] == [*begins]
    )


def test_the_matrix_has_scores_with_marks_and_what_is_absent_is_blank_and_named_below():
    matrix = printed(140, "testbed:gige")
    assert row_of(matrix, "IMB", "PingPong")[3:7] == ["∅", "none", "∅", "none"]
    _, said, _ = shown(str(SICK), "testbed:gige")
    why = "not available: gige openmpi4, openmpi5 Intel MPI Benchmarks (IMB-MPI1): Open MPI has no"
    assert said.count(why) == 1
    row = row_of(matrix, "NetPIPE", "tcp", "inter-node", "oneway")
    assert row[4:13] == ["2", "∅", "none", "✗", "1.00", "✗", "0.97"]


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_figure_is_cut_on_any_width(width):
    said = printed(width)
    assert "…" not in said
    for result in session.load(SICK).results:
        if result.measured:
            landmarks = result.measured.landmarks
            assert f" {landmarks.latency_us:.1f} " in said
            assert f" {landmarks.peak_mb_s:.1f} " in said


def test_a_session_whose_nodes_differ_says_so_in_words_as_json_and_from_a_store(tmp_path):
    document = json.loads((RECORDED / "ranges.json").read_text())
    document["session_info"]["kernel"] = "6.1"
    tests = document["runs"][0]["testcases"]
    recorded = next(t["netproof_provenance"] for t in tests if t.get("netproof_provenance"))
    recorded["nodes"][0]["mtu"] = 9000
    path = tmp_path / "run-1.json"
    path.write_text(json.dumps(document))
    _, out, _ = called("store", "add", path, "--store", tmp_path / "store")
    assert "\nnodes differ: gige: mtu: " in out
    named = recorded["nodes"][0]["node"]
    fault = f"\nFAIL gige: {named}: MTU 9000 in job "
    assert fault in shown("newest", "--store", str(tmp_path / "store"))[1]
    status, out, _ = shown(str(path))
    assert status == 1
    assert fault in out
    assert out.splitlines()[1] == "labels kernel=6.1"
    # The session is of before Slurm was asked.
    line = "coverage: gige: 4 nodes measured of 4 that the site states; what Slurm has is not known"
    assert line in out
    said = json.loads(shown(str(path), "--format=json")[1])
    assert said["labels"] == {"kernel": "6.1"}
    (sentence,) = said["nodes_differ"]
    assert sentence.startswith("gige: mtu: 1500 (")
    assert "9000" in sentence
    (found,) = said["nodes"]
    assert (found["fact"], found["nodes"], found["level"]) == ("mtu", [named], "fail")
    assert not any(one["failed"] or one["known"] for one in said["coverage"])


def test_scores_against_a_disturbed_baseline_are_marked(tmp_path):
    def disturbed(document):
        for test in cases_in(document):
            case = test["netproof_case"] or {}
            if (test["partition"], test["environ"], case.get("ranks")) == ("gige", "mpich", 4):
                for launch in test["netproof_measured"]["launches"]:
                    launch["loads"] = [busy()]

    path = altered(tmp_path, disturbed, "two-switches")
    text = printed(200, path=path)
    four, two = (row_of(text, "IMB", "Sendrecv", count) for count in "42")
    assert [cell for cell in four if cell.startswith("~")]
    assert not [cell for cell in two if cell.startswith("~")]
    assert "~ of disturbed launches" in text
