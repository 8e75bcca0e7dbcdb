"""Rounds are disjoint, meet whom they are to meet, and repeat nothing while that is possible."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_pairs import names, tree, way

from netproof.errors import NetproofError
from netproof.pairs.accusation import Judgement, NodeState, State
from netproof.pairs.model import PairTable, Topology
from netproof.pairs.rounds import (
    longest_paths,
    random_round,
    rounds_of_all,
    shortest_paths,
    suspects_round,
    tournament,
)


def met(rounds):
    return Counter(frozenset(pair) for step in rounds for pair in step)


def every_pair(nodes):
    return [tournament(nodes, number) for number in range(rounds_of_all(len(nodes)))]


def idle(step, nodes) -> list[str]:
    inside = {node for pair in step for node in pair}
    assert inside <= set(nodes)
    return sorted(set(nodes) - inside)


def assert_whole(step, nodes) -> None:
    assert len(idle(step, nodes)) == len(nodes) - 2 * len(step)


@given(st.integers(2, 33))
def test_a_tournament_meets_every_pair_once(count):
    nodes = names(count)
    rounds = every_pair(nodes)
    assert len(rounds) == (count if count % 2 else count - 1)
    assert met(rounds) == Counter(map(frozenset, combinations(nodes, 2)))
    for step in rounds:
        assert_whole(step, nodes)


@given(st.integers(2, 10), st.integers(0, 2**16))
def test_random_rounds_repeat_no_pair_while_there_is_another(half, seed):
    nodes, before = names(2 * half), []
    for done in range(2 * half - 1):
        step = random_round(nodes, before, seed=seed, done=done)
        assert_whole(step, nodes)
        before += step
    assert max(Counter(map(frozenset, before)).values()) == 1


def test_the_three_rounds_of_four_nodes_come_before_any_again():
    before = []
    for number in range(1, 13):
        before += random_round(names(4), before, done=number)
        counts = [Counter(map(frozenset, before))[frozenset(p)] for p in combinations(names(4), 2)]
        assert max(counts) - min(counts) <= 1
        assert sum(counts) == 2 * number


def test_an_odd_number_leaves_out_one_after_the_other():
    before, left_out = [], []
    for done in range(5):
        step = random_round(names(5), before, done=done)
        before += step
        left_out += idle(step, names(5))
    assert sorted(left_out) == names(5)


def suspected(count, suspects=(), cleared=(), pairs=()) -> Judgement:
    states = {name: State.CLEARED if name in cleared else State.UNDECIDED for name in names(count)}
    nodes = {name: NodeState(state, (), "") for name, state in states.items()}
    return Judgement(2, nodes, (), {}, tuple(suspects), tuple(pairs))


def test_suspects_meet_cleared_nodes_that_they_have_not_met_and_suspected_pairs_each_other():
    before = [("n0", "n4"), ("n0", "n5"), ("n1", "n4")]
    judgement = suspected(8, ["n0", "n1"], {"n4", "n5", "n6"})
    launch = suspects_round(names(8), judgement, before)
    pairs = set(map(frozenset, launch.pairs))
    assert {frozenset(("n0", "n6")), frozenset(("n1", "n5"))} <= pairs
    assert_whole(launch.pairs, names(8))
    assert "n0, n1" in launch.why
    # Where nothing is cleared they meet others.
    launch = suspects_round(names(4), suspected(4, ["n0", "n1"]), [])
    assert frozenset(("n0", "n1")) not in set(map(frozenset, launch.pairs))
    pair = ("n2", "n3")
    launch = suspects_round(names(6), suspected(6, pairs=[pair]), [pair])
    assert pair in launch.pairs
    assert_whole(launch.pairs, names(6))


def test_shortest_paths_stay_within_a_leaf_and_cover_it():
    topology = tree(3, 4)
    rounds = [shortest_paths(topology, names(12), number) for number in range(3)]
    assert shortest_paths(topology, names(12), 3) == rounds[0]
    assert all(len(way(topology, *pair)) == 1 for step in rounds for pair in step)
    assert set(met(rounds).values()) == {1}
    assert len(met(rounds)) == 3 * 6
    for step in rounds:
        assert_whole(step, names(12))


def across(topology, nodes, count):
    random, rounds = np.random.default_rng(1), []
    for _ in range(count):
        before = [pair for step in rounds for pair in step]
        rounds.append(longest_paths(topology, nodes, before, random))
    return rounds


def test_longest_paths_cross_the_top_and_cover_every_uplink_and_node():
    nodes = names(16)
    topology = Topology(
        {f"leaf{n}": tuple(nodes[4 * n : 4 * n + 4]) for n in range(4)},
        {"leaf0": "a", "leaf1": "a", "leaf2": "b", "leaf3": "b", "a": "spine", "b": "spine"},
    )
    rounds = across(topology, nodes, 3)
    for step in rounds:
        assert_whole(step, nodes)
        assert not idle(step, nodes)
        crossed = {name for pair in step for name in way(topology, *pair)}
        assert {f"uplink of {name}" for name in ("leaf0", "leaf3", "a", "b")} <= crossed
        assert all("spine" in way(topology, *pair) for pair in step)
    assert set(met(rounds).values()) == {1}


def test_longest_paths_of_a_large_side_take_turns():
    topology = Topology({"big": tuple(names(6)), "small": ("m0", "m1")}, {"big": "s", "small": "s"})
    nodes = [*names(6), "m0", "m1"]
    rounds = across(topology, nodes, 3)
    used = Counter(node for step in rounds for pair in step for node in pair)
    assert [used[node] for node in names(6)] == [1] * 6


def test_things_on_the_way_are_switches_and_uplinks_that_some_pairs_cross():
    nodes, ends = names(8), np.array([(0, 1), (0, 2), (2, 4), (4, 6), (6, 7)])
    topology = Topology(
        {f"leaf{n}": tuple(nodes[2 * n : 2 * n + 2]) for n in range(3)},
        {"leaf0": "a", "leaf1": "a", "leaf2": "b", "a": "spine", "b": "spine"},
    )
    table = PairTable(tuple(nodes), np.zeros(5, int), *ends.T, np.zeros(5), topology)
    found = {thing.name: thing.rows.tolist() for thing in table.groups}
    ways = [way(topology, nodes[one], nodes[other]) for one, other in ends]
    assert found == {name: [row for row in range(5) if name in ways[row]] for name in found}
    assert {*found} == {
        *topology.below,
        *(f"uplink of {name}" for name in topology.below if name != "spine"),
    }
    assert topology.below["spine"] == tuple(nodes[:6])


def test_a_topology_that_is_no_tree_is_refused():
    with pytest.raises(NetproofError, match="above itself"):
        Topology({"a": ("n0",)}, {"a": "b", "b": "a"})
    with pytest.raises(NetproofError, match="n0 is on the leaves a and b"):
        Topology({"a": ("n0",), "b": ("n0",)})
