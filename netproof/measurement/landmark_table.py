"""The landmarks of a curve as one table, and those at its own sizes, with the eager limit."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from itertools import pairwise
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
    of_peak = ("peak_mb_s", "peak_size", "half_power_size")
    found: dict[str, float | None] = {"latency_us": latency_us(curve, reasons)}
    found |= dict.fromkeys((*of_peak, *RATES))
    if curve.bandwidth_mb_s is None:
        reasons |= dict.fromkeys((*of_peak, *RATES), "the benchmark defines no bandwidth")
        return found
    rates = dict(zip(curve.sizes, curve.bandwidth_mb_s, strict=True))
    candidates = {size: rate for size, rate in rates.items() if size >= peak_from}
    if not candidates:
        reasons |= dict.fromkeys(of_peak, f"no message of {peak_from} bytes or more was measured")
    elif not any(candidates.values()):
        reasons |= dict.fromkeys(of_peak, "the bandwidth is 0 at every size")
    else:
        # The least of several sizes with the same rate.
        peak_size = max(candidates, key=candidates.__getitem__)
        peak = candidates[peak_size]
        half = next(size for size, rate in rates.items() if rate >= peak / 2)
        found |= zip(of_peak, (peak, peak_size, half), strict=True)
    for name, size in RATES.items():
        found[name] = rates.get(size)
        if size not in rates:
            reasons[name] = f"{size} bytes was not measured"
    return found


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


EAGER_FROM, EAGER_TO = 512, 1024 * KIB
"""Sizes in bytes between which an eager limit may lie."""

STEP_LATENCIES, STEP_SHARE = 1.0, 0.1
"""Least step in time, as a multiple of the latency and as a share of the time below it."""

SLOPE_FROM, SLOPE_TO = 1.4, 4.0
"""Factors in size over which slopes are taken."""


@dataclass(frozen=True)
class EagerLimit:
    """The step at which an MPI library changes from eager to rendezvous messages.

    ``size_below`` is the largest size in bytes sent eagerly, ``size_above`` the next one measured;
    times in µs, rates in MB/s (None where the curve has none); ``step_us`` is the time that the
    change costs beyond what the larger message explains.
    """

    size_below: int
    time_below_us: float
    rate_below_mb_s: float | None
    size_above: int
    time_above_us: float
    rate_above_mb_s: float | None
    step_us: float


def eager_limit(curve: Curve) -> EagerLimit | None:
    """Return the curve's change from eager to rendezvous messages, or None.

    A rendezvous asks before it sends: one round trip more, once, whatever the size. The limit is
    the step between neighbouring sizes whose time exceeds the cost of the added bytes most: by at
    least one latency (half the round trip) and a tenth of the time below. At least half of a step
    must remain between all smaller and all larger messages. The excess is the least of three: of
    the step itself, of the size above over the line through the sizes below, and of the upper line
    over the size below. A line's slope is the median over sizes a factor 1.4 to 4 away, at least 0.
    """
    latency = latency_us(curve, {})
    if latency is None:
        return None
    found, largest = None, 0.0
    for below, (time, above) in enumerate(pairwise(curve.time_us)):
        least = max(STEP_LATENCIES * latency, STEP_SHARE * time)
        # A step is never more than the difference of the times.
        if above - time < least or above - time <= largest:
            continue
        limit = _step(curve, below)
        if limit is not None and limit.step_us >= least and limit.step_us > largest:
            found, largest = limit, limit.step_us
    return found


def eager_limit_alongside(curve: Curve, other: Curve) -> EagerLimit | None:
    """Return where ``curve`` begins to ask first, compared with a curve of another limit, or None.

    In the difference of the two all other steps of a curve cancel. The limit is its largest lasting
    step: its medians over sizes up to four times as small and as large differ by at least a step of
    ``eager_limit``. Common sizes count, without those where one curve asks already: over UCX,
    messages of 64 KiB and more cost one more step.
    """
    latency = latency_us(other, {})
    if latency is None:
        return None
    times, others = (dict(zip(one.sizes, one.time_us, strict=True)) for one in (curve, other))
    sizes = [size for size in curve.sizes if size in others]
    more = {size: times[size] - others[size] for size in sizes}
    found, largest = None, 0.0
    for small, large in pairwise(sizes):
        if not EAGER_FROM <= small <= EAGER_TO:
            continue
        span = SLOPE_TO
        under = [more[size] for size in sizes if small / span <= size <= small]
        over = [more[size] for size in sizes if large <= size <= large * span]
        step = median(over) - median(under)
        least = max(STEP_LATENCIES * latency, STEP_SHARE * times[small])
        # A gradual increase is no limit.
        jump = more[large] - more[small]
        if step < least or jump < step / 2 or jump <= largest or median(under) < -least / 2:
            continue
        # Below its limit both send at once: a curve that asks there already asks otherwise from
        # here.
        if median(under) > step / 2:
            continue
        largest = jump
        found = _limit(curve, curve.sizes.index(small), curve.sizes.index(large), step)
    return found


def _step(curve: Curve, below: int) -> EagerLimit | None:
    sizes, times, above = curve.sizes, curve.time_us, below + 1
    before, after = _far_sizes(sizes, below, larger=False), _far_sizes(sizes, above, larger=True)
    if not (EAGER_FROM <= sizes[below] <= EAGER_TO and before and after):
        return None
    foot, head = before[-1], after[0]
    before_foot = _far_sizes(sizes, foot, larger=False)
    after_head = _far_sizes(sizes, head, larger=True)
    if not before_foot or not after_head:
        return None
    added = sizes[above] - sizes[below]
    foreseen = times[foot] + _slope(curve, foot, before_foot) * (sizes[above] - sizes[foot])
    hindsight = times[head] - _slope(curve, head, after_head) * (sizes[head] - sizes[below])
    step = min(
        times[above]
        - times[below]
        - max(_slope(curve, below, before), _slope(curve, above, after)) * added,
        times[above] - foreseen,
        hindsight - times[below],
    )
    is_dip = max(times[:below]) > times[below] + step / 2
    is_spike = min(times[above:]) < times[above] - step / 2
    if step <= 0 or is_dip or is_spike:
        return None
    return _limit(curve, below, above, step)


def _limit(curve: Curve, below: int, above: int, step_us: float) -> EagerLimit:
    rates = curve.bandwidth_mb_s
    (size, time, rate), (larger, later, above_rate) = (
        (curve.sizes[at], curve.time_us[at], None if rates is None else rates[at])
        for at in (below, above)
    )
    return EagerLimit(size, time, rate, larger, later, above_rate, step_us)


@cache
def _far_sizes(sizes: tuple[int, ...], index: int, *, larger: bool) -> list[int]:
    """Return the indices of the sizes far enough from one for a slope, and near enough."""
    size = sizes[index]
    span = range(index + 1, len(sizes)) if larger else range(index)
    return [
        other
        for other in span
        if sizes[other] > 0
        and SLOPE_FROM <= max(sizes[other] / size, size / sizes[other]) <= SLOPE_TO
    ]


def _slope(curve: Curve, index: int, others: list[int]) -> float:
    """Return the median slope in µs per byte between one size and others, at least 0."""
    size, time = curve.sizes[index], curve.time_us[index]
    slopes = [(curve.time_us[i] - time) / (curve.sizes[i] - size) for i in others]
    return max(median(slopes), 0.0)
