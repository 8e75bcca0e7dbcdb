"""Pages of a report: the main one in a reader's order, and one for each function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from netproof.present import cpu
from netproof.present.html import (
    content,
    curves,
    matrix,
    nodes,
    provenance,
    study_page,
    switch,
    verdict,
)
from netproof.present.html.content import Group
from netproof.present.html.html import render
from netproof.present.html.material import MAIN, STUDIES, Report, stated
from netproof.verdict.explain import CpuRows, cpu_rows

Part = tuple[str, str, Any]
"""Anchor, title, and the view of its template."""


def pages(report: Report) -> Iterator[tuple[str, str]]:
    """Yield every page of a report: its file and its text."""
    by_page = content.pages(report.groups)
    costs = cpu_rows(report.judged.verdict)
    yield MAIN, _main(report, by_page, costs)
    for partition, name in report.partition_pages.items():
        several = {
            page: groups for page, groups in by_page.items() if groups[0].partition == partition
        }
        rows = tuple(row for row in costs.rows if row.case.partition == partition)
        parts = _results(report, several, CpuRows(rows, {}), partition)
        yield name, _page(report, partition, f"{partition} on {report.system}", "", parts, MAIN)
    if report.partition_pages:
        title = "Compared with earlier studies"
        parts = [("studies", title, study_page.view(report))]
        yield STUDIES, _page(report, title, f"{report.system} and earlier studies", "", parts, MAIN)
    for name, groups in by_page.items():
        yield name, curves.page(report, content.page_title(groups[0]), groups)
    if report.against is not None:
        yield report.against_page, switch.page(report, report.against)


def _main(report: Report, by_page: Mapping[str, Sequence[Group]], costs: CpuRows) -> str:
    """Return the main page; of very many cases, with a link to each partition's page."""
    judged = report.judged.verdict
    parts: list[Part] = [("verdict", "Verdict", verdict.view(report))]
    if report.against is not None:
        parts.append(("switch", f"Switch {report.against.partition}", report))
    if judged.alongside is not None:
        parts.append(("alongside", "Compared with", judged.alongside))
    if not report.partition_pages:
        parts += _results(report, by_page, costs)
        parts.append(("studies", "Compared with earlier studies", study_page.view(report)))
    parts.append(("provenance", "Provenance, and how to repeat it", provenance.view(report)))
    info, labels = report.judged.session.info, report.judged.session.labels()
    start, end = (_time(stated(info, key)) for key in ("time_start", "time_end"))
    when = f"Measured from {start} to {end}, started on {stated(info, 'hostname')}"
    if labels:
        when += f"; labelled {', '.join(f'{key}={value}' for key, value in labels.items())}"
    title = f"{report.system}: {verdict.state_of(judged)[1].lower()}"
    return _page(report, title, f"Cluster interconnect of {report.system}", when, parts)


def _results(
    report: Report, by_page: Mapping[str, Sequence[Group]], costs: CpuRows, partition: str = ""
) -> list[Part]:
    """Return the parts on what was measured, of one partition, or of all where it is empty."""
    of_nodes = nodes.view(report, partition)
    groups = [group for several in by_page.values() for group in several]
    parts: list[Part] = [("nodes", "Nodes", of_nodes)] if of_nodes else []
    parts += [
        ("matrix", "Matrix", matrix.view(report, groups)),
        ("curves", "Curves", curves.view(report, by_page)),
    ]
    if not partition:
        # A partition's own page of NetPIPE has these.
        parts.append(("netpipe", "NetPIPE", curves.netpipe_view(report)))
    return [*parts, *([("cpu", "What it costs the CPU", cpu.view(costs))] if costs.rows else [])]


def _page(
    report: Report, title: str, heading: str, when: str, parts: Sequence[Part], back: str = ""
) -> str:
    return render(
        "index.html",
        title=title,
        scripts=report.scripts,
        heading=heading,
        when=when,
        parts=parts,
        back=back,
    )


def _time(stated: str) -> str:
    """Return ReFrame's time of day as people read it; anything else as it is."""
    try:
        return f"{datetime.strptime(stated, '%Y%m%dT%H%M%S%z'):%Y-%m-%d %H:%M:%S %z}"
    except ValueError:
        return stated
