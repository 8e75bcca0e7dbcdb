"""Several launches of one case: their median curve and their spread."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from netproof.errors import NetproofError
from netproof.measurement.curve import Curve


def median_curve(launches: Sequence[Curve]) -> Curve:
    """Return the curve of a case: at each size the median of each column of the launches.

    ``launches``: at least one curve, all over the same sizes, all with a bandwidth or all without,
    likewise the times of the fastest rank and the mean. Times in µs, bandwidths in MB/s; for an
    even number of launches the two in the middle are averaged. Raise NetproofError with the sizes
    or the launch that differ.
    """
    sizes = _same_sizes(launches)
    return Curve(
        sizes,
        _each_median([curve.time_us for curve in launches]),
        _median_if_there("bandwidth", [curve.bandwidth_mb_s for curve in launches]),
        _median_if_there("time of the fastest rank", [curve.time_min_us for curve in launches]),
        _median_if_there("mean time of the ranks", [curve.time_avg_us for curve in launches]),
    )


def spread(launches: Sequence[Curve]) -> tuple[float, ...]:
    """Return the per-size MAD of the launches' times in µs, in the order of their sizes.

    MAD is the median distance from the median, not scaled towards a standard deviation. One launch
    has a MAD of 0 everywhere, which says nothing about its noise. Raise NetproofError as
    ``median_curve`` does.
    """
    _same_sizes(launches)
    columns = zip(*(curve.time_us for curve in launches), strict=True)
    return tuple(median(abs(time - median(column)) for time in column) for column in columns)


def _median_if_there(
    name: str, columns: Sequence[tuple[float, ...] | None]
) -> tuple[float, ...] | None:
    there = [column for column in columns if column is not None]
    if not there:
        return None
    if len(there) != len(columns):
        raise NetproofError(
            f"launch {columns.index(None) + 1} of {len(columns)} has no {name} while others have"
            " one: launches of one case come from the same benchmark and direction"
        )
    return _each_median(there)


def _each_median(rows: Sequence[Sequence[float]]) -> tuple[float, ...]:
    return tuple(median(column) for column in zip(*rows, strict=True))


def _same_sizes(launches: Sequence[Curve]) -> tuple[int, ...]:
    if not launches:
        raise NetproofError("a case without a launch has no curve")
    first = launches[0].sizes
    for number, curve in enumerate(launches[1:], 2):
        if curve.sizes != first:
            missing = sorted(set(first) - set(curve.sizes))
            extra = sorted(set(curve.sizes) - set(first))
            parts = [
                f"{verb} {', '.join(map(str, some))}"
                for verb, some in (("lacks", missing), ("also has", extra))
                if some
            ]
            raise NetproofError(
                f"launch {number} of {len(launches)} was measured at other sizes than launch 1: "
                f"it {' and '.join(parts)} bytes"
            )
    return first
