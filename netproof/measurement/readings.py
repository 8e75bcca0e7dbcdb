"""Figures of a curve at its own sizes: latency, peak and rates; settings of landmarks."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from netproof.measurement.asymptotic import TOP
from netproof.measurement.curve import Curve
from netproof.measurement.landmark_table import KIB, RATES


@dataclass(frozen=True)
class LandmarkSettings:
    """Settings of landmarks.

    ``latency_below``: messages of 1 byte to below this size make the latency. ``peak_from``: the
    least size in bytes that can be the peak; above 0 only where a link is emulated by a token
    bucket, which lets short messages pass faster than its rate. ``eager_from``, ``eager_to``: sizes
    in bytes between which an eager limit may lie. ``eager_step_latencies``, ``eager_step_share``:
    the least step in time at the limit, as a multiple of the latency and as a share of the time
    below it; both must be reached. ``eager_slope_from``, ``eager_slope_to``: factors in size over
    which slopes are taken. ``asymptotic_top``: the asymptotic bandwidth is that of the sizes from
    the largest over this on; ``asymptotic_sizes``: the fewest of them; ``asymptotic_bend``: the
    share of the slope by which it may differ between the lower and the upper half of them;
    ``asymptotic_rounding``: the share by which bandwidth · time / size may differ between them, as
    benchmarks print few digits.
    """

    latency_below: int = 64
    peak_from: int = 0
    eager_from: int = 512
    eager_to: int = 1024 * KIB
    eager_step_latencies: float = 1.0
    eager_step_share: float = 0.1
    eager_slope_from: float = 1.4
    eager_slope_to: float = 4.0
    asymptotic_top: float = TOP
    asymptotic_sizes: int = 4
    asymptotic_bend: float = 0.1
    asymptotic_rounding: float = 0.01


SETTINGS = LandmarkSettings()
"""Settings by default."""


def readings(
    curve: Curve, settings: LandmarkSettings, reasons: dict[str, str]
) -> dict[str, float | None]:
    """Return latency, peak and rates by name; missing ones are None, with ``reasons``."""
    peak, peak_size, half_power_size = _peak(curve, settings, reasons)
    return {
        "latency_us": latency_us(curve, settings, reasons),
        "peak_mb_s": peak,
        "peak_size": peak_size,
        "half_power_size": half_power_size,
        **{name: _rate_at(curve, size, name, reasons) for name, size in RATES.items()},
    }


def latency_us(curve: Curve, settings: LandmarkSettings, reasons: dict[str, str]) -> float | None:
    """Return the median time of messages of 1 to 63 bytes; None, with the reason in ``reasons``."""
    times = [
        time
        for size, time in zip(curve.sizes, curve.time_us, strict=True)
        if (1 <= size < settings.latency_below or curve.sizes == (0,)) and time > 0
    ]
    if not times:
        reasons["latency_us"] = (
            f"no time above 0 for a message of 1 to {settings.latency_below - 1} bytes"
        )
        return None
    return median(times)


def _peak(
    curve: Curve, settings: LandmarkSettings, reasons: dict[str, str]
) -> tuple[float | None, int | None, int | None]:
    names = ("peak_mb_s", "peak_size", "half_power_size")
    if curve.bandwidth_mb_s is None:
        reasons |= dict.fromkeys(names, "the benchmark defines no bandwidth")
        return None, None, None
    points = list(zip(curve.sizes, curve.bandwidth_mb_s, strict=True))
    candidates = [(rate, size) for size, rate in points if size >= settings.peak_from]
    if not candidates:
        reason = f"no message of {settings.peak_from} bytes or more was measured"
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
