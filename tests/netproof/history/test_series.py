"""Series are what the store has of each session, in the order of their start."""

from __future__ import annotations

import math
from datetime import date

import numpy as np
import pytest
from made_nights import by, unchanged, without
from made_series import NOISE, changed, follow, quiet

from netproof.history import changes, series
from netproof.history.changes import (
    FALSE_SHARE,
    ChangeKind,
    controlled,
    expected_false_alarms,
)
from netproof.history.followers import follow_all
from netproof.history.selection import Quantity
from netproof.history.series import POOL_STRIDE, pooled
from netproof.site.partition import ScoreBaseline


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


@pytest.mark.slow
@pytest.mark.parametrize(("key", "value"), [("result", "fail"), ("inconclusive", None)])
def test_a_case_that_failed_or_that_nobody_could_judge_counts_and_one_not_measured_has_no_value(
    nights, key, value
):
    def change(rows):
        for row in rows["cases"]:
            row[key] = value

    for night, each in enumerate((unchanged, change, without(function="Sendrecv"))):
        nights.add(night, change=each)
    values = one(read(nights), Quantity.LATENCY).values
    assert [value is None for value in values] == [False, False, True]


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


@pytest.mark.slow
def test_what_was_inconclusive_is_no_value_nor_a_baseline_and_is_stored_beside_the_values(nights):
    why = "the machine was disturbed: gige-2: others used 38 % of the CPUs"

    def disturbed(rows):
        for row in rows["cases"]:
            if row["complete"] and (row["function"], row["environment"]) == ("Sendrecv", "mpich"):
                row["inconclusive"] = [why]

    nights.add(0)
    stored = nights.add(1, by(3.0), disturbed)
    nights.add(2)
    found = read(nights)
    of_it = one(found, Quantity.LATENCY)
    assert [value is None for value in of_it.values] == [False, True, False]
    assert [value is None for value in of_it.inconclusive] == [True, False, True]
    assert of_it.inconclusive[1] > 2 * of_it.values[0]
    assert {(case.function, at, why) for (at, case), why in found.inconclusive.items()} == {
        ("Sendrecv", stored, (why,))
    }
    assert found.known.baseline == ScoreBaseline("gige", "mpich")
    assert None not in one(found, Quantity.LATENCY, environment="other").values
    score = one(found, Quantity.SCORE, environment="other")
    assert [value is None for value in score.values] == [False, True, False]


# Several series as one.


def test_a_pool_has_no_value_where_none_of_its_series_has():
    assert pooled([[1.0, None, None, 1.0], [2.0, 2.0, None, 2.0]]) == [1.0, 1.0, None, 1.0]
    assert pooled([[None, None]]) == [None, None]
    assert pooled([]) == []


@pytest.mark.parametrize("phase", [0, 1, POOL_STRIDE - 1])
def test_the_values_of_earlier_nights_stay_until_the_weights_are_taken_anew(phase):
    several = [quiet(seed) for seed in range(30, 34)]
    several[1][2 * POOL_STRIDE + 5] = None
    for nights in (2 * POOL_STRIDE - phase, 3 * POOL_STRIDE - phase):
        first = pooled([values[:nights] for values in several], phase)
        for more in (1, POOL_STRIDE - 1):
            assert pooled([values[: nights + more] for values in several], phase)[:nights] == first
        assert (
            pooled([values[: nights + POOL_STRIDE] for values in several], phase)[:nights] != first
        )


def test_a_series_that_joins_late_is_weighed_by_all_of_its_nights():
    old = [quiet(seed) for seed in (30, 31)]
    late = [None] * (3 * POOL_STRIDE) + [1000.0 * value for value in quiet(32)[: POOL_STRIDE // 2]]
    of_all = pooled([*(values[: len(late)] for values in old), late])
    assert all(0.8 < value < 1.25 for value in of_all)


def test_a_step_that_a_single_night_had_made_was_a_bad_night():
    nights = 0.01 * np.random.default_rng(1).standard_normal(40)
    nights[31] += 0.5
    known = np.array((0.0, 0.01, 30, 30, (0.003, 0.001, 0.0005)), changes.ESTIMATE)[()]
    opened = changes.OpenStep(33, [*range(30)], known, np.nan, 30, np.full(2, np.nan))
    few = changes.ended_step(nights, opened, [30, 31, 32], 33)
    assert (few.kind, few.index, few.ended) == (BAD, 31, 32)


# Which of many series stand out.


def test_the_control_lets_through_what_stands_out_with_all_that_is_smaller():
    p_values = {"a": 1e-9, "b": 1e-4, **{str(n): 0.5 for n in range(98)}}
    assert controlled(p_values) == {"a", "b"}
    assert controlled({}) == frozenset()
    assert expected_false_alarms(0, 30) == 0
    # The third is at most 3/4 of the share, though the first two alone are too large.
    p_values = {"a": 0.6 * FALSE_SHARE, "b": 0.7 * FALSE_SHARE, "c": 0.74 * FALSE_SHARE, "d": 0.9}
    assert controlled(p_values) == {"a", "b", "c"}
    assert controlled({**p_values, "c": 0.76 * FALSE_SHARE}) == frozenset()


# Changes in series of nights: what is found, what is not, and what is said of it.


@pytest.mark.slow
@pytest.mark.parametrize("nights", [0, 1, 3, 9, 10, 200])
def test_a_series_that_never_changes_never_alarms(nights):
    followed = follow([5.0] * nights)
    assert followed.changes == ()
    assert followed.p_value == 1.0


STEP, DRIFT, BAD = ChangeKind.STEP, ChangeKind.DRIFT, ChangeKind.BAD_NIGHT


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "found"),
    [
        # It stays open until the series is back, and a good night in between does not end it.
        (changed(quiet(2, 70), (60, 1.1)), [(STEP, 60, None)]),
        (changed(quiet(2, 100), (60, 1.1)), [(STEP, 60, None)]),
        (changed(quiet(2, 100), (60, 1.1), (80, 1 / 1.1)), [(STEP, 60, 80)]),
        (changed(quiet(3), (60, 1.1), (70, 1 / 1.1), (71, 1.1)), [(STEP, 60, None)]),
        # A second bad night in a row is listed too, and a third is a step.
        (changed(quiet(9, 61), (60, 1.1)), [(BAD, 60, None)]),
        (changed(quiet(9, 62), (60, 1.1)), [(BAD, 61, None)]),
        (changed(quiet(9, 63), (60, 1.1)), [(STEP, 60, None)]),
        (changed(quiet(5, 120), (40, 1.1), (80, 1.1)), [(STEP, 40, None), (STEP, 80, None)]),
        ([v * (1 + 0.1 * n / 160) for n, v in enumerate(quiet(6, 160))], [(DRIFT, 11, None)]),
    ],
)
def test_what_changed_is_found_with_its_kind_its_begin_and_its_end(values, found):
    followed = follow(values)
    assert [(one.kind, one.index, one.ended) for one in followed.changes] == found
    standing = [one for one in followed.changes if one.kind is not BAD and one.ended is None]
    assert [one for one in followed.changes if one.open] == standing
    assert followed.level == pytest.approx(standing[-1].after if standing else 100, rel=0.05)
    assert (followed.p_value < 1e-3) is any(one.kind is STEP for one in standing)


@pytest.mark.slow
def test_p_values_of_unchanged_series_come_no_more_often_than_they_say():
    random = np.random.default_rng(9)
    values = (np.exp(NOISE * random.normal(size=(1000, 60)))).tolist()
    p_values = np.array([followed.p_value for followed in follow_all(values)])
    for p_value in (0.05, 0.01):
        allowed = 1000 * p_value
        assert (p_values <= p_value).sum() <= allowed + 3 * math.sqrt(allowed)
    # And are not merely 1: a p-value that never is small finds nothing.
    assert (p_values <= 0.05).sum() >= 0.2 * 1000 * 0.05
