"""What measuring flagged sizes again confirms, and when it has said what it can (criterion 7)."""

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
    """Whether launches around flagged sizes have said what they can, ``most`` at most.

    Each flag has been seen again by all of as many launches as confirming takes or more, by none
    of them, or by so many that the launches to come cannot change which are the majority; or
    something else has run alongside every one of them.
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
    """Whether one of the flags is settled, as ``settled`` has it, and fails its case."""
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
    """What measuring again says of a flag; None where nothing was measured again for it.

    Launches that nothing disturbed decide where there are enough of them; else a failure that the
    others confirm is inconclusive.
    """
    if again is None:
        return None
    settings = subject.confirm_settings()
    calm = again.calm(subject.settings.disturbance)
    enough = len(calm) >= settings.launches
    confirmed = criteria.confirm(
        finding,
        calm if enough else again.launches,
        bounds=bounds_of(finding.criterion, subject.settings),
        settings=settings,
    )
    where = f" on {', '.join(again.nodes)}, job {again.jobid}"
    why = [confirmed.reason + where, *again.faults]
    level = confirmed.level
    if not enough and len(calm) < len(again.launches):
        noise = worst_of(again.loads, subject.settings.disturbance)
        why.append(f"the machine was disturbed: {'; '.join(noise)}")
        if level in (Level.FAIL, Level.UNDEFINED):
            level = Level.INCONCLUSIVE
    return dataclasses.replace(confirmed, level=level, reason="; ".join(why))


def rule_all(
    subject: Subject, findings: Sequence[Finding], again: MeasuredAgain | None
) -> tuple[Ruling, ...]:
    """What the verdict makes of the findings along a curve, with what was measured again.

    Behind them stands what sizes between those of the curve show, see ``refining``.
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
