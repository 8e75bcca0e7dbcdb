"""Judge a session: expected cases, results, criteria and references."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from netproof.benchmarks import registry
from netproof.criteria import Level
from netproof.criteria.registry import BY_FINDING
from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.session import again, reference_findings
from netproof.session.again import MeasuredAgain
from netproof.session.left import Left
from netproof.session.measured import Measured
from netproof.session.provenance import OfSession
from netproof.session.session import GOOD_RESULTS, CheckResult, Session
from netproof.site.matrix import Matrix
from netproof.site.partition import ScoreBaseline
from netproof.verdict import case_rulings, coverage, group_rulings, pairs, rejudge, traffic
from netproof.verdict import nodes as of_nodes
from netproof.verdict.case_rulings import LaunchCount
from netproof.verdict.nodes import Declared
from netproof.verdict.subject import Ruling, Subject, disturbances
from netproof.verdict.verdict import (
    NOT_IN_SESSION,
    Alongside,
    FailedTest,
    Judged,
    LeftCase,
    Verdict,
    faults_of_parts,
)


@dataclass(frozen=True)
class Unsettled:
    """Open questions of a measured case.

    ``inconclusive``: a sentence each, without the case; ``disturbed``: what else the nodes did in
    launches that had to count, since too few were undisturbed; ``failed``: whether a part of the
    case failed all the same.
    """

    inconclusive: tuple[str, ...]
    disturbed: tuple[str, ...]
    failed: bool

    @property
    def all(self) -> tuple[str, ...]:
        """All open questions, a sentence each; empty where the case is settled."""
        if not self.disturbed:
            return self.inconclusive
        return (*self.inconclusive, f"the machine was disturbed: {'; '.join(self.disturbed)}")

    @property
    def why_no_value(self) -> tuple[str, ...]:
        """Why its figures are not usable; empty where they are.

        A failure counts whatever else is inconclusive.
        """
        return self.all if self.disturbed or not self.failed else ()


def unsettled_of(session: Session) -> dict[tuple, Unsettled]:
    """Return the open questions of each measured case of a session, by its key.

    Raises NetproofError where the session's settings cannot be used.
    """
    # The last run of each case counts.
    ended = {r.case.key(): r for r in session.results if r.case is not None}
    ran = {key: r for key, r in ended.items() if r.measured}
    subjects = {key: _own_subject(session, result) for key, result in ran.items()}
    several = list(subjects.values())
    along = rulings_along(several, session)
    between = group_rulings.across(several, _own_baseline(ran.values()))
    found = {}
    for key, result in ran.items():
        of_values = of_references(result)
        rulings = (*of_values, *along[key], *between.get(key, ()))
        faults = () if any(one.level in AGAINST for one in of_values) else faults_of(result)[0]
        found[key] = Unsettled(
            tuple(one.reason for one in rulings if one.level is Level.INCONCLUSIVE),
            disturbances(subjects[key]),
            bool(faults) or any(one.level is Level.FAIL for one in rulings),
        )
    return found


def _own_subject(session: Session, result: CheckResult) -> Subject:
    where = f"{session.path}: {result.case}"
    try:
        extras, others = result.measured["partition_extras"], result.measured["environment_extras"]
        measured = Measured.from_json(result.measured)
        subject = Subject.of_extras(measured, extras, others)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise NetproofError(f"{where}: cannot be judged: {error!r}") from error
    if measured.case != result.case:
        raise NetproofError(f"{where}: what was measured is of {subject.case}")
    return subject


def _own_baseline(results: Iterable[CheckResult]) -> ScoreBaseline | None:
    for result in results:
        environment = result.measured["partition_extras"].get("baseline")
        if environment:
            return ScoreBaseline(result.partition, environment)
    return None


def crash_notes(launched: Sequence[LaunchCount]) -> list[str]:
    """Return the shares of crashed launches that are a warning and no failure."""
    return [one.finding.why for one in launched if one.finding.level is Level.WARN]


def fabric_notes(session: Session) -> list[str]:
    """Return the fabrics that the MPI libraries were declared to lack, with the reasons."""
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


def notes_on_cases(
    matrix: Matrix, cases: Sequence[Judged], alongside: Alongside | None
) -> list[str]:
    """Return what the criteria across configurations could not judge."""
    notes = []
    alone = [
        str(judged.case)
        for judged in cases
        for ruling in judged.rulings
        if (ruling.finding.criterion, ruling.finding.level) == ("envelope", Level.UNDEFINED)
    ]
    if alone:
        notes.append(
            f"{_cases_have(alone)} no envelope, since no other configuration measured the same:"
            f" {_first(alone)}"
        )
    notes += _not_counted(cases)
    without = _without_tcp(matrix, cases)
    if without:
        notes.append(
            f"{_cases_have(without)} no MPI loss, since the environment has no NetPIPE over TCP to"
            f" compare with: {_first(without)}"
        )
    for why, several in _without_share(cases).items():
        notes.append(f"{_cases_have(several)} no share of the line rate: {_first(several)}: {why}")
    if matrix.baseline is None:
        notes.append("no scores: the baseline's partition is no part of what was asked for")
        return notes
    where = (matrix.baseline.partition, matrix.baseline.environment)
    expected = {
        group_rulings.group(case)
        for case in matrix.cases
        if (case.partition, case.environment) == where
    }
    ran = {
        group_rulings.group(judged.case)
        for judged in cases
        if judged.measured and (judged.case.partition, judged.case.environment) == where
    }
    ran |= {
        group_rulings.group(one.case)
        for one in (() if alongside is None else alongside.cases)
        if (one.case.partition, one.case.environment) == where
    }
    # Cases that were looked up in the store have notes of their own.
    looked_for = {
        group_rulings.group(case)
        for case in (() if alongside is None else _absent(alongside))
        if (case.partition, case.environment) == where
    }
    missing = len(expected - ran - looked_for)
    if missing:
        notes.append(
            f"no scores for {missing} functions: the baseline {matrix.baseline} did not run them"
        )
    if alongside is not None:
        notes += _not_found(alongside, matrix.baseline)
    return notes


def _not_counted(cases: Sequence[Judged]) -> list[str]:
    """Return what the criteria on counters could not judge and did not assert, by reason."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for judged in cases:
        for ruling in judged.rulings:
            finding, criterion = ruling.finding, BY_FINDING.get(ruling.finding.criterion)
            if criterion is None or not criterion.of_counters:
                continue
            if (finding.level, ruling.level) == (Level.UNDEFINED, Level.SHOWN):
                key = (finding.criterion, finding.why_undefined or finding.reason)
                found.setdefault(key, {}).setdefault(str(judged.case))
    return [
        f"{criterion} of {'1 case' if len(several) == 1 else f'{len(several)} cases'} not known:"
        f" {why}: {_first(list(several))}"
        for (criterion, why), several in found.items()
    ]


def _without_tcp(matrix: Matrix, cases: Sequence[Judged]) -> list[str]:
    """Return the cases over MPI whose environment lacks the same over TCP."""
    absent = {(one.partition, one.environment, one.benchmark) for one in matrix.absences}
    found = []
    for case in (judged.case for judged in cases):
        benchmark = registry.of(case)
        over_tcp = benchmark.compared_over_tcp(case.function)
        if over_tcp and (case.partition, case.environment, benchmark.feature(over_tcp)) in absent:
            found.append(str(case))
    return found


def _without_share(cases: Sequence[Judged]) -> dict[str, list[str]]:
    """Return the cases whose share of the line rate is not defined, by the reason."""
    found: dict[str, list[str]] = {}
    for judged in cases:
        for ruling in judged.rulings:
            finding = ruling.finding
            if (finding.criterion, finding.level) == ("line rate", Level.UNDEFINED):
                why = None
                if judged.measured:
                    why = judged.measured.landmarks.why("asymptotic_mb_s", figures=False)
                found.setdefault(why or finding.why_undefined, []).append(str(judged.case))
    return found


def _absent(alongside: Alongside) -> tuple[Case, ...]:
    return (*alongside.not_found, *(one.case for one in alongside.left_out))


def _not_found(alongside: Alongside, baseline: ScoreBaseline) -> list[str]:
    """Return the cases that the store lacks: of the baseline, and of other configurations."""
    taken = "" if not alongside.left_out else " that may take part"
    of_baseline, others = [], []
    for case in _absent(alongside):
        where = ScoreBaseline(case.partition, case.environment)
        (of_baseline if where == baseline else others).append(case)
    notes = []
    if of_baseline:
        notes.append(
            f"no scores for {len(of_baseline)} functions: the baseline {baseline} is not in this"
            f" session, and {alongside.store} has no session{taken} in which it passed:"
            f" {_first([case.what() for case in of_baseline])}"
        )
    if others:
        notes.append(
            f"{len(others)} cases of other configurations are in no session of {alongside.store}"
            f"{taken} in which they passed: {_first(list(map(str, others)))}"
        )
    return notes


def _cases_have(several: Sequence[str]) -> str:
    return "1 case has" if len(several) == 1 else f"{len(several)} cases have"


def _first(names: Sequence[str]) -> str:
    return f"{'; '.join(names[:3])}{' and others' if len(names) > 3 else ''}"


def beyond_cases(session: Session) -> list[FailedTest]:
    """Return the jobs, and tests that judge several cases, that did not finish.

    Findings of such tests are not among them, since the criteria judge here again.
    """
    failed = []
    for result in session.results:
        judges = result.kind in ("curves", "configurations")
        judges = judges or result.pairs is not None
        waits = judges or result.kind in ("further", "compared further", "pairs")
        if result.case is not None or result.result in GOOD_RESULTS:
            continue
        if result.left and result.result == "skip":
            continue
        if (waits and result.result == "fail_deps") or (judges and result.phase == "sanity"):
            continue
        where = (result.name, result.system, result.partition, result.environment)
        failed.append(FailedTest(*where, reason_of(result)))
    return failed


def reason_of(result: CheckResult) -> str:
    """Return why a test did not pass or was skipped, in the words of ReFrame or of the run."""
    if result.result == "skip" and result.left:
        return f"was left: {result.left['why']}"
    if result.result == "skip":
        return f"was skipped: {result.reason or 'the reason is in what ReFrame printed'}"
    if result.result == "fail_deps":
        return "did not run, since the job that measures for it failed"
    # ReFrame repeats some reasons on lines of their own.
    lines = dict.fromkeys(line.strip() for line in result.reason.splitlines() if line.strip())
    return f"{result.result} in {result.phase or 'an unknown phase'}: {' '.join(lines)}"


AGAINST = (Level.FAIL, Level.INCONCLUSIVE)
"""Levels of a ruling that keep its case from passing."""

MOST_NODES = 4
"""Nodes that a sentence on a case names."""


def judge(
    matrix: Matrix,
    session: Session,
    earlier: Sequence[Session] = (),
    alongside: Alongside | None = None,
    references: rejudge.Entries | None = None,
    made: OfSession | None = None,
) -> Verdict:
    """Judge a session by its expected matrix, and by all criteria.

    ``earlier``: sessions of the same system, whose configurations must not have vanished;
    ``alongside``: stored results for envelope and score; ``references``: by which every complete
    case is rejudged, None for the findings of the run; ``made``: the session's provenance, None
    where it cannot be read. Raises NetproofError for an empty matrix, and for results of another
    system than the matrix asks for.
    """
    if not matrix.cases:
        raise NetproofError("nothing was to be measured, so there is nothing to pass")
    system = matrix.cases[0].system
    others = {result.system for result in session.results} - {system}
    if others:
        raise NetproofError(
            f"{session.path}: holds results of {', '.join(sorted(others))}, not of {system}"
        )
    ran, cases = cases_of(session, matrix)
    subjects = {
        key: subject(result, matrix)
        for key, result in ran.items()
        if result.measured and result.contradiction is None
    }
    around = measured_again(session)
    borrowed = () if alongside is None else alongside.cases
    along = rulings_along(list(subjects.values()), session)
    between = group_rulings.across(
        [*subjects.values(), *(one.subject for one in borrowed)], matrix.baseline
    )
    today = {}
    if references is not None:
        today = {
            key: rejudge.judge(one, references)
            for key, one in subjects.items()
            if rejudge.concerns(ran[key])
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
            # ReFrame's own message has no interval.
            faults = ()
        complete = subjects[key].measured if key in subjects else None
        if complete is not None:
            where = f"; on {_nodes(complete)}"
            of_values = tuple(
                dataclasses.replace(one, reason=one.reason + where) for one in of_values
            )
        if complete is not None:
            faults = tuple(f"{fault}; on {_nodes(complete)}" for fault in faults)
        judged.append(
            Judged(
                case,
                result,
                faults,
                expected,
                (*of_values, *along.get(key, ()), *between.get(key, ())),
                complete,
                around.get(key),
            )
        )
    launched = case_rulings.launched(subjects.values(), again.starts(around))
    failed_tests = beyond_cases(session)
    of_pairs = pairs.of_session(session, matrix)
    in_rounds = traffic.of_rounds((one.rounds for one in of_pairs), matrix.partitions)
    seen = [*traffic.of_cases(subjects.values()), *in_rounds]
    carriers, lossy = traffic.carriers_in_rounds(in_rounds), traffic.standing_out(seen)
    broken = (*carriers, *traffic.all_lose(in_rounds))
    nodes = () if made is None else of_nodes.judge(made, matrix.partitions, _declared(matrix, ran))
    left = left_by(session)
    deferred = {case.partition for case in matrix.cases if case.key() in left}
    covered = coverage.judge(made, session, matrix.partitions, deferred)
    faults = [
        *map(str, failed_tests),
        *_vanished(matrix, earlier),
        *faults_of_parts(launched, of_pairs, broken, covered, nodes),
    ]
    if alongside is not None:
        ruled = (
            dataclasses.replace(one, rulings=between.get(one.case.key(), ())) for one in borrowed
        )
        alongside = dataclasses.replace(alongside, cases=tuple(ruled))
    return Verdict(
        tuple(judged),
        matrix.absences,
        tuple(faults),
        (
            *notes_on_cases(matrix, judged, alongside),
            *fabric_notes(session),
            *crash_notes(launched),
            *(one.why for one in carriers if one.level is Level.WARN),
            *(one.why for one in lossy),
            *rejudge.differences([(ran[key], one) for key, one in today.items()]),
        ),
        left_of(session, matrix),
        alongside,
        tuple(failed_tests),
        launched,
        of_pairs,
        nodes,
        covered,
        traffic.totals(seen),
        (*broken, *lossy),
    )


def _declared(matrix: Matrix, ran: Mapping[tuple, CheckResult]) -> dict[str, Declared]:
    """Return each partition's declared links: when it was measured, or else as of now."""
    stated = {
        name: Declared(one.interface, one.link_mbit_s, one.mtu)
        for name, one in matrix.partitions.items()
    }
    for result in ran.values():
        extras = result.measured["partition_extras"] if result.measured else {}
        if result.partition in stated and {"interface", "link_mbit_s", "mtu"} <= extras.keys():
            stated[result.partition] = Declared(
                extras["interface"], extras["link_mbit_s"], extras["mtu"]
            )
    return stated


def cases_of(session: Session, matrix: Matrix) -> tuple[dict[tuple, CheckResult], list[Case]]:
    """Return the result of each case of a session, by its key, and the cases to judge, in order.

    Cases of the matrix that were not skipped come first, then unexpected ones.
    """
    ran: dict[tuple, CheckResult] = {}
    for result in session.results:
        if result.case is not None:
            # The last run of each case counts.
            ran[result.case.key()] = result
    expected = {case.key() for case in matrix.cases}
    left = left_by(session)
    return ran, [
        *(case for case in matrix.cases if case.key() not in left),
        *(result.case for key, result in ran.items() if key not in expected and key not in left),
    ]


def complete(result: CheckResult) -> Measured | None:
    """Return the measurement of a case; None where it was not complete."""
    if not result.measured or result.contradiction is not None:
        return None
    return Measured.from_json(result.measured)


def left_of(session: Session, matrix: Matrix) -> tuple[LeftCase, ...]:
    """Return the expected cases that the session skipped, in the matrix' order."""
    left = left_by(session)
    return tuple(LeftCase(case, left[case.key()]) for case in matrix.cases if case.key() in left)


def left_by(session: Session) -> dict[tuple, Left]:
    """Return why a session skipped cases, by the case's key."""
    ended = {r.case.key(): r for r in session.results if r.case is not None}
    return {
        key: Left.from_json(result.left)
        for key, result in ended.items()
        if result.left and result.result == "skip"
    }


def _nodes(measured: Measured) -> str:
    """Return the nodes that a case was measured on, the first of many."""
    names = list(dict.fromkeys(node for one in measured.launches for node in one.nodes()))
    more = len(names) - MOST_NODES
    return f"{', '.join(names[:MOST_NODES])}{f' and {more} more' if more > 0 else ''}"


def subject(result: CheckResult, matrix: Matrix, measured_on: str = "") -> Subject:
    """Return a measured case with today's settings, or with its own without any for it.

    The link is the one that it was measured over. ``measured_on``: the day, if another session than
    the judged one measured it.
    """
    measured = Measured.from_json(result.measured)
    extras, environment = result.measured["partition_extras"], result.measured["environment_extras"]
    as_it_was = Subject.of_extras(measured, extras, environment, measured_on)
    here = matrix.partitions.get(measured.case.partition)
    if here is None:
        return dataclasses.replace(as_it_was, known={})
    known = matrix.known.get(measured.case.environment, {})
    return dataclasses.replace(as_it_was, switch=here.switch, settings=here.settings(), known=known)


def rulings_along(subjects: Sequence[Subject], session: Session) -> dict[tuple, tuple[Ruling, ...]]:
    """Return the rulings on findings along the curves of a session's cases, by their keys."""
    around = measured_again(session)
    return {
        one.case.key(): case_rulings.rule_all(one, findings, around.get(one.case.key()))
        for one, findings in case_rulings.along_all(subjects).items()
    }


def measured_again(session: Session) -> Mapping[tuple, MeasuredAgain]:
    """Return the repeats at single sizes of a session's cases, by their keys."""
    return again.by_case(
        MeasuredAgain.from_json(values)
        for result in session.results
        for values in result.again or ()
    )


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


def faults_of(result: CheckResult | None) -> tuple[tuple[str, ...], str]:
    """Return why a case was not measured or fails its references, and why that was expected."""
    if result is None:
        return (NOT_IN_SESSION,), ""
    if result.contradiction is not None:
        return (result.contradiction,), ""
    if result.result not in GOOD_RESULTS:
        return (reason_of(result),), ""
    if result.measured is None:
        return ("passed for ReFrame, but left no measurement",), ""
    return (), "fails as expected" if result.result == "xfail" else ""


def of_references(result: CheckResult) -> tuple[Ruling, ...]:
    """Return the run's rulings on a case's references; empty where it made none."""
    rulings = []
    for values in result.references or ():
        finding = reference_findings.from_json(values)
        level = Level.FAIL if finding.level is Level.UNDEFINED else finding.level
        rulings.append(Ruling(finding, level, finding.reason))
    return tuple(rulings)
