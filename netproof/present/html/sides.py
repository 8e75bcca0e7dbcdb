"""Two sides that were compared, as parts of a page: in a sentence, as ratios, as plots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from netproof.comparison.comparison import ComparedCase, Comparison, Outcome
from netproof.present.compared import MARKS, differences, named, nodes_told, summary, whence
from netproof.present.html import content, curves
from netproof.present.html.charts import BANDS_AT_ONCE, ChartFigure, Looks
from netproof.present.html.figures import BAND, CROWDED_BAND
from netproof.present.html.html import Markup, document, element, file_name, joined, row, table
from netproof.verdict.judgement import group

_LOOKS = {Outcome.FASTER: "passed", Outcome.SLOWER: "warned"}


def answer(compared: Comparison) -> Markup:
    """What came out overall, in a sentence or two, with the sign of what prevails."""
    faster, slower = compared.count(Outcome.FASTER), compared.count(Outcome.SLOWER)
    outcome = Outcome.ALIKE
    if faster != slower:
        outcome = Outcome.FASTER if faster > slower else Outcome.SLOWER
    look = "passed" if outcome is Outcome.FASTER else "warned"
    word = {Outcome.FASTER: "Faster", Outcome.SLOWER: "Slower"}.get(outcome, "Neither")
    return element(
        "p",
        element("strong", f"{MARKS[outcome]} {word}"),
        element("span", f"{summary(compared)}."),
        class_=f"verdict {look}",
    )


def part(compared: Comparison) -> Markup:
    """The second side against the first: configuration, ratios, where it is better or worse."""
    return element(
        "section",
        element("h2", f"{compared.second.name} against {compared.first.name}"),
        _differences(compared),
        _ratios(compared),
        _sentences(compared),
        _uncompared(compared),
        id=file_name(compared.second.name, "against", compared.first.name),
    )


def _differences(compared: Comparison) -> Markup | None:
    several = [*differences(compared), *nodes_told(compared)]
    if not several:
        return None
    told = [element("p", "In what a site's file says and nodes were found to have, they differ:")]
    return joined(told, element("ul", [element("li", one) for one in several]))


def page(
    title: str, comparisons: Sequence[Comparison], scripts: Sequence[str], *, every: bool = False
) -> str:
    """A page on sides that were compared with one first side, with plots of all of them together.

    ``scripts``: files of ``assets`` that it loads; ``every``: functions are plotted in which no
    side is slower, too.
    """
    looks, charts = figures(comparisons, every=every)
    shown = [comparisons[0].first, *(one.second for one in comparisons)]
    heading = "Plots"
    if not every:
        heading += f" of where {' or '.join(side.name for side in shown[1:])} is slower"
    body = element(
        "main",
        element("h1", title),
        [element("p", f"{side.name}: {whence(side)}", class_="faint") for side in shown],
        [answer(compared) for compared in comparisons],
        [part(compared) for compared in comparisons],
        element(
            "section",
            element("h2", heading),
            element("div", [curves.figure(one, looks, ()) for one in charts], class_="charts")
            if charts
            else element("p", "There are none."),
        ),
    )
    return document(title, body, scripts)


def figures(
    comparisons: Sequence[Comparison], *, every: bool = False
) -> tuple[Looks, list[ChartFigure]]:
    """Time against size of all sides, for each function in which one is slower, or for every."""
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
        told=() if crowded else (BAND,),
        hint=CROWDED_BAND if crowded else None,
    )


def _points(compared: Comparison, one: ComparedCase) -> list[dict[str, Any]]:
    """The points of both sides, the side's name standing for the switch."""
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


def _ratios(compared: Comparison) -> Markup:
    """Ratios by function and ranks against the configurations that both sides have in common."""
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
    rows = [
        row(names[key], *(_cell(there.get(key)) for there in places.values())) for key in functions
    ]
    first, second = compared.first.name, compared.second.name
    explained = (
        f"{second} is so many times as fast as {first}, by the geometric mean over message sizes;"
        f" below it the 95 % interval over launches. {MARKS[Outcome.FASTER]} faster,"
        f" {MARKS[Outcome.SLOWER]} slower, neither where the interval holds 1."
    )
    head = row("function", *(name or "ratio" for name in places), head=True)
    return joined(element("p", explained, class_="faint"), table([head], rows, class_="matrix"))


def _place(compared: Comparison, one: ComparedCase) -> str:
    """The part of the configuration that both sides have in common."""
    case = one.first.case
    parts = (
        None if compared.first.partition else case.partition,
        None if compared.first.environment else case.environment,
    )
    return " ".join(part for part in parts if part)


def _cell(one: ComparedCase | None) -> Markup:
    if one is None:
        return element("td", "–", class_="no-case", title="not in both")
    if one.score.value is None:
        return element("td", "no ratio", title=one.sentence())
    sign = f"{MARKS[one.outcome]} " if one.outcome in _LOOKS else ""
    interval = one.score.interval
    below = "no interval" if interval is None else f"{interval[0]:.2f}–{interval[1]:.2f}"
    return element(
        "td",
        element("span", sign, class_="sign") if sign else None,
        f"{one.score.value:.2f}",
        element("small", below),
        class_=_LOOKS.get(one.outcome),
        title=one.sentence(),
    )


def _sentences(compared: Comparison) -> Markup | None:
    """At which sizes the second side is better or worse, the slowest first."""
    told = sorted(
        (one for one in compared.cases if one.outcome in _LOOKS or one.ranges),
        key=lambda one: one.score.value or 1,
    )
    if not told:
        return None
    items = [
        element("li", f"{MARKS[one.outcome]} {named(compared, one.first.case)}: {one.sentence()}")
        for one in told
    ]
    return element(
        "details",
        element("summary", f"At which sizes it is better or worse: {len(told)} cases"),
        element("ul", items, class_="cases"),
        open=True if len(told) <= 12 else None,
    )


def _uncompared(compared: Comparison) -> Markup | None:
    if not compared.uncompared:
        return None
    items = [
        element("li", f"{named(compared, one.case)}: {one.why}") for one in compared.uncompared
    ]
    return element(
        "details",
        element("summary", f"Not in both: {len(items)} cases"),
        element("ul", items),
    )
