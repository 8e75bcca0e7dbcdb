"""A benchmark's result: times over message sizes; of several launches, their median and spread."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from statistics import median

from netproof.errors import NetproofError


@dataclass(frozen=True, slots=True)
class Curve:
    """Times over message sizes.

    ``sizes``: bytes of one message, strictly increasing, (0,) for Barrier; ``time_us``: one-way or
    per-call time in µs, finite and not negative; ``bandwidth_mb_s``: MB/s (10⁶ bytes) at each size,
    or None where the benchmark defines none; ``time_min_us``, ``time_avg_us``: where a time is the
    slowest rank's, the fastest rank's and the mean of all, or None where the benchmark prints
    neither. All of equal length, at least one. Raise NetproofError where these do not hold.
    """

    sizes: tuple[int, ...]
    time_us: tuple[float, ...]
    bandwidth_mb_s: tuple[float, ...] | None = None
    time_min_us: tuple[float, ...] | None = None
    time_avg_us: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if not self.sizes:
            raise NetproofError("a curve needs at least one message size")
        if (self.time_min_us is None) != (self.time_avg_us is None):
            raise NetproofError("a curve has the fastest rank's time and the mean, or neither")
        columns = (self.time_us, self.bandwidth_mb_s, self.time_min_us, self.time_avg_us)
        for column in (one for one in columns if one is not None):
            if len(column) != len(self.sizes):
                raise NetproofError(
                    f"a curve of {len(self.sizes)} sizes cannot hold {len(column)} values"
                )
            if min(column) >= 0 and math.isfinite(sum(column)):
                continue
            for size, value in zip(self.sizes, column, strict=True):
                if not math.isfinite(value) or value < 0:
                    raise NetproofError(f"{value} at {size} bytes is no time or bandwidth")
        for before, after in pairwise(self.sizes):
            if after <= before:
                raise NetproofError(f"a curve's sizes increase: {after} bytes comes after {before}")
        if self.sizes[0] < 0:
            raise NetproofError(f"{self.sizes[0]} is no message size")
        # A third of the memory of a session's curves.
        object.__setattr__(self, "sizes", _same(self.sizes))

    def within(self, least: int, most: float = math.inf) -> Curve:
        """Return the curve of these sizes in bytes; NetproofError where it has none of them."""
        here = slice(bisect_left(self.sizes, least), bisect_right(self.sizes, most))
        columns = (self.bandwidth_mb_s, self.time_min_us, self.time_avg_us)
        others = (None if column is None else column[here] for column in columns)
        return Curve(self.sizes[here], self.time_us[here], *others)


@lru_cache(maxsize=1024)
def _same(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return one tuple for all that are equal."""
    return sizes


_OPTIONAL = {
    "bandwidth_mb_s": "bandwidth",
    "time_min_us": "time of the fastest rank",
    "time_avg_us": "mean time of the ranks",
}
"""Columns that some benchmarks have, and their names."""


def median_curve(launches: Sequence[Curve]) -> Curve:
    """Return the curve of a case: at each size the median of each column of the launches.

    ``launches``: at least one curve, all over the same sizes and with the same columns. Raise
    NetproofError with the sizes or the launch that differ.
    """
    sizes = insist_alike(launches)
    if len(launches) == 1:
        return launches[0]
    rows = ([getattr(curve, name) for curve in launches] for name in ("time_us", *_OPTIONAL))
    columns = (() if None in row else map(median, zip(*row, strict=True)) for row in rows)
    times, *others = map(tuple, columns)
    return Curve(sizes, times, *(column or None for column in others))


def spread(launches: Sequence[Curve]) -> tuple[float, ...]:
    """Return the per-size MAD of the launches' times in µs, not scaled; of one launch 0.

    Raise NetproofError as ``median_curve`` does.
    """
    insist_alike(launches)
    columns = zip(*(curve.time_us for curve in launches), strict=True)
    return tuple(median(abs(time - median(column)) for time in column) for column in columns)


def insist_alike(launches: Sequence[Curve]) -> tuple[int, ...]:
    """Return the sizes of all launches; NetproofError where they or their columns differ."""
    if not launches:
        raise NetproofError("a case without a launch has no curve")
    first = launches[0]
    for number, curve in enumerate(launches[1:], 2):
        if curve.sizes != first.sizes:
            own, usual = set(curve.sizes), set(first.sizes)
            parts = [
                f"{verb} {', '.join(map(str, sorted(some)))}"
                for verb, some in (("lacks", usual - own), ("also has", own - usual))
                if some
            ]
            raise NetproofError(
                f"launch {number} of {len(launches)} was measured at other sizes than launch 1: "
                f"it {' and '.join(parts)} bytes"
            )
    for field, name in _OPTIONAL.items():
        there = [getattr(curve, field) is not None for curve in launches]
        if any(there) and not all(there):
            raise NetproofError(
                f"launch {there.index(False) + 1} of {len(there)} has no {name} while others have"
                " one: launches of one case come from the same benchmark and direction"
            )
    return first.sizes
