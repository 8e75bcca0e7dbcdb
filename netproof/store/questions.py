"""What is asked of a store, through DuckDB; files of other sessions are not opened.

Every answer is an Arrow table or what the rest of netproof works on. ``connect`` is for all
other questions, in SQL.
"""

from __future__ import annotations

import dataclasses
import glob
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.session import measured
from netproof.session.labels import label_of
from netproof.session.provenance import OfSession
from netproof.session.session import GOOD_RESULTS, Session
from netproof.store import checksums, reading
from netproof.store.checksums import Damaged
from netproof.store.columns import KEY
from netproof.store.folder import Store, StoredSession
from netproof.store.tables import PATH_COLUMNS, TABLES

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
    """A connection that has tables of the store as views of their names.

    ``sessions``: only these, else all; ``only``: these tables. Raises NetproofError where there is
    no session, and where a file cannot be read; later, when a question is put to it, such a file
    is a ``duckdb.Error``.
    """
    if sessions is None:
        folder = glob.escape(str(store.folder))
        places = sorted(glob.glob(f"{folder}/system=*/month=*/session=*"))
        if not places:
            raise NetproofError(f"{store.folder}: holds no session; 'netproof ingest' brings one")
    else:
        places = [str(store.path(stored)) for stored in sessions]
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
            checksums.verify(Path(place), f"{table}.parquet")
        files = ", ".join(_quoted(f"{place}/{table}.parquet") for place in places)
        answered(
            connection.execute,
            f"create view {table} as select * from read_parquet([{files}],"
            f" hive_partitioning = true, hive_types = {{{types}}})",
        )
    return connection


def tables(
    store: Store, stored: StoredSession, only: Iterable[str] = tuple(TABLES)
) -> dict[str, pa.Table]:
    """All tables of one session, or these, by name, without the columns of the path.

    Raises NetproofError where a file is missing or damaged.
    """
    folder = store.path(stored)
    read = {}
    for name in only:
        path, schema = folder / f"{name}.parquet", TABLES[name].schema()
        checksums.verify(folder, path.name)
        try:
            found = pq.read_table(path, partitioning=None)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise Damaged(path, error) from error
        if found.schema != schema:
            raise Damaged(path, "its columns are not the store's")
        read[name] = found
    return read


def each(
    store: Store,
    ask: Callable[[Sequence[StoredSession]], pa.Table],
    sessions: Sequence[StoredSession],
) -> tuple[pa.Table, dict[StoredSession, str]]:
    """The answer of ``ask`` about all sessions but those that are damaged, and why those are.

    A session is asked for alone only where asking about all of them failed. Raises NetproofError
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
    """What is damaged of a session, by its file; None where all of its tables can be read."""
    for name in TABLES:
        try:
            tables(store, stored, [name])
        except NetproofError as error:
            return str(error)
    return None


def load(store: Store, stored: StoredSession) -> Session:
    """A stored session as ``session.load`` read its report; its ``path`` is in the store.

    Of a case that ReFrame ran several times it has the last. Raises NetproofError where a file
    is missing or damaged, or does not have the rows that another one counts.
    """
    folder = store.path(stored)
    read = tables(store, stored)
    try:
        return reading.session(folder, read)
    except reading.Contradiction as error:
        raise NetproofError(_unfit(folder, str(error))) from error
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        # Each file is whole and one does not fit another.
        raise NetproofError(_unfit(folder, repr(error))) from error


def opened(store: Store, stored: StoredSession) -> Session:
    """A stored session that is asked about itself: as ``load``, and computed again.

    Raises NetproofError too where its tables contradict each other: a case's landmarks, line rate
    and intervals have to be those of its launches. That takes longer than to read it.
    """
    session = load(store, stored)
    for result in session.results:
        if result.case is None or not result.measured:
            continue
        try:
            measured.whole(result.case, result.measured)
        except NetproofError as error:
            raise NetproofError(_unfit(store.path(stored), str(error))) from error
    return session


def _unfit(folder: Path, why: str) -> str:
    return (
        f"{folder}: is damaged, its files do not fit each other: {why}; move it out of the store"
        " and ingest the session's report again"
    )


def labelled(store: Store, label: str) -> dict[str, StoredSession]:
    """The newest session of each value that sessions have for a label, by value, oldest first.

    Raises NetproofError where no session has it, or sessions of several systems do.
    """
    table, _ = each(
        store,
        lambda sessions: _ask(
            connect(store, sessions or None, only=["sessions"]),
            "select labels[$label] as value, system, max(session) as session from sessions"
            " where labels[$label] is not null group by all order by session",
            {"label": label},
        ),
        store.sessions(),
    )
    # In order of the newest session of each value, also where sessions were asked one by one.
    newest = {(row["value"], row["system"]): row for row in table.to_pylist()}
    found = sorted(newest.values(), key=lambda row: row["session"])
    systems = sorted({row["system"] for row in found})
    if not found:
        raise NetproofError(
            f"{store.folder}: no session has the label {label!r};"
            f" 'reframe --session-extras {label}=VALUE' gives it to one"
        )
    if len(systems) > 1:
        raise NetproofError(
            f"{store.folder}: sessions of {', '.join(systems)} have the label {label!r}, and those"
            " of one system are compared; name the sessions instead"
        )
    return {row["value"]: StoredSession(row["session"], row["system"]) for row in found}


def with_label(store: Store, stated: str) -> StoredSession:
    """The newest session with a label, ``KEY=VALUE``.

    Raises NetproofError where it is not of that form, and as ``labelled`` does.
    """
    label, value = label_of(stated)
    found = labelled(store, label)
    if value not in found:
        raise NetproofError(
            f"{store.folder}: no session has {stated}; those with that label have"
            f" {', '.join(found)}"
        )
    return found[value]


def provenance(store: Store, stored: StoredSession) -> OfSession:
    """Where a stored session came from, as ``provenance.of_report`` has it of its report.

    Raises NetproofError where a file is missing or damaged.
    """
    return reading.provenance(tables(store, stored, ("sessions", "nodes")))


_PASSED = ("result", "measured_format", "inconclusive")


def passed(store: Store, stored: StoredSession) -> set[tuple[Any, ...]]:
    """Keys, as ``Case.key`` has them, of a session's cases that passed and were measured whole.

    Without those of which something is known to be inconclusive. Reads a few columns of one file.
    Raises NetproofError where it is missing or damaged.
    """
    path = store.path(stored) / "cases.parquet"
    checksums.verify(path.parent, path.name)
    columns = [field.name for field in dataclasses.fields(Case) if field.name in KEY]
    try:
        # A third of what read_table takes, and many sessions are asked one after the other.
        with pq.ParquetFile(path) as file:
            read = file.read(columns=[*columns, *_PASSED], use_threads=False)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise Damaged(path, error) from error
    return {
        (stored.system, *(row[name] for name in columns))
        for row in read.to_pylist()
        if row["result"] in GOOD_RESULTS
        and row["measured_format"] is not None
        and not row["inconclusive"]
    }


def seconds(store: Store, sessions: Sequence[StoredSession]) -> pa.Table:
    """What every case took in some sessions.

    Columns: ``session``, ``session_s``, what all of the session took, those of the key,
    ``result``, and ``wall_s``: the sum over the case's launches, null where it was not complete;
    seconds.
    """
    key = ", ".join(KEY)
    return _ask(
        connect(store, sessions, only=["sessions", "cases", "launches"]),
        f"""
        with run as (
            select session, {key}, sum(wall_s) as wall_s from launches group by all
        )
        select session, epoch(ended - started) as session_s, {key}, cases.result,
            case when measured_format is not null then run.wall_s end as wall_s
        from cases join sessions using (session) left join run using (session, {key})
        """,
    )


def ask(
    store: Store, sessions: Sequence[StoredSession], only: Sequence[str], query: str
) -> pa.Table:
    """The answer to a question in SQL to the tables ``only`` of some sessions."""
    return _ask(connect(store, sessions, only=only), query)


def labels(store: Store, sessions: Sequence[StoredSession]) -> pa.Table:
    """What each of the sessions was labelled with: columns ``session`` and ``labels``."""
    return ask(
        store, sessions, ["sessions"], "select session, labels from sessions order by session"
    )


def partition_extras(store: Store, sessions: Sequence[StoredSession]) -> pa.Table:
    """What the site says of each partition that a session measured.

    Columns: ``session``, ``partition``, ``extras``, which is JSON; in order of the sessions.
    """
    return ask(
        store,
        sessions,
        ["cases"],
        "select session, partition, any_value(partition_extras) as extras from cases"
        " where partition_extras is not null group by all order by all",
    )


def _ask(
    connection: duckdb.DuckDBPyConnection, query: str, values: Mapping[str, Any] | None = None
) -> pa.Table:
    with connection:
        return answered(lambda: connection.sql(query, params=values).to_arrow_table())


def answered(ask: Callable[..., Any], *arguments: object) -> Any:
    """What DuckDB answers; NetproofError, with the remedy, where it cannot."""
    try:
        return ask(*arguments)
    except duckdb.Error as error:
        # What follows is the question.
        found = str(error).partition("\n\nLINE ")[0]
        remedy = (
            "; move the session's folder that it names out of the store and ingest the session's"
            " report again"
            if ".parquet" in found
            else ""
        )
        raise NetproofError(f"the store cannot be read: {found}{remedy}") from error


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
