"""Buyer's and seller's risks by references, in rows and plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from netproof.measurement.case import Case
from netproof.measurement.interval import Side
from netproof.present.documents import some
from netproof.present.tables import TableColumn, case_columns, print_table
from netproof.present.terminal import say
from netproof.present.wording import counted
from netproof.verdict.risk import RISK, ReferenceRisk


def print_risks(
    risks: Sequence[ReferenceRisk],
    without: Mapping[Case, str],
    margin: float,
    out: Console,
) -> None:
    """Print a line for each landmark: its scatter, the risks of its bound, and a plan for both."""
    bounded = [one for one in risks if one.curve is not None]
    for title, several in (
        (f"with bounds; the buyer's risk is of a network that is {margin:.0%} worse", bounded),
        ("without bounds", [one for one in risks if one.curve is None]),
    ):
        if not several:
            continue
        say(out, title, "bold")
        columns = [
            *case_columns(one.case for one in several),
            TableColumn("landmark", [one.variable for one in several], right=False),
            TableColumn("agreed", [f"{one.agreed:.5g} {one.unit}" for one in several]),
            TableColumn("launches ±", [_within(one) for one in several], rank=2),
            TableColumn("sessions ±", [f"{one.scatter.between:.1%}" for one in several], rank=2),
        ]
        if several is bounded:
            curves = [one.curve for one in several]
            columns += [
                TableColumn("bound", [f"{curve.bound:.0%}" for curve in curves]),
                TableColumn("seller risks", [f"{curve.seller():.1%}" for curve in curves]),
                TableColumn("buyer risks", [f"{curve.buyer(margin):.1%}" for curve in curves]),
            ]
        planned = [_planned(one) for one in several]
        print_table([*columns, TableColumn(f"for {RISK:.0%} each", planned, right=False)], out)
        out.print()
    for case, reason in without.items():
        say(out, f"{case}: nothing can be said: {reason}", "yellow")


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
    plan, curve, points = one.plan, one.curve, []
    if curve is not None:
        points = [
            {
                "ratio": ratio,
                "passed": shares[Side.WITHIN],
                "failed": shares[Side.BEYOND],
                "inconclusive": shares[Side.ASTRIDE],
            }
            for ratio, shares in zip(curve.ratios, curve.shares, strict=True)
        ]
    return {
        "landmark": one.variable,
        **some(one, "unit", "agreed"),
        "scatter": {"launches": one.scatter.within, "sessions": one.scatter.between},
        "bound": curve and curve.bound,
        "curve": points,
        "plan": plan
        and {
            **some(plan, "sessions", "launches", "bound"),
            **dict.fromkeys(("seller", "buyer"), plan.risk),
        },
        "why": one.why or None,
    }
