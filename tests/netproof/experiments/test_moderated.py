"""How much the variances of a table tell of each other."""

from __future__ import annotations

import numpy as np
import pytest

from netproof.experiments.gains import common, gain_with

SIZES = range(16)


def logs(spreads, launches: int = 5):
    """Gains that scatter at each size by itself, with a spread for each value."""
    random = np.random.default_rng(3)
    return {
        str(place): [
            {size: spread * random.standard_normal() for size in SIZES} for _ in range(launches)
        ]
        for place, spread in enumerate(spreads)
    }


def test_equal_variances_count_in_full_and_are_found():
    shared = common(logs([0.1] * 6))
    assert shared.freedom == pytest.approx(20)
    assert shared.variance == pytest.approx(0.01, rel=0.3)


def test_unlike_variances_count_less():
    assert common(logs([0.01, 0.1, 1.0, 0.01, 0.1, 1.0])).freedom < 2


def test_one_value_has_nothing_in_common_with_others():
    several = logs([0.1])
    shared = common(several)
    assert shared.freedom == 0
    own = [one[0] for one in several["0"]]
    # Student's interval: 2.776 standard errors at 95 % with five launches.
    gain = gain_with(own, shared, 1)
    half = np.log(gain.interval[1] / gain.factor)
    assert half == pytest.approx(2.776 * np.std(own, ddof=1) / np.sqrt(5), rel=0.001)


def test_a_value_that_scatters_more_keeps_a_wider_interval():
    several = logs([0.1, 0.1, 0.1, 0.4])
    shared = common(several)
    widths = []
    for value in ("0", "3"):
        low, high = gain_with([one[0] for one in several[value]], shared, 64).interval
        widths.append(high / low)
    assert widths[1] > widths[0]
