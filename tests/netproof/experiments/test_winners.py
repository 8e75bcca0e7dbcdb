"""Which value wins at each message size, and when nobody is said to."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from netproof.errors import NetproofError
from netproof.experiments.gains import Made, winners
from netproof.experiments.sweep import turns
from netproof.measurement.curve import Curve

SIZES = tuple(2**power for power in range(2, 20))
VALUES = ("recursive_doubling", "ring", "tree")


def made(faster=None, *, seed=1, rounds=5, noise=0.02, drift=0.0) -> list[Made]:
    """A sweep whose launches scatter as a whole and at each size; ``faster``: factor by value."""
    random = np.random.default_rng(seed)
    several = turns(VALUES, rounds, seed)
    found = []
    for order, turn in enumerate(several, 1):
        pace = (1 + drift * order / len(several)) * np.exp(noise * random.standard_normal())
        gain = (faster or {}).get(turn.value, lambda size: 1.0)
        times = tuple(
            pace * (50 + size / 100) * np.exp(noise * random.standard_normal()) / gain(size)
            for size in SIZES
        )
        found.append(Made(turn.value, turn.round, order, Curve(SIZES, times)))
    return found


RING = {"ring": lambda size: 1.6 if size >= 65536 else 0.5}


def test_the_winner_is_told_at_the_sizes_where_it_wins():
    table = winners(made(RING))
    won = {row.at: row.winner for row in table.rows}
    assert {size for size, winner in won.items() if winner} == {s for s in SIZES if s >= 65536}
    assert set(won.values()) == {None, "ring"}
    (row,) = [row for row in table.rows if row.at == 65536]
    low, high = row.gain.interval
    assert low < 1.6 < high
    assert row.as_good == {}
    assert not row.none
    assert not row.costly


def test_a_machine_that_slows_down_makes_no_winner_and_hides_none():
    table = winners(made(RING, drift=1.0))
    assert table.drift > 1.5
    assert [row.winner for row in table.rows if row.at >= 65536] == ["ring"] * 4
    assert not any(row.winner for row in table.rows if row.at < 65536)


def test_what_cannot_be_told_apart_from_the_winner_is_named():
    faster = {"ring": lambda size: 1.6, "tree": lambda size: 1.6}
    row = winners(made(faster)).rows[0]
    (other,) = row.as_good
    assert {row.winner, other} == {"ring", "tree"}
    assert 0 <= row.as_good[other] < 0.2


@pytest.mark.slow
@pytest.mark.parametrize("values", [VALUES[:1], VALUES[:2], VALUES])
@pytest.mark.parametrize("own", [0.0, 0.1])
@pytest.mark.parametrize("wild", [1.0, 4.0])
def test_of_algorithms_that_change_nothing_hardly_any_table_has_a_winner(values, own, wild):
    """Whether sizes scatter by themselves or launches as a whole, or one value more."""
    tables = [winners(still(values, seed, own, wild)) for seed in range(200)]
    named = sum(any(row.winner for row in table.rows) for table in tables)
    # One in twenty may; four standard errors of so many.
    assert named <= 200 * 0.05 + 4 * (200 * 0.05 * 0.95) ** 0.5


def still(values, seed: int, own: float, wild: float) -> list[Made]:
    """A sweep that changes nothing; ``own``: scatter of a size, ``wild``: of the last value."""
    random = np.random.default_rng(seed)
    found = []
    for order, turn in enumerate(turns(values, 5, seed), 1):
        much = wild if turn.value == values[-1] else 1.0
        pace = np.exp(0.1 * much * random.standard_normal())
        scatter = np.exp(own * much * random.standard_normal(len(SIZES)))
        times = tuple(pace * (50 + np.array(SIZES) / 100) * scatter)
        found.append(Made(turn.value, turn.round, order, Curve(SIZES, times)))
    return found


def test_where_all_are_slower_for_sure_it_is_the_librarys_own():
    table = winners(made({value: lambda size: 0.5 for value in VALUES}))
    assert all(row.costly and row.winner is None for row in table.rows)


def test_where_all_are_the_same_for_sure_it_is_said():
    assert all(row.none for row in winners(made(noise=0.0001)).rows)


def test_a_value_whose_launches_were_disturbed_is_left_out_and_the_others_stay():
    launches = [
        dataclasses.replace(one, undisturbed=one.value != "tree" or one.round > 3)
        for one in made(RING)
    ]
    table = winners(launches)
    assert table.values == ("recursive_doubling", "ring")
    assert table.disturbed_values == {"tree": 2}
    assert table.disturbed == 3
    assert table.rows[-1].winner == "ring"


def test_where_everything_was_disturbed_there_is_no_table():
    launches = [dataclasses.replace(one, undisturbed=False) for one in made()]
    with pytest.raises(NetproofError, match="no value has more than 0 rounds"):
        winners(launches)
    with pytest.raises(NetproofError, match="no value was measured"):
        winners([one for one in made() if one.value is None])
