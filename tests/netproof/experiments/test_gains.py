"""Gains of a setting's values, compared with the paired default."""

from __future__ import annotations

import numpy as np
import pytest

from netproof.errors import NetproofError
from netproof.experiments.gains import Made, MessageRange, range_of, tuned
from netproof.experiments.sweep import turns
from netproof.measurement.curve import Curve

SIZES = tuple(2**power for power in range(18))
TIMES = tuple(25.0 + size / 110 for size in SIZES)
VALUES = ("16384", "65536", "131072", "1048576")


def made(
    faster: dict[str, dict[MessageRange, float]] | None = None,
    *,
    seed: int = 1,
    rounds: int = 5,
    noise: float = 0.03,
    drift: float = 0.0,
    values: tuple[str, ...] = VALUES,
) -> list[Made]:
    """A sweep in which some values are faster, each launch scatters, and the machine slows down."""
    random = np.random.default_rng(seed)
    several = turns(values, rounds, seed)
    found = []
    for order, turn in enumerate(several, 1):
        pace = (1 + drift * order / len(several)) * np.exp(noise * random.standard_normal())
        gains = (faster or {}).get(turn.value or "", {})
        times = tuple(
            pace
            * time
            * np.exp(noise / 3 * random.standard_normal())
            / gains.get(range_of(size, SIZES[-1]), 1.0)
            for size, time in zip(SIZES, TIMES, strict=True)
        )
        found.append(Made(turn.value, turn.round, order, Curve(SIZES, times)))
    return found


def test_the_value_that_is_faster_is_recommended_with_what_it_gains_and_costs():
    found = tuned(made({"131072": {MessageRange.LONG: 1.3, MessageRange.SHORT: 0.8}}, noise=0.02))
    best = found.best
    assert (best.winner, best.at) == ("131072", MessageRange.LONG)
    assert best.gain.factor == pytest.approx(1.3, rel=0.1)
    low, high = best.gain.interval
    assert low < 1.3 < high
    gains = found.gains_of("131072")
    assert [kind for kind, gain in gains.items() if gain.costs] == [MessageRange.SHORT]
    assert best.as_good == {}


def test_what_a_few_sizes_of_a_range_lose_is_not_called_no_change():
    launches = [
        Made(
            one.value,
            one.round,
            one.order,
            Curve(
                SIZES,
                tuple(
                    time * (2 if one.value == "16384" and 1024 <= size <= 4096 else 1)
                    for size, time in zip(SIZES, one.curve.time_us, strict=True)
                ),
            ),
        )
        for one in made(noise=0.01)
    ]
    medium = tuned(launches).gains_of("16384")[MessageRange.MEDIUM]
    # 3 of the 7 sizes between 65 and 16383 bytes take twice as long.
    assert medium.factor == pytest.approx(0.5 ** (3 / 7), rel=0.05)
    assert medium.costs


def test_what_is_as_good_is_named_with_how_far_it_may_be_behind():
    gains = {"131072": {MessageRange.LONG: 1.3}, "65536": {MessageRange.LONG: 1.3}}
    best = tuned(made(gains, noise=0.02)).best
    (other,) = best.as_good
    assert {best.winner, other} == set(gains)
    assert 0 <= best.as_good[other] < 0.1


@pytest.mark.slow
def test_of_a_setting_that_changes_nothing_nothing_is_recommended():
    found = [tuned(made(seed=seed)).best for seed in range(200)]
    # One in twenty may be; four standard errors of so many.
    assert sum(one is not None for one in found) <= 200 * 0.05 + 4 * (200 * 0.05 * 0.95) ** 0.5


@pytest.mark.slow
def test_a_planted_best_is_recommended_in_nine_of_ten():
    right = 0
    for seed in range(100):
        best = tuned(made({"65536": {MessageRange.LONG: 1.25}}, seed=seed)).best
        right += best is not None and best.winner == "65536"
    assert right >= 90


def test_a_machine_that_slows_down_meanwhile_changes_nothing_of_it():
    said = tuned(made({"65536": {MessageRange.LONG: 1.25}}, drift=1.0, noise=0.01))
    assert said.drift > 1.5
    assert said.best.winner == "65536"
    assert said.best.gain.factor == pytest.approx(1.25, rel=0.1)
    assert tuned(made(drift=1.0, noise=0.01)).best is None


def test_disturbed_launches_and_those_alongside_them_are_left_out():
    launches = made({"65536": {MessageRange.LONG: 1.25}}, noise=0.01)
    (first,) = [one for one in launches if one.value == "65536" and one.round == 1]
    slow = Curve(SIZES, tuple(9 * time for time in first.curve.time_us))
    changed = [
        Made(one.value, one.round, one.order, slow, undisturbed=False) if one is first else one
        for one in launches
    ]
    said = tuned(changed)
    assert (said.best.winner, said.disturbed) == ("65536", 1)
    noisy = [
        Made(one.value, one.round, one.order, one.curve, undisturbed=one.round > 3)
        for one in launches
    ]
    with pytest.raises(NetproofError, match="has 2 rounds that nothing disturbed"):
        tuned(noisy)


def test_values_stand_in_the_order_of_their_size_whatever_order_they_were_launched_in():
    said = tuned(made(values=("inf", "65536", "131072", "auto", "8192")))
    assert list(said.values) == ["8192", "65536", "131072", "auto", "inf"]


def test_ranges_are_short_medium_and_long():
    found = [range_of(size, 131072) for size in (1, 64, 65, 16383, 16384, 131072)]
    assert found == [
        *(MessageRange.SHORT, MessageRange.SHORT),
        *(MessageRange.MEDIUM, MessageRange.MEDIUM),
        *(MessageRange.LONG, MessageRange.LONG),
    ]


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (lambda all_: [one for one in all_ if one.round < 3], "2 of at least 3 rounds"),
        (lambda all_: [one for one in all_ if one.value is None], "no value was measured"),
        (lambda all_: [one for one in all_ if one.value], "between two launches of the default"),
        (
            lambda all_: [
                *all_[:1],
                Made(
                    *(getattr(all_[1], name) for name in ("value", "round", "order")),
                    Curve(SIZES, (0.0, *TIMES[1:])),
                ),
                *all_[2:],
            ],
            "is no reading",
        ),
        (
            lambda all_: [*all_[:1], Made(all_[1].value, 1, 2, Curve((1,), (1.0,))), *all_[2:]],
            "different sizes",
        ),
    ],
)
def test_what_tells_nothing_is_refused(broken, said):
    with pytest.raises(NetproofError, match=said):
        tuned(broken(made()))
