"""Bringing reports into a store: each whole, or refused with the reason."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from netproof.errors import NetproofError
from netproof.intake import json_reading, loading
from netproof.session import session
from netproof.session.session import Session
from netproof.store import checksums, rows
from netproof.store.folder import Store, StoredSession
from netproof.store.rows import LeftOpen


@dataclass(frozen=True)
class Ingested:
    """What came of a report: its session, whether it is ``new``, and what to say of it.

    ``cases``, ``measured``: how many it has, and how many of them are complete;
    ``differences``, ``unknown``: as in ``provenance.OfSession``.
    """

    stored: StoredSession
    new: bool
    cases: int
    measured: int
    differences: tuple[str, ...]
    unknown: dict[str, str]


def ingest(
    store: Store,
    report: Path,
    left_open: Callable[[Session], LeftOpen],
    verdict: Callable[[Session, str], bytes | None] = lambda session, sha256: None,
) -> Ingested:
    """Put a session's report into the store; again changes nothing.

    ``left_open``: says of a session what its cases leave open; ``verdict``: makes what is kept of
    the verdict on it, with the SHA-256 of its report, None for nothing. Raises NetproofError, with
    the store as it was, where the report is damaged, is still being written, or is another than
    the one that the store has of this session.
    """
    read, stored, tables, sha256 = _read(report, left_open)
    there = store.path(stored).exists()
    new = not there and store.put(stored, tables, verdict(read, sha256))
    (header,) = tables["sessions"].to_pylist(maps_as_pydicts="strict")
    if not new:
        known = report_sha256(store, stored)
        if known != sha256:
            raise NetproofError(
                f"{report}: the store has session {stored.name} from another report"
                f" (SHA-256 {known[:12]}…, this one has {sha256[:12]}…), and a"
                " stored session never changes"
            )
    return Ingested(
        stored,
        new,
        header["cases"],
        header["measured"],
        tuple(header["differences"]),
        header["unknown"],
    )


def report_sha256(store: Store, stored: StoredSession) -> str:
    """SHA-256 of the report that a session was stored from; Damaged where it cannot be read."""
    place = store.path(stored) / "sessions.parquet"
    checksums.verify(place.parent, place.name)
    try:
        with pq.ParquetFile(place) as file:
            (row,) = file.read(columns=["report_sha256"], use_threads=False).to_pylist()
    except (OSError, ValueError, pa.ArrowException) as error:
        raise checksums.Damaged(place, error) from error
    return row["report_sha256"]


def _read(
    report: Path, left_open: Callable[[Session], LeftOpen]
) -> tuple[Session, StoredSession, dict[str, pa.Table], str]:
    try:
        read = session.load(report)
        content = loading.read_bytes(report)
        sha256 = hashlib.sha256(content).hexdigest()
        document = json_reading.json_value(content.decode(), report)
        if document["session_info"] != read.info:
            raise NetproofError(f"{report}: changes while it is read; ingest it again")
        stored = rows.place(read)
        return read, stored, rows.tables(read, document, sha256, left_open(read)), sha256
    except NetproofError as error:
        # A fault within the report is named by its case or column.
        named = str(error) if str(error).startswith(f"{report}:") else f"{report}: {error}"
        raise NetproofError(named) from error
    except (OSError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise NetproofError(f"{report}: is no whole report of ReFrame's: {error!r}") from error
