"""Pages of a report: the main one in a reader's order, and one for each function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

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
from netproof.present.html.material import MAIN, Report, stated
from netproof.verdict.exit_status import FAILED, INCONCLUSIVE, PASSED
from netproof.verdict.explain import cpu_rows


def pages(report: Report) -> dict[str, str]:
    """Return every page of a report by its file."""
    by_page = content.pages(report.groups)
    judged = report.judged.verdict
    word = {PASSED: "passed", FAILED: "failed", INCONCLUSIVE: "not judged whole"}[judged.status]
    if judged.inconclusive:
        word = "inconclusive"
    made = {MAIN: _main(report, f"{report.system}: {word}", by_page)}
    for name, groups in by_page.items():
        made[name] = curves.page(report, content.page_title(groups[0]), groups)
    if report.against is not None:
        made[report.against_page] = switch.page(report, report.against)
    return made


def _main(report: Report, title: str, by_page: Mapping[str, Sequence[Group]]) -> str:
    """Return the main page: its parts, each with anchor, title and the view of its template."""
    judged = report.judged.verdict
    costs = cpu_rows(judged)
    parts = [("verdict", "Verdict", verdict.view(report))]
    if report.against is not None:
        parts.append(("switch", f"Switch {report.against.partition}", report))
    if judged.alongside is not None:
        parts.append(("alongside", "Compared with", judged.alongside))
    of_nodes = nodes.view(report)
    if of_nodes:
        parts.append(("nodes", "Nodes", of_nodes))
    parts += [
        ("matrix", "Matrix", matrix.view(report, by_page)),
        ("curves", "Curves", curves.view(report, by_page)),
        ("netpipe", "NetPIPE", curves.netpipe_view(report)),
    ]
    if costs.rows:
        parts.append(("cpu", "What it costs the CPU", cpu.view(costs)))
    parts += [
        ("studies", "Compared with earlier studies", study_page.view(report)),
        ("provenance", "Provenance, and how to repeat it", provenance.view(report)),
    ]
    info, labels = report.judged.session.info, report.judged.session.labels()
    start, end = (_time(stated(info, key)) for key in ("time_start", "time_end"))
    when = f"Measured from {start} to {end}, started on {stated(info, 'hostname')}"
    if labels:
        when += f"; labelled {', '.join(f'{key}={value}' for key, value in labels.items())}"
    return render(
        "index.html",
        title=title,
        scripts=report.scripts,
        system=report.system,
        when=when,
        parts=parts,
    )


def _time(stated: str) -> str:
    """Return ReFrame's time of day as people read it; anything else as it is."""
    try:
        return f"{datetime.strptime(stated, '%Y%m%dT%H%M%S%z'):%Y-%m-%d %H:%M:%S %z}"
    except ValueError:
        return stated
