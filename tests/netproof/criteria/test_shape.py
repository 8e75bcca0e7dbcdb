"""Dips, which launches confirm, and declines to the largest message."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from made_cases import along, noisy, only

from netproof.criteria import Level
from netproof.criteria.findings import Below, Bounds, Finding, folded
from netproof.measurement.case import Curve

ROOT = Path(__file__).resolve().parents[3]
POWERS = tuple(2**exponent for exponent in range(2, 21))
NETPIPE = tuple(size + more for size in POWERS[2:] for more in (-3, 0, 3))


def launches(time, sizes: tuple[int, ...] = POWERS, count: int = 3, noise=0.01) -> list[Curve]:
    return noisy(sizes, time, count, noise)


def link(size: int) -> float:
    """A latency of 20 µs and a gigabit per second."""
    return 20 + size / 118


def slower(at: Callable[[int], bool], factor: float) -> Callable[[int], float]:
    return lambda size: link(size) * (factor if at(size) else 1)


def found(*args, **kwargs):
    settings = kwargs.pop("settings", Below(0.9, 0.8))
    return along("dip", launches(*args, **kwargs), "gige mpich", settings)


@pytest.mark.parametrize("size", POWERS[10:-1])
def test_a_dip_at_one_size_is_found_and_named_with_its_neighbours(size):
    (dip,) = found(slower(lambda one: one == size, 1.6))
    assert (dip.level, dip.size, dip.bound) == (Level.FAIL, size, 0.8)
    assert dip.compared_sizes == (size // 2, 2 * size)
    assert dip.value == pytest.approx(1 / 1.6, rel=0.05)
    assert f"at {size} bytes a message took" in dip.why
    (milder,) = found(slower(lambda one: one == size, 1.22))
    assert milder.level is Level.WARN


@pytest.mark.parametrize(
    "time",
    [
        link,
        # A rendezvous, a copy more, the end of a cache, a second rail, a token bucket.
        lambda size: link(size) + (40 if size > 4096 else 0),
        lambda size: link(size) + (400 if size > 16384 else 0),
        lambda size: link(size) * (1.5 if size > 65536 else 1),
        lambda size: link(size) + max(0, size - 65536) / 100,
        lambda size: link(min(size, 65536)) + max(0, size - 65536) / 236,
        lambda size: 20 + max(size / 10000, (size - 32768) / 118),
    ],
)
def test_what_stays_from_a_size_on_is_no_dip(time):
    assert found(time) == ()
    assert found(time, NETPIPE) == ()


def test_a_step_is_no_dip_though_launches_at_two_paces_differ_in_their_middle():
    """NetPIPE over Open MPI 5 inside a node, on a virtual machine whose CPUs move."""
    sizes = (16, 2048, 3072, 4096, 6144, 8192)
    recorded = [
        (0.98, 2.02, 2.58, 6.38, 6.97, 7.48),
        (0.64, 1.03, 1.08, 3.85, 4.43, 7.02),
        (0.78, 1.16, 1.30, 4.30, 4.97, 5.37),
        (0.91, 2.11, 2.70, 5.51, 6.37, 6.75),
        (0.90, 2.09, 2.57, 5.61, 6.71, 6.87),
        (0.61, 1.05, 1.31, 3.54, 4.09, 4.17),
        (0.55, 0.93, 1.06, 4.46, 4.28, 4.66),
    ]
    settings = Below(0.9, 0.8)
    assert along("dip", [Curve(sizes, times) for times in recorded], settings=settings) == ()
    deeper = [(*times[:4], times[3] / 1.5, times[3] / 1.5) for times in recorded]
    (dip,) = along("dip", [Curve(sizes, times) for times in deeper], settings=settings)
    assert (dip.level, dip.size) == (Level.FAIL, 4096)
    took, expected = (float(word) for word in re.findall(r"([\d.]+) µs", dip.why))
    assert took == 4.46
    assert expected / took == pytest.approx(dip.value, rel=0.01)


def test_sizes_that_latency_limits_are_left_out_and_so_is_the_largest():
    for size in (64, 512, POWERS[-1]):
        assert found(slower(lambda one, size=size: one == size, 3)) == ()


def test_what_launches_do_not_confirm_is_not_mentioned_and_a_reading_of_zero_is_undefined():
    dip = slower(lambda one: one == 65536, 2)
    assert found(dip, count=1) == ()
    assert found(dip, noise=0.4) == ()
    one_of_three = launches(link)
    one_of_three[1] = launches(dip)[1]
    assert along("dip", one_of_three) == ()
    (finding,) = along("dip", [Curve((4, 8), (0.0, 1.0))] * 2)
    assert finding.level is Level.UNDEFINED


@pytest.mark.slow
def test_no_recorded_case_of_a_healthy_switch_fails_and_a_planted_dip_does(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "criteria"))
    replay = importlib.import_module("dips")
    cases = replay.recorded().values()
    several = [along("dip", case, settings=bounds) for case, bounds in cases]
    assert len(several) == 43
    assert {dip.level for found in several for dip in found} <= {Level.WARN}
    case, bounds = next(one for one in cases if 131072 in one[0][0].sizes[:-1])
    assert replay.level(case, bounds, 131072, 0.9) is Level.FAIL


LARGE = tuple(2**exponent for exponent in range(2, 23))
OF_FILES = {"settings": Bounds(1.25, 10.0), "of_files": 2**20}


def declining(falls: float, count: int = 1, noise: float = 0.0) -> list[Curve]:
    """Return launches at 1,000 MB/s and 10 µs, ``falls`` times slower for large messages."""

    def time_us(size: int) -> float:
        return 10 + size / 1000 * (falls if size >= 2**20 else 1)

    return noisy(LARGE, time_us, count, noise, seed=3, rates=True)


def declines(*args, case=OF_FILES, line_rate_mb_s=None, **kwargs):
    return along("decline", declining(*args, **kwargs), line_rate=line_rate_mb_s, **case)


@pytest.mark.parametrize(
    ("falls", "level"),
    [(1, None), (1.3, None), (1.7, Level.WARN), (6, Level.WARN), (13, Level.FAIL)],
)
def test_one_launch_warns_from_half_as_much_again_and_fails_by_an_order(falls, level):
    found = declines(falls)
    assert [one.level for one in found] == ([] if level is None else [level])
    assert {(one.size, one.others, one.compared_sizes) for one in found} <= {
        (2**20, (2**21, 2**22), (2**19,))
    }


def test_launches_confirm_a_smaller_one_by_their_interval():
    (one,) = declines(1.5, count=6, noise=0.01)
    assert one.level is Level.WARN
    assert one.interval[0] > 1.25
    assert declines(1.5, count=3, noise=0.5) == ()


def test_a_rate_that_recovers_and_bursts_above_the_line_are_none():
    curve = declining(1)[0]
    rates = tuple(
        rate / (8 if size == 2**20 else 1)
        for size, rate in zip(LARGE, curve.bandwidth_mb_s, strict=True)
    )
    times = tuple(size / rate for size, rate in zip(LARGE, rates, strict=True))
    assert along("decline", Curve(LARGE, times, rates), **OF_FILES) == ()
    # A shaped link lets some bytes pass at once, and the line then holds.
    assert declines(4)
    assert declines(4, line_rate_mb_s=250) == ()


def test_a_run_is_warned_by_launches_only():
    assert declines(6, case={}) == ()
    (one,) = declines(60, count=4, noise=0.01, case={})
    assert one.level is Level.WARN


# What nothing can have moved, launches that lie apart, ranges and sentences of several sizes.

TO_4_MIB = tuple(2**exponent for exponent in range(2, 23))


def linear(latency_us: float, rate_mb_s: float, sizes=TO_4_MIB) -> Curve:
    return Curve(sizes, tuple(latency_us + size / rate_mb_s for size in sizes))


def test_a_message_that_takes_no_longer_than_one_64_times_smaller_was_not_moved():
    (one,) = along("too fast", linear(2.9, 1e9))
    assert (one.level, one.size) == (Level.FAIL, 4194304)
    assert "too fast to be true" in one.reason


@pytest.mark.parametrize(
    ("latency_us", "rate_mb_s"),
    [
        # NVLink of today and of its next generation, memory of a GPU, a slow start of a copy.
        *[(3, 450_000), (5, 900_000), (2.5, 3_000_000), (12, 450_000)],
        # A socket's memory, a fast network, a slow latency that covers the rest.
        *[(0.5, 200_000), (1.2, 100_000), (400, 1e9)],
    ],
)
def test_fast_memory_and_links_are_sound(latency_us, rate_mb_s):
    assert along("too fast", linear(latency_us, rate_mb_s)) == ()


def of_factor(factor: float, noise: float, seed: int) -> Curve:
    return noisy(TO_4_MIB, lambda size: factor, 1, noise, seed)[0]


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


SIZES = (1, 64, 4096)
launch_spread = partial(only, "launch spread")


def launch(*times: float) -> Curve:
    return Curve(SIZES, times)


def test_the_size_that_lies_furthest_apart_is_named_with_both_times():
    found = launch_spread([launch(1, 10, 100), launch(1, 130, 110)], where="gige mpich")
    assert (found.level, found.size) == (Level.WARN, 64)
    assert found.value == pytest.approx(13)
    assert "at 64 bytes 2 launches took 10 to 130 µs, 13 times apart" in found.why


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
