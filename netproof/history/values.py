"""Values of sessions for a history, as arrays over cases and nights; read once per session."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from netproof.errors import NetproofError
from netproof.history.selection import Quantity
from netproof.intake import json_reading, loading
from netproof.measurement.case import Case
from netproof.site.partition import ScoreBaseline
from netproof.store import Store, StoredSession, questions
from netproof.store import folder as store_folder
from netproof.store.tables import KEY

Floats = NDArray[np.float64]

QUANTITIES = tuple(Quantity)

SIZES = {Quantity.MEAN: "mean_sizes", Quantity.SCORE: "score_sizes"}
"""Columns with the sizes of a mean."""

AT_ONCE = 10
"""Sessions that are read at a time: opening files takes longer than reading what is in them."""

READ = ("cases", "curves", "launches", "repeats")
"""The tables of a session that its values are read from."""

COUNTED = ("segments", "segments_again", "errors", "drops", "carrier_changes")
"""Followed counters of a node."""

OF_CRASHES = ("partition", "environment", "launches", "crashed")
OF_COUNTED = ("partition", "node", *COUNTED)
"""The columns of each night's crashes and counters."""


@dataclass
class NightValues:
    """Values of a system's sessions, in order of their start: arrays of cases x nights.

    ``sessions``: their names; ``marks``: show whether a session was replaced; ``baseline``: of the
    scores; ``cases``: the key of each case, by its place. ``values``: by quantity in the first
    axis, NaN where a case has none; ``sizes``: of the quantities of ``SIZES``, in the first axis,
    the place in ``known_sizes``, -1 for none; ``ranks_per_node``: 0 where that is not known.
    ``inconclusive``: why the figures of a case in a night are no values. Of each night:
    ``crashes``: partition, environment, launches, crashed; ``counted``: partition, node, and those
    of ``COUNTED``; ``said``: the baseline that it names.
    """

    sessions: list[str] = field(default_factory=list)
    marks: list[str] = field(default_factory=list)
    baseline: ScoreBaseline | None = None
    cases: list[tuple[Any, ...]] = field(default_factory=list)
    values: Floats = field(default_factory=lambda: np.empty((len(QUANTITIES), 0, 0)))
    sizes: NDArray[np.int32] = field(
        default_factory=lambda: np.empty((len(SIZES), 0, 0), dtype=np.int32)
    )
    ranks_per_node: NDArray[np.int32] = field(
        default_factory=lambda: np.empty((0, 0), dtype=np.int32)
    )
    known_sizes: list[tuple[int, ...]] = field(default_factory=list)
    inconclusive: dict[tuple[int, int], tuple[str, ...]] = field(default_factory=dict)
    crashes: list[list[list[Any]]] = field(default_factory=list)
    counted: list[list[list[Any]]] = field(default_factory=list)
    said: list[ScoreBaseline | None] = field(default_factory=list)

    def of(self, sessions: Sequence[str]) -> NightValues:
        """Return some of its sessions, in this order; cases keep their places."""
        nights = [self.sessions.index(name) for name in sessions]
        new_night = {night: place for place, night in enumerate(nights)}
        return NightValues(
            list(sessions),
            [self.marks[night] for night in nights],
            self.baseline,
            list(self.cases),
            self.values[:, :, nights],
            self.sizes[:, :, nights],
            self.ranks_per_node[:, nights],
            list(self.known_sizes),
            {
                (case, new_night[night]): why
                for (case, night), why in self.inconclusive.items()
                if night in new_night
            },
            [self.crashes[night] for night in nights],
            [self.counted[night] for night in nights],
            [self.said[night] for night in nights],
        )

    def add(
        self,
        name: str,
        mark: str,
        rows: Sequence[Mapping[str, Any]],
        crashes: list[list[Any]],
        counted: list[list[Any]],
        said: ScoreBaseline | None,
    ) -> None:
        """Add a session; ``rows``: those of ``questions.nightly``."""
        place = {key: number for number, key in enumerate(self.cases)}
        code = {sizes: number for number, sizes in enumerate(self.known_sizes)}
        keys = [tuple(row[column] for column in KEY) for row in rows]
        for key in keys:
            place.setdefault(key, len(place))
        self.cases = list(place)
        night = len(self.sessions)
        shape = (len(self.cases), night + 1)
        self.values = _grown(self.values, shape, np.nan)
        self.sizes = _grown(self.sizes, shape, -1)
        self.ranks_per_node = _grown(self.ranks_per_node, shape, 0)
        for key, row in zip(keys, rows, strict=True):
            case = place[key]
            for number, quantity in enumerate(QUANTITIES):
                if row[quantity] is not None:
                    self.values[number, case, night] = row[quantity]
            for number, column in enumerate(SIZES.values()):
                if row[column] is not None:
                    sizes = tuple(row[column])
                    self.sizes[number, case, night] = code.setdefault(sizes, len(code))
            self.ranks_per_node[case, night] = row["ranks_per_node"] or 0
            if row["inconclusive"]:
                self.inconclusive[case, night] = tuple(row["inconclusive"])
        self.known_sizes = list(code)
        self.sessions.append(name)
        self.marks.append(mark)
        self.crashes.append(crashes)
        self.counted.append(counted)
        self.said.append(said)


def _grown(array: NDArray[Any], shape: tuple[int, int], missing: float) -> NDArray[Any]:
    grown = np.full((*array.shape[:-2], *shape), missing, dtype=array.dtype)
    grown[..., : array.shape[-2], : array.shape[-1]] = array
    return grown


def mark(store: Store, stored: StoredSession) -> str:
    """Return a mark of a session that changes when it is replaced; values are too slow to read.

    Its checksums, and size and time of the files that are read; empty where they are missing.
    """
    folder = store.path(stored)
    try:
        sums = folder / store_folder.CHECKSUMS
        names = [f"{name}{store_folder.PARQUET}" for name in READ]
        found = [(folder / name).stat() for name in names]
        content = loading.read_bytes(sums).hex() if sums.exists() else ""
    except (OSError, NetproofError):
        return ""
    parts = [*(f"{one.st_size}:{one.st_mtime_ns}" for one in found), content]
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:16]


def gathered(
    store: Store, sessions: Sequence[StoredSession], known: NightValues
) -> tuple[NightValues, dict[StoredSession, str]]:
    """Return the values of the sessions, reusing ``known``; and what is damaged.

    Raise NetproofError where all of them are damaged.
    """
    marks = {stored: mark(store, stored) for stored in sessions}
    before = dict(zip(known.sessions, known.marks, strict=True))
    there = {one for one in sessions if marks[one] and before.get(one.name) == marks[one]}
    missing = [one for one in sessions if one not in there]
    earlier = dict(zip(known.sessions, known.said, strict=True))
    said = {one.name: earlier[one.name] for one in there} | _said(store, missing)
    baseline = next((said[one.name] for one in reversed(sessions) if said.get(one.name)), None)
    if baseline != known.baseline:
        # The scores' baseline is another one.
        known, there, missing = NightValues(baseline=baseline), set(), list(sessions)
    found = known.of([one.name for one in sessions if one in there])
    crashes, _ = _rows(store, questions.crashes, missing)
    counted, _ = _rows(store, questions.counted, missing)
    rows: dict[str, list[dict[str, Any]]] = {}
    faults: dict[StoredSession, str] = {}
    for first in range(0, len(missing), AT_ONCE):
        several = missing[first : first + AT_ONCE]
        read, damaged = _rows(
            store, lambda store, these: questions.nightly(store, these, baseline), several
        )
        rows, faults = rows | read, faults | damaged
    for stored in missing:
        if stored not in faults:
            found.add(
                stored.name,
                marks[stored],
                rows.get(stored.name, []),
                [[row[name] for name in OF_CRASHES] for row in crashes.get(stored.name, ())],
                [[row[name] for name in OF_COUNTED] for row in counted.get(stored.name, ())],
                said.get(stored.name),
            )
    if not found.sessions:
        raise NetproofError("; ".join(faults.values()))
    in_order = [one.name for one in sessions if one not in faults]
    return (found if in_order == found.sessions else found.of(in_order)), faults


def _said(store: Store, sessions: Sequence[StoredSession]) -> dict[str, ScoreBaseline]:
    """Return the baseline of the site by session, of those that name it."""
    found = {}
    for name, rows in _rows(store, questions.partition_extras, sessions)[0].items():
        for row in rows:
            environment = json_reading.json_value(row["extras"], store.folder).get("baseline")
            if environment:
                found[name] = ScoreBaseline(row["partition"], environment)
    return found


def _rows(
    store: Store,
    ask: Callable[[Store, Sequence[StoredSession]], pa.Table],
    sessions: Sequence[StoredSession],
) -> tuple[dict[str, list[dict[str, Any]]], dict[StoredSession, str]]:
    """Return the rows of an answer by session, and why the other sessions are damaged."""
    found: dict[str, list[dict[str, Any]]] = {}
    if not sessions:
        return found, {}
    try:
        table, faults = questions.each(store, lambda these: ask(store, these), sessions)
    except NetproofError as error:
        return found, {one: questions.fault_of(store, one) or str(error) for one in sessions}
    for row in table.to_pylist():
        found.setdefault(row["session"], []).append(row)
    return found, faults


def case_of(system: str, values: NightValues, number: int) -> Case:
    """Return a case by its place, with the newest known ranks per node."""
    ranks = values.ranks_per_node[number]
    stated = ranks[ranks > 0]
    named = dict(zip(KEY, values.cases[number], strict=True))
    return Case(system=system, ranks_per_node=int(stated[-1]) if len(stated) else 0, **named)
