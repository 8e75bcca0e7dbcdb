"""Keeping a session in a store, with what the verdict leaves open of it."""

from __future__ import annotations

from pathlib import Path

from netproof.errors import NetproofError
from netproof.session.session import Session
from netproof.store import Store
from netproof.store import ingest as storing
from netproof.store.ingest import Ingested
from netproof.store.rows import LeftOpen
from netproof.verdict import unsettled


def ingest(store: Store, report: Path) -> Ingested:
    """Put a session's report into the store; again changes nothing.

    Raises NetproofError, with the store as it was, where the report is damaged, is still being
    written, or is another than the one that the store has of this session.
    """
    return storing.ingest(store, report, left_open)


def left_open(session: Session) -> LeftOpen:
    """Why the figures of each case tell nothing, by its key; nothing where that is not known.

    What a session kept of its site's settings may be of a netproof that had others: its figures
    are stored all the same.
    """
    try:
        found = unsettled.of_session(session)
    except NetproofError:
        return {}
    return {key: one.why_no_value for key, one in found.items()}
