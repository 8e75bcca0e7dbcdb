"""Which of many series stand out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from netproof.history.changes import FALSE_SHARE, controlled, expected_false_alarms


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
