"""The landmarks of a curve as one table, and those that a curve has at its own sizes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from netproof.measurement.curve import Curve

KIB = 1024


class Better(StrEnum):
    """The better end of a landmark."""

    SMALLER = "smaller"
    LARGER = "larger"
    NEITHER = "neither"


@dataclass(frozen=True)
class Landmark:
    """One landmark that is a number.

    ``name``: its key in sessions, stores and references. ``unit``: of its reference, as ReFrame
    prints it; ``%``: stored as a share, 1 being 100 %. ``title``: its name in a sentence.
    ``at_size``: of a rate, its size in bytes; ``whole``: a whole number.
    """

    name: str
    unit: str
    better: Better
    title: str
    at_size: int | None = None
    whole: bool = False

    @property
    def per_cent(self) -> bool:
        """Check whether it is stored as a share, and referred to in per cent."""
        return self.unit == "%"


_RATES = [
    Landmark(f"rate_{kib}_kib_mb_s", "MB/s", Better.LARGER, f"rate at {kib} KiB", at_size=kib * KIB)
    for kib in (1, 4, 16, 64)
]

LANDMARKS = {
    one.name: one
    for one in (
        Landmark("latency_us", "us", Better.SMALLER, "latency"),
        Landmark("peak_mb_s", "MB/s", Better.LARGER, "peak bandwidth"),
        Landmark("peak_size", "B", Better.NEITHER, "size of the peak", whole=True),
        Landmark("half_power_size", "B", Better.NEITHER, "half-power size", whole=True),
        *_RATES,
        Landmark("asymptotic_mb_s", "MB/s", Better.LARGER, "asymptotic bandwidth"),
        Landmark("half_performance_bytes", "B", Better.NEITHER, "half-performance length"),
        Landmark("line_rate_share", "%", Better.LARGER, "share of the line rate"),
        Landmark("paired_mb_s", "MB/s", Better.LARGER, "bandwidth of the twin"),
        Landmark("paired_share", "%", Better.LARGER, "share of the twin"),
    )
}
"""Landmarks by name, in the order of tables; not the eager limit, which has two sides."""

RATES = {name: one.at_size for name, one in LANDMARKS.items() if one.at_size is not None}
"""The size in bytes of each landmark that is a rate at one size."""

LATENCY_BELOW = 64
"""Messages of 1 byte to below this size make the latency."""


def readings(curve: Curve, reasons: dict[str, str], peak_from: int = 0) -> dict[str, float | None]:
    """Return latency, peak and rates by name; missing ones are None, with ``reasons``.

    ``peak_from``: the least size in bytes that can be the peak; above 0 only where a link is
    emulated by a token bucket, which lets short messages pass faster than its rate.
    """
    peak, peak_size, half_power_size = _peak(curve, peak_from, reasons)
    return {
        "latency_us": latency_us(curve, reasons),
        "peak_mb_s": peak,
        "peak_size": peak_size,
        "half_power_size": half_power_size,
        **{name: _rate_at(curve, size, name, reasons) for name, size in RATES.items()},
    }


def latency_us(curve: Curve, reasons: dict[str, str]) -> float | None:
    """Return the median time of messages of 1 to 63 bytes; None, with the reason in ``reasons``."""
    times = [
        time
        for size, time in zip(curve.sizes, curve.time_us, strict=True)
        if (1 <= size < LATENCY_BELOW or curve.sizes == (0,)) and time > 0
    ]
    if not times:
        reasons["latency_us"] = f"no time above 0 for a message of 1 to {LATENCY_BELOW - 1} bytes"
        return None
    return median(times)


def _peak(
    curve: Curve, peak_from: int, reasons: dict[str, str]
) -> tuple[float | None, int | None, int | None]:
    names = ("peak_mb_s", "peak_size", "half_power_size")
    if curve.bandwidth_mb_s is None:
        reasons |= dict.fromkeys(names, "the benchmark defines no bandwidth")
        return None, None, None
    points = list(zip(curve.sizes, curve.bandwidth_mb_s, strict=True))
    candidates = [(rate, size) for size, rate in points if size >= peak_from]
    if not candidates:
        reason = f"no message of {peak_from} bytes or more was measured"
        reasons |= dict.fromkeys(names, reason)
        return None, None, None
    peak, peak_size = max(candidates, key=lambda point: (point[0], -point[1]))
    if peak == 0:
        reasons |= dict.fromkeys(names, "the bandwidth is 0 at every size")
        return None, None, None
    half = next(size for size, rate in points if rate >= peak / 2)
    return peak, peak_size, half


def _rate_at(curve: Curve, size: int, name: str, reasons: dict[str, str]) -> float | None:
    if curve.bandwidth_mb_s is None:
        reasons[name] = "the benchmark defines no bandwidth"
        return None
    if size not in curve.sizes:
        reasons[name] = f"{size} bytes was not measured"
        return None
    return curve.bandwidth_mb_s[curve.sizes.index(size)]
