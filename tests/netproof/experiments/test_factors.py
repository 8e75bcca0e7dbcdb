"""Congestion impact factors: of a recorded job, of times whose factor is known, and bounds."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path

import pytest

from netproof.experiments import load
from netproof.experiments.load import Impact, Loaded, LoadFindings, Statistic
from netproof.experiments.load_plan import VictimPlace
from netproof.experiments.tails import nearest_rank
from netproof.measurement.interval import Side

JOB = Path(__file__).resolve().parents[2] / "data" / "jobs" / "load"


@pytest.fixture(scope="module")
def recorded() -> Loaded:
    return load.of_job(JOB, "1")


def of(found: LoadFindings, place: VictimPlace) -> Impact:
    return next(one for one in found.impacts if one.place is place)


def test_across_a_shared_uplink_the_factor_is_far_above_that_within_a_leaf(recorded):
    found = load.findings(recorded)
    within = of(found, VictimPlace.WITHIN).factors[Statistic.MEAN]
    across = of(found, VictimPlace.ACROSS).factors[Statistic.MEAN]
    assert within.interval[1] < 1.1
    assert across.interval[0] > 2
    assert across.value == pytest.approx(3.31, abs=0.01)
    assert across.loaded > 2 * across.alone


def made(recorded: Loaded, factor: float, count: int = 100, **load: object) -> Loaded:
    """The recorded launches with times that are drawn, longer by a factor alongside."""
    draw = random.Random(1)
    runs = tuple(
        dataclasses.replace(
            run,
            times_us=tuple(
                draw.uniform(95, 105) * (factor if run.turn.beside else 1) for _ in range(count)
            ),
        )
        for run in recorded.runs
    )
    extras = {**recorded.partition_extras, "load": load}
    return dataclasses.replace(recorded, runs=runs, partition_extras=extras)


@pytest.mark.parametrize("factor", [1.0, 2.0, 30.0])
def test_a_factor_that_is_known_is_found_for_each_statistic(recorded, factor):
    found = load.findings(made(recorded, factor))
    for one in found.impacts:
        for known in one.factors.values():
            assert known.value == pytest.approx(factor, rel=0.02)
            assert known.interval[0] <= known.value <= known.interval[1]
    assert not found.beyond
    assert not found.undecided


@pytest.mark.parametrize(
    ("most", "side", "beyond", "undecided"),
    [
        (1.9, Side.BEYOND, True, False),
        (2.0, Side.ASTRIDE, False, True),
        (2.2, Side.WITHIN, False, False),
    ],
)
def test_a_bound_is_compared_with_the_interval(recorded, most, side, beyond, undecided):
    found = load.findings(made(recorded, 2.0, most=most))
    for one in found.impacts:
        assert one.factors[Statistic.MEAN].side is side
        assert one.factors[Statistic.MEDIAN].side is None
        assert one.factors[Statistic.TAIL].side is None
    assert found.beyond is beyond
    assert found.undecided is undecided


def test_the_99th_percentile_has_a_bound_of_its_own(recorded):
    assert load.findings(made(recorded, 2.0, most_99th=1.5)).beyond
    few = load.findings(made(recorded, 2.0, count=99, most_99th=5.0))
    tail = few.impacts[0].factors[Statistic.TAIL]
    assert tail.value is None
    assert tail.why == "a launch has 99 repetitions, and a 99th percentile takes 100"
    assert not few.beyond
    assert few.undecided


def test_a_percentile_that_so_few_times_cannot_have_is_not_known():
    assert nearest_rank(range(1, 100), 99) is None
    assert nearest_rank(range(1, 101), 99) == 99
    assert nearest_rank(range(1, 201), 99) == 198


def test_a_round_that_is_refused_does_not_count_and_says_why(recorded):
    first = next(run for run in recorded.runs if run.turn.beside)
    silent = dataclasses.replace(
        first, aggression=dataclasses.replace(first.aggression, why="it ended before the victim")
    )
    runs = tuple(silent if run is first else run for run in recorded.runs)
    found = load.findings(dataclasses.replace(recorded, runs=runs))
    one = of(found, first.turn.place)
    assert one.rounds == 2
    assert one.refused == (
        f"round {first.turn.round}: {first.turn.aggressor_step}: it ended before the victim",
    )
    assert one.factors[Statistic.MEAN].why == "2 rounds count, and it takes 3"
    # Without enough rounds nothing is said, whether there is a bound or not.
    assert found.undecided


def test_a_round_of_which_one_launch_is_missing_does_not_count(recorded):
    found = load.findings(dataclasses.replace(recorded, runs=recorded.runs[1:]))
    assert [why for one in found.impacts for why in one.refused] == [
        "round 1: one of its two launches is not there"
    ]


def test_how_long_something_waited_for_a_cpu_stands_alongside(recorded):
    alone, alongside = of(load.findings(recorded), VictimPlace.ACROSS).waited
    assert 0.5 < alone <= alongside <= 1
    unknown = tuple(
        dataclasses.replace(run, launch=dataclasses.replace(run.launch, loads=()))
        for run in recorded.runs
    )
    assert load.findings(dataclasses.replace(recorded, runs=unknown)).impacts[0].waited is None
