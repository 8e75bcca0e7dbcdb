"""Launches made again around flagged sizes, and between sizes: what they show, and when enough."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from netproof.criteria import Bounds, Finding, Level
from netproof.criteria.findings import FLAGGED, CannotJudgeError, sizes_in_words, then
from netproof.criteria.launches import crash_share, crashed
from netproof.criteria.registry import BY_FINDING, CONFIRMED_BY_MEASURING
from netproof.criteria.settings import ConfirmSettings, needed_sizes
from netproof.measurement.case import Curve
from netproof.measurement.disturbance import disturbed
from netproof.session.measured import Launch
from netproof.verdict import engine
from netproof.verdict.engine import Key, Subject, flagged, rule

Again = Sequence[Launch]
"""Launches around flagged sizes of a case, and at closer ones."""

REFINEMENT = "refinement"
"""Name of the finding that closer sizes could not be judged."""

MOST_PLACES = 3
"""Places of a case that are measured closer, the strongest ones."""

IN_A_GAP = 2
"""Sizes in the gap on either side of a place."""

STEP = 1.2
"""Sizes within this factor count as one, since a slope over a short step is mostly noise."""


@dataclass(frozen=True)
class LaunchCount:
    """Launches of a configuration's complete cases, and how many of them crashed.

    ``launches``: with crashed launches, those around flagged sizes, and those paired with another
    configuration; ``finding``: on their share, see ``launches.crash_share``.
    """

    partition: str
    environment: str
    launches: int
    crashed: int
    finding: Finding


def launched(subjects: Iterable[Subject]) -> tuple[LaunchCount, ...]:
    """Count launches and crashes for each configuration of ``subjects``, in their order."""
    first: dict[tuple[str, str], Subject] = {}
    counts: Counter[tuple[str, str]] = Counter()
    crashes: dict[tuple[str, str], list[Launch]] = defaultdict(list)
    for subject in subjects:
        case, measured = subject.case, subject.measured
        place, again = (case.partition, case.environment), measured.again or ()
        first.setdefault(place, subject)
        counts[place] += len(measured.launches) + len(measured.crashes)
        crashes[place] += measured.crashes
        for one in again:
            counts[place] += one.steps + len(one.crashes)
            crashes[place] += one.crashes
        for peer in (peer for launch in measured.launches for peer in launch.peers):
            counts[case.partition, peer.environment] += 1 + len(peer.crashes)
            crashes[case.partition, peer.environment] += peer.crashes
    found = []
    for place, subject in first.items():
        failed, settings = len(crashes[place]), subject.settings.crash
        finding = crash_share(failed, counts[place], where=" ".join(place), settings=settings)
        if finding.level in FLAGGED:
            words = " | ".join(dict.fromkeys(crash.said for crash in crashes[place]))
            finding = replace(finding, reason=f"{finding.reason}: {words}")
        found.append(LaunchCount(*place, counts[place], failed, finding))
    return tuple(found)


def confirm(
    flagged: Finding,
    launches: Sequence[Curve],
    *,
    bounds: Bounds,
    settings: ConfirmSettings,
) -> Finding:
    """Return what launches measured again around a flagged size show of it.

    ``launches``: curves over ``settings.dense_sizes`` or more; ``bounds``: those of the finding.
    More than half of the usable launches confirm, each at any size from half to twice the flagged
    one. The level is ``SHOWN`` where the flag is unconfirmed, ``UNDEFINED`` with too few launches.
    """
    window, needed = needed_sizes(flagged, settings)
    wanted, span = min(settings.sizes, len(window)), range(window[0], window[-1] + 1)
    levels, unused = [], ""
    for number, curve in enumerate(launches, 1):
        measured = sum(size in window for size in curve.sizes)
        try:
            if missing := needed - set(curve.sizes):
                raise CannotJudgeError(f"it lacks {sizes_in_words(sorted(missing))}")
            if measured < wanted:
                raise CannotJudgeError(
                    f"it has {measured} of {wanted} sizes from {window[0]} to {window[-1]} bytes"
                )
            values = BY_FINDING[flagged.criterion].at_each(bounds, curve, fewest=3)
        except CannotJudgeError as error:
            unused += f"; launch {number} could not be used: {error}"
            continue
        reached = {bounds.level(one[0])[0] for size, one in values.items() if size in span}
        worst = [level for level in (Level.FAIL, Level.WARN) if level in reached]
        levels.append((*worst, Level.PASS)[0])
    again = sum(level in FLAGGED for level in levels)
    counted = f"{again} of {len(levels)} launches around {flagged.size} bytes show it again"
    if len(levels) < settings.launches:
        level, verdict = Level.UNDEFINED, f"not judged, which takes {settings.launches}: {counted}"
    elif 2 * again <= len(levels):
        level, verdict = Level.SHOWN, f"unconfirmed: {counted}"
    else:
        level = Level.FAIL if 2 * levels.count(Level.FAIL) > len(levels) else Level.WARN
        verdict = f"confirmed: {counted}"
    reason = f"{flagged.criterion} at {flagged.size} bytes {verdict}{unused}"
    return replace(flagged, level=level, reason=reason, repeated=(level, again, len(levels)))


class Bend(NamedTuple):
    """A size in bytes where the slopes to its neighbours disagree, by a pure number."""

    below: int
    size: int
    above: int
    disagreement: float


Region = tuple[Bend, ...]
"""Places whose gaps overlap, in increasing order."""


def kinks(launches: Sequence[Curve], least: float | None, least_size: int = 4) -> tuple[Bend, ...]:
    """Return the sizes where the slopes on both sides disagree, the strongest first.

    ``least``: as ``ConfirmSettings.slopes``. By more than half of the launches, with the same sign;
    none if one cannot be judged. On t = t₀ + n/r it is 0.17 at most where sizes double, at
    n = t₀·r. After SKaMPI's refinement (Reussner and others, EuroPVM/MPI 1998).
    """
    if least is None or not launches:
        return ()
    try:
        bounds = Bounds(least_size=least_size)
        several = [bounds.times(curve, at_least=3) for curve in launches]
    except CannotJudgeError:
        return ()
    sizes = _apart(list(several[0]))
    changes = []
    for times in several:
        slopes = [
            math.log(times[size] / times[before]) / math.log(size / before)
            for before, size in pairwise(sizes)
        ]
        changes.append([after - before for before, after in pairwise(slopes)])
    found = []
    for below, size, above, *rising in zip(sizes, sizes[1:], sizes[2:], *changes, strict=False):
        rising.sort()
        most = len(rising) // 2
        disagreement = max(rising[::-1][most], -rising[most])
        if disagreement >= least:
            found.append(Bend(below, size, above, disagreement))
    return tuple(sorted(found, key=lambda place: -place.disagreement))


def _apart(sizes: Sequence[int]) -> list[int]:
    """Return increasing sizes, one in the middle for all within a ``STEP``."""
    groups: list[list[int]] = []
    for size in sizes:
        if groups and size < STEP * groups[-1][0]:
            groups[-1].append(size)
        else:
            groups.append([size])
    return [group[len(group) // 2] for group in groups]


def regions(places: Sequence[Bend]) -> tuple[Region, ...]:
    """Group places whose gaps overlap, in increasing order."""
    found: list[Region] = []
    for place in sorted(places, key=lambda one: one.size):
        if found and place.below < found[-1][-1].above:
            found[-1] = (*found[-1], place)
        else:
            found.append((place,))
    return tuple(found)


def places(subject: Subject) -> tuple[Bend, ...]:
    """Return where neighbouring slopes of a case's first launches disagree and nothing is flagged.

    None where the site refines nothing, below the sizes that criteria judge, and from half to twice
    a flagged size, where it is measured closer anyway.
    """
    slopes = subject.settings.refine.slopes
    if slopes is None or subject.measured.curve.sizes == (0,):
        return ()
    held = _held(subject)
    if not held:
        return ()
    judged_from = min(bounds.least_size for bounds in held.values())
    first = [launch.curve for launch in subject.measured.first().launches]
    found = kinks(first, slopes, max(4, judged_from))
    flags = flagged(engine.smoothness(subject))
    sizes = [flag.size for flag in flags if flag.size is not None]
    free = [one for one in found if not any(s / 2 <= one.size <= 2 * s for s in sizes)]
    return tuple(free[:MOST_PLACES])


def closer_sizes(subject: Subject) -> tuple[tuple[int, ...], ...]:
    """Return the sizes in bytes of a launch at closer sizes, increasing, by region."""
    element = subject.confirm_settings().element_bytes
    return tuple(sizes_of(region, element) for region in regions(places(subject)))


def sizes_of(region: Region, element_bytes: int = 1) -> tuple[int, ...]:
    """Return the sizes in bytes to measure for places: their own, and those in the gaps.

    Multiples of ``element_bytes``, evenly spaced in their logarithms, increasing.
    """
    found: set[int] = set()
    for one in region:
        found |= {one.below, one.size, one.above}
        for low, high in ((one.below, one.size), (one.size, one.above)):
            for part in range(1, IN_A_GAP + 1):
                size = low * (high / low) ** (part / (IN_A_GAP + 1))
                whole = round(size / element_bytes) * element_bytes
                found |= {whole} if one.below <= whole <= one.above else set()
    return tuple(sorted(found))


def closer_findings(subject: Subject, again: Again | None) -> tuple[Finding, ...]:
    """Return the findings at closer sizes, one for each region at most.

    A region that was not measured at closer sizes is shown; one with too few complete launches is
    inconclusive.
    """
    found = (_closer(subject, region, again) for region in regions(places(subject)))
    return tuple(filter(None, found))


def closer_settled(subject: Subject, again: Again | None, most: int) -> bool:
    """Check whether launches at closer sizes have decided, ``most`` at most.

    As many as confirming takes are enough. More are needed where some are not complete, or only
    disturbed ones show a failure.
    """
    if not places(subject):
        return True
    if again is None:
        return False
    if len(again) >= most:
        return True
    if len(again) < subject.settings.confirm.launches:
        return False
    return not _undisturbed(subject, again) or all(
        finding.level is not Level.INCONCLUSIVE for finding in closer_findings(subject, again)
    )


def _held(subject: Subject) -> dict[str, Bounds]:
    several = {
        name: BY_FINDING[name].bounds_in(subject.settings, inside=False)
        for name in CONFIRMED_BY_MEASURING
    }
    return {name: bounds for name, bounds in several.items() if bounds.asserted}


def _closer(subject: Subject, region: Region, again: Again | None) -> Finding | None:
    grid, wanted = subject.measured.first().curve.sizes, subject.settings.confirm.launches
    strongest = max(region, key=lambda place: place.disagreement)
    looked_for = (
        f"looked for since the slopes next to {strongest.size} bytes differ by"
        f" {strongest.disagreement:.2g}"
    )
    where = _where(subject)
    faults = [one.said for one in again or () if not one.curves]
    usable = [one for one in _whole(again or ()) if measured_closer(region, grid, one.curve)]
    unknown: list[str] = []
    level = Level.SHOWN
    if again is None or ((not usable and len(again) > len(faults)) or not again):
        unknown = ["it was not measured at closer sizes", looked_for]
    elif len(usable) < wanted:
        level = Level.INCONCLUSIVE
        counted = f"{len(usable)} launches at closer sizes{where}, and this takes {wanted}"
        unknown = [counted, looked_for, *faults]
    if again is None or unknown:
        why = f"from {region[0].below} to {region[-1].above} bytes {unknown[0]}"
        why += "".join(map(then, unknown[1:]))
        return rule(subject, Finding(REFINEMENT, level, str(subject), why, region[0].size))
    curves, noise = _quiet(subject, usable)
    shown = found_closer(region, grid, curves, _held(subject), where=str(subject))
    if shown is None or shown.repeated is None:
        return None
    _, count, several = shown.repeated
    reason = f"{count} of {several} launches at closer sizes show it{where}"
    return rule(subject, shown, _weighed(shown, noise, reason, looked_for, *faults))


def _whole(again: Again) -> list[Launch]:
    """Return the complete launches."""
    return [one for one in again if one.curves]


def _undisturbed(subject: Subject, again: Again) -> list[Launch]:
    """Return the complete launches that nothing disturbed."""
    settings = subject.settings.disturbance
    return [one for one in _whole(again) if not disturbed(one.loads, settings)]


def _where(subject: Subject) -> str:
    """Return where a case was repeated: in its own job, on its nodes."""
    return f" on {', '.join(subject.measured.nodes())}, job {subject.measured.jobid}"


def _quiet(subject: Subject, launches: Again) -> tuple[list[Curve], tuple[str, ...]]:
    """Return the undisturbed launches if they are enough, else all, and what disturbed these."""
    quiet = _undisturbed(subject, launches)
    if len(quiet) >= subject.settings.confirm.launches:
        return [one.curve for one in quiet], ()
    loads = [one.loads for one in launches]
    noises = [disturbed(load, subject.settings.disturbance) for load in loads]
    return [one.curve for one in launches], engine.worst_of(zip(loads, noises, strict=True))


def _weighed(shown: Finding, noise: Sequence[str], reason: str, *more: str) -> Finding:
    """Return what repeats show, with reasons; a failure by disturbed ones is inconclusive."""
    level, disturbed_by = shown.level, ""
    if noise:
        disturbed_by = f"the machine was disturbed: {'; '.join(noise)}"
        level = Level.INCONCLUSIVE if level in (Level.FAIL, Level.UNDEFINED) else level
    _, count, launches = shown.repeated or (level, 0, 0)
    reason += "".join(map(then, (*more, disturbed_by)))
    return shown.but(level=level, reason=reason, repeated=(level, count, launches))


def measured_closer(region: Region, grid: Sequence[int], launch: Curve) -> bool:
    """Check whether a launch has a region's places, and a size between two of ``grid``."""
    wanted = {size for one in region for size in (one.below, one.size, one.above)}
    here = {size for size in launch.sizes if region[0].below <= size <= region[-1].above}
    return wanted <= here and bool(here - set(grid))


def found_closer(
    region: Region,
    grid: Sequence[int],
    launches: Sequence[Curve],
    bounds: Mapping[str, Bounds],
    *,
    where: str,
) -> Finding | None:
    """Return the worst finding that most launches show at the same size of a region, or None.

    ``grid``: the sizes of the curve; ``bounds``: by the name of the finding. A criterion sees no
    size outside the region. A lasting fault shows at the same size, and a passing one does not.
    """
    worst: list[Finding] = []
    for name, held in bounds.items():
        criterion = BY_FINDING[name]
        by_size: dict[int, list[tuple[float, tuple[int, ...]]]] = defaultdict(list)
        for launch in launches:
            here = launch.within(region[0].below, region[-1].above)
            try:
                values = criterion.at_each(held, here, fewest=3)
            except CannotJudgeError:
                continue
            for size, found in values.items():
                by_size[size].append(found)
        for size, several in by_size.items():
            if 2 * len(several) <= len(launches):
                continue
            by_worst = sorted(several, key=lambda one: one[0], reverse=not held.flags_small)
            value, others = by_worst[len(launches) // 2]
            level, bound = held.level(value)
            if level not in FLAGGED or bound is None:
                continue
            flagged = sum(held.reached(one, bound) for one, _ in several)
            smaller, larger = ([s for s in grid if s < size], [s for s in grid if s > size])
            place = "between" if smaller and larger else "next to"
            nearest = " and ".join(map(str, (*smaller[-1:], *larger[:1])))
            reason = (
                f"at {size} bytes, {place} the {nearest} bytes of its curve,"
                f" {criterion.sentence.format(f'{value:.3g}')}"
            )
            finding = held.finding(value, reason, size=size, compared_sizes=others)
            repeated = (level, flagged, len(launches))
            worst.append(replace(finding, criterion=name, where=where, repeated=repeated))
    return max(worst, key=lambda one: (one.level is Level.FAIL, one.excess), default=None)


def settled(subject: Subject, flags: Sequence[Finding], again: Again | None, most: int) -> bool:
    """Check whether launches around flagged sizes have decided, ``most`` at most.

    Each flag was seen again by all of enough launches, by none, or by so many that the launches to
    come cannot change the majority. A flag is settled too if every launch was disturbed.
    """
    if again is None:
        return False
    return len(again) >= most or all(sure for _, _, sure in _shown(subject, flags, again, most))


def _shown(
    subject: Subject, flags: Sequence[Finding], again: Again, most: int
) -> Iterator[tuple[Finding, Finding, bool]]:
    """Yield each flag, what repeats show of it, and whether launches to come cannot change that."""
    to_come = max(most - len(again), 0)
    for flag in flags:
        confirmed = confirmation(subject, flag, again)
        _, shown, launches = confirmed.repeated or (confirmed.level, 0, 0)
        sure = 2 * shown > launches + to_come or 2 * (shown + to_come) <= launches
        sure |= shown in (0, launches)
        if confirmed.level is Level.INCONCLUSIVE:
            sure = not _undisturbed(subject, again)
        yield flag, confirmed, sure and confirmed.level is not Level.UNDEFINED


def failed(subject: Subject, flags: Sequence[Finding], again: Again | None, most: int) -> bool:
    """Check whether a flag or a place at closer sizes is settled, and fails its case."""
    ruled: list[Finding] = []
    if again is not None:
        shown = _shown(subject, flags, again, most)
        ruled += [rule(subject, flag, confirmed) for flag, confirmed, sure in shown if sure]
    if closer_settled(subject, again, most):
        ruled += closer_findings(subject, again)
    return any(finding.level is Level.FAIL for finding in ruled)


def confirmation(subject: Subject, finding: Finding, again: Again) -> Finding:
    """Return what repeats show of a flag.

    Undisturbed launches decide if they are enough; else a failure that all confirm is inconclusive.
    """
    curves, noise = _quiet(subject, _whole(again))
    bounds = BY_FINDING[finding.criterion].bounds_in(subject.settings, inside=False)
    shown = confirm(finding, curves, bounds=bounds, settings=subject.confirm_settings())
    faults = (one.said for one in again if not one.curves)
    return _weighed(shown, noise, shown.reason + _where(subject), *faults)


def rule_all(
    subject: Subject, findings: Sequence[Finding], again: Again | None
) -> tuple[Finding, ...]:
    """Return findings along a curve with the verdict's levels, by what was measured again.

    Findings at sizes between those of the curve follow, see ``closer_findings``.
    """
    flags = flagged(findings) if again is not None else ()
    ruled = tuple(
        rule(subject, one, confirmation(subject, one, again) if again and one in flags else None)
        for one in findings
    )
    ruled += closer_findings(subject, again)
    crashes = [str(crash) for one in again or () for crash in one.crashes]
    if not crashes:
        return ruled
    return (*ruled, rule(subject, crashed(str(subject), crashes, "around flagged sizes ")))


def findings_along(
    subjects: Iterable[Subject], others: Iterable[Subject] = ()
) -> dict[Key, tuple[Finding, ...]]:
    """Return the findings along the curves of cases that are compared, by their keys.

    ``others``: cases that these are compared with as well.
    """
    own = {subject.case.key(): subject for subject in subjects}
    job = engine.by_place({subject.case.key(): subject for subject in others} | own)
    return {
        key: rule_all(one, engine.along(one, job), one.measured.again) for key, one in own.items()
    }
