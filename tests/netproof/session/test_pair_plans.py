"""Rounds of pairs: what is launched of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from netproof.session import pair_rounds
from netproof.session.pair_rounds import planned
from netproof.session.plan import JobPlan

RECORDED = Path(__file__).resolve().parents[2] / "data" / "jobs" / "pairs"
PARTITION = JobPlan.read(RECORDED / "plan.json").partition
TWO = (("a", "b"), ("d", "c"))


@pytest.mark.parametrize(
    ("launch", "words"),
    [
        (
            planned(TWO, ""),
            "-multi 1 -npmin 2 -msglen sizes-pairs.txt -iter 15,4 PingPong",
        ),
        (
            planned(TWO[:1], "", alone=True),
            "-npmin 2 -msglen sizes-pairs.txt -iter 15,4 PingPong",
        ),
        (
            planned(TWO, "", both_ways=True),
            "-multi 1 -npmin 2 -msglen sizes-pairs.txt -iter 15,4 PingPing",
        ),
        (
            planned(TWO[:1], "", alone=True, stream=True),
            "-npmin 2 -msglen sizes-stream.txt -iter 8 Uniband",
        ),
    ],
    ids=["several", "alone", "both ways", "stream"],
)
def test_each_launch_is_one_command_on_its_nodes_in_the_order_of_ranks(launch, words):
    step = pair_rounds.step(launch, 7, PARTITION, ["srun", "--mpi=pmi2"])
    assert (step.name, step.hosts) == ("pairs.7", launch.nodes())
    command = " ".join(step.command)
    assert command.endswith(f"bash ./rank.sh IMB-MPI1 {words}")
    assert f"--distribution=arbitrary --ntasks={len(launch.nodes())}" in command
    assert "--nodes=" not in command


def test_what_was_planned_is_read_again(tmp_path: Path):
    launch = planned(TWO, "random pairs")
    pair_rounds.write_planned(tmp_path, ((launch,), False))
    assert pair_rounds.read_planned(tmp_path) == ((launch,), False)


def test_all_that_a_stream_has_under_way_is_the_largest_message():
    assert pair_rounds.sizes(1 << 20, stream=True) == ((1 << 20) // 64,)
    assert pair_rounds.sizes(64, stream=True) == (4,)
