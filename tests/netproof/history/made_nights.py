"""Stores of many nights with known answers, generated from one recorded session."""

from __future__ import annotations

import copy
import functools
import pickle
import tempfile
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from netproof.diagnosis.diagnosis import ingest
from netproof.store import Store, StoredSession, questions
from netproof.store.folder import packed_tables
from netproof.store.tables import TABLES

RECORDED = Path(__file__).resolve().parents[2] / "data" / "sessions" / "ranges.json"
FIRST_NIGHT = datetime(2026, 9, 1, 1, 0, 0)
NOISE = 0.01
RATES = (
    *("peak_mb_s", "asymptotic_mb_s", "line_rate_share", "rate_1_kib_mb_s", "rate_4_kib_mb_s"),
    *("rate_16_kib_mb_s", "rate_64_kib_mb_s"),
)
NAMES = ("function", "ranks", "path", "direction", "environment")

Slower = Callable[[Mapping[str, Any]], float]
Rows = dict[str, list[dict[str, Any]]]


def _as_recorded(case: Mapping[str, Any]) -> float:
    return 1.0


def unchanged(rows: Rows) -> None:
    """Leave the rows of a night as they were recorded."""


@functools.cache
def _pickled() -> bytes:
    """The rows of a recorded session and of its copy: read once, and unpickled for each night."""
    with tempfile.TemporaryDirectory() as folder:
        scratch = Store.create(Path(folder) / "scratch")
        read = questions.tables(scratch, ingest(scratch, RECORDED).stored)
    found: Rows = {name: table.to_pylist(maps_as_pydicts="strict") for name, table in read.items()}
    for name in ("cases", "launches", "curves", "nodes"):
        rows = found[name]
        rows += [{**copy.deepcopy(row), "environment": "other"} for row in rows]
        if "function" in rows[0]:
            rows.sort(key=lambda row: tuple(row[key] for key in list(row)[:7]))
    return pickle.dumps(found)


def recorded() -> Rows:
    """The rows of a recorded session and of its copy, by table, to be changed at will."""
    return pickle.loads(_pickled())


@functools.cache
def _files(
    before: int, start: datetime, slower: Slower, change: Callable[[Rows], None]
) -> dict[str, bytes]:
    """Return the tables of a night that comes after so many others.

    All stores begin with the same nights, which take longer to make than to write.
    """
    rows = recorded()
    noise = np.random.default_rng(20061).standard_normal((before + 1, len(rows["cases"])))[before]
    factors = {}
    for row, off in zip(rows["cases"], noise, strict=True):
        factor = slower(row) * float(np.exp(NOISE * off))
        factors[tuple(row[name] for name in NAMES)] = factor
        if row["latency_us"] is not None:
            row["latency_us"] *= factor
        for name in RATES:
            if row[name] is not None:
                row[name] /= factor
    for row in rows["curves"]:
        factor = factors[tuple(row[name] for name in NAMES)]
        row["time_us"] *= factor
        if row["bandwidth_mb_s"] is not None:
            row["bandwidth_mb_s"] /= factor
    night = (start - FIRST_NIGHT).days
    rows["sessions"][0] |= {"uuid": f"{night:08x}-0000-4000-8000-000000000000", "started": start}
    change(rows)
    tables = {
        name: pa.Table.from_pylist(rows[name], schema=schema) for name, schema in TABLES.items()
    }
    return packed_tables([tables])


class MadeNights:
    """A store whose sessions are a recorded one again, at other times and with other values.

    What was recorded is a session of ``gige mpich``; a second environment, ``other``, is a copy
    of it. Times of a case and night have normal noise of 1 %, the same at all of its sizes.
    """

    def __init__(self, folder: Path) -> None:
        self.store = Store.create(folder / "store")
        self._added = 0

    def stored(self, night: int, system: str = "testbed") -> StoredSession:
        """The place of a night's session."""
        start = FIRST_NIGHT + timedelta(days=night)
        return StoredSession(f"{start:%Y%m%dT%H%M%S}-{night:08x}", system)

    def add(
        self,
        night: int,
        slower: Slower = _as_recorded,
        change: Callable[[Rows], None] = unchanged,
        system: str = "testbed",
    ) -> StoredSession:
        """Put a night into the store.

        ``slower``: by what the times of a case are multiplied; ``change``: changes the rows of
        all tables, by name, before they are written.
        """
        stored = self.stored(night, system)
        self.store.put(stored, _files(self._added, stored.start, slower, change))
        self._added += 1
        return stored

    def add_many(self, nights: int, slower_from: Mapping[int, Slower] | None = None) -> None:
        """Put so many nights there; ``slower_from``: night to what is slower from then on."""
        slower: Slower = _as_recorded
        for night in range(nights):
            slower = (slower_from or {}).get(night, slower)
            self.add(night, slower)


@functools.cache
def by(factor: float, **which: Any) -> Slower:
    """Times of the cases with these values are ``factor`` times as long."""

    def slower(case: Mapping[str, Any]) -> float:
        return factor if all(case[name] == value for name, value in which.items()) else 1.0

    return slower


def mtu(rows) -> None:
    """Change rows so that all nodes have another MTU."""
    for row in rows["nodes"]:
        row["mtu"] = 1400


def without(**which):
    """Change rows so that no case with these values was measured."""
    ((key, value),) = which.items()

    def change(rows):
        for name in ("cases", "launches", "curves"):
            rows[name] = [row for row in rows[name] if row[key] != value]

    return change
