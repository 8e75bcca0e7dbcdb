"""The end of a level in one series, and its bad nights."""

from __future__ import annotations

import numpy as np
import pytest

from netproof.history import night
from netproof.history.changes import ChangeKind
from netproof.history.night import ESTIMATE, Estimate, OpenStep

NOISE = 0.01


def noisy(count: int, seed: int = 1) -> np.ndarray:
    return NOISE * np.random.default_rng(seed).standard_normal(count)


def known(count: int) -> Estimate:
    """A level at 0 of so many nights."""
    return np.array((0.0, NOISE, count, count, (0.003, 0.001, 0.0005)), ESTIMATE)[()]


def opened(begin: int) -> OpenStep:
    nights = list(range(begin))
    return OpenStep(begin + 3, nights, known(begin), np.nan, begin, np.full(2, np.nan))


def test_a_level_ends_with_the_first_night_of_the_next():
    series = noisy(40)
    series[25:] += 0.1
    assert night.first_night(series, list(range(40)), known(40)) == 25
    assert night.first_night(series, list(range(10, 40)), known(40)) == 25


def test_a_slope_has_a_bend_and_a_step_has_none():
    nights = list(range(60))
    slope, stepped = noisy(60), noisy(60)
    slope[20:] += 0.001 * np.arange(40)
    stepped[30:] += 0.03
    assert night.slope_begin(slope, nights, known(40)) == pytest.approx(20, abs=6)
    assert night.slope_begin(stepped, nights, known(40)) is None


def test_few_nights_show_no_slope():
    nights = list(range(night.LEAST_SLOPE + 3))
    assert night.slope_begin(0.01 * np.arange(len(nights)), nights, known(40)) is None


def test_a_step_is_as_large_as_its_nights_show_and_chance_does_not_make_it():
    series = noisy(50)
    series[30:] += np.log(1.1)
    change = night.step_of(series, opened(30), list(range(30, 50)))
    assert (change.kind, change.index, change.found) == (ChangeKind.STEP, 30, 33)
    assert change.size == pytest.approx(0.1, abs=0.01)
    assert change.p_value < 1e-6
    assert change.ended is None


def test_a_step_that_a_single_night_had_made_was_a_bad_night():
    series = noisy(40)
    series[31] += 0.5
    few = night.ended_step(series, opened(30), [30, 31, 32], 33)
    assert (few.kind, few.index, few.ended) == (ChangeKind.BAD_NIGHT, 31, 32)
    series[30:36] += 0.2
    several = night.ended_step(series, opened(30), list(range(30, 36)), 36)
    assert (several.kind, several.index, several.ended) == (ChangeKind.STEP, 30, 36)


def test_nights_that_are_far_off_are_bad_where_each_is_alone():
    series = noisy(20)
    series[[3, 8, 9, 19]] += 0.3
    found = night.lone_bad_nights(series, known(30), list(range(20)))
    assert [(one.kind, one.index, one.ended) for one in found] == [
        (ChangeKind.BAD_NIGHT, 3, 4),
        (ChangeKind.BAD_NIGHT, 19, None),
    ]
