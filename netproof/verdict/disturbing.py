"""Disturbed launches: the case without them, and findings that rest on them."""

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
    """Return the case with its undisturbed launches alone if they are enough; else as it is."""
    launches, settings = subject.measured.launches, subject.settings.disturbance
    quiet = [one for one in launches if not disturbed(one.loads, settings)]
    if len(quiet) == len(launches) or len(quiet) < subject.settings.confirm.launches:
        return subject
    return dataclasses.replace(subject, measured=subject.measured.with_launches(quiet))


def never_calm(subject: Subject) -> bool:
    """Check whether every launch of a case was disturbed."""
    settings = subject.settings.disturbance
    return all(disturbed(one.loads, settings) for one in subject.measured.launches)


def disturbances(subject: Subject) -> tuple[str, ...]:
    """Return the worst disturbance of the launches that ``undisturbed`` had to keep."""
    kept = [one.loads for one in undisturbed(subject).measured.launches]
    return worst_of(kept, subject.settings.disturbance)


def worst_of(
    launches: Sequence[Sequence[NodeLoad]], settings: DisturbanceSettings
) -> tuple[str, ...]:
    """Return the disturbances of the most disturbed launch; nothing where none was.

    A hypervisor may disturb a launch during which other programs did least.
    """
    several = [loads for loads in launches if disturbed(loads, settings)]
    return disturbed(max(several, key=others_share), settings) if several else ()


def without_noise(finding: Finding, noise: Sequence[str]) -> Finding:
    """Return a finding that rests on disturbed launches: a failure is inconclusive."""
    if not noise or finding.level not in (Level.FAIL, Level.INCONCLUSIVE):
        return finding
    reason = f"{finding.reason}; the machine was disturbed: {'; '.join(noise)}"
    return dataclasses.replace(finding, level=Level.INCONCLUSIVE, reason=reason)
