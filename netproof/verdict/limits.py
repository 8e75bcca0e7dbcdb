"""A case's landmarks compared with its references, by their intervals over launches."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from netproof.criteria import Finding, Level
from netproof.criteria.findings import REFERENCE
from netproof.errors import counted
from netproof.measurement import interval, landmarks, twin
from netproof.measurement.case import Case
from netproof.measurement.interval import Interval, Side
from netproof.measurement.landmarks import ASYMPTOTIC, LANDMARKS, LATENCY_BELOW, RATES
from netproof.session.measured import Measured
from netproof.verdict.references import XFAIL, NotThere

_LEVELS = {Side.WITHIN: Level.PASS, Side.BEYOND: Level.FAIL, Side.ASTRIDE: Level.INCONCLUSIVE}

TIME_AT = "time_us_"
"""Prefix of the name of the time at a size; the size in bytes follows."""


@dataclass(frozen=True)
class Limits:
    """Range of a variable that passes, ``low`` to ``high`` in its unit; infinite for no bound."""

    low: float
    high: float

    @classmethod
    def of_entry(cls, entry: Sequence[Any]) -> Limits:
        """Return the limits of a reference ``(value, lower, upper, …)``, as in ReFrame.

        The bounds are relative to the value, or absolute where that is 0.
        """
        value, lower, upper = entry[:3]
        low, high = (
            missing if bound is None else value + abs(value) * bound if value else bound
            for bound, missing in ((lower, -math.inf), (upper, math.inf))
        )
        return cls(low, high)

    @property
    def asserted(self) -> bool:
        """Whether a value can be outside."""
        return math.isfinite(self.low) or math.isfinite(self.high)

    def __str__(self) -> str:
        if math.isfinite(self.low) and math.isfinite(self.high):
            return f"{self.low:.6g} to {self.high:.6g}"
        return f"at least {self.low:.6g}" if math.isfinite(self.low) else f"at most {self.high:.6g}"


def of_references(entries: Mapping[str, Any]) -> dict[str, Limits]:
    """Return the limits of variables with bounds, from their entries in a file of references.

    An entry that marks a known fault has none, since its failure is expected.
    """
    found = {
        name: Limits.of_entry(entry)
        for name, entry in entries.items()
        if isinstance(entry, list | tuple) and entry[0] != XFAIL
    }
    return {name: limit for name, limit in found.items() if limit.asserted}


def of_case(entries: Callable[[Case], Mapping[str, Any]], case: Case) -> dict[str, Limits]:
    """Return a case's limits by its ``entries`` in a file of references; empty without any."""
    try:
        return of_references(entries(case))
    except NotThere:
        return {}


def variables(measured: Measured) -> dict[str, tuple[float | None, str]]:
    """Return every performance variable of a case: value (None where undefined) and unit."""
    found: dict[str, tuple[float | None, str]] = {}
    for name, landmark in LANDMARKS.items():
        value = getattr(measured.landmarks, name)
        found[name] = (100 * value if value and landmark.per_cent else value, landmark.unit)
    for name, several in measured.of_twin.items():
        found[name] = (100 * interval.pseudomedian(several), "%")
    times = zip(measured.curve.sizes, measured.curve.time_us, strict=True)
    return found | {f"{TIME_AT}{size}": (time, "us") for size, time in times}


def interval_of(measured: Measured, variable: str) -> Interval | None:
    """Return a variable's 95 % interval over the launches, in its unit; None without one."""
    if variable.startswith(TIME_AT):
        place = measured.curve.sizes.index(int(variable.removeprefix(TIME_AT)))
        return interval.of_median([one.curve.time_us[place] for one in measured.launches])
    of_twin = measured.of_twin.get(variable)
    ends = measured.landmarks.intervals.get(variable)
    if of_twin is not None:
        ends = interval.of_pseudomedian(of_twin)
    elif not LANDMARKS[variable].per_cent:
        return ends
    return None if ends is None else (100 * ends[0], 100 * ends[1])


def judge(measured: Measured, limits: Mapping[str, Limits], where: str) -> dict[str, Finding]:
    """Return a finding for each variable with limits, by its interval over the launches.

    One that contains a limit is inconclusive; a single launch is judged by its value. An undefined
    variable fails; one that the benchmark never has, and a size that was not measured, have no
    finding. The share of a healthy twin that is too slow itself is inconclusive. ``where``: begins
    sentences.
    """
    known, findings = variables(measured), {}
    for name, limit in limits.items():
        value, unit = known.get(name, (None, ""))
        if name not in known:
            continue
        if value is None:
            # A rate without bandwidths, a share without a link, and one of no twin cannot be.
            twins = any(launch.twin is not None for launch in measured.launches)
            in_vain = (
                (name in twin.NAMES and not twins)
                or (name == "line_rate_share" and measured.line_rate_mb_s is None)
                or (measured.curve.bandwidth_mb_s is None and name != "latency_us")
            )
            if not in_vain:
                why = measured.landmarks.why(name)
                reason = f"{name} has a reference ({limit} {unit}) and is undefined: {why}"
                findings[name] = Finding(REFERENCE, Level.UNDEFINED, where, reason, variable=name)
            continue
        ends, more, doubt = interval_of(measured, name), "", ""
        level = _LEVELS[interval.side(ends or (value, value), limit.low, limit.high)]
        if name == "paired_share":
            more, doubt = _of_the_twin(measured, level, ends)
            level = Level.INCONCLUSIVE if doubt else level
        elif name in twin.VARIABLES:
            more = (
                "; that is relative to the healthy twin of this link, measured next to each launch:"
                " look at the nodes, ports and settings of the link itself"
            )
        over = counted(len(measured.launches), "launch", "launches")
        spoken = f"{over}, no interval"
        if ends is not None:
            spoken = f"95% interval {ends[0]:.4g} to {ends[1]:.4g} over {over}"
        findings[name] = Finding(
            REFERENCE,
            level,
            where,
            f"{name} is {value:.5g} {unit}{_of_sizes(measured, name)} ({spoken}), and the reference"
            f" is {limit} {unit}{more}",
            value=value,
            bound=limit.low if value < limit.low or not math.isfinite(limit.high) else limit.high,
            interval=ends,
            doubt=doubt,
            variable=name,
        )
    return findings


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
    """Return the sizes behind a variable in words; empty where its name has them or it has none."""
    sizes = measured.curve.sizes
    variable = twin.VARIABLES.get(name, name)
    of: Sequence[int] = ()
    if variable == "latency_us":
        of = [size for size in sizes if 1 <= size < LATENCY_BELOW]
    elif variable == "peak_mb_s" and measured.landmarks.peak_size is not None:
        of = [measured.landmarks.peak_size]
    elif name in twin.NAMES and measured.launches[0].twin is not None:
        of = [size for size, _, _ in twin.top(measured.launches[0].twin)]
    elif name in ASYMPTOTIC:
        of = landmarks.top(sizes)
    if not of:
        return ""
    return f" at {of[0]} bytes" if len(of) == 1 else f" over messages of {of[0]} to {of[-1]} bytes"


def twin_too_slow(measured: Measured) -> bool:
    """Check whether the whole interval of the healthy twin's bandwidth is too low to compare."""
    ends = measured.landmarks.intervals.get("paired_mb_s")
    if ends is None or measured.line_rate_mb_s is None:
        return False
    return ends[1] < twin.HALF_RATE_SEEN * measured.line_rate_mb_s


def _of_the_twin(measured: Measured, level: Level, share: Interval | None) -> tuple[str, str]:
    """Return the twin's bandwidth in words, and why it is not enough to compare with, or empty.

    A link that itself certainly carries half of its rate is not at half rate, however slow its
    twin. ``share``: the interval of its bandwidth over its twin's, in %.
    """
    carried, rate = measured.landmarks.paired_mb_s or 0.0, measured.line_rate_mb_s
    text = f"; at the same time the healthy twin of this link carried {carried:.4g} MB/s"
    if rate is None:
        return text, ""
    if carried / rate >= twin.HALF_RATE_SEEN:
        return f"{text}, {carried / rate:.0%} of the line rate", ""
    text += f", only {carried / rate:.0%} of the line rate"
    least = 0.0 if share is None else share[0] / 100 * carried
    itself = level is Level.PASS and least >= twin.HALF_RATE_SEEN * rate
    doubt = "" if itself else f"its twin carried only {carried / rate:.0%} of the line rate"
    return f"{text}: on a machine as slow as that a link at half rate would not be seen", doubt


def not_defined(bounds: Mapping[str, Any], measured: Measured) -> str:
    """Return why a case fails whose references ask for r∞, n½ or a share that it does not have.

    ``bounds``: references by variable, as in ReFrame, which wraps expected failures. Empty where
    all are defined, no bound asks, or none can exist: without bandwidths, or without a line rate.
    """
    for name in (*ASYMPTOTIC, *twin.NAMES):
        entry = bounds.get(name)
        impossible = measured.curve.bandwidth_mb_s is None or (
            name == "line_rate_share" and measured.line_rate_mb_s is None
        )
        if entry is None or impossible or getattr(measured.landmarks, name) is not None:
            continue
        _, lower, upper, *_ = getattr(entry, "data", entry)
        if (lower, upper) != (None, None):
            why = measured.landmarks.why(name)
            return f"the references ask for {name}, which is not defined: {why}"
    return ""
