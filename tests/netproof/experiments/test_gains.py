"""Gains of a sweep's values, compared with the paired default: by ranges of sizes, and by size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import hypothesis
import numpy as np
import pytest

from netproof.errors import NetproofError
from netproof.experiments.sweep import (
    Made,
    MessageRange,
    tuned,
    turns,
)
from netproof.measurement.case import Curve

SIZES = tuple(2**power for power in range(18))
VALUES = ("16384", "65536", "131072", "1048576")
LONG = 16384
"""Bytes from which on messages are long."""

SEEDS = 5 * hypothesis.settings.default.max_examples
"""Sweeps that are drawn: five times as many with `ci/test --all`."""
MOST = SEEDS * 0.05 + 4 * (SEEDS * 0.05 * 0.95) ** 0.5
"""One in twenty may name a value by chance; four standard errors of so many."""

Faster = dict[str, Callable[[int], float]]


def long(gain: float, others: float = 1.0) -> Callable[[int], float]:
    return lambda size: gain if size >= LONG else others


def made(
    faster: Faster | None = None,
    *,
    seed: int = 1,
    noise: float = 0.02,
    own: float | None = None,
    wild: float = 1.0,
    drift: float = 0.0,
    values: tuple[str, ...] = VALUES,
    sizes: tuple[int, ...] = SIZES,
) -> list[Made]:
    """A sweep in which some values are faster, launches scatter, and the machine slows down.

    ``noise``: of a launch; ``own``: of each size, a third of it by default; ``wild``: how many
    times as much the last value scatters.
    """
    random = np.random.default_rng(seed)
    several = turns(values, 5, seed)
    found = []
    for order, turn in enumerate(several, 1):
        much = wild if turn.value == values[-1] else 1.0
        pace = (1 + drift * order / len(several)) * np.exp(noise * much * random.standard_normal())
        scatter = noise / 3 if own is None else own
        gain = (faster or {}).get(turn.value or "", lambda size: 1.0)
        each = np.exp(scatter * much * random.standard_normal(len(sizes)))
        times = pace * (25 + np.array(sizes) / 110) * each / [gain(size) for size in sizes]
        found.append(Made(turn.value, turn.round, Curve(sizes, tuple(times))))
    return found


def times_changed(one: Made, factor: Callable[[int], float]) -> Made:
    times = tuple(factor(size) * time for size, time in zip(SIZES, one.curve.time_us, strict=True))
    return replace(one, curve=Curve(SIZES, times))


def test_what_a_few_sizes_of_a_range_lose_is_not_called_no_change():
    launches = [
        times_changed(
            one, lambda size, one=one: 2 if one.value == "16384" and 1024 <= size <= 4096 else 1
        )
        for one in made(noise=0.01)
    ]
    medium = tuned(launches).gains_of("16384")[MessageRange.MEDIUM]
    # 3 of the 7 sizes between 65 and 16383 bytes take twice as long.
    assert medium.factor == pytest.approx(0.5 ** (3 / 7), rel=0.05)
    assert medium.costs


@pytest.mark.parametrize("by_size", [False, True])
def test_what_is_as_good_is_named_with_how_far_it_may_be_behind(by_size):
    best = tuned(made({"131072": long(1.6), "65536": long(1.6)}), by_size=by_size).best
    (other,) = best.as_good
    assert best.gain.interval[0] < 1.6 < best.gain.interval[1]
    assert {best.winner, other} == {"131072", "65536"}
    assert 0 <= best.as_good[other] < 0.2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "noise", "own", "wild"),
    [
        (VALUES, 0.03, None, 1.0),
        (VALUES[:1], 0.1, 0.0, 1.0),
        (VALUES[:3], 0.1, 0.1, 1.0),
        (VALUES[:1], 0.1, 0.1, 4.0),
        (VALUES[:3], 0.1, 0.0, 4.0),
    ],
)
def test_what_changes_nothing_hardly_ever_has_a_winner(values, noise, own, wild):
    """By ranges, and by sizes: these scatter by themselves, launches as a whole, or one value."""
    tables = [
        tuned(
            made(seed=seed, noise=noise, own=own, wild=wild, values=values),
            by_size=own is not None,
        )
        for seed in range(SEEDS)
    ]
    assert sum(table.best is not None for table in tables) <= MOST


@pytest.mark.slow
def test_a_planted_best_is_recommended_in_nine_of_ten():
    right = 0
    for seed in range(100):
        best = tuned(made({"65536": long(1.25)}, seed=seed, noise=0.03)).best
        right += best is not None and best.winner == "65536"
    assert right >= 90


def test_disturbed_launches_and_those_alongside_them_are_left_out():
    launches = made({"65536": long(1.25)}, noise=0.01)
    (first,) = [one for one in launches if one.value == "65536" and one.round == 1]
    slow = replace(times_changed(first, lambda size: 9), undisturbed=False)
    found = tuned([slow if one is first else one for one in launches])
    assert (found.best.winner, found.disturbed) == ("65536", 1)
    noisy = [replace(one, undisturbed=one.round > 3) for one in launches]
    with pytest.raises(NetproofError, match="has 2 rounds that nothing disturbed"):
        tuned(noisy)
    # Of a table by sizes the value is left out, and the others stay.
    some = [
        one if one.value == "131072" else kept for one, kept in zip(noisy, launches, strict=True)
    ]
    table = tuned(some, by_size=True)
    assert table.values == ("16384", "65536", "1048576")
    assert (table.disturbed_values, table.disturbed) == ({"131072": 2}, 3)
    with pytest.raises(NetproofError, match="no value has more than 2 rounds"):
        tuned(noisy, by_size=True)


def test_where_all_are_slower_or_the_same_for_sure_it_is_said():
    slower = tuned(made({value: lambda size: 0.5 for value in VALUES}), by_size=True)
    assert all(row.costly and row.winner is None for row in slower.rows)
    assert all(row.none for row in tuned(made(noise=0.0001), by_size=True).rows)


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (lambda all_: [one for one in all_ if one.round < 3], "2 of at least 3 rounds"),
        (lambda all_: [one for one in all_ if one.value is None], "no value was measured"),
        (lambda all_: [one for one in all_ if one.value], "between two launches of the default"),
        (
            lambda all_: [all_[0], times_changed(all_[1], lambda size: size > 1), *all_[2:]],
            "is no reading",
        ),
        (
            lambda all_: [*all_[:1], Made(all_[1].value, 1, Curve((1,), (1.0,))), *all_[2:]],
            "different sizes",
        ),
    ],
)
def test_what_is_no_sweep_is_refused(broken, said):
    with pytest.raises(NetproofError, match=said):
        tuned(broken(made()))
