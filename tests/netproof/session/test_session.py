"""A stored session is a whole report of ReFrame's, or refused."""

from __future__ import annotations

import functools
import os
from pathlib import Path

import pytest
from made_nodes import GIGE, SOFTWARE
from made_reports import altered

from netproof.errors import NetproofError
from netproof.session import provenance, session
from netproof.session.session import label_of

RECORDED = Path(__file__).resolve().parents[2] / "data" / "sessions" / "faulty.json"
NODES = RECORDED.parents[1] / "nodes"


changed = functools.partial(altered, name="faulty", file="run-0.json")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is no whole report"),
        (RECORDED.read_text()[:5000], "is no whole report"),
        (RECORDED.read_text().rstrip()[:-1], "is no whole report"),
        ("[1, 2]", "is no report of ReFrame's"),
    ],
)
def test_a_report_cut_short_or_something_else_is_refused(tmp_path, text, reason):
    path = tmp_path / "run-0.json"
    path.write_text(text)
    with pytest.raises(NetproofError, match=rf"run-0\.json: {reason}"):
        session.load(path)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda document: document.pop("session_info"), "no report of ReFrame's: session_info"),
        (lambda document: document.pop("runs"), "no report of ReFrame's: runs"),
        (lambda document: document["runs"][0]["testcases"].pop(), "8 test cases, and its header"),
    ],
)
def test_a_report_that_lost_a_part_is_refused(tmp_path, change, reason):
    with pytest.raises(NetproofError, match=reason):
        session.load(changed(tmp_path, change))


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
    def change(document) -> None:
        job = next(t for t in document["runs"][0]["testcases"] if not t.get("netproof_case"))
        job["job_nodelist"] = ["gige-1"]
        job["netproof_provenance"] = provenance.of_job(NODES / "same", GIGE, SOFTWARE)

    stored = session.load(changed(tmp_path, change))
    (job,) = (result for result in stored.results if result.case is None)
    assert job.nodes == GIGE


def test_a_report_after_performance_report_is_read():
    stored = session.load(RECORDED.parents[1] / "reframe" / "performance-report.json")
    assert [(one.name, one.nodes) for one in stored.results] == [("Hello", ("vm",))]
    assert stored.labels() == {"firmware": "2.1"}
    assert label_of("options=a=b") == ("options", "a=b")
    for stated in ("kernel", "=6.1"):
        with pytest.raises(NetproofError, match=r"is no label: KEY=VALUE, kernel=6\.1 for"):
            label_of(stated)


@pytest.mark.parametrize(
    ("where", "value", "named"),
    [
        ("netproof_measured", {"launches": None}, "launches"),
        ("netproof_measured", {"crashes": [{"number": 1}]}, "is missing"),
        ("launch", {"ranks": ["n", "n", "n"]}, "wall_s is not of 3 ranks"),
        ("launch", {"more": 1}, "more"),
        ("test", {"netproof_references": [{"value": "1.5"}]}, r"references\[0\]"),
        ("test", {"netproof_case": {}}, "has netproof_measured, and no netproof_case"),
    ],
)
def test_a_value_of_the_wrong_kind_is_named_with_its_place(tmp_path, where, value, named):
    def spoil(document) -> None:
        tests = document["runs"][0]["testcases"]
        test = next(one for one in tests if one.get("netproof_measured"))
        measured = test["netproof_measured"]
        places = {"test": test, "launch": measured["launches"][0]}
        places.get(where, measured).update(value)

    with pytest.raises(NetproofError, match=rf"run-0\.json: .*{named}"):
        session.load(changed(tmp_path, spoil))


def test_the_folder_is_found_from_that_of_reports_and_from_itself():
    folder = Path("reports", "load")
    assert session.folder_of(Path("reports"), "load") == folder
    assert session.folder_of(folder, "load") == folder
