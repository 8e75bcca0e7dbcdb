"""Landmarks of a curve: the few figures of a table of benchmarks.

From the e325 Opteron NetPIPE report (latency below 64 bytes, largest bandwidth and its size), and
the network-adapter page (rates at 1, 4, 16 and 64 KB). Hockney's r∞ and n½ are in
``netproof.measurement.asymptotic``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from netproof.errors import NetproofError
from netproof.measurement import twin
from netproof.measurement.asymptotic import bend, r_interval, theil_sen, top
from netproof.measurement.curve import Curve
from netproof.measurement.eager_limit import EAGER_FROM, EAGER_TO, EagerLimit, eager_limit
from netproof.measurement.interval import Interval, of_median
from netproof.measurement.landmark_table import readings
from netproof.measurement.units import line_rate_share

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
    """The result of ``landmarks``; None is an undefined landmark, see ``why``.

    ``intervals``: (name, low, high) of those with a 95 % interval, in the landmark's unit; high is
    None where it has no upper end. ``paired_mb_s``, ``paired_share``: of a case whose launches are
    paired with a healthy twin of its link, see ``netproof.measurement.twin``; ``landmarks`` does
    not set them.
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
    paired_mb_s: float | None = None
    paired_share: float | None = None

    def why(self, landmark: str, *, figures: bool = True) -> str | None:
        """Return why the landmark of this name is None; None where it has a value.

        ``figures``: with those of this curve alone. Raise NetproofError for an unknown name.
        """
        _known(landmark)
        reason = dict(self.undefined).get(landmark)
        return reason if figures or reason is None else reason.partition(_FIGURES)[0]

    def with_twin(self, found: Mapping[str, tuple[float, Interval | None]]) -> Landmarks:
        """Return the landmarks with those of the healthy twin, as ``twin.compared`` has them."""
        known = []
        for name, (value, interval) in found.items():
            if interval is not None:
                low, high = _reaching(interval, value)
                known.append((name, low, high if high < math.inf else None))
        return dataclasses.replace(
            self,
            **{name: value for name, (value, _) in found.items()},
            undefined=tuple(one for one in self.undefined if one[0] not in twin.NAMES),
            intervals=(*self.intervals, *known),
        )

    def interval(self, landmark: str) -> Interval | None:
        """Return the landmark's 95 % interval, in its unit; None where it has none.

        Its upper end may be infinite. Raise NetproofError for an unknown name.
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
"""Landmarks from the line through the top of a curve."""


def _known(landmark: str) -> None:
    if landmark not in LANDMARK_NAMES:
        raise NetproofError(f"{landmark!r} is no landmark: there are {', '.join(LANDMARK_NAMES)}")


def landmarks(
    curve: Curve,
    line_rate_mb_s: float | None,
    *,
    peak_from: int = 0,
    launches: Sequence[Curve] = (),
) -> Landmarks:
    """Return the landmarks of a curve, usually of a case.

    ``latency_us``: median time of the messages of 1 to 63 bytes. An empty message is left out,
    since a collective of 0 bytes does nothing, and so is a printed 0 µs; a curve of nothing but the
    empty message (Barrier) has its time as latency. ``peak_mb_s`` is reached at ``peak_size``, the
    least such size; ``half_power_size``: least size with half the peak; rates at exactly 1, 4, 16
    and 64 KiB. ``asymptotic_mb_s``: Hockney's r∞, the bandwidth that the largest messages tend to,
    counted as the curve's bandwidth is; ``half_performance_bytes``: his n½ = t₀ · r∞, the message
    that reaches half of r∞ on that line, not defined where short messages take less than no time on
    it; ``line_rate_share``: r∞ over ``line_rate_mb_s`` (``units.line_rate_mb_s``; None where no
    link is known, in a node for instance); ``eager_limit``: see ``eager_limit``. Sizes in bytes,
    rates in MB/s (10⁶).

    ``launches``: the curves whose median ``curve`` is. They give each figure its 95 % interval:
    that of the median over the launches' own (``interval.of_median``), extended to the figure
    itself; a figure that a launch does not define has none. r∞ has one without launches too, see
    ``asymptotic.r_interval``.

    An undefined landmark is None and has a reason in ``undefined``. Raise NetproofError unless the
    line rate is a positive number.
    """
    reasons = dict.fromkeys(twin.NAMES, twin.WITHOUT)
    found = readings(curve, reasons, peak_from)
    several = launches or (curve,)
    # The median of several launches' rates is not the rate of their median time.
    factor = _bandwidth_factor(several)
    found |= _asymptotic(curve, several, factor, reasons)
    intervals = _intervals(found, [readings(one, {}, peak_from) for one in launches])
    r_mb_s = found["asymptotic_mb_s"]
    if r_mb_s is not None:
        places = top(curve.sizes)
        sizes = [curve.sizes[place] for place in places]
        own = r_interval(sizes, [[one.time_us[place] for place in places] for one in several])
        if own is not None:
            intervals["asymptotic_mb_s"] = _reaching((factor * own[0], factor * own[1]), r_mb_s)
        if len(launches) > 1:
            lines = [theil_sen(sizes, [one.time_us[at] for at in places]) for one in launches]
            name = "half_performance_bytes"
            halves = [{name: line and line[0] * line[1]} for line in lines]
            intervals |= _intervals({name: found[name]}, halves)
    if line_rate_mb_s is None:
        reasons["line_rate_share"] = "no line rate is known for this case"
    elif r_mb_s is None:
        reasons["line_rate_share"] = reasons["asymptotic_mb_s"]
    else:
        found["line_rate_share"] = line_rate_share(r_mb_s, line_rate_mb_s)
        if "asymptotic_mb_s" in intervals:
            low, high = intervals["asymptotic_mb_s"]
            intervals["line_rate_share"] = (low / line_rate_mb_s, high / line_rate_mb_s)
    limit = eager_limit(curve)
    if limit is None:
        reasons["eager_limit"] = (
            f"no step in time between {EAGER_FROM} and {EAGER_TO} bytes that "
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


def _intervals(
    found: dict[str, float | None], of_launches: Sequence[dict[str, float | None]]
) -> dict[str, Interval]:
    """Return the interval of the median for each figure that all launches define."""
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
    """Return the interval, extended to the value where that lies outside."""
    return min(interval[0], value), max(interval[1], value)


def _bandwidth_factor(launches: Sequence[Curve]) -> float | str:
    """Return bandwidth · time / size over the top of the curves, or why it is not defined.

    1 for a benchmark that counts a message once, 2 or 4 where a call sends that many.
    """
    factors = []
    for curve in launches:
        if curve.bandwidth_mb_s is None:
            return "the benchmark defines no bandwidth"
        for place in top(curve.sizes):
            size = curve.sizes[place]
            factor = curve.bandwidth_mb_s[place] * curve.time_us[place] / max(size, 1)
            if not 0 < factor < math.inf:
                return f"time or bandwidth are 0 at {size} bytes"
            factors.append(factor)
    least, largest = min(factors), max(factors)
    if largest > least * (1 + MOST_ROUNDING):
        return (
            f"bandwidth · time / size is no constant over the largest sizes, but {least:.4g} to"
            f" {largest:.4g}"
        )
    return median(factors)


def _asymptotic(
    curve: Curve,
    launches: Sequence[Curve],
    factor: float | str,
    reasons: dict[str, str],
) -> dict[str, float | None]:
    """Return r∞ and n½, or why there are none."""
    names = ("asymptotic_mb_s", "half_performance_bytes")
    places = top(curve.sizes)
    sizes = [curve.sizes[place] for place in places]
    span = f"from {sizes[0]} to {sizes[-1]} bytes"
    if any(one.sizes != curve.sizes for one in launches):
        raise NetproofError("launches differ in their sizes from the curve that is their median")
    reason = None
    line = theil_sen(sizes, [curve.time_us[place] for place in places])
    if isinstance(factor, str):
        reason = factor
    elif len(sizes) < FEWEST_SIZES:
        reason = f"a line takes {FEWEST_SIZES} sizes, and there are {len(sizes)} {span}"
    elif line is None:
        reason = f"time does not grow with the size {span}"
    else:
        bent = bend(sizes, [[one.time_us[place] for place in places] for one in launches])
        if bent is not None and (bent[0] > MOST_BEND or bent[1] < -MOST_BEND):
            word = "faster" if bent[0] > 0 else "less fast"
            low, high = sorted(map(abs, bent))
            reason = (
                f"times {span} lie on no line{_FIGURES}they grow {word} in the upper half than in"
                f" the lower one, by {low:.0%} to {high:.0%} of the slope"
            )
    if reason is not None:
        reasons |= dict.fromkeys(names, reason)
        return dict.fromkeys(names)
    r_mb_s, t_us = line
    if t_us < 0:
        reasons["half_performance_bytes"] = (
            f"the line through the times {span} meets that of 0 bytes at {t_us:.3g} µs, below"
            " 0: short messages cost nothing there"
        )
        return {"asymptotic_mb_s": factor * r_mb_s, "half_performance_bytes": None}
    return {"asymptotic_mb_s": factor * r_mb_s, "half_performance_bytes": t_us * r_mb_s}
