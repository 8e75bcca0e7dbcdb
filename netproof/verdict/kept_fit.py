"""Whether a kept verdict fits the session that it is kept with."""

from __future__ import annotations

from netproof.criteria import Level
from netproof.criteria.registry import BY_FINDING
from netproof.errors import NetproofError
from netproof.session.session import GOOD_RESULTS, CheckResult, Session
from netproof.site.matrix import Matrix
from netproof.verdict import anew
from netproof.verdict.judged import Verdict, faults_of_parts
from netproof.verdict.kept_bounds import KeptCase
from netproof.verdict.notes import beyond_cases
from netproof.verdict.verdict import left_of


class KeptContradiction(NetproofError):
    """A kept verdict that is not whole, or is not on the session that it is kept with."""


def insist_on_fit(one: KeptCase, result: CheckResult | None, measured: bool) -> None:
    """What a kept verdict can say of a case with such a result."""
    if not measured and not one.faults:
        raise KeptContradiction(f"{one.case}: it was not measured, and no fault is told")
    if not measured and one.rulings:
        # What a run said of its references stands without launches too.
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
    """What failed has to be told, in the verdict's parts and in the session."""
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
    """Whether a finding is of a case's own curve, and not of a comparison."""
    found = BY_FINDING.get(criterion)
    return found is None or found.judge is not None or criterion == "crashes"
