"""Sides of a comparison, and their cases compared."""

from __future__ import annotations

import dataclasses
import io
import re
from pathlib import Path

import pytest
from made_sides import first_launches, of, timed, with_launches, with_results, with_times
from rich.console import Console

from netproof import codec
from netproof.comparison.comparison import Outcome, compare, sides
from netproof.errors import NetproofError
from netproof.present.compared import blocks
from netproof.present.terminal import show


@pytest.mark.slow
def test_a_session_that_is_twice_as_fast_everywhere_has_that_ratio_at_every_size(healthy):
    faster = with_results(healthy, lambda result: with_times(result, lambda size: 0.5))
    compared = compare(*sides(healthy, faster))
    case = of(compared, "NetPIPE mpi inter-node oneway")
    assert case.score.value == pytest.approx(2)
    assert list(case.ratios.values()) == pytest.approx([2] * len(case.ratios))
    assert min(case.ratios) == 4
    assert case.outcome is Outcome.FASTER
    assert compared.mean() == pytest.approx(2)


@pytest.mark.slow
def test_the_same_measurements_differ_nowhere(healthy):
    again = with_results(healthy, lambda result: result)
    compared = compare(*sides(healthy, again))
    assert {case.outcome for case in compared.cases} == {Outcome.ALIKE}
    assert [case.ranges for case in compared.cases if case.ranges] == []
    assert compared.mostly("netpipe") == ()
    assert compared.differences == ()


def test_one_launch_has_no_interval_and_no_outcome(healthy):
    compared = compare(*sides(healthy, first_launches(healthy, 1)))
    case = of(compared, "NetPIPE mpi inter-node oneway")
    assert case.outcome is Outcome.UNDECIDED
    assert "no interval" in case.sentence()


@pytest.mark.slow
def test_barrier_has_no_sizes_and_is_told_by_its_time(healthy):
    case = timed(healthy, lambda size: 10, "IMB Barrier 2 ranks")
    assert (case.outcome, case.ratios) == (Outcome.SLOWER, {})
    assert case.score.value == pytest.approx(0.1)
    assert case.sentence().startswith("0.1 times as fast by its time (0.")


@pytest.mark.slow
def test_what_a_side_adds_to_the_latency_is_told_in_microseconds(healthy):
    before = r"the 29\.6 µs of monday"
    for factor, words in (
        (4, rf"tuesday adds 88\.\d µs \([\d.]+ to [\d.]+\) to {before}"),
        (0.25, rf"tuesday takes 22\.\d µs \([\d.]+ to [\d.]+\) off {before}"),
        (1, rf"tuesday is no different from {before} \(-.* to \+.* µs\)"),
    ):
        case = timed(healthy, lambda size, by=factor: by, "NetPIPE tcp inter-node oneway")
        assert re.fullmatch(words, case.latency("monday", "tuesday"))


@pytest.mark.slow
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
    differences = {one.pop("what"): (*one.values(),) for one in compared.differences}
    assert differences["link_mbit_s"] == (1000, 100, 8)


@pytest.mark.slow
def test_a_key_that_an_older_session_does_not_have_is_no_difference_where_it_is_empty(healthy):
    def younger(result):
        extras = {**result.extras["environment_extras"], "youngest": {}, "later": "on"}
        extras = {**result.extras, "environment_extras": extras}
        return dataclasses.replace(result, extras=extras)

    compared = compare(*sides(healthy, with_results(healthy, younger)))
    assert [(*one.values(),) for one in compared.differences] == [("later", None, "on", 16)]


@pytest.mark.slow
def test_a_case_that_one_side_or_neither_measured_is_told_with_the_reasons(healthy):
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


@pytest.mark.slow
def test_a_case_that_was_run_again_stands_as_it_ended(healthy):
    again = tuple(
        with_times(result, lambda size: 2) for result in healthy.results if result.case is not None
    )
    twice = dataclasses.replace(
        healthy, path=Path("twice.json"), results=(*healthy.results, *again)
    )
    assert compare(*sides(healthy, twice)).mean() == pytest.approx(0.5)


def test_sessions_with_nothing_in_common_cannot_be_compared(healthy, sick):
    unmeasured = with_results(healthy, lambda one: dataclasses.replace(one, measured=None))
    with pytest.raises(NetproofError, match="no case in common that both measured"):
        compare(*sides(unmeasured, sick))


@pytest.mark.slow
def test_a_side_that_was_disturbed_is_told(healthy):
    busy = {
        **{"node": "gige-1", "machine": "m", "cpus": 2, "wall_s": 1.0, "others_cpu_s": 0.8},
        **{"others_share": 0.4, "network_share": 0.0, "steal_share": 0.0, "pressure_share": 0.5},
        **{"pressure_full_share": 0.0, "absent": []},
    }

    def disturbed(result):
        values = codec.encode(result.measured)["launches"]
        return with_launches(result, [{**launch, "loads": [busy]} for launch in values])

    compared = compare(*sides(healthy, with_results(healthy, disturbed, "noisy.json")))
    noise = "noisy: gige-1: others used 40 % of the CPUs"
    assert {case.disturbed for case in compared.cases} == {(noise,)}
    assert all(
        case.sentence().endswith(f"; the machine was disturbed: {noise}") for case in compared.cases
    )
    again = compare(*sides(healthy, with_results(healthy, lambda result: result, "same.json")))
    assert {case.disturbed for case in again.cases} == {()}


def with_cost(result, seconds):
    """The result with this CPU time of each rank for 10⁸ bytes, and none to start and to end."""
    launches = []
    for launch in codec.encode(result.measured)["launches"]:
        ranks = [{**rank, "cpu_s": seconds} for rank in launch["ranks"]]
        exchanged = {"messages": 1000, "bytes": 10**8, "why": ""}
        launches.append({**launch, "ranks": ranks, "exchanged": exchanged})
    started = [{**rank, "cpu_s": 0.0, "wall_s": 0.0} for rank in launches[0]["ranks"]]
    return with_launches(result, launches, starts=[[started, []]])


def head_of(compared) -> str:
    out = io.StringIO()
    show(blocks([compared], {}), Console(file=out, width=200))
    return next(line for line in out.getvalue().splitlines() if " ratio " in line)


@pytest.mark.slow
def test_a_side_that_takes_half_of_the_cpu_time_a_gb_has_twice_the_ratio_where_both_are_known(
    healthy,
):
    first = with_results(healthy, lambda result: with_cost(result, 2.0), "first.json")
    second = with_results(healthy, lambda result: with_cost(result, 1.0))
    compared = compare(*sides(first, second))
    cost = of(compared, "NetPIPE mpi inter-node oneway").cpu_s_per_gb
    assert (cost.first, cost.ratio, cost.difference) == pytest.approx((20, 2, -10))
    assert "CPU/GB" in head_of(compared)
    compared = compare(*sides(healthy, second))
    cost = of(compared, "NetPIPE mpi inter-node oneway").cpu_s_per_gb
    assert (cost.first, cost.ratio) == (None, None)
    assert cost.second == pytest.approx(10)
    assert "CPU/GB" not in head_of(compared)


def test_environments_may_be_of_one_partition_alone(healthy):
    compared = compare(*sides(healthy, None, ("gige", "gige"), ("mpich", "intelmpi")))
    assert (compared.first.name, compared.second.name) == ("mpich", "intelmpi")
    assert {case.second.case.partition for case in compared.cases} == {"gige"}
    assert len(compared.cases) == 4


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({}, "both sides are the same"),
        ({"partitions": ("gige", "gige")}, "both sides are the same"),
        ({"partitions": ("gige", "ib")}, "no case of ib; it has gige mpich, gige intelmpi"),
        (
            {"environments": ("mpich", "lam")},
            "no case of lam; it has gige mpich, gige intelmpi",
        ),
    ],
)
def test_what_cannot_be_compared_says_why(healthy, arguments, reason):
    with pytest.raises(NetproofError, match=reason):
        compare(*sides(healthy, **arguments))


def test_sessions_of_the_same_name_are_told_apart_by_their_paths(healthy):
    other = with_results(healthy, lambda result: result, "later/healthy.json")
    first, second = sides(healthy, other)
    assert (first.name, second.name) == (str(healthy.path), "later/healthy.json")


def test_of_several_sides_each_has_a_column_of_ratios_to_the_first(healthy):
    one = compare(*sides(healthy, None, ("gige", "fast-ethernet"), ("mpich", "mpich")))
    other = dataclasses.replace(one, second=dataclasses.replace(one.second, name="third"))
    out = io.StringIO()
    show(blocks([one, other], {"fourth": "no case"}), Console(file=out, width=200))
    lines = out.getvalue().splitlines()
    assert "fourth is not compared: no case" in lines
    heading = next(
        n for n, line in enumerate(lines) if line.split() == ["function", one.second.name, "third"]
    )
    assert lines[heading + 1].startswith("IMB PingPong 2 ranks ")
    assert lines[heading + 1].count("▼") == 2
