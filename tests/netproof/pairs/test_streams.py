"""The direction in which a slow node is slow, by streams on a made cluster."""

from __future__ import annotations

import math

import numpy as np
import pytest
from made_pairs import Cluster, healthy, names, slow_nodes, slow_on_the_way, slow_pair, tree

from netproof.pairs.alone import Way, slow_ways
from netproof.pairs.rounds import stream_rounds

NODES = names(8)


def of_both(sends: float, receives: float) -> float:
    """The share of its rate that a PingPong has, whose time has both directions in halves."""
    return 2 / (1 / sends + 1 / receives)


def told(sends: float, receives: float, *, noise: float = 0.02, seed: int = 1, disturbed=()):
    """What streams say of n3, whose two directions have these shares of their rate."""
    cluster = Cluster(slow_nodes(of_both(sends, receives), "n3"), noise=noise, seed=seed)
    judgement = cluster.run(NODES)
    random = np.random.default_rng(seed)
    streams = []
    for number, step in enumerate(stream_rounds(NODES, judgement)):
        ((sender, receiver),) = step.pairs
        share = sends if sender == "n3" else receives if receiver == "n3" else 1.0
        rate = 110 * share * math.exp(noise * random.normal())
        if number not in disturbed:
            streams.append(((sender, receiver), rate))
    return slow_ways(streams, judgement)


@pytest.mark.parametrize(
    ("sends", "receives", "way"),
    [
        (0.5, 1.0, Way.SENDS),
        (1.0, 0.5, Way.RECEIVES),
        (0.1, 1.0, Way.SENDS),
        (1.0, 0.75, Way.RECEIVES),
    ],
)
def test_the_slow_direction_is_named_with_what_is_left_of_it(sends, receives, way):
    ((slow, effect), (_, rest)) = told(sends, receives)["n3"].items()
    assert slow is way
    assert effect.ratio == pytest.approx(min(sends, receives), rel=0.1)
    assert rest.ratio == pytest.approx(1.0, rel=0.1)


@pytest.mark.parametrize(("sends", "receives"), [(0.5, 0.5), (0.5, 0.25), (0.8, 0.8)])
def test_of_a_port_that_is_slow_both_ways_no_direction_is_named(sends, receives):
    assert told(sends, receives) == {}


@pytest.mark.slow
def test_noise_names_hardly_ever_the_wrong_direction():
    found = [told(0.6, 1.0, noise=0.05, seed=seed) for seed in range(40)]
    ways = [next(iter(ways)) for several in found for ways in several.values()]
    assert Way.RECEIVES not in ways
    assert len(ways) >= 36


def test_without_two_undisturbed_streams_of_each_kind_nothing_is_said():
    # Three kinds in turn: between cleared nodes, from n3, and to n3.
    assert told(0.5, 1.0, disturbed=(1,)) != {}
    assert told(0.5, 1.0, disturbed=(1, 4)) == {}
    assert told(0.5, 1.0, disturbed=(0, 3)) == {}


def test_each_accused_node_sends_and_receives_and_a_cleared_pair_is_measured_with_it():
    cluster = Cluster(slow_nodes(0.5, "n3"))
    steps = stream_rounds(NODES, cluster.run(NODES))
    assert len(steps) == 9
    assert all(step.alone and len(step.pairs) == 1 for step in steps)
    pairs = [step.pairs[0] for step in steps[:3]]
    assert "n3" not in pairs[0]
    assert (pairs[1][0], pairs[2][1]) == ("n3", "n3")
    assert {pairs[1][1], pairs[2][0]} <= {*pairs[0]}


@pytest.mark.parametrize(
    ("slower", "topology"),
    [
        (healthy, None),
        (slow_pair(0.5, "n3", "n4"), None),
        (slow_on_the_way(0.5, tree(4, 4), "uplink of leaf1"), tree(4, 4)),
    ],
)
def test_only_of_an_accused_node_streams_are_made(slower, topology):
    nodes = NODES if topology is None else names(16)
    judgement = Cluster(slower).run(nodes, topology=topology)
    assert stream_rounds(nodes, judgement) == ()
