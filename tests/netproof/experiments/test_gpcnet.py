"""Results of several runs of GPCNeT, and their report."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netproof.benchmarks.gpcnet import BENCHMARK
from netproof.errors import ParseError
from netproof.experiments import gpcnet
from netproof.experiments.gpcnet import GpcnetAsked, GpcnetRound, GpcnetRuns, NetworkTest
from netproof.experiments.load import Statistic
from netproof.measurement.disturbance import NodeLoad
from netproof.session.plan import PLAN_FILE, JobPlan

DATA = Path(__file__).resolve().parents[2] / "data"
MEAN, TAIL = Statistic.MEAN, Statistic.TAIL
PRINTED = (DATA / "gpcnet" / "mpich-10-nodes.out").read_text()
RECORDED = gpcnet.network_tests(BENCHMARK.read(PRINTED, "recorded"))
EXTRAS = json.loads((DATA / "jobs" / "tails" / "plan.json").read_text())["extras"]
LATENCY, RATE = "RR Two-sided Lat (8 B)", "RR Two-sided BW+Sync (131072 B)"


def output(latency: float, rate: float) -> tuple[NetworkTest, ...]:
    """Two tests, alongside with these means; alone a latency of 10 and a rate of 1000."""
    return (
        NetworkTest(LATENCY, "usec", (10, 30), (latency, 3 * latency)),
        NetworkTest(RATE, "MiB/s/rank", (1000, 1000 / 3), (rate, rate / 3)),
    )


def runs(*rounds: GpcnetRound, **settings: float) -> GpcnetRuns:
    nodes = tuple(f"node-{number}" for number in range(10))
    extras = {**EXTRAS, "load": settings}
    return GpcnetRuns("testbed", "tree", "mpich", "1", nodes, extras, rounds)


def three(**settings: float) -> GpcnetRuns:
    several = (output(20, 500), output(21, 480), output(19, 520))
    return runs(*map(GpcnetRound, several), **settings)


def test_a_round_that_failed_or_was_disturbed_does_not_count():
    disturbed = NodeLoad("node-1", "m", 2, 10.0, 10.0, 0.5, 0.0, 0.0, 0.0, 0.0)
    found = runs(
        *three().rounds,
        GpcnetRound((), fault="gpcnet.4 ended with status 1"),
        GpcnetRound(output(90, 10), (disturbed,)),
    )
    assert found.impacts[0].rounds == 3
    assert found.refused == (
        "round 4: gpcnet.4 ended with status 1",
        "round 5: node-1: others used 50 % of the CPUs",
    )
    assert found.impacts[0].factors[MEAN].value == 2.0


JOB = DATA / "jobs" / "gpcnet"


def recorded(folder: Path = JOB) -> GpcnetRuns:
    """The result of the recorded job, or of a copy of it."""
    return gpcnet.of_job(folder, "1")


def test_it_runs_on_all_ranks_as_often_as_was_asked_for():
    planned = dataclasses.replace(
        JobPlan.read(JOB / PLAN_FILE), extras={**EXTRAS, "ranks_per_node": 2}
    )
    steps = GpcnetAsked(rounds=3, nodes=10).steps(planned)
    assert [step.name for step in steps] == ["gpcnet.1", "gpcnet.2", "gpcnet.3"]
    assert {"--ntasks=20", "--ntasks-per-node=2", "network_load_test"} <= {*steps[0].command}


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("launches.tsv", "\t0\t1800", "\t1\t1800", "gpcnet.1 ended with status 1"),
        ("launches.tsv", "gpcnet.1", "gpcnet.2", "gpcnet.1 did not run"),
        ("gpcnet.1.err", "netproof rank 3 on", "rank 3 on", "are not those that were watched"),
        ("gpcnet.1.out", "Isolated Network", "Other", "gpcnet.1.out:"),
        ("gpcnet.1.out", "10 MPI ranks (10", "20 MPI ranks (10", "and was to run 10 on 10"),
    ],
)
def test_a_run_that_is_not_whole_says_why(tmp_path, name, old, new, said):
    folder = shutil.copytree(JOB, tmp_path / "job")
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new))
    (only,) = recorded(folder).rounds
    assert not only.tests
    assert said in only.fault


# Recorded output, and output that is refused.


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
    assert old in PRINTED
    with pytest.raises(ParseError) as refused:
        BENCHMARK.read(PRINTED.replace(old, new, 1), "x.out")
    assert said in str(refused.value)
    assert str(refused.value).startswith("x.out:")


@given(st.integers(0, len(PRINTED.rstrip()) - 1))
def test_a_text_that_was_cut_is_refused(length):
    with pytest.raises(ParseError):
        BENCHMARK.read(PRINTED[:length], "x.out")
