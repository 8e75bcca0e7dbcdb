"""What nothing can have moved, launches that are each steady and lie apart, ranges in words."""

from __future__ import annotations

import random

import pytest
from made_cases import along

from netproof.criteria import Level
from netproof.criteria.findings import Bounds, ranges_in_words
from netproof.measurement.curve import Curve

POWERS = tuple(2**exponent for exponent in range(2, 23))


def curve(latency_us: float, rate_mb_s: float, sizes=POWERS) -> Curve:
    return Curve(sizes, tuple(latency_us + size / rate_mb_s for size in sizes))


def test_a_message_that_takes_no_longer_than_one_64_times_smaller_was_not_moved():
    (one,) = along("too fast", curve(2.9, 1e9))
    assert (one.level, one.size) == (Level.FAIL, 4194304)
    assert "too fast to be true" in one.reason


@pytest.mark.parametrize(
    ("latency_us", "rate_mb_s"),
    [
        # NVLink of today and of its next generation, memory of a GPU, a slow start of a copy.
        *[(3, 450_000), (5, 900_000), (2.5, 3_000_000), (12, 450_000)],
        # A socket's memory, a fast network.
        *[(0.5, 200_000), (1.2, 100_000)],
    ],
)
def test_fast_memory_and_links_are_sound(latency_us, rate_mb_s):
    assert along("too fast", curve(latency_us, rate_mb_s)) == ()


def test_a_slow_latency_that_covers_the_rest_is_sound():
    assert along("too fast", curve(400, 1e9)) == ()


def of_factor(factor: float, noise: float, seed: int) -> Curve:
    draw = random.Random(seed)
    return Curve(POWERS, tuple(factor * draw.lognormvariate(0, noise) for _ in POWERS))


def test_steady_launches_that_lie_apart_are_named():
    launches = [of_factor(factor, 0.02, seed) for seed, factor in enumerate((1.3, 1.7, 2.2))]
    (one,) = along("apart", launches, settings=Bounds(1.25))
    assert one.value == pytest.approx(2.2 / 1.3, rel=0.05)
    assert "3 launches lie" in one.reason


@pytest.mark.parametrize(
    ("factors", "noise"), [((1, 1.1), 0.01), ((1, 1.3), 0.2), ((1,), 0.01), ((1, 1, 1), 0.5)]
)
def test_noise_and_small_distances_are_not(factors, noise):
    launches = [of_factor(factor, noise, seed) for seed, factor in enumerate(factors)]
    assert along("apart", launches, settings=Bounds(1.25)) == ()


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ([64], "64 bytes"),
        ([64, 128], "64 and 128 bytes"),
        ([64, 128, 256], "64 to 256 bytes"),
        ([8192, 32768, 131072], "8192, 32768 and 131072 bytes"),
        ([4, 8, 16, 64], "4 to 16 and 64 bytes"),
    ],
)
def test_neighbours_are_a_range(sizes, words):
    assert ranges_in_words(sizes, POWERS) == words
