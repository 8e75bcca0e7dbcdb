"""Bringing reports into a store: each whole, or refused with the reason."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from netproof.errors import NetproofError
from netproof.intake import loading
from netproof.session import packed, session
from netproof.session.session import Session
from netproof.store import checksums, rows
from netproof.store.folder import SESSION, VERDICT, Store, StoredSession
from netproof.store.rows import LeftOpen


@dataclass(frozen=True)
class Ingested:
    """Result of storing a report: its session, and whether it is ``new``.

    ``cases``, ``measured``: how many it has, and how many of them are complete;
    ``differences``, ``unknown``: as in ``provenance.OfSession``; ``not_judged``: why a new session
    has no stored verdict.
    """

    stored: StoredSession
    new: bool
    cases: int
    measured: int
    differences: tuple[str, ...]
    unknown: dict[str, str]
    not_judged: str = ""


def ingest(
    store: Store,
    report: Path,
    left_open: Callable[[Session], LeftOpen],
    verdict: Callable[[Session, str], bytes],
) -> Ingested:
    """Put a session's report into the store; a second time changes nothing.

    ``left_open``: says of a session what its cases leave open; ``verdict``: returns the stored
    form of the verdict on it, with the SHA-256 of its report; where it raises NetproofError, the
    session is stored without one. Raises NetproofError, with the store as it was, where the report
    is damaged, is still being written, or differs from the one that the store has of this session.
    """
    try:
        sha256 = _sha256(report)
        document = session.document_of(report)
        others = {SESSION: packed.of_document(document)}
        read = session.of_document(report, document)
        if _sha256(report) != sha256:
            raise NetproofError(f"{report}: changes while it is read; add it again")
        stored = rows.place(read)
        tables = rows.tables(read, document, sha256, left_open(read))
    except NetproofError as error:
        # A fault within the report is named by its case or column.
        named = str(error) if str(error).startswith(f"{report}:") else f"{report}: {error}"
        raise NetproofError(named) from error
    except OSError as error:
        raise NetproofError(f"{report}: cannot be read: {error.strerror}") from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise NetproofError(f"{report}: is no whole report of ReFrame's: {error!r}") from error
    new, not_judged = not store.path(stored).exists(), ""
    if new:
        try:
            others[VERDICT] = verdict(read, sha256)
        except NetproofError as error:
            not_judged = str(error)
        new = store.put(stored, tables, others)
    if not new and (known := report_sha256(store, stored)) != sha256:
        raise NetproofError(
            f"{report}: the store has session {stored.name} from another report (SHA-256"
            f" {known[:12]}…, this one has {sha256[:12]}…), and a stored session never changes"
        )
    (header,) = tables["sessions"].to_pylist(maps_as_pydicts="strict")
    return Ingested(
        stored,
        new,
        header["cases"],
        header["measured"],
        tuple(header["differences"]),
        header["unknown"],
        not_judged,
    )


def report_sha256(store: Store, stored: StoredSession) -> str:
    """Return the SHA-256 of the report of a session; Damaged where it cannot be read."""
    place = store.path(stored) / "sessions.parquet"
    checksums.verify(place.parent, place.name)
    try:
        with pq.ParquetFile(place) as file:
            (row,) = file.read(columns=["report_sha256"], use_threads=False).to_pylist()
    except (OSError, ValueError, pa.ArrowException) as error:
        raise checksums.Damaged(place, error) from error
    return row["report_sha256"]


def _sha256(report: Path) -> str:
    return hashlib.sha256(loading.read_bytes(report)).hexdigest()
