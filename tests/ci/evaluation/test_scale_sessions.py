"""A session made larger is whole: every case that its site expects is there, and passes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ci.evaluation import scale_sessions
from ci.evaluation.scale_sessions import ROOT, Recorded
from netproof.errors import NetproofError
from netproof.session import records, session
from netproof.verdict import session_verdict

REFERENCES = ROOT / "reference-values" / "testbed.yaml"


@pytest.fixture
def made(tmp_path, monkeypatch):
    found = scale_sessions.make(tmp_path, Recorded(scale_sessions.SMALL), 24, REFERENCES)
    for name, value in found.environment().items():
        monkeypatch.setenv(name, value)
    return found


def test_a_session_of_copies_is_measured_as_its_site_expects_it(made):
    judged = session_verdict.judge_session(session.load(made.report))
    assert made.cases == 24
    assert len(judged.matrix.cases) == 24
    assert {one.case.partition for one in judged.verdict.cases} == {"gige", "gigec1", "gigec2"}
    assert [one.findings for one in judged.verdict.cases if one.result.measured is None] == []


def test_a_copy_has_nodes_and_records_of_its_own(made):
    measured = [one.measured for one in session.load(made.report).results if one.measured]
    named = {rank.node for one in measured for rank in one.launches[0].ranks}
    assert named == {f"gige{copy}-{node}" for copy in ("", "c1", "c2") for node in (1, 2)}
    paths = [*made.report.parent.glob("session-*/*.json")]
    assert len(paths) == 24 + 1
    path = next(path for path in paths if path.name != records.HEADER)
    path.write_text(path.read_text() + " ")
    with pytest.raises(NetproofError, match="SHA-256"):
        session.load(made.report)


def test_earlier_sessions_are_the_same_on_other_days(made):
    now = session.load(made.report)
    for days, path in enumerate(made.earlier, 1):
        before = session.load(Path(path))
        assert before.info["time_start_unix"] == now.info["time_start_unix"] - 86400 * days
        assert before.info["uuid"] != now.info["uuid"]
        assert len(before.results) == len(now.results)


@pytest.mark.slow
def test_it_prints_what_the_verbs_take(tmp_path, capsys):
    verbs = ["verdict", "store add", "stored verdict"]
    scale_sessions.main(["--cases", "16", "--verbs", ",".join(verbs), "--keep", str(tmp_path)])
    table = capsys.readouterr().out.splitlines()
    assert table[1] == "| verb | 16 | exponent |"
    assert [line.split(" | ")[0] for line in table[3:]] == [f"| {verb}" for verb in verbs]
    report = json.loads((tmp_path / "cases-16" / "reports" / "run-1.json").read_text())
    assert report["session_info"]["num_cases"] == 20
