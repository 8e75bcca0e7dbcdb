"""The payload of a launch between its nodes, by its output and the nodes of its ranks."""

from __future__ import annotations

from pathlib import Path

import pytest

from netproof.benchmarks import registry
from netproof.benchmarks.fixed import Row
from netproof.measurement.case import Case
from netproof.measurement.counters import Payload, counters

JOBS = Path(__file__).resolve().parents[2] / "data" / "jobs"
OSU = JOBS.parent / "osu" / "7.4"
HEALTHY = JOBS / "counters-healthy"


def payload(function: str, nodes: list[str], folder: Path = HEALTHY, benchmark="imb", as_=None):
    step = as_ or function
    case = Case("testbed", "gige", "mpich", benchmark, function, len(nodes), 1)
    printed = [(folder / f"{step}.1.{kind}").read_text() for kind in ("out", "err")]
    return registry.of(case).payload(case, *printed, nodes)


def of_table(function: str, nodes: list[str]) -> int:
    """Return a table with one size of 1000 bytes, 10 times, as any function of IMB prints it."""
    table = (HEALTHY / "Exchange.1.out").read_text().replace("Exchange", function)
    case = Case("testbed", "gige", "mpich", "imb", function, len(nodes), 1)
    benchmark = registry.of(case)
    one = type(
        "Read",
        (type(benchmark),),
        {"read": lambda *_, **__: OneRow},
    )()
    return one.payload(case, table, "", nodes).bytes


class _Table:
    rows = (Row(1, 1000, {"#repetitions": 10}),)


class OneRow:
    tables = (_Table,)


def test_netpipe_sends_each_size_there_and_back_in_three_trials():
    nodes = ["gige-1", "gige-2"]
    found = payload("tcp", nodes, benchmark="netpipe", as_="tcp-inter-node-oneway")
    assert found == Payload(110100240)
    text = (HEALTHY / "tcp-inter-node-oneway.1.err").read_text()
    read = counters(HEALTHY, text, nodes)
    sent = sum(read.value(node, "interface", "eth1", "tx_bytes") for node in nodes)
    assert 1 < sent / found.bytes < 1.1, "the interfaces sent it, with headers and nothing else"


def test_imb_sends_at_least_what_its_rows_say():
    assert payload("PingPong", ["gige-1", "gige-2"]) == Payload(14417800)
    assert payload("Exchange", ["gige-1", "gige-2", "gige-3", "gige-4"]) == Payload(57671200)


def test_a_barrier_and_ranks_of_one_node_send_nothing():
    assert payload("Barrier", ["gige-1", "gige-2", "gige-3", "gige-4"]) == Payload(0)
    assert payload("PingPong", ["gige-1", "gige-1"]) == Payload(0)


TWO_A_NODE = ["n1", "n1", "n2", "n2"]
ONE_A_NODE = ["n1", "n2", "n3", "n4"]


@pytest.mark.parametrize(
    ("function", "one_a_node", "two_a_node"),
    [
        ("Sendrecv", 4, 2),
        ("Exchange", 8, 4),
        ("Uniband", 128, 128),
        ("Biband", 256, 256),
        ("Bcast", 3, 1),
        ("Allgather", 12, 4),
        ("Gather", 3, 2),
        ("Scatterv", 3, 2),
        ("Alltoall", 12, 8),
        ("Reduce", 3, 1),
        ("Reduce_scatter", 3, 1),
        ("Reduce_scatter_block", 12, 4),
        ("Allreduce", 6, 2),
    ],
)
def test_messages_that_have_to_cross(function, one_a_node, two_a_node):
    assert of_table(function, ONE_A_NODE) == one_a_node * 10 * 1000
    assert of_table(function, TWO_A_NODE) == two_a_node * 10 * 1000


def test_every_function_of_imb_has_its_messages():
    for function in registry.named("imb").functions:
        assert of_table(function.name, ONE_A_NODE) > 0 or function.name == "Barrier"


def osu(function: str, file: str, nodes: list[str]) -> Payload:
    case = Case("testbed", "gige", "mpich", "osu", function, len(nodes), 1)
    text = (OSU / f"{file}.out").read_text()
    return registry.of(case).payload(case, text, "", nodes)


def test_collectives_of_omb_print_how_often_they_were_called():
    found = osu("allreduce", "allreduce-f-4", ONE_A_NODE)
    rows = [line.split() for line in (OSU / "allreduce-f-4.out").read_text().splitlines()]
    sent = sum(int(row[0]) * int(row[4]) for row in rows if row and row[0].isdigit())
    assert found == Payload(6 * sent)
    assert osu("barrier", "barrier-f-4", ONE_A_NODE) == Payload(0)


def test_what_omb_does_not_print_is_not_known():
    why = "osu_latency does not print how often it sends"
    assert osu("latency", "latency", ["n1", "n2"]) == Payload(None, why)
    assert osu("allreduce", "allreduce-2", ["n1", "n2"]).bytes is None


def test_ranks_exchange_messages_on_whatever_nodes_they_are():
    case = Case("testbed", "gige", "mpich", "netpipe", "tcp", 2, 2, "intra-node", "oneway")
    said = (HEALTHY / "tcp-inter-node-oneway.1.err").read_text()
    found = registry.of(case).payload(case, "", said)
    assert registry.of(case).payload(case, "", said, ["n1", "n1"]) == Payload(0)
    rows = said.count(" times --> ")
    assert found == Payload(110100240, messages=2 * 3 * 10 * rows)
    assert registry.of(case).payload(case, "", "nothing").why.startswith("NetPIPE printed no row")


def test_messages_of_a_collective_are_those_that_any_algorithm_has_to_send():
    case = Case("testbed", "gige", "mpich", "osu", "allreduce", 4, 2)
    text = (OSU / "allreduce-f-4.out").read_text()
    rows = [line.split() for line in text.splitlines() if line[:1].isdigit()]
    calls = sum(int(row[4]) for row in rows)
    assert registry.of(case).payload(case, text, "").messages == 6 * calls
