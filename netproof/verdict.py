"""The verdict on a session: what was owed, what ran, and what of it passed."""

from __future__ import annotations

from dataclasses import dataclass

from netproof.case import Case
from netproof.errors import NetproofError
from netproof.matrix import Absence, Matrix
from netproof.session import CheckResult, Session

PASSED, FAILED, CANNOT_JUDGE = 0, 1, 2
"""Exit statuses of whatever judges a session."""

_GOOD_RESULTS = ("pass", "xfail")


@dataclass(frozen=True)
class Judged:
    """One case: ``passed``, and in a sentence why not, or what was expected of it."""

    case: Case
    result: CheckResult | None
    passed: bool
    reason: str


@dataclass(frozen=True)
class Verdict:
    """All cases in the matrix' order, what the site says is absent, and faults beyond a case."""

    cases: tuple[Judged, ...]
    absences: tuple[Absence, ...]
    faults: tuple[str, ...]

    @property
    def status(self) -> int:
        """Exit status: 0 passed, 1 failed."""
        passed = not self.faults and all(judged.passed for judged in self.cases)
        return PASSED if passed else FAILED


def judge(matrix: Matrix, session: Session) -> Verdict:
    """Judge a session against the matrix that it owes.

    Raises NetproofError where it cannot be judged: an empty matrix, or results of another
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
    ran: dict[tuple, CheckResult] = {}
    faults = []
    for result in session.results:
        if result.case is not None:
            # A case that ReFrame ran again stands as it ended.
            ran[result.case.key()] = result
        elif result.result not in _GOOD_RESULTS:
            faults.append(
                f"{result.system}:{result.partition} {result.environment} job {result.name}:"
                f" {_why(result)}"
            )
    judged = [_judged(case, ran.pop(case.key(), None)) for case in matrix.cases]
    judged += [_judged(result.case, result) for result in ran.values()]
    return Verdict(tuple(judged), matrix.absences, tuple(faults))


def _judged(case: Case, result: CheckResult | None) -> Judged:
    if result is None:
        return Judged(case, None, False, "did not run: the session does not have it")
    if result.result not in _GOOD_RESULTS:
        return Judged(case, result, False, _why(result))
    if result.measured is None:
        return Judged(case, result, False, "passed for ReFrame, but left no measurement")
    reason = "fails as expected" if result.result == "xfail" else ""
    return Judged(case, result, True, reason)


def _why(result: CheckResult) -> str:
    if result.result == "skip":
        return f"was skipped: {result.reason or 'ReFrame gives no reason'}"
    if result.result == "fail_deps":
        return "did not run, since the job that measures for it failed"
    # ReFrame repeats some reasons on lines of their own.
    lines = dict.fromkeys(line.strip() for line in result.reason.splitlines() if line.strip())
    return f"{result.result} in {result.phase or 'an unknown phase'}: {' '.join(lines)}"
