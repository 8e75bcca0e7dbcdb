"""Several launches of one case: their median curve and their spread."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from netproof.errors import NetproofError
from netproof.measurement.curve import Curve

_OPTIONAL = {
    "bandwidth_mb_s": "bandwidth",
    "time_min_us": "time of the fastest rank",
    "time_avg_us": "mean time of the ranks",
}
"""Columns that some benchmarks have, and their names."""


def median_curve(launches: Sequence[Curve]) -> Curve:
    """Return the curve of a case: at each size the median of each column of the launches.

    ``launches``: at least one curve, all over the same sizes, all with a bandwidth or all without,
    likewise the times of the fastest rank and the mean. Times in µs, bandwidths in MB/s; for an
    even number of launches the two in the middle are averaged. Raise NetproofError with the sizes
    or the launch that differ.
    """
    sizes = insist_alike(launches)
    if len(launches) == 1:
        return launches[0]
    columns = ("time_us", *_OPTIONAL)
    return Curve(
        sizes, *(_medians([getattr(curve, name) for curve in launches]) for name in columns)
    )


def spread(launches: Sequence[Curve]) -> tuple[float, ...]:
    """Return the per-size MAD of the launches' times in µs, in the order of their sizes.

    MAD is the median distance from the median, not scaled towards a standard deviation. One launch
    has a MAD of 0 everywhere, which says nothing about its noise. Raise NetproofError as
    ``median_curve`` does.
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
            missing = sorted(set(first.sizes) - set(curve.sizes))
            extra = sorted(set(curve.sizes) - set(first.sizes))
            parts = [
                f"{verb} {', '.join(map(str, some))}"
                for verb, some in (("lacks", missing), ("also has", extra))
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


def _medians(rows: Sequence[Sequence[float] | None]) -> tuple[float, ...] | None:
    """Return the median at each size; None where the curves have no such column."""
    return None if None in rows else tuple(median(column) for column in zip(*rows, strict=True))
