"""A benchmark is what one module of the room says: nothing else in the house knows its name."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netproof.benchmarks import netpipe, outputs, registry
from netproof.benchmarks.fixed import Row
from netproof.benchmarks.imb import BENCHMARK as IMB
from netproof.benchmarks.interface import ListedSizes, MessageSizes
from netproof.benchmarks.netpipe import BENCHMARK as NETPIPE
from netproof.benchmarks.netpipe import PerturbedSizes
from netproof.benchmarks.osu import BENCHMARK as OSU
from netproof.errors import NetproofError, ParseError
from netproof.measurement.case import Case
from netproof.measurement.counters import Sent, counters

ROOT = Path(__file__).resolve().parents[3]


def test_every_module_that_declares_a_benchmark_is_found_in_order():
    assert [one.name for one in registry.BENCHMARKS][:2] == ["netpipe", "imb"]
    numbers = [one.number for one in registry.BENCHMARKS]
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: registry.named("hpl"), "'hpl' is no benchmark; those are netpipe, imb"),
        (lambda: str(Case("s", "p", "e", "hpl", "x", 2, 1)), "'hpl' is no benchmark; those are"),
        (
            lambda: registry.function_of(Case("s", "p", "e", "imb", "Sort", 2, 1)),
            "IMB has no function 'Sort'; it has PingPong, ",
        ),
        (lambda: registry.mpi("netpipe"), "NetPIPE runs by protocol"),
    ],
)
def test_what_is_unknown_is_an_error_that_names_the_known_ones(ask, said):
    with pytest.raises(NetproofError, match=said):
        ask()


def test_every_function_has_a_program_that_measures_it():
    for benchmark in registry.BENCHMARKS:
        for function in benchmark.functions:
            started = benchmark in registry.STARTED
            assert (benchmark.program(function.name) in registry.PROGRAMS) is started
            assert not (function.single and not function.rated)


def test_labels_are_as_sessions_have_them():
    imb = Case("s", "p", "e", "imb", "Alltoall", 16, 2)
    tcp = Case("s", "p", "e", "netpipe", "tcp", 2, 1, "inter-node", "oneway")
    assert imb.what() == "IMB Alltoall 16 ranks"
    assert tcp.what() == "NetPIPE tcp inter-node oneway"
    assert registry.of(imb).words(imb) == "IMB Alltoall"
    assert registry.of(tcp).words(tcp) == "NetPIPE tcp inter-node oneway"


def test_what_no_benchmark_prints_is_refused_with_the_known_ones():
    with pytest.raises(ParseError, match=r"expected the output of NetPIPE, of IMB-MPI1"):
        outputs.read("hello\n", "x.txt")
    with pytest.raises(ParseError, match=r"x.txt: is empty: the benchmark printed nothing"):
        outputs.read("\n", "x.txt")


IMPORT_ALL = """
import importlib, pkgutil, netproof
for module in pkgutil.walk_packages(netproof.__path__, "netproof."):
    # What ReFrame loads takes a site, and a site names what it has of each benchmark.
    if not module.name.startswith("netproof.run."):
        importlib.import_module(module.name)
from netproof.benchmarks import registry
print(netproof.__file__, *(one.name for one in registry.BENCHMARKS))
"""


@pytest.mark.slow
def test_without_its_module_the_house_lacks_a_benchmark_and_nothing_else(tmp_path):
    shutil.copytree(ROOT / "netproof", tmp_path / "netproof")
    (tmp_path / "netproof" / "benchmarks" / "osu.py").unlink()
    for name in ("checks", "site-config", "reference-values"):
        (tmp_path / name).symlink_to(ROOT / name)
    ran = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    place, *names = ran.stdout.split()
    assert Path(place).is_relative_to(tmp_path)
    assert names == [one.name for one in registry.BENCHMARKS if one.name != "osu"]


# Message sizes that a site asks for beyond those of each benchmark.

TCP = Case("s", "p", "e", "netpipe", "tcp", 2, 1, "inter-node", "oneway")


def test_without_a_word_of_the_site_sizes_double():
    assert IMB.function("Bcast").sizes(2, 16) == (1, 2, 4, 8, 16)
    assert IMB.function("Bcast").sizes(2, 16, IMB.sizes()) == (1, 2, 4, 8, 16)
    assert NETPIPE.asked(TCP, 64) == netpipe.sizes(1, 64, 0)


def test_sizes_between_powers_of_two_are_evenly_spaced_in_their_logarithms():
    sizes = ListedSizes(per_octave=4).sizes(1, 4096)
    assert sizes[-5:] == (2048, 2435, 2896, 3444, 4096)
    assert sizes[:5] == (1, 2, 3, 4, 5)


def test_further_sizes_are_whole_elements_and_none_is_twice():
    asked = ListedSizes(also=[3000, 3001, 4096])
    assert IMB.function("PingPong").sizes(2, 4096, asked)[-4:] == (2048, 3000, 3001, 4096)
    assert IMB.function("Allreduce").sizes(2, 4096, asked)[-3:] == (2048, 3000, 4096)
    assert IMB.function("Barrier").sizes(2, 4096, asked) == (0,)


def test_of_what_is_dealt_out_every_rank_has_a_part():
    for function in (IMB.function("Reduce_scatter"), OSU.function("reduce_scatter")):
        assert function.sizes(2, 64) == (8, 16, 32, 64)
        assert function.sizes(6, 64) == (32, 64)
        assert function.sizes(16, 64) == (64,)
        # On so many ranks there is no such size; something is measured all the same.
        assert function.sizes(32, 64) == (4, 8, 16, 32, 64)
        assert function.least_for(6) == 24
    assert IMB.function("Reduce_scatter_block").sizes(6, 8) == (4, 8)
    assert IMB.function("Allreduce").least_for(6) == IMB.function("Barrier").least_for(6) == 0


@given(
    st.integers(1, 16),
    st.lists(st.integers(1, 2**22)),
    st.sampled_from([1, 4]),
    st.integers(10, 22),
)
def test_the_grid_is_always_there_and_sizes_increase(per_octave, also, least, exponent):
    most = 2**exponent
    sizes = ListedSizes(per_octave=per_octave, also=also).sizes(least, most)
    assert set(ListedSizes().sizes(least, most)) <= set(sizes)
    assert list(sizes) == sorted(set(sizes))
    assert all(least <= size <= most and size % least == 0 for size in sizes)


@pytest.mark.parametrize("perturbation", [1, 3])
def test_netpipe_is_asked_for_what_lies_around_its_sizes(perturbation):
    asked = NETPIPE.asked(TCP, 65536, PerturbedSizes(perturbation=perturbation))
    assert asked == netpipe.sizes(1, 65536, perturbation)
    assert {3072 - perturbation, 3072, 3072 + perturbation} <= set(asked)


@pytest.mark.parametrize(
    ("kind", "values", "remedy"),
    [
        (ListedSizes, {"per_octave": 0}, "per_octave: "),
        (ListedSizes, {"per_octave": 17}, "per_octave: "),
        (ListedSizes, {"also": [0]}, "also.0: "),
        (ListedSizes, {"also": 3000}, "also: "),
        (ListedSizes, {"per_octaves": 2}, "per_octave"),
        (PerturbedSizes, {"perturbation": 4}, "would not increase from 1 byte on"),
        (PerturbedSizes, {"perturbation": -1}, "perturbation: "),
        (MessageSizes, {"also": [3000]}, "also: "),
    ],
)
def test_what_cannot_be_measured_is_refused_by_its_key(kind, values, remedy):
    with pytest.raises(NetproofError) as refused:
        kind.of_site(values)
    assert remedy in str(refused.value)


# The payload of a launch between its nodes, by its output and the nodes of its ranks.

JOBS = Path(__file__).resolve().parents[2] / "data" / "jobs"
OSU_OUTPUTS = JOBS.parent / "osu" / "7.4"
HEALTHY = JOBS / "counters-healthy"


def payload(function: str, nodes: list[str], folder: Path = HEALTHY, benchmark="imb", as_=None):
    step = as_ or function
    case = Case("testbed", "gige", "mpich", benchmark, function, len(nodes), 1)
    printed = [(folder / f"{step}.1.{kind}").read_text() for kind in ("out", "err")]
    return registry.of(case).payload(case, *printed, nodes)[0]


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
    return one.payload(case, table, "", nodes)[0]


class _Table:
    rows = (Row(1, 1000, {"#repetitions": 10}),)


class OneRow:
    tables = (_Table,)


def test_netpipe_sends_each_size_there_and_back_in_three_trials():
    nodes = ["gige-1", "gige-2"]
    found = payload("tcp", nodes, benchmark="netpipe", as_="tcp-inter-node-oneway")
    assert found == 110100240
    text = (HEALTHY / "tcp-inter-node-oneway.1.err").read_text()
    read = counters(HEALTHY, text, nodes)
    sent = sum(read.value(node, "interface", "eth1", "tx_bytes") for node in nodes)
    assert 1 < sent / found < 1.1, "the interfaces sent it, with headers and nothing else"


@pytest.mark.parametrize(
    ("function", "nodes", "sent"),
    [
        ("PingPong", (1, 2), 14417800),
        ("Exchange", (1, 2, 3, 4), 57671200),
        ("Barrier", (1, 2, 3, 4), 0),
        # Ranks of one node.
        ("PingPong", (1, 1), 0),
    ],
)
def test_imb_sends_at_least_what_its_rows_say(function, nodes, sent):
    assert payload(function, [f"gige-{number}" for number in nodes]) == sent


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


def osu(function: str, file: str, nodes: list[str]) -> Sent:
    case = Case("testbed", "gige", "mpich", "osu", function, len(nodes), 1)
    text = (OSU_OUTPUTS / f"{file}.out").read_text()
    return registry.of(case).payload(case, text, "", nodes)


def test_collectives_of_omb_print_how_often_they_were_called_and_what_is_not_printed_is_not_known():
    found = osu("allreduce", "allreduce-f-4", ONE_A_NODE)
    rows = [line.split() for line in (OSU_OUTPUTS / "allreduce-f-4.out").read_text().splitlines()]
    rows = [row for row in rows if row and row[0].isdigit()]
    calls = sum(int(row[4]) for row in rows)
    # Those that any algorithm has to send.
    assert found == (6 * sum(int(row[0]) * int(row[4]) for row in rows), 6 * calls)
    assert osu("barrier", "barrier-f-4", ONE_A_NODE)[0] == 0
    why = "osu_latency does not print how often it sends"
    assert osu("latency", "latency", ["n1", "n2"]) == why
    assert isinstance(osu("allreduce", "allreduce-2", ["n1", "n2"]), str)


def test_ranks_exchange_messages_on_whatever_nodes_they_are():
    case = Case("testbed", "gige", "mpich", "netpipe", "tcp", 2, 2, "intra-node", "oneway")
    said = (HEALTHY / "tcp-inter-node-oneway.1.err").read_text()
    found = registry.of(case).payload(case, "", said)
    assert registry.of(case).payload(case, "", said, ["n1", "n1"]) == (0, 0)
    rows = said.count(" times --> ")
    assert found == (110100240, 2 * 3 * 10 * rows)
    assert registry.of(case).payload(case, "", "nothing").startswith("NetPIPE printed no row")
