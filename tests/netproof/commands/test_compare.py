"""``netproof compare``: exit 0 shown, 2 not possible; nothing that one side lacks is left out."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path

import pytest
from made_calls import called
from made_nodes import GIGE, SOFTWARE
from made_reports import altered, another, cases_in

from netproof.session.provenance import of_job

RECORDED = Path(__file__).resolve().parents[2] / "data" / "sessions"
HEALTHY, SICK = str(RECORDED / "healthy.json"), str(RECORDED / "sick.json")

compared = functools.partial(called, "compare")


@pytest.mark.slow
def test_json_has_the_figures_that_are_shown():
    status, text, _ = compared(HEALTHY, SICK, "--format=json")
    assert status == 0
    document = json.loads(text)
    _, said, _ = compared(HEALTHY, SICK)
    assert document["summary"] in said
    assert len(document["not_compared"]) == 12
    assert "Latency" not in document["summary"]
    for case in document["cases"]:
        assert case["sentence"] in said
        low, high = case["interval"]
        assert f"{case['ratio']:.2f}  {low:.2f}–{high:.2f}" in said
        assert len(case["sizes_bytes"]) == len(case["ratios"]) == case["common"]["count"]


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    """A store with a session for each of two kernels, and an older one of the first. Only read."""
    folder = tmp_path_factory.mktemp("labelled")
    for number, (kernel, hour) in enumerate([("6.1", 1), ("6.1", 3), ("6.6", 2)]):

        def of_kernel(document, number=number, kernel=kernel, hour=hour):
            document["session_info"]["kernel"] = kernel
            another(document, number, 3600 * hour)

        report = altered(folder, of_kernel, "sick")
        assert called("store", "add", report, "--store", folder / "store")[0] == 0
    return str(folder / "store")


@pytest.mark.slow
def test_the_newest_sessions_of_two_labels_are_compared_by_their_labels(labelled):
    arguments = ("--store", labelled, "--label", "kernel=6.1", "kernel=6.6")
    status, said, _ = compared(*arguments)
    assert status == 0
    assert "kernel=6.6 against kernel=6.1, 4 cases: no difference overall in 4" in said
    assert "session=20261121T042240-00000001, 20261121T012240+0000, kernel=6.1" in said
    first = json.loads(compared(*arguments, "--format=json")[1])["first"]
    assert (first["name"], first["labels"]) == ("kernel=6.1", {"kernel": "6.1"})


@pytest.mark.slow
def test_all_values_of_a_label_are_compared_with_the_oldest(labelled):
    status, text, _ = compared("--store", labelled, "--by", "label=kernel", "--format=json")
    assert status == 0
    document = json.loads(text)
    assert document["values"] == ["kernel=6.6", "kernel=6.1"]
    (one,) = document["comparisons"]
    assert (one["first"]["name"], one["second"]["name"]) == ("kernel=6.6", "kernel=6.1")


def with_nodes(folder: Path, kernel: str) -> str:
    """Return a report whose job has the nodes of a recorded one, with this kernel."""
    recorded = json.dumps(of_job(RECORDED.parent / "nodes" / "same", GIGE, SOFTWARE))

    def change(document):
        job = next(test for test in cases_in(document) if test["netproof_kind"] == "launches")
        job["netproof_provenance"] = json.loads(re.sub(r'(?<="kernel": ")[^"]+', kernel, recorded))

    return str(altered(folder, change, "sick", f"kernel-{kernel}.json"))


@pytest.mark.slow
def test_in_what_nodes_differ_is_shown_or_that_it_is_not_known(tmp_path):
    arguments = (with_nodes(tmp_path, "6.1"), with_nodes(tmp_path, "6.6"))
    _, said, _ = compared(*arguments)
    assert "\nnodes: kernel 6.1 and 6.6\n" in said
    assert said.count("\nnodes: ") == 1
    _, said, _ = compared(arguments[0], HEALTHY)
    assert "\nnodes: what the nodes of healthy were is not known: no job of the report " in said
    assert json.loads(compared(arguments[0], HEALTHY, "--format=json")[1])["nodes"] is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--label", "kernel=6.1", "kernel=7.0"), "no session has kernel=7.0; those with that"),
        (("--label", "kernel", "kernel=6.6"), "'kernel' is no label: KEY=VALUE"),
        (("--label", "driver=1", "driver=2"), "no session has the label 'driver'; 'reframe --sess"),
    ],
)
def test_what_is_not_there_is_refused_with_what_is(labelled, arguments, reason):
    status, said, why = compared(*arguments, "--store", labelled)
    assert (status, said) == (2, "")
    assert reason in why


@pytest.mark.slow
@pytest.mark.parametrize(
    ("by", "held", "drawn"),
    [
        ("partition", (), {"gige mpich", "gige intelmpi", "fast-ethernet mpich"}),
        ("environment", ("--partition", "gige", "gige"), {"mpich", "intelmpi"}),
    ],
)
def test_a_page_along_a_dimension_draws_every_value_and_what_is_held_fixed_apart(
    tmp_path, charts_of, by, held, drawn
):
    status, said, _ = compared(HEALTHY, "--by", by, *held, "--to", str(tmp_path))
    assert (status, said.splitlines()[-1]) == (0, f"page {tmp_path}/index.html")
    page = (tmp_path / "index.html").read_text()
    assert f"By {by}: " in page
    adds = "Latency of NetPIPE mpi inter-node oneway: mpich: fast-ethernet adds 1.49 µs" in page
    assert adds is (by == "partition")
    charts = charts_of(page)
    assert len(charts) == 3
    found = {one["configuration"] for one in charts[0]["datasets"]["points"]}
    assert drawn <= found
    assert len(found) == (2 if held else 4)
