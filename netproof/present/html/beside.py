"""What of a store stands beside the session, and the way to the page on one switch."""

from __future__ import annotations

from netproof.present.html.html import Markup, element, joined, row, table
from netproof.present.html.material import Report
from netproof.verdict.verdict import Alongside, Together


def parts(report: Report) -> list[tuple[str, str, Markup]]:
    """Name, title and body of the parts that the main page has of it; none without others."""
    made = []
    if report.against is not None:
        link = element(
            "a", f"{report.against.partition} against the others", href=report.against_page
        )
        told = element("p", link, ": better or worse, where it breaks down, and plots of that.")
        made.append(("switch", f"Switch {report.against.partition}", told))
    beside = report.judged.verdict.beside
    if beside is not None:
        made.append(("beside", "Compared with", _sessions(beside)))
    return made


def _sessions(beside: Alongside) -> Markup:
    """A row for each configuration and session, with what speaks against comparing them."""
    if not beside.cases and not beside.left_out:
        return element("p", f"Nothing: {beside.store} has nothing that fits.")
    head = row("configuration", "measured on", "session", "cases", "marks", head=True)
    return joined(
        element(
            "p",
            f"These configurations were not measured here: each is of the newest session of"
            f" {beside.store} in which it passed. They take part in envelope, baseline and scores,"
            " and are not judged.",
        ),
        table([head], [_row(one) for one in beside.together()]),
    )


def _row(together: Together) -> Markup:
    one = together.cases[0]
    left_out = ["left out"] if together.left_out else []
    marks = "; ".join([*left_out, *one.marks])
    return row(
        f"{one.case.partition} {one.case.environment}",
        f"{one.date}, {one.age}",
        one.session,
        str(len(together.cases)),
        element("td", marks or "none", class_="warned" if marks else None),
    )
