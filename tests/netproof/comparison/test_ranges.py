"""Where one side is faster, and where that is left open."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from made_sides import of, with_results, with_times

from netproof.comparison.compared_case import Outcome, Range
from netproof.comparison.comparison import compare, sides


def test_a_small_buffer_shows_as_slower_from_where_it_is_full(healthy, sick):
    compared = compare(*sides(healthy, sick))
    for case in compared.cases:
        last = case.ranges[-1]
        assert (last.least, last.largest, last.faster) == (32768, 524288, False)
        assert (last.size, last.ratio < 0.1) == (49152, True)
    assert compared.mostly("netpipe")[-1] == (32768, 524288, False)
    assert compared.mostly("imb") == ()


@pytest.mark.slow
def test_a_curve_that_crosses_is_faster_in_one_range_and_slower_in_the_other(healthy):
    crossing = with_results(
        healthy, lambda result: with_times(result, lambda size: 0.2 if size < 1024 else 5)
    )
    case = of(compare(*sides(healthy, crossing)), "NetPIPE mpi between oneway")
    assert [(one.least, one.largest, one.faster) for one in case.ranges] == [
        (4, 768, True),
        (1024, 524288, False),
    ]
    assert "faster from " in case.sentence()
    assert "; slower from " in case.sentence()


@pytest.mark.slow
def test_one_size_alone_is_told_if_it_is_twice_as_slow_and_not_if_it_is_a_little(healthy):
    def at_8192(factor):
        changed = with_results(
            healthy, lambda result: with_times(result, lambda size: factor if size == 8192 else 1)
        )
        return of(compare(*sides(healthy, changed)), "NetPIPE mpi between oneway").ranges

    assert at_8192(4.0) == (Range(8192, 8192, False, 8192, pytest.approx(0.25)),)
    assert at_8192(1.5) == ()


@pytest.mark.slow
def test_equal_noise_seldom_makes_a_difference_and_hardly_ever_a_range(healthy):
    random = np.random.default_rng(1)

    def noisy(result):
        base = result.measured["curve"]
        launches = []
        for launch in result.measured["launches"]:
            times = base["time_us"] * np.exp(0.1 * random.standard_normal(len(base["time_us"])))
            curve = {**base, "time_us": times.tolist()}
            launches.append({**launch, "curve": curve})
        medians = np.median([one["curve"]["time_us"] for one in launches], axis=0)
        curve = {**base, "time_us": medians.tolist()}
        return dataclasses.replace(
            result, measured={**result.measured, "launches": launches, "curve": curve}
        )

    cases = [
        case
        for night in range(20)
        for case in compare(
            *sides(
                with_results(healthy, noisy, "monday.json"),
                with_results(healthy, noisy, f"{night}.json"),
            )
        ).cases
        if case.ratios
    ]
    differing = sum(case.outcome is not Outcome.ALIKE for case in cases)
    assert len(cases) == 240
    assert differing / len(cases) < 0.15
    assert sum(bool(case.ranges) for case in cases) / len(cases) < 0.03


@pytest.mark.slow
def test_two_launches_are_not_enough_to_say_where(healthy):
    def of_two(result):
        shortened = {**result.measured, "launches": result.measured["launches"][:2]}
        return dataclasses.replace(result, measured=shortened)

    slower = with_results(healthy, lambda result: of_two(with_times(result, lambda size: 3)))
    case = of(compare(*sides(healthy, slower)), "NetPIPE mpi between oneway")
    assert case.outcome is Outcome.SLOWER
    assert case.ranges == ()
