"""Declines: a rate that falls and stays down to the largest message."""

from __future__ import annotations

import random

import pytest
from made_cases import along

from netproof.criteria import Level
from netproof.criteria.findings import Bounds
from netproof.measurement.curve import Curve

POWERS = tuple(2**exponent for exponent in range(2, 23))
OF_FILES = {"settings": Bounds(1.25, 10.0), "of_files": 2**20}


def launches(falls: float, from_bytes: int = 2**20, count: int = 1, noise: float = 0.0):
    """Return launches at 1,000 MB/s and 10 µs, ``falls`` times slower for large messages."""
    draw = random.Random(3)
    times = [
        [
            10 + size / 1000 * (falls if size >= from_bytes else 1) * draw.lognormvariate(0, noise)
            for size in POWERS
        ]
        for _ in range(count)
    ]
    return [
        Curve(
            POWERS, tuple(one), tuple(size / time for size, time in zip(POWERS, one, strict=True))
        )
        for one in times
    ]


def found(*args, case=OF_FILES, line_rate_mb_s=None, **kwargs):
    return along("decline", launches(*args, **kwargs), line_rate=line_rate_mb_s, **case)


@pytest.mark.parametrize(("falls", "level"), [(1.7, Level.WARN), (6, Level.WARN), (13, Level.FAIL)])
def test_one_launch_warns_from_half_as_much_again_and_fails_by_an_order(falls, level):
    (one,) = found(falls)
    assert (one.level, one.size, one.others) == (level, 2**20, (2**21, 2**22))
    assert one.compared_sizes == (2**19,)


@pytest.mark.parametrize("falls", [1, 1.3])
def test_a_smaller_decline_of_one_launch_is_none(falls):
    assert found(falls) == ()


def test_launches_confirm_a_smaller_one_by_their_interval():
    (one,) = found(1.5, count=6, noise=0.01)
    assert one.level is Level.WARN
    assert one.interval[0] > 1.25
    assert found(1.5, count=3, noise=0.5) == ()


def test_the_largest_size_alone_is_no_decline():
    assert found(5, from_bytes=2**22) == ()


def test_a_rate_that_recovers_is_none():
    curve = launches(1)[0]
    rates = tuple(
        rate / (8 if size == 2**20 else 1)
        for size, rate in zip(POWERS, curve.bandwidth_mb_s, strict=True)
    )
    times = tuple(size / rate for size, rate in zip(POWERS, rates, strict=True))
    assert along("decline", Curve(POWERS, times, rates), **OF_FILES) == ()


def test_bursts_above_the_line_do_not_count():
    """A shaped link lets some bytes pass at once, and the line then holds."""
    assert found(4)
    assert found(4, line_rate_mb_s=250) == ()


def test_a_run_is_warned_by_launches_only():
    assert found(6, case={}) == ()
    (one,) = found(60, count=4, noise=0.01, case={})
    assert one.level is Level.WARN


def test_a_curve_of_short_messages_shows_no_decline():
    curve = launches(5, from_bytes=2**13)[0]
    short = Curve(POWERS[:15], curve.time_us[:15], curve.bandwidth_mb_s[:15])
    assert short.sizes[-1] == 65536
    assert along("decline", short, **OF_FILES) == ()
