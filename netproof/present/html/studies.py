"""Fifth part of a report: the session alongside earlier studies."""

from __future__ import annotations

from typing import Any

from netproof.present import studies as tables_of_studies
from netproof.present.html.material import Report
from netproof.studies.literature import Study
from netproof.studies.session_figures import SessionAlongsideStudy


def view(report: Report) -> dict[str, Any]:
    """Return every study; ``not_available``: why studies are missing, or empty."""
    why = report.not_there.get("studies", "")
    if why:
        return {"studies": (), "not_available": why}
    alongside = SessionAlongsideStudy(report.judged.session)
    return {"studies": [of_study(one, alongside) for one in report.studies], "not_available": ""}


def of_study(study: Study, alongside: SessionAlongsideStudy) -> dict[str, Any]:
    """Return one study: the session in its columns, and its own tables and notes."""
    of_session = tables_of_studies.tables_alongside(study, alongside)
    return {
        "title": study.title,
        "source": study.source,
        "of_session": of_session,
        # Only of the figures that the tables above requested.
        "reasons": alongside.reasons(),
        "own": tables_of_studies.study_tables(study),
        "notes": tables_of_studies.study_notes(study),
    }
