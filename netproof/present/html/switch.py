"""The page that answers a buyer: one switch against each of those that are there."""

from __future__ import annotations

from collections.abc import Sequence

from netproof.comparison.against import Against
from netproof.present.html import content, curves, sides
from netproof.present.html.content import Group
from netproof.present.html.html import Markup, document, element, joined, row, table
from netproof.present.html.material import MAIN, Report
from netproof.verdict.crossover import Crossover, crossovers


def page(report: Report, against: Against) -> str:
    """The switch's page: in a sentence for each other one, where it breaks down, ratios, plots."""
    name = against.partition
    functions = [one for one in crossovers(report.judged.verdict) if one.case.partition == name]
    shown = _red_or_worse(report, against, functions)
    body = joined(
        element("header", element("nav", element("a", "← the whole report", href=MAIN))),
        element(
            "main",
            element("h1", f"{name} against the switches that are there"),
            [sides.answer(compared) for compared in against.comparisons],
            [element("p", f"Not compared: {why}") for why in against.alone],
            _borrowed(report),
            element(
                "section", element("h2", "Where it breaks down"), _crossovers(report, functions)
            ),
            [sides.part(compared) for compared in against.comparisons],
            element(
                "section",
                element("h2", "Plots of where it is red or slower"),
                _plots(report, shown),
            ),
        ),
    )
    return document(f"{name} against the others, {report.system}", body, report.scripts)


def _borrowed(report: Report) -> Markup | None:
    """Where others were not measured with it: the way to their sessions, and their marks."""
    beside = report.judged.verdict.beside
    if beside is None:
        return None
    link = element("a", "Of which sessions the others are", href=f"{MAIN}#beside")
    marked = [one for one in beside.together() if one.cases[0].marks and not one.left_out]
    if not marked:
        return element("p", link, ".", class_="faint")
    return joined(
        element("p", link, ". With care, since something speaks against comparing them:"),
        element("ul", [element("li", str(one), class_="warned") for one in marked]),
    )


def _red_or_worse(report: Report, against: Against, functions: Sequence[Crossover]) -> list[Group]:
    """The groups in which the switch is red, or slower than another one."""
    keys = against.worse() | {one.case.key() for several in functions for one in several.red}
    return [
        group
        for group in report.groups
        if report.figures[group.name].rows
        and any(one.case.key() in keys and one.measured is not None for one in group.members)
    ]


def _crossovers(report: Report, functions: Sequence[Crossover]) -> Markup:
    """Functions against environments: at which rank counts and sizes it is red, and by what."""
    links = {one.case.key(): group.link for group in report.groups for one in group.members}
    environments = list(dict.fromkeys(one.case.environment for one in functions))
    by_function: dict[str, dict[str, Crossover]] = {}
    for one in functions:
        name = content.function_name(one.case)
        if one.case.benchmark == "netpipe":
            name = f"{name} {content.variant(one.case)}"
        by_function.setdefault(name, {})[one.case.environment] = one
    rows = [
        row(name, *(_crossover(there.get(one), links) for one in environments))
        for name, there in by_function.items()
    ]
    return joined(
        element(
            "p",
            "The rank counts at which a function is red, and at which message sizes; the least of"
            " them is where it breaks down.",
        ),
        table([row("function", *environments, head=True)], rows),
    )


def _crossover(one: Crossover | None, links: dict[tuple, str]) -> Markup:
    if one is None:
        return element("td", "–", class_="no-case", title="not in the configuration")
    if not one.red:
        look = "inconclusive" if one.inconclusive else "absent" if one.missing else None
        return element("td", one.sentence(), class_=look)
    link = links[one.red[0].case.key()]
    return element(
        "td",
        element("strong", element("a", f"{one.least} ranks", href=link)),
        element("br"),
        one.sentence(),
        class_="failed",
    )


def _plots(report: Report, groups: Sequence[Group]) -> Markup:
    if not groups:
        return element("p", "There are none: it is nowhere red, and nowhere slower.")
    return element(
        "div",
        [curves.figure(report.figures[one.name], report.looks, report.files) for one in groups],
        class_="charts",
    )
