"""Stored results alongside the session, and the link to the page on one switch."""

from __future__ import annotations

from dataclasses import dataclass

from netproof.present.html.html import Part
from netproof.present.html.material import Report
from netproof.verdict.verdict import Alongside, Together


@dataclass(frozen=True)
class SwitchLink:
    """Link to the page on one switch."""

    partition: str
    page: str


@dataclass(frozen=True)
class StoredRow:
    """A configuration and session; ``marks``: reasons against comparing them."""

    configuration: str
    measured_on: str
    session: str
    cases: int
    marks: tuple[str, ...]


@dataclass(frozen=True)
class AlongsideView:
    """A row for each stored configuration and session."""

    store: str
    rows: tuple[StoredRow, ...]


def parts(report: Report) -> list[Part]:
    """Return the main page's parts on stored results; none without others."""
    made = []
    if report.against is not None:
        partition = report.against.partition
        link = SwitchLink(partition, report.against_page)
        made.append(Part("switch", f"Switch {partition}", "to_switch.html", link))
    alongside = report.judged.verdict.alongside
    if alongside is not None:
        made.append(Part("alongside", "Compared with", "alongside.html", _view(alongside)))
    return made


def _view(alongside: Alongside) -> AlongsideView:
    return AlongsideView(str(alongside.store), tuple(map(_row, alongside.together())))


def _row(together: Together) -> StoredRow:
    one = together.cases[0]
    left_out = ("left out",) if together.left_out else ()
    return StoredRow(
        configuration=f"{one.case.partition} {one.case.environment}",
        measured_on=f"{one.date}, {one.age}",
        session=one.session,
        cases=len(together.cases),
        marks=(*left_out, *one.marks),
    )
