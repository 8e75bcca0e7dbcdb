"""Parts of a verdict: judged cases, failed tests, skipped cases, stored results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path

from netproof.criteria import Finding, Level
from netproof.criteria.registry import RELATIVE
from netproof.errors import counted
from netproof.measurement.case import Case
from netproof.measurement.landmarks import Landmarks
from netproof.pairs.verdict import PairsVerdict
from netproof.session.measured import Measured, MeasuredAgain
from netproof.session.plan import SkipReason
from netproof.session.session import CheckResult
from netproof.site.matrix import Absence
from netproof.verdict import FAILED, INCONCLUSIVE, PASSED
from netproof.verdict.confirmations import LaunchCount
from netproof.verdict.coverage import Coverage
from netproof.verdict.engine import Subject
from netproof.verdict.nodes import NodeFinding
from netproof.verdict.traffic import InterfaceTotals

NOT_IN_SESSION = "did not run: the session does not have it"
"""Reason of a case that was expected and that no test of the session was to measure."""

NEVER_RAN = ("skip", "fail_deps")
"""ReFrame's results of a case that it did not run."""


@dataclass(frozen=True)
class CaseVerdict:
    """One judged case.

    ``faults``: why it was not measured or does not meet its references, a sentence each;
    ``expected``: why its failure was expected, or empty; ``findings``: of references and
    criteria; ``measured``: None where it was not complete.
    """

    case: Case
    result: CheckResult | None
    faults: tuple[str, ...]
    expected: str = ""
    findings: tuple[Finding, ...] = ()
    measured: Measured | None = None

    def said(self, level: Level) -> tuple[str, ...]:
        """Return the sentences of the findings of that level."""
        return tuple(finding.why for finding in self.findings if finding.level is level)

    @property
    def failed(self) -> bool:
        """Whether it was not measured, or fails a criterion or a reference."""
        return self.level is Level.FAIL

    @property
    def passed(self) -> bool:
        """Whether nothing of it failed or is inconclusive."""
        return self.level in (Level.PASS, Level.WARN)

    @property
    def ran(self) -> bool:
        """Whether ReFrame ran it, with any result."""
        return self.result is not None and self.result.result not in NEVER_RAN

    @property
    def failed_job(self) -> str | None:
        """Name of the failed test that it waited for, or None."""
        return None if self.result is None else self.result.failed_job

    @property
    def complete(self) -> bool:
        """Whether it was measured whole."""
        return self.measured is not None

    @property
    def again(self) -> MeasuredAgain | None:
        """Launches around flagged sizes; None where there are none."""
        return None if self.measured is None else self.measured.again

    @property
    def landmarks(self) -> Landmarks | None:
        """Landmarks of its curve; None where it was not measured whole."""
        return None if self.measured is None else self.measured.landmarks

    @cached_property
    def level(self) -> Level:
        """Result: fail, inconclusive, warn or pass."""
        levels = {finding.level for finding in self.findings}
        if self.faults or Level.FAIL in levels:
            return Level.FAIL
        others = (Level.INCONCLUSIVE, Level.WARN)
        return next((level for level in others if level in levels), Level.PASS)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Nodes of its first launch; none where it was not measured whole."""
        return self.measured.launches[0].nodes() if self.measured else ()

    def flags(self) -> tuple[Finding, ...]:
        """Return the flags that were measured again, with any result."""
        return tuple(finding for finding in self.findings if finding.repeated is not None)

    def score(self) -> Finding | None:
        """Return the score against the baseline, or None."""
        return _score(self.findings)


def _score(findings: Sequence[Finding]) -> Finding | None:
    scores = (one for one in findings if one.criterion in RELATIVE and one.value is not None)
    return next(scores, None)


@dataclass(frozen=True)
class StoredResult:
    """Stored result of a case from another session, which is compared with and not judged.

    ``session``: its name in the store, at ``path``; ``started``: UTC; ``days``: how long before the
    judged session, negative after it; ``marks``: reasons against comparing them, a sentence each;
    ``findings``: of the criteria across configurations.
    """

    subject: Subject
    result: CheckResult
    session: str
    path: Path
    started: datetime
    days: float
    marks: tuple[str, ...]
    findings: tuple[Finding, ...] = ()

    @property
    def case(self) -> Case:
        """Case."""
        return self.subject.case

    @property
    def measured(self) -> Measured:
        """Measurement."""
        return self.subject.measured

    @property
    def landmarks(self) -> Landmarks:
        """Landmarks of its curve."""
        return self.measured.landmarks

    @property
    def date(self) -> str:
        """Day on which it was measured, UTC, ``2026-11-20``."""
        return f"{self.started:%Y-%m-%d}"

    @property
    def age(self) -> str:
        """Time before or after the judged session, in words."""
        hours, days = round(24 * abs(self.days)), abs(self.days)
        if hours == 0:
            return "within the hour"
        long = f"{hours} hour{'s' if hours > 1 else ''}" if hours < 48 else f"{days:.0f} days"
        return f"{long} {'before' if self.days >= 0 else 'after'}"

    def score(self) -> Finding | None:
        """Return the score against the baseline, or None."""
        return _score(self.findings)


@dataclass(frozen=True)
class StoredResults:
    """Stored results of configurations that a session neither was to measure nor measured.

    ``cases``: compared with; ``left_out``: excluded for their marks; ``not_found``: not measured
    well by any stored session. ``max_age_days``: age beyond which a session is marked.
    """

    store: Path
    max_age_days: float
    cases: tuple[StoredResult, ...]
    left_out: tuple[StoredResult, ...]
    not_found: tuple[Case, ...]

    def together(self) -> Iterator[tuple[str, tuple[StoredResult, ...], bool]]:
        """Yield its cases in groups, in words, and whether they were left out; those last.

        A group is of one configuration, session and set of marks.
        """
        for several, left_out in ((self.cases, False), (self.left_out, True)):
            found: dict[str, list[StoredResult]] = defaultdict(list)
            for one in several:
                place = f"{one.case.partition} {one.case.environment}, of {one.date} ({one.age})"
                marks = "".join(f"; {mark}" for mark in one.marks)
                found[f"{place}: {{}} of session {one.session}{marks}"].append(one)
            for words, cases in found.items():
                yield words.replace("{}", counted(len(cases)), 1), tuple(cases), left_out


@dataclass(frozen=True)
class FailedTest:
    """A job, or a test that judges several cases, that did not finish, and why."""

    name: str
    system: str
    partition: str
    environment: str
    why: str

    def __str__(self) -> str:
        return f"{self.where}: {self.why}"

    @property
    def where(self) -> str:
        """Configuration and name; a run that was killed has no partition."""
        where = ":".join(filter(None, (self.system, self.partition)))
        return " ".join(filter(None, (where, self.environment, self.name)))


@dataclass(frozen=True)
class Verdict:
    """All cases in the matrix' order, declared absences, and faults beyond single cases.

    ``notes``: what was not or could not be asserted; ``skipped``: expected cases that were skipped;
    ``compared_with``: stored results, None if not asked for; ``launched``: launches and crashes of
    each configuration; ``traffic``: counters of each interface; ``standing_out``: changed carriers,
    and nodes that lose more than others. What fails in a part is among the faults, in a sentence.
    """

    cases: tuple[CaseVerdict, ...]
    absences: tuple[Absence, ...]
    faults: tuple[str, ...]
    notes: tuple[str, ...]
    skipped: tuple[tuple[Case, SkipReason], ...] = ()
    compared_with: StoredResults | None = None
    failed_tests: tuple[FailedTest, ...] = ()
    launched: tuple[LaunchCount, ...] = ()
    pairs: tuple[PairsVerdict, ...] = ()
    nodes: tuple[NodeFinding, ...] = ()
    coverage: tuple[Coverage, ...] = ()
    traffic: tuple[InterfaceTotals, ...] = ()
    standing_out: tuple[Finding, ...] = ()

    @cached_property
    def by_partition(self) -> Mapping[str, list[CaseVerdict]]:
        """Judged cases by their partition."""
        found: dict[str, list[CaseVerdict]] = defaultdict(list)
        for one in self.cases:
            found[one.case.partition].append(one)
        return found

    @property
    def warns(self) -> bool:
        """Whether a case warns."""
        return any(one.said(Level.WARN) for one in self.cases)

    @property
    def node_warnings(self) -> tuple[str, ...]:
        """Warnings about nodes, a sentence each."""
        return tuple(str(one) for one in self.nodes if one.level is Level.WARN)

    @property
    def undecided(self) -> tuple[str, ...]:
        """Why nodes are neither cleared nor accused, or too few were free, a sentence each."""
        return (
            *(why for one in self.pairs for why in one.undecided()),
            *(f"coverage: {one}" for one in self.coverage if one.short),
        )

    @property
    def crashes(self) -> str:
        """Line with the launches of complete cases, and how many crashed; empty without any."""
        made = sum(one.launches for one in self.launched)
        crashed = sum(one.crashed for one in self.launched)
        return f"launches: {made}, crashed: {crashed}" if made else ""

    @property
    def status(self) -> int:
        """Exit status: 0 passed, 1 failed, 3 nothing failed and some is not decided.

        Nothing failed where a job died or was not submitted, and what waited for it did not run.
        """
        # Not those that fail in setup, as where references are missing, or that nobody ran.
        died = ("fail in run:", "fail in sanity:", "fail in cleanup:")
        unmeasured = {str(one) for one in self.failed_tests if one.why.startswith(died)}
        if unmeasured:
            unmeasured |= {f"coverage: {one}" for one in self.coverage if one.failed}
        failed = any(one.failed and (one.ran or not unmeasured) for one in self.cases)
        if failed or not unmeasured.issuperset(self.faults):
            return FAILED
        passed = self._whole and not self.faults and all(one.passed for one in self.cases)
        return PASSED if passed and not self.undecided else INCONCLUSIVE

    @property
    def inconclusive(self) -> bool:
        """Whether it was judged whole, nothing failed, and some of it is inconclusive."""
        return self.status == INCONCLUSIVE and self._whole

    @property
    def _whole(self) -> bool:
        return bool(self.cases) and all(reason.planned for _, reason in self.skipped)


def by_reason(
    skipped: Sequence[tuple[Case, SkipReason]],
) -> dict[tuple[str, str, SkipReason], list[Case]]:
    """Return the skipped cases by partition, environment and reason."""
    found: dict[tuple[str, str, SkipReason], list[Case]] = defaultdict(list)
    for case, reason in skipped:
        found[case.partition, case.environment, reason].append(case)
    return found


def sentences_of_skipped(skipped: Sequence[tuple[Case, SkipReason]]) -> list[str]:
    """Return a sentence on skipped cases for each configuration and reason."""
    return [
        f"{counted(len(cases))} of {partition} {environment}"
        f" {'deferred' if reason.planned else 'NOT MEASURED'}: {reason.why}"
        for (partition, environment, reason), cases in by_reason(skipped).items()
    ]
