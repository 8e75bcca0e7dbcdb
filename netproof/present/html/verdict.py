"""First part of a report: the verdict and all its reasons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from netproof.criteria import Level
from netproof.diagnosis.diagnosis import Diagnosis
from netproof.diagnosis.evidence import NO_EARLIER, Culprit
from netproof.measurement.case import Case
from netproof.present.diagnosis import headline, rows
from netproof.present.html import content
from netproof.present.html.content import CaseState, state_of
from netproof.present.html.material import Report
from netproof.present.power import said
from netproof.present.tables import MOST_DIFFERENCES
from netproof.present.wording import not_available, outcome
from netproof.verdict.exit_status import CANNOT_JUDGE, FAILED, PASSED
from netproof.verdict.explain import counts
from netproof.verdict.power import CasePower, Degradation
from netproof.verdict.verdict import Judged, SkippedCase


@dataclass(frozen=True)
class CaseEntry:
    """A case of a list, with a link to its curves and the reasons why it is in the list."""

    name: str
    link: str
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class NotRun:
    """Cases of a configuration that did not run, for one reason."""

    configuration: str
    why: str
    cases: tuple[str, ...]

    @property
    def count(self) -> int:
        """Number of these cases."""
        return len(self.cases)


@dataclass(frozen=True)
class CulpritView:
    """A culprit: the headline, and the findings on it, each with its label."""

    headline: str
    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class DiagnosisView:
    """Diagnosis of a partition: culprits, what was ruled out, and what is not known."""

    headline: str
    culprits: tuple[CulpritView, ...]
    ruled_out: tuple[str, ...]
    not_known: tuple[str, ...]


@dataclass(frozen=True)
class PowerEntry:
    """A case that passed, and the mildest change of each kind that fails it, and by what."""

    name: str
    link: str
    changes: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class VerdictView:
    """The verdict, failures with their reasons, what did not run, and remarks.

    ``more_differences``: of nodes, beyond those among the ``notes``; ``diagnoses``: by partition.
    """

    look: str
    sign: str
    word: str
    sentence: str
    faults: tuple[str, ...]
    failed: tuple[CaseEntry, ...]
    inconclusive: tuple[CaseEntry, ...]
    not_run: tuple[NotRun, ...]
    warned: tuple[CaseEntry, ...]
    unconfirmed: tuple[CaseEntry, ...]
    notes: tuple[str, ...]
    more_differences: int
    diagnoses: tuple[DiagnosisView, ...] = ()
    powers: tuple[PowerEntry, ...] = ()
    kinds: tuple[str, ...] = ("case", *map(str, Degradation))


def _diagnosis(one: Diagnosis) -> DiagnosisView:
    return DiagnosisView(
        headline(one),
        tuple(CulpritView(culprit.headline, _findings(culprit)) for culprit in one.culprits),
        one.ruled_out,
        one.not_known,
    )


def _findings(culprit: Culprit) -> tuple[tuple[str, str], ...]:
    """Return the findings on a culprit; since when only where earlier sessions were read."""
    several = rows(culprit)
    return tuple(one for one in several if culprit.since is not NO_EARLIER or one[0] != "since")


def view(report: Report) -> VerdictView:
    """Return all that the part shows."""
    verdict = report.judged.verdict
    warned = any(state_of(one) is CaseState.WARNED for one in verdict.cases)
    state, word = {
        PASSED: (CaseState.WARNED if warned else CaseState.PASSED, "Passed"),
        FAILED: (CaseState.FAILED, "Failed"),
        CANNOT_JUDGE: (CaseState.ABSENT, "Not judged whole"),
    }[verdict.status]
    if verdict.inconclusive:
        state, word = CaseState.INCONCLUSIVE, "Inconclusive"
    by_state: dict[CaseState, list[Judged]] = {}
    for one in verdict.cases:
        by_state.setdefault(state_of(one), []).append(one)
    links = {id(one): group.link for group in report.groups for one in group.members}
    pages = {one.case.key(): links[id(one)] for one in verdict.cases if id(one) in links}

    def entries(several: Iterable[tuple[Judged, Sequence[str]]]) -> tuple[CaseEntry, ...]:
        return tuple(
            CaseEntry(_case_name(one.case), links[id(one)], tuple(reasons))
            for one, reasons in several
            if reasons
        )

    differences = report.judged.beyond_nodes
    return VerdictView(
        diagnoses=tuple(map(_diagnosis, report.diagnoses)),
        powers=tuple(_power(one, pages[one.case.key()]) for one in report.powers if one.smallest),
        look=state.look,
        sign=state.sign,
        word=word,
        sentence=outcome(counts(verdict)),
        faults=verdict.faults,
        failed=entries(
            (one, [*one.faults, *content.reasons(one, Level.FAIL)])
            for one in by_state.get(CaseState.FAILED, [])
        ),
        inconclusive=entries(
            (one, content.reasons(one, Level.INCONCLUSIVE))
            for one in by_state.get(CaseState.INCONCLUSIVE, [])
        ),
        not_run=_not_run(by_state.get(CaseState.ABSENT, []), verdict.left),
        warned=entries((one, content.reasons(one, Level.WARN)) for one in verdict.cases),
        unconfirmed=entries(
            (one, [ruling.reason for ruling in one.rulings if ruling.forgiven])
            for one in verdict.cases
        ),
        notes=(
            *(f"Nodes differ: {one}" for one in differences[:MOST_DIFFERENCES]),
            *_notes(report),
        ),
        more_differences=max(len(differences) - MOST_DIFFERENCES, 0),
    )


def _power(one: CasePower, link: str) -> PowerEntry:
    found = {each.change: each for each in one.smallest}
    changes = [found.get(change) for change in Degradation]
    return PowerEntry(
        _case_name(one.case),
        link,
        tuple((said(each), "" if each is None else each.by) for each in changes),
    )


def _case_name(case: Case) -> str:
    return f"{content.configuration(case)}: {content.function_name(case)}, {content.variant(case)}"


def _not_run(several: Sequence[Judged], left: Sequence[SkippedCase]) -> tuple[NotRun, ...]:
    by_place: dict[tuple[str, str], list[Case]] = {}
    for one in several:
        place = (content.configuration(one.case), "; ".join(one.faults))
        by_place.setdefault(place, []).append(one.case)
    for one in left:
        word = "deferred" if one.left.planned else "could not be measured"
        place = (content.configuration(one.case), f"{word}: {one.left.why}")
        by_place.setdefault(place, []).append(one.case)
    return tuple(
        NotRun(
            where,
            why,
            tuple(f"{content.function_name(case)}, {content.variant(case)}" for case in cases),
        )
        for (where, why), cases in by_place.items()
    )


def _notes(report: Report) -> list[str]:
    verdict = report.judged.verdict
    return [
        *(f"Coverage: {one}" for one in verdict.coverage),
        *(f"Pairs: {one}" for one in verdict.pairs),
        *(f"Inconclusive: {one}" for one in verdict.undecided),
        *(f"Warning: {one}" for one in verdict.node_warnings),
        *(f"Not available: {one}" for one in not_available(verdict.absences)),
        *(f"Note: {note}" for note in verdict.notes),
        *(f"Not compared with an earlier session: {reason}" for reason in report.judged.unread),
    ]
