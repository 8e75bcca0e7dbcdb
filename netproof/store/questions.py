"""Questions to a store: whole sessions from their files, all else through DuckDB.

Files of other sessions are not opened. ``connect`` is for all other questions, in SQL.
"""

from __future__ import annotations

import dataclasses
import glob
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from netproof.criteria.findings import READABLE
from netproof.criteria.score import SCORE
from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.measurement.landmarks import RATES
from netproof.session import session
from netproof.session.records import PAIRS
from netproof.session.session import GOOD_RESULTS, Session, label_of
from netproof.site.partition import ScoreBaseline
from netproof.store import ingest
from netproof.store.folder import (
    PARQUET,
    SESSION,
    Damaged,
    Store,
    StoredSession,
    session_document,
    verify,
)
from netproof.store.tables import KEY, PATH_COLUMNS, TABLES

if TYPE_CHECKING:
    import duckdb

MEMORY_LIMIT = "768MB"
"""Memory of DuckDB; what needs more is put on disk while the question runs."""

MOST_THREADS = 8
"""Threads of DuckDB, at most: more make small files no faster and take memory each."""


def connect(
    store: Store,
    sessions: Sequence[StoredSession] | None = None,
    *,
    only: Iterable[str] = tuple(TABLES),
) -> duckdb.DuckDBPyConnection:
    """Return a connection that has tables of the store, or ``only`` these, as views.

    ``sessions``: these, else all. Raise NetproofError where there is no session, and where a file
    cannot be read; later, when a question is put to it, such a file is a ``duckdb.Error``.
    """
    if sessions is None:
        folder = glob.escape(str(store.folder))
        places = sorted(glob.glob(f"{folder}/system=*/month=*/session=*"))
        if not places:
            raise NetproofError(
                f"{store.folder}: holds no session; 'netproof store add' brings one"
            )
    else:
        places = [str(store.path(stored)) for stored in sessions]
    import duckdb  # What reads one session alone does without it.

    connection = duckdb.connect(
        config={
            "memory_limit": MEMORY_LIMIT,
            "threads": min(os.cpu_count() or 1, MOST_THREADS),
            "temp_directory": tempfile.gettempdir(),
            # Nothing is fetched from anywhere.
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
    )
    # Where Python runs no file, DuckDB shows one amid what is printed.
    connection.execute("set enable_progress_bar = false")
    types = ", ".join(f"'{column}': VARCHAR" for column in PATH_COLUMNS)
    for table in only:
        for place in places:
            verify(Path(place), f"{table}{PARQUET}")
        quoted = (f"{place}/{table}{PARQUET}".replace("'", "''") for place in places)
        files = ", ".join(f"'{one}'" for one in quoted)
        answered(
            connection.execute,
            f"create view {table} as select * from read_parquet([{files}],"
            f" hive_partitioning = true, hive_types = {{{types}}})",
        )
    return connection


def tables(
    store: Store, stored: StoredSession, only: Iterable[str] = tuple(TABLES)
) -> dict[str, pa.Table]:
    """Return all tables of one session, or these, by name; raise Damaged."""
    return {name: store.table(stored, name) for name in only}


def each(
    store: Store,
    ask: Callable[[Sequence[StoredSession]], pa.Table],
    sessions: Sequence[StoredSession],
) -> tuple[pa.Table, dict[StoredSession, str]]:
    """Return the answer of ``ask`` about all sessions but damaged ones, and why those are.

    A session is asked for alone only where asking about all of them failed. Raise NetproofError
    where none can be read.
    """
    try:
        return ask(sessions), {}
    except NetproofError:
        answers: list[pa.Table] = []
        faults: dict[StoredSession, str] = {}
        for stored in sessions:
            try:
                answers.append(ask([stored]))
            except NetproofError as error:
                faults[stored] = fault_of(store, stored) or str(error)
        if not faults:
            raise
        if not answers:
            raise NetproofError("; ".join(faults.values())) from None
        return pa.concat_tables(answers, promote_options="default"), faults


def fault_of(store: Store, stored: StoredSession) -> str | None:
    """Return the damage of a session, by its file; None if all of its tables can be read."""
    try:
        tables(store, stored)
    except NetproofError as error:
        return str(error)
    return None


def load(store: Store, stored: StoredSession, key: str = "") -> Session:
    """Return a stored session as ``session.load`` read it; its ``path`` is in the store.

    With ``key`` only test cases that have it. Raise NetproofError where the file is missing or
    damaged.
    """
    folder = store.path(stored)
    try:
        content = verify(folder, SESSION)
        return session.of_document(folder, session_document(content, folder / SESSION, key))
    except Damaged:
        raise
    except NetproofError as error:
        raise NetproofError(
            f"{error}; move {folder} out of the store and add the session's report again"
        ) from error


def whole(store: Store, stored: StoredSession) -> Session:
    """Return a session as ``load``; raise NetproofError too where a table has something else."""
    found = load(store, stored)
    sha256 = ingest.report_sha256(store, stored)
    parts = [*ingest.tables_of(found, sha256, {})]
    for name in TABLES:
        table = pa.concat_tables(part[name] for part in parts)
        apart = list({"inconclusive", "report"} & set(table.column_names))
        if not table.drop_columns(apart).equals(store.table(stored, name).drop_columns(apart)):
            path = store.path(stored) / f"{name}{PARQUET}"
            raise Damaged(path, "it does not have what the session has")
    return found


class LazySession(Session):
    """A stored session that is read when its results are needed; NetproofError then."""

    def __init__(self, store: Store, stored: StoredSession) -> None:
        vars(self).update(
            path=store.path(stored),
            began=stored.start.replace(tzinfo=UTC).timestamp(),
            _whole=cache(lambda: load(store, stored)),
            _pairs=cache(lambda: load(store, stored, PAIRS)),
        )

    began = 0.0
    info = property(lambda self: self._whole().info)
    results = property(lambda self: self._whole().results)
    with_pairs = property(lambda self: self._pairs().with_pairs)


def labels(store: Store, sessions: Sequence[StoredSession]) -> dict[StoredSession, dict[str, str]]:
    """Return what each session was labelled with, in order; damaged ones are left out.

    Raise NetproofError where there is no session.
    """
    query = "select system, session, labels from sessions"
    table, _ = each(store, lambda these: ask(store, these or None, ["sessions"], query), sessions)
    found = {
        StoredSession(row["session"], row["system"]): row["labels"]
        for row in table.to_pylist(maps_as_pydicts="strict")
    }
    return {stored: found[stored] for stored in sorted(found)}


def labelled(store: Store, label: str) -> dict[str, StoredSession]:
    """Return the newest session of each value of a label, by value, oldest first.

    Raise NetproofError where no session has it, or sessions of several systems do.
    """
    found: dict[str, StoredSession] = {}
    systems = set()
    for stored, known in labels(store, store.sessions()).items():
        if label in known:
            found.pop(known[label], None)
            found[known[label]] = stored
            systems.add(stored.system)
    if not found:
        raise NetproofError(
            f"{store.folder}: no session has the label {label!r};"
            f" 'reframe --session-extras {label}=VALUE' gives it to one"
        )
    if len(systems) > 1:
        raise NetproofError(
            f"{store.folder}: sessions of {', '.join(sorted(systems))} have the label {label!r},"
            " and those of one system are compared; name the sessions instead"
        )
    return found


def with_label(store: Store, stated: str) -> StoredSession:
    """Return the newest session with a label, ``KEY=VALUE``; NetproofError as ``labelled``."""
    label, value = label_of(stated)
    found = labelled(store, label)
    if value not in found:
        raise NetproofError(
            f"{store.folder}: no session has {stated}; those with that label have"
            f" {', '.join(found)}"
        )
    return found[value]


def passed(store: Store, stored: StoredSession) -> set[tuple[Any, ...]]:
    """Return the keys, as ``Case.key``, of a session's cases that passed and were measured whole.

    Without those that are known to be inconclusive. Raise NetproofError for a damaged file.
    """
    rows = store.table(stored, "cases", (*KEY, "result", "complete", "inconclusive")).to_pylist()
    return {
        Case(stored.system, **{name: row[name] for name in KEY}, ranks_per_node=0).key()
        for row in rows
        if row["result"] in GOOD_RESULTS and row["complete"] and not row["inconclusive"]
    }


def seconds(store: Store, sessions: Sequence[StoredSession]) -> pa.Table:
    """Return the times of every case in some sessions, in seconds.

    Columns: ``session``, ``session_s``, what all of it took, those of the key, ``result``, and
    ``wall_s``: the sum over the case's launches, null where it was not complete.
    """
    key = ", ".join(KEY)
    return ask(
        store,
        sessions,
        ["sessions", "cases", "launches"],
        f"""
        with run as (
            select session, {key}, sum(wall_s) as wall_s from launches group by all
        )
        select session, epoch(ended - started) as session_s, {key}, cases.result,
            case when complete then run.wall_s end as wall_s
        from cases join sessions using (session) left join run using (session, {key})
        """,
    )


def ask(
    store: Store, sessions: Sequence[StoredSession] | None, only: Sequence[str], query: str
) -> pa.Table:
    """Return the answer to SQL on the tables ``only`` of some sessions, None for all."""
    with connect(store, sessions, only=only) as connection:
        return answered(lambda: connection.sql(query).to_arrow_table())


def answered(ask: Callable[..., Any], *arguments: object) -> Any:
    """Return DuckDB's answer; raise NetproofError, with the remedy, if it has none."""
    import duckdb

    try:
        return ask(*arguments)
    except duckdb.Error as error:
        # What follows is the question.
        found = str(error).partition("\n\nLINE ")[0]
        remedy = (
            "; move the session's folder that it names out of the store and add the session's"
            " report again"
            if ".parquet" in found
            else ""
        )
        raise NetproofError(f"the store cannot be read: {found}{remedy}") from error


NIGHTLY = ("latency_us", "peak_mb_s", "asymptotic_mb_s", *RATES)
"""The landmarks of ``nightly``."""


def nightly(
    store: Store, sessions: Sequence[StoredSession], baseline: ScoreBaseline | None
) -> pa.Table:
    """Return what is followed of each session, which are of one system: a row for every case.

    Columns: ``session``, those of the key, ``ranks_per_node``, the landmarks of ``NIGHTLY``;
    ``mean_us``, the geometric mean over the sizes that a score is over, in µs, and ``mean_sizes``,
    their count and ends in a list; ``score`` against the ``baseline``, and ``score_sizes``, those
    that both have; ``cpu_s_per_gb`` of the node that paid most; ``inconclusive`` as in the table.
    Null is what was not measured. Raise NetproofError where a session is damaged.
    """
    given = dataclasses.asdict(baseline or ScoreBaseline("", ""))
    with connect(store, sessions, only=["cases", "curves"]) as connection:
        medians = f"create temp table medians as {_LOG_MEDIANS}"
        answered(connection.execute, medians, _SCORED | given)
        return answered(lambda: connection.sql(_NIGHTLY).to_arrow_table())


def crashes(store: Store, sessions: Sequence[StoredSession]) -> pa.Table:
    """Return the launches of each configuration of each session, and how many crashed.

    Columns: ``session``, ``partition``, ``environment``, ``launches``, ``crashed``; a row for each
    that has a complete case, with its repeats and its paired launches.
    """
    key = ", ".join(("session", *KEY))
    query = f"""
        with around as (
            select {key}, made, len(crashes) as crashed from repeats
        ), own as (
            select session, partition, environment,
                launches + len(crashes) + coalesce(made, 0) as made,
                len(crashes) + coalesce(crashed, 0) as crashed
            from cases left join around using ({key}) where complete
        ), peers as (
            select session, partition, peer.environment as environment, len(peer.crashes) as crashed
            from (select session, partition, unnest(paired) as peer from launches)
        ), next_to as (
            select session, partition, environment, 1 + crashed as made, crashed
            from peers semi join own using (session, partition, environment)
        )
        select session, partition, environment,
            sum(made)::integer as launches, sum(crashed)::integer as crashed
        from (from own union all from next_to) group by all order by all
    """
    return ask(store, sessions, ["cases", "repeats", "launches"], query)


def counted(store: Store, sessions: Sequence[StoredSession]) -> pa.Table:
    """Return the counts of each node's network per session, over all launches, also crashed ones.

    Columns: ``session``, ``partition``, ``node``, ``segments`` that TCP sent, ``again`` of them,
    ``errors``, ``drops`` and ``carrier_changes`` of the interfaces but loopback; null where that of
    one launch is not known. A row for each node whose counters were recorded.
    """

    def total(kind: str, *names: str) -> str:
        """A sum, null where one of the counters is not known."""
        added = " + ".join(f"coalesce(source.counted['{name}'], 0)" for name in names)
        absent = " or ".join(f"source.absent['{name}'] is not null" for name in names)
        of_kind = f"filter (where source.kind = '{kind}' and source.name != 'lo')"
        return (
            f"case when bool_or({absent}) {of_kind} then null"
            f" else sum({added}) {of_kind} end::bigint"
        )

    query = f"""
        with peers as (
            select session, partition, unnest(paired) as peer from launches
        ), crashed as (
            select session, partition, unnest(crashes) as crash from cases
            union all
            select session, partition, unnest(crashes) as crash from repeats
            union all
            select session, partition, unnest(peer.crashes) as crash from peers
        ), counted as (
            select session, partition, counters.sources as nodes from launches
            union all
            select session, partition, peer.counters.sources as nodes from peers
            union all
            select session, partition, crash.counters.sources as nodes from crashed
        ), nodes as (
            select session, partition, unnest(map_entries(nodes)) as node from counted
        ), sources as (
            select session, partition, node.key as node, unnest(node.value) as source from nodes
        )
        select session, partition, node,
            {total("tcp", "Tcp.OutSegs", "Tcp.RetransSegs")} as segments,
            {total("tcp", "Tcp.RetransSegs")} as again,
            {total("interface", "rx_errs", "tx_errs")} as errors,
            {total("interface", "rx_drop", "tx_drop")} as drops,
            {total("interface", "carrier_changes")} as carrier_changes
        from sources group by all order by all
    """
    return ask(store, sessions, ["launches", "cases", "repeats"], query)


_SCORED = {
    "least": SCORE.least_size,
    "shortest": READABLE[0],
    "longest": READABLE[1],
}
"""Sizes and times that count for a score; a case with another time among them has none."""

_MATCHED = ("benchmark", "function", "ranks", "path", "direction")

# Sums in one order, so that the same session always has the same values, to the last digit.
# Numbers stand for keys of seven columns, which take most of the time to group and to join.
_LOG_MEDIANS = f"""
    select session, hash({", ".join(KEY)}) as key, hash({", ".join(_MATCHED)}) as matched,
        partition = $partition and environment = $environment as of_baseline,
        size_bytes, ln(median(time_us)) as log_us
    from curves
    where size_bytes >= $least
    group by session, key, matched, of_baseline, size_bytes
    qualify bool_and(bool_and(time_us between $shortest and $longest))
        over (partition by session, key)
"""

_NIGHTLY = f"""
    with means as (
        select session, key, exp(avg(log_us order by size_bytes)) as mean_us,
            [count(*), min(size_bytes), max(size_bytes)] as mean_sizes
        from medians group by session, key
    ), scores as (
        select session, it.key, exp(avg(base.log_us - it.log_us order by size_bytes)) as score,
            [count(*), min(size_bytes), max(size_bytes)] as score_sizes
        from medians it join medians base using (session, matched, size_bytes)
        where base.of_baseline
        group by session, it.key
    )
    select session, {", ".join(KEY)}, ranks_per_node, {", ".join(NIGHTLY)},
        mean_us, mean_sizes, score, score_sizes,
        list_max(list_transform(cpu_costs, lambda cost: cost.s_per_gb)) as cpu_s_per_gb,
        inconclusive
    from (select *, hash({", ".join(KEY)}) as key from cases)
        left join means using (session, key) left join scores using (session, key)
    order by session, {", ".join(KEY)}
"""
