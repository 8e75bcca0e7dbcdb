"""The sessions before one that is judged: reports next to it, or those of its store."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from netproof.errors import NetproofError
from netproof.session import session
from netproof.site.matrix import Matrix
from netproof.verdict import kept
from netproof.verdict.kept import Kept, LaterFormat
from netproof.verdict.options import EARLIER_SESSIONS
from netproof.verdict.usual import Earlier

if TYPE_CHECKING:
    from netproof.store import Store, StoredSession


def earlier_reports(
    stored: session.Session, system: str
) -> tuple[list[session.Session], list[str]]:
    """The newest other sessions of the system in the folder of reports, and what is unreadable."""
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
    """The sessions of the system that began before this one, the newest first.

    Those of ``earlier``, which are reports; of a session in a store, those that the store has: the
    verdict that it keeps of one where that was judged by the criteria of ``expected``, which judged
    this one, and of ``today``, else the session, to be judged anew. Raises NetproofError where one
    of them cannot be read.
    """
    if stored.path.is_dir():
        from netproof.store import Store, questions

        store, this = Store.holding(stored.path)
        before = [one for one in store.sessions(this.system) if one.start < this.start]
        found: list[Earlier] = []
        for one in reversed(before[-EARLIER_SESSIONS:]):
            told = _told(store, one)
            alike = told is not None and told.judges_as(expected) and told.judges_as(today)
            found.append(told.warnings() if alike else questions.load(store, one))
        return found
    began = stored.info.get("time_start_unix")
    if began is None:
        return []
    return [one for one in earlier if one.info.get("time_start_unix", began) < began]


def _told(store: Store, stored: StoredSession) -> Kept | None:
    """What is kept of the verdict on an earlier session, where this netproof can read it."""
    try:
        return kept.read(store, stored)
    except LaterFormat:
        return None
