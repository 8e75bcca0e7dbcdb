"""Launches made again around flagged sizes, and between sizes: what they show, and when enough."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from netproof.criteria import Bounds, Confirmation, Finding, Level, confirming
from netproof.criteria.confirming import MOST_PLACES, Bend, Region
from netproof.criteria.findings import FLAGGED, then
from netproof.criteria.launches import crash_share, crashed
from netproof.criteria.registry import CONFIRMED_BY_MEASURING
from netproof.measurement.disturbance import disturbed
from netproof.session.measured import Crash, MeasuredAgain
from netproof.verdict.engine import (
    Key,
    Subject,
    along,
    bounds_of,
    flagged,
    rule,
    smoothness,
    worst_of,
)


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
    crashes: dict[tuple[str, str], list[Crash]] = defaultdict(list)
    for subject in subjects:
        case, measured = subject.case, subject.measured
        place, again = (case.partition, case.environment), measured.again
        first.setdefault(place, subject)
        counts[place] += len(measured.launches) + len(measured.crashes)
        crashes[place] += measured.crashes
        if again is not None:
            counts[place] += again.made
            crashes[place] += again.crashes
        for peer in (peer for launch in measured.launches for peer in launch.peers):
            counts[case.partition, peer.environment] += 1 + len(peer.crashes)
            crashes[case.partition, peer.environment] += peer.crashes
    found = []
    for place, subject in first.items():
        failed, settings = len(crashes[place]), subject.settings.crash
        finding = crash_share(failed, counts[place], where=" ".join(place), settings=settings)
        if finding.level in FLAGGED:
            words = " | ".join(dict.fromkeys(crash.said for crash in crashes[place]))
            finding = dataclasses.replace(finding, reason=f"{finding.reason}: {words}")
        found.append(LaunchCount(*place, counts[place], failed, finding))
    return tuple(found)


def dense_sizes(subject: Subject, findings: Sequence[Finding]) -> tuple[int, ...]:
    """Return the sizes in bytes to measure again for several flags of one case, increasing."""
    settings = subject.confirm_settings()
    sizes = {size for finding in findings for size in confirming.dense_sizes(finding, settings)}
    return tuple(sorted(sizes))


REFINEMENT = "refinement"
"""Name of the finding that closer sizes could not be judged."""


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
    found = confirming.kinks(first, slopes, max(4, judged_from))
    flags = flagged(smoothness(subject))
    sizes = [flag.size for flag in flags if flag.size is not None]
    free = [one for one in found if not any(s / 2 <= one.size <= 2 * s for s in sizes)]
    return tuple(free[:MOST_PLACES])


def closer_sizes(subject: Subject) -> tuple[tuple[int, ...], ...]:
    """Return the sizes in bytes of a launch at closer sizes, increasing, by region."""
    element = subject.confirm_settings().element_bytes
    return tuple(
        tuple(sorted({size for one in region for size in confirming.closer_sizes(one, element)}))
        for region in confirming.regions(places(subject))
    )


def closer_findings(subject: Subject, again: MeasuredAgain | None) -> tuple[Finding, ...]:
    """Return the findings at closer sizes, one for each region at most.

    A region that was not measured at closer sizes is shown; one with too few complete launches is
    inconclusive.
    """
    found = (_closer(subject, region, again) for region in confirming.regions(places(subject)))
    return tuple(filter(None, found))


def closer_settled(subject: Subject, again: MeasuredAgain | None, most: int) -> bool:
    """Check whether launches at closer sizes have decided, ``most`` at most.

    As many as confirming takes are enough. More are needed where some are not complete, or only
    disturbed ones show a failure.
    """
    if not places(subject):
        return True
    if again is None:
        return False
    made = len(again.launches) + len(again.faults)
    if made >= most:
        return True
    if made < subject.settings.confirm.launches:
        return False
    undisturbed = again.undisturbed(subject.settings.disturbance)
    return not undisturbed or all(
        finding.level is not Level.INCONCLUSIVE for finding in closer_findings(subject, again)
    )


def _held(subject: Subject) -> dict[str, Bounds]:
    several = {name: bounds_of(name, subject.settings) for name in CONFIRMED_BY_MEASURING}
    return {name: bounds for name, bounds in several.items() if bounds.asserted}


def _closer(subject: Subject, region: Region, again: MeasuredAgain | None) -> Finding | None:
    grid, settings = subject.measured.first().curve.sizes, subject.settings
    strongest = max(region, key=lambda place: place.disagreement)
    looked_for = f"looked for since {strongest.why}"

    def unknown(level: Level, why: str, *more: str) -> Finding:
        span = f"from {region[0].below} to {region[-1].above} bytes {why}"
        reason, size = span + "".join(map(then, (looked_for, *more))), region[0].size
        return rule(subject, Finding(REFINEMENT, level, str(subject), reason, size))

    not_measured = "it was not measured at closer sizes"
    if again is None:
        return unknown(Level.SHOWN, not_measured)
    loads = again.loads or ((),) * len(again.launches)
    usable = [
        (curve, load)
        for curve, load in zip(again.launches, loads, strict=True)
        if confirming.measured_closer(region, grid, curve)
    ]
    if not usable and (again.launches or not again.faults):
        return unknown(Level.SHOWN, not_measured)
    where = f" on {', '.join(again.nodes)}, job {again.jobid}"
    wanted = settings.confirm.launches
    if len(usable) < wanted:
        counted = f"{len(usable)} launches at closer sizes{where}, and this takes {wanted}"
        return unknown(Level.INCONCLUSIVE, counted, *again.faults)
    quiet = [curve for curve, load in usable if not disturbed(load, settings.disturbance)]
    enough = len(quiet) >= wanted
    curves = quiet if enough else [curve for curve, _ in usable]
    found = confirming.found_closer(region, grid, curves, _held(subject), where=str(subject))
    if found is None:
        return None
    shown, confirmed = found
    level = shown.level
    why = [
        f"{confirmed.flagged} of {confirmed.launches} launches at closer sizes show it{where}",
        looked_for,
        *again.faults,
    ]
    if not enough and len(quiet) < len(usable):
        noise = worst_of([load for _, load in usable], settings.disturbance)
        why.append(f"the machine was disturbed: {'; '.join(noise)}")
        if level is Level.FAIL:
            level = Level.INCONCLUSIVE
    return rule(
        subject,
        shown,
        dataclasses.replace(confirmed, level=level, reason=why[0] + "".join(map(then, why[1:]))),
    )


def settled(
    subject: Subject, flags: Sequence[Finding], again: MeasuredAgain | None, most: int
) -> bool:
    """Check whether launches around flagged sizes have decided, ``most`` at most.

    Each flag was seen again by all of enough launches, by none, or by so many that the launches to
    come cannot change the majority. A flag is settled too if every launch was disturbed.
    """
    if again is None:
        return False
    to_come = most - len(again.launches) - len(again.faults)
    confirmed = (confirmation(subject, flag, again) for flag in flags)
    return to_come <= 0 or all(_settled(subject, one, again, to_come) for one in confirmed)


def _settled(subject: Subject, confirmed: Confirmation, again: MeasuredAgain, to_come: int) -> bool:
    if confirmed.level is Level.UNDEFINED:
        return False
    if confirmed.level is Level.INCONCLUSIVE:
        return not again.undisturbed(subject.settings.disturbance)
    shown, launches = confirmed.flagged, confirmed.launches
    sure = 2 * shown > launches + to_come or 2 * (shown + to_come) <= launches
    return sure or shown in (0, launches)


def failed(
    subject: Subject, flags: Sequence[Finding], again: MeasuredAgain | None, most: int
) -> bool:
    """Check whether a flag or a place at closer sizes is settled, and fails its case."""
    ruled: list[Finding] = []
    if again is not None:
        to_come = max(most - len(again.launches) - len(again.faults), 0)
        for flag in flags:
            confirmed = confirmation(subject, flag, again)
            if _settled(subject, confirmed, again, to_come):
                ruled.append(rule(subject, flag, confirmed))
    if closer_settled(subject, again, most):
        ruled += closer_findings(subject, again)
    return any(finding.level is Level.FAIL for finding in ruled)


def confirmation(subject: Subject, finding: Finding, again: MeasuredAgain) -> Confirmation:
    """Return the confirmation of a flag by what was measured again.

    Undisturbed launches decide if they are enough; else a failure that all confirm is inconclusive.
    """
    settings = subject.confirm_settings()
    undisturbed = again.undisturbed(subject.settings.disturbance)
    enough = len(undisturbed) >= settings.launches
    confirmed = confirming.confirm(
        finding,
        undisturbed if enough else again.launches,
        bounds=bounds_of(finding.criterion, subject.settings),
        settings=settings,
    )
    where = f" on {', '.join(again.nodes)}, job {again.jobid}"
    why = [confirmed.reason + where, *again.faults]
    level = confirmed.level
    if not enough and len(undisturbed) < len(again.launches):
        noise = worst_of(again.loads, subject.settings.disturbance)
        why.append(f"the machine was disturbed: {'; '.join(noise)}")
        if level in (Level.FAIL, Level.UNDEFINED):
            level = Level.INCONCLUSIVE
    return dataclasses.replace(confirmed, level=level, reason=why[0] + "".join(map(then, why[1:])))


def rule_all(
    subject: Subject, findings: Sequence[Finding], again: MeasuredAgain | None
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
    if again is None or not again.crashes:
        return ruled
    crashes = crashed(str(subject), [*map(str, again.crashes)], "around flagged sizes ")
    return (*ruled, rule(subject, crashes))


def findings_along(subjects: Iterable[Subject]) -> dict[Key, tuple[Finding, ...]]:
    """Return the findings along the curves of cases that are compared, by their keys."""
    job = {subject.case.key(): subject for subject in subjects}
    return {key: rule_all(one, along(one, job), one.measured.again) for key, one in job.items()}
