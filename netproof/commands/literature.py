"""The body of ``netproof literature``."""

from __future__ import annotations

from pathlib import Path

from netproof.errors import NetproofError
from netproof.present import tables
from netproof.present.studies import TABLES_WIDTH, show
from netproof.session import session
from netproof.verdict.exit_status import CANNOT_JUDGE


def run(study: str | None, report: Path | None = None) -> int:
    """Print earlier studies, and return the exit status.

    ``report``: of a session to show alongside the studies.
    """
    try:
        out = tables.console()
        out.width = max(out.width, TABLES_WIDTH)
        stored = None
        if report is not None:
            with tables.working(f"reading {report}"):
                stored = session.load(report)
        show(study, out, stored=stored)
    except NetproofError as error:
        tables.say(tables.console(stderr=True), f"netproof: {error}", "red")
        return CANNOT_JUDGE
    return 0
