"""The fifth part of a report: the session beside earlier studies."""

from __future__ import annotations

from rich.table import Table

from netproof.present import studies as tables_of_studies
from netproof.present.html.html import Markup, element, joined, table
from netproof.present.html.material import Report
from netproof.studies import literature


def part(report: Report) -> Markup:
    """The session in the columns of each study, whose own figures open below."""
    why = report.not_there.get("studies")
    if why is not None:
        return element("p", f"The studies' tables are not here: {why}")
    beside = literature.SessionBesideStudy(report.judged.session)
    parts = [
        element(
            "p",
            "This session's landmarks in the columns of each study; the study's own"
            " figures are one click away.",
        )
    ]
    for study in report.studies:
        here = tables_of_studies.tables_beside(study, beside)
        reasons = beside.reasons()
        parts.append(
            element(
                "section",
                element("h3", study.title),
                [_of_rich(one) for one in here]
                or element("p", "This study has figures of its own kind, none of a session's."),
                element(
                    "details",
                    element("summary", f"Why figures are absent: {len(reasons)}"),
                    element("ul", [element("li", reason) for reason in reasons]),
                )
                if reasons
                else None,
                element(
                    "details",
                    element("summary", "What the study has"),
                    element("p", study.source, class_="faint"),
                    [_of_rich(one) for one in tables_of_studies.study_tables(study)],
                    element(
                        "ul", [element("li", one) for one in tables_of_studies.study_notes(study)]
                    ),
                ),
            )
        )
    return joined(parts)


def _of_rich(made: Table) -> Markup:
    """A table for the terminal as one of a page."""
    columns = made.columns
    cells = zip(*(list(column.cells) for column in columns), strict=True)
    right = ["n" if column.justify == "right" else None for column in columns]
    head = element(
        "tr",
        [
            element("th", str(column.header), scope="col", class_=class_)
            for column, class_ in zip(columns, right, strict=True)
        ],
    )
    rows = [
        element(
            "tr",
            [
                element(
                    "td" if place else "th",
                    str(one),
                    class_=right[place],
                    scope=None if place else "row",
                )
                for place, one in enumerate(several)
            ],
        )
        for several in cells
    ]
    return table([head], rows, caption=made.caption)
