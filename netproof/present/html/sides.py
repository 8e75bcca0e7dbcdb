"""A comparison of two sides, as parts of a page: in a sentence, as ratios, as plots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from netproof.comparison.compared_case import ComparedCase, Outcome
from netproof.comparison.comparison import Comparison
from netproof.present.compared import (
    MARKS,
    differences,
    named,
    node_diffs,
    place,
    summary,
    whence,
)
from netproof.present.html import content
from netproof.present.html.charts import ChartFigure, Looks
from netproof.present.html.figures import over_size, points
from netproof.present.html.html import file_name, render
from netproof.verdict.engine import group

_LOOKS = {Outcome.FASTER: "passed", Outcome.SLOWER: "warned"}


def view(compared: Comparison) -> dict[str, Any]:
    """Return the second side against the first: in a sentence, as ratios, where it differs.

    ``look``, ``sign``, ``word``: of what prevails; ``head``: titles of the ratios' columns.
    """
    faster, slower = compared.count(Outcome.FASTER), compared.count(Outcome.SLOWER)
    outcome = Outcome.ALIKE
    if faster != slower:
        outcome = Outcome.FASTER if faster > slower else Outcome.SLOWER
    first, second = compared.first.name, compared.second.name
    places: dict[str, dict[tuple, ComparedCase]] = {}
    functions: dict[tuple, str] = {}
    for one in compared.cases:
        case = one.first.case
        places.setdefault(place(compared, case), {})[group(case)] = one
        functions[group(case)] = content.named(case)
    in_order = dict.fromkeys(key for there in places.values() for key in there)
    # Better or worse, overall or at some sizes, the slowest first.
    shown = [one for one in compared.cases if one.outcome in _LOOKS or one.ranges]
    return {
        "name": file_name(second, "against", first),
        "first": first,
        "second": second,
        "look": "passed" if outcome is Outcome.FASTER else "warned",
        "sign": MARKS[outcome],
        "word": {Outcome.FASTER: "Faster", Outcome.SLOWER: "Slower"}.get(outcome, "Neither"),
        "summary": summary(compared),
        "differences": [*differences(compared), *node_diffs(compared)],
        "faster_sign": MARKS[Outcome.FASTER],
        "slower_sign": MARKS[Outcome.SLOWER],
        "head": ["function", *(name or "ratio" for name in places)],
        "rows": [
            (functions[key], [_cell(there.get(key)) for there in places.values()])
            for key in in_order
        ],
        "sentences": [
            f"{MARKS[one.outcome]} {named(compared, one.first.case)}: {one.sentence()}"
            for one in sorted(shown, key=lambda one: one.score.value or 1)
        ],
        "uncompared": [f"{named(compared, one.case)}: {one.why}" for one in compared.uncompared],
    }


def _cell(one: ComparedCase | None) -> dict[str, str] | None:
    """Return a ratio with interval and what prevails; None where not measured on both sides."""
    if one is None:
        return None
    if one.score.value is None:
        cell = {"look": "", "sign": "", "ratio": "no ratio", "interval": ""}
    else:
        interval, look = one.score.interval, _LOOKS.get(one.outcome, "")
        cell = {
            "look": look,
            "sign": MARKS[one.outcome] if look else "",
            "ratio": f"{one.score.value:.2f}",
            "interval": "no interval"
            if interval is None
            else f"{interval[0]:.2f}–{interval[1]:.2f}",
        }
    return {**cell, "title": one.sentence()}


def page(title: str, comparisons: Sequence[Comparison], *, every: bool = False) -> str:
    """Return a page on sides compared with one first side, with plots of all of them together.

    ``every``: plot also functions in which no side is slower.
    """
    shown = [comparisons[0].first, *(one.second for one in comparisons)]
    heading = "Plots"
    if not every:
        heading += f" of where {' or '.join(side.name for side in shown[1:])} is slower"
    return render(
        "sides.html",
        title=title,
        sides=[f"{side.name}: {whence(side)}" for side in shown],
        comparisons=list(map(view, comparisons)),
        heading=heading,
        figures=_figures(comparisons, every=every),
    )


def _figures(comparisons: Sequence[Comparison], *, every: bool) -> list[ChartFigure]:
    """Return time against size of all sides, for functions in which one is slower, or all."""
    environments: dict[str, None] = {}
    several: dict[tuple, list[tuple[Comparison, ComparedCase]]] = {}
    for compared in comparisons:
        for one in compared.cases:
            several.setdefault(group(one.first.case), []).append((compared, one))
            environments |= {each.case.environment: None for each in (one.first, one.second)}
    names = (comparisons[0].first.name, *(one.second.name for one in comparisons))
    looks = Looks(names, tuple(environments))
    return [
        _figure(members, looks)
        for members in several.values()
        if (every or any(_slower(one) for _, one in members))
        and any(one.ratios for _, one in members)
    ]


def _slower(one: ComparedCase) -> bool:
    return one.outcome is Outcome.SLOWER or any(not found.faster for found in one.ranges)


def _figure(members: Sequence[tuple[Comparison, ComparedCase]], looks: Looks) -> ChartFigure:
    # The first side is in every comparison, and drawn once; a side's name stands for the switch.
    rows = {}
    for compared, one in members:
        where = place(compared, one.first.case)
        for side, measured in ((compared.first, one.first), (compared.second, one.second)):
            spread, launches = measured.mad_us, len(measured.launches)
            name = f"{side.name} {where}".strip()
            for row in points(measured.curve, spread, launches, name, side.name, measured.case):
                rows[row["configuration"], row["size_bytes"]] = row
    return over_size(content.named(members[0][1].first.case), list(rows.values()), looks)
