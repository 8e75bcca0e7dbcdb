"""A comparison of two sides, as parts of a page: in a sentence, as ratios, as plots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from netproof.comparison.compared_case import ComparedCase, Outcome
from netproof.comparison.comparison import Comparison
from netproof.present.compared import MARKS, differences, named, node_diffs, summary, whence
from netproof.present.html import content, curves
from netproof.present.html.charts import BANDS_AT_ONCE, ChartFigure
from netproof.present.html.figures import BAND, CROWDED_BAND
from netproof.present.html.html import file_name, render
from netproof.present.html.looks import Looks
from netproof.verdict.group_rulings import group

_LOOKS = {Outcome.FASTER: "passed", Outcome.SLOWER: "warned"}


@dataclass(frozen=True)
class RatioCell:
    """A ratio with its interval and what prevails; ``title``: the same in a sentence."""

    look: str
    sign: str
    ratio: str
    interval: str
    title: str


@dataclass(frozen=True)
class RatioRow:
    """A function's ratios, None where it was not measured on both sides."""

    function: str
    cells: tuple[RatioCell | None, ...]


@dataclass(frozen=True)
class ComparisonView:
    """The second side against the first: in a sentence, as ratios, where it is better or worse.

    ``look``, ``sign``, ``word``: of what prevails; ``head``: titles of the ratios' columns.
    """

    name: str
    first: str
    second: str
    look: str
    sign: str
    word: str
    summary: str
    differences: tuple[str, ...]
    faster_sign: str
    slower_sign: str
    head: tuple[str, ...]
    rows: tuple[RatioRow, ...]
    sentences: tuple[str, ...]
    uncompared: tuple[str, ...]


def view(compared: Comparison) -> ComparisonView:
    """Return all that a page shows of a comparison."""
    faster, slower = compared.count(Outcome.FASTER), compared.count(Outcome.SLOWER)
    outcome = Outcome.ALIKE
    if faster != slower:
        outcome = Outcome.FASTER if faster > slower else Outcome.SLOWER
    head, rows = _ratios(compared)
    first, second = compared.first.name, compared.second.name
    return ComparisonView(
        name=file_name(second, "against", first),
        first=first,
        second=second,
        look="passed" if outcome is Outcome.FASTER else "warned",
        sign=MARKS[outcome],
        word={Outcome.FASTER: "Faster", Outcome.SLOWER: "Slower"}.get(outcome, "Neither"),
        summary=summary(compared),
        differences=(*differences(compared), *node_diffs(compared)),
        faster_sign=MARKS[Outcome.FASTER],
        slower_sign=MARKS[Outcome.SLOWER],
        head=head,
        rows=rows,
        sentences=tuple(
            f"{MARKS[one.outcome]} {named(compared, one.first.case)}: {one.sentence()}"
            for one in _worth_saying(compared)
        ),
        uncompared=tuple(f"{named(compared, one.case)}: {one.why}" for one in compared.uncompared),
    )


def page(
    title: str, comparisons: Sequence[Comparison], scripts: Sequence[str], *, every: bool = False
) -> str:
    """Return a page on sides compared with one first side, with plots of all of them together.

    ``scripts``: files of ``assets`` that it loads; ``every``: plot also functions in which no side
    is slower.
    """
    looks, charts = figures(comparisons, every=every)
    shown = [comparisons[0].first, *(one.second for one in comparisons)]
    heading = "Plots"
    if not every:
        heading += f" of where {' or '.join(side.name for side in shown[1:])} is slower"
    return render(
        "sides.html",
        title=title,
        scripts=scripts,
        sides=[f"{side.name}: {whence(side)}" for side in shown],
        comparisons=list(map(view, comparisons)),
        heading=heading,
        figures=[curves.figure(one, looks, ()) for one in charts],
    )


def figures(
    comparisons: Sequence[Comparison], *, every: bool = False
) -> tuple[Looks, list[ChartFigure]]:
    """Return time against size of all sides, for functions in which one is slower, or all."""
    cases = [one for compared in comparisons for one in compared.cases]
    environments = dict.fromkeys(
        measured.case.environment for one in cases for measured in (one.first, one.second)
    )
    names = (comparisons[0].first.name, *(one.second.name for one in comparisons))
    several: dict[tuple, list[tuple[Comparison, ComparedCase]]] = {}
    for compared in comparisons:
        for one in compared.cases:
            several.setdefault(group(one.first.case), []).append((compared, one))
    return Looks(names, tuple(environments)), [
        _figure(members)
        for members in several.values()
        if (every or any(_slower(one) for _, one in members))
        and any(one.ratios for _, one in members)
    ]


def _slower(one: ComparedCase) -> bool:
    return one.outcome is Outcome.SLOWER or any(not found.faster for found in one.ranges)


def _figure(members: Sequence[tuple[Comparison, ComparedCase]]) -> ChartFigure:
    case = members[0][1].first.case
    title = f"{content.function_name(case)}, {content.variant(case)}"
    # The first side is in every comparison, and drawn once.
    rows = {
        (row["configuration"], row["size_bytes"]): row
        for compared, one in members
        for row in _points(compared, one)
    }
    crowded = len({configuration for configuration, _ in rows}) > BANDS_AT_ONCE
    return ChartFigure(
        name=file_name(title),
        title=f"{title}: time against message size",
        kind="time",
        rows=list(rows.values()),
        flags=[],
        sentences=() if crowded else (BAND,),
        hint=CROWDED_BAND if crowded else None,
    )


def _points(compared: Comparison, one: ComparedCase) -> list[dict[str, Any]]:
    """Return the points of both sides; the side's name stands for the switch."""
    place = _place(compared, one)
    return [
        {
            **point,
            "configuration": f"{side.name} {place}".strip(),
            "partition": side.name,
        }
        for side, measured in ((compared.first, one.first), (compared.second, one.second))
        for point in content.points_of(measured)
    ]


def _ratios(compared: Comparison) -> tuple[tuple[str, ...], tuple[RatioRow, ...]]:
    """Return ratios by function and ranks against the configurations of both sides."""
    places: dict[str, dict[tuple, ComparedCase]] = {}
    for one in compared.cases:
        places.setdefault(_place(compared, one), {})[group(one.first.case)] = one
    functions = dict.fromkeys(key for there in places.values() for key in there)
    names = {
        group(one.first.case): (
            f"{content.function_name(one.first.case)}, {content.variant(one.first.case)}"
        )
        for one in compared.cases
    }
    rows = (
        RatioRow(names[key], tuple(_cell(there.get(key)) for there in places.values()))
        for key in functions
    )
    return ("function", *(name or "ratio" for name in places)), tuple(rows)


def _place(compared: Comparison, one: ComparedCase) -> str:
    """Return the part of the configuration that both sides have in common."""
    case = one.first.case
    parts = (
        None if compared.first.partition else case.partition,
        None if compared.first.environment else case.environment,
    )
    return " ".join(part for part in parts if part)


def _cell(one: ComparedCase | None) -> RatioCell | None:
    if one is None:
        return None
    if one.score.value is None:
        return RatioCell("", "", "no ratio", "", one.sentence())
    interval = one.score.interval
    below = "no interval" if interval is None else f"{interval[0]:.2f}–{interval[1]:.2f}"
    look = _LOOKS.get(one.outcome, "")
    sign = MARKS[one.outcome] if look else ""
    return RatioCell(look, sign, f"{one.score.value:.2f}", below, one.sentence())


def _worth_saying(compared: Comparison) -> list[ComparedCase]:
    """Return the cases that are better or worse, overall or at some sizes, slowest first."""
    return sorted(
        (one for one in compared.cases if one.outcome in _LOOKS or one.ranges),
        key=lambda one: one.score.value or 1,
    )
