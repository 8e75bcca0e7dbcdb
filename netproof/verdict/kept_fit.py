"""Checks that a stored verdict fits its session."""

from __future__ import annotations

from netproof.criteria import Level
from netproof.criteria.registry import BY_FINDING
from netproof.errors import NetproofError
from netproof.session.session import GOOD_RESULTS, CheckResult, Session
from netproof.site.matrix import Matrix
from netproof.verdict import anew
from netproof.verdict.judge import beyond_cases, left_of
from netproof.verdict.kept_bounds import KeptCase
from netproof.verdict.verdict import Verdict, faults_of_parts


class KeptContradiction(NetproofError):
    """A stored verdict that is not whole, or is not on its session."""


def insist_on_fit(one: KeptCase, result: CheckResult | None, measured: bool) -> None:
    """Raise KeptContradiction where a stored verdict on a case cannot have this result."""
    if not measured and not one.faults:
        raise KeptContradiction(f"{one.case}: it was not measured, and no fault is reported")
    if not measured and one.rulings:
        # The run's findings on references count without launches too.
        along = [ruling for ruling in one.rulings if along_curve(ruling.finding.criterion)]
        if along:
            raise KeptContradiction(f"{one.case}: it was not measured, and criteria judged it")
    failed = result is None or result.result not in GOOD_RESULTS
    says = bool(one.faults) or any(
        ruling.level in (Level.FAIL, Level.INCONCLUSIVE) for ruling in one.rulings
    )
    if failed and not says and not (result is not None and anew.concerns(result)):
        raise KeptContradiction(
            f"{one.case}: it failed when it ran, and nothing is against it here"
        )
    for ruling in one.rulings:
        if not ruling.finding.where.startswith(str(one.case)):
            raise KeptContradiction(f"{one.case}: has a finding on {ruling.finding.where}")


def insist_on_faults(verdict: Verdict, session: Session, matrix: Matrix) -> None:
    """Raise KeptContradiction where a failure is not among the faults, or parts do not fit."""
    if verdict.failed_tests != tuple(beyond_cases(session)):
        raise KeptContradiction("the failed tests in it are not those of the session")
    if verdict.left != left_of(session, matrix):
        raise KeptContradiction("the cases left in it are not those of the session")
    faults = [
        *map(str, verdict.failed_tests),
        *faults_of_parts(
            verdict.launched, verdict.pairs, verdict.standing_out, verdict.coverage, verdict.nodes
        ),
    ]
    for fault in faults:
        if fault not in verdict.faults:
            raise KeptContradiction(f"this is not among its faults: {fault}")


def along_curve(criterion: str) -> bool:
    """Check whether a finding is on a case's own curve, and not on a comparison."""
    found = BY_FINDING.get(criterion)
    return found is None or found.judge is not None or criterion == "crashes"
