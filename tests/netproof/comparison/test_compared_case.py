"""A compared case: its ranges, its landmarks, and the envelope of equal cases."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from made_sides import first_launches, of, timed, with_launches, with_results, with_times

from netproof import codec
from netproof.comparison import comparison
from netproof.comparison.comparison import Outcome, Range, compare, sides


@pytest.mark.slow
def test_a_curve_that_crosses_is_faster_in_one_range_and_slower_in_the_other(healthy):
    case = timed(healthy, lambda size: 0.2 if size < 1024 else 5)
    assert [(one.least, one.largest, one.faster) for one in case.ranges] == [
        (4, 768, True),
        (1024, 524288, False),
    ]
    assert "faster from " in case.sentence()
    assert "; slower from " in case.sentence()


@pytest.mark.slow
def test_one_size_alone_is_told_if_it_is_twice_as_slow_and_not_if_it_is_a_little(healthy):
    def at_8192(factor):
        return timed(healthy, lambda size: factor if size == 8192 else 1).ranges

    assert at_8192(4.0) == (Range(8192, 8192, False, 8192, pytest.approx(0.25)),)
    assert at_8192(1.5) == ()


@pytest.mark.slow
def test_equal_noise_seldom_makes_a_difference_and_hardly_ever_a_range(healthy):
    random = np.random.default_rng(1)

    def noisy(result):
        base = np.array(result.measured.curve.time_us)
        launches = []
        for launch in codec.encode(result.measured)["launches"]:
            times = base * np.exp(0.1 * random.standard_normal(len(base)))
            launches.append({**launch, "curve": {**launch["curve"], "time_us": times.tolist()}})
        return with_launches(result, launches)

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
    slower = with_results(first_launches(healthy, 2), lambda one: with_times(one, lambda size: 3))
    case = of(compare(*sides(healthy, slower)), "NetPIPE mpi inter-node oneway")
    assert case.outcome is Outcome.SLOWER
    assert case.ranges == ()


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
    for case in compare(*sides(healthy, first_launches(healthy, 1))).cases:
        latency = case.landmarks["latency_us"]
        assert latency.ratio == pytest.approx(1, abs=0.5)
        assert (latency.interval, latency.difference_interval) == (None, None)


@pytest.mark.slow
def test_landmarks_are_better_above_1_whichever_way_they_go(healthy):
    compared = compare(*sides(healthy, partitions=("fast-ethernet", "gige")))
    case = of(compared, "NetPIPE tcp inter-node oneway", "fast-ethernet")
    peak, latency = case.landmarks["peak_mb_s"], case.landmarks["latency_us"]
    assert 9 < peak.ratio == pytest.approx(peak.second / peak.first)
    assert latency.ratio == pytest.approx(latency.first / latency.second)
    assert case.landmarks["peak_size"].ratio is None


@pytest.fixture
def cases(judge):
    """``cases(function, path)``: those of two switches, by configuration."""
    verdict = judge("two-switches.json").verdict

    def of(function: str, ranks: int = 2, path: str = "inter-node"):
        return {
            f"{one.case.partition} {one.case.environment}": one
            for one in verdict.cases
            if (one.case.function, one.case.ranks, one.case.path) == (function, ranks, path)
            and one.case.direction == "oneway"
        }

    return of


@pytest.mark.slow
def test_it_has_the_least_time_at_each_size_and_whose_it_is(cases, judge):
    matrix = judge("two-switches.json").matrix
    found, _ = comparison.envelope_of_cases(cases("tcp"), matrix)
    measured = {label: one.measured for label, one in cases("tcp").items() if one.measured}
    for size, (time, label) in found.items():
        at = {
            name: dict(zip(one.curve.sizes, one.curve.time_us, strict=True))
            for name, one in measured.items()
        }
        assert time == at[label][size] == min(one[size] for one in at.values() if size in one)


def test_links_of_two_switches_differ_and_those_inside_a_node_are_none(cases, judge):
    matrix = judge("two-switches.json").matrix
    both = cases("tcp")
    assert comparison.envelope_of_cases(both, matrix)[1]
    one_switch = {label: one for label, one in both.items() if label.startswith("gige")}
    assert not comparison.envelope_of_cases(one_switch, matrix)[1]
    assert not comparison.envelope_of_cases(cases("tcp", path="intra-node"), matrix)[1]


def test_a_case_alone_has_none(cases, judge):
    matrix = judge("two-switches.json").matrix
    alone = {"gige mpich": cases("tcp")["gige mpich"]}
    assert comparison.envelope_of_cases(alone, matrix)[0] == {}
    never = {"gige mpich": dataclasses.replace(alone["gige mpich"], results=dict)}
    assert comparison.envelope_of_cases(never, matrix)[0] == {}
