"""The page for a buyer: one switch against each of the others."""

from __future__ import annotations

from netproof.benchmarks import registry
from netproof.comparison.comparison import Against
from netproof.present.html import content, curves, sides
from netproof.present.html.html import render
from netproof.present.html.material import MAIN, Report
from netproof.verdict.explain import Crossover, crossovers


def page(report: Report, against: Against) -> str:
    """Return the switch's page: a sentence for each other one, breakdowns, ratios, plots."""
    name, alongside = against.partition, report.judged.verdict.alongside
    functions = [one for one in crossovers(report.judged.verdict) if one.case.partition == name]
    together = () if alongside is None else alongside.together()
    # Plots are of where the switch is red, or slower than another one.
    keys = against.worse() | {one.case.key() for several in functions for one in several.red}
    plotted = [
        report.figure(group)
        for group in report.groups
        if any(one.case.key() in keys and one.measured is not None for one in group.members)
    ]
    breakdown: dict[str, dict[str, Crossover]] = {}
    for one in functions:
        function = content.function_name(one.case)
        if registry.of(one.case).by_protocol:
            function = f"{function} {content.variant(one.case)}"
        breakdown.setdefault(function, {})[one.case.environment] = one
    return render(
        "switch_page.html",
        title=f"{name} against the others, {report.system}",
        scripts=report.scripts,
        main=MAIN,
        partition=name,
        comparisons=list(map(sides.view, against.comparisons)),
        alone=against.alone,
        borrowed=alongside is not None,
        marked=[words for words, cases, left_out in together if cases[0].marks and not left_out],
        environments=list(dict.fromkeys(one.case.environment for one in functions)),
        breakdown=breakdown,
        links=report.links,
        figures=[curves.figure(one, report.looks, report.files) for one in plotted if one.rows],
    )
