"""Landmarks of a curve: the few figures of a table of benchmarks, and the eager limit.

From the e325 Opteron NetPIPE report (latency below 64 bytes, largest bandwidth and its size), and
the network-adapter page (rates at 1, 4, 16 and 64 KB). Hockney's asymptotic bandwidth r∞ and
half-performance length n½: t(n) = t₀ + n / r∞ = (n + n½) / r∞ ("The communication challenge for
MPP: Intel Paragon and Meiko CS-2", Parallel Computing 20, 1994). A constant cost, such as latency
or the burst of a token bucket, is part of t₀ and not of r∞.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache, lru_cache
from itertools import combinations, pairwise
from statistics import NormalDist, median
from typing import Any

from netproof.measurement import twin
from netproof.measurement.case import Curve, line_rate_share, medians
from netproof.measurement.interval import CONFIDENCE, Interval, of_median, of_middle

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
    rates, first = curve.bandwidth_mb_s, bisect_left(curve.sizes, peak_from)
    peak = max(rates[first:], default=None)
    if peak is None:
        reasons |= dict.fromkeys(of_peak, f"no message of {peak_from} bytes or more was measured")
    elif not peak:
        reasons |= dict.fromkeys(of_peak, "the bandwidth is 0 at every size")
    else:
        # The least of several sizes with the same rate.
        least, peak_size = peak / 2, curve.sizes[rates.index(peak, first)]
        half = next(size for size, rate in zip(curve.sizes, rates, strict=True) if rate >= least)
        found |= zip(of_peak, (peak, peak_size, half), strict=True)
    for name, place in _places(curve.sizes)[1].items():
        if place is not None:
            found[name] = rates[place]
        else:
            reasons[name] = f"{RATES[name]} bytes was not measured"
    return found


@lru_cache(maxsize=256)
def _places(sizes: tuple[int, ...]) -> tuple[slice, dict[str, int | None]]:
    """Return which sizes make the latency, and the place of the size of each of ``RATES``."""
    short = slice(bisect_left(sizes, 1), bisect_left(sizes, LATENCY_BELOW))
    places = {size: place for place, size in enumerate(sizes)}
    return short, {name: places.get(size) for name, size in RATES.items()}


def latency_us(curve: Curve, reasons: dict[str, str]) -> float | None:
    """Return the median time of messages of 1 to 63 bytes; None, with the reason in ``reasons``."""
    short = slice(1) if curve.sizes == (0,) else _places(curve.sizes)[0]
    times = [time for time in curve.time_us[short] if time > 0]
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
        if not EAGER_FROM <= curve.sizes[below] <= EAGER_TO:
            continue
        limit = _step(curve, below, least)
        if limit is not None and limit.step_us > largest:
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


def _step(curve: Curve, below: int, least: float) -> EagerLimit | None:
    """Return the step above a size; None where it is below ``least``, in µs, or does not last."""
    sizes, times, above = curve.sizes, curve.time_us, below + 1
    before, after = _far_sizes(sizes, below, larger=False), _far_sizes(sizes, above, larger=True)
    if not before or not after:
        return None
    slopes = _local_slope(curve, below, before), _local_slope(curve, above, after)
    step = times[above] - times[below] - max(slopes) * (sizes[above] - sizes[below])
    if step < least:
        return None
    foot, head = before[-1], after[0]
    before_foot = _far_sizes(sizes, foot, larger=False)
    after_head = _far_sizes(sizes, head, larger=True)
    if not before_foot or not after_head:
        return None
    foreseen = times[foot] + _local_slope(curve, foot, before_foot) * (sizes[above] - sizes[foot])
    hindsight = times[head] - _local_slope(curve, head, after_head) * (sizes[head] - sizes[below])
    step = min(step, times[above] - foreseen, hindsight - times[below])
    is_dip = max(times[:below]) > times[below] + step / 2
    is_spike = min(times[above:]) < times[above] - step / 2
    if step < least or is_dip or is_spike:
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


def _local_slope(curve: Curve, index: int, others: list[int]) -> float:
    """Return the median slope in µs per byte between one size and others, at least 0."""
    size, time = curve.sizes[index], curve.time_us[index]
    slopes = [(curve.time_us[i] - time) / (curve.sizes[i] - size) for i in others]
    return max(median(slopes), 0.0)


FEWEST_SIZES = 4
"""The fewest sizes that make the asymptotic bandwidth."""

MOST_BEND = 0.1
"""Share of the slope by which it may differ between the lower and the upper half of the sizes."""

MOST_ROUNDING = 0.01
"""Share by which bandwidth · time / size may differ between them: benchmarks print few digits."""

_FIGURES = ": "
"""Separator in a reason between the part that curves share and one curve's figures."""


@dataclass(frozen=True)
class Landmarks:
    """The result of ``landmarks``; None is an undefined landmark, with its reason in ``undefined``.

    ``intervals``: the 95 % intervals of those that have one, in the landmark's unit; an upper end
    may be infinite. ``paired_mb_s``, ``paired_share``: from the healthy twin.
    """

    latency_us: float | None
    peak_mb_s: float | None
    peak_size: int | None
    half_power_size: int | None
    rate_1_kib_mb_s: float | None
    rate_4_kib_mb_s: float | None
    rate_16_kib_mb_s: float | None
    rate_64_kib_mb_s: float | None
    asymptotic_mb_s: float | None
    half_performance_bytes: float | None
    line_rate_share: float | None
    eager_limit: EagerLimit | None
    undefined: Mapping[str, str]
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    paired_mb_s: float | None = None
    paired_share: float | None = None

    def why(self, landmark: str, *, figures: bool = True) -> str | None:
        """Return why the landmark of this name is None; None where it has a value.

        ``figures``: with those of this curve alone.
        """
        reason = self.undefined.get(landmark)
        return reason if figures or reason is None else reason.partition(_FIGURES)[0]


LANDMARK_NAMES = tuple(
    name for name in Landmarks.__dataclass_fields__ if name not in ("undefined", "intervals")
)

ASYMPTOTIC = ("asymptotic_mb_s", "half_performance_bytes", "line_rate_share")
"""Landmarks from the line through the top of a curve."""


def landmarks(
    curve: Curve,
    line_rate_mb_s: float | None,
    *,
    peak_from: int = 0,
    launches: Sequence[Curve] = (),
    compared: Mapping[str, tuple[float, Interval | None]] | None = None,
) -> Landmarks:
    """Return the landmarks of a curve, usually of a case; sizes in bytes, rates in MB/s (10⁶).

    ``latency_us``: median time of the messages of 1 to 63 bytes. An empty message is left out,
    since a collective of 0 bytes does nothing, and so is a printed 0 µs; a curve of nothing but the
    empty message (Barrier) has its time as latency. ``peak_mb_s`` is reached at ``peak_size``, the
    least such size; ``half_power_size``: least size with half the peak; rates at exactly 1, 4, 16
    and 64 KiB. ``asymptotic_mb_s``: Hockney's r∞, counted as the curve's bandwidth is;
    ``half_performance_bytes``: his n½ = t₀ · r∞, not defined where t₀ is below 0;
    ``line_rate_share``: r∞ over ``line_rate_mb_s``, None where no link is known.

    ``launches``: the curves whose median ``curve`` is. They give each figure its 95 % interval:
    that of the median over the launches' own (``interval.of_median``), extended to the figure
    itself; a figure that a launch does not define has none. r∞ has one without launches too, see
    ``r_interval``. ``compared``: those with the healthy twin, as ``twin.compared`` has them. Raise
    NetproofError unless the line rate is a positive number.
    """
    reasons = {} if compared else dict.fromkeys(twin.NAMES, twin.WITHOUT)
    found: dict[str, Any] = {**readings(curve, reasons, peak_from)}
    intervals = _intervals(found, [readings(one, {}, peak_from) for one in launches])
    for paired, (value, ends) in (compared or {}).items():
        found[paired] = value
        if ends is not None:
            intervals[paired] = _reaching(ends, value)
    several = launches or (curve,)
    sizes, (times, *each) = top(curve.sizes), [one.time_us for one in (curve, *several)]
    times, each = times[-len(sizes) :], [one[-len(sizes) :] for one in each]
    line = theil_sen(sizes, times)
    # The median of several launches' rates is not the rate of their median time.
    factor, reason = _bandwidth_factor(several, len(sizes))
    reason = reason or _no_line(sizes, each, line)
    if reason or line is None:
        reasons |= dict.fromkeys(("asymptotic_mb_s", "half_performance_bytes"), reason)
        reasons["line_rate_share"] = reason
    else:
        found["asymptotic_mb_s"] = factor * line[0]
        own = r_interval(sizes, each)
        if own is not None:
            scaled = factor * own[0], factor * own[1]
            intervals["asymptotic_mb_s"] = _reaching(scaled, factor * line[0])
        name = "half_performance_bytes"
        if line[1] < 0:
            reasons[name] = (
                f"the line through the times from {sizes[0]} to {sizes[-1]} bytes meets that of 0"
                f" bytes at {line[1]:.3g} µs, below 0: short messages cost nothing there"
            )
        else:
            found[name] = line[1] * line[0]
        if len(launches) > 1:
            lines = [theil_sen(sizes, one) for one in each]
            halves = [{name: one and one[0] * one[1]} for one in lines]
            intervals |= _intervals({name: found.get(name)}, halves)
    if line_rate_mb_s is None:
        reasons["line_rate_share"] = "no line rate is known for this case"
    elif "asymptotic_mb_s" in found:
        found["line_rate_share"] = line_rate_share(found["asymptotic_mb_s"], line_rate_mb_s)
        if "asymptotic_mb_s" in intervals:
            low, high = intervals["asymptotic_mb_s"]
            intervals["line_rate_share"] = (low / line_rate_mb_s, high / line_rate_mb_s)
    found["eager_limit"] = eager_limit(curve)
    if found["eager_limit"] is None:
        reasons["eager_limit"] = (
            f"no step in time between {EAGER_FROM} and {EAGER_TO} bytes that "
            "stays for all larger messages"
        )
    return Landmarks(
        **{name: found.get(name) for name in LANDMARK_NAMES},
        undefined=reasons,
        intervals={name: intervals[name] for name in LANDMARK_NAMES if name in intervals},
    )


@lru_cache(maxsize=16)
def asymptotic_mb_s(curve: Curve) -> float | None:
    """Return r∞ of one launch, as ``landmarks`` has it."""
    sizes = top(curve.sizes)
    times = curve.time_us[-len(sizes) :]
    line, (factor, reason) = theil_sen(sizes, times), _bandwidth_factor((curve,), len(sizes))
    defined = line and not (reason or _no_line(sizes, [times], line))
    return factor * line[0] if line and defined else None


def _intervals(
    found: Mapping[str, float | None], of_launches: Sequence[Mapping[str, float | None]]
) -> dict[str, Interval]:
    """Return the interval of the median for each figure that all launches define."""
    intervals = {}
    for name, value in found.items():
        several = [own for one in of_launches if (own := one.get(name)) is not None and own > 0]
        if value is None or len(several) < len(of_launches):
            continue
        interval = of_median(several)
        if interval is not None:
            intervals[name] = _reaching(interval, value)
    return intervals


def _reaching(interval: Interval, value: float) -> Interval:
    """Return the interval, extended to the value where that lies outside."""
    return min(interval[0], value), max(interval[1], value)


def _bandwidth_factor(launches: Sequence[Curve], largest: int) -> tuple[float, str]:
    """Return bandwidth · time / size over so many largest sizes, and why it is not defined.

    1 for a benchmark that counts a message once, 2 or 4 where a call sends that many.
    """
    factors = []
    for curve in launches:
        if curve.bandwidth_mb_s is None:
            return math.nan, "the benchmark defines no bandwidth"
        columns = (curve.sizes, curve.time_us, curve.bandwidth_mb_s)
        for size, time, rate in zip(*(one[-largest:] for one in columns), strict=True):
            factor = rate * time / max(size, 1)
            if not 0 < factor < math.inf:
                return math.nan, f"time or bandwidth are 0 at {size} bytes"
            factors.append(factor)
    least, most = min(factors), max(factors)
    if most > least * (1 + MOST_ROUNDING):
        return math.nan, (
            f"bandwidth · time / size is no constant over the largest sizes, but {least:.4g} to"
            f" {most:.4g}"
        )
    return median(factors), ""


def _no_line(
    sizes: Sequence[int], launches: Sequence[Sequence[float]], line: tuple[float, float] | None
) -> str:
    """Return why the times do not lie on a line, empty where they do."""
    span = f"from {sizes[0]} to {sizes[-1]} bytes"
    if len(sizes) < FEWEST_SIZES:
        return f"a line takes {FEWEST_SIZES} sizes, and there are {len(sizes)} {span}"
    if line is None:
        return f"time does not grow with the size {span}"
    bent = bend(sizes, launches)
    if bent is None or (bent[0] <= MOST_BEND and bent[1] >= -MOST_BEND):
        return ""
    word = "faster" if bent[0] > 0 else "less fast"
    low, high = sorted(map(abs, bent))
    return (
        f"times {span} lie on no straight line{_FIGURES}they grow {word} in the upper half,"
        f" by {low:.0%} to {high:.0%} of the slope"
    )


TOP = 8
"""Sizes from the largest over this on make r∞."""

_NORMAL = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
"""Standard errors from the middle of an interval to its end."""


@lru_cache(maxsize=256)
def top(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the sizes on the line: from the largest over ``TOP`` on."""
    return tuple([size for size in sizes if size * TOP >= sizes[-1]])


def theil_sen(sizes: Sequence[int], time_us: Sequence[float]) -> tuple[float, float] | None:
    """Return r∞ in MB/s and t₀ in µs of the line with the median slope of all pairs of points.

    None for fewer than two points, or where time does not grow with the size.
    """
    if len(sizes) < 2:
        return None
    slope = _slope(sizes, time_us)
    # The rate of a subnormal slope is infinite.
    if slope <= 0 or math.isinf(1 / slope):
        return None
    starts = [time - slope * size for size, time in zip(sizes, time_us, strict=True)]
    return 1 / slope, median(starts)


def r_interval(sizes: Sequence[int], launches: Sequence[Sequence[float]]) -> Interval | None:
    """Return r∞'s 95 % interval in MB/s, from each launch's times in µs at ``sizes`` in bytes.

    For several launches it is that of the median of their own r∞ (simulated, it contains r∞ in 95
    to 98 % of cases); for one it is Sen's (Journal of the American Statistical Association 63,
    1968) over the pairs of its sizes, of four sizes their whole range. The upper end is infinite
    where time may not grow at all. None where launches have no interval, and where time falls.
    """
    if len(launches) == 1:
        return _rates(*_sen(sizes, launches[0]))
    slopes = [_slope(sizes, time_us) for time_us in launches]
    if min(slopes) > 0:
        return of_median([1 / slope for slope in slopes])
    found = of_middle(slopes)
    return None if found is None else _rates(*found)


def _rates(low: float, high: float) -> Interval | None:
    if high <= 0:
        return None
    return 1 / high, 1 / low if low > 0 else math.inf


def bend(sizes: Sequence[int], launches: Sequence[Sequence[float]]) -> Interval | None:
    """Return the 95 % interval of the slope in the upper half of the sizes less the lower one's.

    It is over the slope of the line through all: above 0 where the network gets slower.
    ``launches``: of each the times in µs at ``sizes``. Several launches give it from their
    differences; one from its residuals over two lines, weighted for a noise in proportion to the
    time. None for one launch with fewer than five sizes, and where time does not grow.
    """
    slope = _slope(sizes, medians(launches))
    if slope <= 0:
        return None
    half = len(sizes) // 2
    if len(launches) == 1:
        return _bend_of_one(sizes, launches[0], slope)
    differences = [
        (_slope(sizes[half:], times[half:]) - _slope(sizes[:half], times[:half])) / slope
        for times in launches
    ]
    return of_middle(differences)


def _bend_of_one(sizes: Sequence[int], times_us: Sequence[float], slope: float) -> Interval | None:
    import numpy as np
    import scipy

    half, freedom = len(sizes) // 2, len(sizes) - 4
    if freedom < 1:
        return None
    x, y = np.asarray(sizes, float), np.asarray(times_us, float)
    slopes, left, variance = [], 0.0, 0.0
    for part in (slice(0, half), slice(half, None)):
        u, v = x[part], y[part]
        (own, start), covariance = np.polyfit(u, v, 1, w=1 / u, cov="unscaled")
        slopes.append(float(own))
        left += float((((v - own * u - start) / u) ** 2).sum())
        variance += float(covariance[0, 0])
    middle = (slopes[1] - slopes[0]) / slope
    wide = float(scipy.special.stdtrit(freedom, (1 + CONFIDENCE) / 2)) * math.sqrt(
        left / freedom * variance
    )
    return middle - wide / slope, middle + wide / slope


def _slope(sizes: Sequence[int], time_us: Sequence[float]) -> float:
    return median(_slopes(sizes, time_us))


def _slopes(sizes: Sequence[int], time_us: Sequence[float]) -> list[float]:
    points = zip(sizes, time_us, strict=True)
    return [
        (time - before) / (size - less) for (less, before), (size, time) in combinations(points, 2)
    ]


def _sen(sizes: Sequence[int], time_us: Sequence[float]) -> Interval:
    """Return Sen's 95 % interval of the slope; equal times narrow it."""
    slopes, count = sorted(_slopes(sizes, time_us)), len(sizes)
    several = (count, *(-equal for equal in Counter(time_us).values() if equal > 1))
    variance = sum(k * (abs(k) - 1) * (2 * abs(k) + 5) for k in several) / 18
    ranks = _NORMAL * math.sqrt(variance)
    low = max(round((len(slopes) - ranks) / 2) - 1, 0)
    high = min(round((len(slopes) + ranks) / 2), len(slopes) - 1)
    return slopes[low], slopes[high]


def peaks_in_words(least_bytes: Iterable[int]) -> str:
    """Return which messages cannot be the peak over a link, to end a sentence, or nothing."""
    stated = " or ".join(map(str, sorted({*least_bytes} - {0})))
    why = "since shorter bursts pass above its rate"
    return f"; over a link, peaks are of {stated} bytes and more, {why}" if stated else ""
