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

from netproof.benchmarks import netpipe, registry
from netproof.benchmarks.collectives import CROSSING
from netproof.benchmarks.imb import BENCHMARK as IMB
from netproof.benchmarks.interface import ListedSizes
from netproof.benchmarks.netpipe import BENCHMARK as NETPIPE
from netproof.benchmarks.netpipe import PerturbedSizes
from netproof.benchmarks.osu import BENCHMARK as OSU
from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.measurement.counters import Sent, counters

ROOT = Path(__file__).resolve().parents[3]
TCP = Case("s", "p", "e", "netpipe", "tcp", 2, 1, "inter-node", "oneway")


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
    assert (imb.what(), registry.of(imb).words(imb)) == ("IMB Alltoall 16 ranks", "IMB Alltoall")
    assert TCP.what() == registry.of(TCP).words(TCP) == "NetPIPE tcp inter-node oneway"


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


def test_further_sizes_are_whole_elements_and_none_is_twice():
    assert IMB.function("Bcast").sizes(2, 16) == (1, 2, 4, 8, 16)
    assert ListedSizes(per_octave=4).sizes(1, 4096)[-5:] == (2048, 2435, 2896, 3444, 4096)
    asked = ListedSizes(also=[3000, 3001, 4096])
    assert IMB.function("PingPong").sizes(2, 4096, asked)[-4:] == (2048, 3000, 3001, 4096)
    assert IMB.function("Allreduce").sizes(2, 4096, asked)[-3:] == (2048, 3000, 4096)
    assert IMB.function("Barrier").sizes(2, 4096, asked) == (0,)


def test_of_what_is_dealt_out_every_rank_has_a_part():
    for function in (IMB.function("Reduce_scatter"), OSU.function("reduce_scatter")):
        assert function.sizes(6, 64) == (32, 64)
        assert function.sizes(16, 64) == (64,)
        # On so many ranks there is no such size; something is measured all the same.
        assert function.sizes(32, 64) == (4, 8, 16, 32, 64)
        assert function.least_for(6) == 24
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


@pytest.mark.parametrize("perturbation", [0, 3])
def test_netpipe_is_asked_for_what_lies_around_its_sizes(perturbation):
    asked = NETPIPE.asked(TCP, 65536, PerturbedSizes(perturbation=perturbation))
    assert asked == netpipe.sizes(1, 65536, perturbation)
    assert {3072 - perturbation, 3072, 3072 + perturbation} <= set(asked)


# The payload of a launch between its nodes, by its output and the nodes of its ranks.

JOBS = Path(__file__).resolve().parents[2] / "data" / "jobs"
HEALTHY = JOBS / "counters-healthy"
ONE_A_NODE = ["n1", "n2", "n3", "n4"]


def sent(benchmark: str, function: str, nodes: list[str], output: Path, ranks: int = 0) -> Sent:
    case = Case("testbed", "gige", "mpich", benchmark, function, ranks or len(nodes), 1)
    said = output.with_suffix(".err")
    printed = (one.read_text() if one.exists() else "" for one in (output, said))
    return registry.of(case).payload(case, *printed, nodes)


def test_netpipe_sends_each_size_there_and_back_in_three_trials():
    nodes, output = ["gige-1", "gige-2"], HEALTHY / "tcp-inter-node-oneway.1.out"
    said = output.with_suffix(".err").read_text()
    payload, messages = 110100240, 2 * 3 * 10 * said.count(" times --> ")
    # Without nodes, between the ranks, wherever they are.
    for named in (nodes, []):
        assert sent("netpipe", "tcp", named, output, 2) == (payload, messages)
    assert sent("netpipe", "tcp", ["n1", "n1"], output) == (0, 0)
    read = counters(HEALTHY, said, nodes)
    counted = sum(read.value(node, "interface", "eth1", "tx_bytes") for node in nodes)
    assert 1 < counted / payload < 1.1, "the interfaces sent it, with headers and nothing else"
    assert NETPIPE.payload(TCP, "", "nothing").startswith("NetPIPE printed no row")


@pytest.mark.parametrize(
    ("output", "function", "nodes", "payload"),
    [
        ("counters-healthy/PingPong.1.out", "PingPong", ["n1", "n2"], 14417800),
        ("counters-healthy/Exchange.1.out", "Exchange", ONE_A_NODE, 57671200),
        ("counters-healthy/Barrier.1.out", "Barrier", ONE_A_NODE, 0),
        ("counters-healthy/PingPong.1.out", "PingPong", ["n1", "n1"], 0),
        # A window of 64 messages in each call.
        ("stream/pairs.1.out", "Uniband", ["n1", "n2"], 64 * 60 * 8192),
    ],
)
def test_imb_sends_at_least_what_its_rows_say(output, function, nodes, payload):
    assert sent("imb", function, nodes, JOBS / output)[0] == payload


@pytest.mark.parametrize(
    ("function", "one_a_node", "two_a_node"),
    [
        ("Sendrecv", 4, 2),
        ("Exchange", 8, 4),
        ("Uniband", 2, 2),
        ("Biband", 4, 4),
        ("Bcast", 3, 1),
        ("Allgather", 12, 4),
        ("Scatterv", 3, 2),
        ("Alltoall", 12, 8),
        ("Reduce_scatter_block", 12, 4),
        ("Allreduce", 6, 2),
    ],
)
def test_messages_that_have_to_cross(function, one_a_node, two_a_node):
    assert CROSSING[function](ONE_A_NODE) == one_a_node
    assert CROSSING[function](["n1", "n1", "n2", "n2"]) == two_a_node


def test_every_function_of_imb_has_its_messages():
    assert {one.name for one in IMB.functions} - CROSSING.keys() == {"Barrier"}


def test_collectives_of_omb_print_how_often_they_were_called_and_what_is_not_printed_is_not_known():
    folder = JOBS.parent / "osu" / "7.4"
    text = (folder / "allreduce-f-4.out").read_text()
    rows = [row for line in text.splitlines() if (row := line.split()) and row[0].isdigit()]
    # Those that any algorithm has to send.
    payload = 6 * sum(int(row[0]) * int(row[4]) for row in rows)
    calls = 6 * sum(int(row[4]) for row in rows)
    assert sent("osu", "allreduce", ONE_A_NODE, folder / "allreduce-f-4.out") == (payload, calls)
    assert sent("osu", "barrier", ONE_A_NODE, folder / "barrier-f-4.out") == (0, 0)
    for function, name in (("latency", "latency"), ("allreduce", "allreduce-2")):
        why = sent("osu", function, ["n1", "n2"], folder / f"{name}.out")
        assert why == f"osu_{function} does not print how often it sends"
