"""Slow nodes, pairs and ways are accused with size and place, and others cleared or undecided."""

from __future__ import annotations

import math

import numpy as np
import pytest
from made_pairs import Cluster, healthy, names, slow_nodes, slow_on_the_way, slow_pair, tree
from scipy.special import stdtr

from netproof.errors import NetproofError
from netproof.pairs.accusation import State, judge
from netproof.pairs.model import Kind, PairObservation
from netproof.pairs.rounds import random_round, tournament
from netproof.pairs.search import MOST_JOINT_LOOKS, nominal_levels
from netproof.site.partition import PairSettings


def accused(judgement):
    return [(accusation.kind, accusation.name) for accusation in judgement.accusations]


def random_rounds(count: int, rounds: int, seed: int = 4):
    before, steps = [], []
    for done in range(rounds):
        steps.append(random_round(names(count), before, seed=seed, done=done))
        before += steps[-1]
    return steps


def test_a_node_at_half_rate_is_accused_with_its_rate_and_the_others_are_cleared():
    judgement = Cluster(slow_nodes(0.5, "n7")).run(names(64))
    assert accused(judgement) == [(Kind.NODE, "n7")]
    (effect,) = judgement.accusations[0].effects
    low, high = effect.interval
    assert low < 0.5 < high
    assert high - low < 0.06
    assert "% of the others' rate" in str(judgement.accusations[0])
    states = {name: node.state for name, node in judgement.nodes.items()}
    assert states.pop("n7") is State.ACCUSED
    assert set(states.values()) == {State.CLEARED}
    assert judgement.decided


def test_a_pair_is_accused_and_both_of_its_nodes_are_cleared():
    steps = [*random_rounds(16, 6), *random_rounds(16, 1), *random_rounds(16, 1)]
    pair = steps[0][0]
    judgement = judge(Cluster(slow_pair(0.5, *pair)).all(steps), names(16))
    assert [accusation.kind for accusation in judgement.accusations] == [Kind.PAIR]
    assert set(judgement.accusations[0].nodes) == set(pair)
    assert "both nodes are fine with others" in str(judgement.accusations[0])
    assert all(judgement.nodes[node].state is State.CLEARED for node in pair)


def test_a_pair_that_was_slow_once_is_suspected_and_not_accused():
    steps = random_rounds(64, 4)
    pair = steps[0][3]
    judgement = judge(Cluster(slow_pair(0.5, *pair)).all(steps), names(64))
    assert judgement.accusations == ()
    assert [set(suspected) for suspected in judgement.suspected_pairs] == [set(pair)]
    assert not judgement.decided


@pytest.mark.slow
def test_a_slow_leaf_is_distinguished_from_its_uplink():
    topology = tree(4, 8)
    judgement = Cluster(slow_on_the_way(0.5, topology, "leaf2")).run(names(32), topology=topology)
    assert accused(judgement) == [(Kind.SWITCH, "leaf2")]
    assert {judgement.nodes[node].state for node in topology.leaves["leaf2"]} == {State.UNDECIDED}
    assert judgement.decided


@pytest.mark.slow
def test_nodes_that_are_fine_among_themselves_are_a_group_where_no_topology_says_so():
    topology = tree(4, 8)
    slower = slow_on_the_way(0.5, topology, "uplink of leaf2")
    judgement = judge(Cluster(slower).all(random_rounds(32, 16)), names(32))
    assert [accusation.kind for accusation in judgement.accusations] == [Kind.GROUP]
    assert set(judgement.accusations[0].nodes) == set(topology.leaves["leaf2"])


def test_what_is_smaller_than_what_counts_is_cleared():
    cluster = Cluster(slow_nodes(0.96, "n3"), noise=0.005)
    judgement = cluster.run(names(32))
    assert judgement.accusations == ()
    assert judgement.nodes["n3"].state is State.CLEARED
    strict = judge(cluster.all(random_rounds(32, 4)), names(32), None, PairSettings(slower=0.02))
    assert accused(strict) == [(Kind.NODE, "n3")]


def test_what_was_not_measured_is_undecided():
    judgement = judge((), names(4))
    assert {node.state for node in judgement.nodes.values()} == {State.UNDECIDED}
    assert (judgement.rounds, judgement.decided) == (0, False)
    judgement = judge(Cluster(healthy).all(random_rounds(32, 8)), [*names(32), "n99"])
    assert judgement.nodes["n99"].state is State.UNDECIDED
    assert "not measured" in judgement.nodes["n99"].reason


def test_figures_are_sound():
    for nodes, figures in ((("a", "a"), (1.0,)), (("a", "b"), (1.0, 0.0))):
        with pytest.raises(NetproofError, match=r"round 3, a – .*, expected figures above 0"):
            PairObservation(3, nodes, *figures)


def test_levels_together_spend_the_error():
    looks = np.random.default_rng(1).normal(size=(100_000, 16)).cumsum(axis=1)
    levels = nominal_levels(0.01, 16)
    crossed = stdtr(math.inf, -looks / np.sqrt(np.arange(1, 17))) <= np.array(levels)
    assert crossed.any(axis=1).mean() == pytest.approx(0.01, abs=0.0012)
    assert sum(nominal_levels(0.01, MOST_JOINT_LOOKS + 1)) == pytest.approx(0.01)


@pytest.mark.parametrize("bad", [2, 5])
def test_several_slow_nodes_are_accused_each_even_where_they_meet(bad):
    rounds = (tournament(names(16), number) for number in range(15))
    judgement = judge(Cluster(slow_nodes(0.5, *names(bad))).all(rounds), names(16))
    assert sorted(accused(judgement)) == [(Kind.NODE, name) for name in names(bad)]


def test_nodes_are_known_though_one_that_is_hardly_slower_explains_their_rounds():
    """One direction of gige-2's link at half rate on the testbed; MB/s of two pairs a round."""
    recorded = """
        24 67.75 13 99.51, 21 70.78 34 103.47, 23 70.29 41 100.69, 24 70.77 31 98.12,
        21 67.25 43 62.81, 23 66.70 41 100.06, 21 66.49 43 93.85, 23 62.69 41 93.42,
        24 68.10 31 88.75, 21 62.66 43 89.89, 23 65.99 41 93.49, 24 64.82 13 91.15,
        23 63.07 41 96.76, 24 66.77 13 92.21, 21 69.63 34 102.13, 24 67.29 13 96.68"""
    seen = []
    for number, row in enumerate(recorded.split(","), 1):
        words = row.split()
        for pair, rate in zip(words[::2], words[1::2], strict=True):
            one, other = (f"gige-{digit}" for digit in pair)
            seen.append(PairObservation(number, (one, other), rate_mb_s=float(rate)))
    judged = judge(seen, [f"gige-{number}" for number in range(1, 5)]).nodes
    assert judged["gige-2"].state is State.ACCUSED
    assert {judged[f"gige-{number}"].state for number in (1, 3, 4)} == {State.CLEARED}
