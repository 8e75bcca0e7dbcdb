"""Recorded output of GPCNeT, and output that is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netproof.benchmarks.gpcnet import BENCHMARK
from netproof.errors import ParseError
from netproof.experiments.gpcnet import NetworkTest, network_tests

RECORDED = Path(__file__).resolve().parents[2] / "data" / "gpcnet" / "mpich-10-nodes.out"
TEXT = RECORDED.read_text()
LATENCY, RATE, ALLREDUCE = (
    *("RR Two-sided Lat (8 B)", "RR Two-sided BW+Sync (131072 B)", "Multiple Allreduce (8 B)"),
)


def test_every_figure_is_read():
    output = BENCHMARK.read(TEXT, "recorded")
    assert output.version == "1.3"
    assert output.facts == {"ranks": 10, "nodes": 10, "nodes_of_tests": 2}
    assert network_tests(output) == (
        NetworkTest(LATENCY, "usec", (14.1, 39.5), (30.3, 255.4)),
        NetworkTest(RATE, "MiB/s/rank", (937.8, 339.3), (901.5, 112.3)),
        NetworkTest(ALLREDUCE, "usec", (21.7, 1.6), (44.9, 1.2)),
    )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("NetworkLoad Tests", "Network Tests", "expected the line above or below a row"),
        ("10 MPI ranks", "many MPI ranks", ":2: expected ranks and nodes"),
        ("Isolated Network Tests", "Isolated network tests", "not the title ['Isolated Network"),
        ("14.1 |         39.5", " nan |         39.5", "is no test, its numbers and a unit"),
        ("14.1 |", " 0.0 |", "is of no time or rate above 0"),
        ("     usec |", "       ms |", "is no test, its numbers and a unit"),
        ("|         30.3 |", "|", "is no test, its numbers and a unit"),
        ("Lat (8 B) |         30.3", "Lat (9 B) |         30.3", "are not the same"),
    ],
)
def test_anything_else_is_refused_with_its_line(old, new, said):
    assert old in TEXT
    with pytest.raises(ParseError) as refused:
        BENCHMARK.read(TEXT.replace(old, new, 1), "x.out")
    assert said in str(refused.value)
    assert str(refused.value).startswith("x.out:")


@given(st.integers(0, len(TEXT.rstrip()) - 1))
def test_a_text_that_was_cut_is_refused(length):
    with pytest.raises(ParseError):
        BENCHMARK.read(TEXT[:length], "x.out")
