"""The page on a comparison: what the terminal prints of it, and plots of all sides together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from netproof.comparison.comparison import ComparedCase, Comparison, Outcome
from netproof.present.compared import blocks, place
from netproof.present.document import Part
from netproof.present.html import content
from netproof.present.html.charts import ChartFigure, Looks
from netproof.present.html.figures import over_size, points
from netproof.present.html.html import page_of
from netproof.verdict.engine import group


def page(
    title: str,
    comparisons: Sequence[Comparison],
    failed: Mapping[str, str] | None = None,
    *,
    every: bool = False,
) -> str:
    """Return a page on sides compared with one first side.

    ``failed``: the sides that could not be compared, with the reason; ``every``: plot also
    functions in which no side is slower.
    """
    heading = "Plots"
    if not every:
        heading += f" of where {' or '.join(one.second.name for one in comparisons)} is slower"
    plots = _figures(comparisons, every=every)
    parts: list[Part] = [
        ("comparison", "", list(blocks(comparisons, failed or {}))),
        ("plots", heading, plots or ["There are none."]),
    ]
    return page_of(title, parts)


def _figures(comparisons: Sequence[Comparison], *, every: bool) -> list[ChartFigure]:
    """Return time against size of all sides, for functions in which one is slower, or all."""
    environments: dict[str, None] = {}
    several: dict[tuple[object, ...], list[tuple[Comparison, ComparedCase]]] = {}
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
