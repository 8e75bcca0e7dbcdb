"""Store a session with its verdict, and with the figures that it leaves open."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from netproof.errors import NetproofError
from netproof.session.session import Session
from netproof.store import Store
from netproof.store import ingest as storing
from netproof.store.ingest import Ingested
from netproof.store.rows import LeftOpen
from netproof.verdict import judge, judging


@dataclass(frozen=True)
class KeptSession(Ingested):
    """Result of storing a report; ``not_judged``: why a new session has no stored verdict."""

    not_judged: str = ""


def ingest(
    store: Store, report: Path, *, system: str | None = None, full: bool = False
) -> KeptSession:
    """Put a session's report into the store, with its verdict; a second time changes nothing.

    ``system``, ``full``: as in ``judging.judge_session``. A session that cannot be judged, without
    its site's configuration for instance, is stored without a verdict and judged when it is read.
    Raises NetproofError, with the store unchanged, where the report is damaged, is still being
    written, or differs from the stored one of this session.
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
    """Return why the figures of cases are not usable, by case; nothing where not known.

    A session may have settings of another netproof: its figures are stored all the same.
    """
    try:
        found = judge.unsettled_of(session)
    except NetproofError:
        return {}
    return {key: one.why_no_value for key, one in found.items()}
