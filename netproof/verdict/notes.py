"""Notes of a verdict besides its findings, and failed tests that are no cases."""

from __future__ import annotations

from collections.abc import Sequence

from netproof.benchmarks import registry
from netproof.criteria import Level
from netproof.criteria.registry import BY_FINDING
from netproof.measurement.case import Case
from netproof.session.session import GOOD_RESULTS, CheckResult, Session
from netproof.site.matrix import Matrix
from netproof.site.partition import ScoreBaseline
from netproof.verdict import comparing
from netproof.verdict.judged import Alongside, FailedTest, Judged
from netproof.verdict.judgement import LaunchCount


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


def of_cases(matrix: Matrix, cases: Sequence[Judged], alongside: Alongside | None) -> list[str]:
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
            f"{_cases(alone)} no envelope, since no other configuration measured the same:"
            f" {_first(alone)}"
        )
    notes += _not_counted(cases)
    without = _without_tcp(matrix, cases)
    if without:
        notes.append(
            f"{_cases(without)} no MPI loss, since the environment has no NetPIPE over TCP to"
            f" compare with: {_first(without)}"
        )
    for why, several in _without_share(cases).items():
        notes.append(f"{_cases(several)} no share of the line rate: {_first(several)}: {why}")
    if matrix.baseline is None:
        notes.append("no scores: the baseline's partition is no part of what was asked for")
        return notes
    where = (matrix.baseline.partition, matrix.baseline.environment)
    expected = {
        comparing.group(case)
        for case in matrix.cases
        if (case.partition, case.environment) == where
    }
    ran = {
        comparing.group(judged.case)
        for judged in cases
        if judged.measured and (judged.case.partition, judged.case.environment) == where
    }
    ran |= {
        comparing.group(one.case)
        for one in (() if alongside is None else alongside.cases)
        if (one.case.partition, one.case.environment) == where
    }
    # Cases that were looked up in the store have notes of their own.
    looked_for = {
        comparing.group(case)
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


def _cases(several: Sequence[str]) -> str:
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
