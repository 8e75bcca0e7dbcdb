"""A link under test compared with its healthy twin: a link of the same kind and minute.

An emulated link is as fast as its machine allows at that moment, and a bound on its share of the
line rate would judge the machine. A site may name a command that measures a healthy link of the
same kind, with which each launch of two nodes is paired: a slowdown of both cancels.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from netproof.measurement import interval
from netproof.measurement.case import Curve
from netproof.measurement.interval import Interval

NAMES = ("paired_mb_s", "paired_share")
"""Landmarks from the twin."""

VARIABLES = {
    "paired_latency": "latency_us",
    "paired_peak": "peak_mb_s",
    **{f"paired_rate_{kib}_kib": f"rate_{kib}_kib_mb_s" for kib in (1, 4, 16, 64)},
}
"""Performance variables from the twin: the case's landmark over the twin's, launch by launch."""

WITHOUT = "no healthy twin of the link was measured alongside it"

SIZES_OVER = 2
"""Rates are compared from the largest size over this on: constant costs are small there."""

HALF_RATE_SEEN = 0.625
"""Share of the line rate that the twin must carry: a link at half rate then reads 80 % of it.

A machine on which a healthy link carries less cannot show that a link is slower.
"""


def alike(alongside: Curve, curve: Curve, messages: float = 1.0) -> Curve:
    """Return the twin's measurement, at a launch's sizes and with its count of bandwidth.

    ``messages``: how many cross the link each way, one after the other, in the launch's time of a
    size; one in the twin's. Where the launch has no bandwidth, the twin has its own; where no size
    is common, all of the twin's stay.
    """
    if curve.sizes == (0,):
        return Curve((0,), alongside.time_us[:1])
    times = {
        size: messages * time for size, time in zip(alongside.sizes, alongside.time_us, strict=True)
    }
    common = tuple(size for size in curve.sizes if size in times)
    if not common:
        return alongside
    rates = dict(zip(alongside.sizes, alongside.bandwidth_mb_s or (), strict=False))
    if curve.bandwidth_mb_s is not None:
        # Bytes over time count one message: bidirectional or several messages count more.
        rows = zip(curve.sizes, curve.time_us, curve.bandwidth_mb_s, strict=True)
        rates = {size: rate * time / times[size] for size, time, rate in rows if times.get(size)}
    return Curve(
        common,
        tuple(times[size] for size in common),
        tuple(rates[size] for size in common) if rates.keys() >= set(common) else None,
    )


def top(curve: Curve) -> list[tuple[int, float, float]]:
    """Return the sizes at which rates are compared, in bytes, with time in µs and MB/s."""
    least = curve.sizes[-1] // SIZES_OVER
    rows = zip(curve.sizes, curve.time_us, curve.bandwidth_mb_s or (), strict=True)
    return [(size, time, rate) for size, time, rate in rows if size >= least]


def compared(
    launches: Sequence[tuple[Curve, Curve | None]],
) -> dict[str, tuple[float, Interval | None]] | None:
    """Return the landmarks of ``NAMES``, each with its 95 % interval, None for one launch.

    ``launches``: of a case, each a curve paired with that of the twin. ``paired_mb_s``: bandwidth
    of the twin, counted as the case's; ``paired_share``: what the link under test carries of it.
    The median over the twin's largest sizes counts, so that one disturbed size does not. None
    unless every launch has a twin with bandwidths at sizes of the launch.
    """
    shares, rates = [], []
    for curve, alongside in launches:
        if alongside is None or alongside.bandwidth_mb_s is None or not min(alongside.time_us):
            return None
        times = dict(zip(curve.sizes, curve.time_us, strict=True))
        if any(not times.get(size) for size in alongside.sizes):
            return None
        largest = top(alongside)
        shares.append(median([time / times[size] for size, time, _ in largest]))
        rates.append(median([rate for _, _, rate in largest]))
    if not shares:
        return None
    found = zip(NAMES, (rates, shares), strict=True)
    return {name: (median(several), interval.of_median(several)) for name, several in found}
