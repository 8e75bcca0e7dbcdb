"""The pages of a report: the main one in a reader's order, and one for each function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from netproof.present.html import (
    beside,
    content,
    curves,
    matrix,
    provenance,
    studies,
    switch,
    verdict,
)
from netproof.present.html.content import Group
from netproof.present.html.html import Markup, document, element, joined
from netproof.present.html.material import MAIN, Report, stated
from netproof.session.session import Session
from netproof.verdict.verdict import CANNOT_JUDGE, FAILED, PASSED


def pages(report: Report) -> dict[str, str]:
    """Every page of a report by its file."""
    by_page = content.pages(report.groups)
    judged = report.judged.verdict
    word = {PASSED: "passed", FAILED: "failed", CANNOT_JUDGE: "not judged whole"}[judged.status]
    if judged.inconclusive:
        word = "inconclusive"
    made = {MAIN: document(f"{report.system}: {word}", _main(report, by_page), report.scripts)}
    for name, groups in by_page.items():
        title = "NetPIPE" if groups[0].case.benchmark == "netpipe" else groups[0].function
        body = curves.page(report, title, groups)
        made[name] = document(f"{title}, {report.system}", body, report.scripts)
    if report.against is not None:
        made[report.against_page] = switch.page(report, report.against)
    return made


def _main(report: Report, by_page: Mapping[str, Sequence[Group]]) -> Markup:
    parts = [
        ("verdict", "Verdict", verdict.part(report)),
        *beside.parts(report),
        ("matrix", "Matrix", matrix.part(report, by_page)),
        ("curves", "Curves", curves.part(report, by_page)),
        ("netpipe", "NetPIPE", curves.netpipe_part(report)),
        ("studies", "Beside earlier studies", studies.part(report)),
        ("provenance", "Provenance, and how to repeat it", provenance.part(report)),
    ]
    return joined(
        element(
            "header",
            element("h1", f"Cluster interconnect of {report.system}"),
            _when(report.judged.session),
        ),
        element("nav", [element("a", title, href=f"#{name}") for name, title, _ in parts]),
        element(
            "main",
            [
                element(
                    "section", element("h2", title) if name != "verdict" else None, made, id=name
                )
                for name, title, made in parts
            ],
        ),
    )


def _when(session: Session) -> Markup:
    info = session.info
    start, end = (_time(stated(info, key)) for key in ("time_start", "time_end"))
    told = f"Measured from {start} to {end}, started on {stated(info, 'hostname')}"
    labels = session.labels()
    if labels:
        told += f"; labelled {', '.join(f'{key}={value}' for key, value in labels.items())}"
    return element("p", told, class_="faint")


def _time(stated: str) -> str:
    """ReFrame's time of day as people read it; anything else as it is."""
    try:
        return f"{datetime.strptime(stated, '%Y%m%dT%H%M%S%z'):%Y-%m-%d %H:%M:%S %z}"
    except ValueError:
        return stated
