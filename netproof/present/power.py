"""The smallest changes that would have failed, and buyer's and seller's risks by references."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from netproof.measurement.case import Case
from netproof.measurement.interval import Side
from netproof.present.document import Block, Cell, DataTable, Links, Sentences
from netproof.present.documents import some
from netproof.present.wording import CASE, case_cells, counted
from netproof.verdict.derive import RISK, ReferenceRisk
from netproof.verdict.power import CasePower, Degradation, Smallest

NOTHING_FAILS = "nothing fails"


def said(one: Smallest | None) -> str:
    """Return a change in a few words; ``-`` where the case has none of its kind."""
    if one is None:
        return "-"
    factor = one.sure or one.factor
    if factor is None:
        return NOTHING_FAILS
    about = "" if one.sure is not None else "about "
    if one.change is Degradation.BANDWIDTH:
        return f"{about}{1 - 1 / factor:.0%} less"
    if one.change is Degradation.LATENCY:
        return f"{about}{factor - 1:.0%} more" if factor < 2 else f"{about}{factor:.3g} times"
    return f"{about}{factor:.3g} times at {one.size} bytes"


def power_blocks(powers: Sequence[CasePower], links: Links | None = None) -> Iterator[Block]:
    """Yield a line for each passed case: what would have failed it, and by which criterion.

    ``links``: to cases' charts, by the cases' keys.
    """
    passed = [one for one in powers if one.smallest]
    if not passed:
        yield "no case passed, so there is nothing to say of what would have failed"
        return
    head = [*CASE, "launches"]
    for change in Degradation:
        head += [change, "by"]
    rows = []
    for one in passed:
        partition, *named = case_cells(one.case)
        row: list[str | Cell] = [Cell(partition, link=(links or {}).get(one.case.key(), ""))]
        row += [*named, str(one.launches)]
        found = {each.change: each for each in one.smallest}
        for each in map(found.get, Degradation):
            row += [said(each), "-" if each is None or not each.by else each.by]
        rows.append(row)
    yield Cell(
        "the smallest change that this session would have called a failure (95 %)", "heading"
    )
    yield DataTable(head, rows, (3, 4, 5, 7, 9))
    single = sum(one.launches == 1 for one in passed)
    if single:
        have = counted(single, "case has", "cases have")
        yield f"about: {have} a single launch, so how sure that is is not known"
    blind = sum(None in (each.factor for each in one.smallest) for one in passed)
    if blind:
        yield Cell(
            f"{NOTHING_FAILS}: {counted(blind, 'case has', 'cases have')} no bound"
            " that such a change would cross, even 100 times; a reference would give it one",
            "warned",
        )


def of_power(one: CasePower) -> dict[str, Any]:
    """Return the power of a case as plain values for ``json``."""
    return {
        "launches": one.launches,
        "changes": [
            {**some(each, "change", "factor", "sure", "size"), "criterion": each.by or None}
            for each in one.smallest
        ],
    }


def risk_blocks(
    risks: Sequence[ReferenceRisk], without: Mapping[Case, str], margin: float
) -> Iterator[Block]:
    """Yield a line for each landmark: its scatter, the risks of its bound, and a plan for both."""
    head = (*CASE, "landmark", "agreed", "launches ±", "sessions ±")
    heads = (*head, "bound", "seller risks", "buyer risks", f"for {RISK:.0%} each")
    rows = [_risk_row(one, margin) for one in sorted(risks, key=lambda one: one.bound is None)]
    unbounded = sum(one.bound is None for one in risks)
    groups = {
        f"with bounds; the buyer's risk is of a network that is {margin:.0%} worse": len(risks)
        - unbounded,
        "without bounds": unbounded,
    }
    groups = {heading: count for heading, count in groups.items() if count}
    yield DataTable(heads, rows, (3, *range(5, 11)), groups=groups)
    whys = [f"{case}: nothing can be said: {reason}" for case, reason in without.items()]
    yield Sentences(whys, look="warned")


def _risk_row(one: ReferenceRisk, margin: float) -> tuple[str, ...]:
    scatter, planned, risks = one.scatter, "no plan: they scatter too much", ("-", "-", "-")
    # That of single launches is part of their sessions'.
    within = "-" if scatter.launches == scatter.sessions else f"{scatter.within:.1%}"
    if one.bound is not None:
        risks = (f"{one.bound:.0%}", f"{one.seller():.1%}", f"{one.buyer(margin):.1%}")
    if one.plan is not None:
        sessions = counted(one.plan.sessions, "session")
        launches = counted(one.plan.launches, "launch", "launches")
        planned = f"{sessions} of {launches}, bound {one.plan.bound:.1%}"
    agreed = (f"{one.agreed:.5g} {one.unit}", within, f"{scatter.between:.1%}")
    return (*case_cells(one.case), one.variable, *agreed, *risks, planned)


def of_risk(one: ReferenceRisk) -> dict[str, Any]:
    """Return a landmark's risks as plain values for ``json``; ratios are to the agreed value."""
    plan = one.plan
    return {
        **some(one, "unit", "agreed", landmark="variable"),
        "scatter": some(one.scatter, launches="within", sessions="between"),
        "bound": one.bound,
        "curve": [
            {
                "ratio": ratio,
                "passed": shares[Side.WITHIN],
                "failed": shares[Side.BEYOND],
                "inconclusive": shares[Side.ASTRIDE],
            }
            for ratio, shares in one.curve.items()
        ],
        "plan": plan
        and {
            **some(plan, "sessions", "launches", "bound"),
            **some(plan, seller="risk", buyer="risk"),
        },
        "why": one.why or None,
    }
