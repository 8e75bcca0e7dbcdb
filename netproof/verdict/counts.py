"""Counts of a verdict's cases by result."""

from __future__ import annotations

from dataclasses import dataclass

from netproof.criteria import Level
from netproof.verdict.judged import Verdict


@dataclass(frozen=True)
class Counts:
    """Numbers of cases of a verdict; each is passed, inconclusive, failed or did not run.

    ``warned``, ``expected``: passed cases with a warning, and those that fail as the site's
    references expect; ``not_whole``: failed cases without a complete measurement; ``deferred``,
    ``not_measured``: further cases, skipped by plan or since they could not be measured;
    ``faults``: beyond single cases; ``undecided``: nodes that rounds of pairs neither cleared nor
    accused; ``waited_for``: nodes that other jobs held for too long, where their partition was not
    covered for it.
    """

    cases: int
    passed: int
    warned: int
    expected: int
    inconclusive: int
    failed: int
    not_whole: int
    not_run: int
    deferred: int
    not_measured: int
    faults: int
    undecided: int
    waited_for: int


def counts(verdict: Verdict) -> Counts:
    """Return the counts of a verdict."""
    cases = verdict.cases
    failed = [one for one in cases if one.failed and one.ran]
    return Counts(
        cases=len(cases),
        passed=sum(one.passed for one in cases),
        warned=sum(one.level is Level.WARN for one in cases),
        expected=sum(one.level is Level.PASS and bool(one.expected) for one in cases),
        inconclusive=sum(one.level is Level.INCONCLUSIVE for one in cases),
        failed=len(failed),
        not_whole=sum(one.measured is None for one in failed),
        not_run=sum(one.failed and not one.ran for one in cases),
        deferred=sum(one.left.planned for one in verdict.left),
        not_measured=sum(not one.left.planned for one in verdict.left),
        faults=len(verdict.faults),
        undecided=sum(len(one.undecided_nodes()) for one in verdict.pairs),
        waited_for=sum(len(one.waited_for) for one in verdict.coverage if one.short),
    )
