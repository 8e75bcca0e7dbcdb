"""A curve's times or bandwidths as a criterion reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from netproof.criteria.findings import Bounds
from netproof.measurement.curve import Curve

READABLE = (1e-15, 1e24)
"""Least and largest time in µs or bandwidth in MB/s that enters a ratio."""


@dataclass(frozen=True)
class Points:
    """A curve's times or bandwidths by size, or the fault that keeps it from being judged."""

    at: dict[int, float]
    fault: str | None = None


def times_of(curve: Curve, settings: Bounds, at_least: int = 1) -> Points:
    """Return times in µs; a fault where fewer than ``at_least`` sizes can be judged."""
    return _points(curve.sizes, curve.time_us, "µs", settings, at_least)


def bandwidths_of(curve: Curve, settings: Bounds, at_least: int = 1) -> Points:
    """Return bandwidths in MB/s, as ``times_of``; a fault where the benchmark defines none."""
    if curve.bandwidth_mb_s is None:
        return Points({}, "the benchmark defines no bandwidth")
    return _points(curve.sizes, curve.bandwidth_mb_s, "MB/s", settings, at_least)


def _points(
    sizes: Sequence[int], values: Sequence[float], unit: str, settings: Bounds, at_least: int
) -> Points:
    points = {}
    for size, value in zip(sizes, values, strict=True):
        if size < settings.least_size:
            continue
        if not READABLE[0] <= value <= READABLE[1]:
            return Points({}, f"{value:g} {unit} at {size} bytes is no reading: measure it again")
        points[size] = value
    if len(points) < at_least:
        return Points(
            {},
            f"it has {len(points)} sizes of {settings.least_size} bytes or more, and this takes "
            f"{at_least}",
        )
    return Points(points)
