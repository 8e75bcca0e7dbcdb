"""The sessions before the judged one: reports in the same folder, or those of its store."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from netproof.errors import NetproofError
from netproof.session import session
from netproof.site.matrix import Matrix
from netproof.verdict import kept
from netproof.verdict.options import EARLIER_SESSIONS
from netproof.verdict.usual import Earlier


def earlier_reports(
    stored: session.Session, system: str
) -> tuple[list[session.Session], list[str]]:
    """Return the system's newest other sessions in the folder of reports, and reading errors."""
    found, unread = [], []
    folder = os.environ.get("RFM_REPORT_FILE") or None
    if folder is None:
        return found, unread
    unread += session.left_out(Path(folder).parent)
    for path in session.reports(Path(folder).parent):
        if len(found) == EARLIER_SESSIONS:
            break
        if path.resolve() == stored.path.resolve():
            continue
        try:
            other = session.load(path)
        except NetproofError as error:
            unread.append(str(error))
            continue
        if any(result.system == system for result in other.results):
            found.append(other)
    return found, unread


def sessions_before(
    stored: session.Session, expected: Matrix, today: Matrix, earlier: Sequence[session.Session]
) -> list[Earlier]:
    """Return the sessions of the system that began before this one, the newest first.

    They are from ``earlier``, which are reports, or from the store of a stored session. A stored
    verdict is returned if it was judged by the criteria of ``expected``, as this one, and of
    ``today``; else the session, to be rejudged. Raises NetproofError where one cannot be read.
    """
    if stored.path.is_dir():
        from netproof.store import Store, questions

        store, this = Store.holding(stored.path)
        before = [one for one in store.sessions(this.system) if one.start < this.start]
        found: list[Earlier] = []
        for one in reversed(before[-EARLIER_SESSIONS:]):
            past = kept.read(store, one)
            alike = past is not None and past.judges_as(expected) and past.judges_as(today)
            found.append(past.warnings() if alike else questions.load(store, one))
        return found
    began = stored.info.get("time_start_unix")
    if began is None:
        return []
    return [one for one in earlier if one.info.get("time_start_unix", began) < began]
