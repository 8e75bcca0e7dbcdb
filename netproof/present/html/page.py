"""Pages of a report: the main one in a reader's order, and one for each function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from netproof.present.html import (
    alongside,
    content,
    cpu,
    curves,
    matrix,
    nodes,
    provenance,
    studies,
    switch,
    verdict,
)
from netproof.present.html.content import Group
from netproof.present.html.html import Part, render
from netproof.present.html.material import MAIN, Report, stated
from netproof.session.session import Session
from netproof.verdict.exit_status import CANNOT_JUDGE, FAILED, PASSED


def pages(report: Report) -> dict[str, str]:
    """Return every page of a report by its file."""
    by_page = content.pages(report.groups)
    judged = report.judged.verdict
    word = {PASSED: "passed", FAILED: "failed", CANNOT_JUDGE: "not judged whole"}[judged.status]
    if judged.inconclusive:
        word = "inconclusive"
    title = f"{report.system}: {word}"
    made = {MAIN: _main(report, title, by_page)}
    for name, groups in by_page.items():
        made[name] = curves.page(report, content.page_title(groups[0]), groups)
    if report.against is not None:
        made[report.against_page] = switch.page(report, report.against)
    return made


def _main(report: Report, title: str, by_page: Mapping[str, Sequence[Group]]) -> str:
    of_nodes, of_cpus = nodes.view(report), cpu.view(report)
    parts = [
        Part("verdict", "Verdict", "verdict.html", verdict.view(report)),
        *alongside.parts(report),
        *([Part("nodes", "Nodes", "nodes.html", of_nodes)] if of_nodes else []),
        Part("matrix", "Matrix", "matrix.html", matrix.view(report, by_page)),
        Part("curves", "Curves", "curves.html", curves.view(report, by_page)),
        Part("netpipe", "NetPIPE", "netpipe.html", curves.netpipe_view(report)),
        *([Part("cpu", "What it costs the CPU", "cpu.html", of_cpus)] if of_cpus else []),
        Part("studies", "Compared with earlier studies", "studies.html", studies.view(report)),
        Part(
            "provenance",
            "Provenance, and how to repeat it",
            "provenance.html",
            provenance.view(report),
        ),
    ]
    return render(
        "index.html",
        title=title,
        scripts=report.scripts,
        system=report.system,
        when=_when(report.judged.session),
        parts=parts,
    )


def _when(session: Session) -> str:
    info = session.info
    start, end = (_time(stated(info, key)) for key in ("time_start", "time_end"))
    text = f"Measured from {start} to {end}, started on {stated(info, 'hostname')}"
    labels = session.labels()
    if labels:
        text += f"; labelled {', '.join(f'{key}={value}' for key, value in labels.items())}"
    return text


def _time(stated: str) -> str:
    """Return ReFrame's time of day as people read it; anything else as it is."""
    try:
        return f"{datetime.strptime(stated, '%Y%m%dT%H%M%S%z'):%Y-%m-%d %H:%M:%S %z}"
    except ValueError:
        return stated
