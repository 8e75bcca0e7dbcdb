"""Confirmation of flagged sizes by measuring them again, and when it is settled (criterion 7)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from netproof import criteria
from netproof.criteria import Confirmation, Finding, Level
from netproof.session.again import MeasuredAgain
from netproof.verdict import refining
from netproof.verdict.disturbing import worst_of
from netproof.verdict.judgement import bounds_of, flagged, rule
from netproof.verdict.subject import Ruling, Subject


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
    return to_come <= 0 or all(_settled(subject, flag, again, to_come) for flag in flags)


def _settled(subject: Subject, flag: Finding, again: MeasuredAgain, to_come: int) -> bool:
    confirmed = confirmation(subject, flag, again)
    if confirmed.level is Level.UNDEFINED:
        return False
    if confirmed.level is Level.INCONCLUSIVE:
        return not again.calm(subject.settings.disturbance)
    shown, launches = confirmed.flagged, confirmed.launches
    sure = 2 * shown > launches + to_come or 2 * (shown + to_come) <= launches
    return sure or shown in (0, launches)


def failed(
    subject: Subject, flags: Sequence[Finding], again: MeasuredAgain | None, most: int
) -> bool:
    """Check whether one of the flags is settled, as in ``settled``, and fails its case."""
    if again is None:
        return False
    to_come = max(most - len(again.launches) - len(again.faults), 0)
    return any(
        _settled(subject, flag, again, to_come)
        and rule(subject, flag, confirmation(subject, flag, again)).level is Level.FAIL
        for flag in flags
    )


def confirmation(
    subject: Subject, finding: Finding, again: MeasuredAgain | None
) -> Confirmation | None:
    """Return the confirmation of a flag; None where nothing was measured again.

    Undisturbed launches decide if they are enough; else a failure that all confirm is inconclusive.
    """
    if again is None:
        return None
    settings = subject.confirm_settings()
    undisturbed = again.calm(subject.settings.disturbance)
    enough = len(undisturbed) >= settings.launches
    confirmed = criteria.confirm(
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
    return dataclasses.replace(confirmed, level=level, reason="; ".join(why))


def rule_all(
    subject: Subject, findings: Sequence[Finding], again: MeasuredAgain | None
) -> tuple[Ruling, ...]:
    """Return the rulings on findings along a curve, with what was measured again.

    Rulings on sizes between those of the curve follow, see ``refining``.
    """
    flags = flagged(findings)
    rulings = tuple(
        rule(subject, finding, confirmation(subject, finding, again) if finding in flags else None)
        for finding in findings
    )
    rulings += refining.rulings(subject, again)
    if again is None or not again.crashes:
        return rulings
    where = str(subject)
    why = f"around flagged sizes {'; '.join(map(str, again.crashes))}"
    crashes = Finding("crashes", Level.WARN, where, why, value=len(again.crashes))
    return (*rulings, rule(subject, crashes, None))
