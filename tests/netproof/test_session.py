"""A stored session is a whole report of ReFrame's, or refused."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from netproof import session
from netproof.errors import NetproofError

RECORDED = Path(__file__).resolve().parents[1] / "data" / "sessions" / "faulty.json"


def changed(tmp_path: Path, change) -> Path:
    """The recorded report with its document changed."""
    document = json.loads(RECORDED.read_text())
    change(document)
    path = tmp_path / "run-0.json"
    path.write_text(json.dumps(document))
    return path


def test_a_report_holds_the_job_and_its_checks():
    stored = session.load(RECORDED)
    assert [r.name for r in stored.results if r.case is None] == [
        "ImbJob %ranks=2 ~testbed:gige+mpich"
    ]
    outcomes = Counter(r.result for r in stored.results if r.case is not None)
    assert outcomes == {"pass": 5, "fail": 3}


def test_a_complete_case_has_its_measurement_and_a_failed_one_its_reason():
    results = {r.case.function: r for r in session.load(RECORDED).results if r.case}
    passed, failed = results["PingPong"], results["Barrier"]
    assert passed.measured["curve"]["sizes"][-1] == 524288
    assert passed.case.ranks_per_node == 1
    assert failed.measured is None
    assert (failed.phase, failed.result) == ("sanity", "fail")
    assert "ended at its limit of 6 s" in failed.reason


@pytest.mark.parametrize("share", [0.0, 0.3, 0.999])
def test_a_report_cut_short_is_refused(tmp_path, share):
    text = RECORDED.read_text().rstrip()
    path = tmp_path / "run-0.json"
    path.write_text(text[: int(len(text) * share)])
    with pytest.raises(NetproofError, match=r"run-0\.json: is no whole report"):
        session.load(path)


def test_a_report_that_lost_a_test_case_is_refused(tmp_path):
    path = changed(tmp_path, lambda document: document["runs"][0]["testcases"].pop())
    with pytest.raises(NetproofError, match="tells of 8 test cases, and its header counts others"):
        session.load(path)


@pytest.mark.parametrize("key", ["session_info", "runs"])
def test_a_report_without_a_part_of_it_is_refused(tmp_path, key):
    path = changed(tmp_path, lambda document: document.pop(key))
    with pytest.raises(NetproofError, match=f"is no report of ReFrame's: .*{key}.* is missing"):
        session.load(path)


def test_json_of_something_else_is_refused(tmp_path):
    path = tmp_path / "run-0.json"
    path.write_text("[1, 2]")
    with pytest.raises(NetproofError, match="is no report of ReFrame's"):
        session.load(path)


def test_a_measurement_of_another_format_is_refused(tmp_path):
    def later(document):
        for test in document["runs"][0]["testcases"]:
            if test.get("netproof_measured"):
                test["netproof_measured"]["format"] = session.MEASURED_FORMAT + 1

    with pytest.raises(NetproofError, match="what was measured is of format"):
        session.load(changed(tmp_path, later))


def test_no_report_is_an_error_that_says_where_reports_come_from(tmp_path):
    with pytest.raises(NetproofError, match="ReFrame leaves no report where no test ran"):
        session.load(tmp_path / "run-0.json")
    with pytest.raises(NetproofError, match="reframe -c checks -r"):
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
        job["netproof_provenance"] = {"nodes": [{"node": "gige-1"}, {"node": "gige-2"}]}

    stored = session.load(changed(tmp_path, change))
    (job,) = (result for result in stored.results if result.case is None)
    assert job.nodes == ("gige-1", "gige-2")
