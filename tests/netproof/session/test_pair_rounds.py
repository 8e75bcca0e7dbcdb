"""Rounds of pairs: the launches of a recorded job, and what of them is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from netproof import codec
from netproof.intake import disk
from netproof.session import pair_rounds
from netproof.session.job_files import Incomplete
from netproof.session.pair_rounds import PairRounds
from netproof.site.partition import Partition

RECORDED = Path(__file__).resolve().parents[2] / "data" / "jobs" / "pairs"
STREAM = RECORDED.with_name("stream")
WHERE = ("testbed", "fast-ethernet", "mpich")
NODES = tuple(f"fast-ethernet-{n}" for n in range(1, 5))
PARTITION = Partition.model_validate(disk.json_file(RECORDED / "plan.json")["extras"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(RECORDED, tmp_path / "job"))


def read(folder: Path) -> tuple:
    return pair_rounds.read(folder, WHERE, PARTITION.max_message_bytes)


def test_the_group_that_imb_printed_is_the_pair_of_its_ranks():
    launches, faults, crashes = read(RECORDED)
    assert not faults
    assert not crashes
    assert [one.round for one in launches] == [1, 2, 3]
    assert all(one.ranks == one.nodes() for one in launches)
    printed = (RECORDED / "pairs.1.out").read_text()
    rows = [line.split() for line in printed.splitlines() if line.split()[:1] in (["0"], ["1"])]
    assert len(rows) == 4
    second = [float(row[3]) for row in rows if row[0] == "1"]
    assert second == list(launches[0].curves[1].time_us)
    assert launches[0].times_us[1] == second[0]
    assert launches[0].rates_mb_s[1] == pytest.approx(PARTITION.max_message_bytes / second[1])
    # What its pairs had to send are the calls that IMB printed, both ways.
    sent = sum(2 * int(size) * int(calls) for _, size, calls, *_ in rows)
    assert launches[0].payload == sent


def test_a_stream_is_one_size_from_the_first_node_to_the_second():
    (one,), faults, _ = pair_rounds.read(STREAM, ("testbed", "gige", "mpich"), 524288)
    assert not faults
    assert (one.stream, one.alone) == (True, True)
    assert one.pairs[0] == ("gige-1", "gige-2")
    assert one.curves[0].sizes == (8192,)
    # 60 times a window of 64 messages of 8192 bytes, one way.
    assert one.payload == 60 * 64 * 8192


def test_a_launch_that_ran_on_other_nodes_is_none(folder: Path):
    path = folder / "pairs.2.err"
    said = path.read_text()
    one, other = NODES[:2]
    path.write_text(said.replace(one, "X").replace(other, one).replace("X", other))
    launches, faults, _ = read(folder)
    assert [one.number for one in launches] == [1, 3]
    assert "pairs.2 ran on" in faults[0]
    assert "and was to run on" in faults[0]


def test_a_launch_with_a_group_too_few_or_that_nobody_planned_is_a_fault(folder: Path):
    path = folder / "pairs.2.out"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if line.split()[:1] != ["1"]))
    (planned, last) = pair_rounds.read_planned(folder)
    pair_rounds.write_planned(folder, (planned[:2], last))
    launches, (unplanned, few), _ = read(folder)
    assert [one.number for one in launches] == [1]
    assert "has 2 launches, and 3 were made" in unplanned
    assert "pairs.2.out" in few
    path = folder / pair_rounds.PLANNED_FILE
    path.write_text(path.read_text()[:100])
    with pytest.raises(Incomplete, match=r"planned\.json: what was planned cannot be read"):
        read(folder)


def test_a_launch_of_one_pair_that_fails_names_its_nodes(tmp_path: Path):
    folder = Path(shutil.copytree(STREAM, tmp_path / "job"))
    path = folder / "launches.tsv"
    path.write_text(path.read_text().replace("\t0\t", "\t9\t"))
    _, (fault,), _ = pair_rounds.read(folder, ("testbed", "gige", "mpich"), 524288)
    assert fault.startswith("gige-1 – gige-2: ")
    assert "pairs.1 ended with status 9" in fault


def test_a_launch_both_ways_has_what_both_nodes_of_each_pair_sent():
    folder = RECORDED.with_name("both-ways")
    (one,), faults, _ = pair_rounds.read(folder, ("testbed", "tree", "intelmpi"), 16384)
    assert not faults
    assert one.both_ways
    assert not one.alone
    # 60 calls of each size, both ways, of eight pairs.
    assert one.payload == 8 * 2 * 60 * (4 + 16384)
    # Nodes that the job did not get are deferred.
    kept = PairRounds("testbed", "tree", "intelmpi", one.nodes(), (one,), "1", "quick", 1)
    kept = kept.without(["tree-2", "tree-17"], 600.0)
    assert (kept.deferred, kept.waited_s) == (("tree-17",), 600.0)
    values = json.loads(json.dumps(codec.encode(kept)))
    assert codec.decode_part(PairRounds, values, "rounds of pairs") == kept


TWO = (("a", "b"), ("d", "c"))


@pytest.mark.parametrize(
    ("pairs", "how", "words"),
    [
        (TWO, {}, "-multi 1 -npmin 2 -msglen sizes-pairs.txt -iter 15,4 PingPong"),
        (TWO[:1], {"alone": True}, "-npmin 2 -msglen sizes-pairs.txt -iter 15,4 PingPong"),
        (TWO, {"both_ways": True}, "-multi 1 -npmin 2 -msglen sizes-pairs.txt -iter 15,4 PingPing"),
        (TWO[:1], {"stream": True}, "-npmin 2 -msglen sizes-stream.txt -iter 8 Uniband"),
    ],
    ids=["several", "alone", "both ways", "stream"],
)
def test_each_launch_is_one_command_on_its_nodes_in_the_order_of_ranks(pairs, how, words):
    launch = pair_rounds.planned(pairs, "", **how)
    step = pair_rounds.step(launch, 7, PARTITION, ["srun", "--mpi=pmi2"])
    assert (step.name, step.hosts) == ("pairs.7", launch.nodes())
    command = " ".join(step.command)
    assert command.endswith(f"bash ./rank.sh IMB-MPI1 {words}")
    assert f"--distribution=arbitrary --ntasks={len(launch.nodes())}" in command
    assert "--nodes=" not in command
