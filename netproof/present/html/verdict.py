"""First part of a report: the verdict and all its reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from netproof.criteria import Level
from netproof.diagnosis.diagnosis import Diagnosis
from netproof.diagnosis.evidence import NO_EARLIER
from netproof.measurement.case import Case
from netproof.present.diagnosis import headline, rows
from netproof.present.html import content, provenance
from netproof.present.html.content import CaseState
from netproof.present.html.material import Report
from netproof.present.power import said
from netproof.present.verdict import MOST_DIFFERENCES
from netproof.present.wording import not_available, outcome
from netproof.verdict.exit_status import FAILED, INCONCLUSIVE, PASSED
from netproof.verdict.explain import counts
from netproof.verdict.power import Degradation
from netproof.verdict.verdict import CaseVerdict, SkippedCase, Verdict


def view(report: Report) -> dict[str, Any]:
    """Return the verdict, cases with their reasons, what did not run, and remarks.

    ``more_differences``: of nodes, beyond those among the ``notes``; ``diagnoses``: by partition;
    ``powers``: cases that passed, with the mildest change of each kind that fails them.
    """
    verdict, differences = report.judged.verdict, report.judged.beyond_nodes
    states = {id(one): content.state_of(one) for one in verdict.cases}
    state, word = state_of(verdict)
    links = report.links

    def entries(
        reasons: Callable[[CaseVerdict], Iterable[str]], only: CaseState | None = None
    ) -> list[dict[str, Any]]:
        found = [
            {"name": _name(one.case), "link": links[one.case.key()], "reasons": list(reasons(one))}
            for one in verdict.cases
            if only in (None, states[id(one)])
        ]
        return [one for one in found if one["reasons"]]

    powers = []
    for one in report.powers:
        found = {each.change: each for each in one.smallest}
        several = [found.get(change) for change in Degradation]
        changes = [(said(each), "" if each is None else each.by) for each in several]
        if found:
            powers.append((_name(one.case), links[one.case.key()], changes))
    absent = [one for one in verdict.cases if states[id(one)] is CaseState.ABSENT]
    return {
        "state": state,
        "word": word,
        "sentence": outcome(counts(verdict)),
        "tested": provenance.tested(report),
        "pages": report.partition_pages,
        "diagnoses": list(map(_diagnosis, report.diagnoses)),
        "faults": verdict.faults,
        "failed": entries(
            lambda one: (*one.faults, *content.reasons(one, Level.FAIL)), CaseState.FAILED
        ),
        "inconclusive": entries(
            lambda one: content.reasons(one, Level.INCONCLUSIVE), CaseState.INCONCLUSIVE
        ),
        "not_run": _not_run(absent, verdict.left),
        "warned": entries(lambda one: content.reasons(one, Level.WARN)),
        "unconfirmed": entries(
            lambda one: [finding.reason for finding in one.findings if finding.forgiven]
        ),
        "notes": [
            *(f"Nodes differ: {one}" for one in differences[:MOST_DIFFERENCES]),
            *(f"Coverage: {one}" for one in verdict.coverage),
            *(f"Pairs: {one}" for one in verdict.pairs),
            *(f"Inconclusive: {one}" for one in verdict.undecided),
            *(f"Warning: {one}" for one in verdict.node_warnings),
            *(f"Not available: {one}" for one in not_available(verdict.absences)),
            *(f"Note: {note}" for note in verdict.notes),
            *(f"Not compared with an earlier session: {why}" for why in report.judged.unread),
        ],
        "more_differences": max(len(differences) - MOST_DIFFERENCES, 0),
        "kinds": ["case", *Degradation],
        "powers": powers,
    }


def state_of(verdict: Verdict) -> tuple[CaseState, str]:
    """Return the look of a verdict, and its word."""
    if verdict.inconclusive:
        return CaseState.INCONCLUSIVE, "Inconclusive"
    return {
        PASSED: (CaseState.PASSED, "Passed"),
        FAILED: (CaseState.FAILED, "Failed"),
        INCONCLUSIVE: (CaseState.ABSENT, "Not judged whole"),
    }[verdict.status]


def _diagnosis(one: Diagnosis) -> dict[str, Any]:
    """Return culprits with labelled findings; since when only where earlier sessions were read."""
    culprits = [
        (
            culprit.headline,
            [row for row in rows(culprit) if culprit.since is not NO_EARLIER or row[0] != "since"],
        )
        for culprit in one.culprits
    ]
    notes = {"Ruled out": one.ruled_out, "Not known": one.not_known}
    return {"headline": headline(one), "culprits": culprits, "notes": notes}


def _name(case: Case) -> str:
    return f"{content.configuration(case)}: {content.named(case)}"


def _not_run(
    several: Sequence[CaseVerdict], left: Sequence[SkippedCase]
) -> dict[tuple[str, str], Any]:
    """Return the cases that did not run, by configuration and reason."""
    by_place: dict[tuple[str, str], list[str]] = {}
    for one in several:
        place = (content.configuration(one.case), "; ".join(one.faults))
        by_place.setdefault(place, []).append(content.named(one.case))
    for one in left:
        word = "deferred" if one.left.planned else "could not be measured"
        place = (content.configuration(one.case), f"{word}: {one.left.why}")
        by_place.setdefault(place, []).append(content.named(one.case))
    return by_place
