"""Figures of a curve at its own sizes: latency, peak and rates."""

from __future__ import annotations

from statistics import median

from netproof.measurement.curve import Curve
from netproof.measurement.landmark_table import RATES

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
