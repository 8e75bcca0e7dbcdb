"""Fifth part of a report: the session alongside earlier studies."""

from __future__ import annotations

from dataclasses import dataclass

from rich.table import Table

from netproof.present import studies as tables_of_studies
from netproof.present.html.html import DataTable
from netproof.present.html.material import Report
from netproof.studies.literature import Study
from netproof.studies.session_figures import SessionAlongsideStudy


@dataclass(frozen=True)
class StudyView:
    """The session in the columns of a study, whose ``own`` figures open below."""

    title: str
    source: str
    of_session: tuple[DataTable, ...]
    reasons: tuple[str, ...]
    own: tuple[DataTable, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class StudiesView:
    """Every study; ``not_available``: why studies are missing, or empty."""

    studies: tuple[StudyView, ...] = ()
    not_available: str = ""


def view(report: Report) -> StudiesView:
    """Return all that the part shows."""
    why = report.not_there.get("studies")
    if why is not None:
        return StudiesView(not_available=why)
    alongside = SessionAlongsideStudy(report.judged.session)
    return StudiesView(tuple(of_study(study, alongside) for study in report.studies))


def of_study(study: Study, alongside: SessionAlongsideStudy) -> StudyView:
    """Return one study: the session in its columns, and its own tables."""
    of_session = tuple(map(_of_rich, tables_of_studies.tables_alongside(study, alongside)))
    return StudyView(
        title=study.title,
        source=study.source,
        of_session=of_session,
        # Only of the figures that the tables above requested.
        reasons=tuple(alongside.reasons()),
        own=tuple(map(_of_rich, tables_of_studies.study_tables(study))),
        notes=tuple(tables_of_studies.study_notes(study)),
    )


def _of_rich(made: Table) -> DataTable:
    """Return a table for the terminal as one of a page."""
    columns = made.columns
    cells = zip(*(list(column.cells) for column in columns), strict=True)
    return DataTable(
        head=tuple(str(column.header) for column in columns),
        rows=tuple(tuple(map(str, several)) for several in cells),
        numbers=tuple(column.justify == "right" for column in columns),
        caption=str(made.caption or ""),
    )
