"""Values of sessions for a history, as arrays over cases and nights; read once per session.

The state of a followed history is stored with them, so that a night only adds its own values to it.
Every stored value is compared with its origin before it is used.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from importlib.metadata import version
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from netproof.errors import NetproofError
from netproof.history.followers import Followers, SeriesPast, read_past
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

OF_CRASHES = ("partition", "environment", "launches", "crashed")
OF_COUNTED = ("partition", "node", "segments", "again", "errors", "drops", "carrier_changes")
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
    of ``OF_COUNTED``; ``baselines``: the one that it names.
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
    baselines: list[ScoreBaseline | None] = field(default_factory=list)

    def of(self, sessions: Sequence[str]) -> NightValues:
        """Return some of its sessions, in this order; cases keep their places."""
        nights = [self.sessions.index(name) for name in sessions]
        new_night = {night: place for place, night in enumerate(nights)}
        inconclusive = {
            (case, new_night[night]): why
            for (case, night), why in self.inconclusive.items()
            if night in new_night
        }
        of_nights = {
            name: [getattr(self, name)[night] for night in nights]
            for name in ("marks", "crashes", "counted", "baselines")
        }
        return replace(
            self,
            sessions=list(sessions),
            values=self.values[:, :, nights],
            sizes=self.sizes[:, :, nights],
            ranks_per_node=self.ranks_per_node[:, nights],
            inconclusive=inconclusive,
            **of_nights,
        )

    def add(
        self,
        name: str,
        mark: str,
        rows: Sequence[Mapping[str, Any]],
        crashes: list[list[Any]],
        counted: list[list[Any]],
        baseline: ScoreBaseline | None,
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
        self.baselines.append(baseline)


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
    earlier = dict(zip(known.sessions, known.baselines, strict=True))
    baselines = {one.name: earlier[one.name] for one in there} | _baselines(store, missing)
    baseline = next(
        (baselines[one.name] for one in reversed(sessions) if baselines.get(one.name)), None
    )
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
                baselines.get(stored.name),
            )
    if not found.sessions:
        raise NetproofError("; ".join(faults.values()))
    in_order = [one.name for one in sessions if one not in faults]
    return (found if in_order == found.sessions else found.of(in_order)), faults


def _baselines(store: Store, sessions: Sequence[StoredSession]) -> dict[str, ScoreBaseline]:
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


HEAD = b"netproof-followed "

FORMAT = 8
"""Raised when detection finds other changes in the same nights, or the file of states changes."""

MOST_BYTES = 2_000_000_000
"""Largest file: 100,000 series over 250 nights."""

SeriesKey = tuple[tuple[Any, ...], Quantity]
"""A case's key, as the store has it, or a pool's place, and the followed quantity."""


@dataclass(frozen=True)
class StoredHistory:
    """State of followed series up to a night, one file for each system that can be rebuilt.

    A damaged file, another format or another netproof's is not used. ``values``: of all sessions up
    to it; ``series``: the followed ones, in the order of ``state``, None where only the values are
    known.
    """

    values: NightValues
    series: tuple[SeriesKey, ...] = ()
    state: Followers | None = None

    def going_on(
        self, sessions: Sequence[str], keys: Sequence[SeriesKey]
    ) -> tuple[Followers | None, list[int]]:
        """Return the state to continue from over these sessions, and each series' place in it."""
        if self.values.sessions != list(sessions[: len(self.values.sessions)]):
            return None, []
        place = {key: number for number, key in enumerate(self.series)}
        return self.state, [place.get(key, -1) for key in keys]


NOTHING = StoredHistory(NightValues())


def load(store: Store, system: str) -> StoredHistory:
    """Read the state of a system; NOTHING where it is missing or cannot be used."""
    try:
        content = loading.read_bytes(store.followed(system), MOST_BYTES)
        head, _, rest = content.partition(b"\n")
        if head != _head(rest):
            return NOTHING
        with np.load(io.BytesIO(rest), allow_pickle=False) as arrays:
            return _read({name: arrays[name] for name in arrays.files})
    except (
        *(NetproofError, OSError, ValueError, TypeError, LookupError, AttributeError),
        *(zipfile.BadZipFile, zlib.error, EOFError),
    ):
        return NOTHING


def put(store: Store, system: str, history: StoredHistory) -> None:
    """Write the state; NetproofError where the store cannot be written."""
    values, state = vars(history.values), history.state
    arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    record = {name: value for name, value in values.items() if name not in arrays}
    record["inconclusive"] = [[*place, why] for place, why in record["inconclusive"].items()]
    record["series"] = history.series
    record["accepted"] = list(map(sorted, state.accepted))
    record["past"] = {n: asdict(past) for n, past in enumerate(state.past) if past != SeriesPast()}
    # Numbers of numpy, and NaN, which only this netproof reads again.
    text = json.dumps(record, default=_plain)
    arrays |= {f"of {name}": array for name, array in state.columns().items()}
    arrays |= {"record": np.frombuffer(text.encode(), dtype=np.uint8), "logs": state.logs}
    out = io.BytesIO()
    np.savez(out, allow_pickle=False, **arrays)
    content = out.getvalue()
    store.put_followed(system, _head(content) + b"\n" + content)


def _plain(value: Any) -> Any:
    return asdict(value) if isinstance(value, ScoreBaseline) else value.tolist()


def _head(content: bytes) -> bytes:
    """Return the first line of a file that this netproof wrote with such content."""
    return HEAD + f"{FORMAT} {version('netproof')} {zlib.crc32(content):08x}".encode()


def _read(arrays: dict[str, Any]) -> StoredHistory:
    record = json.loads(arrays["record"].tobytes())
    values = NightValues(**{one.name: (record | arrays)[one.name] for one in fields(NightValues)})
    values.cases, values.known_sizes = (
        list(map(tuple, several)) for several in (values.cases, values.known_sizes)
    )
    values.inconclusive = {(case, night): tuple(why) for case, night, why in values.inconclusive}
    values.baseline, *values.baselines = (
        one and ScoreBaseline(**one) for one in (values.baseline, *values.baselines)
    )
    series = tuple((tuple(key), Quantity(name)) for key, name in record["series"])
    state = Followers(arrays["logs"], tuple(map(frozenset, record["accepted"])))
    past = {int(number): read_past(one) for number, one in record["past"].items()}
    columns = {name: arrays[f"of {name}"] for name in state.columns()}
    every = np.arange(len(series))
    state.go_on_from(columns, [past.get(number, SeriesPast()) for number in every.tolist()], every)
    shape = (len(values.cases), len(values.sessions))
    of_nights = (values.marks, values.crashes, values.counted, values.baselines)
    fits = (
        values.values.shape == (len(QUANTITIES), *shape)
        and values.sizes.shape == (len(SIZES), *shape)
        and values.ranks_per_node.shape == shape
        and state.logs.shape == (len(series), shape[1])
        and len(state.accepted) == len(series)
        and {len(one) for one in of_nights} == {shape[1]}
        and all(len(case) == len(KEY) for case in values.cases)
    )
    return StoredHistory(values, series, state) if fits else NOTHING
