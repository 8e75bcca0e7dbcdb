"""What is asked of a store, through DuckDB; files of other sessions are not opened.

Every answer is an Arrow table or what the rest of netproof works on. ``connect`` is for all
other questions, in SQL.
"""

from __future__ import annotations

import dataclasses
import glob
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from netproof.criteria import READABLE, ScoreSettings
from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.session.measured import insist_on_whole
from netproof.session.provenance import OfSession
from netproof.session.session import GOOD_RESULTS, Session
from netproof.site.site import ScoreBaseline
from netproof.store import checksums, reading
from netproof.store.checksums import Damaged
from netproof.store.columns import ADDED, KEY, LANDMARKS, PATH_COLUMNS, TABLES
from netproof.store.folder import Store, StoredSession

MEMORY_LIMIT = "768MB"
"""Memory of DuckDB; what needs more is put on disk while the question runs."""

MOST_THREADS = 8
"""Threads of DuckDB, at most: more make small files no faster and take memory each."""


def connect(
    store: Store,
    sessions: Sequence[StoredSession] | None = None,
    *,
    system: str | None = None,
    only: Iterable[str] = tuple(TABLES),
) -> duckdb.DuckDBPyConnection:
    """A connection that has tables of the store as views of their names.

    ``sessions``: only these, else all, or all of ``system``; ``only``: these tables. Raises
    NetproofError where there is no session, and where a file cannot be read; later, when a
    question is put to it, such a file is a ``duckdb.Error``.
    """
    return _connect(store, sessions, system=system, only=only, added=True)


def _connect(
    store: Store,
    sessions: Sequence[StoredSession] | None = None,
    *,
    system: str | None = None,
    only: Iterable[str],
    added: bool = False,
    case: Case | None = None,
) -> duckdb.DuckDBPyConnection:
    """As ``connect``; ``added``: with the columns of ``columns.ADDED``.

    They are found by reading the columns of every file, which takes half as long again as a
    question that needs none of them. ``case``: what is asked is about its rows alone, so that
    only these have to be what was written.
    """
    if sessions is None:
        folder = glob.escape(str(store.folder))
        places = sorted(glob.glob(f"{folder}/system={system or '*'}/month=*/session=*"))
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
    types = ", ".join(f"'{column}': VARCHAR" for column in PATH_COLUMNS)
    key = None if case is None else _values(case)
    for table in only:
        for place in places:
            checksums.verify(Path(place), f"{table}.parquet", key)
        files = ", ".join(_quoted(f"{place}/{table}.parquet") for place in places)
        grown = added and table in ADDED
        also = ""
        if grown:
            # Where none of the files has them, they are there all the same.
            schema = TABLES[table].schema()
            fields = pa.schema([schema.field(name) for name in ADDED[table]])
            connection.register(f"_{table}_added", fields.empty_table())
            also = f" union all by name select * from _{table}_added"
        _read(
            connection.execute,
            f"create view {table} as select * from read_parquet([{files}],"
            f" union_by_name = {'true' if grown else 'false'},"
            f" hive_partitioning = true, hive_types = {{{types}}}){also}",
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
        verified = checksums.verify(folder, path.name)
        try:
            found = pq.read_table(path, partitioning=None)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise Damaged(path, error) from error
        if not verified:
            checksums.insist_on_none(folder, found.schema)
        for column in ADDED.get(name, ()):
            if column not in found.column_names:
                field = schema.field(column)
                nulls = pa.nulls(found.num_rows, field.type)
                found = found.add_column(schema.get_field_index(column), field, nulls)
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
            insist_on_whole(result.case, result.measured)
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
    label, equals, value = stated.partition("=")
    if not (label and equals):
        raise NetproofError(f"{stated!r} is no label: KEY=VALUE, kernel=6.1 for instance")
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
            known = [name for name in _PASSED if name in file.schema_arrow.names]
            read = file.read(columns=[*columns, *known], use_threads=False)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise Damaged(path, error) from error
    return {
        (stored.system, *(row[name] for name in columns))
        for row in read.to_pylist()
        if row["result"] in GOOD_RESULTS
        and row["measured_format"] is not None
        # Sessions of before there was the column do not have it.
        and not row.get("inconclusive")
    }


def curves(store: Store, stored: StoredSession) -> pa.Table:
    """Every case's curve in one session: medians over its launches.

    Columns: those of the key, ``size_bytes``, ``time_us``, ``mad_us``, ``bandwidth_mb_s``,
    ``launches``; sorted by key and size. Times in µs, bandwidths in MB/s.
    """
    key = ", ".join(KEY)
    return _ask(
        _connect(store, [stored], only=["curves"]),
        f"select {key}, size_bytes, {_MEDIANS} from curves"
        f" group by {key}, size_bytes order by {key}, size_bytes",
    )


def history(store: Store, case: Case) -> pa.Table:
    """One case's curve in every session of its system: medians over the launches of each.

    Columns: ``session``, ``size_bytes``, ``time_us``, ``mad_us``, ``bandwidth_mb_s``,
    ``launches``; sorted by session, which is by time, and size.
    """
    return _ask(
        _connect(store, system=case.system, only=["curves"], case=case),
        f"select session, size_bytes, {_MEDIANS} from curves where {_SAME_CASE}"
        " group by session, size_bytes order by session, size_bytes",
        _values(case),
    )


def landmarks(
    store: Store, system: str, names: Sequence[str], case: Case | None = None
) -> pa.Table:
    """Some landmarks of one case, or of all, in every session of a system.

    ``names``: those of ``columns.LANDMARKS`` that are wanted; each is read at its price. Columns:
    ``session``, those of the key, ``result``, and the landmarks; in order of the sessions, which
    is by time. A case that was not complete has a row, and no landmarks. Raises NetproofError
    for a name that is no landmark.
    """
    for name in names:
        if name not in LANDMARKS:
            raise NetproofError(f"{name!r} is no landmark; those are {', '.join(LANDMARKS)}")
    columns = ", ".join(["session", *KEY, "result", *names])
    where = f" where {_SAME_CASE}" if case else ""
    return _ask(
        _connect(store, system=system, only=["cases"], added=bool({*names} & {*ADDED["cases"]})),
        f"select {columns} from cases{where} order by session",
        _values(case) if case else [],
    )


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


def scores(store: Store, stored: StoredSession, baseline: ScoreBaseline) -> pa.Table:
    """Each case's score in one session against the ``baseline``.

    The value of criterion 2, as ``criteria.score`` has it, without the interval: the geometric
    mean over the common sizes of baseline over case. Columns: those of the key, ``score``, null
    where it is not defined, ``sizes``, ``least_bytes`` and ``largest_bytes``: the count and the
    ends of the common sizes.
    """
    key = ", ".join(KEY)
    matched = ("benchmark", "function", "ranks", "path", "direction")
    on = " and ".join(f"it.{name} = base.{name}" for name in matched)
    return _ask(
        _connect(store, [stored], only=["cases", "curves"]),
        f"""
        with medians as (
            select {key}, size_bytes, median(time_us) as time_us,
                bool_and(time_us between $shortest and $longest) as judged
            from curves where size_bytes >= $least group by {key}, size_bytes
        ), fit as (
            select {key}, bool_and(judged) as fit from medians group by {key}
        ), pairs as (
            select it.*, base.time_us as base_us
            from medians it
            join fit using ({key})
            join medians base on {on} and it.size_bytes = base.size_bytes
                and base.partition = $partition and base.environment = $environment
            join fit base_fit on {on.replace("it.", "base_fit.")}
                and base_fit.partition = $partition and base_fit.environment = $environment
            where fit.fit and base_fit.fit
        )
        select {", ".join(f"cases.{name}" for name in KEY)},
            exp(avg(ln(base_us / time_us))) as score, count(size_bytes) as sizes,
            min(size_bytes) as least_bytes, max(size_bytes) as largest_bytes
        from cases left join pairs using ({key})
        group by all order by all
        """,
        {
            "least": ScoreSettings().least_size,
            "shortest": READABLE[0],
            "longest": READABLE[1],
            "partition": baseline.partition,
            "environment": baseline.environment,
        },
    )


NIGHTLY = (
    *("latency_us", "peak_mb_s", "asymptotic_mb_s"),
    *("rate_1_kib_mb_s", "rate_4_kib_mb_s", "rate_16_kib_mb_s", "rate_64_kib_mb_s"),
)
"""The landmarks of ``nightly``."""


def nightly(
    store: Store, sessions: Sequence[StoredSession], baseline: ScoreBaseline | None
) -> tuple[pa.Table, dict[StoredSession, str]]:
    """What is followed from session to session: every case of each, with a value or without.

    Columns: ``session``, those of the key, ``ranks_per_node``, the landmarks of ``NIGHTLY``;
    ``mean_us``, the geometric mean over the sizes that a score is over, in µs, and ``mean_sizes``,
    their count and ends in a list; ``score`` against the ``baseline`` as ``scores`` has it, and
    ``score_sizes``; ``inconclusive`` as in the table. Null is what a case does not have, and what
    was not measured. In order of ``sessions``, which are of one system. Sessions are read one
    after the other, each in the same time and memory. Beside them the sessions that are damaged,
    and why; NetproofError where all are.
    """
    read: list[pa.Table] = []
    faults: dict[StoredSession, str] = {}
    given = dataclasses.asdict(baseline) if baseline else _NO_BASELINE
    for stored in sessions:
        try:
            with connect(store, [stored], only=["cases", "curves"]) as connection:
                medians = f"create temp table medians as {_LOG_MEDIANS}"
                _read(connection.execute, medians, _SCORED | given)
                read.append(_read(lambda asked=connection: asked.sql(_NIGHTLY).to_arrow_table()))
        except NetproofError as error:
            faults[stored] = fault_of(store, stored) or str(error)
    if not read:
        raise NetproofError("; ".join(faults.values()))
    return pa.concat_tables(read), faults


def crashes(store: Store, sessions: Sequence[StoredSession]) -> pa.Table:
    """Launches that each configuration of each session made, and those of them that crashed.

    Those around flagged sizes are among them. Columns: ``session``, ``partition``,
    ``environment``, ``launches``, ``crashed``; a row for each that has a complete case whose
    crashes were recorded.
    """
    key = ", ".join(("session", *KEY))
    query = f"""
        with around as (
            select {key}, made, len(crashes) as crashed from again where made is not null
            qualify row_number() over (partition by {key} order by test_number desc) = 1
        )
        select session, partition, environment,
            sum(launches + len(crashes) + coalesce(made, 0))::integer as launches,
            sum(len(crashes) + coalesce(crashed, 0))::integer as crashed
        from cases left join around using ({key})
        where crashes is not null group by all order by all
    """
    with connect(store, sessions, only=["cases", "again"]) as connection:
        return _read(lambda: connection.sql(query).to_arrow_table())


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


_MEDIANS = (
    "median(time_us) as time_us, mad(time_us) as mad_us,"
    " median(bandwidth_mb_s) as bandwidth_mb_s, count(*)::integer as launches"
)
_SCORED = {
    "least": ScoreSettings().least_size,
    "shortest": READABLE[0],
    "longest": READABLE[1],
}
"""Sizes and times that count for a score; a case with another time among them has none."""

_NO_BASELINE = {"partition": None, "environment": None}
_MATCHED = ("benchmark", "function", "ranks", "path", "direction")
# Numbers stand for keys of seven columns, which take most of the time to group and to join.
_LOG_MEDIANS = f"""
    select hash({", ".join(KEY)}) as key, hash({", ".join(_MATCHED)}) as matched,
        partition = $partition and environment = $environment as of_baseline,
        size_bytes, ln(median(time_us)) as log_us
    from curves
    where size_bytes >= $least
    group by key, matched, of_baseline, size_bytes
    qualify bool_and(bool_and(time_us between $shortest and $longest)) over (partition by key)
"""
_NIGHTLY = f"""
    with means as (
        select key, exp(avg(log_us)) as mean_us,
            [count(*), min(size_bytes), max(size_bytes)] as mean_sizes
        from medians group by key
    ), scores as (
        select it.key, exp(avg(base.log_us - it.log_us)) as score,
            [count(*), min(size_bytes), max(size_bytes)] as score_sizes
        from medians it join medians base using (matched, size_bytes)
        where base.of_baseline
        group by it.key
    )
    select session, {", ".join(KEY)}, ranks_per_node, {", ".join(NIGHTLY)},
        mean_us, mean_sizes, score, score_sizes, inconclusive
    from (select *, hash({", ".join(KEY)}) as key from cases)
        left join means using (key) left join scores using (key)
    order by {", ".join(KEY)}
"""
_SAME_CASE = " and ".join(f"{name} = ?" for name in KEY)


def _values(case: Case) -> list[object]:
    return [getattr(case, name) for name in KEY]


def _ask(connection: duckdb.DuckDBPyConnection, query: str, parameters: object = None) -> pa.Table:
    with connection:
        return _read(lambda: connection.sql(query, params=parameters).to_arrow_table())


def _read(ask: Callable[..., Any], *arguments: object) -> Any:
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
