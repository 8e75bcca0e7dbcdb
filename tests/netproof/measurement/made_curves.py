"""Curves of links with known figures, and recorded ones."""

from __future__ import annotations

from netproof.measurement.case import Curve

POWERS = tuple(2**n for n in range(23))


def curve(sizes, times):
    rates = tuple(size / time if time else 0.0 for size, time in zip(sizes, times, strict=True))
    return Curve(tuple(sizes), tuple(times), rates)


def link(latency_us=30.0, mb_s=100.0, sizes=POWERS):
    return curve(sizes, [latency_us + size / mb_s for size in sizes])


def line(latency_us=30.0, mb_s=100.0, factor=1.0, sizes=POWERS):
    """A curve on a line, whose benchmark counts so many messages a call."""
    spent = tuple(latency_us + size / mb_s for size in sizes)
    rates = tuple(factor * size / time for size, time in zip(sizes, spent, strict=True))
    return Curve(sizes, spent, rates)
