"""The page for a buyer: one switch against each of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from netproof.benchmarks import registry
from netproof.comparison.comparison import Against
from netproof.present.html import content, curves, sides
from netproof.present.html.content import Group
from netproof.present.html.html import render
from netproof.present.html.material import MAIN, Report
from netproof.verdict.explain import Crossover, crossovers


@dataclass(frozen=True)
class BreakdownCell:
    """Where a function breaks down: ``link`` and ``least`` rank count only where it is red."""

    sentence: str
    look: str = ""
    link: str = ""
    least: int | None = None


@dataclass(frozen=True)
class BreakdownRow:
    """A function in each environment, None where it is not in the configuration."""

    function: str
    cells: tuple[BreakdownCell | None, ...]


def page(report: Report, against: Against) -> str:
    """Return the switch's page: a sentence for each other one, breakdowns, ratios, plots."""
    name = against.partition
    functions = [one for one in crossovers(report.judged.verdict) if one.case.partition == name]
    environments = list(dict.fromkeys(one.case.environment for one in functions))
    alongside = report.judged.verdict.alongside
    together = () if alongside is None else alongside.together()
    return render(
        "switch.html",
        title=f"{name} against the others, {report.system}",
        scripts=report.scripts,
        main=MAIN,
        partition=name,
        comparisons=list(map(sides.view, against.comparisons)),
        alone=against.alone,
        borrowed=alongside is not None,
        marked=[str(one) for one in together if one.cases[0].marks and not one.left_out],
        environments=environments,
        breakdown=_breakdown(report, functions, environments),
        figures=[
            curves.figure(report.figures[one.name], report.looks, report.files)
            for one in _red_or_worse(report, against, functions)
        ],
    )


def _red_or_worse(report: Report, against: Against, functions: Sequence[Crossover]) -> list[Group]:
    """Return the groups in which the switch is red, or slower than another one."""
    keys = against.worse() | {one.case.key() for several in functions for one in several.red}
    return [
        group
        for group in report.groups
        if report.figures[group.name].rows
        and any(one.case.key() in keys and one.measured is not None for one in group.members)
    ]


def _breakdown(
    report: Report, functions: Sequence[Crossover], environments: Sequence[str]
) -> list[BreakdownRow]:
    """Return functions against environments: rank counts and sizes that are red, and why."""
    links = {one.case.key(): group.link for group in report.groups for one in group.members}
    by_function: dict[str, dict[str, Crossover]] = {}
    for one in functions:
        name = content.function_name(one.case)
        if registry.of(one.case).by_protocol:
            name = f"{name} {content.variant(one.case)}"
        by_function.setdefault(name, {})[one.case.environment] = one
    return [
        BreakdownRow(name, tuple(_cell(there.get(one), links) for one in environments))
        for name, there in by_function.items()
    ]


def _cell(one: Crossover | None, links: dict[tuple, str]) -> BreakdownCell | None:
    if one is None:
        return None
    if not one.red:
        look = "inconclusive" if one.inconclusive else "absent" if one.missing else ""
        return BreakdownCell(one.sentence(), look)
    return BreakdownCell(one.sentence(), "failed", links[one.red[0].case.key()], one.least)
