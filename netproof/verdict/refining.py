"""Rulings on measurements at closer sizes, between the sizes of a curve (criterion 7)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from netproof import criteria
from netproof.criteria import Bend, Confirmation, Finding, Level, Region
from netproof.criteria.registry import CONFIRMED_BY_MEASURING
from netproof.measurement.curve import Curve
from netproof.measurement.disturbance import disturbed
from netproof.session.again import MeasuredAgain
from netproof.verdict import judgement
from netproof.verdict.disturbing import worst_of
from netproof.verdict.subject import Ruling, Subject

CRITERION = "refinement"
"""Name of the finding that closer sizes could not be judged."""


def places(subject: Subject) -> tuple[Bend, ...]:
    """Return where neighbouring slopes of a case's first launches disagree and nothing is flagged.

    None where the site refines nothing, below the sizes that criteria judge, and from half to twice
    a flagged size, where it is measured closer anyway.
    """
    settings = subject.settings.refine
    if settings.slopes is None or subject.measured.curve.sizes == (0,):
        return ()
    held = _held(subject)
    if not held:
        return ()
    judged_from = min(bounds.least_size for bounds in held.values())
    settings = dataclasses.replace(settings, least_size=max(settings.least_size, judged_from))
    first = [launch.curve for launch in subject.measured.first().launches]
    found = criteria.kinks(first, dataclasses.replace(settings, most=len(first[0].sizes)))
    flags = judgement.flagged(judgement.smoothness(subject))
    free = [one for one in found if not any(_alongside(one, flag) for flag in flags)]
    return tuple(free[: settings.most])


def closer_sizes(subject: Subject) -> tuple[tuple[int, ...], ...]:
    """Return the sizes in bytes of a launch at closer sizes, increasing, by region."""
    element, settings = subject.confirm_settings().element_bytes, subject.settings.refine
    found = []
    for region in criteria.regions(places(subject)):
        several = [criteria.closer_sizes(place, settings, element) for place in region.places]
        found.append(tuple(sorted({size for sizes in several for size in sizes})))
    return tuple(found)


def rulings(subject: Subject, again: MeasuredAgain | None) -> tuple[Ruling, ...]:
    """Return the rulings on closer sizes, one for each region with a finding.

    A region that was not measured at closer sizes is shown; one with too few complete launches is
    inconclusive.
    """
    found = (_ruling(subject, region, again) for region in criteria.regions(places(subject)))
    return tuple(ruling for ruling in found if ruling is not None)


def settled(subject: Subject, again: MeasuredAgain | None, most: int) -> bool:
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
    undisturbed = again.calm(subject.settings.disturbance)
    return not undisturbed or all(
        ruling.level is not Level.INCONCLUSIVE for ruling in rulings(subject, again)
    )


def failed(subject: Subject, again: MeasuredAgain | None, most: int) -> bool:
    """Check whether the rulings on closer sizes are settled, and fail the case."""
    return settled(subject, again, most) and any(
        ruling.level is Level.FAIL for ruling in rulings(subject, again)
    )


def _held(subject: Subject) -> dict[str, criteria.Bounds]:
    """Return the bounds that criteria on single sizes assert."""
    several = {name: judgement.bounds_of(name, subject.settings) for name in CONFIRMED_BY_MEASURING}
    return {
        name: bounds
        for name, bounds in several.items()
        if (bounds.warn, bounds.fail) != (None, None)
    }


def _alongside(place: Bend, flag: Finding) -> bool:
    return flag.size is not None and flag.size / 2 <= place.size <= 2 * flag.size


def _ruling(subject: Subject, region: Region, again: MeasuredAgain | None) -> Ruling | None:
    grid = subject.measured.first().curve.sizes
    launches, loads = _measured(region, grid, again)
    if again is None or (not launches and (again.launches or not again.faults)):
        return _open(subject, region, Level.SHOWN, ("it was not measured at closer sizes",))
    settings = subject.settings
    where = f" on {', '.join(again.nodes)}, job {again.jobid}"
    wanted = settings.confirm.launches
    if len(launches) < wanted:
        counted = f"{len(launches)} launches at closer sizes{where}, and this takes {wanted}"
        return _open(subject, region, Level.INCONCLUSIVE, (counted, *again.faults))
    undisturbed = [
        curve
        for curve, load in zip(launches, loads, strict=True)
        if not disturbed(load, settings.disturbance)
    ]
    enough = len(undisturbed) >= wanted
    shown = criteria.found_closer(
        region, grid, undisturbed if enough else launches, _held(subject), where=str(subject)
    )
    if shown is None:
        return None
    level = shown.finding.level
    why = [
        f"{shown.flagged} of {shown.launches} launches at closer sizes show it{where}",
        _kink(region),
        *again.faults,
    ]
    if not enough and len(undisturbed) < len(launches):
        noise = worst_of(loads, settings.disturbance)
        why.append(f"the machine was disturbed: {'; '.join(noise)}")
        if level is Level.FAIL:
            level = Level.INCONCLUSIVE
    confirmed = Confirmation(shown.finding, level, shown.flagged, shown.launches, "; ".join(why))
    return judgement.rule(subject, shown.finding, confirmed)


def _measured(
    region: Region, grid: Sequence[int], again: MeasuredAgain | None
) -> tuple[list[Curve], list[tuple]]:
    """Return the launches with a region's sizes, and the load of their nodes."""
    if again is None:
        return [], []
    loads = again.loads or ((),) * len(again.launches)
    usable = [
        (curve, load)
        for curve, load in zip(again.launches, loads, strict=True)
        if criteria.measured_closer(region, grid, curve)
    ]
    return [curve for curve, _ in usable], [load for _, load in usable]


def _kink(region: Region) -> str:
    strongest = max(region.places, key=lambda place: place.disagreement)
    return f"looked for since {strongest.why}"


def _open(subject: Subject, region: Region, level: Level, why: Sequence[str]) -> Ruling:
    """Return a ruling on a region without a result from closer sizes."""
    reason = "; ".join(
        (f"from {region.below} to {region.above} bytes {why[0]}", _kink(region), *why[1:])
    )
    finding = Finding(CRITERION, level, str(subject), reason, region.places[0].size)
    return judgement.rule(subject, finding, None)
