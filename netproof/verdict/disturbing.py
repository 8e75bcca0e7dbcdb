"""What rests on disturbed launches: the case without them, and a finding that says so."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from netproof.criteria import Finding, Level
from netproof.measurement.disturbance import (
    DisturbanceSettings,
    NodeLoad,
    disturbed,
    others_share,
)
from netproof.verdict.subject import Subject


def undisturbed(subject: Subject) -> Subject:
    """The case of its undisturbed launches, if it has enough of them; else as it is."""
    launches, settings = subject.measured.launches, subject.settings.disturbance
    calm = [one for one in launches if not disturbed(one.loads, settings)]
    if len(calm) == len(launches) or len(calm) < subject.settings.confirm.launches:
        return subject
    return dataclasses.replace(subject, measured=subject.measured.with_launches(calm))


def never_calm(subject: Subject) -> bool:
    """Whether something else ran on the nodes in every one of its launches."""
    settings = subject.settings.disturbance
    return all(disturbed(one.loads, settings) for one in subject.measured.launches)


def disturbances(subject: Subject) -> tuple[str, ...]:
    """What else the nodes did in the launches that ``undisturbed`` had to keep, of the worst."""
    kept = [one.loads for one in undisturbed(subject).measured.launches]
    return worst_of(kept, subject.settings.disturbance)


def worst_of(
    launches: Sequence[Sequence[NodeLoad]], settings: DisturbanceSettings
) -> tuple[str, ...]:
    """What else the nodes did in the most disturbed of launches; nothing where none was.

    A launch may be disturbed by a hypervisor in which others did least.
    """
    several = [loads for loads in launches if disturbed(loads, settings)]
    return disturbed(max(several, key=others_share), settings) if several else ()


def without_noise(finding: Finding, noise: Sequence[str]) -> Finding:
    """A finding that rests on disturbed launches: what fails by them has not been shown to."""
    if not noise or finding.level not in (Level.FAIL, Level.INCONCLUSIVE):
        return finding
    reason = f"{finding.reason}; the machine was disturbed: {'; '.join(noise)}"
    return dataclasses.replace(finding, level=Level.INCONCLUSIVE, reason=reason)
