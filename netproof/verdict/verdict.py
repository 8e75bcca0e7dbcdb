"""The verdict on a session: expected cases, results, criteria and references."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from netproof.criteria import Level
from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.session import again, reference_findings
from netproof.session.again import MeasuredAgain
from netproof.session.left import Left
from netproof.session.measured import Measured
from netproof.session.provenance import OfSession
from netproof.session.session import GOOD_RESULTS, CheckResult, Session
from netproof.site.matrix import Matrix
from netproof.verdict import anew, comparing, confirming, coverage, judgement, pairs, traffic
from netproof.verdict import nodes as of_nodes
from netproof.verdict.judged import (
    NOT_IN_SESSION,
    Alongside,
    Judged,
    LeftCase,
    Verdict,
    faults_of_parts,
)
from netproof.verdict.nodes import Declared
from netproof.verdict.notes import beyond_cases, crash_notes, fabric_notes, of_cases, reason_of
from netproof.verdict.subject import Ruling, Subject

AGAINST = (Level.FAIL, Level.INCONCLUSIVE)
"""Levels of a ruling that keep its case from passing."""

MOST_NODES = 4
"""Nodes that a sentence on a case names."""


def judge(
    matrix: Matrix,
    session: Session,
    earlier: Sequence[Session] = (),
    alongside: Alongside | None = None,
    references: anew.Entries | None = None,
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
    across = comparing.across(
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
                (*of_values, *along.get(key, ()), *across.get(key, ())),
                complete,
                around.get(key),
            )
        )
    launched = judgement.launched(subjects.values(), again.starts(around))
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
            dataclasses.replace(one, rulings=across.get(one.case.key(), ())) for one in borrowed
        )
        alongside = dataclasses.replace(alongside, cases=tuple(ruled))
    return Verdict(
        tuple(judged),
        matrix.absences,
        tuple(faults),
        (
            *of_cases(matrix, judged, alongside),
            *fabric_notes(session),
            *crash_notes(launched),
            *(one.why for one in carriers if one.level is Level.WARN),
            *(one.why for one in lossy),
            *anew.differences([(ran[key], one) for key, one in today.items()]),
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
    return result.measurement


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
    measured = result.measurement
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
        one.case.key(): confirming.rule_all(one, findings, around.get(one.case.key()))
        for one, findings in judgement.along_all(subjects).items()
    }


def measured_again(session: Session) -> Mapping[tuple, MeasuredAgain]:
    """Return the repeats at single sizes of a session's cases, by their keys."""
    return again.by_case(one for result in session.results for one in result.repeats)


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
