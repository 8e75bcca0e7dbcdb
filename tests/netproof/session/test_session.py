"""A stored session is a whole report of ReFrame's, or refused."""

from __future__ import annotations

import copy
import json
import os
import shutil
from collections import Counter
from pathlib import Path

import pytest
from reframe.utility import nodelist_abbrev

from netproof import codec
from netproof.criteria import Finding
from netproof.errors import NetproofError
from netproof.session import provenance, session
from netproof.session.provenance import Software

RECORDED = Path(__file__).resolve().parents[2] / "data" / "sessions" / "faulty.json"
SOFTWARE = Software("0.1", "4.10.4", None, None, None, {}, {})
LOAD = {
    **{"node": "node1", "machine": None, "cpus": 4, "wall_s": 1.5, "others_cpu_s": 0.1},
    **{"others_share": 0.02, "network_share": 0, "steal_share": None, "pressure_share": 0.1},
    **{"pressure_full_share": None, "absent": [["machine", "unreadable"]]},
}
SCHEDULED = {"voluntary": 3, "involuntary": None, "waited_s": 0.5, "absent": [["x", "why"]]}
CRASH = {"launch": 1, "attempt": 1, "order": 2, "status": 139, "nodes": ["node1"], "said": ""}
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
    assert passed.measured.curve.sizes[-1] == 524288
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


def with_all(tmp_path: Path, change=lambda test: None) -> Path:
    """The recorded report with loads, crashes, further launches and findings in its PingPong."""

    def extend(document):
        tests = document["runs"][0]["testcases"]
        (test,) = [
            test
            for test in tests
            if (test.get("netproof_case") or {}).get("function") == "PingPong"
        ]
        measured = test["netproof_measured"]
        measured["crashes"] = [copy.deepcopy(CRASH)]
        for launch in measured["launches"]:
            launch["loads"] = [copy.deepcopy(LOAD)]
            launch["ranks"] = [
                rank | {"scheduled": copy.deepcopy(SCHEDULED)} for rank in launch["ranks"]
            ]
        measured["again"] = {
            "launches": [measured["launches"][0]["curve"]],
            "faults": [],
            "nodes": ["node1"],
            "jobid": "7",
            "made": 1,
            "crashes": [],
            "loads": [[LOAD]],
        }
        test["netproof_references"] = [copy.deepcopy(FINDING)]
        change({"test": test, "measured": measured})

    return changed(tmp_path, extend)


def test_loads_crashes_further_launches_and_findings_are_read(tmp_path):
    (result,) = [r for r in session.load(with_all(tmp_path)).results if r.references]
    assert result.references == (codec.decode(Finding, FINDING, "it"),)
    read = result.measured
    recorded = session.load(RECORDED)
    before = next(r for r in recorded.results if r.case and r.case.function == "PingPong")
    assert len(read.launches) == len(before.measured.launches)
    assert read.again.loads[0][0].others_share == 0.02
    assert read.launches[0].loads[0].others_share == 0.02
    assert read.launches[0].ranks[0].scheduled.voluntary == 3
    assert [crash.status for crash in read.crashes] == [139]


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("measured", "crashes"), {}),
        (("measured", "crashes", 0), {"launch": 1}),
        (("measured", "crashes", 0, "nodes"), "node1"),
        (("measured", "launches", 0, "further"), "no"),
        (("measured", "launches", 0, "loads"), None),
        (("measured", "launches", 0, "loads", 0, "others_share"), "all"),
        (("measured", "launches", 0, "loads", 0, "cpus"), 1.5),
        (("measured", "launches", 0, "loads", 0, "absent"), [["machine"]]),
        (("measured", "launches", 0, "ranks", 0, "scheduled"), 4),
        (("measured", "launches", 0, "ranks", 0, "scheduled", "voluntary"), True),
        (("measured", "launches", 0, "more"), 1),
        (("measured", "again", "launches"), {}),
        (("measured", "again", "loads"), [LOAD]),
        (("measured", "crashes", 0, "said"), 7),
        (("test", "netproof_references", 0), 3),
        (("test", "netproof_references", 0, "value"), "1.5"),
        (("test", "netproof_references", 0, "interval"), [1.0]),
    ],
)
def test_a_value_of_the_wrong_kind_is_named_with_its_place(tmp_path, where, value):
    def spoil(place):
        for step in where[:-1]:
            place = place[step]
        place[where[-1]] = value

    named = next(step for step in reversed(where) if isinstance(step, str))
    named = named.removeprefix("netproof_")
    with pytest.raises(NetproofError, match=rf"run-0\.json: .*{named}|run-0\.json: .* is missing"):
        session.load(with_all(tmp_path, spoil))


def test_nothing_of_what_was_measured_may_be_missing(tmp_path):
    path = with_all(tmp_path, lambda place: place["measured"].pop("launches"))
    with pytest.raises(NetproofError, match=r"PingPong.*: 'launches' is missing"):
        session.load(path)
