"""The launches of a load test: their order, who sends, on which nodes, and their steps."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netproof.errors import NetproofError
from netproof.experiments import load_plan
from netproof.experiments.load_plan import Aggressor, Victim, VictimPlace, chosen, turns
from netproof.session import node_facts
from netproof.session.plan import PLAN_FILE, JobPlan, Step

JOB = Path(__file__).resolve().parents[2] / "data" / "jobs" / "load"


PLANNED = JobPlan.read(JOB / PLAN_FILE)
ASKED = PLANNED.task_of(load_plan.LoadAsked)


def steps(turn: load_plan.VictimTurn) -> tuple[Step, Step | None]:
    return load_plan.steps(turn, PLANNED)


def test_a_job_draws_what_its_seed_gives(tmp_path):
    nodes = node_facts.nodes_of_job(JOB, "1")
    leaves = {
        f"tree-leaf-{leaf}": tuple(f"tree-{4 * leaf - 3 + n}" for n in range(4)) for leaf in (1, 2)
    }
    drawn = load_plan.drawn(PLANNED, tmp_path, nodes, leaves)
    assert load_plan.read_turns(tmp_path) == drawn
    asked = (leaves, ASKED.victims, ASKED.aggressors, ASKED.rounds)
    assert drawn == turns(nodes, *asked, PLANNED.seed)


def test_each_launch_is_a_step_and_may_have_an_aggressor_on_the_other_nodes():
    for turn in load_plan.read_turns(JOB):
        victim, aggressor = steps(turn)
        assert "--nodes" not in " ".join(victim.command)
        assert (victim.name, victim.hosts) == (turn.step, turn.nodes)
        assert victim.command[-1] == "PingPong"
        assert "--ntasks=2" in victim.command
        assert victim.command[victim.command.index("-iter") + 1] == "1"
        assert (aggressor is not None) is turn.beside
        if aggressor is not None:
            assert (aggressor.name, aggressor.hosts) == (turn.aggressor_step, turn.others)
            assert f"--ntasks={len(turn.others)}" in aggressor.command
            assert aggressor.command[-1] == "PingPing"
            assert aggressor.command[aggressor.command.index("-multi") + 1] == "1"


def test_a_single_pair_is_no_group_among_several():
    turn = next(turn for turn in load_plan.read_turns(JOB) if turn.beside)
    _, aggressor = steps(dataclasses.replace(turn, others=turn.others[:2]))
    assert "-multi" not in aggressor.command


def test_an_incast_is_gathered_by_one_rank_that_does_not_change():
    turn = next(turn for turn in load_plan.read_turns(JOB) if turn.beside)
    incast = dataclasses.replace(turn, aggressor=Aggressor.INCAST)
    _, aggressor = steps(incast)
    assert aggressor.command[-3:] == ("-root_shift", "off", "Gatherv")


def test_a_victim_has_a_row_for_each_repetition_and_an_aggressor_rows_for_hours():
    partition = PLANNED.partition
    asked = dataclasses.replace(ASKED, victims=tuple(Victim), aggressors=(Aggressor.INCAST,))
    files = asked.files(PLANNED)
    assert files["sizes-load-bandwidth.txt"].split() == ["16384"] * 16
    assert files["sizes-load-latency.txt"].split() == ["8"] * 16
    rows = files["sizes-load-incast.txt"].split()
    assert set(rows) == {"16384"}
    assert len(rows) * load_plan.ROW_S > 2 * partition.step_limit_s


@pytest.mark.parametrize("text", [None, {}, {"where": 1}, ["x"]])
def test_a_damaged_task_names_its_file(text):
    planned = dataclasses.replace(PLANNED, asked=text)
    with pytest.raises(NetproofError, match=r"plan\.json: its task"):
        planned.task_of(load_plan.LoadAsked)


def test_a_job_that_drew_nothing_says_where_to_look(tmp_path):
    with pytest.raises(NetproofError, match="did not come to draw its launches"):
        load_plan.read_turns(tmp_path)
    (tmp_path / "load-turns.json").write_text('[{"round": 1, "place": "nowhere"}]')
    with pytest.raises(NetproofError, match=r"load-turns\.json: cannot be read"):
        load_plan.read_turns(tmp_path)


LEAVES = {"leaf-1": ("n1", "n2", "n3", "n4"), "leaf-2": ("n5", "n6", "n7", "n8")}
NODES = tuple(node for below in LEAVES.values() for node in below)
LEAF_OF = {node: leaf for leaf, below in LEAVES.items() for node in below}


@given(st.integers(4, 20), st.integers(1, 5), st.integers(1, 10**6))
def test_alone_and_alongside_stand_next_to_each_other_on_the_same_nodes(count, rounds, seed):
    nodes = tuple(f"n{number}" for number in range(count))
    several = turns(nodes, {}, tuple(Victim), tuple(Aggressor), rounds, seed)
    assert len({turn.step for turn in several}) == len(several) == 2 * 3 * 4 * rounds
    for one, other in zip(several[::2], several[1::2], strict=True):
        assert {one.beside, other.beside} == {False, True}
        same = ("round", "place", "victim", "aggressor", "nodes", "others")
        assert [getattr(one, name) for name in same] == [getattr(other, name) for name in same]
        assert one.place is VictimPlace.ANYWHERE
        assert len(one.nodes) == 2
        assert len(set(one.others)) == len(one.others) >= 2
        assert set(one.nodes).isdisjoint(one.others)
        left_out = count - 2 - len(one.others)
        assert left_out == (count % 2 if one.aggressor is Aggressor.ONE_TO_ONE else 0)


@given(st.integers(1, 10**6))
def test_with_leaves_the_victim_is_within_one_and_across_two(seed):
    several = turns(NODES, LEAVES, (Victim.BANDWIDTH,), (Aggressor.INCAST,), 2, seed)
    assert {turn.place for turn in several} == {VictimPlace.WITHIN, VictimPlace.ACROSS}
    for turn in several:
        of_victim = {LEAF_OF[node] for node in turn.nodes}
        assert len(of_victim) == (1 if turn.place is VictimPlace.WITHIN else 2)
        assert set(turn.nodes) | set(turn.others) == set(NODES)
    across, within = (
        next(turn for turn in several if turn.place is place and turn.round == 1)
        for place in (VictimPlace.ACROSS, VictimPlace.WITHIN)
    )
    # What goes to the first of the others passes the uplink that the victim across leaves needs.
    assert LEAF_OF[across.others[0]] == LEAF_OF[across.nodes[1]]
    assert LEAF_OF[within.others[0]] != LEAF_OF[within.nodes[0]]


def test_pairs_that_congest_send_from_leaf_to_leaf():
    several = turns(NODES, LEAVES, (Victim.BANDWIDTH,), (Aggressor.ONE_TO_ONE,), 1, 1)
    across = next(turn.others for turn in several if turn.place is VictimPlace.ACROSS)
    for one, other in zip(across[::2], across[1::2], strict=True):
        assert LEAF_OF[one] != LEAF_OF[other]


def test_leaves_of_which_only_one_has_two_nodes_of_the_job_tell_nothing():
    nodes = ("n1", "n2", "n3", "n5")
    several = turns(nodes, LEAVES, (Victim.LATENCY,), (Aggressor.INCAST,), 1, 1)
    assert {turn.place for turn in several} == {VictimPlace.ANYWHERE}


@given(st.integers(1, 10**6))
def test_with_enough_rounds_every_node_is_measured(seed):
    leaves = {f"leaf-{i}": tuple(f"n{4 * i + j}" for j in range(4)) for i in range(4)}
    nodes = tuple(node for below in leaves.values() for node in below)
    for known, rounds in ((leaves, 6), ({}, 8)):
        several = turns(nodes, known, (Victim.BANDWIDTH,), (Aggressor.INCAST,), rounds, seed)
        assert {node for turn in several for node in turn.nodes} == set(nodes)


def test_the_seed_alone_decides():
    drawn = [turns(NODES, LEAVES, tuple(Victim), tuple(Aggressor), 2, seed) for seed in (7, 7, 8)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_three_nodes_are_too_few():
    with pytest.raises(NetproofError, match="has 3 nodes, a, b, c, and load takes 4"):
        turns(("a", "b", "c"), {}, tuple(Victim), tuple(Aggressor), 1, 1)


def test_what_is_chosen_by_name():
    assert chosen(Victim, "all") == tuple(Victim)
    assert chosen(Aggressor, "incast,one-to-one,incast") == (
        Aggressor.INCAST,
        Aggressor.ONE_TO_ONE,
    )
    with pytest.raises(NetproofError, match="unknown 'storm'; choose from incast, all-to-all"):
        chosen(Aggressor, "incast,storm")
