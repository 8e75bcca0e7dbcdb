"""Series of a history: a quantity of a case, night by night, and the levels that people accepted.

An acceptance is a small file of its own in the store, ``accepted/SYSTEM/SESSION-….json``, renamed
into place and never changed; to revoke it, remove its file.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from netproof import codec
from netproof.errors import NetproofError, grouped
from netproof.history import values as night_values
from netproof.history.changes import LEAST_NOISE, Floats
from netproof.history.selection import NEWEST_SESSIONS, STRIDE, Quantity, Selection
from netproof.history.values import NOTHING, NightValues
from netproof.intake import disk
from netproof.measurement.case import Case
from netproof.measurement.interval import MAD_OF_NORMAL
from netproof.store import Store, StoredSession, questions
from netproof.store.folder import ACCEPTED
from netproof.store.tables import KEY

STILL_MEASURED = 10
"""Newest sessions that may lack a case before it is followed no longer."""

SIZES = {Quantity.MEAN: "mean_sizes", Quantity.SCORE: "score_sizes"}
"""Columns with the sizes of a mean."""


@dataclass(frozen=True, eq=False)
class Series:
    """One quantity of a case, or of several cases of a configuration that ``pooled`` made one.

    ``values``: one for each session, None for a missing one; µs, MB/s or, of a score, a ratio; of a
    pool, relative to the level of each case; all above 0. ``inconclusive``: likewise, the values of
    sessions in which the case, or a score's baseline, was inconclusive; they are only shown.
    Compared by identity.
    """

    cases: tuple[Case, ...]
    quantity: Quantity
    values: tuple[float | None, ...]
    inconclusive: tuple[float | None, ...] = ()

    @property
    def case(self) -> Case:
        """Return its case, of a pool the first."""
        return self.cases[0]

    @property
    def pooled(self) -> bool:
        """Check whether it is of several cases."""
        return len(self.cases) > 1

    @property
    def where(self) -> tuple[str, str]:
        """Return its configuration: partition and environment."""
        return self.case.partition, self.case.environment


Counts = Mapping[str, Any]
"""Counts at a place: its two names, and for each count a tuple over the sessions.

None stands where a session has none, or where it is not known.
"""


def crashes_in_words(one: Counts) -> str:
    """Return how many launches of a configuration crashed, and in the newest that counted them.

    Most counts are 0, so that a single night shows no level: a share is over many.
    """
    launches, crashed = one["launches"], one["crashed"]
    made, died = (sum(filter(None, line)) for line in (launches, crashed))
    nights = [night for night, count in enumerate(launches) if count is not None]
    some, newest = sum(map(bool, crashed)), nights[-1]
    return (
        f"{one['partition']} {one['environment']}: {died} of {made} launches crashed"
        f" ({100 * died / made:.2g} %), in {some} of {len(nights)} sessions; in the newest"
        f" {crashed[newest]} of {launches[newest]}"
    )


def counted_in_words(one: Counts) -> str:
    """Return a node's carrier changes and errors, and in how many sessions; empty without any."""
    parts = []
    for words, key in (("carrier changes", "carrier_changes"), ("packets with errors", "errors")):
        known = [count for count in one[key] if count is not None]
        if some := sum(map(bool, known)):
            parts.append(f"{sum(known):,} {words} in {some} of {len(known)} sessions")
    return f"{one['partition']} {one['node']}: {'; '.join(parts)}" if parts else ""


@dataclass(frozen=True)
class Nights:
    """Sessions of a system in order of their start, and every series over them.

    ``known``: the values that the series are of; ``no_longer_followed``: number of series that none
    of the ``STILL_MEASURED`` newest sessions has; ``other_sizes``: of values left out, being means
    over other sizes than the newest of their series; ``crashes``: of each configuration;
    ``inconclusive``: why the figures of a case in a session say nothing about the network;
    ``unread``: damaged sessions that are left out, a sentence each with the file; ``counted``: of
    each node's network.
    """

    system: str
    sessions: tuple[StoredSession, ...]
    series: tuple[Series, ...]
    pools: tuple[Series, ...]
    known: NightValues
    no_longer_followed: int
    other_sizes: int
    crashes: tuple[Counts, ...] = ()
    inconclusive: Mapping[tuple[StoredSession, Case], tuple[str, ...]] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    counted: tuple[Counts, ...] = ()


def chosen(
    store: Store,
    system: str | None = None,
    session: str | None = None,
    *,
    last: int | None = None,
    since: date | None = None,
    labels: Mapping[str, str] | None = None,
) -> tuple[str, tuple[StoredSession, ...]]:
    """Return the system, the store's only one if None, and its sessions in order of their start.

    ``session``: the last one, as ``Store.find`` knows it, the newest if None; ``last``: their
    largest number, None for at least the newest ``NEWEST_SESSIONS``, with a first session that
    stays the same for ``STRIDE`` nights; ``since``: first day of their start, UTC. Raise
    NetproofError where there is no session, or several systems and none named.
    """
    until = None if session in (None, "newest") else named(store, session, system)
    everything = store.sessions()
    systems = sorted({stored.system for stored in everything})
    if until is not None:
        system = until.system
    if system is None:
        if len(systems) > 1:
            raise NetproofError(
                f"{store.folder}: holds {len(systems)} systems, {', '.join(systems)}; name one:"
                " SYSTEM"
            )
        system = systems[0] if systems else None
    if system not in systems:
        of = f" of system {system}; it has {', '.join(systems)}" if systems and system else ""
        raise NetproofError(
            f"{store.folder}: holds no session{of}; 'netproof store add REPORT' brings one"
        )
    found = [stored for stored in everything if stored.system == system]
    if labels:
        known = questions.labels(store, found)
        found = [one for one in found if labels.items() <= known.get(one, {}).items()]
        if not found:
            there = sorted({one for of in known.values() for one in _stated(of)})
            raise NetproofError(
                f"{store.folder}: no session of {system} is labelled {' '.join(_stated(labels))};"
                f" the labels there are: {', '.join(there) or 'none'}"
            )
    if until is not None:
        if until not in found:
            raise NetproofError(f"{until.name}: is not labelled as the sessions that are asked for")
        found = found[: found.index(until) + 1]
    if since is not None:
        found = [stored for stored in found if stored.start.date() >= since]
        if not found:
            raise NetproofError(f"{store.folder}: no session of {system} began on {since} or later")
    if last is None:
        older = max(len(found) - NEWEST_SESSIONS, 0)
        return system, tuple(found[older // STRIDE * STRIDE :])
    return system, tuple(found[-last:])


def _stated(labels: Mapping[str, str]) -> list[str]:
    return [f"{key}={value}" for key, value in labels.items()]


def read(
    store: Store, system: str, sessions: Sequence[StoredSession], known: NightValues = NOTHING
) -> Nights:
    """Read every series over ``sessions`` of ``system`` in order of their start.

    ``known``: values read before. Damaged sessions are left out and ``unread``. Raise NetproofError
    where nothing can be read.
    """
    values, faults = night_values.gathered(store, sessions, known)
    sessions = tuple(stored for stored in sessions if stored not in faults)
    series, left, other_sizes, inconclusive = _series(system, values, sessions)
    return Nights(
        system,
        sessions,
        tuple(series),
        _pools(series),
        values,
        left,
        other_sizes,
        _by_place(values.crashes, [*values.marks]),
        dict(sorted(inconclusive.items())),
        tuple(f"{stored.name} is left out: {why}" for stored, why in faults.items()),
        _by_place(values.counted, [*values.marks]),
    )


def _series(
    system: str, values: NightValues, sessions: Sequence[StoredSession]
) -> tuple[list[Series], int, int, dict[tuple[StoredSession, Case], tuple[str, ...]]]:
    """Return all followed series; how many no longer are; values of other sizes; and without."""
    rows, baseline, nights = values.values, values.baseline, len(sessions)
    names = pa.array([stored.name for stored in sessions])
    night = pc.index_in(rows["session"], names).to_numpy()
    key = pc.binary_join_element_wise(*(rows[name].cast(pa.string()) for name in KEY), "\n")
    _, first, case = np.unique(_codes(key), return_index=True, return_inverse=True)

    def grid(column: NDArray[Any], missing: float) -> NDArray[Any]:
        """Return cases x nights of a column of the rows."""
        found = np.full((len(first), nights), missing, dtype=column.dtype)
        found[case, night] = column
        return found

    keys = rows.select([*KEY]).take(first).to_pylist()
    ranks = grid(pc.fill_null(rows["ranks_per_node"], 0).to_numpy(), 0)
    # The newest known ranks per node.
    stated = [[0, *line[line > 0].tolist()][-1] for line in ranks]
    cases = [
        Case(system=system, ranks_per_node=count, **one)
        for one, count in zip(keys, stated, strict=True)
    ]
    reasons = rows["inconclusive"]
    some = np.flatnonzero(pc.fill_null(pc.list_value_length(reasons), 0).to_numpy())
    why = {(case[row], night[row]): tuple(reasons[row].as_py()) for row in some.tolist()}
    unsettled = np.zeros((len(cases), nights), dtype=bool)
    for place in why:
        unsettled[place] = True
    number_of = {case.key(): number for number, case in enumerate(cases)}
    of_baseline, scored = np.zeros_like(unsettled), np.ones(len(cases), dtype=bool)
    if baseline:
        where = dataclasses.asdict(baseline)
        for number, one in enumerate(cases):
            its = dataclasses.replace(one, **where)
            # A score against itself is always 1.
            scored[number] = its != one
            if its.key() in number_of:
                of_baseline[number] = unsettled[number_of[its.key()]]
    found, left, other_sizes = [], 0, 0
    for quantity in Quantity:
        score = quantity is Quantity.SCORE
        out = unsettled | of_baseline if score else unsettled
        whole = grid(rows[quantity].to_numpy(), np.nan)
        line, alongside = np.where(out, np.nan, whole), np.where(out, whole, np.nan)
        asked = scored if score else np.ones(len(cases), dtype=bool)
        if quantity in SIZES:
            sizes = rows[SIZES[quantity]].cast(pa.list_(pa.string()))
            codes = grid(_codes(pc.binary_join(sizes, " ")), -1)
            other_sizes += _leave_other_sizes(line, alongside, codes, asked)
        with np.errstate(invalid="ignore"):
            has, shown = line > 0, alongside > 0
        certain, aside = line.astype(object), alongside.astype(object)
        certain[~has], aside[~shown] = None, None
        newest = nights - 1 - np.argmax((has | shown)[:, ::-1], axis=1)
        followed = asked & has.any(axis=1)
        recent = newest >= nights - STILL_MEASURED
        left += int((followed & ~recent).sum())
        found += [
            Series(
                (cases[one],),
                quantity,
                tuple(certain[one].tolist()),
                tuple(aside[one].tolist()),
            )
            for one in np.flatnonzero(followed & recent).tolist()
        ]
    order = {quantity: place for place, quantity in enumerate(Quantity)}
    found.sort(key=lambda one: (one.case, order[one.quantity]))
    inconclusive = {
        (sessions[when], cases[place]): several for (place, when), several in why.items()
    }
    return found, left, other_sizes, inconclusive


def _codes(texts: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return a number for each text, the same for equal ones; -1 for null."""
    codes = pc.dictionary_encode(texts).combine_chunks().indices
    return np.asarray(pc.fill_null(codes.cast(pa.int64()), -1))


def _by_place(table: pa.Table, sessions: Sequence[str]) -> tuple[Counts, ...]:
    """Return what each place counted; ``table``: session, the two names of a place, and counts."""
    _, one, other, *counts = table.column_names
    found: dict[tuple[str, str], dict[str, Mapping[str, Any]]] = defaultdict(dict)
    for row in table.to_pylist():
        found[row[one], row[other]][row["session"]] = row
    return tuple(
        {
            **dict(zip((one, other), place, strict=True)),
            **{name: tuple(rows.get(night, {}).get(name) for night in sessions) for name in counts},
        }
        for place, rows in sorted(found.items())
    )


def named(store: Store, name: str, system: str | None = None) -> StoredSession:
    """Return the session of this name by ``Store.find``, of ``system`` or of the only one.

    Raise NetproofError where none or several fit, and for the newest of several systems.
    """
    if name == "newest":
        return chosen(store, system, last=1)[1][-1]
    there = any(stored.name.startswith(name) for stored in store.sessions(system))
    found = store.find(name, system if there else None)
    if system not in (None, found.system):
        raise NetproofError(f"session {found.name} is of system {found.system}, not {system}")
    return found


def _leave_other_sizes(
    line: Floats, alongside: Floats, sizes: NDArray[np.int64], asked: NDArray[np.bool_]
) -> int:
    """Remove values, and those only shown, of other sizes than the newest; count the former."""
    present = ~np.isnan(line)
    some = present.any(axis=1) & asked
    newest = line.shape[1] - 1 - np.argmax(present[:, ::-1], axis=1)
    other = sizes != np.take_along_axis(sizes, newest[:, np.newaxis], axis=1)
    other &= some[:, np.newaxis]
    count = int((present & other).sum())
    line[other] = np.nan
    alongside[other] = np.nan
    return count


def _pools(series: Sequence[Series]) -> tuple[Series, ...]:
    groups = grouped(((*one.where, one.quantity), one) for one in series)
    return tuple(
        Series(
            tuple(one.case for one in members),
            key[-1],
            tuple(pooled([one.values for one in members], phase_of(*key))),
        )
        for key, members in groups.items()
        if len(members) > 1
    )


POOL_STRIDE = 20
"""Nights after which weights are updated."""


def phase_of(*key: str) -> int:
    """Return the offset in nights, 0 to 19, at which a pool of this name updates its weights.

    It spreads the updates, so that no night must follow all pools from their beginning.
    """
    return zlib.crc32("\0".join(key).encode()) % POOL_STRIDE


def pooled(series: Sequence[Sequence[float | None]], phase: int = 0) -> list[float | None]:
    """Return several series of a configuration's nights as one: 1 is their usual level.

    The weighted geometric mean of each night's values over the series' own medians. A weight is one
    over the square of a series' noise, taken from the differences of successive nights, so that no
    step enters it. Medians and noise are of all nights up to the last multiple of ``POOL_STRIDE``,
    ``phase`` nights before it, and of all where a series has fewer values in those: a night's value
    stays the same on most nights, and following can continue from there. A night without values is
    None.
    """
    if not series:
        return []
    logs = np.log(np.array(series, dtype=float))
    there = np.isfinite(logs)
    logs, there = logs[there.any(axis=1)], there[there.any(axis=1)]
    nights = max((logs.shape[1] + phase) // POOL_STRIDE * POOL_STRIDE - phase, 0)
    few = there[:, :nights].sum(axis=1) < POOL_STRIDE
    middles, noise = np.zeros((2, len(logs)))
    for these, known in ((~few, nights), (few, logs.shape[1])):
        middles[these], noise[these] = _usual(logs[these, :known])
    noise = np.maximum(noise * MAD_OF_NORMAL / math.sqrt(2), LEAST_NOISE)
    weights = np.where(there, noise[:, np.newaxis] ** -2.0, 0.0)
    totals = weights.sum(axis=0)
    sums = (weights * np.nan_to_num(logs - middles[:, np.newaxis])).sum(axis=0)
    return [
        math.exp(sum_ / total) if total > 0 else None
        for sum_, total in zip(sums.tolist(), totals.tolist(), strict=True)
    ]


def _usual(logs: Floats) -> Floats:
    """Return the median of each row, and that of the differences of successive values."""
    if np.isfinite(logs).all() and logs.shape[1] > 1:
        steps = np.abs(np.diff(logs, axis=1))
        return np.array([np.median(logs, axis=1), np.median(steps, axis=1)])
    rows = [row[np.isfinite(row)] for row in logs]
    # A single value has no difference.
    steps_of = (np.abs(np.diff(row)) if len(row) > 1 else [0.0] for row in rows)
    return (
        np.array(
            [(np.median(row), np.median(steps)) for row, steps in zip(rows, steps_of, strict=True)]
        )
        .reshape(-1, 2)
        .T
    )


FORMAT = 1
"""Format of an acceptance's file; raised when a key changes its meaning or goes."""


@dataclass(frozen=True)
class Acceptance:
    """Acceptance of a new level of the series that ``covers`` has, from ``session`` on.

    ``at``: when it was recorded, UTC. Raise NetproofError without a reason or a name, and where it
    covers everything without saying so.
    """

    system: str
    session: str
    reason: str
    name: str
    at: str
    covers: Selection

    def __post_init__(self) -> None:
        StoredSession(self.session, self.system)
        for what in ("reason", "name"):
            if not getattr(self, what).strip():
                raise NetproofError(f"an acceptance needs a {what}: give --{what}")
        if self.covers.everything:
            raise NetproofError(
                "an acceptance says what it covers: an expression for cases (--case . for all of"
                " them), SYSTEM:PARTITION, --environment or --quantity"
            )

    @property
    def first(self) -> StoredSession:
        """Return the first session at the new level."""
        return StoredSession(self.session, self.system)

    def __str__(self) -> str:
        return (
            f"{self.covers} from session {self.session} on: {self.reason} ({self.name}, {self.at})"
        )


def accept(store: Store, acceptance: Acceptance) -> Path:
    """Write an acceptance to the store and return its file.

    Raise NetproofError where the store does not have its session, or cannot be written.
    """
    if not store.path(acceptance.first).is_dir():
        raise NetproofError(
            f"{store.folder}: has no session {acceptance.session} of {acceptance.system}"
        )
    content = (json.dumps({"format": FORMAT, **asdict(acceptance)}, indent=1) + "\n").encode()
    digest = hashlib.sha256(content).hexdigest()[:8]
    name = f"{acceptance.session}-{digest}.json"
    target = store.folder / ACCEPTED / acceptance.system / name
    store.replace(target, content, "accept")
    return target


def acceptances(store: Store, system: str) -> tuple[Acceptance, ...]:
    """Return all acceptances of a system, in order of their sessions.

    Raise NetproofError, with the file, where one is damaged or foreign.
    """
    found = [_read(path, system) for path in store.acceptances(system)]
    return tuple(sorted(found, key=lambda one: (one.session, one.at)))


def accepted_nights(
    acceptances: Sequence[Acceptance], sessions: Sequence[StoredSession], followed: Series
) -> frozenset[int]:
    """Return which of ``sessions`` begin an intended level, by their place.

    Where the session of an acceptance is not among them, the next one after it counts.
    """
    found = set()
    for one in acceptances:
        if one.first < sessions[0] or not one.covers.covers(followed):
            continue
        later = [night for night, stored in enumerate(sessions) if stored >= one.first]
        found.update(later[:1])
    return frozenset(found)


def _read(path: Path, system: str) -> Acceptance:
    try:
        values = disk.json_file(path)
        stated = values.pop("format", None) if isinstance(values, dict) else None
        if stated != FORMAT:
            raise NetproofError(
                f"format: found {stated!r}, expected {FORMAT}, the only format known here"
            )
        found = codec.decode(Acceptance, values, "")
        if found.system != system or not path.name.startswith(f"{found.session}-"):
            raise NetproofError(f"it is of session {found.session} of {found.system}")
    except (NetproofError, OSError, ValueError) as error:
        why = str(error) if isinstance(error, NetproofError) else repr(error)
        raise NetproofError(
            f"{path}: no acceptance can be read from it: {why}; remove it and accept again"
        ) from error
    return found
