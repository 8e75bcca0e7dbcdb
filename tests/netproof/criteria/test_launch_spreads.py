"""What nothing can have moved, launches that lie apart, ranges and sentences of several sizes."""

from __future__ import annotations

import random
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_cases import along, only

from netproof.criteria import Level
from netproof.criteria.findings import Bounds, Finding, folded, ranges_in_words
from netproof.measurement.case import Curve

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


SIZES = (1, 64, 4096)
launch_spread = partial(only, "launch spread")


def launch(*times: float) -> Curve:
    return Curve(SIZES, times)


def test_the_size_that_lies_furthest_apart_is_named_with_both_times():
    found = launch_spread([launch(1, 10, 100), launch(1, 130, 110)], where="gige mpich")
    assert (found.level, found.size) == (Level.WARN, 64)
    assert found.value == pytest.approx(13)
    assert "at 64 bytes 2 launches took 10 to 130 µs, 13 times apart" in found.why


@given(st.lists(st.floats(1, 1e6), min_size=2, max_size=8), st.floats(0.1, 10))
def test_the_order_of_launches_and_the_unit_do_not_count(times, factor):
    several = [launch(time, time, time) for time in times]
    scaled = [launch(*(factor * time for _ in SIZES)) for time in reversed(times)]
    one, other = (launch_spread(those, where="x").value for those in (several, scaled))
    assert one == pytest.approx(other)
    assert one >= 1


def test_one_launch_has_none_and_what_cannot_be_judged_says_why():
    assert launch_spread(launch(1, 10, 100)) is None
    found = launch_spread([launch(1, 10, 100), launch(1, 0, 100)])
    assert found.level is Level.UNDEFINED
    assert "in launch 2, 0 µs at 64 bytes is no reading" in found.why


def finding(criterion: str, level: Level, size: int | None, value: float, bound: float) -> Finding:
    return Finding(criterion, level, "a", f"{value} at {size}", size, value, bound)


def test_the_one_furthest_from_its_bound_stands_for_all_and_names_their_sizes():
    findings = folded(
        [
            finding("envelope", Level.FAIL, 4, 12.0, 10),
            finding("dropout", Level.WARN, 64, 0.4, 0.5),
            finding("envelope", Level.FAIL, 8, 172.0, 10),
            finding("dropout", Level.WARN, 128, 0.13, 0.5),
            finding("envelope", Level.WARN, 16, 5.0, 4),
        ]
    )
    assert [one.reason for one in findings] == [
        "172.0 at 8. Likewise at 2 sizes in all: 4, 8 bytes",
        "0.13 at 128. Likewise at 2 sizes in all: 64, 128 bytes",
        "5.0 at 16",
    ]
