"""What the history asks of a store: the values of every session, in the order of nights."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pyarrow as pa

from netproof.criteria import READABLE
from netproof.criteria.score import SCORE
from netproof.measurement.landmark_table import RATES
from netproof.site.partition import ScoreBaseline
from netproof.store.columns import KEY
from netproof.store.folder import Store, StoredSession
from netproof.store.questions import answered, ask, connect

NIGHTLY = ("latency_us", "peak_mb_s", "asymptotic_mb_s", *RATES)
"""The landmarks of ``nightly``."""


def nightly(
    store: Store, sessions: Sequence[StoredSession], baseline: ScoreBaseline | None
) -> pa.Table:
    """Return what is followed of each session: every case, with a value or without.

    Columns: ``session``, those of the key, ``ranks_per_node``, the landmarks of ``NIGHTLY``;
    ``mean_us``, the geometric mean over the sizes that a score is over, in µs, and ``mean_sizes``,
    their count and ends in a list; ``score`` against the ``baseline``, the value of criterion 2
    without its interval, and ``score_sizes``, those that both have; ``cpu_s_per_gb`` of the node
    that paid most; ``inconclusive`` as in the table. Null is what a case does not have, and what
    was not measured. In order of ``sessions``, which are of one system and in order of their names.
    Raises NetproofError where one is damaged.
    """
    given = dataclasses.asdict(baseline) if baseline else _NO_BASELINE
    with connect(store, sessions, only=["cases", "curves"]) as connection:
        medians = f"create temp table medians as {_LOG_MEDIANS}"
        answered(connection.execute, medians, _SCORED | given)
        return answered(lambda: connection.sql(_NIGHTLY).to_arrow_table())


def crashes(store: Store, sessions: Sequence[StoredSession]) -> pa.Table:
    """Launches that each configuration of each session made, and those of them that crashed.

    Those around flagged sizes are among them, and those next to another configuration's. Columns:
    ``session``, ``partition``, ``environment``, ``launches``, ``crashed``; a row for each that has
    a complete case.
    """
    key = ", ".join(("session", *KEY))
    query = f"""
        with around as (
            select {key}, made, len(crashes) as crashed from repeats
            qualify row_number() over (partition by {key} order by test_number desc) = 1
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
    with connect(store, sessions, only=["cases", "repeats", "launches"]) as connection:
        return answered(lambda: connection.sql(query).to_arrow_table())


def counted(store: Store, sessions: Sequence[StoredSession]) -> pa.Table:
    """What the network of each node counted in each session, over the launches of all cases.

    Paired launches in other environments are among them, and those that crashed. Columns:
    ``session``, ``partition``, ``node``, ``segments`` that TCP sent, ``segments_again`` of them,
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
        ), nodes as (
            select session, partition, unnest(counters.nodes) as node from launches
            union all
            select session, partition, unnest(peer.counters.nodes) as node from peers
            union all
            select session, partition, unnest(crash.counters.nodes) as node from crashed
        ),
        sources as (
            select session, partition, node.node as node, unnest(node.sources) as source from nodes
        )
        select session, partition, node,
            {total("tcp", "Tcp.OutSegs", "Tcp.RetransSegs")} as segments,
            {total("tcp", "Tcp.RetransSegs")} as segments_again,
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

_NO_BASELINE = {"partition": None, "environment": None}

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
