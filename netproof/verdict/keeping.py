"""Keeping a session in a store, with what the verdict leaves open of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from netproof.errors import NetproofError
from netproof.session.session import Session
from netproof.store import Store
from netproof.store import ingest as storing
from netproof.store.ingest import Ingested
from netproof.store.rows import LeftOpen
from netproof.verdict import judging, unsettled


@dataclass(frozen=True)
class KeptSession(Ingested):
    """What came of a report; ``not_judged``: why the store keeps no verdict on a new session."""

    not_judged: str = ""


def ingest(
    store: Store, report: Path, *, system: str | None = None, full: bool = False
) -> KeptSession:
    """Put a session's report into the store, with the verdict on it; again changes nothing.

    ``system``, ``full``: what was to run, as ``judging.judge_session`` has it. A session that
    cannot be judged, for want of its site's configuration for instance, is stored without a
    verdict: whoever reads it judges it. Raises NetproofError, with the store as it was, where the
    report is damaged, is still being written, or is another than the one that the store has of
    this session.
    """
    why = ""

    def verdict(session: Session, sha256: str) -> bytes | None:
        nonlocal why
        try:
            return judging.to_keep(session, sha256, system=system, full=full)
        except NetproofError as error:
            why = str(error)
            return None

    done = storing.ingest(store, report, left_open, verdict)
    return KeptSession(**vars(done), not_judged=why)


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
