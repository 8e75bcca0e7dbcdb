"""The first part of a report: the verdict and all its reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from netproof.benchmarks.catalogue import FEATURES
from netproof.criteria import Level
from netproof.measurement.case import Case
from netproof.present.html import content
from netproof.present.html.content import CaseState, state_of
from netproof.present.html.html import Markup, element, joined, row, table
from netproof.present.html.material import Report
from netproof.present.tables import MOST_DIFFERENCES
from netproof.verdict.verdict import CANNOT_JUDGE, FAILED, PASSED, Judged, LeftCase

CASES_SHOWN = 40
"""How many cases a list shows before the others are to be opened."""


def part(report: Report) -> Markup:
    """The verdict, failures with their reasons, what did not run, and what else is to be said."""
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
    return joined(
        element(
            "p",
            element("strong", f"{state.sign} {word}"),
            element("span", f"{content.sentence(verdict)}."),
            class_=f"verdict {state.look}",
        ),
        _faults(verdict.faults),
        _failures(by_state.get(CaseState.FAILED, []), links),
        _inconclusive(by_state.get(CaseState.INCONCLUSIVE, []), links),
        _not_run(by_state.get(CaseState.ABSENT, []), verdict.left),
        _warnings(verdict.cases, links),
        _unconfirmed(verdict.cases, links),
        _notes(report),
    )


def _faults(faults: Sequence[str]) -> Markup | None:
    if not faults:
        return None
    return joined(
        element("h3", "Faults beyond single cases"),
        element("ul", [element("li", fault, class_="failed") for fault in faults], class_="cases"),
    )


def _failures(several: Sequence[Judged], links: Mapping[int, str]) -> Markup:
    if not several:
        return element("p", "No case that ran failed.")
    return joined(
        element("h3", f"What failed: {_cases(len(several))}"),
        _case_list(
            [(one, [*one.faults, *content.reasons(one, Level.FAIL)]) for one in several],
            links,
            "failed",
        ),
    )


def _inconclusive(several: Sequence[Judged], links: Mapping[int, str]) -> Markup | None:
    if not several:
        return None
    return joined(
        element("h3", f"What is inconclusive: {_cases(len(several))}"),
        _case_list(
            [(one, content.reasons(one, Level.INCONCLUSIVE)) for one in several],
            links,
            "inconclusive",
        ),
    )


def _case_list(
    several: Sequence[tuple[Judged, Sequence[str]]], links: Mapping[int, str], class_: str
) -> Markup:
    """Cases with their reasons; of very many, those after the first are to be opened."""
    made = [
        element(
            "li",
            element("a", _case_name(one.case), href=links[id(one)]),
            element("ul", [element("li", why) for why in reasons]),
            class_=class_,
        )
        for one, reasons in several
    ]
    first, others = made[:CASES_SHOWN], made[CASES_SHOWN:]
    return joined(
        element("ul", first, class_="cases"),
        element(
            "details",
            element("summary", f"and {len(others)} more"),
            element("ul", others, class_="cases"),
        )
        if others
        else None,
    )


def _cases(count: int) -> str:
    return "1 case" if count == 1 else f"{count} cases"


def _case_name(case: Case) -> str:
    return f"{content.configuration(case)}: {content.function_name(case)}, {content.variant(case)}"


def _not_run(several: Sequence[Judged], left: Sequence[LeftCase]) -> Markup:
    if not several and not left:
        return element("p", "Every case that was owed ran.")
    by_place: dict[tuple[str, str], list[Case]] = {}
    for one in several:
        place = (content.configuration(one.case), "; ".join(one.faults))
        by_place.setdefault(place, []).append(one.case)
    for one in left:
        word = "left for another night" if one.left.planned else "could not be measured"
        place = (content.configuration(one.case), f"{word}: {one.left.why}")
        by_place.setdefault(place, []).append(one.case)
    rows = [
        row(
            where,
            str(len(cases)),
            element(
                "td",
                why,
                element(
                    "details",
                    element("summary", "which"),
                    element(
                        "ul",
                        [
                            element(
                                "li",
                                f"{content.function_name(case)}, {content.variant(case)}",
                            )
                            for case in cases
                        ],
                    ),
                ),
            ),
        )
        for (where, why), cases in by_place.items()
    ]
    return joined(
        element("h3", f"What did not run: {_cases(len(several) + len(left))}"),
        table([row("configuration", "cases", "why", head=True)], rows),
    )


def _warnings(cases: Sequence[Judged], links: Mapping[int, str]) -> Markup | None:
    several = [(one, content.reasons(one, Level.WARN)) for one in cases if one.said(Level.WARN)]
    if not several:
        return None
    return element(
        "details",
        element("summary", f"Warnings: {_cases(len(several))}"),
        _case_list(several, links, "warned"),
        open=True if len(several) <= 4 else None,
    )


def _unconfirmed(cases: Sequence[Judged], links: Mapping[int, str]) -> Markup | None:
    several = []
    for one in cases:
        shown = [
            content.reason(ruling)
            for ruling in one.rulings
            if ruling.level is Level.SHOWN
            and (ruling.confirmation is not None or "; known: " in ruling.why)
        ]
        if shown:
            several.append((one, shown))
    if not several:
        return None
    return element(
        "details",
        element("summary", f"Flagged, but not confirmed, or known of: {_cases(len(several))}"),
        _case_list(several, links, "shown"),
    )


def _notes(report: Report) -> Markup | None:
    verdict = report.judged.verdict
    told = [
        *(
            f"Not here: {one.partition} {one.environment}"
            f" {FEATURES.get(one.benchmark, one.benchmark)}: {one.reason}"
            for one in verdict.absences
        ),
        *(f"Note: {note}" for note in verdict.notes),
        *(f"Not compared with an earlier session: {reason}" for reason in report.judged.unread),
    ]
    differences = report.judged.differences
    shown = [f"Nodes differ: {one}" for one in differences[:MOST_DIFFERENCES]]
    if not told and not shown:
        return None
    beyond = len(differences) - len(shown)
    return joined(
        element("h3", "What has to be said besides"),
        element("ul", [element("li", one) for one in (*shown, *told)]),
        element("p", element("a", f"Nodes differ in {beyond} more.", href="#nodes-differ"))
        if beyond
        else None,
    )
