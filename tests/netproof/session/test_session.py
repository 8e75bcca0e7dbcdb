"""A stored session is a whole report of ReFrame's, or refused."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from reframe.utility import nodelist_abbrev

from netproof import codec
from netproof.criteria import Finding
from netproof.errors import NetproofError
from netproof.session import provenance, session
from netproof.session.provenance import Provenance
from netproof.session.session import label_of

RECORDED = Path(__file__).resolve().parents[2] / "data" / "sessions" / "faulty.json"
SOFTWARE = Provenance("0.1", "4.10.4", None, None, None, {}, ())
FINDING = {
    **{"variable": "latency_us", "criterion": "reference", "level": "pass", "where": "here"},
    **{"reason": "fine", "value": 1.5, "bound": None, "interval": [1.0, "inf"], "size": None},
}


def changed(tmp_path: Path, change) -> Path:
    """The recorded report with its document changed."""
    document = json.loads(RECORDED.read_text())
    change(document)
    path = tmp_path / "run-0.json"
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize("share", [0.0, 0.3, 0.999])
def test_a_report_cut_short_is_refused(tmp_path, share):
    text = RECORDED.read_text().rstrip()
    path = tmp_path / "run-0.json"
    path.write_text(text[: int(len(text) * share)])
    with pytest.raises(NetproofError, match=r"run-0\.json: is no whole report"):
        session.load(path)


def test_a_report_that_lost_a_test_case_is_refused(tmp_path):
    path = changed(tmp_path, lambda document: document["runs"][0]["testcases"].pop())
    with pytest.raises(NetproofError, match="reports 8 test cases, and its header counts others"):
        session.load(path)


@pytest.mark.parametrize("key", ["session_info", "runs"])
def test_a_report_without_a_part_of_it_is_refused(tmp_path, key):
    path = changed(tmp_path, lambda document: document.pop(key))
    with pytest.raises(NetproofError, match=f"is no report of ReFrame's: .*{key}"):
        session.load(path)


def test_json_of_something_else_is_refused(tmp_path):
    path = tmp_path / "run-0.json"
    path.write_text("[1, 2]")
    with pytest.raises(NetproofError, match="is no report of ReFrame's"):
        session.load(path)


def test_no_report_is_an_error_that_says_where_reports_come_from(tmp_path):
    with pytest.raises(NetproofError, match="ReFrame leaves no report where no test ran"):
        session.load(tmp_path / "run-0.json")
    with pytest.raises(NetproofError, match="or run 'netproof run'"):
        session.newest(tmp_path)


def test_the_newest_report_is_the_last_one_written(tmp_path):
    for seconds, name in ((30, "run-a.json"), (20, "run-b.json"), (40, "other.json")):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (seconds, seconds))
    assert session.newest(tmp_path).name == "run-a.json"


def test_a_jobs_own_list_of_nodes_counts_and_not_reframes(tmp_path):
    nodes = tmp_path / "nodes"
    nodes.mkdir()
    for name in ("gige-1", "gige-2"):
        shutil.copy(RECORDED.parents[1] / "nodes" / "same" / f"node.{name}.txt", nodes)

    def change(document) -> None:
        job = next(t for t in document["runs"][0]["testcases"] if not t.get("netproof_case"))
        job["job_nodelist"] = ["gige-1"]
        job["netproof_provenance"] = provenance.of_job(nodes, ["gige-1", "gige-2"], SOFTWARE)

    stored = session.load(changed(tmp_path, change))
    (job,) = (result for result in stored.results if result.case is None)
    assert job.nodes == ("gige-1", "gige-2")


def test_a_report_after_performance_report_is_read():
    stored = session.load(RECORDED.parents[1] / "reframe" / "performance-report.json")
    assert [(one.name, one.nodes) for one in stored.results] == [("Hello", ("vm",))]
    assert stored.labels() == {"firmware": "2.1"}


def test_after_performance_report_a_session_is_the_same(tmp_path):
    def fold_nodes(document) -> None:
        for test in document["runs"][0]["testcases"]:
            test["job_nodelist"] = nodelist_abbrev(test["job_nodelist"])

    assert session.load(changed(tmp_path, fold_nodes)).results == session.load(RECORDED).results


def with_pingpong(tmp_path: Path, change) -> Path:
    """The recorded report with its test of PingPong changed."""

    def of_document(document) -> None:
        (test,) = [
            test
            for test in document["runs"][0]["testcases"]
            if (test.get("netproof_case") or {}).get("function") == "PingPong"
        ]
        change(test)

    return changed(tmp_path, of_document)


def test_findings_on_references_are_read(tmp_path):
    path = with_pingpong(tmp_path, lambda test: test.update(netproof_references=[FINDING]))
    (result,) = [one for one in session.load(path).results if one.references]
    assert result.references == (codec.decode(Finding, FINDING, "it"),)


@pytest.mark.parametrize(
    ("where", "value", "named"),
    [
        ("netproof_measured", {"launches": {}}, "launches"),
        ("netproof_measured", {"crashes": [{"number": 1}]}, "is missing"),
        ("netproof_measured", {"again": {}}, "again"),
        ("launch", {"further": "no"}, "further"),
        ("launch", {"loads": [{"node": "n", "others_share": "all"}]}, "loads"),
        ("launch", {"ranks": [{"node": "n"}]}, "ranks"),
        ("launch", {"ranks": ["n", "n", "n"]}, "wall_s is not of 3 ranks"),
        ("launch", {"more": 1}, "more"),
        ("test", {"netproof_references": [{**FINDING, "value": "1.5"}]}, "value"),
        ("test", {"netproof_references": [{**FINDING, "interval": [1.0]}]}, "interval"),
    ],
)
def test_a_value_of_the_wrong_kind_is_named_with_its_place(tmp_path, where, value, named):
    def spoil(test) -> None:
        measured = test["netproof_measured"]
        places = {"test": test, "launch": measured["launches"][0]}
        places.get(where, measured).update(value)

    with pytest.raises(NetproofError, match=rf"run-0\.json: .*{named}"):
        session.load(with_pingpong(tmp_path, spoil))


def test_nothing_of_what_was_measured_may_be_missing(tmp_path):
    path = with_pingpong(tmp_path, lambda test: test["netproof_measured"].pop("launches"))
    with pytest.raises(NetproofError, match=r"PingPong.*: 'launches' is missing"):
        session.load(path)


# Labels as people state them.


def test_a_label_is_all_before_and_after_the_first_equals_sign():
    assert label_of("kernel=6.1") == ("kernel", "6.1")
    assert label_of("options=a=b") == ("options", "a=b")
    assert label_of("note=") == ("note", "")


@pytest.mark.parametrize("stated", ["", "kernel", "=6.1"])
def test_another_form_is_refused_with_an_example(stated):
    with pytest.raises(NetproofError, match=r"is no label: KEY=VALUE, kernel=6\.1 for instance"):
        label_of(stated)


# Sessions with a label: the folder of their reports, and what a report keeps of them.

SESSION = Path(__file__).resolve().parents[2] / "data" / "sessions" / "netpipe.json"


def test_the_folder_is_found_from_that_of_reports_and_from_itself():
    folder = Path("reports", "load")
    assert session.folder_of(Path("reports"), "load") == folder
    assert session.folder_of(folder, "load") == folder


def report(folder: Path, **of_test: object) -> Path:
    """A recorded report whose first test has these keys, and no other test."""
    session = json.loads(SESSION.read_text())
    tests = session["runs"][0]["testcases"]
    session["runs"][0]["testcases"] = [{**tests[0], "display_name": "Sweep", **of_test}]
    path = folder / "run.json"
    path.write_text(json.dumps(session))
    return path


@dataclass(frozen=True)
class Sweep(session.JobRecord):
    KEY = "kept"
    CALLED = "sweep"

    figure: int
    partition_extras: dict[str, Any]


def recorded_sweep() -> Sweep:
    tests = json.loads(SESSION.read_text())["runs"][0]["testcases"]
    measured = next(test["netproof_measured"] for test in tests if test["netproof_measured"])
    return Sweep(7, measured["partition_extras"])


def test_what_tests_kept_is_read(tmp_path):
    sweep = recorded_sweep()
    assert Sweep.of_report(report(tmp_path, kept=codec.encode(sweep))) == [sweep]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"figure": "7"}, "a sweep cannot be read: figure: found '7', expected a whole number"),
        ({"more": 1}, "a sweep cannot be read: has 'more', which is no key of it"),
        ({"partition_extras": {}}, "a sweep cannot be read: "),
    ],
)
def test_what_cannot_be_read_names_report_and_test(tmp_path, change, reason):
    path = report(tmp_path, kept=codec.encode(recorded_sweep()) | change)
    with pytest.raises(NetproofError, match=rf"run\.json: Sweep: {reason}"):
        Sweep.of_report(path)


def test_a_report_without_any_says_why_its_tests_failed(tmp_path):
    path = report(tmp_path, result="fail", fail_reason="no node answered")
    with pytest.raises(NetproofError, match="has no sweep that is whole: Sweep: no node answered"):
        Sweep.of_report(path)
