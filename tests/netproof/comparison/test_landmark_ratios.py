"""Landmarks of two sides, with the intervals of their ratios."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from made_sides import of, with_results, with_times

from netproof.comparison.comparison import compare, sides
from netproof.measurement.landmarks import landmarks
from netproof.measurement.launches import median_curve


@pytest.mark.slow
def test_an_interval_of_a_landmark_is_that_of_the_launches(healthy):
    slower = with_results(
        healthy, lambda result: with_times(result, lambda size: 10 if size < 64 else 1)
    )
    for case in compare(*sides(healthy, slower)).cases:
        latency, at_64_kib = case.landmarks["latency_us"], case.landmarks["rate_64_kib_mb_s"]
        assert latency.ratio == pytest.approx(0.1)
        assert latency.interval[0] <= latency.ratio <= latency.interval[1]
        assert latency.difference == pytest.approx(9 * latency.first)
        low, high = latency.difference_interval
        assert low <= latency.difference <= high
        if at_64_kib.ratio is not None:
            assert at_64_kib.interval[0] <= 1 <= at_64_kib.interval[1]
            assert at_64_kib.difference == 0


def test_an_interval_of_a_landmark_takes_two_launches_of_both_sides(healthy):
    def of_one(result):
        shortened = {**result.measured, "launches": result.measured["launches"][:1]}
        return dataclasses.replace(result, measured=shortened)

    for case in compare(*sides(healthy, with_results(healthy, of_one))).cases:
        latency = case.landmarks["latency_us"]
        assert (latency.ratio, latency.difference) == (1, 0)
        assert (latency.interval, latency.difference_interval) == (None, None)


@pytest.mark.slow
def test_the_interval_of_a_landmark_is_that_of_the_median_curves_of_drawn_launches(healthy):
    case = of(
        compare(*sides(healthy, partitions=("gige", "fast-ethernet"))),
        "NetPIPE tcp between oneway",
    )
    ratios = [
        landmarks(median_curve(one), 1.0).latency_us
        / landmarks(median_curve(other), 1.0).latency_us
        for one, other in itertools.product(
            *(
                itertools.product([launch.curve for launch in side.launches], repeat=3)
                for side in (case.first, case.second)
            )
        )
    ]
    low, high = np.quantile(ratios, [0.025, 0.975])
    assert case.landmarks["latency_us"].interval == pytest.approx((low, high), rel=0.02)


@pytest.mark.slow
def test_landmarks_are_better_above_1_whichever_way_they_go(healthy):
    compared = compare(*sides(healthy, partitions=("fast-ethernet", "gige")))
    case = of(compared, "NetPIPE tcp between oneway", "fast-ethernet")
    peak, latency = case.landmarks["peak_mb_s"], case.landmarks["latency_us"]
    assert 9 < peak.ratio == pytest.approx(peak.second / peak.first)
    assert latency.ratio == pytest.approx(latency.first / latency.second)
    assert case.landmarks["peak_size"].ratio is None
