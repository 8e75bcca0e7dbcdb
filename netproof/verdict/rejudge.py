"""A case rejudged by its references of today, and the result of the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netproof.benchmarks.registry import check_name
from netproof.criteria import Finding, Level
from netproof.measurement.case import Case
from netproof.session.session import CheckResult
from netproof.verdict import engine, limits
from netproof.verdict.engine import Subject
from netproof.verdict.limits import TIME_AT, Limits
from netproof.verdict.references import XFAIL, NotThere, ReferenceFile

Entries = Callable[[Case], Mapping[str, Any]]
"""A case's entries in a file of references by variable; raises NotThere, and NetproofError."""

JUDGED = "performance"
"""ReFrame's phase in which a check is compared with its references."""

MISSED = "failed to meet reference"
"""Beginning of ReFrame's message that a check failed its references."""

AGAINST = (Level.FAIL.value, Level.UNDEFINED.value, Level.INCONCLUSIVE.value)
"""Levels of a reference's finding that keep a check from passing."""

EXPECTED = "fails as expected"
ANSWERS = ("passed", "failed", "failed as expected", "inconclusive")
PASSED, FAILED, FAILED_AS_EXPECTED, INCONCLUSIVE = ANSWERS


@dataclass(frozen=True)
class Rejudged:
    """Result of today's references: findings, other faults, and an expected failure."""

    findings: tuple[Finding, ...] = ()
    faults: tuple[str, ...] = ()
    expected: str = ""

    @property
    def answer(self) -> str:
        """One of ``ANSWERS``."""
        levels = {finding.level for finding in self.findings}
        if self.faults or Level.FAIL in levels:
            return FAILED
        if Level.INCONCLUSIVE in levels:
            return INCONCLUSIVE
        return FAILED_AS_EXPECTED if self.expected else PASSED


def of_file(folder: Path, system: str) -> Entries:
    """Read the entries of a system's file in ``folder``; NetproofError where that fails."""
    file = ReferenceFile(folder / f"{system}.yaml")
    return lambda case: file.find(check_name(case.benchmark, case.function), case)


def concerns(result: CheckResult) -> bool:
    """Check whether a run compared a case with its references, and nothing else failed it.

    Another error in that phase stands, whatever the references say now.
    """
    if result.result in ("pass", "xfail", "xpass"):
        return True
    if result.result != "fail" or result.phase != JUDGED:
        return False
    if result.references is None:
        # Without findings there is only ReFrame's message.
        return MISSED in result.reason
    return any(one.level in AGAINST for one in result.references)


def said(result: CheckResult) -> str:
    """Return the answer of the run's own references, as ``Rejudged.answer``."""
    if result.result == "pass":
        return PASSED
    if result.result == "xfail":
        return FAILED_AS_EXPECTED
    levels = {one.level for one in result.references or ()}
    decided = levels & {Level.FAIL.value, Level.UNDEFINED.value}
    return INCONCLUSIVE if Level.INCONCLUSIVE.value in levels and not decided else FAILED


def judge(subject: Subject, entries: Entries) -> Rejudged:
    """Compare a case with its references of today, as the run does.

    A variable with bounds is judged by its interval. A known fault is judged by its value, as in
    ReFrame: within the bounds it fails, since the entry has to go. A case or a landmark without an
    entry fails. Raises NetproofError for a malformed entry.
    """
    try:
        found = entries(subject.case)
    except NotThere as error:
        return Rejudged(faults=(f"has no reference: {error}",))
    known = limits.variables(subject.measured)
    faults = [
        f"{name} has no reference, and is defined: an entry is needed, judged or not"
        for name, (value, _) in known.items()
        if value is not None and not name.startswith(TIME_AT) and name not in found
    ]
    findings = [
        finding.ruled(Level.FAIL if finding.level is Level.UNDEFINED else finding.level)
        for finding in engine.references(subject, limits.of_references(found)).values()
    ]
    expected = []
    for name, entry in found.items():
        value, unit = known.get(name, (None, ""))
        if entry[0] != XFAIL or value is None:
            continue
        limit = Limits.of_entry(entry[2])
        if limit.low <= value <= limit.high:
            faults.append(
                f"{name} is {value:.5g} {unit}, within its reference ({limit} {unit}), and was"
                f" expected to fail: {entry[1]}; the entry has to go"
            )
        else:
            expected.append(entry[1])
    why = f"{EXPECTED}: {'; '.join(dict.fromkeys(expected))}" if expected else ""
    return Rejudged(tuple(findings), tuple(faults), "" if faults else why)


def differences(several: Sequence[tuple[CheckResult, Rejudged]]) -> list[str]:
    """Return where today's answer is not the run's, a sentence for each pair of answers."""
    together: dict[tuple[str, str], list[str]] = {}
    for result, now in several:
        answers = (now.answer, said(result))
        if answers[0] != answers[1]:
            together.setdefault(answers, []).append(str(result.case))
    return [
        f"by the references as they are now {now}, and {then} by those of the run:"
        f" {len(cases)} {'case' if len(cases) == 1 else 'cases'}: {'; '.join(cases[:3])}"
        f"{' and others' if len(cases) > 3 else ''}"
        for (now, then), cases in together.items()
    ]
