"""Which side is faster, by how much and where; what is missing on one side is told."""

from __future__ import annotations

import dataclasses
import itertools
import re
from pathlib import Path

import numpy as np
import pytest

from netproof.comparison.comparison import Outcome, Range, compare, sides
from netproof.errors import NetproofError
from netproof.measurement.landmarks import LandmarkSettings, landmarks
from netproof.measurement.launches import median_curve
from netproof.session import session
from netproof.session.measured import curve_from_json

RECORDED = Path(__file__).resolve().parents[2] / "data" / "sessions"


@pytest.fixture(scope="module")
def healthy():
    """A session on healthy switches, two partitions and two environments."""
    return session.load(RECORDED / "healthy.json")


@pytest.fixture(scope="module")
def sick():
    """NetPIPE between two nodes of one of its partitions, on a switch with a small buffer."""
    return session.load(RECORDED / "sick.json")


def with_results(stored, change, path="elsewhere.json"):
    """The session under another path, with ``change`` made to the result of each case."""
    results = tuple(result if result.case is None else change(result) for result in stored.results)
    return dataclasses.replace(stored, path=Path(path), results=results)


def with_times(result, factor):
    """The result with the times of all launches multiplied; ``factor`` takes the size."""

    def scaled(curve):
        times = [
            time * factor(size) for size, time in zip(curve["sizes"], curve["time_us"], strict=True)
        ]
        rates = curve["bandwidth_mb_s"] and [
            rate / factor(size)
            for size, rate in zip(curve["sizes"], curve["bandwidth_mb_s"], strict=True)
        ]
        return {**curve, "time_us": times, "bandwidth_mb_s": rates}

    measured = result.measured
    launches = [{**one, "curve": scaled(one["curve"])} for one in measured["launches"]]
    curve = scaled(measured["curve"])
    line_rate, emulated = measured["line_rate_mb_s"], measured["partition_extras"]
    settings = LandmarkSettings(
        peak_from=emulated["line_rate_from_bytes"] if line_rate is not None else 0
    )
    found = dataclasses.asdict(landmarks(curve_from_json(curve), line_rate, settings))
    changed = {**measured, "launches": launches, "curve": curve, "landmarks": found}
    return dataclasses.replace(result, measured=changed)


def of(compared, what, partition="gige", environment="mpich"):
    return next(
        case
        for case in compared.cases
        if case.first.case.what() == what
        and (case.first.case.partition, case.first.case.environment) == (partition, environment)
    )


def test_a_session_that_is_twice_as_fast_everywhere_has_that_ratio_at_every_size(healthy):
    faster = with_results(healthy, lambda result: with_times(result, lambda size: 0.5))
    compared = compare(*sides(healthy, faster))
    case = of(compared, "NetPIPE mpi between oneway")
    assert case.score.value == pytest.approx(2)
    assert list(case.ratios.values()) == pytest.approx([2] * len(case.ratios))
    assert min(case.ratios) == 4
    assert case.outcome is Outcome.FASTER
    assert compared.mean() == pytest.approx(2)


def test_both_sides_exchanged_turn_every_ratio_and_interval_over(healthy, sick):
    there, back = compare(*sides(healthy, sick)), compare(*sides(sick, healthy))
    for case in there.cases:
        other = of(
            back, case.first.case.what(), case.first.case.partition, case.first.case.environment
        )
        assert other.score.value == pytest.approx(1 / case.score.value)
        assert [(r.least, r.largest, not r.faster) for r in other.ranges] == [
            (r.least, r.largest, r.faster) for r in case.ranges
        ]


def test_the_same_measurements_differ_nowhere(healthy):
    again = with_results(healthy, lambda result: result)
    compared = compare(*sides(healthy, again))
    assert {case.outcome for case in compared.cases} == {Outcome.ALIKE}
    assert [case.ranges for case in compared.cases if case.ranges] == []
    assert compared.mostly("netpipe") == ()
    assert compared.differences == ()


def test_a_small_buffer_shows_as_slower_from_where_it_is_full(healthy, sick):
    compared = compare(*sides(healthy, sick))
    for case in compared.cases:
        last = case.ranges[-1]
        assert (last.least, last.largest, last.faster) == (32768, 524288, False)
        assert (last.size, last.ratio < 0.1) == (49152, True)
    assert compared.mostly("netpipe")[-1] == (32768, 524288, False)
    assert compared.mostly("imb") == ()


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


def test_one_size_alone_is_told_if_it_is_twice_as_slow_and_not_if_it_is_a_little(healthy):
    def at_8192(factor):
        changed = with_results(
            healthy, lambda result: with_times(result, lambda size: factor if size == 8192 else 1)
        )
        return of(compare(*sides(healthy, changed)), "NetPIPE mpi between oneway").ranges

    assert at_8192(4.0) == (Range(8192, 8192, False, 8192, pytest.approx(0.25)),)
    assert at_8192(1.5) == ()


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


def test_two_launches_are_not_enough_to_say_where(healthy):
    def of_two(result):
        shortened = {**result.measured, "launches": result.measured["launches"][:2]}
        return dataclasses.replace(result, measured=shortened)

    slower = with_results(healthy, lambda result: of_two(with_times(result, lambda size: 3)))
    case = of(compare(*sides(healthy, slower)), "NetPIPE mpi between oneway")
    assert case.outcome is Outcome.SLOWER
    assert case.ranges == ()


def test_one_launch_has_no_interval_and_no_outcome(healthy):
    def of_one(result):
        shortened = {**result.measured, "launches": result.measured["launches"][:1]}
        return dataclasses.replace(result, measured=shortened)

    case = of(compare(*sides(healthy, with_results(healthy, of_one))), "NetPIPE mpi between oneway")
    assert case.outcome is Outcome.UNDECIDED
    assert "no interval" in case.sentence()


def test_barrier_has_no_sizes_and_is_told_by_its_time(healthy):
    slower = with_results(healthy, lambda result: with_times(result, lambda size: 10))
    case = of(compare(*sides(healthy, slower)), "IMB Barrier 2 ranks")
    assert case.outcome is Outcome.SLOWER
    assert case.score.value == pytest.approx(0.1)
    assert case.sentence().startswith("0.1 times as fast by its time (0.")
    assert case.ratios == {}


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


def test_what_a_side_adds_to_the_latency_is_told_in_microseconds(healthy):
    def told(factor):
        slower = with_results(healthy, lambda result: with_times(result, lambda size: factor))
        case = of(compare(*sides(healthy, slower)), "NetPIPE tcp between oneway")
        return case.latency("monday", "tuesday")

    before = r"the 29\.6 µs of monday"
    assert re.fullmatch(rf"tuesday adds 88\.\d µs \([\d.]+ to [\d.]+\) to {before}", told(4))
    assert re.fullmatch(rf"tuesday takes 22\.\d µs \([\d.]+ to [\d.]+\) off {before}", told(0.25))
    assert re.fullmatch(rf"tuesday is no different from {before} \(-.* to \+.* µs\)", told(1))


def test_an_interval_of_a_landmark_takes_two_launches_of_both_sides(healthy):
    def of_one(result):
        shortened = {**result.measured, "launches": result.measured["launches"][:1]}
        return dataclasses.replace(result, measured=shortened)

    for case in compare(*sides(healthy, with_results(healthy, of_one))).cases:
        latency = case.landmarks["latency_us"]
        assert (latency.ratio, latency.difference) == (1, 0)
        assert (latency.interval, latency.difference_interval) == (None, None)


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


def test_partitions_of_a_session_are_compared_by_environment_and_what_differs_is_told(healthy):
    compared = compare(*sides(healthy, partitions=("gige", "fast-ethernet")))
    assert (compared.first.name, compared.second.name) == ("gige", "fast-ethernet")
    assert len(compared.cases) == 8
    assert compared.uncompared == ()
    assert all(
        (case.first.case.partition, case.second.case.partition) == ("gige", "fast-ethernet")
        and case.first.case.environment == case.second.case.environment
        for case in compared.cases
    )
    told = {one.what: (one.first, one.second, one.cases) for one in compared.differences}
    assert told["link_mbit_s"] == (1000, 100, 8)


def test_a_key_that_an_older_session_does_not_have_is_no_difference_where_it_is_empty(healthy):
    def younger(result):
        extras = {**result.measured["environment_extras"], "youngest": {}, "later": "on"}
        measured = {**result.measured, "environment_extras": extras}
        return dataclasses.replace(result, measured=measured)

    compared = compare(*sides(healthy, with_results(healthy, younger)))
    assert [(one.what, one.first, one.second) for one in compared.differences] == [
        ("later", None, "on")
    ]


def test_landmarks_are_better_above_1_whichever_way_they_go(healthy):
    compared = compare(*sides(healthy, partitions=("fast-ethernet", "gige")))
    case = of(compared, "NetPIPE tcp between oneway", "fast-ethernet")
    peak, latency = case.landmarks["peak_mb_s"], case.landmarks["latency_us"]
    assert 9 < peak.ratio == pytest.approx(peak.second / peak.first)
    assert latency.ratio == pytest.approx(latency.first / latency.second)
    assert case.landmarks["peak_size"].ratio is None


def test_environments_may_be_of_one_partition_alone(healthy):
    compared = compare(*sides(healthy, None, ("gige", "gige"), ("mpich", "intelmpi")))
    assert (compared.first.name, compared.second.name) == ("mpich", "intelmpi")
    assert {case.second.case.partition for case in compared.cases} == {"gige"}
    assert len(compared.cases) == 4


def test_what_one_session_lacks_is_told(healthy, sick):
    compared = compare(*sides(healthy, sick))
    assert {(one.measured_by, one.why) for one in compared.uncompared} == {
        ("healthy", "sick does not have it")
    }
    assert len(compared.cases) + len(compared.uncompared) == 16


def test_a_case_that_failed_on_one_side_is_told_with_its_reason(healthy):
    def failed(result):
        if result.case.function != "PingPong":
            return result
        return dataclasses.replace(
            result, result="fail", phase="sanity", reason="it hung", measured=None
        )

    compared = compare(*sides(healthy, with_results(healthy, failed)))
    assert {(one.measured_by, one.why) for one in compared.uncompared} == {
        ("healthy", "elsewhere: fail in sanity: it hung")
    }
    assert len(compared.uncompared) == 4


def test_a_case_that_neither_side_measured_is_told(healthy):
    def unmeasured(result):
        failing = result.case.function == "PingPong"
        return dataclasses.replace(result, measured=None) if failing else result

    one = with_results(healthy, unmeasured, "one.json")
    compared = compare(*sides(one, with_results(healthy, unmeasured, "other.json")))
    assert {one.measured_by for one in compared.uncompared} == {None}
    assert "one: passed for ReFrame, but left no measurement; other: " in (
        compared.uncompared[0].why
    )


def test_a_case_that_was_run_again_stands_as_it_ended(healthy):
    again = tuple(
        with_times(result, lambda size: 2) for result in healthy.results if result.case is not None
    )
    twice = dataclasses.replace(
        healthy, path=Path("twice.json"), results=(*healthy.results, *again)
    )
    assert compare(*sides(healthy, twice)).mean() == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({}, "both sides are the same"),
        ({"partitions": ("gige", "gige")}, "both sides are the same"),
        ({"partitions": ("gige", "ib")}, "no case of partition 'ib'; it has gige, fast-ethernet"),
        (
            {"environments": ("mpich", "lam")},
            "no case of environment 'lam'; it has mpich, intelmpi",
        ),
    ],
)
def test_what_cannot_be_compared_says_why(healthy, arguments, reason):
    with pytest.raises(NetproofError, match=reason):
        compare(*sides(healthy, **arguments))


def test_sessions_with_nothing_in_common_cannot_be_compared(healthy, sick):
    unmeasured = with_results(healthy, lambda one: dataclasses.replace(one, measured=None))
    with pytest.raises(NetproofError, match="no case in common that both measured"):
        compare(*sides(unmeasured, sick))


def test_sessions_of_the_same_name_are_told_apart_by_their_paths(healthy):
    other = with_results(healthy, lambda result: result, "later/healthy.json")
    first, second = sides(healthy, other)
    assert (first.name, second.name) == (str(healthy.path), "later/healthy.json")


def test_launches_that_are_not_of_one_case_are_refused_by_name(healthy):
    def shortened(result):
        first, *others = result.measured["launches"]
        curve = {
            key: values and values[1:]
            for key, values in first["curve"].items()
            if len(first["curve"]["sizes"]) > 1
        } or first["curve"]
        changed = {**result.measured, "launches": [{**first, "curve": curve}, *others]}
        return dataclasses.replace(result, measured=changed)

    with pytest.raises(NetproofError, match=r"launch 1 has other sizes than its median curve"):
        compare(*sides(healthy, with_results(healthy, shortened)))


def test_a_side_that_was_disturbed_is_told(healthy):
    busy = {
        **{"node": "gige-1", "machine": "m", "cpus": 2, "wall_s": 1.0, "others_cpu_s": 0.8},
        **{"others_share": 0.4, "network_share": 0.0, "steal_share": 0.0, "pressure_share": 0.5},
        **{"pressure_full_share": 0.0, "absent": []},
    }

    def disturbed(result):
        launches = [{**launch, "loads": [busy]} for launch in result.measured["launches"]]
        return dataclasses.replace(result, measured={**result.measured, "launches": launches})

    compared = compare(*sides(healthy, with_results(healthy, disturbed, "noisy.json")))
    noise = "noisy: gige-1: others used 40 % of the CPUs"
    assert {case.disturbed for case in compared.cases} == {(noise,)}
    assert all(
        case.sentence().endswith(f"; the machine was disturbed: {noise}") for case in compared.cases
    )
    again = compare(*sides(healthy, with_results(healthy, lambda result: result, "calm.json")))
    assert {case.disturbed for case in again.cases} == {()}
