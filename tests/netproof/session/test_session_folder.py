"""A session's folder has all that its report had, refuses what was altered, and outlives a kill."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import pytest

from ci.evaluation import scale, store_flips
from ci.evaluation.scale import Recorded
from netproof import codec
from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.session import job_files, records, session
from netproof.session.job_files import Incomplete
from netproof.session.measured import Launch, Measured
from netproof.session.pair_rounds import PairRounds
from netproof.session.plan import JobPlan
from netproof.session.session import CheckResult

DATA = Path(__file__).resolve().parents[2] / "data"
REFERENCES = scale.ROOT / "reference-values" / "testbed.yaml"
RECORDED = DATA / "sessions" / "two-switches.json"
WHERE = ("system", "partition", "environ")


def apart(folder: Path, *, report: bool = True) -> Path:
    """A recorded session of which each test has a record, and its report, in ``folder``."""
    document = json.loads(RECORDED.read_text())
    own = records.make_folder(folder)
    own_keys = {one.name for one in fields(Measured)}
    for run in document["runs"]:
        jobs: dict[tuple[str, ...], list] = {}
        for number, test in enumerate(run["testcases"]):
            test["unique_name"] = f"test_{number}"
            measured = test.pop("netproof_measured", None)
            if measured:
                place = (*(test[key] for key in WHERE), measured["jobid"])
                jobs.setdefault(place, []).append(measured)
            test["measured_by"] = measured and measured["jobid"]
        for test in run["testcases"]:
            keys = ("netproof_provenance", "netproof_transport", "netproof_references")
            values = {key: test.pop(key) for key in keys if key in test}
            if jobid := test.pop("measured_by"):
                values |= {"netproof_complete": True, "netproof_case": test["netproof_case"]}
            place = (*(test[key] for key in WHERE), jobid)
            # Recorded sessions do not have their jobs.
            if place in jobs:
                cases = [{key: one[key] for key in own_keys & {*one}} for one in jobs[place]]
                shared = {
                    key: one for key, one in jobs.pop(place)[0].items() if key not in own_keys
                }
                values[records.CASES] = {"shared": shared, "cases": cases}
            if values:
                kept = {key: test[key] for key in ("display_name", "unique_name", *WHERE)}
                kept |= {"outputdir": "", "stagedir": "", "job_nodelist": test["job_nodelist"]}
                kept |= {"netproof_kind": test.get("netproof_kind", "check")}
                path = records.new_path(own, test)
                test[records.KEY] = records.write(path, kept, values)
        assert not jobs
    if report:
        (folder / "run-0.json").write_text(json.dumps(document))
    return own


def test_a_report_with_records_is_the_session_that_it_was(tmp_path):
    own = apart(tmp_path)
    was = session.load(RECORDED)
    assert session.load(tmp_path / "run-0.json").results == was.results
    assert session.load(own).results == was.results
    assert (tmp_path / "run-0.json").stat().st_size < RECORDED.stat().st_size / 2


@pytest.mark.parametrize("altered", [None, lambda text: text + b" ", lambda text: text[:-9]])
@pytest.mark.parametrize("files", ["*.json", "*/*.json"])
def test_a_record_that_is_missing_or_altered_is_refused_by_its_name(tmp_path, altered, files):
    own = apart(tmp_path)
    path = next(one for one in sorted(own.glob(files)) if one.name != records.HEADER)
    reason = "cannot be read: No such file"
    if altered is None:
        path.unlink()
    else:
        path.write_bytes(altered(path.read_bytes()))
        reason = "its SHA-256 is not the one written"
    for place in (tmp_path / "run-0.json", own):
        with pytest.raises(NetproofError, match=reason) as raised:
            session.load(place)
        assert path.name in str(raised.value)


@pytest.mark.slow
def test_flips_and_cuts_of_any_file_are_refused_or_change_no_verdict(tmp_path, monkeypatch):
    own = scale.make(tmp_path, Recorded(scale.SMALL), 1, REFERENCES)
    for name, value in own.environment().items():
        monkeypatch.setenv(name, value)
    effects = store_flips.flipped(tmp_path / "copies", own.report, tries=90, seed=20061)
    assert {name: one for name, one in effects.items() if one["otherwise"]} == {}
    assert {one["tries"] for one in effects.values()} == {6}
    assert {name for name, one in effects.items() if one["refused"] < 6} <= {"report"}


def test_the_record_of_another_test_is_refused(tmp_path):
    apart(tmp_path)
    path = tmp_path / "run-0.json"
    document = json.loads(path.read_text())
    tests = [test for test in document["runs"][0]["testcases"] if records.KEY in test]
    tests[0][records.KEY] = tests[1][records.KEY]
    path.write_text(json.dumps(document))
    with pytest.raises(NetproofError, match=r"is of test_\d+, and the report refers to it for"):
        session.load(path)


def test_a_part_that_cannot_be_read_says_what_to_do(tmp_path):
    content = b"7\n{}"
    sha256 = hashlib.sha256(content).hexdigest()
    path = tmp_path / "record" / f"{sha256[:32]}.json"
    path.parent.mkdir()
    path.write_bytes(content)
    reason = "line 1: names: found 7, expected a list"
    with pytest.raises(NetproofError, match=f"^{path}: is no record: {reason}.*; restore the"):
        records._read_part(tmp_path / "record.json", sha256, Launch)


def test_without_a_report_each_case_is_measured_and_the_run_has_not_ended(tmp_path):
    apart(tmp_path, report=False)
    found = session.load(session.newest(tmp_path))
    was = {one.case: one for one in session.load(RECORDED).results if one.case}
    cases = {one.case: one for one in found.results if one.case}
    assert cases.keys() == was.keys()
    assert all(cases[case].measured == was[case].measured for case in was)
    (ended,) = [one for one in found.results if one.name == "ReFrame"]
    assert (ended.result, ended.reason) == ("fail", records.ENDED_EARLY)


def test_a_run_that_reframe_ended_has_what_its_jobs_measured_and_no_check_read(tmp_path):
    own = apart(tmp_path)
    report = tmp_path / "run-0.json"
    document = json.loads(report.read_text())
    (run,) = document["runs"]
    read, ended = run["testcases"][:3], run["testcases"][3]
    run["testcases"] = [*read, {**ended, "result": "abort", "fail_reason": "ForceExitError"}]
    run["num_cases"] = 4
    report.write_text(json.dumps(document))
    found = session.load(report)
    assert [one.measured for one in found.results] == [
        one.measured for one in session.load(own).results
    ]
    assert {one.result for one in found.results} >= {"pass"}
    assert records.ENDED_EARLY in found.results[-1].reason
    assert str(found.path) == str(report)
    del run["testcases"][3][records.KEY]
    run["testcases"][3]["unique_name"] = ["test_3"]
    report.write_text(json.dumps(document))
    assert session.load(report).results[3].measured == found.results[3].measured


def test_what_no_check_compared_with_its_references_has_failed(tmp_path):
    own = apart(tmp_path, report=False)
    for path in own.glob("test_*.json"):
        record = json.loads(path.read_text())
        for key in ("netproof_complete", "netproof_case", "netproof_references"):
            record["values"].pop(key, None)
        del record["sha256"]
        path.write_text(records.sealed(record))
    found = [one for one in session.load(own).results if one.case]
    assert found
    assert all(one.measured for one in found)
    assert {(one.result, one.phase) for one in found} == {("fail", "performance")}


def test_the_newest_session_may_be_one_without_a_report(tmp_path):
    own = apart(tmp_path)
    report = tmp_path / "run-0.json"
    assert session.newest(tmp_path) == report
    later = own.with_name("session-99991231T000000-1")
    shutil.copytree(own, later)
    (later / records.HEADER).touch()
    assert session.newest(tmp_path) == later


def described(where: tuple[str, ...], name: str, folder: Path, kind: str) -> dict[str, Any]:
    """A test of ReFrame's as its record has it; ``folder``: of its job."""
    place, names = dict(zip(WHERE, where, strict=True)), ("display_name", "unique_name")
    more = {"netproof_kind": kind, "stagedir": str(folder), "outputdir": "", "job_nodelist": None}
    return {**place, **dict.fromkeys(names, name), **more}


def test_what_a_job_measured_that_reframe_never_looked_at_is_read_from_its_folder(tmp_path):
    job = shutil.copytree(DATA / "jobs" / "imb-faulty", tmp_path / "job" / "mpich")
    (job / "job_nodes.json").write_text('{"7": []}')
    where = ("testbed", "gige", "mpich")
    cases = tuple(Case(*where, "imb", name, 2, 1) for name in ("PingPong", "Bcast"))
    recorded = session.load(DATA / "sessions" / "faulty.json").results
    extras = next(one.extras for one in recorded if one.measured)["partition_extras"]
    over_tcp = {"mpi_over_tcp": True}
    JobPlan(3, extras, environment_extras=over_tcp, cases=cases, launches=1).write(job)
    test = described(where, "ImbJob", job.parent, "launches")
    own = records.make_folder(tmp_path)
    records.write(records.new_path(own, test), test, {})

    def by_function() -> dict[str, CheckResult]:
        return {one.case.function: one for one in session.load(own).results if one.case}

    # Its job goes on, and may still measure the other.
    assert [*by_function()] == ["PingPong"]
    # One that was ended with the run has not run the rest.
    job_files.JobReport("python", 1.0, 1.0, 0.1, ended="it was ended from outside").write(job)
    assert [*by_function()] == ["PingPong"]
    job_files.JobReport("python", 1.0, 1.0, 0.1).write(job)
    found = by_function()
    assert found["PingPong"].measured.launches
    assert (found["PingPong"].extras["seed"], found["PingPong"].measured.jobid) == (3, "7")
    assert found["Bcast"].measured is None
    assert "Bcast.1 ended with status" in found["Bcast"].reason
    # The job's own record, which it leaves once all is decided, has its repeats too.
    planned = JobPlan.read(job / "plan.json")
    read = found["PingPong"].measured
    read = read.with_launches([*read.launches, replace(read.launches[0], further=True)])
    values = records.cases_of(job, planned, {cases[0]: read, cases[1]: Incomplete("x")})
    path = job / records.JOB_RECORD
    records.write(path, {}, {records.CASES: values})
    found = by_function()
    assert (found["PingPong"].measured, found["Bcast"].reason) == (read, "x")
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(NetproofError, match=r"record\.json: is damaged or cut short"):
        session.load(own)
    path.unlink()
    # Another job, which ReFrame had read, hides nothing of it in any of its environments.
    before = {"case": asdict(cases[0]) | {"benchmark": "osu", "function": "bw"}, "why": "x"}
    other = {**test, "unique_name": "OsuJob", "stagedir": str(tmp_path / "gone")}
    read = {records.CASES: {"shared": {}, "cases": [before]}}
    parts = {"mpich": read, "openmpi": read}
    records.write(records.new_path(own, other), other, {records.ENVIRONMENTS: parts})
    found = [one.case.function for one in session.load(own).results if one.case]
    assert sorted(found) == ["Bcast", "PingPong", "bw", "bw"]
    (job / "job_nodes.json").unlink()
    found = [(one.environment, one.case.function) for one in session.load(own).results if one.case]
    assert sorted(found) == [("mpich", "bw"), ("openmpi", "bw")]


def test_rounds_of_pairs_that_reframe_never_looked_at_are_read_from_their_job(tmp_path):
    planned = JobPlan.read(DATA / "jobs" / "pairs" / "plan.json")
    rounds = replace(planned.task_of(PairRounds), jobid="7", nodes=("gige-1", "gige-2"))
    (tmp_path / "job").mkdir()
    values = {records.PAIRS: {**codec.encode(rounds), "partition_extras": planned.extras}}
    records.write(tmp_path / "job" / records.JOB_RECORD, {}, values)
    test = described(planned.where, "PairJob", tmp_path / "job", "launches")
    own = records.make_folder(tmp_path)
    records.write(records.new_path(own, test), test, {})
    (found,) = session.load(own).with_pairs
    assert (found.rounds, found.result) == (rounds, "fail")
    reader = {**test, "unique_name": "Pairs", "netproof_kind": "pairs"}
    records.write(records.new_path(own, reader), reader, values)
    assert [one.result for one in session.load(own).with_pairs] == ["pass"]
