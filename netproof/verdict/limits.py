"""A case's landmarks compared with its references, by their intervals over launches."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from netproof.benchmarks.registry import check_name
from netproof.criteria import Finding, Level
from netproof.measurement import asymptotic, interval, twin
from netproof.measurement.case import Case
from netproof.measurement.interval import Interval, Side
from netproof.measurement.landmark_table import LANDMARKS, RATES
from netproof.measurement.landmarks import ASYMPTOTIC
from netproof.measurement.readings import LandmarkSettings, readings
from netproof.session.measured import Measured
from netproof.session.reference_findings import CRITERION
from netproof.verdict.references import XFAIL, NotThere, ReferenceFile

TIME_AT = "time_us_"
"""What the name of the time at a size begins with; its size in bytes follows."""


@dataclass(frozen=True)
class Limits:
    """What passes of a variable, ``low`` to ``high`` in its unit; infinite for no bound."""

    low: float
    high: float

    @classmethod
    def of_entry(cls, entry: Sequence[Any]) -> Limits:
        """Of a reference ``(value, lower, upper, …)``, reckoned as ReFrame does.

        The bounds are relative to the value, or absolute where that is 0.
        """
        value, lower, upper = entry[:3]
        ends = []
        for bound, missing in ((lower, -math.inf), (upper, math.inf)):
            if bound is None:
                ends.append(missing)
            else:
                ends.append(value + abs(value) * bound if value else bound)
        return cls(*ends)

    @property
    def asserted(self) -> bool:
        """Whether anything can be beyond them."""
        return math.isfinite(self.low) or math.isfinite(self.high)

    def __str__(self) -> str:
        """What passes, in a sentence."""
        if math.isfinite(self.low) and math.isfinite(self.high):
            return f"{self.low:.6g} to {self.high:.6g}"
        return f"at least {self.low:.6g}" if math.isfinite(self.low) else f"at most {self.high:.6g}"


def of_references(entries: Mapping[str, Any]) -> dict[str, Limits]:
    """The limits of variables that assert something, from their entries in a file of references.

    An entry that marks a known fault has none: that it fails is what is expected.
    """
    found = {
        name: Limits.of_entry(entry)
        for name, entry in entries.items()
        if isinstance(entry, list | tuple) and entry[0] != XFAIL
    }
    return {name: limit for name, limit in found.items() if limit.asserted}


def of_case(references: ReferenceFile, case: Case) -> dict[str, Limits]:
    """The limits that a file of references has for a case; none where it does not name it."""
    try:
        entries = references.find(check_name(case.benchmark, case.function), case)
    except NotThere:
        return {}
    return of_references(entries)


def variables(measured: Measured) -> dict[str, tuple[float | None, str]]:
    """Every performance variable of a case: value (None where it is undefined) and unit."""
    found: dict[str, tuple[float | None, str]] = {}
    for name, landmark in LANDMARKS.items():
        value = getattr(measured.landmarks, name)
        if value is not None and landmark.per_cent:
            value = round(100 * value, 2)
        found[name] = (value, landmark.unit)
    for name, ratios in of_twin(measured).items():
        found[name] = (round(100 * interval.pseudomedian(ratios), 2), "%")
    for size, time in zip(measured.curve.sizes, measured.curve.time_us, strict=True):
        found[f"{TIME_AT}{size}"] = (time, "us")
    return found


def of_twin(measured: Measured) -> dict[str, list[float]]:
    """Each launch's landmarks over those of the healthy twin next to it, by the variable's name.

    Those only that all launches and twins define; none of a case without twins, nor of sessions in
    which these had large messages alone. A rate at a size counts up to the line rate: NetPIPE sends
    so few short messages that a token bucket's fill lets all of them pass, IMB sends a thousand.
    """
    settings = LandmarkSettings(peak_from=measured.peak_from)
    most = measured.line_rate_mb_s or math.inf
    pairs = []
    for launch in measured.launches:
        if launch.twin is None or launch.twin.sizes[0] > launch.curve.sizes[0]:
            return {}
        pairs.append([readings(one, settings, {}) for one in (launch.curve, launch.twin)])
    found = {}
    for name, landmark in twin.VARIABLES.items():
        values = [(own[landmark], alongside[landmark]) for own, alongside in pairs]
        if all(own and alongside for own, alongside in values):
            if landmark in RATES:
                values = [(min(own, most), min(alongside, most)) for own, alongside in values]
            found[name] = [own / alongside for own, alongside in values]
    return found


def interval_of(measured: Measured, variable: str) -> Interval | None:
    """The 95 % interval of a variable over the case's launches, in its unit; None without one."""
    if variable.startswith(TIME_AT):
        place = measured.curve.sizes.index(int(variable.removeprefix(TIME_AT)))
        return interval.of_median([one.curve.time_us[place] for one in measured.launches])
    if variable in twin.VARIABLES:
        ends = interval.of_pseudomedian(of_twin(measured)[variable])
        return None if ends is None else (100 * ends[0], 100 * ends[1])
    ends = measured.landmarks.interval(variable)
    if ends is None or not LANDMARKS[variable].per_cent:
        return ends
    return 100 * ends[0], 100 * ends[1]


def judge(measured: Measured, limits: Mapping[str, Limits], where: str) -> dict[str, Finding]:
    """A finding for each variable that has limits: all of its interval within them passes.

    All of it beyond fails; astride, it is inconclusive. One launch has no interval, and the value
    decides. A variable that the curve does not define fails, with the reason; what no benchmark of
    its kind has, and a time at a size that was not measured, have no finding. A share of a healthy
    twin that is too slow itself to tell anything is inconclusive. ``where``: what the sentences
    begin with.
    """
    known = variables(measured)
    findings = {}
    for name, limit in limits.items():
        value, unit = known.get(name, (None, ""))
        if not limit.asserted or name not in known:
            continue
        if value is not None:
            findings[name] = _compared(measured, name, value, unit, limit, where)
        elif not _asked_in_vain(measured, name):
            why = measured.landmarks.why(name)
            told = f"{name} has a reference ({limit} {unit}) and is undefined: {why}"
            findings[name] = Finding(CRITERION, Level.UNDEFINED, where, told, variable=name)
    return findings


def _compared(
    measured: Measured, name: str, value: float, unit: str, limit: Limits, where: str
) -> Finding:
    """A value compared with its limits by its interval."""
    ends = interval_of(measured, name)
    level = {
        Side.WITHIN: Level.PASS,
        Side.BEYOND: Level.FAIL,
        Side.ASTRIDE: Level.INCONCLUSIVE,
    }[interval.side(ends or (value, value), limit.low, limit.high)]
    more = ""
    if name == "twin_share":
        more, enough = _of_the_twin(measured)
        # A link that surely carries that much itself is not at half rate, however slow its twin.
        itself = level is Level.PASS and _surely_carries(measured, ends)
        level = level if enough or itself else Level.INCONCLUSIVE
    elif name in twin.VARIABLES:
        more = (
            "; that is relative to the healthy twin of this link, measured next to each launch:"
            " look at the nodes, ports and settings of the link itself"
        )
    count = len(measured.launches)
    over = f"{count} {'launch' if count == 1 else 'launches'}"
    spoken = f"{over}, no interval"
    if ends is not None:
        spoken = f"95% interval {ends[0]:.4g} to {ends[1]:.4g} over {over}"
    return Finding(
        CRITERION,
        level,
        where,
        f"{name} is {value:.5g} {unit}{_of_sizes(measured, name)} ({spoken}), and the reference is"
        f" {limit} {unit}{more}",
        value=value,
        bound=limit.low if value < limit.low or not math.isfinite(limit.high) else limit.high,
        interval=ends,
        variable=name,
    )


def size_of(variable: str) -> int | None:
    """Return the size in bytes of the messages that a variable is of.

    0 for a latency and what grows with it, None for what is of large messages or a whole curve.
    """
    if variable.startswith(TIME_AT):
        return int(variable.removeprefix(TIME_AT))
    landmark = twin.VARIABLES.get(variable, variable)
    if landmark in ("latency_us", "half_power_size", "half_performance_bytes"):
        return 0
    return RATES.get(landmark)


def _of_sizes(measured: Measured, name: str) -> str:
    """Of which messages a variable is; empty where its name says so, and of what has no size."""
    settings, sizes = LandmarkSettings(), measured.curve.sizes
    variable = twin.VARIABLES.get(name, name)
    of: Sequence[int] = ()
    if variable == "latency_us":
        of = [size for size in sizes if 1 <= size < settings.latency_below]
    elif variable == "peak_mb_s" and measured.landmarks.peak_size is not None:
        of = [measured.landmarks.peak_size]
    elif name in twin.NAMES and measured.launches[0].twin is not None:
        of = [size for size, _, _ in twin.top(measured.launches[0].twin)]
    elif name in ASYMPTOTIC:
        of = [sizes[place] for place in asymptotic.top(sizes, settings.asymptotic_top)]
    if not of:
        return ""
    return f" at {of[0]} bytes" if len(of) == 1 else f" over messages of {of[0]} to {of[-1]} bytes"


def twin_too_slow(measured: Measured) -> bool:
    """Whether all of the interval of what the healthy twin carries is too little to tell by."""
    ends = measured.landmarks.interval("twin_mb_s")
    if ends is None or measured.line_rate_mb_s is None:
        return False
    return ends[1] < twin.HALF_RATE_SEEN * measured.line_rate_mb_s


def _surely_carries(measured: Measured, share: Interval | None) -> bool:
    """Whether a link carries as much of its rate itself as its healthy twin has to.

    ``share``: the interval of what it carries of its twin, in %.
    """
    if share is None or measured.line_rate_mb_s is None:
        return False
    least = share[0] / 100 * measured.landmarks.twin_mb_s
    return least >= twin.HALF_RATE_SEEN * measured.line_rate_mb_s


def _of_the_twin(measured: Measured) -> tuple[str, bool]:
    """What a share of the healthy twin is a share of, and whether it carries enough to tell."""
    carried = measured.landmarks.twin_mb_s
    said = f"; at the same time the healthy twin of this link carried {carried:.4g} MB/s"
    if measured.line_rate_mb_s is None:
        return said, True
    share = carried / measured.line_rate_mb_s
    if share >= twin.HALF_RATE_SEEN:
        return f"{said}, {share:.0%} of the line rate", True
    return (
        f"{said}, only {share:.0%} of the line rate: on a machine as slow as that a link at half"
        " rate would not be seen",
        False,
    )


def _asked_in_vain(measured: Measured, name: str) -> bool:
    """Whether nobody can ask for a landmark: a rate of what has none, a share without a link."""
    if name in twin.NAMES and all(launch.twin is None for launch in measured.launches):
        return True
    if name == "line_rate_share" and measured.line_rate_mb_s is None:
        return True
    return measured.curve.bandwidth_mb_s is None and name != "latency_us"


def not_defined(bounds: Mapping[str, Any], measured: Measured) -> str:
    """Why a case fails of which a reference asks for r∞, n½ or a share, and it has none.

    ``bounds``: the case's references by variable, as ReFrame has them, which wraps what is expected
    to fail. Empty where all of them are there, where no bound asks, and of what nobody can ask
    for: a benchmark without bandwidth, a path without a line rate.
    """
    for name in (*ASYMPTOTIC, *twin.NAMES):
        entry = bounds.get(name)
        if (
            entry is None
            or getattr(measured.landmarks, name) is not None
            or measured.curve.bandwidth_mb_s is None
            or (name == "line_rate_share" and measured.line_rate_mb_s is None)
        ):
            continue
        _, lower, upper, *_ = getattr(entry, "data", entry)
        if (lower, upper) != (None, None):
            why = measured.landmarks.why(name)
            return f"the references ask for {name}, which is not defined: {why}"
    return ""
