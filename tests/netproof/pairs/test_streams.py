"""The direction in which a slow node is slow, by streams on a made cluster."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
from made_pairs import Cluster, names, slow_nodes, slow_pair, tree

from netproof.pairs.alone import Way, slow_uplink, slow_ways
from netproof.pairs.losses import Resent, port_losses
from netproof.pairs.model import Kind, PairObservation
from netproof.pairs.rounds import ACROSS, leaf_rounds, stream_rounds

EIGHT = names(8)


def of_both(sends: float, receives: float) -> float:
    """The share of its rate that a PingPong has, whose time has both directions in halves."""
    return 2 / (1 / sends + 1 / receives)


def ways(sends: float, receives: float, *, noise: float = 0.02, seed: int = 1, disturbed=()):
    """The directions of n3 by streams, whose two directions have these shares of their rate."""
    cluster = Cluster(slow_nodes(of_both(sends, receives), "n3"), noise=noise, seed=seed)
    judgement = cluster.run(EIGHT)
    random = np.random.default_rng(seed)
    streams = []
    for number, step in enumerate(stream_rounds(EIGHT, judgement)):
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
    ((slow, effect), (_, rest)) = ways(sends, receives)["n3"].items()
    assert slow is way
    assert effect.ratio == pytest.approx(min(sends, receives), rel=0.1)
    assert rest.ratio == pytest.approx(1.0, rel=0.1)


@pytest.mark.parametrize(("sends", "receives"), [(0.5, 0.5), (0.5, 0.25), (0.8, 0.8)])
def test_of_a_port_that_is_slow_both_ways_no_direction_is_named(sends, receives):
    found = ways(sends, receives)
    # A little loss of both is near the bound between one direction and both.
    assert found == ({} if sends == receives == 0.8 else {"n3": {}})


def test_each_accused_node_sends_and_receives_and_a_cleared_pair_is_measured_with_it():
    cluster = Cluster(slow_nodes(0.5, "n3"))
    steps = stream_rounds(EIGHT, cluster.run(EIGHT))
    assert len(steps) == 9
    assert all(step.alone and len(step.pairs) == 1 for step in steps)
    pairs = [step.pairs[0] for step in steps[:3]]
    assert "n3" not in pairs[0]
    assert (pairs[1][0], pairs[2][1]) == ("n3", "n3")
    assert stream_rounds(EIGHT, cluster.run(EIGHT), {"n3"}) == ()
    assert stream_rounds(EIGHT, Cluster(slow_pair(0.5, "n3", "n4")).run(EIGHT)) == ()
    assert {pairs[1][1], pairs[2][0]} <= {*pairs[0]}


# What is between two leaves of two nodes, which only pairs alone show.

TREE, NODES = tree(2, 2), names(4)


def lone(share: float, noise: float, seed: int = 0, made: int = 0) -> list[PairObservation]:
    """Measure the planned pairs alone; those across leaves have a share of the rate."""
    random = np.random.default_rng(seed)
    return [
        PairObservation(
            number,
            one.pairs[0],
            10.0,
            100 * (share if ACROSS in one.why else 1.0) * float(np.exp(noise * random.normal())),
            alone=True,
        )
        for number, one in enumerate(leaf_rounds(TREE, made))
    ]


def test_a_slow_uplink_is_accused_with_what_fits_as_well() -> None:
    found = slow_uplink(NODES, lone(0.34, 0.01), TREE)
    assert found is not None
    assert (found.kind, found.name, found.nodes) == (Kind.UPLINK, "uplink of leaf0", ("n0", "n1"))
    assert found.alternatives == ("uplink of leaf1", "switch spine")
    assert str(found).startswith("uplink of leaf0: 34")


@pytest.mark.parametrize("noise", [0.002, 0.01, 0.05, 0.2])
def test_no_healthy_uplink_of_two_thousand_is_accused(noise: float) -> None:
    assert not any(slow_uplink(NODES, lone(1.0, noise, seed), TREE) for seed in range(500))


def test_what_is_slower_by_less_than_counts_and_missing_launches_accuse_nothing() -> None:
    assert slow_uplink(NODES, lone(0.92, 0.001), TREE) is None
    seen = lone(0.34, 0.01)
    rest = [one for one in seen if one.nodes != seen[0].nodes]
    assert slow_uplink(NODES, rest, TREE) is None


# Whose port loses is told from what both ends of its messages send again.

SEGMENTS = 30_000


def launch(number: int, nodes: tuple[str, ...], loses: dict[str, float], random=None):
    """Each node sends to all others alike, and loses at both ports of a message."""
    found = []
    for node in nodes:
        others = tuple(other for other in nodes if other != node)
        share = loses.get(node, 0.0) + sum(loses.get(one, 0.0) for one in others) / len(others)
        due = SEGMENTS * share
        count = round(due) if random is None else int(random.poisson(due))
        found.append(Resent(number, node, nodes, count, SEGMENTS))
    return found


def rounds(names: tuple[str, ...], loses: dict[str, float], several: int, random) -> list[Resent]:
    """So many rounds of disjoint pairs, placed at random."""
    found = []
    for number in range(several):
        placed = [str(name) for name in random.permutation(names)]
        for pair in zip(placed[::2], placed[1::2], strict=True):
            found += launch(number, pair, loses, random)
    return found


def shares(several: list[Resent]) -> dict[str, float]:
    return {one.node: one.share for one in port_losses(several)}


def test_of_all_pairs_of_four_nodes_the_lossy_port_has_all_of_it():
    pairs = itertools.combinations("abcd", 2)
    several = [
        one for number, pair in enumerate(pairs) for one in launch(number, pair, {"d": 0.01})
    ]
    found = {one.node: one for one in port_losses(several)}
    assert found["d"].share == pytest.approx(0.01, rel=0.01)
    assert max(found[name].share for name in "abc") < 1e-6
    assert (found["d"].seen, found["d"].launches, found["d"].persists) == (3, 3, True)
    assert found["d"].usual < 1e-6
    assert found["d"].or_of == ()
    assert found["d"].count == sum(one.count for one in several)


def test_what_a_switch_drops_under_many_senders_counts_only_where_nothing_else_tells():
    crowded = [Resent(9, name, ("a", "b", "c"), 900 * (name == "a"), SEGMENTS) for name in "abc"]
    pairs = [
        one
        for number, pair in enumerate(itertools.combinations("abc", 2))
        for one in launch(number, pair, {})
    ]
    assert set(shares([*crowded, *pairs]).values()) == {0}
    assert shares(crowded)["a"] > 0.01
    assert shares([*crowded, *pairs[:2]])["a"] > 0.01


def test_without_three_nodes_or_without_segments_nothing_is_said():
    assert port_losses(launch(1, ("a", "b"), {"a": 0.5})) == ()
    assert port_losses([]) == ()
    assert port_losses([Resent(1, "a", ("a", "b", "c"), 0, 0)]) == ()


def test_what_one_node_loses_on_its_way_to_one_other_is_no_port():
    random = np.random.default_rng(1)
    sent = rounds(("a", "b", "c", "d"), dict.fromkeys("abcd", 1e-5), 12, random)
    lossy = [
        dataclasses.replace(one, count=one.count + round(0.02 * one.of))
        if one.node == "a" and "c" in one.nodes
        else one
        for one in sent
    ]
    way, *ports = port_losses(lossy)
    assert (way.node, way.to, way.nodes, way.persists) == ("a", "c", ("a", "c"), True)
    assert way.share == pytest.approx(0.02, rel=0.05)
    assert max(port.share for port in ports) < 1e-4
    assert not any(port.to for port in port_losses(sent) if port.share > 1e-3)


@pytest.mark.parametrize(
    ("again", "persists"), [((16, 18, 65, 66, 0), False), ((60, 60, 65, 66, 0), True)]
)
def test_bursts_in_few_launches_of_a_way_are_not_its_loss(again, persists):
    quiet = itertools.permutations("abcd", 2)
    others = [
        Resent(100 + number, one, (one, to), 0, SEGMENTS) for number, (one, to) in enumerate(quiet)
    ]
    way = [Resent(number, "d", ("d", "c"), count, SEGMENTS) for number, count in enumerate(again)]
    found, *_ = port_losses([*others, *way], 1e-3)
    assert (found.node, found.to, found.persists) == ("d", "c", persists)
