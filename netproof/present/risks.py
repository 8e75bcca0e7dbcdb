"""Buyer's and seller's risks by references, in rows and plain values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from netproof.measurement.case import Case
from netproof.measurement.interval import Side
from netproof.present.document import Block, Cell, DataTable, Sentences
from netproof.present.documents import some
from netproof.present.tables import CASE, case_cells
from netproof.present.wording import counted
from netproof.verdict.risk import RISK, ReferenceRisk


def blocks(
    risks: Sequence[ReferenceRisk], without: Mapping[Case, str], margin: float
) -> Iterator[Block]:
    """Yield a line for each landmark: its scatter, the risks of its bound, and a plan for both."""
    head = (*CASE, "landmark", "agreed", "launches ±", "sessions ±")
    last = f"for {RISK:.0%} each"
    bounded = [(one, one.bound) for one in risks if one.bound is not None]
    unbounded = [one for one in risks if one.bound is None]
    if bounded:
        yield Cell(
            f"with bounds; the buyer's risk is of a network that is {margin:.0%} worse", "heading"
        )
        rows = [
            (
                *_cells(one),
                f"{bound:.0%}",
                f"{one.seller():.1%}",
                f"{one.buyer(margin):.1%}",
                _planned(one),
            )
            for one, bound in bounded
        ]
        heads = (*head, "bound", "seller risks", "buyer risks", last)
        yield DataTable(heads, rows, (3, *range(5, 11)))
    if unbounded:
        yield Cell("without bounds", "heading")
        rows = [(*_cells(one), _planned(one)) for one in unbounded]
        yield DataTable((*head, last), rows, (3, 5, 6, 7))
    whys = [f"{case}: nothing can be said: {reason}" for case, reason in without.items()]
    yield Sentences(whys, look="warned")


def _cells(one: ReferenceRisk) -> tuple[str, ...]:
    agreed, sessions = f"{one.agreed:.5g} {one.unit}", f"{one.scatter.between:.1%}"
    return (*case_cells(one.case), one.variable, agreed, _within(one), sessions)


def _planned(one: ReferenceRisk) -> str:
    if one.plan is None:
        return "no plan: they scatter too much"
    sessions, launches = counted(one.plan.sessions, "session"), one.plan.launches
    return f"{sessions} of {counted(launches, 'launch', 'launches')}, bound {one.plan.bound:.1%}"


def _within(one: ReferenceRisk) -> str:
    """Return how launches scatter; unknown for single ones, whose scatter is part of sessions'."""
    scatter = one.scatter
    return "-" if scatter.launches == scatter.sessions else f"{scatter.within:.1%}"


def of_risk(one: ReferenceRisk) -> dict[str, Any]:
    """Return a landmark's risks as plain values for ``json``; ratios are to the agreed value."""
    plan = one.plan
    return {
        "landmark": one.variable,
        **some(one, "unit", "agreed"),
        "scatter": {"launches": one.scatter.within, "sessions": one.scatter.between},
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
            **dict.fromkeys(("seller", "buyer"), plan.risk),
        },
        "why": one.why or None,
    }
