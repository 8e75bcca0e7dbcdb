"""The statistic of one night, ends of levels, bad nights, and which of many series stand out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from made_series import quiet

from netproof.history import changes
from netproof.history.changes import (
    ESTIMATE,
    FALSE_SHARE,
    ChangeKind,
    Estimate,
    OpenStep,
    controlled,
    expected_false_alarms,
)

NOISE = 0.01


def noisy(count: int, seed: int = 1) -> np.ndarray:
    return NOISE * np.random.default_rng(seed).standard_normal(count)


def known(count: int) -> Estimate:
    """A level at 0 of so many nights."""
    return np.array((0.0, NOISE, count, count, (0.003, 0.001, 0.0005)), ESTIMATE)[()]


def opened(begin: int) -> OpenStep:
    nights = list(range(begin))
    return OpenStep(begin + 3, nights, known(begin), np.nan, begin, np.full(2, np.nan))


def test_a_slope_has_a_bend_and_a_step_has_none():
    nights = list(range(60))
    slope, stepped = noisy(60), noisy(60)
    slope[20:] += 0.001 * np.arange(40)
    stepped[30:] += 0.03
    assert changes.slope_begin(slope, nights, known(40)) == pytest.approx(20, abs=6)
    assert changes.slope_begin(stepped, nights, known(40)) is None


def test_a_step_that_a_single_night_had_made_was_a_bad_night():
    series = noisy(40)
    series[31] += 0.5
    few = changes.ended_step(series, opened(30), [30, 31, 32], 33)
    assert (few.kind, few.index, few.ended) == (ChangeKind.BAD_NIGHT, 31, 32)
    series[30:36] += 0.2
    several = changes.ended_step(series, opened(30), list(range(30, 36)), 36)
    assert (several.kind, several.index, several.ended) == (ChangeKind.STEP, 30, 36)


def test_nights_that_are_far_off_are_bad_where_each_is_alone():
    series = noisy(20)
    series[[3, 8, 9, 19]] += 0.3
    found = changes.lone_bad_nights(series, known(30), list(range(20)))
    assert [(one.kind, one.index, one.ended) for one in found] == [
        (ChangeKind.BAD_NIGHT, 3, 4),
        (ChangeKind.BAD_NIGHT, 19, None),
    ]


def test_more_of_a_change_never_has_a_larger_p_value():
    base = np.log(quiet(8, 63))
    before = changes.estimated(base[np.newaxis, :60], np.full(1, np.nan), np.zeros((1, 3)))
    known = np.full((1, changes.LONGEST), before)
    p_values = [
        changes.scan(np.full((1, changes.LONGEST), before["level"] + off * before["noise"]), known)[
            0
        ]
        for off in np.arange(0, 3, 0.1)
    ]
    assert np.all(np.diff(np.ravel(p_values)) <= 0)


@pytest.mark.slow
def test_the_control_keeps_its_rate_on_p_values_of_chance():
    random = np.random.default_rng(10)
    nights, series = 2000, 100
    alarms = [
        len(controlled(dict(enumerate(random.uniform(size=series).tolist()))))
        for _ in range(nights)
    ]
    some = sum(count > 0 for count in alarms)
    assert some == pytest.approx(FALSE_SHARE * nights, abs=3 * math.sqrt(FALSE_SHARE * nights))
    # The expected number is at most the one returned.
    expected = expected_false_alarms(series, nights)
    assert sum(alarms) <= expected + 4 * math.sqrt(expected)


def test_the_control_lets_through_what_stands_out():
    p_values = {"a": 1e-9, "b": 1e-4, **{str(n): 0.5 for n in range(98)}}
    assert controlled(p_values) == {"a", "b"}
    assert controlled({}) == frozenset()
    assert expected_false_alarms(0, 30) == 0


def test_a_p_value_passes_with_all_smaller_ones_where_it_is_small_for_its_rank():
    # The third is at most 3/4 of the share, though the first two alone are too large.
    p_values = {"a": 0.6 * FALSE_SHARE, "b": 0.7 * FALSE_SHARE, "c": 0.74 * FALSE_SHARE, "d": 0.9}
    assert controlled(p_values) == {"a", "b", "c"}
    assert controlled({**p_values, "c": 0.76 * FALSE_SHARE}) == frozenset()
