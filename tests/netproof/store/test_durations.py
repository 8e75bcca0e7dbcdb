"""What a job will take, and when it had its turn, follows from stored sessions."""

from __future__ import annotations

import dataclasses
import json
from datetime import datetime
from pathlib import Path

import pytest

from netproof.diagnosis.diagnosis import ingest
from netproof.session import session
from netproof.site import site
from netproof.site.matrix import Matrix, PlannedJob, job_of, jobs, matrix, nodes_of
from netproof.store import Store, durations
from netproof.store.durations import Past, expected_seconds, past, session_seconds

ROOT = Path(__file__).resolve().parents[3]
RECORDED = ROOT / "tests" / "data" / "sessions" / "two-switches.json"
NETPIPE = PlannedJob("gige", "mpich", "netpipe", 2)


@pytest.fixture(scope="module")
def whole() -> Matrix:
    """All that is expected on the testbed."""
    return matrix(site.gather(ROOT / "site-config"), "testbed")


@pytest.fixture(scope="module")
def expected(whole) -> Matrix:
    """Just what the recorded session has."""
    there = {r.case.key() for r in session.load(RECORDED).results if r.case}
    return dataclasses.replace(
        whole, cases=tuple(case for case in whole.cases if case.key() in there)
    )


def a_night(folder: Path, day: int, change=lambda document: None) -> Path:
    """The recorded session as if it had been of another day, and of 700 s."""
    document = json.loads(RECORDED.read_text())
    start = datetime.fromisoformat(f"2026-11-{day:02d}T01:00:00+00:00").timestamp()
    document["session_info"] |= {
        "uuid": f"{day:08d}-0000-0000-0000-000000000000",
        "time_start_unix": start,
        "time_end_unix": start + 700,
    }
    change(document)
    path = folder / f"run-{day}.json"
    path.write_text(json.dumps(document))
    return path


def launches_s(document: dict, environment: str, functions: tuple[str, ...]) -> float:
    return sum(
        launch["wall_s"]
        for test in document["runs"][0]["testcases"]
        if (test["partition"], test["environ"]) == ("gige", environment)
        and test["netproof_case"]["function"] in functions
        for launch in test["netproof_measured"]["launches"]
    )


def forget_netpipe(document: dict) -> None:
    """NetPIPE over MPI of gige mpich failed."""
    for test in document["runs"][0]["testcases"]:
        where = (test["partition"], test["environ"], test["netproof_case"]["function"])
        if where == ("gige", "mpich", "mpi"):
            test |= {"result": "fail", "netproof_measured": {}}


def skip_netpipe(document: dict) -> None:
    """NetPIPE of gige mpich was left."""
    for test in document["runs"][0]["testcases"]:
        where = (test["partition"], test["environ"], test["netproof_case"]["benchmark"])
        if where == ("gige", "mpich", "netpipe"):
            test |= {"result": "skip", "netproof_measured": {}}


@pytest.fixture
def store(tmp_path) -> Store:
    return Store.create(tmp_path / "store")


@pytest.mark.slow
def test_a_job_takes_the_median_of_its_launches_and_what_a_job_cost_beyond(
    store, tmp_path, expected
):
    for day in (1, 2, 3):
        ingest(store, a_night(tmp_path, day))
    document = json.loads(RECORDED.read_text())
    launches = launches_s(document, "mpich", ("mpi",))
    known = past(store, expected)
    assert known.launches_s[NETPIPE] == pytest.approx([launches] * 3)
    times = expected_seconds(jobs(expected), known)
    assert times[NETPIPE].seconds == pytest.approx(launches + known.overhead_s[0])
    assert times[NETPIPE].why == "median of 3 sessions"
    # Both switches are one contention domain: the session is its jobs one after the other.
    assert session_seconds(times, expected) == pytest.approx(700)


@pytest.mark.slow
def test_what_was_not_measured_whole_had_its_turn_and_tells_no_time(store, tmp_path, expected):
    ingest(store, a_night(tmp_path, 1))
    ingest(store, a_night(tmp_path, 2, forget_netpipe))
    known = past(store, expected)
    assert known.tried[NETPIPE] == known.measured[NETPIPE] == datetime(2026, 11, 2, 1)
    assert len(known.launches_s[NETPIPE]) == 1
    assert expected_seconds([NETPIPE], known)[NETPIPE].why == "as in the one session"


@pytest.mark.slow
def test_what_was_left_had_no_turn(store, tmp_path, expected):
    ingest(store, a_night(tmp_path, 1))
    ingest(store, a_night(tmp_path, 2, skip_netpipe))
    assert past(store, expected).tried[NETPIPE] == datetime(2026, 11, 1, 1)


@pytest.mark.slow
def test_what_was_never_measured_takes_what_the_like_takes(store, tmp_path, expected, whole):
    ingest(store, a_night(tmp_path, 1))
    known = past(store, expected)
    other = PlannedJob("gige", "openmpi4", "netpipe", 2)
    assert other in jobs(whole)
    times = expected_seconds([other], known)[other]
    assert times.why == "never measured whole: as others of gige intelmpi, gige mpich"
    assert times.seconds > 0


def test_where_nothing_alike_was_measured_no_time_is_known(whole):
    times = expected_seconds(jobs(whole), Past())
    assert {one.seconds for one in times.values()} == {None}
    assert session_seconds(times, whole) is None


def test_an_empty_store_knows_nothing(store, whole):
    assert past(store, whole) == durations.Past()


def test_every_case_belongs_to_one_job_and_two_rank_functions_to_the_least(whole):
    grouped = jobs(whole)
    assert sum(map(len, grouped.values())) == len(whole.cases)
    least = [c.function for c in grouped[PlannedJob("gige", "mpich", "imb", 2)]]
    most = [c.function for c in grouped[PlannedJob("gige", "mpich", "imb", 4)]]
    assert set(least) - set(most) == {"PingPong"}
    assert nodes_of(PlannedJob("gige", "mpich", "imb", 4), whole) == 4
    assert job_of(grouped[NETPIPE][0], 2) == NETPIPE


def test_functions_beyond_the_default_have_a_job_of_their_own():
    full = matrix(site.gather(ROOT / "site-config"), "testbed", all_functions=True)
    other = PlannedJob("gige", "mpich", "imb", 4, default=False)
    assert str(other) == "gige mpich other functions of IMB on 4 ranks"
    assert {case.function for case in jobs(full)[other]} >= {"Exchange", "Gather"}
