"""The verdict on a session: what was owed, what ran, what the criteria and references say of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from netproof.criteria import Finding, Level
from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.session import again, reference_findings
from netproof.session.again import MeasuredAgain
from netproof.session.left import Left
from netproof.session.measured import Measured
from netproof.session.session import GOOD_RESULTS, CheckResult, Session
from netproof.site.matrix import Absence, Matrix
from netproof.site.site import ScoreBaseline
from netproof.verdict import anew, confirming, judgement
from netproof.verdict.judgement import LaunchCount, Ruling, Subject

PASSED, FAILED, CANNOT_JUDGE = 0, 1, 2
"""Exit statuses of whatever judges a session."""

NEVER_RAN = ("skip", "fail_deps")
"""ReFrame's results of a case that it did not come to."""

AGAINST = (Level.FAIL, Level.INCONCLUSIVE)
"""Levels of a ruling that keep its case from passing."""

MOST_NODES = 4
"""Nodes that a sentence on a case names."""


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
    """A case that another session of a store measured; it stands beside, and is not judged.

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
    """What a store has of the configurations that a session neither owed nor measured.

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
    """A case that was owed and that the session left, with the reason."""

    case: Case
    left: Left


@dataclass(frozen=True)
class Verdict:
    """All cases in the matrix' order, what the site says is absent, and faults beyond a case.

    ``notes``: what was not asserted, or could not be, in a sentence each; ``left``: what was owed
    and is not among the cases, since the session left it; ``beside``: what was taken from a
    store, None where it was not asked for; ``failed_tests``: of whose failing a fault tells;
    ``launched``: launches and crashes of each configuration, whose excess is among the faults.
    """

    cases: tuple[Judged, ...]
    absences: tuple[Absence, ...]
    faults: tuple[str, ...]
    notes: tuple[str, ...]
    left: tuple[LeftCase, ...] = ()
    beside: Alongside | None = None
    failed_tests: tuple[FailedTest, ...] = ()
    launched: tuple[LaunchCount, ...] = ()

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
        whole = whole and all(judged.passed for judged in self.cases)
        return PASSED if whole else CANNOT_JUDGE

    @property
    def inconclusive(self) -> bool:
        """Whether it was judged whole, nothing failed, and some of it is inconclusive."""
        whole = self.cases and all(one.left.planned for one in self.left)
        return self.status == CANNOT_JUDGE and bool(whole)


def judge(
    matrix: Matrix,
    session: Session,
    earlier: Sequence[Session] = (),
    beside: Alongside | None = None,
    references: anew.Entries | None = None,
) -> Verdict:
    """Judge a session against the matrix that it owes, and by all criteria.

    ``earlier``: sessions of the same system, whose configurations must not have vanished;
    ``beside``: cases that take part in envelope and score as the session's own do;
    ``references``: by which every complete case is judged anew, None for what the run found.
    Raises NetproofError where it cannot be judged: an empty matrix, or results of another system
    than the matrix asks for.
    """
    if not matrix.cases:
        raise NetproofError("nothing was to be measured, so there is nothing to pass")
    system = matrix.cases[0].system
    others = {result.system for result in session.results} - {system}
    if others:
        raise NetproofError(
            f"{session.path}: holds results of {', '.join(sorted(others))}, not of {system}"
        )
    ran: dict[tuple, CheckResult] = {}
    for result in session.results:
        if result.case is not None:
            # A case that ReFrame ran again stands as it ended.
            ran[result.case.key()] = result
    owed = {case.key() for case in matrix.cases}
    left = left_by(session)
    cases = [
        *(case for case in matrix.cases if case.key() not in left),
        *(result.case for key, result in ran.items() if key not in owed and key not in left),
    ]
    subjects = {
        key: subject(result, matrix)
        for key, result in ran.items()
        if result.measured and result.contradiction is None
    }
    measured_again = _measured_again(session)
    borrowed = () if beside is None else beside.cases
    along = rulings_along(list(subjects.values()), session)
    across = judgement.across(
        [*subjects.values(), *(one.subject for one in borrowed)], matrix.baseline
    )
    today = {}
    if references is not None:
        today = {
            key: anew.judge(one, references)
            for key, one in subjects.items()
            if anew.concerns(ran[key])
        }
    judged = []
    for case in cases:
        result, key = ran.get(case.key()), case.key()
        faults, expected = faults_of(result)
        of_values = () if result is None else of_references(result)
        if key in today:
            faults, expected = today[key].faults, today[key].expected
            of_values = today[key].rulings
        if key not in today and any(ruling.level in AGAINST for ruling in of_values):
            # ReFrame's own words for it have no interval.
            faults = ()
        complete = subjects[key].measured if key in subjects else None
        if complete is not None:
            where = f"; on {_nodes(complete)}"
            of_values = tuple(dataclasses.replace(one, why=one.why + where) for one in of_values)
        if complete is not None:
            faults = tuple(f"{fault}; on {_nodes(complete)}" for fault in faults)
        judged.append(
            Judged(
                case,
                result,
                faults,
                expected,
                (*of_values, *along.get(key, ()), *across.get(key, ())),
                complete,
                measured_again.get(key),
            )
        )
    launched = judgement.launched(subjects.values(), again.starts(measured_again))
    excess = [one.finding.why for one in launched if one.finding.level is Level.FAIL]
    failed_tests = _beyond_cases(session)
    faults = [*map(str, failed_tests), *_vanished(matrix, earlier), *excess]
    if beside is not None:
        ruled = (
            dataclasses.replace(one, rulings=across.get(one.case.key(), ())) for one in borrowed
        )
        beside = dataclasses.replace(beside, cases=tuple(ruled))
    return Verdict(
        tuple(judged),
        matrix.absences,
        tuple(faults),
        (
            *_notes(matrix, judged, beside),
            *_fabric_notes(session),
            *_crash_notes(launched),
            *anew.differences([(ran[key], one) for key, one in today.items()]),
        ),
        tuple(LeftCase(case, left[case.key()]) for case in matrix.cases if case.key() in left),
        beside,
        tuple(failed_tests),
        launched,
    )


def left_by(session: Session) -> dict[tuple, Left]:
    """What a session left unmeasured, and why, by the case's key."""
    ended = {r.case.key(): r for r in session.results if r.case is not None}
    return {
        key: Left.from_json(result.left)
        for key, result in ended.items()
        if result.left and result.result == "skip"
    }


def _crash_notes(launched: Sequence[LaunchCount]) -> list[str]:
    """Shares of launches that crashed which are a warning to the site, and no failure."""
    return [one.finding.why for one in launched if one.finding.level is Level.WARN]


def _fabric_notes(session: Session) -> list[str]:
    """Fabrics that were declared absent from MPI libraries when they measured, with the reasons."""
    return list(
        dict.fromkeys(
            f"{result.environment} has no {fabric}: {reason}"
            for result in session.results
            if result.case is not None and result.measured
            for fabric, reason in result.measured["environment_extras"]
            .get("built", {})
            .get("absent", {})
            .items()
        )
    )


def _notes(matrix: Matrix, cases: Sequence[Judged], beside: Alongside | None) -> list[str]:
    """What the criteria across configurations could not say."""
    notes = []
    alone = [
        str(judged.case)
        for judged in cases
        for ruling in judged.rulings
        if (ruling.finding.criterion, ruling.finding.level) == ("envelope", Level.UNDEFINED)
    ]
    if alone:
        notes.append(
            f"{_cases(alone)} no envelope, since no other configuration measured the same:"
            f" {_first(alone)}"
        )
    for why, several in _without_share(cases).items():
        notes.append(f"{_cases(several)} no share of the line rate: {_first(several)}: {why}")
    if matrix.baseline is None:
        notes.append("no scores: the baseline's partition is no part of what was asked for")
        return notes
    where = (matrix.baseline.partition, matrix.baseline.environment)
    owed = {
        judgement.group(case)
        for case in matrix.cases
        if (case.partition, case.environment) == where
    }
    ran = {
        judgement.group(judged.case)
        for judged in cases
        if judged.measured and (judged.case.partition, judged.case.environment) == where
    }
    ran |= {
        judgement.group(one.case)
        for one in (() if beside is None else beside.cases)
        if (one.case.partition, one.case.environment) == where
    }
    # What the store was looked through for is told by what it could not give.
    looked_for = {
        judgement.group(case)
        for case in (() if beside is None else _absent(beside))
        if (case.partition, case.environment) == where
    }
    missing = len(owed - ran - looked_for)
    if missing:
        notes.append(
            f"no scores for {missing} functions: the baseline {matrix.baseline} did not run them"
        )
    if beside is not None:
        notes += _not_found(beside, matrix.baseline)
    return notes


def _without_share(cases: Sequence[Judged]) -> dict[str, list[str]]:
    """The cases over a link whose share of the line rate is not defined, by the reason."""
    found: dict[str, list[str]] = {}
    for judged in cases:
        for ruling in judged.rulings:
            finding = ruling.finding
            if (finding.criterion, finding.level) == ("line rate", Level.UNDEFINED):
                why = judged.measured.landmarks.why("asymptotic_mb_s") if judged.measured else None
                # Sentences with figures of their own are alike in what they begin with.
                alike = (why or finding.why).partition(":")[0]
                found.setdefault(alike, []).append(str(judged.case))
    return found


def _absent(beside: Alongside) -> tuple[Case, ...]:
    return (*beside.not_found, *(one.case for one in beside.left_out))


def _not_found(beside: Alongside, baseline: ScoreBaseline) -> list[str]:
    """What the store could not give: cases of the baseline, and of other configurations."""
    taken = "" if not beside.left_out else " that may take part"
    of_baseline, others = [], []
    for case in _absent(beside):
        where = ScoreBaseline(case.partition, case.environment)
        (of_baseline if where == baseline else others).append(case)
    notes = []
    if of_baseline:
        notes.append(
            f"no scores for {len(of_baseline)} functions: the baseline {baseline} is not in this"
            f" session, and {beside.store} has no session{taken} in which it passed:"
            f" {_first([case.what() for case in of_baseline])}"
        )
    if others:
        notes.append(
            f"{len(others)} cases of other configurations are in no session of {beside.store}"
            f"{taken} in which they passed: {_first(list(map(str, others)))}"
        )
    return notes


def _nodes(measured: Measured) -> str:
    """Where to look first: the nodes that a case was measured on, the first of many."""
    names = list(dict.fromkeys(node for one in measured.launches for node in one.nodes()))
    more = len(names) - MOST_NODES
    return f"{', '.join(names[:MOST_NODES])}{f' and {more} more' if more > 0 else ''}"


def _cases(several: Sequence[str]) -> str:
    return "1 case has" if len(several) == 1 else f"{len(several)} cases have"


def _first(names: Sequence[str]) -> str:
    return f"{'; '.join(names[:3])}{' and others' if len(names) > 3 else ''}"


def subject(result: CheckResult, matrix: Matrix, measured_on: str = "") -> Subject:
    """A measured case with the site's settings as they are now, or as they were if it has none.

    The link is the one that it was measured over. ``measured_on``: the day, where another session
    than the judged one measured it.
    """
    measured = Measured.from_json(result.measured)
    extras = result.measured["partition_extras"]
    as_it_was = Subject.of_extras(measured, extras, {}, measured_on)
    here = matrix.partitions.get(measured.case.partition)
    if here is None:
        return as_it_was
    known = matrix.known.get(measured.case.environment, {})
    return dataclasses.replace(as_it_was, switch=here.switch, settings=here.settings(), known=known)


def rulings_along(subjects: Sequence[Subject], session: Session) -> dict[tuple, tuple[Ruling, ...]]:
    """What becomes of the findings along the curves of a session's cases, by their keys."""
    measured_again = _measured_again(session)
    return {
        one.case.key(): confirming.rule_all(one, findings, measured_again.get(one.case.key()))
        for one, findings in judgement.along_all(subjects).items()
    }


def _measured_again(session: Session) -> Mapping[tuple, MeasuredAgain]:
    return again.by_case(
        MeasuredAgain.from_json(values)
        for result in session.results
        for values in result.again or ()
    )


def _beyond_cases(session: Session) -> list[FailedTest]:
    """Why jobs, and tests that judge several cases, did not come to their end.

    What the latter found is not among it: the criteria are judged here again.
    """
    failed = []
    for result in session.results:
        judges = result.kind in ("curves", "configurations")
        waits = judges or result.kind in ("further", "compared further")
        if result.case is not None or result.result in GOOD_RESULTS:
            continue
        if result.left and result.result == "skip":
            continue
        if (waits and result.result == "fail_deps") or (judges and result.phase == "sanity"):
            continue
        where = (result.name, result.system, result.partition, result.environment)
        failed.append(FailedTest(*where, _why(result)))
    return failed


def _vanished(matrix: Matrix, earlier: Sequence[Session]) -> list[str]:
    here = matrix.configurations()
    gone: dict[tuple[str, str], Session] = {}
    for session in earlier:
        for result in session.results:
            where = (result.partition, result.environment)
            asked = matrix.whole or result.partition in matrix.partitions
            if result.case is not None and asked and where not in here | matrix.retired:
                gone.setdefault(where, session)
    system = matrix.cases[0].system
    return [
        f"{system}:{partition} {environment}: ran in {session.path}, and the configuration has it"
        " no more: put it back, or say why it is gone in the partition's extras['retired']"
        for (partition, environment), session in gone.items()
    ]


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
        f" {'left for another night' if reason.planned else 'NOT MEASURED'}: {reason.why}"
        for (partition, environment, reason), cases in together(left).items()
    ]


def faults_of(result: CheckResult | None) -> tuple[tuple[str, ...], str]:
    """Why a case was not measured or is beyond its references, and why that was expected."""
    if result is None:
        return ("did not run: the session does not have it",), ""
    if result.contradiction is not None:
        return (result.contradiction,), ""
    if result.result not in GOOD_RESULTS:
        return (_why(result),), ""
    if result.measured is None:
        return ("passed for ReFrame, but left no measurement",), ""
    return (), "fails as expected" if result.result == "xfail" else ""


def of_references(result: CheckResult) -> tuple[Ruling, ...]:
    """What the run found of a case's references; nothing where a report is older than that."""
    rulings = []
    for values in result.references or ():
        finding = reference_findings.from_json(values)
        level = Level.FAIL if finding.level is Level.UNDEFINED else finding.level
        rulings.append(Ruling(finding, level, finding.why))
    return tuple(rulings)


def _why(result: CheckResult) -> str:
    if result.result == "skip" and result.left:
        return f"was left: {result.left['why']}"
    if result.result == "skip":
        return f"was skipped: {result.reason or 'the reason is in what ReFrame printed'}"
    if result.result == "fail_deps":
        return "did not run, since the job that measures for it failed"
    # ReFrame repeats some reasons on lines of their own.
    lines = dict.fromkeys(line.strip() for line in result.reason.splitlines() if line.strip())
    return f"{result.result} in {result.phase or 'an unknown phase'}: {' '.join(lines)}"
