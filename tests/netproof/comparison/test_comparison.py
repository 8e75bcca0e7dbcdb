"""Sides of a comparison, and their cases compared."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from made_reports import busy
from made_sides import of, timed, with_launches, with_results, with_times
from made_text import printed

from netproof import codec
from netproof.comparison import comparison
from netproof.comparison.comparison import Outcome, Range, compare, sides
from netproof.errors import NetproofError
from netproof.present.compared import blocks


@pytest.mark.slow
def test_one_launch_has_no_interval_and_no_outcome_and_two_are_not_enough_to_say_where(healthy):
    def slower(count):
        def change(result):
            slow = with_times(result, lambda size: 3)
            launches = slow.measured.launches[:count]
            return dataclasses.replace(slow, measured=slow.measured.with_launches(launches))

        compared = compare(*sides(healthy, with_results(healthy, change)))
        return of(compared, "NetPIPE mpi inter-node oneway")

    case = slower(1)
    assert (case.outcome, "no interval" in case.sentence()) == (Outcome.UNDECIDED, True)
    latency = case.landmarks["latency_us"]
    assert latency.ratio == pytest.approx(1 / 3, rel=0.5)
    assert (latency.interval, latency.difference_interval) == (None, None)
    assert re.fullmatch(r"b adds .* µs \(no interval\) to the .* µs of a", case.latency("a", "b"))
    assert (slower(2).outcome, slower(2).ranges) == (Outcome.SLOWER, ())


@pytest.mark.slow
def test_barrier_has_no_sizes_and_is_compared_by_its_time(healthy):
    case = timed(healthy, lambda size: 10, "IMB Barrier 2 ranks")
    assert (case.outcome, case.ratios) == (Outcome.SLOWER, {})
    assert case.score.value == pytest.approx(0.1)
    assert case.sentence().startswith("0.1 times as fast by its time (0.")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (4, r"tuesday adds 88\.\d µs \([\d.]+ to [\d.]+\) to {}"),
        (0.25, r"tuesday takes 22\.\d µs \([\d.]+ to [\d.]+\) off {}"),
        (1, r"tuesday is no different from {} \(-.* to \+.* µs\)"),
    ],
)
def test_what_a_side_adds_to_the_latency_has_the_interval_of_the_launches(healthy, factor, words):
    case = timed(healthy, lambda size: factor if size < 64 else 1, "NetPIPE tcp inter-node oneway")
    before = r"the 29\.6 µs of monday"
    assert re.fullmatch(words.format(before), case.latency("monday", "tuesday"))
    latency, at_64_kib = case.landmarks["latency_us"], case.landmarks["rate_64_kib_mb_s"]
    assert latency.ratio == pytest.approx(1 / factor)
    assert latency.interval[0] <= latency.ratio <= latency.interval[1]
    assert latency.difference == pytest.approx((factor - 1) * latency.first)
    low, high = latency.difference_interval
    assert low <= latency.difference <= high
    assert at_64_kib.interval[0] <= 1 <= at_64_kib.interval[1]
    assert at_64_kib.difference == 0


@pytest.mark.slow
def test_a_key_that_an_older_session_does_not_have_is_no_difference_where_it_is_empty(healthy):
    def younger(result):
        extras = {**result.extras["environment_extras"], "youngest": {}, "later": "on"}
        extras = {**result.extras, "environment_extras": extras}
        return dataclasses.replace(result, extras=extras)

    compared = compare(*sides(healthy, with_results(healthy, younger)))
    assert [(*one.values(),) for one in compared.differences] == [("later", None, "on", 16)]


@pytest.mark.slow
def test_a_case_that_one_side_or_neither_measured_is_listed_with_the_reasons(healthy):
    def lacking(name, **changes):
        def change(result):
            failing = result.case.function == "PingPong"
            return dataclasses.replace(result, measured=None, **changes) if failing else result

        return with_results(healthy, change, name)

    failed = lacking("elsewhere.json", result="fail", phase="sanity", reason="it hung")
    compared = compare(*sides(healthy, failed))
    assert {one[1:] for one in compared.uncompared} == {
        ("healthy", "elsewhere: fail in sanity: it hung")
    }
    assert len(compared.uncompared) == 4
    compared = compare(*sides(lacking("one.json"), lacking("other.json")))
    assert {one[1] for one in compared.uncompared} == {None}
    assert "one: passed for ReFrame, but left no measurement; other: " in compared.uncompared[0][2]


def test_sessions_with_nothing_in_common_cannot_be_compared_and_names_are_distinct(healthy, sick):
    unmeasured = with_results(healthy, lambda one: dataclasses.replace(one, measured=None))
    with pytest.raises(NetproofError, match="no case in common that both measured"):
        compare(*sides(unmeasured, sick))
    other = with_results(healthy, lambda result: result, "later/healthy.json")
    first, second = sides(healthy, other)
    assert (first.name, second.name) == (str(healthy.path), "later/healthy.json")


@pytest.mark.slow
def test_a_case_that_was_run_again_stands_as_it_ended(healthy):
    again = [with_times(one, lambda size: 2) for one in healthy.results if one.case is not None]
    twice = dataclasses.replace(healthy, results=(*healthy.results, *again), path=Path("2.json"))
    assert compare(*sides(healthy, twice)).mean() == pytest.approx(0.5)


@pytest.mark.slow
def test_a_side_that_was_disturbed_is_reported(healthy):
    def disturbed(result):
        values = codec.encode(result.measured)["launches"]
        return with_launches(result, [{**launch, "loads": [busy()]} for launch in values])

    compared = compare(*sides(healthy, with_results(healthy, disturbed, "noisy.json")))
    noise = "noisy: gige-1: others used 40 % of the CPUs"
    assert {case.disturbed for case in compared.cases} == {(noise,)}
    assert all(
        case.sentence().endswith(f"; the machine was disturbed: {noise}") for case in compared.cases
    )


@pytest.mark.slow
def test_a_side_with_half_of_the_cpu_time_per_gb_has_twice_the_ratio_where_both_are_known(healthy):
    def costing(seconds, name):
        """Have each rank take this CPU time for 10⁸ bytes, and none to start and to end."""

        def change(result):
            launches = codec.encode(result.measured)["launches"]
            ranks = len(launches[0]["ranks"])
            for launch in launches:
                launch |= {"used": {**launch["used"], "cpu_s": [seconds] * ranks}}
                launch |= {"exchanged": [10**8, 1000]}
            used = {"cpu_s": [0.0] * ranks, "wall_s": [0.0] * ranks}
            starts = [{**launches[0], "curves": [], "used": used}]
            return with_launches(result, launches, starts=starts)

        return with_results(healthy, change, name)

    def cost(first, second):
        case = of(compare(*sides(first, second)), "NetPIPE mpi inter-node oneway")
        return case.cpu_s_per_gb

    twice, once = costing(2.0, "first.json"), costing(1.0, "second.json")
    known, half = cost(twice, once), cost(healthy, once)
    assert (known.first, known.ratio, known.difference) == pytest.approx((20, 2, -10))
    assert (half.first, half.ratio, half.second) == (None, None, pytest.approx(10))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({}, "both sides are the same"),
        ({"partitions": ("gige", "gige")}, "both sides are the same"),
        ({"partitions": ("gige", "ib")}, "no case of ib; it has gige mpich, gige intelmpi"),
        ({"environments": ("mpich", "lam")}, "no case of lam; it has gige mpich, gige intelmpi"),
    ],
)
def test_what_cannot_be_compared_says_why(healthy, arguments, reason):
    with pytest.raises(NetproofError, match=reason):
        compare(*sides(healthy, **arguments))


def test_of_several_sides_each_has_a_column_of_ratios_to_the_first(healthy):
    one = compare(*sides(healthy, None, ("gige", "fast-ethernet"), ("mpich", "mpich")))
    other = dataclasses.replace(one, second=dataclasses.replace(one.second, name="third"))
    lines = printed(blocks([one, other], {"fourth": "no case"})).splitlines()
    assert "fourth is not compared: no case" in lines
    heading = next(
        n for n, line in enumerate(lines) if line.split() == ["function", one.second.name, "third"]
    )
    assert lines[heading + 1].startswith("IMB PingPong 2 ranks ")
    assert lines[heading + 1].count("▼") == 2


# A compared case: its ranges, its landmarks, and the envelope of equal cases.


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
def test_one_size_alone_is_a_range_if_it_is_twice_as_slow_and_none_if_it_is_a_little(healthy):
    def at_8192(factor):
        return timed(healthy, lambda size: factor if size == 8192 else 1).ranges

    assert at_8192(4.0) == (Range(8192, 8192, False, 8192, pytest.approx(0.25)),)
    assert at_8192(1.5) == ()


def test_an_envelope_has_the_least_time_at_each_size_and_whose_it_is(judge):
    judged = judge("two-switches.json")

    def envelope(path="inter-node", partition=""):
        cases = {
            f"{one.case.partition} {one.case.environment}": one
            for one in judged.verdict.cases
            if (one.case.function, one.case.path, one.case.direction) == ("tcp", path, "oneway")
            and one.case.partition.startswith(partition)
        }
        return cases, *comparison.envelope_of_cases(cases, judged.matrix)

    cases, found, links_differ = envelope()
    at = {
        name: dict(zip(one.measured.curve.sizes, one.measured.curve.time_us, strict=True))
        for name, one in cases.items()
        if one.measured
    }
    for size, (time, label) in found.items():
        assert time == at[label][size] == min(one[size] for one in at.values() if size in one)
    assert links_differ
    assert not envelope(partition="gige")[2]
    assert not envelope("intra-node")[2]
    # A case alone has none.
    alone = {"gige mpich": cases["gige mpich"]}
    assert comparison.envelope_of_cases(alone, judged.matrix)[0] == {}
