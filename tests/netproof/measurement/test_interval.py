"""Intervals of medians cover, narrow and lie on a side of a bound; variances of few values."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netproof.measurement.interval import (
    Side,
    Variance,
    beyond_chance,
    in_common,
    moderated,
    of_median,
    of_pseudomedian,
    of_ratio,
    pseudomedian,
    side,
)

Draw = Callable[[], list[list[float]]]
TRIES = 4000
LEAST = 0.95 - 4 * math.sqrt(0.95 * 0.05 / TRIES)
"""Four standard errors of 95 % in so many tries."""


def share_held(interval: Callable[..., tuple[float, float]], draw: Draw, middle: float) -> float:
    """The share of intervals of what is drawn that hold the middle."""
    several = (interval(*draw()) for _ in range(TRIES))
    return sum(low * (1 - 1e-9) <= middle <= high * (1 + 1e-9) for low, high in several) / TRIES


FEW = {
    "normal": (lambda random, count: random.normal(0, 1, count), 0.0),
    "uniform": (lambda random, count: random.uniform(0, 1, count), 0.5),
    "exponential": (lambda random, count: random.exponential(1, count), math.log(2)),
    "heavy tails": (lambda random, count: random.laplace(0, 1, count), 0.0),
    "skewed": (lambda random, count: np.exp(random.normal(0, 1, count)), 1.0),
    "one in four slow": (
        lambda random, count: random.normal(0, 1, count) + 5 * (random.random(count) < 0.25),
        0.4307,
    ),
}


@pytest.mark.parametrize(("drawn", "middle"), FEW.values(), ids=FEW)
@pytest.mark.parametrize("count", [2, 3, 5, 6, 12])
def test_95_in_100_intervals_hold_the_median_of_launches_whatever_the_shape(count, drawn, middle):
    random = np.random.default_rng(count)
    share = share_held(
        of_median, lambda: [list(np.exp(0.1 * drawn(random, count)))], math.exp(0.1 * middle)
    )
    assert 0.93 < share < 0.99


SYMMETRIC = {
    "uniform": lambda random, count: random.uniform(-1.4, 1.4, count),
    "one of two": lambda random, count: random.choice([-1.0, 1.0], count),
    "heavy tails": lambda random, count: random.standard_t(3, count),
}


@pytest.mark.slow
@pytest.mark.parametrize("drawn", SYMMETRIC.values(), ids=SYMMETRIC)
@pytest.mark.parametrize("count", [6, 12])
def test_signed_ranks_hold_the_middle_of_any_symmetric_distribution(drawn, count):
    random = np.random.default_rng(count)
    draws = lambda: [list(np.exp(0.3 + drawn(random, count)))]  # noqa: E731
    assert share_held(of_pseudomedian, draws, math.exp(0.3)) >= LEAST


@given(st.lists(st.floats(1e-3, 1e6), min_size=6, max_size=12))
def test_signed_ranks_lie_around_their_middle_and_turn_with_the_ratio(values):
    low, high = of_pseudomedian(values)
    assert low * (1 - 1e-9) <= pseudomedian(values) <= high * (1 + 1e-9)
    turned = of_pseudomedian([1 / value for value in values])
    assert turned == (pytest.approx(1 / high), pytest.approx(1 / low))


def test_of_one_launch_the_middle_is_its_value_and_has_no_interval():
    assert pseudomedian([2.5]) == pytest.approx(2.5)
    assert of_pseudomedian([2.5]) is None
    assert of_pseudomedian([2.0, 3.0, 4.0]) == of_median([2.0, 3.0, 4.0])


@pytest.mark.parametrize("count", [3, 10])
def test_an_interval_of_a_ratio_holds_it(count):
    random = np.random.default_rng(count)
    spreads = ((1.0, 0.2), (0.0, 0.05))
    draws = lambda: [list(np.exp(random.normal(*one, count))) for one in spreads]  # noqa: E731
    assert share_held(of_ratio, draws, math.e) >= LEAST


@pytest.mark.parametrize("values", [[], [3.0], [0.0, 1.0], [1.0, math.inf, 2.0]])
def test_what_says_nothing_of_its_spread_has_no_interval(values):
    assert of_median(values) is None


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        ((1.0, 2.0), Side.WITHIN),
        ((0.5, 0.9), Side.BEYOND),
        ((3.1, 4.0), Side.BEYOND),
        ((0.9, 1.1), Side.ASTRIDE),
        ((2.9, 3.1), Side.ASTRIDE),
        ((0.5, 4.0), Side.ASTRIDE),
    ],
)
def test_an_interval_lies_within_beyond_or_astride(interval, expected):
    assert side(interval, 1.0, 3.0) is expected
    assert side(interval, -math.inf, math.inf) is Side.WITHIN


def estimates(spreads, values: int = 4, seed: int = 3) -> list[Variance]:
    """The variance of so many normal values with each of these standard deviations."""
    random = np.random.default_rng(seed)
    drawn = [spread * random.standard_normal(values) for spread in spreads]
    return [Variance(float(np.var(one, ddof=1)), values - 1) for one in drawn]


def test_variances_that_scatter_by_chance_alone_are_one():
    own = estimates([0.1] * 400)
    assert beyond_chance([own]) == pytest.approx(0, abs=0.2)
    shared = in_common(own, 60)
    assert shared.variance == pytest.approx(0.01, rel=0.15)
    assert shared.freedom > 15


def test_variances_beyond_chance_count_as_few():
    own = estimates([0.01, 0.1, 1.0] * 100)
    # Logarithms of 0.0001, 0.01 and 1 have a variance of 14.1.
    assert beyond_chance([own]) == pytest.approx(14.1, rel=0.15)
    assert in_common(own, 300).freedom < 1


def test_of_single_estimates_nothing_is_known():
    assert beyond_chance([estimates([0.1]), estimates([0.2])]) == -math.inf
    (own,) = estimates([0.1])
    shared = in_common([own], 0)
    assert shared.freedom == 0
    assert moderated(own, shared) == own


def test_a_moderated_variance_lies_between_and_counts_as_both():
    found = moderated(Variance(4.0, 3), Variance(1.0, 9))
    assert (found.variance, found.freedom) == (1.75, 12)
    # Student's quantile of 12 degrees of freedom.
    assert found.half_width(0.05, 1) == pytest.approx(2.1788 * math.sqrt(1.75), rel=1e-4)
