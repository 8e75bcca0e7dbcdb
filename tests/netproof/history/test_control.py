"""Which of many series stand out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from netproof.history.changes import DetectionSettings
from netproof.history.control import controlled, expected_false_alarms


@pytest.mark.slow
def test_the_control_keeps_its_rate_on_p_values_of_chance():
    random = np.random.default_rng(10)
    nights, series = 2000, 100
    alarms = [
        len(controlled(dict(enumerate(random.uniform(size=series).tolist()))))
        for _ in range(nights)
    ]
    share = DetectionSettings().false_share
    some = sum(count > 0 for count in alarms)
    assert some == pytest.approx(share * nights, abs=3 * math.sqrt(share * nights))
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
    share = DetectionSettings().false_share
    p_values = {"a": 0.6 * share, "b": 0.7 * share, "c": 0.74 * share, "d": 0.9}
    assert controlled(p_values) == {"a", "b", "c"}
    assert controlled({**p_values, "c": 0.76 * share}) == frozenset()
