"""Rounds of pairs: what is to be launched, as the job's script asks for it."""

from __future__ import annotations

from pathlib import Path

from netproof.intake import json_reading
from netproof.session import pair_rounds
from netproof.session.pair_rounds import Planned, PlannedLaunch
from netproof.site.partition import Partition

RECORDED = Path(__file__).resolve().parents[2] / "data" / "jobs" / "pairs"
PARTITION = Partition.model_validate(json_reading.json_file(RECORDED / "question.json")["extras"])


def test_the_script_asks_before_each_launch_and_makes_none_that_is_not_wanted():
    text = pair_rounds.script(5, PARTITION, ["srun", "--mpi=pmi2"], "decider python")
    assert text.count("decider python\n") == 1
    assert text.count("    decide $((launch - 1))\n") == 1
    # Python starts while nodes say what they are, and nothing is measured.
    assert text.index("decider") < text.index("describe.sh") < text.index("for ((")
    assert "asked=(-npmin 2 -msglen sizes-pairs.txt -iter 15,4 PingPong)" in text
    stream = "[ ! -e stream.txt ] || asked=(-npmin 2 -msglen sizes-stream.txt -iter 8 Uniband)"
    assert stream in text
    assert "--distribution=arbitrary --ntasks=$ranks" in text
    assert "--nodes=" not in text


def test_what_is_next_is_a_node_a_line_in_the_order_of_ranks(tmp_path: Path):
    launch = PlannedLaunch(1, (("a", "b"), ("d", "c")), False, "random pairs")
    pair_rounds.write_planned(tmp_path, Planned((launch,)))
    assert pair_rounds.read_planned(tmp_path) == Planned((launch,))
    pair_rounds.write_next(tmp_path, launch)
    assert (tmp_path / pair_rounds.NEXT_FILE).read_text() == "a\nb\nd\nc\n"
    assert not (tmp_path / pair_rounds.STREAM_FILE).exists()


def test_that_a_stream_is_next_is_said_until_another_launch_is(tmp_path: Path):
    stream = PlannedLaunch(2, (("a", "b"),), True, "a sends to b", stream=True)
    pair_rounds.write_planned(tmp_path, Planned((stream,)))
    assert pair_rounds.read_planned(tmp_path) == Planned((stream,))
    pair_rounds.write_next(tmp_path, stream)
    assert (tmp_path / pair_rounds.STREAM_FILE).exists()
    pair_rounds.write_next(tmp_path, PlannedLaunch(3, (("a", "b"),), True, "a – b alone"))
    assert not (tmp_path / pair_rounds.STREAM_FILE).exists()


def test_all_that_a_stream_has_under_way_is_the_largest_message():
    assert pair_rounds.sizes(1 << 20, stream=True) == ((1 << 20) // 64,)
    assert pair_rounds.sizes(64, stream=True) == (4,)


def test_the_script_asks_for_both_ways_where_the_file_of_it_is_there(tmp_path: Path):
    text = pair_rounds.script(3, PARTITION, ["srun"], "decider")
    assert "[ ! -e both-ways.txt ] || asked=(" in text
    pair_rounds.write_next(tmp_path, PlannedLaunch(1, (("a", "b"),), False, "", both_ways=True))
    assert (tmp_path / "both-ways.txt").exists()
    pair_rounds.write_next(tmp_path, PlannedLaunch(1, (("a", "b"),), True, "", stream=True))
    assert not (tmp_path / "both-ways.txt").exists()
    assert (tmp_path / "stream.txt").exists()
