"""Questions to a store have the answers that the criteria give, and open only what they need."""

from __future__ import annotations

import copy
import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from statistics import geometric_mean

import pytest
from made_reports import altered, another, cases_in

from netproof import codec
from netproof.criteria import score
from netproof.diagnosis.diagnosis import ingest
from netproof.errors import NetproofError
from netproof.session import session
from netproof.session.measured import Measured
from netproof.site import site
from netproof.site.matrix import Matrix, PlannedJob, job_of, jobs, matrix, nodes_of
from netproof.site.partition import ScoreBaseline
from netproof.store import Store, StoredSession, questions
from netproof.store.durations import Past, expected_seconds, past, session_seconds
from netproof.store.tables import KEY

PASSED = Path(__file__).resolve().parents[2] / "data" / "sessions" / "passed.json"
BASELINE = ScoreBaseline("gige", "intelmpi")


def report(folder: Path, day: int, change: Callable[[dict], None] = lambda document: None) -> Path:
    """The recorded session on another day: three launches, and a second, slower environment."""

    def made(document: dict) -> None:
        another(document, day, 86400 * day)
        tests = cases_in(document)
        for test in [one for one in tests if one.get("netproof_measured")]:
            launches_of(test, [1.0, 1.1 + day / 100, 0.9])
            slower = copy.deepcopy(test)
            slower["environ"] = slower["netproof_measured"]["case"]["environment"] = "slower"
            launches_of(slower, [2.0, 1.8, 2.5])
            tests.append(slower)
        document["runs"][0]["num_cases"] = len(tests)
        change(document)

    return altered(folder, made, file=f"run-{day}.json")


def launches_of(test: dict, factors: list[float]) -> None:
    """Give a test's case launches so many times as slow as its first, and what follows."""
    measured = test["netproof_measured"]
    first = measured["launches"][0]
    measured["launches"] = []
    for number, factor in enumerate(factors, 1):
        launch = copy.deepcopy(first) | {"number": number}
        own, other = launch["curves"][0], first["curves"][0]
        own["time_us"] = [time * factor for time in other["time_us"]]
        own["bandwidth_mb_s"] = [rate / factor for rate in other["bandwidth_mb_s"]]
        measured["launches"].append(launch)
    recomputed(measured)


def recomputed(measured: dict) -> None:
    """Put what follows from the launches in its place."""
    whole = codec.decode_part(Measured, measured, "a case")
    measured.update(codec.encode(whole.with_launches(whole.launches)))


@pytest.fixture
def store(tmp_path) -> Store:
    made = Store.create(tmp_path / "store")
    for day in (2, 1, 3):
        ingest(made, report(tmp_path, day))
    return made


def scores(store: Store, stored: StoredSession, baseline=BASELINE) -> list[dict]:
    return questions.nightly(store, [stored], baseline).to_pylist()


@pytest.mark.slow
def test_of_a_night_landmarks_are_those_of_the_report_and_scores_those_of_the_criteria(store):
    newest = store.newest()
    cases = {
        tuple(getattr(result.case, name) for name in KEY): result.measured
        for result in questions.load(store, newest).results
        if result.measured
    }
    rows = {tuple(row[name] for name in KEY): row for row in scores(store, newest)}
    assert set(rows) == set(cases)
    for key, row in rows.items():
        for name in questions.NIGHTLY:
            assert row[name] == getattr(cases[key].landmarks, name)
        curve = cases[key].curve
        times = [t for size, t in zip(curve.sizes, curve.time_us, strict=True) if size >= 4]
        assert row["mean_us"] == pytest.approx(geometric_mean(times), rel=1e-12)
        of_baseline = cases[(*key[:-2], BASELINE.partition, BASELINE.environment)]
        sides = (
            score.ScoredSide([launch.curve for launch in one.launches], "it", score.SCORE)
            for one in (cases[key], of_baseline)
        )
        expected = score.score(*sides)
        assert row["score"] == pytest.approx(expected.value, rel=1e-12)
        common = len(expected.common), expected.common[0], expected.common[-1]
        assert tuple(row["score_sizes"]) == common


@pytest.mark.slow
def test_without_its_baseline_or_where_the_criteria_cannot_judge_there_is_no_score(tmp_path):
    def stopped_clock(document):
        for test in document["runs"][0]["testcases"]:
            values = test.get("netproof_measured")
            if values and values["case"]["function"] == "PingPong" and test["environ"] == "slower":
                for curve in (launch["curves"][0] for launch in values["launches"]):
                    curve["time_us"] = [*curve["time_us"][:-1], 0.0]
                recomputed(values)

    store = Store.create(tmp_path / "store")
    done = ingest(store, report(tmp_path, 1, stopped_clock))
    rows = scores(store, done.stored)
    undefined = [(row["function"], row["environment"]) for row in rows if row["score"] is None]
    assert undefined == [("PingPong", "slower")]
    rows = scores(store, done.stored, ScoreBaseline("gige", "other"))
    assert [row["score"] for row in rows] == [None] * 6


@pytest.mark.slow
def test_a_question_about_one_session_opens_no_other(store):
    for stored in store.sessions()[:-1]:
        for path in store.path(stored).iterdir():
            path.write_bytes(b"")
    newest = store.newest()
    assert questions.load(store, newest).results
    assert len(scores(store, newest)) == 6
    with pytest.raises(NetproofError, match="is damaged: "):
        scores(store, store.sessions()[0])


def test_a_store_without_sessions_says_so(tmp_path):
    store = Store.create(tmp_path / "store")
    with pytest.raises(NetproofError, match="holds no session"):
        questions.connect(store)
    with pytest.raises(NetproofError, match="holds no session"):
        store.newest()


@pytest.mark.slow
def test_no_question_loads_pandas(store):
    ingest(store, PASSED)
    asked = (
        "import pathlib, sys; from netproof.store import Store, questions;"
        f" questions.connect(Store(pathlib.Path({str(store.folder)!r})));"
        " sys.exit('pandas' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", asked], check=False).returncode == 0


# What a job will take, and when it had its turn, follows from stored sessions.

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

    def made(document: dict) -> None:
        another(document, day)
        start = datetime(2026, 11, day, 1, tzinfo=UTC).timestamp()
        document["session_info"] |= {"time_start_unix": start, "time_end_unix": start + 700}
        change(document)

    return altered(folder, made, "two-switches", f"run-{day}.json")


def of_netpipe(document: dict, *functions: str) -> list[dict]:
    """The tests of NetPIPE of gige mpich."""
    return [
        test
        for test in cases_in(document)
        if (test["partition"], test["environ"]) == ("gige", "mpich")
        and test["netproof_case"]["function"] in functions
    ]


def forget_netpipe(document: dict) -> None:
    """NetPIPE over MPI of gige mpich failed."""
    for test in of_netpipe(document, "mpi"):
        test |= {"result": "fail", "netproof_measured": {}}


def skip_netpipe(document: dict) -> None:
    """NetPIPE of gige mpich was left."""
    for test in of_netpipe(document, "mpi", "tcp"):
        test |= {"result": "skip", "netproof_measured": {}}


@pytest.fixture
def empty(tmp_path) -> Store:
    return Store.create(tmp_path / "store")


@pytest.mark.slow
def test_a_job_takes_the_median_of_its_launches_and_what_a_job_cost_beyond(
    empty, tmp_path, expected
):
    for day in (1, 2, 3):
        ingest(empty, a_night(tmp_path, day))
    document = json.loads(RECORDED.read_text())
    several = [one["netproof_measured"] for one in of_netpipe(document, "mpi")]
    launches = sum(launch["wall_s"] for one in several for launch in one["launches"])
    known = past(empty, expected)
    assert known.launches_s[NETPIPE] == pytest.approx([launches] * 3)
    times = expected_seconds(jobs(expected), known)
    assert times[NETPIPE].seconds == pytest.approx(launches + known.overhead_s[0])
    assert times[NETPIPE].why == "median of 3 sessions"
    # Both switches are one contention domain: the session is its jobs one after the other.
    assert session_seconds(times, expected) == pytest.approx(700)


@pytest.mark.slow
def test_what_was_not_measured_whole_had_its_turn_and_what_was_left_had_none(
    empty, tmp_path, expected
):
    ingest(empty, a_night(tmp_path, 1))
    ingest(empty, a_night(tmp_path, 2, forget_netpipe))
    ingest(empty, a_night(tmp_path, 3, skip_netpipe))
    known = past(empty, expected)
    assert known.tried[NETPIPE] == known.measured[NETPIPE] == datetime(2026, 11, 2, 1)
    assert len(known.launches_s[NETPIPE]) == 1
    assert expected_seconds([NETPIPE], known)[NETPIPE].why == "as in the one session"


def test_an_empty_store_knows_nothing_and_no_time_is_known(empty, whole):
    assert past(empty, whole) == Past()
    times = expected_seconds(jobs(whole), Past())
    assert {one.seconds for one in times.values()} == {None}
    assert session_seconds(times, whole) is None


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
