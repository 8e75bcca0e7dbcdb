"""Judge a session: expected cases, results, criteria and references."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Mapping, Sequence

from netproof.benchmarks import registry
from netproof.criteria import Finding, Level
from netproof.criteria.findings import AGAINST, REFERENCE
from netproof.criteria.registry import BY_FINDING
from netproof.errors import NetproofError, counted, listed
from netproof.measurement.case import Case
from netproof.pairs import verdict as pairs
from netproof.session import records
from netproof.session.provenance import Provenance
from netproof.session.session import GOOD_RESULTS, CheckResult, Session
from netproof.site.matrix import Matrix
from netproof.site.partition import Partition, ScoreBaseline
from netproof.verdict import confirmations, coverage, engine, limits, traffic
from netproof.verdict import nodes as of_nodes
from netproof.verdict.engine import Key, Subject, by_place, companion_keys
from netproof.verdict.limits import TIME_AT, Limits
from netproof.verdict.references import XFAIL, Entries, NotThere
from netproof.verdict.verdict import (
    NOT_IN_SESSION,
    CaseVerdict,
    StoredResults,
    Verdict,
)

FAILED_TEST = "failed test"
"""Criterion of a finding that a test of ReFrame did not finish."""

MISSED = "failed to meet reference"
"""Beginning of ReFrame's message that a check failed its references."""


def judge(
    matrix: Matrix,
    session: Session,
    earlier: Sequence[Session] = (),
    alongside: StoredResults | None = None,
    references: Entries | None = None,
    made: Provenance | None = None,
) -> Verdict:
    """Judge a session by its expected matrix, and by all criteria.

    ``earlier``: sessions of the system, whose configurations must not have vanished; ``alongside``:
    stored results for envelope and score; ``references``: by which complete cases are rejudged,
    None for the findings of the run; ``made``: the provenance, None where it cannot be read. Raises
    NetproofError for an empty matrix, and for results of another system.
    """
    if not matrix.cases:
        raise NetproofError("nothing was to be measured, so there is nothing to pass")
    system = matrix.cases[0].system
    others = {result.system for result in session.results} - {system}
    if others:
        raise NetproofError(
            f"{session.path}: holds results of {', '.join(sorted(others))}, not of {system}"
        )
    if not matrix.whole:
        asked = {"", *matrix.partitions}
        results = tuple(one for one in session.results if one.partition in asked)
        session = Session(session.path, session.info, results)
    ran, cases = cases_of(session, matrix)
    subjects = subjects_of(ran, matrix)
    stored = () if alongside is None else alongside.cases
    along = confirmations.findings_along(subjects.values())
    across = engine.across([*subjects.values(), *(one.subject for one in stored)], matrix.baseline)
    today = {
        key: by_references(one, references)
        for key, one in subjects.items()
        if references is not None and concerns(ran[key])
    }
    judged = [
        _whole(
            today.get(key) or _of_run(case, ran.get(key)),
            ran.get(key),
            (*along.get(key, ()), *across.get(key, ())),
        )
        for case in cases
        for key in [case.key()]
    ]
    launched = confirmations.launched(subjects.values())
    failed_tests = beyond_cases(session)
    of_pairs = pairs.of_session(session, matrix)
    in_rounds = traffic.of_rounds((one.rounds for one in of_pairs), matrix.partitions)
    seen = [*traffic.of_cases(subjects.values()), *in_rounds]
    carriers, lossy = traffic.carriers_in_rounds(in_rounds), traffic.standing_out(seen)
    broken = (*carriers, *traffic.all_lose(in_rounds))
    nodes = () if made is None else of_nodes.judge(made, _as_measured(matrix, ran))
    left = skipped_by(session)
    tried = (one.case for one in ran.values() if one.case is not None)
    known = {case.key(): case for case in (*tried, *matrix.cases)}
    skipped = [(case, left[key]) for key, case in known.items() if key in left]
    deferred = {case.partition for case, _ in skipped}
    covered = coverage.judge(made, session, matrix.partitions, deferred)
    if alongside is not None:
        ruled = (
            dataclasses.replace(one, findings=across.get(one.case.key(), ())) for one in stored
        )
        alongside = dataclasses.replace(alongside, cases=tuple(ruled))
    return Verdict(
        tuple(judged),
        matrix.absences,
        (
            *(one.why for one in failed_tests),
            *_vanished(matrix, earlier),
            *(one.finding.why for one in launched if one.finding.level is Level.FAIL),
            *(why for one in of_pairs for why in (*one.accusations(), *one.faults())),
            *(one.why for one in broken if one.level is Level.FAIL),
            *(f"coverage: {one}" for one in covered if one.failed),
            *(str(one) for one in nodes if one.level is Level.FAIL),
        ),
        (
            *_notes_on_cases(matrix, judged, alongside),
            *_absent_fabrics(session),
            *(one.finding.why for one in launched if one.finding.level is Level.WARN),
            *(one.why for one in carriers if one.level is Level.WARN),
            *(one.why for one in lossy),
            *_otherwise([(ran[key], one) for key, one in today.items()]),
        ),
        tuple(skipped),
        alongside,
        tuple(failed_tests),
        launched,
        of_pairs,
        nodes,
        covered,
        traffic.totals(seen),
        (*broken, *lossy),
        () if made is None else made.beyond_nodes,
    )


def _of_run(case: Case, result: CheckResult | None) -> CaseVerdict:
    faults, expected = faults_of(result)
    findings = tuple(map(_ruled, (result.references if result else None) or ()))
    if any(finding.level in AGAINST for finding in findings):
        # ReFrame's own message has no interval.
        faults = ()
    return CaseVerdict(case, faults, expected, findings)


def _ruled(finding: Finding) -> Finding:
    """Return a finding on a reference; an undefined variable that has one fails."""
    return finding.ruled(Level.FAIL if finding.level is Level.UNDEFINED else finding.level)


def _whole(
    judged: CaseVerdict, result: CheckResult | None, by_criteria: Sequence[Finding]
) -> CaseVerdict:
    """Return a case's verdict by its references with the rest, and with its nodes in sentences."""
    faults, findings = judged.faults, judged.findings
    if result is not None and (measured := result.measured):
        names = list(dict.fromkeys(node for one in measured.launches for node in one.nodes()))
        where = f". On {listed(names)}"
        faults = tuple(fault + where for fault in faults)
        findings = tuple(one.but(reason=one.reason + where) for one in findings)
    findings = (*findings, *by_criteria)
    return CaseVerdict.of(judged.case, result, faults, judged.expected, findings)


def _as_measured(matrix: Matrix, ran: Mapping[Key, CheckResult]) -> dict[str, Partition]:
    """Return the partitions with the links that were declared when they were measured."""
    found = dict(matrix.partitions)
    for result in ran.values():
        extras = result.extras.get("partition_extras", {})
        if result.partition in found and {"interface", "link_mbit_s", "mtu"} <= extras.keys():
            then = {key: extras[key] for key in ("interface", "link_mbit_s", "mtu")}
            found[result.partition] = matrix.partitions[result.partition].model_copy(update=then)
    return found


def cases_of(session: Session, matrix: Matrix) -> tuple[dict[Key, CheckResult], list[Case]]:
    """Return the result of each case of a session, by its key, and the cases to judge, in order.

    Cases of the matrix that were not skipped come first, then unexpected ones.
    """
    skipped = skipped_by(session)
    expected = {case.key(): case for case in matrix.cases}
    ran = {one.case.key(): one.case for one in session.results if one.case is not None}
    cases = expected | ran | expected
    return last_results(session), [case for key, case in cases.items() if key not in skipped]


def subjects_of(ran: Mapping[Key, CheckResult], matrix: Matrix) -> dict[Key, Subject]:
    """Return the complete cases of results by their keys, with today's settings."""
    return {key: subject(one, matrix) for key, one in ran.items() if one.measured}


def last_results(session: Session) -> dict[Key, CheckResult]:
    """Return the result of each case by its key: the last run of it counts."""
    return {one.case.key(): one for one in session.results if one.case is not None}


def skipped_by(session: Session) -> dict[Key, CheckResult]:
    """Return the results of the cases that a session skipped, by the case's key."""
    return {
        key: result
        for key, result in last_results(session).items()
        if result.skipped and result.result == "skip"
    }


def subject(result: CheckResult, matrix: Matrix, measured_on: str = "") -> Subject:
    """Return a measured case with today's settings, or with its own without any for it.

    The link is the one that it was measured over. ``measured_on``: the day, if another session than
    the judged one measured it.
    """
    if result.measured is None:
        raise NetproofError(f"{result.name}: measured nothing to judge")
    extras, environment = result.extras["partition_extras"], result.extras["environment_extras"]
    as_it_was = Subject.of_extras(result.measured, extras, environment, measured_on)
    here = matrix.partitions.get(as_it_was.case.partition)
    if here is None:
        return dataclasses.replace(as_it_was, known={})
    known = matrix.known.get(as_it_was.case.environment, {})
    return dataclasses.replace(as_it_was, switch=here.switch, settings=here.settings(), known=known)


def _vanished(matrix: Matrix, earlier: Sequence[Session]) -> list[str]:
    """Return a sentence for each configuration that only earlier sessions have."""
    here = matrix.configurations() | matrix.retired
    gone: dict[tuple[str, str], Session] = {}
    for session in earlier:
        for result in session.results:
            where = (result.partition, result.environment)
            asked = matrix.whole or result.partition in matrix.partitions
            if result.case is not None and asked and where not in here:
                gone.setdefault(where, session)
    return [
        f"{matrix.cases[0].system}:{partition} {environment}: ran in {session.path}, and the"
        " configuration has it no more: put it back, or say why it is gone in a partition's"
        f" extras['retired'] ({f'{partition}:{environment}'!r}: WHY)"
        for (partition, environment), session in gone.items()
    ]


def faults_of(result: CheckResult | None) -> tuple[tuple[str, ...], str]:
    """Return why a case was not measured or fails its references, and why that was expected."""
    if result is None:
        return (NOT_IN_SESSION,), ""
    if result.result not in GOOD_RESULTS:
        return (result.why,), ""
    if result.measured is None:
        return ("passed for ReFrame, but left no measurement",), ""
    return (), "fails as expected" if result.result == "xfail" else ""


def beyond_cases(session: Session) -> list[Finding]:
    """Return the jobs, and tests of rounds of pairs, that did not finish, and why.

    Findings on pairs are not among them, since they are judged here again.
    """
    failed = []
    for one in session.results:
        if (
            one.case is None
            and one.result not in (*GOOD_RESULTS, "fail_deps")
            and not (one.skipped and one.result == "skip")
            and not (one.rounds is not None and one.phase == "sanity")
        ):
            # A run that was killed has no partition.
            where = ":".join(filter(None, (one.system, one.partition)))
            where = " ".join(filter(None, (where, one.environment, one.name)))
            failed.append(Finding(FAILED_TEST, Level.FAIL, where, one.why))
    return failed


def _absent_fabrics(session: Session) -> dict[str, None]:
    """Return what libraries were built without, a sentence each."""
    found: dict[str, None] = {}
    for result in session.results:
        if result.case is not None and result.measured:
            absent = result.extras["environment_extras"].get("built", {}).get("absent", {})
            for fabric, why in absent.items():
                found[f"{result.environment} has no {fabric}: {why}"] = None
    return found


def _notes_on_cases(
    matrix: Matrix, judged: Sequence[CaseVerdict], alongside: StoredResults | None
) -> list[str]:
    """Return what the criteria across configurations could not judge."""
    notes = _notes_of_criteria(judged)
    absent = {(one.partition, one.environment, one.benchmark) for one in matrix.absences}
    keys = by_place({one.case.key(): one for one in judged}).keys()
    without = []
    for case in (one.case for one in judged):
        benchmark = registry.of(case)
        over_tcp = benchmark.over_tcp.get(case.function)
        feature = benchmark.feature(over_tcp) if over_tcp else ""
        lacks = (case.partition, case.environment, feature) in absent
        if lacks and keys.isdisjoint(companion_keys(case, keys)):
            without.append(str(case))
    if without:
        have = counted(len(without), "case has", "cases have")
        notes.append(
            f"{have} no MPI loss, since no environment has NetPIPE over TCP to compare with:"
            f" {listed(without)}"
        )
    if matrix.baseline is None:
        return [*notes, "no scores: the baseline's partition is no part of what was asked for"]
    ran = [one.case for one in judged if one.measured]
    looked_for: list[Case] = []
    if alongside is not None:
        ran += [one.case for one in alongside.cases]
        looked_for = [*alongside.not_found, *(one.case for one in alongside.left_out)]
    of_baseline, known = (
        {
            engine.group(case)
            for case in cases
            if ScoreBaseline(case.partition, case.environment) == matrix.baseline
        }
        for cases in ((*matrix.cases, *looked_for), ran)
    )
    if missing := len(of_baseline - known):
        notes.append(
            f"no scores for {missing} functions: the baseline {matrix.baseline} did not run them"
        )
    if alongside is not None and looked_for:
        taken = " that may take part" if alongside.left_out else ""
        are = ("case of other configurations is", "cases of other configurations are")
        notes.append(
            f"{counted(len(looked_for), *are)} in no session of {alongside.store}{taken} in which"
            f" they passed: {listed([*map(str, looked_for)])}"
        )
    return notes


def _notes_of_criteria(judged: Sequence[CaseVerdict]) -> list[str]:
    """Return what criteria could not judge and did not assert, by criterion and reason.

    Not that TCP is compared with nothing: a partition measures it once.
    """
    found: dict[tuple[str, str, str], dict[str, None]] = defaultdict(dict)
    for one in judged:
        alone = one.case.function in registry.of(one.case).over_tcp.values()
        for finding in one.findings:
            if (finding.own_level, finding.level) == (Level.UNDEFINED, Level.SHOWN):
                if alone and BY_FINDING[finding.criterion].compare is not None:
                    continue
                note = BY_FINDING[finding.criterion].note
                why = finding.why_undefined or finding.reason if "{why}" in note else ""
                found[note, finding.criterion, why][str(one.case)] = None
    return [
        note.format(
            name=name,
            count=counted(len(several)),
            have="has" if len(several) == 1 else "have",
            cases=listed([*several]),
            why=why,
        )
        for (note, name, why), several in found.items()
        if note
    ]


def unsettled_of(
    session: Session, matrix: Matrix | None = None, verdict: Verdict | None = None
) -> dict[Key, tuple[tuple[str, ...], bool]]:
    """Return the open questions of each measured case of a session, by its key, a sentence each.

    With any, a case makes no reference, no baseline and no change. Also whether its figures are
    usable, as after a failure of undisturbed launches. The session is judged by itself, with its
    own site's settings; ``verdict``: that of today by ``matrix``, taken where these are the same.
    Raises NetproofError where the settings cannot be used.
    """
    ran, subjects, baselines = last_results(session), {}, []
    for key, result in ran.items():
        if result.measured is None:
            continue
        where = f"{session.path}: {result.case}"
        try:
            extras, others = result.extras["partition_extras"], result.extras["environment_extras"]
            own = Subject.of_extras(result.measured, extras, others)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise NetproofError(f"{where}: cannot be judged: {error!r}") from error
        subjects[key] = own
        if extras.get("baseline"):
            baselines.append(ScoreBaseline(result.partition, extras["baseline"]))
    several, baseline = list(subjects.values()), baselines[0] if baselines else None
    if (matrix and verdict and matrix.whole and matrix.baseline == baseline) and all(
        vars(subject(ran[key], matrix)) == vars(own) for key, own in subjects.items()
    ):
        known = {one.case.key(): one.findings for one in verdict.cases}
    else:
        along, across = confirmations.findings_along(several), engine.across(several, baseline)
        known = {key: (*along[key], *across.get(key, ())) for key in subjects}
    found = {}
    for key, own in subjects.items():
        by_run = _of_run(own.case, ran[key])
        by_criteria = (one for one in known[key] if one.criterion != REFERENCE)
        one = dataclasses.replace(by_run, findings=(*by_run.findings, *by_criteria))
        questions = [it.reason for it in one.findings if it.level is Level.INCONCLUSIVE]
        noise = own.disturbances
        if noise:
            questions.append(f"the machine was disturbed: {'; '.join(noise)}")
        found[key] = tuple(questions), not questions or (one.failed and not noise)
    return found


def concerns(result: CheckResult) -> bool:
    """Check whether a run compared a case with its references, and nothing else failed it.

    Another error in that phase stands, whatever the references say now.
    """
    if result.result != "fail" or result.phase != "performance":
        return result.result in ("pass", "xfail", "xpass")
    if result.references is None:
        # Without findings there is only ReFrame's message, or none came that far.
        return MISSED in result.reason or records.ENDED_EARLY in result.reason
    return any(one.level in (*AGAINST, Level.UNDEFINED) for one in result.references)


def by_references(subject: Subject, entries: Entries) -> CaseVerdict:
    """Compare a case with its references of today, as the run does, whatever the run's result.

    A variable with bounds is judged by its interval. A known fault is judged by its value, as in
    ReFrame: within the bounds it fails, since the entry has to go. A case or a landmark without an
    entry fails. Raises NetproofError for a malformed entry.
    """
    try:
        found = entries(subject.case)
    except NotThere as error:
        return CaseVerdict(subject.case, (f"has no reference: {error}",))
    known = limits.variables(subject.measured)
    faults = [
        f"{name} has no reference, and is defined: an entry is needed, judged or not"
        for name, (value, _) in known.items()
        if value is not None and not name.startswith(TIME_AT) and name not in found
    ]
    findings = engine.references(subject, limits.of_references(found)).values()
    expected: dict[str, None] = {}
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
            expected[entry[1]] = None
    why = f"fails as expected: {'; '.join(expected)}" if expected and not faults else ""
    return CaseVerdict(subject.case, tuple(faults), why, tuple(map(_ruled, findings)))


def _otherwise(several: Sequence[tuple[CheckResult, CaseVerdict]]) -> list[str]:
    """Return where today's answer is not the run's, a sentence for each pair of answers."""
    failed, inconclusive, expected = "failed", "inconclusive", "failed as expected"
    together: dict[tuple[str, str], list[str]] = defaultdict(list)
    for result, today in several:
        words = {Level.FAIL: failed, Level.INCONCLUSIVE: inconclusive}
        now = words.get(today.level, expected if today.expected else "passed")
        levels = {one.level for one in result.references or ()}
        unclear = Level.INCONCLUSIVE in levels and levels.isdisjoint((Level.FAIL, Level.UNDEFINED))
        then = {"pass": "passed", "xfail": expected}.get(
            result.result, inconclusive if unclear else failed
        )
        if now != then:
            together[now, then].append(str(result.case))
    return [
        f"the file of references has changed since the run: by it {counted(len(cases))}"
        f" {now}, and {then} during the run: {listed(cases)}"
        for (now, then), cases in together.items()
    ]
