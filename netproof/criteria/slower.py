"""Slower than others: the envelope at each size, the floor over all sizes, and two side by side.

The floor scores each environment of a partition against each other one. They send over one link, so
that neither its rate nor any machine's number is needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import groupby, pairwise
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from netproof.criteria.findings import (
    FLAGGED,
    Above,
    Below,
    CannotJudgeError,
    CommonSizes,
    Finding,
    Level,
    common_sizes,
    figure,
    in_brackets,
    in_common,
    interval_in_words,
    times_of,
    times_of_each,
    undefined,
    undefined_if_unreadable,
)
from netproof.criteria.interface import CaseCurves, ComparedCases, Criterion, Layer
from netproof.criteria.score import NO_INTERVAL
from netproof.measurement import interval as intervals
from netproof.measurement import links
from netproof.measurement.curve import Curve
from netproof.measurement.links import Crossing

ENVELOPE = Above(None, 10.0)
"""Multiples of what others need: an order of magnitude is red."""

FLOOR = Below(0.5, 0.25)
"""Scores against another environment of the partition.

The envelope allows an order of magnitude at a size. A mean over all sizes comes near that only
where hardly a size is sound, so a quarter fails.
"""

FLOOR_INSIDE = Below()
"""Within a node, where libraries copy once or twice, nothing is asserted."""


SLOWER = Above()
"""Shares by which one of two is slower over a range of sizes; by default it is not looked for."""

ALIKE = 0.05
"""Share below which two times of a size do not differ."""

ALONE = 0.5
"""Share from which on a size without neighbours that differ counts."""

CERTAIN, LIKELY = "certain", "likely"


def envelope(
    curves: Mapping[str, Curve], settings: Above = ENVELOPE
) -> dict[int, tuple[float, str]]:
    """Return by size in bytes the least time in µs and whose it is, where two or more have one.

    ``curves``: by configuration, of one function at the same ranks. After the GigE
    synthetic-benchmark report.
    """
    holders: dict[int, list[tuple[float, str]]] = {}
    for label, curve in curves.items():
        for size, time in _times_or_reason(curve, settings)[0].items():
            holders.setdefault(size, []).append((time, label))
    return {size: min(times) for size, times in sorted(holders.items()) if len(times) > 1}


def _times_or_reason(curve: Curve, settings: Above) -> tuple[dict[int, float], str]:
    """Return the times by size, or the reason for which there are none."""
    try:
        return times_of(curve, settings), ""
    except CannotJudgeError as error:
        return {}, str(error)


@dataclass(frozen=True)
class _Side:
    """A configuration as the envelope compares it, or why it cannot be: ``fault``.

    ``crossed``: how many message sizes cross its link; ``paired``: by the other's label, launches
    of both, interleaved.
    """

    label: str
    times: Mapping[int, float]
    fault: str
    launches: Sequence[Mapping[int, float]]
    layer: Layer
    crossing: Crossing | None
    crossed: Mapping[int, float]
    paired: Mapping[str, Sequence[tuple[Mapping[int, float], Mapping[int, float]]]]


@dataclass(frozen=True)
class _Compared:
    """The ratio of two configurations at a size; ``added_us`` explains what links differ in.

    ``ratios``: of interleaved launches, none where all launches of both are compared.
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
        size = self.size
        own = [launch[size] for launch in self.side.launches if size in launch]
        expected = [one[size] + self.added_us for one in self.other.launches if size in one]
        return intervals.of_ratio(own, expected)


def above_envelope(
    curves: Mapping[str, Curve],
    settings: Above = ENVELOPE,
    *,
    launches: Mapping[str, Sequence[Curve]] | None = None,
    crossings: Mapping[str, Crossing] | None = None,
    pairs: Mapping[tuple[str, str], Sequence[tuple[Curve, Curve]]] | None = None,
    only: str | None = None,
    layers: Mapping[str, Layer] | None = None,
) -> tuple[Finding, ...]:
    """Return how many times as long as any other each configuration takes.

    At each size t over the least that another would take over this configuration's link: its time,
    and what the slower link adds to it (``links.explained_us``). Each size that is flagged or
    inconclusive has a finding, else the size that comes nearest. ``crossings``: the link that
    messages cross; ``pairs``: interleaved launches of two, by which alone they are then
    compared. A size fails if the ratio to any other fails with its whole interval; else the largest
    ratio decides. ``only``: of which configuration findings are asked for; ``layers``: what times
    are of, for advice.
    """
    all_sizes = replace(settings, least_size=1)
    sides = {}
    for where, curve in curves.items():
        crossing = (crossings or {}).get(where)
        times, fault = _times_or_reason(curve, settings)
        crossed = {}
        if crossing is not None and not fault:
            # Latency is seen best at sizes that are not judged.
            crossed = links.messages(_times_or_reason(curve, all_sizes)[0] or times, crossing)
        paired = {
            other: [(_by_size(own), _by_size(theirs)) for own, theirs in together]
            for (one, other), together in (pairs or {}).items()
            if one == where and len(together) > 1
        }
        several = [_by_size(launch) for launch in (launches or {}).get(where, ())]
        layer = (layers or {}).get(where, Layer.NETWORK)
        sides[where] = _Side(where, times, fault, several, layer, crossing, crossed, paired)

    @cache
    def added(label: str, slower: Crossing | None) -> dict[int, float]:
        """Return what another link adds to a configuration's times; most have the same link."""
        return links.explained_us(sides[label].crossed, sides[label].crossing, slower)

    @cache
    def expected(size: int, crossing: Crossing | None) -> _Expected:
        """Return what each configuration with the size would take over a link."""
        able = [one for one in sides.values() if size in one.times]
        more = [added(one.label, crossing).get(size, 0) for one in able]
        times = [one.times[size] + us for one, us in zip(able, more, strict=True)]
        places = {one.label: place for place, one in enumerate(able)}
        return _Expected(able, more, np.array(times), places)

    findings = []
    for where, side in sides.items() if only is None else [(only, sides[only])]:
        if side.fault:
            findings.append(undefined("envelope", where, side.fault))
            continue
        others = [other for other in sides.values() if other is not side and not other.fault]
        findings += _above(side, settings, expected) or [
            undefined("envelope", where, _why_no_envelope(where, others, sides))
        ]
    return tuple(findings)


def _why_no_envelope(where: str, others: Sequence[_Side], sides: Mapping[str, _Side]) -> str:
    alongside = "run another alongside it"
    if len(sides) == 1:
        return f"{where} is the only configuration, and one has no envelope: {alongside}"
    sizes = [size for other in others for size in other.times]
    if len({*sizes}) < len(sizes):
        return "it has no size in common with another configuration"
    return f"no size was measured in two configurations: {alongside}"


class _Expected(NamedTuple):
    """The configurations that have a size, and what they would take over a link.

    ``added_us``: what the link adds to their times; ``times_us``: with it; ``places``: by label.
    """

    sides: list[_Side]
    added_us: list[float]
    times_us: NDArray[np.float64]
    places: dict[str, int]


def _above(
    side: _Side, settings: Above, expected: Callable[[int, Crossing | None], _Expected]
) -> list[Finding]:
    """Return a finding for each size that is flagged, or one for the largest ratio, if any."""
    decided: dict[int, _Compared] = {}
    for size in sorted(side.times):
        others = expected(size, side.crossing)
        if len(others.sides) == 1:
            continue

        def compare(place: int, size: int = size, others: _Expected = others) -> _Compared:
            return _compare(side, others.sides[place], size, others.added_us[place])

        values = side.times[size] / others.times_us
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
    common = common_sizes(decided)
    against = (*FLAGGED, Level.INCONCLUSIVE)
    flagged = [
        one for one in decided.values() if settings.level(one.value, one.interval)[0] in against
    ]
    nearest = max(decided.values(), key=lambda one: max(one.value, 1))
    findings = [_of_envelope(one, common, settings) for one in flagged or [nearest]]
    steps = [abs(math.log(two.value / one.value)) for one, two in pairwise(decided.values())]
    apart = math.exp(median(steps)) if len(steps) > 2 else 1.0
    for place, finding in enumerate(findings):
        one_each = len(side.launches) == len(decided[finding.size].other.launches) == 1
        if one_each and finding.level is Level.FAIL and finding.value / apart <= settings.fail:
            chance = "one launch was made of each, and sizes next to each other scatter by a factor"
            findings[place] = finding.without_noise((f"{chance} of {apart:.2g}: repeat them",), "")
    return findings


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
    own_us, other_us = side.times[size], other.times[size]
    return _Compared(size, own_us / (other_us + added_us), side, other, added_us, own_us, other_us)


def _by_size(curve: Curve) -> dict[int, float]:
    return dict(zip(curve.sizes, curve.time_us, strict=True))


def _of_envelope(compared: _Compared, common: CommonSizes, settings: Above) -> Finding:
    size, side, other = compared.size, compared.side, compared.other
    own, theirs = f"{figure(compared.own_us)} µs at {size} bytes", compared.other_us
    level = settings.level(compared.value, compared.interval)[0]
    if compared.value < 1 and level is not Level.INCONCLUSIVE:
        reason = f"{own} is the least of all, compared {common}"
        return settings.finding("envelope", side.label, 1, reason, size=size, common=common)
    whose = f"the {figure(theirs)} µs of {other.label}"
    if compared.added_us > 0 and side.crossing is not None and other.crossing is not None:
        whose = (
            f"the {theirs + compared.added_us:.4g} µs that {other.label} would take over"
            f" {side.crossing.link}, by its {theirs:.4g} µs over {other.crossing.link}"
        )
    if compared.ratios:
        whose += f", in {len(compared.ratios)} interleaved pairs of launches"
    spoken = in_brackets(interval_in_words(compared.interval))
    advice = f"avoid or mend this configuration for messages of about {size} bytes"
    if other.layer is Layer.INSIDE and side.layer is not Layer.INSIDE:
        advice = ""
    return settings.finding(
        "envelope",
        side.label,
        compared.value,
        f"{own} is {compared.value:.3g} times{spoken} {whose}, compared {common}",
        advice,
        interval=compared.interval,
        size=size,
        common=common,
        against=other.label,
    )


@undefined_if_unreadable("floor")
def floor(
    launches: Sequence[Curve],
    others: Mapping[str, Sequence[Curve]],
    *,
    where: str,
    settings: Below = FLOOR,
    pairs: Mapping[str, Sequence[tuple[Curve, Curve]]] | None = None,
    weighed: Callable[[Finding], Finding] = lambda finding: finding,
) -> Finding | None:
    """Return the lowest score of a case against other environments of its partition.

    ``others``: their launches, by label; ``pairs``: interleaved launches of both, which alone are
    compared if there are two. It fails where the whole interval against any other is below the
    bound. ``weighed``: adjusts a finding to what its launches are worth.
    """
    if not others:
        return None
    times_of_each(launches, settings)
    compared = []
    for label, theirs in others.items():
        together = (pairs or {}).get(label, ())
        paired = len(together) > 1
        sides = tuple(zip(*together, strict=True)) if paired else (launches, theirs)
        found = _against(label, *sides, where, settings, paired=paired)
        if found is not None:
            compared.append(weighed(found))
    if not compared:
        raise CannotJudgeError("it has no size in common with another environment")
    failing = [one for one in compared if one.level is Level.FAIL]
    undecided = [one for one in compared if one.level is Level.INCONCLUSIVE]
    return min(failing or undecided or compared, key=lambda one: one.value or 0.0)


def _against(
    label: str,
    launches: Sequence[Curve],
    others: Sequence[Curve],
    where: str,
    settings: Below,
    *,
    paired: bool,
) -> Finding | None:
    """Compare a case with another one; None where one cannot be judged or no size is common."""
    try:
        sides = [times_of_each(several, settings) for several in (launches, others)]
    except CannotJudgeError:
        return None
    sizes = in_common([one for side in sides for one in side]) if all(sides) else []
    if not sizes:
        return None
    own, theirs = (
        [math.exp(math.fsum(math.log(one[size]) for size in sizes) / len(sizes)) for one in side]
        for side in sides
    )
    if paired:
        scores = [other / mine for mine, other in zip(own, theirs, strict=True)]
        value, interval = median(scores), intervals.of_median(scores)
    else:
        value, interval = median(theirs) / median(own), intervals.of_ratio(theirs, own)
    spoken = interval_in_words(interval) or NO_INTERVAL
    if paired:
        spoken += f", in {len(own)} interleaved pairs of launches"
    common = common_sizes(sizes)
    return settings.finding(
        "floor",
        where,
        value,
        f"{value:.3g} times as fast as {label} {common} ({spoken})",
        "look at which transport and which algorithm this library takes",
        interval=interval,
        common=common,
        against=label,
    )


def differences(one: CaseCurves, other: CaseCurves) -> list[Finding]:
    """Return from which size to which one of two configurations is slower, and by how much.

    A range has sizes that differ the same way by ``ALIKE`` or more, two at least, or one by
    ``ALONE``; a single size that differs less does not end it. The value is the geometric mean of
    the ratios of its times, less 1; its interval is that over the launches. A range that all
    launches do not show, nor the interval, is chance, and left out. A finding is of the slower one,
    by whose settings it is judged, ``against`` the other, ``size`` where they differ most; where
    nothing differs, one of the first says so. Sizes below 4 bytes count where there are no others.
    """
    cases = {case.where: case for case in (one, other)}
    each = {label: _times_of_launches(case) for label, case in cases.items()}
    sizes = in_common([times for several in each.values() for times in several])
    if not sizes:
        raise CannotJudgeError(f"it has no size in common with {other.name}")
    (first, ours), (second, theirs) = each.items()
    ratios = {
        size: median(times[size] for times in ours) / median(times[size] for times in theirs)
        for size in sizes
    }

    def finding(span: Sequence[int]) -> Finding | None:
        slower, faster = (first, second) if ratios[span[0]] > 1 else (second, first)
        shares = {size: max(ratios[size], 1 / ratios[size]) - 1 for size in span}
        means = {
            label: [
                math.exp(math.fsum(math.log(times[size]) for size in span) / len(span))
                for times in several
            ]
            for label, several in each.items()
        }
        interval = intervals.of_ratio(means[slower], means[faster])
        how = _certainty(means[slower], means[faster], interval)
        if not how:
            return None
        value = median(means[slower]) / median(means[faster]) - 1
        worst = max(shares, key=shares.__getitem__)
        # A time without messages, or of an empty one, has no size to name.
        where, by = f" at {span[0]} bytes" if sizes != [0] else "", f"{_percent(value)} %"
        if len(span) > 1:
            where = f" from {span[0]} to {span[-1]} bytes"
            by = f"{_percent(min(shares.values()))} to {_percent(max(shares.values()))} %, {by} on"
            by += f" average, most at {worst} bytes"
        if interval is not None:
            interval = (interval[0] - 1, interval[1] - 1)
            by += f" (95% interval {_percent(interval[0])} to {_percent(interval[1])} %)"
        level, bound = cases[slower].settings.slower.level(value, interval)
        reason = f"slower than {cases[faster].name}{where}, by {by}; {how}"
        if level in (*FLAGGED, Level.INCONCLUSIVE):
            reason += f" ({level.value}: above {_percent(bound)} % is flagged)"
        return Finding(
            "slower",
            level,
            slower,
            reason,
            size=worst,
            value=value,
            bound=bound,
            interval=interval,
            others=tuple(size for size in span if size != worst),
            common=common_sizes(sizes),
            against=faster,
        )

    found = []
    for span in _spans(ratios, ALIKE):
        whole = finding(span)
        found.append(whole)
        slower = cases[first if ratios[span[0]] > 1 else second]
        bound = slower.settings.slower.fail
        if bound is not None and (whole is None or whole.level is not Level.FAIL):
            # A part may be beyond the bound where all of it together is not.
            within = {size: ratios[size] for size in span}
            parts = map(finding, _spans(within, max(ALIKE, bound)))
            found += [part for part in parts if part is not None and part.level is Level.FAIL]
    found = [one for one in found if one is not None]
    if not found:
        common = common_sizes(sizes)
        reason = f"no slower or faster than {other.name} {common}, as far as launches show"
        alike = Finding("slower", Level.PASS, first, reason, value=0.0, common=common)
        return [replace(alike, against=second)]
    return found


def _times_of_launches(case: CaseCurves) -> list[dict[int, float]]:
    """Return the times of a case's launches, by size."""
    settings = case.settings.slower
    if case.curve.sizes[-1] < settings.least_size:
        return [_by_size(launch) for launch in case.launches]
    return times_of_each(case.launches, settings)


def _spans(ratios: Mapping[int, float], least: float) -> Iterator[list[int]]:
    """Yield ranges of sizes that differ the same way by a share of ``least`` or more."""
    sizes = [*ratios]
    signs = [
        0 if 1 / (1 + least) < ratio < 1 + least else math.copysign(1, math.log(ratio))
        for ratio in ratios.values()
    ]
    for place in range(1, len(sizes) - 1):
        before, after = signs[place - 1], signs[place + 1]
        if signs[place] == 0 and before == after and before * math.log(ratios[sizes[place]]) > 0:
            signs[place] = before
    for sign, group in groupby(zip(sizes, signs, strict=True), key=lambda one: one[1]):
        span = [size for size, _ in group]
        apart = max(max(ratios[size], 1 / ratios[size]) for size in span)
        if sign and (len(span) > 1 or len(sizes) == 1 or apart >= 1 + ALONE):
            yield span


def _certainty(
    slower: Sequence[float], faster: Sequence[float], interval: tuple[float, float] | None
) -> str:
    """Return how sure a difference is, in words; empty where launches do not show it."""
    if min(len(slower), len(faster)) == 1:
        alone = len(slower) == len(faster)
        return f"one launch {'each' if alone else 'of one of them'}: repeat"
    if interval is not None and interval[0] > 1:
        return CERTAIN
    return f"{LIKELY}: all launches are slower" if min(slower) > max(faster) else ""


def _percent(share: float) -> str:
    return f"{100 * share:.3g}" if share < 9.995 else f"{100 * share:.0f}"


def _differences(compared: ComparedCases) -> Iterator[Finding]:
    """Yield in what two configurations differ; of more, the envelope and the score say it."""
    if len(compared.cases) != 2:
        return
    one, other = compared.cases.values()
    bounds = (one.settings.slower, other.settings.slower)
    if all((each.warn, each.fail) == (None, None) for each in bounds):
        return
    try:
        yield from map(compared.weighed, differences(one, other))
    except CannotJudgeError as error:
        yield undefined("slower", one.where, str(error)).ruled(Level.SHOWN)


def _envelopes(compared: ComparedCases) -> Iterator[Finding]:
    """Yield the findings on each case; one alone has no envelope, which is only shown."""
    cases = compared.cases
    # Partitions may have bounds of their own; mostly they have the same.
    by_settings: dict[Above, set[str]] = {}
    for case in compared.judged():
        by_settings.setdefault(case.settings.envelope, set()).add(case.where)
    for settings, asked in by_settings.items():
        for finding in above_envelope(
            {label: case.curve for label, case in cases.items()},
            settings,
            launches={label: case.launches for label, case in cases.items()},
            crossings={label: one.crossing for label, one in cases.items() if one.crossing},
            pairs={sides: launches for sides, (launches, _) in compared.pairs.items()},
            only=compared.only,
            layers={label: one.layer for label, one in cases.items()},
        ):
            if len(cases) == 1 and finding.level is Level.UNDEFINED:
                yield finding.ruled(Level.SHOWN)
            elif finding.where in asked:
                yield compared.weighed(finding)


def _floors(compared: ComparedCases) -> Iterator[Finding]:
    """Yield the finding on each case that has another environment at its place."""
    for case in compared.judged():
        others = {
            label: other.launches
            for label, other in compared.cases.items()
            if other.place and other.place == case.place and other.environment != case.environment
        }
        finding = floor(
            case.launches,
            others,
            where=case.where,
            settings=case.settings.floor_inside if case.inside else case.settings.floor,
            pairs={
                label: compared.pairs[case.where, label][0]
                for label in others
                if (case.where, label) in compared.pairs
            },
            weighed=compared.weighed,
        )
        if finding is not None:
            yield finding


CRITERIA = (
    Criterion(
        {"envelope": ENVELOPE},
        {"envelope": "envelope"},
        compare=_envelopes,
        note="{count} {have} no envelope, since no other configuration measured the same: {cases}",
    ),
    Criterion(
        {"floor": FLOOR, "floor_inside": FLOOR_INSIDE},
        {"floor": "floor"},
        compare=_floors,
    ),
    Criterion(
        {"slower": SLOWER},
        {"slower": "slower"},
        compare=_differences,
        group=lambda case: case.function or None,
        noted=Above(0.0),
    ),
)
