"""Bringing reports into a store, each whole or refused with the reason; its tables."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic import TypeAdapter

from netproof.errors import NetproofError
from netproof.intake import disk
from netproof.measurement.case import Case, Curve
from netproof.measurement.counters import Sent
from netproof.session import session
from netproof.session.measured import Launch, Measured
from netproof.session.provenance import Provenance
from netproof.session.records import PAIRS
from netproof.session.session import CheckResult, Session
from netproof.store.folder import (
    SESSION,
    VERDICT,
    Store,
    StoredSession,
    packed_session,
    packed_tables,
)
from netproof.store.tables import KEY, LANDMARK_COLUMNS, OUTCOME, POINT, TABLES

Rows = dict[str, list[dict[str, Any]]]
"""Table to its rows, each a column to its value."""

LeftOpen = Mapping[tuple[Any, ...], Sequence[str]]
"""Reasons why figures of a judged case mean nothing, by its key; empty if they do."""

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_OF_INFO = {
    "uuid": "uuid",
    "host": "hostname",
    "user": "user",
    "command": "cmdline",
    "reframe": "version",
}
_OF_SOFTWARE = ("slurm", "git_revision", "git_changed")

_plain = TypeAdapter(Any).dump_python
"""Return dataclasses with all their fields, as ``asdict`` does in three times the time."""

AT_ONCE = 1000
"""Cases whose rows are made at once: those of 10,000 take 2 GB, and a third of it in Arrow."""

_PARTITION_COLUMNS = ("switch", "nic", "driver", "link_mbit_s", "mtu")


@dataclass(frozen=True)
class Ingested:
    """Result of storing a report: its session, and whether it is ``new``.

    ``cases``, ``measured``: how many it has, and how many of them are complete;
    ``differences``, ``unknown``: of its provenance; ``not_judged``: why a new session has no
    stored verdict; ``ahead``: that it is dated in the future.
    """

    stored: StoredSession
    new: bool
    cases: int
    measured: int
    differences: tuple[str, ...]
    unknown: dict[str, str]
    not_judged: str = ""
    ahead: str = ""


def ingest(
    store: Store,
    report: Path,
    judged: Callable[[Session, str], tuple[LeftOpen, bytes | str]],
) -> Ingested:
    """Put a session's report into the store; a second time changes nothing.

    ``judged``: returns what a session's verdict leaves open, and its stored form, with the SHA-256
    of the report, or why it is stored without one. Raise NetproofError, with the store as it was,
    where the report is damaged, is still being written, or differs from the one that the store has
    of this session.
    """
    with _reading(report):
        sha256 = _sha256(report)
        document = session.document_of(report)
        files = {SESSION: packed_session(document, PAIRS)}
        read = session.of_document(report, document)
        read.insist_on_a_run()
        if _sha256(report) != sha256:
            raise NetproofError(f"{report}: changes while it is read; add it again")
        stored = place(read)
    not_judged = ""
    if new := not store.path(stored).exists():
        left_open, verdict = judged(read, sha256)
        with _reading(report):
            files |= packed_tables(tables_of(read, sha256, left_open))
        if isinstance(verdict, str):
            not_judged = verdict
        else:
            files[VERDICT] = verdict
        new = store.put(stored, files)
    if not new and (known := report_sha256(store, stored)) != sha256:
        raise NetproofError(
            f"{report}: the store has session {stored.name} from another report (SHA-256"
            f" {known[:12]}…, this one has {sha256[:12]}…), and a stored session never changes"
        )
    (header,) = store.table(stored, "sessions").to_pylist(maps_as_pydicts="strict")
    return Ingested(
        stored,
        new,
        header["cases"],
        header["measured"],
        tuple(header["differences"]),
        header["unknown"],
        not_judged,
        session.dated_ahead(store.path(stored), read.began),
    )


@contextmanager
def _reading(report: Path) -> Iterator[None]:
    """Name the report in what is wrong with it."""
    try:
        yield
    except NetproofError as error:
        # A fault within the report is named by its case or column.
        named = str(error) if str(error).startswith(f"{report}:") else f"{report}: {error}"
        raise NetproofError(named) from error
    except OSError as error:
        raise NetproofError(f"{report}: cannot be read: {error.strerror}") from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise NetproofError(f"{report}: is no whole report of ReFrame's: {error!r}") from error


def report_sha256(store: Store, stored: StoredSession) -> str:
    """Return the SHA-256 of the report of a session; Damaged where it cannot be read."""
    (row,) = store.table(stored, "sessions", ["report_sha256"]).to_pylist()
    return str(row["report_sha256"])


def _sha256(report: Path) -> str:
    return hashlib.sha256(disk.read_bytes(report)).hexdigest()


def place(stored: Session) -> StoredSession:
    """Return a session's place in a store.

    Raise NetproofError where its report lacks uuid or start, or holds no results, or those of
    several systems.
    """
    system = stored.system()
    uuid = stored.info.get("uuid")
    if not isinstance(uuid, str) or not _UUID.fullmatch(uuid):
        raise NetproofError(f"{stored.path}: session_info: uuid: {uuid!r} is no uuid")
    start = _moment(stored, "time_start_unix")
    return StoredSession(f"{start:%Y%m%dT%H%M%S}-{uuid[:8]}", system)


def tables_of(stored: Session, sha256: str, left_open: LeftOpen) -> Iterator[dict[str, pa.Table]]:
    """Yield the store's tables of a session in parts; ``sha256``: of its report.

    Raise NetproofError, naming the case or the column, where something is missing or is not what it
    should be, and for a session in which cases passed and none was measured: a dry run.
    """
    tests: list[dict[str, Any]] = []
    attempts: Counter[tuple[Any, ...]] = Counter()
    final: dict[tuple[Any, ...], tuple[Case, CheckResult]] = {}
    for number, result in enumerate(stored.results, 1):
        if result.case is None:
            own = _columns(result, ("kind", "partition", "environment", *OUTCOME))
            tests.append({"number": number, "test": result.name, **own})
            continue
        # A case that ReFrame ran again stands as it ended.
        attempts[result.case.key()] += 1
        final[result.case.key()] = result.case, result
    results = [result for _, result in final.values()]
    if not results and not stored.with_pairs:
        raise NetproofError(f"{stored.path}: holds no case and no rounds of pairs")
    if not any(result.measured for result in results) and any(
        result.result == "pass" for result in results
    ):
        raise NetproofError(
            f"{stored.path}: cases passed and nothing was measured: a dry run is not stored"
        )
    gathered = stored.provenance
    session_row = _session(stored, results, gathered, sha256)
    once = {"tests": tests, "nodes": _plain(gathered.nodes), "sessions": [session_row]}
    cases = sorted(final.values(), key=lambda one: tuple(_columns(one[0], KEY).values()))
    for start in range(0, max(len(cases), 1), AT_ONCE):
        rows: Rows = {name: [] if start else once.get(name, []) for name in TABLES}
        for case, result in cases[start : start + AT_ONCE]:
            _case(rows, case, attempts[case.key()], result, left_open.get(case.key()))
        yield {name: _table(name, rows[name], stored.path) for name in TABLES}


def _columns(record: Any, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names}


def _moment(stored: Session, key: str) -> datetime:
    value: Any = stored.info.get(key)
    try:
        return datetime.fromtimestamp(value, UTC).replace(tzinfo=None)
    except (TypeError, ValueError, OverflowError, OSError) as error:
        raise NetproofError(
            f"{stored.path}: session_info: {key}: {value!r} is no time in seconds"
        ) from error


def _session(
    stored: Session,
    results: list[CheckResult],
    gathered: Provenance,
    sha256: str,
) -> dict[str, Any]:
    info = stored.info
    absent = [key for key in _OF_INFO.values() if key not in info]
    if absent:
        raise NetproofError(f"{stored.path}: session_info: {absent[0]} is missing")
    slurm = gathered.partitions or None
    libraries = {
        result.environment: result.extras["environment_extras"].get("mpi")
        for result in results
        if result.measured
    }
    return {
        **{name: info[key] for name, key in _OF_INFO.items()},
        "started": _moment(stored, "time_start_unix"),
        "ended": _moment(stored, "time_end_unix"),
        "cases": len(results),
        "measured": sum(result.measured is not None for result in results),
        "labels": stored.labels(),
        "mpi": {name: library for name, library in sorted(libraries.items()) if library},
        **_columns(gathered, _OF_SOFTWARE),
        "netproof": gathered.netproof or None,
        "files": [
            {"kind": kind, "path": path, "sha256": of_file}
            for kind, several in gathered.files.items()
            for path, of_file in several.items()
        ],
        "differences": gathered.differences,
        "unknown": dict(gathered.unknown),
        "slurm_nodes": slurm
        and [
            {"partition": name, "node": node, "state": word, "reason": reason[1:-1]}
            for name, nodes in slurm.items()
            if not isinstance(nodes, str)
            for node, state in nodes.items()
            for word, _, reason in [state.partition(" ")]
        ],
        "slurm_unknown": slurm
        and {name: one or "" for name, one in slurm.items() if not one or isinstance(one, str)},
        "report": str(stored.path.resolve()),
        "report_sha256": sha256,
    }


def _repeat(rows: Rows, measured: Measured, again: Sequence[Launch]) -> None:
    same = _columns(measured.case, (*KEY, "ranks_per_node"))
    whole = [one for one in again if one.curves]
    crashes = [crash for one in again for crash in one.crashes]
    rows["repeats"].append(
        {
            **same,
            **{"jobid": measured.jobid, "nodes": measured.nodes(), "launches": len(whole)},
            "faults": [one.said for one in again if not one.curves],
            "loads": [_plain(one.loads) for one in whole] or None,
            "made": sum(one.steps for one in again) + len(crashes),
            "crashes": _crashes(crashes),
        }
    )
    for launch, one in enumerate(whole, 1):
        rows["repeat_curves"].append({**same, "launch": launch, **_points(one.curve)})


def _case(
    rows: Rows, case: Case, attempts: int, result: CheckResult, left_open: Sequence[str] | None
) -> None:
    measured = result.measured
    if result.kind != "check":
        raise NetproofError(f"{case}: is the case of a test of kind {result.kind!r}")
    row = dict.fromkeys(TABLES["cases"].names) | {
        **_columns(case, KEY),
        "ranks_per_node": case.ranks_per_node or None,
        "check": result.name,
        "attempts": attempts,
        **_columns(result, (*OUTCOME, "failed_job")),
        "complete": measured is not None,
    }
    if measured is not None:
        try:
            row |= _measured_columns(measured, result.extras)
            row["inconclusive"] = None if left_open is None else list(left_open)
        except (KeyError, TypeError, AttributeError) as error:
            raise NetproofError(f"{case}: what was measured cannot be read: {error!r}") from error
        for launch in measured.launches:
            _launch(rows, case, launch)
        if measured.again is not None:
            _repeat(rows, measured, measured.again)
    rows["cases"].append(row)


def _measured_columns(measured: Measured, values: Mapping[str, Any]) -> dict[str, Any]:
    extras, environment = values["partition_extras"], values["environment_extras"]
    landmarks = _plain(measured.landmarks)
    intervals = [
        {"landmark": name, "low": low, "high": high if high < math.inf else None}
        for name, (low, high) in measured.landmarks.intervals.items()
    ]
    return {
        "jobid": measured.jobid,
        "seed": values["seed"],
        "launches": len(measured.launches),
        "crashes": _crashes(measured.crashes),
        **{name: extras[name] for name in _PARTITION_COLUMNS},
        "mpi": environment["mpi"],
        "line_rate_mb_s": measured.line_rate_mb_s,
        **{name: landmarks[name] for name in LANDMARK_COLUMNS},
        "intervals": intervals,
        "cpu_costs": _plain(measured.cpu_costs),
        "partition_extras": json.dumps(extras),
        "environment_extras": json.dumps(environment),
    }


def _launch(rows: Rows, case: Case, launch: Launch) -> None:
    """Add a launch of a case, and its curve."""
    whole, several = _plain(launch), (replace(launch, environment=case.environment), *launch.peers)
    rows["launches"].append(
        {
            **_columns(case, KEY),
            "launch": launch.number,
            "position": launch.order,
            "started": datetime.fromtimestamp(launch.start, UTC).replace(tzinfo=None),
            "wall_s": launch.wall_s,
            "ranks_used": [*_ranks(launch)],
            "extra": launch.further,
            "paired": [*map(_paired, launch.peers)] or None,
            "loads": whole["loads"] or None,
            **{name: whole[name] for name in ("twin", "counters")},
            "payload": _payload(launch.payload),
            "exchanged": _payload(launch.exchanged),
            "paces": [
                {"environment": one.environment, "why" if isinstance(pace, str) else "ns": pace}
                for one in several
                for pace in one.paces
            ]
            or None,
        }
    )
    same = {**_columns(case, (*KEY, "ranks_per_node")), "launch": launch.number}
    rows["curves"].append({**same, **_points(launch.curve)})


def _ranks(launch: Launch) -> Iterator[dict[str, Any]]:
    for rank, node in enumerate(launch.ranks):
        used = {name: column[rank] for name, column in launch.used.items()}
        absent = {name: one for name, one in used.items() if isinstance(one, str)}
        yield {**used, **dict.fromkeys(absent), "rank": rank, "node": node, "absent": absent}


def _paired(peer: Launch) -> dict[str, Any]:
    known = {"environment": peer.environment, "crashes": _crashes(peer.crashes)}
    return known | {name: _plain(getattr(peer, name)) for name in ("curve", "counters")}


def _crashes(launches: Iterable[Launch]) -> list[dict[str, Any]]:
    names = ("attempt", "order", "status", "said")
    return [
        {
            **{"launch": one.number, "nodes": one.died_on, "counters": _plain(one.counters)},
            **_columns(one, names),
        }
        for one in launches
    ]


def _payload(sent: int | Sent) -> dict[str, Any]:
    if isinstance(sent, str):
        return {"why": sent}
    known = sent if isinstance(sent, tuple) else (sent,)
    return dict(zip(("bytes", "messages"), known, strict=False))


def _points(curve: Curve) -> dict[str, Sequence[Any]]:
    """Return the columns of a curve's sizes."""
    none = (None,) * len(curve.sizes)
    return {POINT[0]: curve.sizes, **{name: getattr(curve, name) or none for name in POINT[1:]}}


def _table(name: str, rows: list[dict[str, Any]], path: Path) -> pa.Table:
    """Return a table of rows; those of curves have all sizes of one."""
    schema = TABLES[name]
    arrays = []
    for field in schema:
        if POINT[0] not in schema.names:
            values = [row[field.name] for row in rows]
        elif field.name in POINT:
            values = [one for row in rows for one in row[field.name]]
        else:
            values = [row[field.name] for row in rows for _ in row[POINT[0]]]
        try:
            array = pa.array(values, field.type)
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            raise NetproofError(f"{path}: {name}.{field.name}: {error}") from error
        if array.null_count and not field.nullable:
            raise NetproofError(f"{path}: {name}.{field.name}: a value is missing")
        if pa.types.is_floating(field.type) and not all(
            value is None or math.isfinite(value) for value in values
        ):
            raise NetproofError(f"{path}: {name}.{field.name}: a value is not finite")
        arrays.append(array)
    return pa.Table.from_arrays(arrays, schema=schema)
