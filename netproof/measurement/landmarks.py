"""Landmarks of a curve: the few figures that a table of benchmarks shows (criterion 10).

From the e325 Opteron NetPIPE report (latency below 64 bytes, largest bandwidth and its size),
the network-adapter page (rates at 1, 4, 16 and 64 KB), and Hockney (r∞ and n½, see
``netproof.measurement.asymptotic``).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from netproof.errors import NetproofError
from netproof.measurement import twin
from netproof.measurement.asymptotic import TOP, bend, r_interval, theil_sen, top
from netproof.measurement.curve import Curve
from netproof.measurement.interval import Interval, of_median

KIB = 1024


@dataclass(frozen=True)
class LandmarkSettings:
    """Where landmarks are looked for.

    ``latency_below``: messages of 1 byte to below this size make the latency.
    ``peak_from``: the least size in bytes that can be the peak; above 0 only where a link is
    emulated by a token bucket, which lets short messages pass faster than its rate.
    ``eager_from``, ``eager_to``: sizes in bytes between which an eager limit may lie.
    ``eager_step_latencies``, ``eager_step_share``: the least step in time at the limit, as a
    multiple of the latency and as a share of the time below it; both have to be reached.
    ``eager_slope_from``, ``eager_slope_to``: factors in size over which slopes are taken.
    ``asymptotic_top``: the asymptotic bandwidth is that of the sizes from the largest over this
    on; ``asymptotic_sizes``: the fewest of them; ``asymptotic_bend``: the share of the slope by
    which it may differ between the lower and the upper half of them; ``asymptotic_rounding``: the
    share by which bandwidth · time / size may differ between them, benchmarks printing few digits.
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


@dataclass(frozen=True)
class EagerLimit:
    """The step where an MPI library changes from eager to rendezvous messages.

    ``size_below`` is the largest size in bytes sent eagerly, ``size_above`` the next one
    measured; times in µs, rates in MB/s (None where the curve has none); ``step_us`` is the
    time that the change costs beyond what the larger message explains.
    """

    size_below: int
    time_below_us: float
    rate_below_mb_s: float | None
    size_above: int
    time_above_us: float
    rate_above_mb_s: float | None
    step_us: float


@dataclass(frozen=True)
class Landmarks:
    """What ``landmarks`` found; None is a landmark that is not defined, see ``why``.

    ``intervals``: (name, low, high) of those that have a 95 % interval, in the landmark's unit;
    high is None where it has no upper end. ``twin_mb_s``, ``twin_share``: of a case whose launches
    have a healthy twin of its link next to them, see ``netproof.measurement.twin``;
    ``landmarks`` leaves both.
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
    undefined: tuple[tuple[str, str], ...]
    intervals: tuple[tuple[str, float, float | None], ...] = ()
    twin_mb_s: float | None = None
    twin_share: float | None = None

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Landmarks:
        """The landmarks of plain values with their names; KeyError, TypeError where one misses."""
        limit = values["eager_limit"]
        return cls(
            **values
            | {
                "eager_limit": None if limit is None else EagerLimit(**limit),
                "undefined": tuple(map(tuple, values["undefined"])),
                "intervals": tuple(map(tuple, values["intervals"])),
            }
        )

    def why(self, landmark: str) -> str | None:
        """Why the landmark of this name is None; None where it has a value.

        Raises NetproofError for a name that is no landmark.
        """
        _known(landmark)
        return dict(self.undefined).get(landmark)

    def with_twin(self, found: twin.Compared) -> Landmarks:
        """With what comes of the healthy twin."""
        intervals = dict(zip(twin.NAMES, (found.twin_interval, found.share_interval), strict=True))
        values = dict(zip(twin.NAMES, (found.twin_mb_s, found.share), strict=True))
        known = []
        for name, interval in intervals.items():
            if interval is not None:
                low, high = _reaching(interval, values[name])
                known.append((name, low, high if high < math.inf else None))
        undefined = tuple(one for one in self.undefined if one[0] not in twin.NAMES)
        intervals = (*self.intervals, *known)
        return dataclasses.replace(self, **values, undefined=undefined, intervals=intervals)

    def interval(self, landmark: str) -> Interval | None:
        """The 95 % interval of the landmark of this name, in its unit; None where it has none.

        Its upper end may be infinite. Raises NetproofError for a name that is no landmark.
        """
        _known(landmark)
        for name, low, high in self.intervals:
            if name == landmark:
                return low, math.inf if high is None else high
        return None


LANDMARK_NAMES = tuple(
    name for name in Landmarks.__dataclass_fields__ if name not in ("undefined", "intervals")
)

ASYMPTOTIC = ("asymptotic_mb_s", "half_performance_bytes", "line_rate_share")
"""What comes of the line through the top of a curve."""


def _known(landmark: str) -> None:
    if landmark not in LANDMARK_NAMES:
        raise NetproofError(f"{landmark!r} is no landmark: there are {', '.join(LANDMARK_NAMES)}")


def landmarks(
    curve: Curve,
    line_rate_mb_s: float | None,
    settings: LandmarkSettings = LandmarkSettings(),
    *,
    launches: Sequence[Curve] = (),
) -> Landmarks:
    """The landmarks of a curve, the one of a case as a rule.

    ``latency_us``: median time of the messages of 1 to 63 bytes. An empty message is left out,
    since a collective of 0 bytes does nothing, and so is a printed 0 µs; a curve of nothing
    but the empty message (Barrier) has its time as latency. ``peak_mb_s`` is reached at
    ``peak_size``, the least such size; ``half_power_size``: least size with half the peak;
    rates at exactly 1, 4, 16 and 64 KiB. ``asymptotic_mb_s``: Hockney's r∞, the bandwidth that the
    largest messages tend to, counted as the curve's bandwidth is; ``half_performance_bytes``: his
    n½ = t₀ · r∞, the message that reaches half of r∞ on that line, not defined where short
    messages take less than no time on it; ``line_rate_share``: r∞ over ``line_rate_mb_s``
    (``units.line_rate_mb_s``; None where no link is known, in a node for instance);
    ``eager_limit``: see ``eager_limit``. Sizes in bytes, rates in MB/s (10⁶).

    ``launches``: the curves that ``curve`` is the median of, which give each figure its 95 %
    interval: that of the median over the launches' own (``interval.of_median``), reaching to the
    figure itself; one that a launch does not define has none. r∞ has one without launches too,
    see ``asymptotic.r_interval``.

    What a curve does not define is None and has a reason in ``undefined``. Raises NetproofError
    for a line rate that is no positive number.
    """
    reasons = dict.fromkeys(twin.NAMES, twin.WITHOUT)
    found = _figures(curve, settings, reasons)
    several = launches or (curve,)
    # The median of several launches' rates is not the rate of their median time.
    factor = _bandwidth_factor(several, settings)
    found |= _asymptotic(curve, several, factor, settings, reasons)
    intervals = _intervals(found, [_figures(one, settings, {}) for one in launches])
    r_mb_s = found["asymptotic_mb_s"]
    if r_mb_s is not None:
        places = top(curve.sizes, settings.asymptotic_top)
        sizes = [curve.sizes[place] for place in places]
        own = r_interval(sizes, [[one.time_us[place] for place in places] for one in several])
        if own is not None:
            intervals["asymptotic_mb_s"] = _reaching((factor * own[0], factor * own[1]), r_mb_s)
        if len(launches) > 1:
            halves = [
                theil_sen(sizes, [one.time_us[place] for place in places]) for one in launches
            ]
            intervals |= _intervals(
                {"half_performance_bytes": found["half_performance_bytes"]},
                [{"half_performance_bytes": line and line.n_half_bytes} for line in halves],
            )
    if line_rate_mb_s is None:
        reasons["line_rate_share"] = "no line rate is known for this case"
    elif r_mb_s is None:
        reasons["line_rate_share"] = reasons["asymptotic_mb_s"]
    else:
        found["line_rate_share"] = line_rate_share(r_mb_s, line_rate_mb_s)
        if "asymptotic_mb_s" in intervals:
            low, high = intervals["asymptotic_mb_s"]
            intervals["line_rate_share"] = (low / line_rate_mb_s, high / line_rate_mb_s)
    limit = eager_limit(curve, settings)
    if limit is None:
        reasons["eager_limit"] = (
            f"no step in time between {settings.eager_from} and {settings.eager_to} bytes that "
            "stays for all larger messages"
        )
    return Landmarks(
        **{name: found.get(name) for name in LANDMARK_NAMES if name != "eager_limit"},
        eager_limit=limit,
        undefined=tuple(reasons.items()),
        intervals=tuple(
            (
                name,
                intervals[name][0],
                intervals[name][1] if intervals[name][1] < math.inf else None,
            )
            for name in LANDMARK_NAMES
            if name in intervals
        ),
    )


def _figures(
    curve: Curve, settings: LandmarkSettings, reasons: dict[str, str]
) -> dict[str, float | None]:
    """What a curve shows of itself: latency, peak, rates."""
    peak, peak_size, half_power_size = _peak(curve, settings, reasons)
    return {
        "latency_us": _latency_us(curve, settings, reasons),
        "peak_mb_s": peak,
        "peak_size": peak_size,
        "half_power_size": half_power_size,
        **{
            name: _rate_at(curve, kib * KIB, name, reasons)
            for kib in (1, 4, 16, 64)
            for name in (f"rate_{kib}_kib_mb_s",)
        },
    }


def _intervals(
    found: dict[str, float | None], of_launches: Sequence[dict[str, float | None]]
) -> dict[str, Interval]:
    """Of each figure that all launches define, the interval of the median over them."""
    intervals = {}
    for name, value in found.items():
        several = [one.get(name) for one in of_launches]
        if value is None or any(one is None or one <= 0 for one in several):
            continue
        interval = of_median(several)
        if interval is not None:
            intervals[name] = _reaching(interval, value)
    return intervals


def _reaching(interval: Interval, value: float) -> Interval:
    """The interval, and as far as the value where that lies outside."""
    return min(interval[0], value), max(interval[1], value)


def _bandwidth_factor(launches: Sequence[Curve], settings: LandmarkSettings) -> float | str:
    """Bandwidth · time / size over the top of the curves, or why there is none.

    1 of a benchmark that counts a message once, 2 or 4 where a call sends so many.
    """
    factors = []
    for curve in launches:
        if curve.bandwidth_mb_s is None:
            return "the benchmark defines no bandwidth"
        for place in top(curve.sizes, settings.asymptotic_top):
            size = curve.sizes[place]
            factor = curve.bandwidth_mb_s[place] * curve.time_us[place] / max(size, 1)
            if not 0 < factor < math.inf:
                return f"time or bandwidth are 0 at {size} bytes"
            factors.append(factor)
    least, largest = min(factors), max(factors)
    if largest > least * (1 + settings.asymptotic_rounding):
        return (
            f"bandwidth · time / size is no constant over the largest sizes, but {least:.4g} to"
            f" {largest:.4g}"
        )
    return median(factors)


def _asymptotic(
    curve: Curve,
    launches: Sequence[Curve],
    factor: float | str,
    settings: LandmarkSettings,
    reasons: dict[str, str],
) -> dict[str, float | None]:
    """r∞ and n½, or why there are none."""
    names = ("asymptotic_mb_s", "half_performance_bytes")
    places = top(curve.sizes, settings.asymptotic_top)
    sizes = [curve.sizes[place] for place in places]
    span = f"from {sizes[0]} to {sizes[-1]} bytes"
    if any(one.sizes != curve.sizes for one in launches):
        raise NetproofError("launches differ in their sizes from the curve that is their median")
    reason = None
    line = theil_sen(sizes, [curve.time_us[place] for place in places])
    if isinstance(factor, str):
        reason = factor
    elif len(sizes) < settings.asymptotic_sizes:
        reason = (
            f"a line takes {settings.asymptotic_sizes} sizes, and there are {len(sizes)} {span}"
        )
    elif line is None:
        reason = f"time does not grow with the size {span}"
    else:
        bent = bend(sizes, [[one.time_us[place] for place in places] for one in launches])
        most = settings.asymptotic_bend
        if bent is not None and (bent[0] > most or bent[1] < -most):
            word = "faster" if bent[0] > 0 else "less fast"
            low, high = sorted(map(abs, bent))
            reason = (
                f"times {span} lie on no line: they grow {word} in the upper half than in the"
                f" lower one, by {low:.0%} to {high:.0%} of the slope"
            )
    if reason is not None:
        reasons |= dict.fromkeys(names, reason)
        return dict.fromkeys(names)
    n_half = line.n_half_bytes
    if n_half < 0:
        reasons["half_performance_bytes"] = (
            f"the line through the times {span} meets that of 0 bytes at {line.t_us:.3g} µs, below"
            " 0: short messages cost nothing there"
        )
        return {"asymptotic_mb_s": factor * line.r_mb_s, "half_performance_bytes": None}
    return {"asymptotic_mb_s": factor * line.r_mb_s, "half_performance_bytes": n_half}


def line_rate_share(bandwidth_mb_s: float, line_rate_mb_s: float) -> float:
    """A bandwidth over the line rate, both in MB/s, each way.

    Raises NetproofError for a line rate that is not positive and finite.
    """
    if not (math.isfinite(line_rate_mb_s) and line_rate_mb_s > 0):
        raise NetproofError(f"{line_rate_mb_s} MB/s is no line rate: it is above 0")
    return bandwidth_mb_s / line_rate_mb_s


def eager_limit(curve: Curve, settings: LandmarkSettings = LandmarkSettings()) -> EagerLimit | None:
    """Where the curve shows the change from eager to rendezvous messages, or None.

    A rendezvous asks before it sends: one round trip more, once, whatever the size. So the
    limit is the step between neighbouring sizes with the largest time beyond what the bytes
    added explain, if that excess is at least one latency (half the round trip) and a tenth of
    the time below. A step that goes away again is a spike or a dip: at least half of it has
    to stand between all smaller and all larger messages. The excess is the least of three: what
    the step itself shows, what the line through the sizes below foresees for the size above,
    and what the line through the sizes above says of the size below; a line's slope is the
    median over sizes a factor 1.4 to 4 away, and never falls.
    """
    latency = _latency_us(curve, settings, {})
    if latency is None:
        return None
    found = None
    for below in range(len(curve.sizes) - 1):
        limit = _step(curve, below, settings)
        if (
            limit is not None
            and limit.step_us >= settings.eager_step_latencies * latency
            and limit.step_us >= settings.eager_step_share * limit.time_below_us
            and (found is None or limit.step_us > found.step_us)
        ):
            found = limit
    return found


def _step(curve: Curve, below: int, settings: LandmarkSettings) -> EagerLimit | None:
    sizes, times, rates = curve.sizes, curve.time_us, curve.bandwidth_mb_s
    above = below + 1
    if not settings.eager_from <= sizes[below] <= settings.eager_to:
        return None
    before = _far_sizes(curve, below, settings, larger=False)
    after = _far_sizes(curve, above, settings, larger=True)
    if not before or not after:
        return None
    slope_below = _slope(curve, below, before)
    slope_above = _slope(curve, above, after)
    foot, head = before[-1], after[0]
    before_foot = _far_sizes(curve, foot, settings, larger=False)
    after_head = _far_sizes(curve, head, settings, larger=True)
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
    return EagerLimit(
        size_below=sizes[below],
        time_below_us=times[below],
        rate_below_mb_s=rates[below] if rates else None,
        size_above=sizes[above],
        time_above_us=times[above],
        rate_above_mb_s=rates[above] if rates else None,
        step_us=step,
    )


def _far_sizes(curve: Curve, index: int, settings: LandmarkSettings, *, larger: bool) -> list[int]:
    """Indices of the sizes far enough from one for a slope, and near enough."""
    size = curve.sizes[index]
    span = range(index + 1, len(curve.sizes)) if larger else range(index)
    return [
        other
        for other in span
        if curve.sizes[other] > 0
        and settings.eager_slope_from
        <= max(curve.sizes[other] / size, size / curve.sizes[other])
        <= settings.eager_slope_to
    ]


def _slope(curve: Curve, index: int, others: list[int]) -> float:
    """Median slope in µs a byte between one size and others, at least 0."""
    size, time = curve.sizes[index], curve.time_us[index]
    slopes = [(curve.time_us[i] - time) / (curve.sizes[i] - size) for i in others]
    return max(median(slopes), 0.0)


def _latency_us(curve: Curve, settings: LandmarkSettings, reasons: dict[str, str]) -> float | None:
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
