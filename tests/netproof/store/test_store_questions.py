"""Questions to a store have the answers that the criteria give, and open only what they need."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from netproof import codec
from netproof.criteria import score
from netproof.diagnosis.diagnosis import ingest
from netproof.errors import NetproofError
from netproof.session import session
from netproof.session.measured import Measured
from netproof.site.partition import ScoreBaseline
from netproof.store import Store, StoredSession, questions
from netproof.store.tables import KEY

PASSED = Path(__file__).resolve().parents[2] / "data" / "sessions" / "passed.json"
BASELINE = ScoreBaseline("gige", "intelmpi")


def report(tmp_path: Path, day: int, change: Callable[[dict], None] | None = None) -> Path:
    """The recorded session on another day: three launches, and a second, slower environment."""
    document = json.loads(PASSED.read_text())
    document["session_info"]["uuid"] = f"{day:08x}-0000-4000-8000-000000000000"
    document["session_info"]["time_start_unix"] += 86400 * day
    tests = document["runs"][0]["testcases"]
    for test in list(tests):
        if not test.get("netproof_measured"):
            continue
        launches_of(test, [1.0, 1.1 + day / 100, 0.9])
        slower = copy.deepcopy(test)
        slower["environ"] = slower["netproof_measured"]["case"]["environment"] = "slower"
        launches_of(slower, [2.0, 1.8, 2.5])
        tests.append(slower)
    document["runs"][0]["num_cases"] = len(tests)
    if change:
        change(document)
    path = tmp_path / f"run-{day}.json"
    path.write_text(json.dumps(document))
    return path


def launches_of(test: dict, factors: list[float]) -> None:
    """Give a test's case launches so many times as slow as its first, and what follows."""
    measured = test["netproof_measured"]
    first = measured["launches"][0]
    measured["launches"] = []
    for number, factor in enumerate(factors, 1):
        launch = copy.deepcopy(first) | {"number": number}
        launch["curve"]["time_us"] = [time * factor for time in first["curve"]["time_us"]]
        launch["curve"]["bandwidth_mb_s"] = [
            rate / factor for rate in first["curve"]["bandwidth_mb_s"]
        ]
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


def measured(store: Store, stored: StoredSession) -> dict[tuple, Measured]:
    """Each complete case of a session, by its key."""
    return {
        tuple(getattr(result.case, name) for name in KEY): result.measured
        for result in questions.load(store, stored).results
        if result.measured
    }


def keyed(row: dict) -> tuple:
    return tuple(row[name] for name in KEY)


def scores(store: Store, stored: StoredSession, baseline=BASELINE) -> list[dict]:
    return questions.nightly(store, [stored], baseline).to_pylist()


@pytest.mark.slow
def test_landmarks_of_a_night_are_those_of_the_reports(store):
    sessions = store.sessions()
    table = questions.nightly(store, sessions, None)
    rows = table.to_pylist()
    assert [row["session"] for row in rows] == [one.name for one in sessions for _ in range(6)]
    newest = store.newest()
    for row in rows:
        if row["session"] == newest.name:
            case = measured(store, newest)[keyed(row)]
            for name in questions.NIGHTLY:
                assert row[name] == getattr(case.landmarks, name)


@pytest.mark.slow
def test_scores_are_those_of_the_criteria(store):
    newest = store.newest()
    cases = measured(store, newest)
    rows = scores(store, newest)
    assert {keyed(row) for row in rows} == set(cases)
    for row in rows:
        key = keyed(row)
        of_baseline = cases[(*key[:-2], BASELINE.partition, BASELINE.environment)]
        expected = score.score(
            [launch.curve for launch in cases[key].launches],
            [launch.curve for launch in of_baseline.launches],
            where="it",
            baseline="baseline",
        )
        assert row["score"] == pytest.approx(expected.value, rel=1e-12)
        common = (expected.common.count, expected.common.least, expected.common.largest)
        assert tuple(row["score_sizes"]) == common


@pytest.mark.slow
def test_a_case_that_the_criteria_cannot_judge_has_no_score(tmp_path):
    def stopped_clock(document):
        for test in document["runs"][0]["testcases"]:
            values = test.get("netproof_measured")
            if values and values["case"]["function"] == "PingPong" and test["environ"] == "slower":
                for curve in (launch["curve"] for launch in values["launches"]):
                    curve["time_us"] = [*curve["time_us"][:-1], 0.0]
                recomputed(values)

    store = Store.create(tmp_path / "store")
    done = ingest(store, report(tmp_path, 1, stopped_clock))
    rows = scores(store, done.stored)
    undefined = [(row["function"], row["environment"]) for row in rows if row["score"] is None]
    assert undefined == [("PingPong", "slower")]


@pytest.mark.slow
def test_without_its_baseline_a_session_has_no_scores(store):
    rows = scores(store, store.newest(), ScoreBaseline("gige", "other"))
    assert len(rows) == 6
    assert {row["score"] for row in rows} == {None}


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


@pytest.mark.slow
def test_any_question_can_be_put_in_sql(store):
    with questions.connect(store, store.sessions()[:2]) as connection:
        found = connection.sql("select distinct session from curves order by session").fetchall()
        assert [name for (name,) in found] == [stored.name for stored in store.sessions()[:2]]
        with pytest.raises(duckdb.Error):
            connection.sql("select * from nothing").fetchall()


def test_a_store_without_sessions_says_so(tmp_path):
    store = Store.create(tmp_path / "store")
    with pytest.raises(NetproofError, match="holds no session"):
        questions.connect(store)
    with pytest.raises(NetproofError, match="holds no session"):
        store.newest()


@pytest.mark.slow
def test_the_report_that_was_stored_is_not_needed_any_more(tmp_path):
    path = report(tmp_path, 1)
    reported = session.load(path)
    store = Store.create(tmp_path / "store")
    done = ingest(store, path)
    path.unlink()
    assert len(questions.load(store, done.stored).results) == len(reported.results)


@pytest.mark.slow
def test_no_question_loads_pandas(store):
    ingest(store, PASSED)
    asked = (
        "import pathlib, sys; from netproof.store import Store, questions;"
        f" questions.connect(Store(pathlib.Path({str(store.folder)!r})));"
        " sys.exit('pandas' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", asked], check=False).returncode == 0
