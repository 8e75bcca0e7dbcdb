"""Series are what the store has of each session, in the order of their start."""

from __future__ import annotations

import math
from datetime import date

import pytest
from made_nights import by, without

from netproof.criteria.score import score as score_of
from netproof.errors import NetproofError
from netproof.history import series
from netproof.history.selection import Quantity
from netproof.measurement.case import Curve, median_curve
from netproof.site.partition import ScoreBaseline
from netproof.store import questions


def read(nights):
    system, sessions = series.chosen(nights.store)
    return series.read(nights.store, system, sessions)


def one(found, quantity, function="Sendrecv", ranks=4, environment="mpich"):
    (it,) = [
        it
        for it in found.series
        if (it.quantity, it.case.function, it.case.ranks, it.case.environment)
        == (quantity, function, ranks, environment)
    ]
    return it


def rows(nights, session, table, function="Sendrecv", ranks=4, environment="mpich"):
    """The rows of one case in a table of a session."""
    return [
        row
        for row in questions.tables(nights.store, session, [table])[table].to_pylist()
        if (row["function"], row["ranks"], row["environment"]) == (function, ranks, environment)
    ]


def curves(nights, session, environment="mpich"):
    """The curves of one case, a launch each."""
    points = rows(nights, session, "curves", environment=environment)
    return [
        Curve(
            tuple(one["size_bytes"] for one in points if one["launch"] == launch),
            tuple(one["time_us"] for one in points if one["launch"] == launch),
        )
        for launch in sorted({one["launch"] for one in points})
    ]


@pytest.mark.slow
def test_the_mean_is_the_geometric_one_over_the_sizes_of_a_score(nights):
    nights.add_many(2)
    found = read(nights)
    curve = median_curve(curves(nights, found.sessions[0]))
    logs = [math.log(t) for size, t in zip(curve.sizes, curve.time_us, strict=True) if size >= 4]
    expected = math.exp(sum(logs) / len(logs))
    assert one(found, Quantity.MEAN).values[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.slow
def test_a_score_is_that_of_the_criteria_against_the_baseline_of_the_site(nights):
    nights.add_many(2, {0: by(1.5, environment="other")})
    found = read(nights)
    assert found.known.baseline == ScoreBaseline("gige", "mpich")
    both = [curves(nights, found.sessions[0], name) for name in ("other", "mpich")]
    expected = score_of(*both, where="it", baseline="mpich")
    score = one(found, Quantity.SCORE, environment="other")
    assert score.values[0] == pytest.approx(expected.value, rel=1e-12)


@pytest.mark.slow
def test_a_night_that_did_not_measure_a_case_has_no_value(nights):
    nights.add(0)
    nights.add(1, change=without(function="Sendrecv"))
    nights.add(2)
    values = one(read(nights), Quantity.LATENCY).values
    assert [value is None for value in values] == [False, True, False]


@pytest.mark.slow
@pytest.mark.parametrize(("key", "value"), [("result", "fail"), ("inconclusive", None)])
def test_a_case_that_failed_or_that_nobody_could_judge_counts(nights, key, value):
    def change(rows):
        for row in rows["cases"]:
            row[key] = value

    nights.add(0)
    nights.add(1, change=change)
    assert None not in one(read(nights), Quantity.LATENCY).values


@pytest.mark.slow
def test_a_mean_over_other_sizes_is_left_out_and_counted(nights):
    def short(rows):
        rows["curves"] = [row for row in rows["curves"] if row["size_bytes"] != 1024]

    nights.add(0, change=short)
    nights.add(1)
    found = read(nights)
    assert one(found, Quantity.MEAN).values[0] is None
    assert one(found, Quantity.LATENCY).values[0] is not None
    with_sizes = [it for it in found.series if it.quantity in (Quantity.MEAN, Quantity.SCORE)]
    assert found.other_sizes == len(with_sizes)


@pytest.mark.slow
def test_what_no_recent_session_measured_is_followed_no_longer(nights):
    nights.add(0)
    for night in range(1, series.STILL_MEASURED + 1):
        nights.add(night, change=without(environment="other"))
    found = read(nights)
    assert {it.case.environment for it in found.series} == {"mpich"}
    assert found.no_longer_followed > 0


@pytest.mark.slow
def test_sessions_are_chosen_by_count_day_label_and_last_one(nights):
    def labelled(rows):
        rows["sessions"][0]["labels"] = {"rack": "b"}

    stored = [nights.add(n, change=labelled if n % 2 else lambda rows: None) for n in range(6)]
    store = nights.store
    assert series.chosen(store) == ("testbed", tuple(stored))
    assert series.chosen(store, last=2)[1] == tuple(stored[-2:])
    assert series.chosen(store, since=date(2026, 9, 5))[1] == tuple(stored[4:])
    assert series.chosen(store, session=stored[3].name)[1] == tuple(stored[:4])
    assert series.chosen(store, labels={"rack": "b"})[1] == tuple(stored[1::2])


def test_of_several_systems_one_has_to_be_named(nights):
    nights.add(0)
    other = nights.add(1, system="another")
    with pytest.raises(NetproofError, match="2 systems, another, testbed; name one: SYSTEM"):
        series.chosen(nights.store)
    assert series.chosen(nights.store, "another") == ("another", (other,))
    assert series.chosen(nights.store, session=other.name) == ("another", (other,))
    with pytest.raises(NetproofError, match="is of system another, not testbed"):
        series.chosen(nights.store, "testbed", other.name)


WHY = "the machine was disturbed: gige-2: others used 38 % of the CPUs"


def disturbed(**which):
    """Cases with these values were inconclusive."""

    def change(rows):
        for row in rows["cases"]:
            if row["complete"] and all(row[name] == it for name, it in which.items()):
                row["inconclusive"] = [WHY]

    return change


@pytest.mark.slow
def test_what_was_inconclusive_is_no_value_and_is_kept_alongside(nights):
    nights.add(0)
    stored = nights.add(1, by(3.0), disturbed(function="Sendrecv", environment="other"))
    nights.add(2)
    found = read(nights)
    of_it = one(found, Quantity.LATENCY, environment="other")
    assert [value is None for value in of_it.values] == [False, True, False]
    assert [value is None for value in of_it.inconclusive] == [True, False, True]
    assert of_it.inconclusive[1] > 2 * of_it.values[0]
    assert None not in one(found, Quantity.LATENCY, environment="mpich").values
    assert {(case.function, at, why) for (at, case), why in found.inconclusive.items()} == {
        ("Sendrecv", stored, (WHY,))
    }


@pytest.mark.slow
def test_a_score_against_an_inconclusive_baseline_is_no_value(nights):
    nights.add(0)
    nights.add(1, change=disturbed(function="Sendrecv", environment="mpich"))
    nights.add(2)
    found = read(nights)
    score = one(found, Quantity.SCORE, environment="other")
    assert [value is None for value in score.values] == [False, True, False]
    assert None not in one(found, Quantity.LATENCY, environment="other").values
