"""Values of sessions, and the state of the history followed over them: each session is read once.

Both are stored in one file for each system, so that a night only adds its own values. It can be
rebuilt: a damaged file, another format or another netproof's is not used.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from netproof.errors import NetproofError
from netproof.history.followers import Followers, SeriesPast, read_past
from netproof.history.selection import Quantity
from netproof.intake import disk
from netproof.site.partition import ScoreBaseline
from netproof.store import Store, StoredSession, questions
from netproof.store import folder as store_folder

AT_ONCE = 10
"""Sessions that are read at a time: opening files takes longer than reading what is in them."""

READ = ("cases", "curves", "launches", "repeats")
"""The tables of a session that its values are read from."""


def _no_rows() -> pa.Table:
    return pa.table({"session": pa.array([], pa.string())})


SeriesKey = tuple[tuple[Any, ...], Quantity]
"""A case's key, as the store has it, or a pool's place, and the followed quantity."""


@dataclass(frozen=True)
class NightValues:
    """Values and counts of a system's sessions, and the series followed up to the last.

    ``marks``: of each session in order of their start, shows whether it was replaced; ``baseline``:
    of the scores; ``baselines``: that of each session that names one; ``values``, ``crashes``,
    ``counted``: the answers of ``questions.nightly``, ``crashes`` and ``counted``; ``series``: the
    followed ones, in the order of ``state``, None where only the values are known.
    """

    marks: Mapping[str, str] = field(default_factory=dict)
    baseline: ScoreBaseline | None = None
    baselines: Mapping[str, ScoreBaseline] = field(default_factory=dict)
    values: pa.Table = field(default_factory=_no_rows)
    crashes: pa.Table = field(default_factory=_no_rows)
    counted: pa.Table = field(default_factory=_no_rows)
    series: tuple[SeriesKey, ...] = ()
    state: Followers | None = None

    def going_on(
        self, sessions: Sequence[str], keys: Sequence[SeriesKey]
    ) -> tuple[Followers | None, list[int]]:
        """Return the state to continue from over these sessions, and each series' place in it."""
        if [*self.marks] != list(sessions[: len(self.marks)]):
            return None, []
        place = {key: number for number, key in enumerate(self.series)}
        return self.state, [place.get(key, -1) for key in keys]


NOTHING = NightValues()


def mark(store: Store, stored: StoredSession) -> str:
    """Return a mark of a session that changes when it is replaced; values are too slow to read.

    Its checksums, and size and time of the files that are read; empty where they are missing.
    """
    folder = store.path(stored)
    try:
        found = [(folder / f"{name}{store_folder.PARQUET}").stat() for name in READ]
        parts = [f"{one.st_size}:{one.st_mtime_ns}" for one in found]
        parts.append(disk.read_bytes(folder / store_folder.CHECKSUMS).hex())
    except (OSError, NetproofError):
        return ""
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:16]


def gathered(
    store: Store, sessions: Sequence[StoredSession], known: NightValues
) -> tuple[NightValues, dict[StoredSession, str]]:
    """Return the values of the sessions, reusing ``known``; and what is damaged.

    Raise NetproofError where all of them are damaged.
    """
    marks = {stored.name: mark(store, stored) for stored in sessions}
    missing = [
        one
        for one in sessions
        if not marks[one.name] or known.marks.get(one.name) != marks[one.name]
    ]
    read = {one.name for one in missing}
    earlier = {name: one for name, one in known.baselines.items() if name in marks.keys() - read}
    baselines = earlier | _baselines(store, missing)
    baseline = next(
        (baselines[one.name] for one in reversed(sessions) if one.name in baselines), None
    )
    if baseline != known.baseline:
        # The scores' baseline is another one.
        known, missing, read = NOTHING, list(sessions), set(marks)

    new = {
        "crashes": [_answer(store, questions.crashes, missing)[0]],
        "counted": [_answer(store, questions.counted, missing)[0]],
        "values": [],
    }
    faults: dict[StoredSession, str] = {}
    nightly = partial(questions.nightly, baseline=baseline)
    for first in range(0, len(missing), AT_ONCE):
        table, damaged = _answer(store, nightly, missing[first : first + AT_ONCE])
        new["values"].append(table)
        faults |= damaged
    whole = {one.name: marks[one.name] for one in sessions if one not in faults}
    if not whole:
        raise NetproofError("; ".join(faults.values()))
    found = {}
    for name, tables in new.items():
        before = _of(getattr(known, name), whole.keys() - read)
        tables = [_of(table, whole) for table in tables]
        found[name] = pa.concat_tables([before, *tables], promote_options="default")
    return NightValues(whole, baseline, baselines, **found), faults


def _of(table: pa.Table, sessions: Iterable[str]) -> pa.Table:
    return table.filter(pc.is_in(table["session"], pa.array(sessions, pa.string())))


def _baselines(store: Store, sessions: Sequence[StoredSession]) -> dict[str, ScoreBaseline]:
    """Return the baseline of the site by session, of those that name it."""
    found = {}
    query = (
        "select session, partition, any_value(partition_extras) as extras from cases"
        " where partition_extras is not null group by all order by all"
    )
    ask = partial(questions.ask, only=["cases"], query=query)
    for row in _answer(store, ask, sessions)[0].to_pylist():
        environment = disk.json_value(row["extras"], store.folder).get("baseline")
        if environment:
            found[row["session"]] = ScoreBaseline(row["partition"], environment)
    return found


def _answer(
    store: Store,
    ask: Callable[[Store, Sequence[StoredSession]], pa.Table],
    sessions: Sequence[StoredSession],
) -> tuple[pa.Table, dict[StoredSession, str]]:
    """Return the rows of an answer, and why sessions that it lacks are damaged."""
    if not sessions:
        return _no_rows(), {}
    try:
        return questions.each(store, lambda these: ask(store, these), sessions)
    except NetproofError as error:
        faults = {one: questions.fault_of(store, one) or str(error) for one in sessions}
        return _no_rows(), faults


HEAD = b"netproof-followed "

FORMAT = 13
"""Raised when detection finds other changes in the same nights, or the file of states changes."""

MOST_BYTES = 2_000_000_000
"""Largest file: 100,000 series over 250 nights."""


def load(store: Store, system: str) -> NightValues:
    """Read the values and state of a system; NOTHING where they are missing or cannot be used."""
    try:
        content = disk.read_bytes(store.followed(system), MOST_BYTES)
        head, _, rest = content.partition(b"\n")
        if head != _head(rest):
            return NOTHING
        with np.load(io.BytesIO(rest), allow_pickle=False) as arrays:
            return _read({name: arrays[name] for name in arrays.files})
    except (
        *(NetproofError, OSError, ValueError, TypeError, LookupError, AttributeError),
        *(zipfile.BadZipFile, zlib.error, EOFError, pa.ArrowException),
    ):
        return NOTHING


def put(store: Store, system: str, values: NightValues) -> None:
    """Write values and state, which there is; NetproofError where the store cannot be written."""
    state = values.state
    assert state is not None
    record = {
        "marks": values.marks,
        "baseline": values.baseline and asdict(values.baseline),
        "baselines": {name: asdict(one) for name, one in values.baselines.items()},
        "series": values.series,
        "accepted": list(map(sorted, state.accepted)),
        "past": {n: asdict(past) for n, past in enumerate(state.past) if past != SeriesPast()},
    }
    # Numbers of numpy, and NaN, which only this netproof reads again.
    text = json.dumps(record, default=lambda value: value.tolist())
    out = io.BytesIO()
    np.savez(
        out,
        record=np.frombuffer(text.encode(), dtype=np.uint8),
        logs=state.logs,
        state=state.now,
        values=_packed(values.values),
        crashes=_packed(values.crashes),
        counted=_packed(values.counted),
    )
    content = out.getvalue()
    store.replace(store.followed(system), _head(content) + b"\n" + content, "follow")


_TABLES = ("values", "crashes", "counted")


def _packed(table: pa.Table) -> NDArray[np.uint8]:
    sink, options = pa.BufferOutputStream(), pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, table.schema, options=options) as stream:
        stream.write_table(table.combine_chunks())
    return np.frombuffer(sink.getvalue(), dtype=np.uint8)


def _head(content: bytes) -> bytes:
    """Return the first line of a file that this netproof wrote with such content."""
    return HEAD + f"{FORMAT} {version('netproof')} {zlib.crc32(content):08x}".encode()


def _read(arrays: dict[str, Any]) -> NightValues:
    record = json.loads(arrays["record"].tobytes())
    series = tuple((tuple(key), Quantity(name)) for key, name in record["series"])
    state = Followers(arrays["logs"], tuple(map(frozenset, record["accepted"])))
    state.now = arrays["state"]
    for number, past in record["past"].items():
        state.past[int(number)] = read_past(past)
    return NightValues(
        record["marks"],
        record["baseline"] and ScoreBaseline(**record["baseline"]),
        {name: ScoreBaseline(**one) for name, one in record["baselines"].items()},
        **{name: pa.ipc.open_stream(arrays[name].tobytes()).read_all() for name in _TABLES},
        series=series,
        state=state,
    )
