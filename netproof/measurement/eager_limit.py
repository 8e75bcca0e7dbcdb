"""The step at which an MPI library changes from eager to rendezvous messages."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from statistics import median

from netproof.measurement.curve import Curve
from netproof.measurement.landmark_table import KIB, latency_us

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
    sizes, times = curve.sizes, curve.time_us
    above = below + 1
    if not EAGER_FROM <= sizes[below] <= EAGER_TO:
        return None
    before = _far_sizes(sizes, below, larger=False)
    after = _far_sizes(sizes, above, larger=True)
    if not before or not after:
        return None
    slope_below = _slope(curve, below, before)
    slope_above = _slope(curve, above, after)
    foot, head = before[-1], after[0]
    before_foot = _far_sizes(sizes, foot, larger=False)
    after_head = _far_sizes(sizes, head, larger=True)
    if not before_foot or not after_head:
        return None
    added = sizes[above] - sizes[below]
    foreseen = times[foot] + _slope(curve, foot, before_foot) * (sizes[above] - sizes[foot])
    hindsight = times[head] - _slope(curve, head, after_head) * (sizes[head] - sizes[below])
    step = min(
        times[above] - times[below] - max(slope_below, slope_above) * added,
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
