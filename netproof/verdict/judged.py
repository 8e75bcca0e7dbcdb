"""What a verdict consists of: judged cases, failed tests, what was left, what stands alongside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from netproof.criteria import Finding, Level
from netproof.measurement.case import Case
from netproof.session.again import MeasuredAgain
from netproof.session.left import Left
from netproof.session.measured import Measured
from netproof.session.session import CheckResult
from netproof.site.matrix import Absence
from netproof.verdict.coverage import Coverage
from netproof.verdict.exit_status import CANNOT_JUDGE, FAILED, PASSED
from netproof.verdict.judgement import LaunchCount
from netproof.verdict.node_findings import NodeFinding
from netproof.verdict.pairs import JudgedPairs
from netproof.verdict.subject import Ruling, Subject
from netproof.verdict.traffic import InterfaceTotals

NOT_IN_SESSION = "did not run: the session does not have it"
"""Why a case fails that was expected and that no test of the session was to measure."""

NEVER_RAN = ("skip", "fail_deps")
"""ReFrame's results of a case that it did not come to."""


@dataclass(frozen=True)
class Judged:
    """One case.

    ``faults``: in a sentence each, why it was not measured or does not hold against its
    references; ``expected``: why a failure of it was expected, or empty; ``rulings``: what became
    of every finding of the criteria; ``measured``: None where it was not complete; ``again``: what
    was measured again of it.
    """

    case: Case
    result: CheckResult | None
    faults: tuple[str, ...]
    expected: str = ""
    rulings: tuple[Ruling, ...] = ()
    measured: Measured | None = None
    again: MeasuredAgain | None = None

    def said(self, level: Level) -> tuple[str, ...]:
        """The sentences of the rulings of that level."""
        return tuple(ruling.why for ruling in self.rulings if ruling.level is level)

    @property
    def failed(self) -> bool:
        """Whether it was not measured, or a criterion or reference is against it."""
        return bool(self.faults or self.said(Level.FAIL))

    @property
    def passed(self) -> bool:
        """Whether nothing is against it, and nothing of it is inconclusive."""
        return not self.failed and not self.said(Level.INCONCLUSIVE)

    @property
    def ran(self) -> bool:
        """Whether ReFrame came to run it, whatever came of it."""
        return self.result is not None and self.result.result not in NEVER_RAN

    @property
    def level(self) -> Level:
        """What it is in a word: fail, inconclusive, warn or pass."""
        if self.failed:
            return Level.FAIL
        if not self.passed:
            return Level.INCONCLUSIVE
        return Level.WARN if self.said(Level.WARN) else Level.PASS

    def flags(self) -> tuple[Ruling, ...]:
        """The rulings on flags that were measured again, whatever came of it."""
        return tuple(ruling for ruling in self.rulings if ruling.confirmation is not None)

    def score(self) -> Finding | None:
        """The score against the baseline; None where there is none."""
        return _score(self.rulings)


def _score(rulings: Sequence[Ruling]) -> Finding | None:
    for ruling in rulings:
        if ruling.finding.criterion == "score" and ruling.finding.value is not None:
            return ruling.finding
    return None


@dataclass(frozen=True)
class Borrowed:
    """A case that another session of a store measured; it stands alongside, and is not judged.

    ``session``: the other one's name in the store, ``path`` its directory; ``started``: when that
    began, UTC; ``days``: how long before the judged session, less than 0 for after it; ``marks``:
    what speaks against comparing them, a sentence each; ``rulings``: what the criteria across
    configurations find.
    """

    subject: Subject
    result: CheckResult
    session: str
    path: Path
    started: datetime
    days: float
    marks: tuple[str, ...]
    rulings: tuple[Ruling, ...] = ()

    @property
    def case(self) -> Case:
        """The case."""
        return self.subject.case

    @property
    def measured(self) -> Measured:
        """What was measured of it."""
        return self.subject.measured

    @property
    def date(self) -> str:
        """The day on which it was measured, UTC, ``2026-11-20``."""
        return f"{self.started:%Y-%m-%d}"

    @property
    def age(self) -> str:
        """How long before or after the judged session it was measured, in words."""
        when = "before" if self.days >= 0 else "after"
        hours = round(24 * abs(self.days))
        if hours == 0:
            return "within the hour"
        if hours == 1:
            return f"1 hour {when}"
        return f"{hours} hours {when}" if hours < 48 else f"{abs(self.days):.0f} days {when}"

    def score(self) -> Finding | None:
        """The score against the baseline; None where there is none."""
        return _score(self.rulings)


@dataclass(frozen=True)
class Alongside:
    """What a store has of the configurations that were neither expected of a session nor measured.

    ``cases``: those that take part; ``left_out``: those that would, but for their marks;
    ``not_found``: those that no session in it measured well. ``max_age_days``: beyond which a
    session is marked.
    """

    store: Path
    max_age_days: float
    cases: tuple[Borrowed, ...]
    left_out: tuple[Borrowed, ...]
    not_found: tuple[Case, ...]

    def together(self) -> tuple[Together, ...]:
        """All of its cases, those that are alike together: first those that take part."""
        return tuple(
            Together(tuple(alike), left_out)
            for several, left_out in ((self.cases, False), (self.left_out, True))
            for alike in _alike(several)
        )


@dataclass(frozen=True)
class Together:
    """Cases of one configuration, session and set of marks, and whether they were left out."""

    cases: tuple[Borrowed, ...]
    left_out: bool

    def __str__(self) -> str:
        """As it stands in a sentence: what, of when, from where, and what speaks against it."""
        one, count = self.cases[0], len(self.cases)
        marked = f"; {'; '.join(one.marks)}" if one.marks else ""
        return (
            f"{one.case.partition} {one.case.environment}, of {one.date} ({one.age}):"
            f" {count} {'case' if count == 1 else 'cases'} of session {one.session}{marked}"
        )


def _alike(several: Sequence[Borrowed]) -> list[list[Borrowed]]:
    found: dict[tuple, list[Borrowed]] = {}
    for one in several:
        key = (one.case.partition, one.case.environment, one.session, one.marks)
        found.setdefault(key, []).append(one)
    return list(found.values())


@dataclass(frozen=True)
class FailedTest:
    """A job, or a test that judges several cases, that did not come to its end, and why."""

    name: str
    system: str
    partition: str
    environment: str
    why: str

    def __str__(self) -> str:
        return f"{self.where}: {self.why}"

    @property
    def where(self) -> str:
        """Which it is: its configuration and name."""
        return f"{self.system}:{self.partition} {self.environment} {self.name}"


@dataclass(frozen=True)
class LeftCase:
    """A case that was expected and that the session left, with the reason."""

    case: Case
    left: Left


@dataclass(frozen=True)
class Verdict:
    """All cases in the matrix' order, what the site says is absent, and faults beyond a case.

    ``notes``: what was not asserted, or could not be, in a sentence each; ``left``: what was
    expected and is not among the cases, since the session left it; ``alongside``: what was taken
    from a store, None where it was not asked for; ``failed_tests``: of whose failing a fault tells;
    ``launched``: launches and crashes of each configuration, whose excess is among the faults;
    ``nodes``: in what nodes are not as they should be, ``coverage``: what of each partition was
    measured; sentences of those that fail are among the faults. ``pairs``: rounds of pairs, whose
    accusations are among the faults. ``traffic``: what the interfaces of each node counted;
    ``standing_out``: carriers that changed in rounds of pairs, and nodes that lose more than the
    others of their partition, which faults and notes tell too.
    """

    cases: tuple[Judged, ...]
    absences: tuple[Absence, ...]
    faults: tuple[str, ...]
    notes: tuple[str, ...]
    left: tuple[LeftCase, ...] = ()
    alongside: Alongside | None = None
    failed_tests: tuple[FailedTest, ...] = ()
    launched: tuple[LaunchCount, ...] = ()
    pairs: tuple[JudgedPairs, ...] = ()
    nodes: tuple[NodeFinding, ...] = ()
    coverage: tuple[Coverage, ...] = ()
    traffic: tuple[InterfaceTotals, ...] = ()
    standing_out: tuple[Finding, ...] = ()

    @property
    def node_warnings(self) -> tuple[str, ...]:
        """What is to be said of nodes and fails nothing, a sentence each."""
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
        """The launches of the complete cases, and how many crashed, as a line; or nothing."""
        made = sum(one.launches for one in self.launched)
        crashed = sum(one.crashed for one in self.launched)
        return f"launches: {made}, crashed: {crashed}" if made else ""

    @property
    def status(self) -> int:
        """Exit status: 0 passed, 1 failed, 2 nothing failed and some could not be judged."""
        if self.faults or any(judged.failed for judged in self.cases):
            return FAILED
        whole = self.cases and all(one.left.planned for one in self.left)
        whole = whole and all(judged.passed for judged in self.cases) and not self.undecided
        return PASSED if whole else CANNOT_JUDGE

    @property
    def inconclusive(self) -> bool:
        """Whether it was judged whole, nothing failed, and some of it is inconclusive."""
        whole = self.cases and all(one.left.planned for one in self.left)
        return self.status == CANNOT_JUDGE and bool(whole)


def faults_of_parts(
    launched: Sequence[LaunchCount],
    pairs: Sequence[JudgedPairs],
    standing_out: Sequence[Finding],
    coverage: Sequence[Coverage],
    nodes: Sequence[NodeFinding],
) -> tuple[str, ...]:
    """The faults beyond a case that these parts of a verdict make, a sentence each."""
    return (
        *(one.finding.why for one in launched if one.finding.level is Level.FAIL),
        *(why for one in pairs for why in (*one.accusations(), *one.faults())),
        *(one.why for one in standing_out if one.level is Level.FAIL),
        *(f"coverage: {one}" for one in coverage if one.failed),
        *(str(one) for one in nodes if one.level is Level.FAIL),
    )


def together(left: Sequence[LeftCase]) -> dict[tuple[str, str, Left], tuple[Case, ...]]:
    """What was left for one reason in one configuration: (partition, environment, why) to cases."""
    found: dict[tuple[str, str, Left], list[Case]] = {}
    for one in left:
        place = (one.case.partition, one.case.environment, one.left)
        found.setdefault(place, []).append(one.case)
    return {place: tuple(cases) for place, cases in found.items()}


def sentences_of_left(left: Sequence[LeftCase]) -> list[str]:
    """What was left, a sentence for each configuration and reason."""
    return [
        f"{'1 case' if len(cases) == 1 else f'{len(cases)} cases'} of {partition} {environment}"
        f" {'deferred' if reason.planned else 'NOT MEASURED'}: {reason.why}"
        for (partition, environment, reason), cases in together(left).items()
    ]
