"""Causes of figures under load: in recorded runs with a known fault, and in altered ones.

``tests/data/load/causes.json`` has what five runs of ``netproof measure load`` on the testbed's 16
nodes below four leaves measured: healthy, uplinks at a half and at a quarter of what the leaves
send, small buffers on all switches, and one port at half rate.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from netproof import codec
from netproof.experiments import load
from netproof.experiments.load import CauseKind, Loaded, VictimRun
from netproof.experiments.load_plan import Victim, VictimTurn
from netproof.measurement.counters import TCP, Counters, CounterSource

DATA = Path(__file__).resolve().parents[2] / "data"
RECORDED = json.loads((DATA / "load" / "causes.json").read_text())
NAMES = ("Tcp.OutSegs", "Tcp.RetransSegs", "TcpExt.TCPDSACKRecvSegs")

Row = dict[str, Any]


@pytest.fixture(scope="module")
def template() -> Loaded:
    return load.of_job(DATA / "jobs" / "load", "1")


def made(template: Loaded, rows: list[Row], **settings: Mapping[str, Any]) -> Loaded:
    """The recorded rows as a job, whose other facts are those of ``template``."""
    nodes = sorted({node for row in rows for node in row["nodes"]})
    launch = next(run.launch for run in template.runs if not run.refused(template.where))
    runs = []
    for row in rows:
        planned = {one.name: row.get(one.name, []) for one in fields(VictimTurn)}
        turn = codec.decode(VictimTurn, planned, "a row")
        sources = {
            node: (CounterSource(TCP, "", counted, 0),) for node, counted in row["tcp"].items()
        }
        absent = {node: {} for node in sources}
        own = replace(
            launch,
            counters=Counters(sources, (NAMES,), absent) if sources else None,
            ranks=turn.nodes,
        )
        runs.append(VictimRun(turn, own, tuple(row["times_us"])))
    extras = {**template.partition_extras, **settings}
    extras["criteria"] = {**template.partition_extras["criteria"], **extras["criteria"]}
    return replace(template, nodes=tuple(nodes), partition_extras=extras, runs=tuple(runs))


def altered(rows: list[Row], change: Callable[[Row], Mapping[str, Any]]) -> list[Row]:
    return [{**row, **change(row)} for row in rows]


def test_small_buffers_that_lose_more_than_the_site_allows_fail(template):
    (cause,), _ = made(template, RECORDED["buffers"]).causes_and_doubts
    assert (cause.kind, cause.nodes) == (CauseKind.SMALL_BUFFERS, ())
    strict = {"retransmission": {"warn": 1e-3, "fail": 1e-2}}
    assert made(template, RECORDED["buffers"], criteria=strict).beyond


def slower(nodes: set[str], factor: float) -> Callable[[Row], Mapping[str, Any]]:
    """Launches alone with one of these nodes take so many times as long."""

    def change(row: Row) -> Mapping[str, Any]:
        times = 1.0 if row["beside"] or nodes.isdisjoint(row["nodes"]) else factor
        return {"times_us": [times * time for time in row["times_us"]]}

    return change


def alone_with(node: str) -> list[tuple[str, ...]]:
    """Pairs of a node that were measured alone."""
    alone = [tuple(row["nodes"]) for row in HEALTHY if not row["beside"]]
    return [pair for pair in alone if node in pair]


HEALTHY = RECORDED["healthy"]
NODES = sorted({node for row in HEALTHY for node in row["nodes"]})
OFTEN = [node for node in NODES if len(alone_with(node)) > 1]


def test_two_slow_ports_are_two_causes(template):
    first = OFTEN[0]
    second = next(node for node in OFTEN if not any(node in pair for pair in alone_with(first)))
    causes, _ = made(template, altered(HEALTHY, slower({first, second}, 1.5))).causes_and_doubts
    assert {cause.nodes for cause in causes} == {(first,), (second,)}
    assert {cause.kind for cause in causes} == {CauseKind.SLOW_PORT}
    # Two that nothing separates are one; six launches show only what is far beyond their noise.
    rows = [row for row in HEALTHY if row["place"] == "within a leaf"]
    pairs = [set(row["nodes"]) for row in rows if not row["beside"]]
    pair = next(one for one in pairs if sum(bool(one & other) for other in pairs) == 1)
    (cause,) = made(template, altered(rows, slower(pair, 4.0))).causes_and_doubts[0]
    assert cause.nodes == tuple(sorted(pair))


def test_a_launch_that_is_slow_once_accuses_nobody_and_is_named(template):
    odd = next(row for row in HEALTHY if not row["beside"] and set(row["nodes"]) <= set(OFTEN))
    twice = {"times_us": [2 * time for time in odd["times_us"]]}
    found = made(template, altered(HEALTHY, lambda row: twice if row is odd else {}))
    pair = " – ".join(sorted(odd["nodes"]))
    doubt = f"slow ports: {pair}: slow in a launch, and fast in another"
    assert found.causes_and_doubts == ((), (doubt,))


@pytest.mark.parametrize("factor", [1.05, 1.3])
def test_it_takes_a_tenth_and_more_than_the_noise(template, factor):
    nodes = {"tree-6"}
    assert alone_with("tree-6")
    found = made(template, altered(HEALTHY, slower(nodes, factor)))
    assert bool(found.causes_and_doubts[0]) is (factor > 1.2)
    draw = iter(range(10**6))

    def noisy(row: Row) -> Mapping[str, Any]:
        times = [1, 1.5, 0.7, 1.2, 0.8][next(draw) % 5]
        return {"times_us": [times * time for time in row["times_us"]]}

    rows = altered(altered(HEALTHY, noisy), slower(nodes, factor))
    assert made(template, rows).causes_and_doubts[0] == ()


def losing(node: str, share: float) -> Callable[[Row], Mapping[str, Any]]:
    """Whatever passes this node's port loses so much more."""

    def change(row: Row) -> Mapping[str, Any]:
        more = share if node in row["nodes"] else 0.0
        return {
            "tcp": {
                name: {**one, "Tcp.RetransSegs": round(more * one["Tcp.OutSegs"])}
                for name, one in row["tcp"].items()
            }
        }

    return change


def test_a_port_that_loses_stands_out_and_is_no_small_buffer(template):
    found = made(template, altered(HEALTHY, losing(OFTEN[0], 0.08)))
    (cause,) = found.causes_and_doubts[0]
    assert (cause.kind, cause.nodes) == (CauseKind.LOSING_PORT, (OFTEN[0],))
    assert found.beyond


def test_without_counters_losses_are_not_known_and_that_is_said(template):
    found = made(template, altered(RECORDED["half"], lambda row: {"tcp": {}}))
    (why,) = found.causes_and_doubts[1]
    assert why.startswith("losses: no node reported what it counted in bandwidth-")
    assert [cause.kind for cause in found.causes_and_doubts[0]] == [CauseKind.UPLINKS]


def test_nodes_of_which_no_launch_counts_are_named(template):
    job = made(template, RECORDED["half"])
    found = replace(job, nodes=(*job.nodes, "tree-98", "tree-99"))
    assert found.causes_and_doubts[1][-1] == (
        "slow ports: no launch of bandwidth alone counts of tree-98, tree-99"
    )
    others = (f"other-{one}" for one in range(9))
    many = replace(job, nodes=(*job.nodes, *others))
    assert many.causes_and_doubts[1][-1].endswith(f"of 9 of {len(job.nodes) + 9} nodes")
    rows = altered(HEALTHY, lambda row: {"victim": str(Victim.LATENCY)})
    assert made(template, rows).causes_and_doubts[1] == (
        "slow ports: 0 launches of bandwidth alone count, and it takes 6",
    )
