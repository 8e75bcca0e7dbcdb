"""Criterion 1: how many times as long as any other a configuration takes at a size."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from statistics import median
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from netproof.criteria.findings import (
    AtSize,
    Bounds,
    CommonSizes,
    Finding,
    Level,
    common_sizes,
    finding_at,
    undefined,
)
from netproof.criteria.interface import Criterion
from netproof.criteria.points import Points, times_of
from netproof.measurement import interval as intervals
from netproof.measurement import links
from netproof.measurement.curve import Curve
from netproof.measurement.links import Crossing


@dataclass(frozen=True)
class EnvelopeSettings(Bounds):
    """``fail``: a time above this multiple of what others need is red (an order of magnitude)."""

    fail: float | None = 10.0
    reached: ClassVar[Callable[[float, float], bool]] = operator.gt


@dataclass(frozen=True)
class Envelope:
    """The least time at each size over configurations, and the configuration that has it.

    ``curve`` holds only the sizes of at least 4 bytes that two configurations or more have.
    """

    curve: Curve
    fastest: tuple[str, ...]


def envelope(
    curves: Mapping[str, Curve], settings: EnvelopeSettings = EnvelopeSettings()
) -> Envelope | None:
    """The least time at each size over configurations, after the GigE synthetic-benchmark report.

    ``curves``: the curve of each configuration, for the same function at the same ranks. None
    where fewer than two configurations share a size. A curve that cannot be judged takes no
    part.
    """
    usable = {label: times_of(curve, settings) for label, curve in curves.items()}
    holders: dict[int, list[tuple[float, str]]] = {}
    for label, points in usable.items():
        if points.fault is None:
            for size, time in points.at.items():
                holders.setdefault(size, []).append((time, label))
    least = {size: min(times) for size, times in sorted(holders.items()) if len(times) > 1}
    if not least:
        return None
    return Envelope(
        Curve(tuple(least), tuple(time for time, _ in least.values())),
        tuple(label for _, label in least.values()),
    )


def above_envelope(
    curves: Mapping[str, Curve],
    settings: EnvelopeSettings = EnvelopeSettings(),
    *,
    launches: Mapping[str, Sequence[Curve]] | None = None,
    crossings: Mapping[str, Crossing] | None = None,
    pairs: Mapping[tuple[str, str], Sequence[tuple[Curve, Curve]]] | None = None,
    only: str | None = None,
) -> tuple[Finding, ...]:
    """How many times as long as any other each configuration takes (criterion 1).

    At each size t over the least that another would take over this configuration's link: its time,
    and what the slower link adds to it (``links.explained_us``). A pure number, 1 where nobody
    takes less. Each size that is flagged or inconclusive has a finding of its own; a configuration
    without one has a finding for the size where it comes nearest.

    ``curves`` as in ``envelope``; ``launches``: those that a curve is the median of, for the
    interval of the ratio, where both sides have two or more; ``crossings``: the link that a
    configuration's messages cross, where they cross one; ``pairs``: launches of the first and the
    second configuration made next to each other, two or more, by which alone the two are then
    compared: the median of the pairs' ratios, with its interval. A size fails if the ratio to
    any other fails with its whole interval; else the largest ratio decides. ``only``: of which
    configuration findings are asked for, None for all.
    """
    all_sizes = replace(settings, least_size=1)
    everything = {where: times_of(curve, all_sizes).at for where, curve in curves.items()}
    sides = {}
    for where, curve in curves.items():
        crossing = (crossings or {}).get(where)
        several = [_by_size(launch) for launch in (launches or {}).get(where, ())]
        points = times_of(curve, settings)
        crossed = {}
        if crossing is not None and points.fault is None:
            # Latency is seen best at sizes that are not judged.
            crossed = links.messages(everything[where] or points.at, crossing)
        paired = {
            other: [(_by_size(own), _by_size(theirs)) for own, theirs in together]
            for (one, other), together in (pairs or {}).items()
            if one == where and len(together) > 1
        }
        sides[where] = _Side(where, points, several, crossing, crossed, paired)

    @cache
    def added(label: str, slower: Crossing | None) -> dict[int, float]:
        """Return what another link adds to a configuration's times; most have the same link."""
        return links.explained_us(sides[label].crossed, sides[label].crossing, slower)

    @cache
    def expected(size: int, crossing: Crossing | None) -> _Expected:
        """Return what each configuration with the size would take over a link."""
        able = [one for one in sides.values() if one.points.fault is None and size in one.points.at]
        more = [added(one.label, crossing).get(size, 0) for one in able]
        times = [one.points.at[size] + us for one, us in zip(able, more, strict=True)]
        places = {one.label: place for place, one in enumerate(able)}
        return _Expected(able, more, np.array(times), places)

    findings = []
    for where, side in sides.items() if only is None else [(only, sides[only])]:
        if side.points.fault is not None:
            findings.append(undefined("envelope", where, side.points.fault))
            continue
        others = [
            other for other in sides.values() if other is not side and other.points.fault is None
        ]
        findings += _above(side, settings, expected) or [
            undefined("envelope", where, _why_no_envelope(where, others, sides))
        ]
    return tuple(findings)


@dataclass(frozen=True)
class _Side:
    """A configuration as the envelope compares it.

    ``launches``: the time of each by size; ``crossed``: how many message sizes cross its link;
    ``paired``: by the other configuration's label, its launches and the other's next to them.
    """

    label: str
    points: Points
    launches: Sequence[Mapping[int, float]]
    crossing: Crossing | None
    crossed: Mapping[int, float]
    paired: Mapping[str, Sequence[tuple[Mapping[int, float], Mapping[int, float]]]]

    def times(self, size: int) -> list[float]:
        return [launch[size] for launch in self.launches if size in launch]


@dataclass(frozen=True)
class _Compared:
    """The ratio of two configurations at a size; ``added_us`` explains what links differ in.

    ``own_us`` and ``other_us``: their times; ``ratios``: of launches next to each other, none where
    all launches of both are compared.
    """

    size: int
    value: float
    side: _Side
    other: _Side
    added_us: float
    own_us: float
    other_us: float
    ratios: Sequence[float] = ()

    @cached_property
    def interval(self) -> tuple[float, float] | None:
        """The interval of the ratio, which takes long and is needed of few."""
        if self.ratios:
            # By order alone: what comes upon one of the two, and not upon both, is on one side.
            return intervals.of_median(self.ratios)
        expected = [time + self.added_us for time in self.other.times(self.size)]
        return intervals.of_ratio(self.side.times(self.size), expected)


def _why_no_envelope(where: str, others: Sequence[_Side], sides: Mapping[str, _Side]) -> str:
    alongside = "run another alongside it"
    if len(sides) == 1:
        return f"{where} is the only configuration, and one has no envelope: {alongside}"
    meeting = any(
        one is not other and one.points.at.keys() & other.points.at.keys()
        for one in others
        for other in others
    )
    if meeting:
        return "it has no size in common with another configuration"
    return f"no size was measured in two configurations: {alongside}"


class _Expected(NamedTuple):
    """Of a size and a link: the configurations that have the size, and what they would take.

    ``added_us``: what the link adds to their times; ``times_us``: with it; ``places``: by label.
    """

    sides: list[_Side]
    added_us: list[float]
    times_us: NDArray[np.float64]
    places: dict[str, int]


def _above(
    side: _Side,
    settings: EnvelopeSettings,
    expected: Callable[[int, Crossing | None], _Expected],
) -> list[Finding]:
    """A finding for each size that is flagged, or one for the largest ratio; none without any."""
    decided: dict[int, _Compared] = {}
    for size in sorted(side.points.at):
        others = expected(size, side.crossing)
        if len(others.sides) == 1:
            continue

        def compare(place: int, size: int = size, others: _Expected = others) -> _Compared:
            return _compare(side, others.sides[place], size, others.added_us[place])

        values = side.points.at[size] / others.times_us
        values[others.places[side.label]] = -np.inf
        for place in {others.places[other] for other in side.paired if other in others.places}:
            values[place] = compare(place).value
        decides = compare(int(np.argmax(values)))
        if settings.level(decides.value)[0] is Level.FAIL:
            beyond = [
                compare(place)
                for place, value in enumerate(values.tolist())
                if settings.level(value)[0] is Level.FAIL
            ]
            failing = [c for c in beyond if settings.level(c.value, c.interval)[0] is Level.FAIL]
            decides = max(failing or [decides], key=lambda c: c.value)
        decided[size] = decides
    if not decided:
        return []
    common = common_sizes([*decided])
    findings = [_compared(side, size, one, common, settings) for size, one in decided.items()]
    flagged = [f for f in findings if f.level in (Level.WARN, Level.FAIL, Level.INCONCLUSIVE)]
    return flagged or [max(findings, key=lambda finding: finding.value or 0)]


def _compare(side: _Side, other: _Side, size: int, added_us: float) -> _Compared:
    together = [
        (own[size], theirs[size])
        for own, theirs in side.paired.get(other.label, ())
        if own.get(size, 0) > 0 and theirs.get(size, 0) > 0
    ]
    if len(together) > 1:
        ratios = [own / (theirs + added_us) for own, theirs in together]
        own_us, other_us = (median(times) for times in zip(*together, strict=True))
        return _Compared(size, median(ratios), side, other, added_us, own_us, other_us, ratios)
    own_us, other_us = side.points.at[size], other.points.at[size]
    return _Compared(size, own_us / (other_us + added_us), side, other, added_us, own_us, other_us)


def _by_size(curve: Curve) -> dict[int, float]:
    return dict(zip(curve.sizes, curve.time_us, strict=True))


def _compared(
    side: _Side, size: int, compared: _Compared, common: CommonSizes, settings: EnvelopeSettings
) -> Finding:
    time, other = compared.own_us, compared.other
    level, bound = settings.level(compared.value, compared.interval)
    if compared.value < 1 and level is not Level.INCONCLUSIVE:
        level, bound = settings.level(1)
        told = f"{time:.4g} µs at {size} bytes is the least of all, compared {common}"
        nearest = finding_at("envelope", level, bound, side.label, AtSize(size, 1), told, "")
        return replace(nearest, common=common)
    theirs = compared.other_us
    whose = f"the {theirs:.4g} µs of {other.label}"
    if compared.added_us > 0 and side.crossing is not None and other.crossing is not None:
        whose = (
            f"the {theirs + compared.added_us:.4g} µs that {other.label} would take over"
            f" {side.crossing.link}, by its {theirs:.4g} µs over {other.crossing.link}"
        )
    found = finding_at(
        "envelope",
        level,
        bound,
        side.label,
        AtSize(size, compared.value),
        f"{time:.4g} µs at {size} bytes is {compared.value:.3g} times{_spoken(compared.interval)}"
        f" {whose}{_how(compared)}, compared {common}",
        f"avoid or mend this configuration for messages of about {size} bytes",
    )
    return replace(found, common=common, interval=compared.interval, against=other.label)


def _how(compared: _Compared) -> str:
    if not compared.ratios:
        return ""
    return f", in {len(compared.ratios)} pairs of launches next to each other"


def _spoken(interval: tuple[float, float] | None) -> str:
    if interval is None:
        return ""
    return f" ({intervals.CONFIDENCE:.0%} interval {interval[0]:.3g} to {interval[1]:.3g})"


CRITERION = Criterion(1, {"envelope": EnvelopeSettings()}, {"envelope": "envelope"})
