"""How much variances of few values tell of each other."""

from __future__ import annotations

import math

import numpy as np
import pytest

from netproof.measurement.interval import Variance, beyond_chance, in_common, moderated


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


def test_groups_of_different_size_of_values_are_alike_within_each():
    apart = [estimates([0.01] * 300), estimates([1.0] * 300, seed=4)]
    assert beyond_chance(apart) == pytest.approx(0, abs=0.2)
    assert beyond_chance([[one for group in apart for one in group]]) > 10


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
