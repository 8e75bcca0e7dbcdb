"""A case with its configuration, its curve over message sizes, and all conversions of units.

Bytes, µs, MB/s of 10⁶ bytes, Mbit/s of 10⁶ bits; of several launches, the median and spread.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from statistics import median

from netproof.errors import NetproofError

BITS_PER_BYTE = 8
MEBI = 2**20


def bandwidth_mb_s(size_bytes: float, time_us: float) -> float:
    """Return the bandwidth in MB/s (10⁶ bytes/s) of ``size_bytes`` moved in ``time_us`` > 0."""
    return size_bytes / time_us


def mbit_s(bandwidth: float) -> float:
    """Return the Mbit/s (10⁶) of a bandwidth in MB/s (10⁶)."""
    return bandwidth * BITS_PER_BYTE


def mb_s(mbit: float) -> float:
    """Return the MB/s (10⁶) of a rate in Mbit/s (10⁶)."""
    return mbit / BITS_PER_BYTE


def us(seconds: float) -> float:
    """Return the µs of a time in seconds."""
    return seconds * 1e6


def line_rate_share(bandwidth_mb_s: float, line_rate_mb_s: float) -> float:
    """Return a bandwidth over the line rate, both in MB/s, each way.

    Raise NetproofError for a line rate that is not positive and finite.
    """
    if not (math.isfinite(line_rate_mb_s) and line_rate_mb_s > 0):
        raise NetproofError(f"{line_rate_mb_s} MB/s is no line rate: it is above 0")
    return bandwidth_mb_s / line_rate_mb_s


WHAT: dict[str, Callable[[Case], str]] = {}
"""A case's name by benchmark; ``netproof.benchmarks.registry`` fills it."""


@dataclass(frozen=True, order=True)
class Case:
    """One (configuration, benchmark, function, ranks, ranks per node, path, direction).

    ``partition`` is ReFrame's, without the system; ``benchmark`` is the name of one of
    ``netproof.benchmarks``; ``function`` one of its functions, for NetPIPE the protocols ``tcp``
    and ``mpi``; ``path`` is ``inter-node`` or ``intra-node``; ``direction`` is ``oneway`` or
    ``bidirectional`` for NetPIPE, and ``oneway`` where functions define theirs.
    """

    system: str
    partition: str
    environment: str
    benchmark: str
    function: str
    ranks: int
    ranks_per_node: int
    path: str = "inter-node"
    direction: str = "oneway"

    def __str__(self) -> str:
        return f"{self.system}:{self.partition} {self.environment} {self.what()}"

    def what(self) -> str:
        """Return the name of the measurement without configuration: ``IMB Alltoall 16 ranks``.

        Raise NetproofError for an unknown benchmark.
        """
        if self.benchmark not in WHAT:
            raise NetproofError(
                f"{self.benchmark!r} is no benchmark; those are {', '.join(WHAT) or 'not loaded'}"
            )
        return WHAT[self.benchmark](self)

    def key(self) -> tuple[str, str, str, str, str, int, str, str]:
        """Return the key of a case within a session; the partition implies the ranks per node."""
        return (
            self.system,
            self.partition,
            self.environment,
            self.benchmark,
            self.function,
            self.ranks,
            self.path,
            self.direction,
        )


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
        # A third of the memory of a session's curves.
        object.__setattr__(self, "sizes", _sizes(self.sizes))

    def within(self, least: int, most: float = math.inf) -> Curve:
        """Return the curve of these sizes in bytes; NetproofError where it has none of them."""
        here = slice(bisect_left(self.sizes, least), bisect_right(self.sizes, most))
        columns = (self.bandwidth_mb_s, self.time_min_us, self.time_avg_us)
        others = (None if column is None else column[here] for column in columns)
        return Curve(self.sizes[here], self.time_us[here], *others)


@lru_cache(maxsize=1024)
def _sizes(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return sizes, one tuple for all that are equal; NetproofError where they do not increase."""
    for before, after in pairwise(sizes):
        if after <= before:
            raise NetproofError(f"a curve's sizes increase: {after} bytes comes after {before}")
    if sizes[0] < 0:
        raise NetproofError(f"{sizes[0]} is no message size")
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
    times, *others = [() if None in row else tuple(medians(row)) for row in rows]
    return Curve(sizes, times, *(column or None for column in others))


def medians(rows: Sequence[Sequence[float]]) -> list[float]:
    """Return the median of each column; ``statistics`` takes three times as long."""
    half, odd = divmod(len(rows), 2)
    columns = map(sorted, zip(*rows, strict=True))
    if odd:
        return [one[half] for one in columns]
    return [(one[half - 1] + one[half]) / 2 for one in columns]


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
