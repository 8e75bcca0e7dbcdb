"""The next round is the most informative one, and none is made once all is known."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_pairs import Cluster, healthy, names, slow_nodes, slow_on_the_way, tree, way

from netproof.errors import NetproofError
from netproof.pairs.accusation import Judgement, NodeState, State, judge
from netproof.pairs.alone import Recovery, measured_alone
from netproof.pairs.model import LEAST_NODES, Kind, PairObservation, PairTable, Topology
from netproof.pairs.rounds import (
    MOST_BOTH_WAYS,
    Mode,
    Pairs,
    both_ways_round,
    confirming_rounds,
    longest_paths,
    next_round,
    random_round,
    rounds_of_all,
    shortest_paths,
    stream_rounds,
    suspects_round,
    tournament,
)
from netproof.site.partition import PairQuantity, PairSettings


def test_quick_ends_when_all_is_decided_or_the_limit_is_reached():
    quiet, loud = Cluster(healthy, noise=0.01), Cluster(healthy, noise=0.5)
    assert quiet.run(names(64)).rounds == 2
    judgement = loud.run(names(16), settings=PairSettings(rounds=5))
    assert judgement.rounds == 5
    assert not judgement.decided


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize(("count", "pairs"), [(2, 1), (3, 3)])
def test_each_pair_of_too_few_nodes_is_measured_three_times_and_no_more(count, pairs, mode):
    cluster = Cluster(healthy)
    judgement = cluster.run(names(count), mode=mode)
    assert len({seen.round for seen in cluster.seen}) == 3 * pairs
    met = Counter(frozenset(seen.nodes) for seen in cluster.seen)
    assert set(met.values()) == {3}
    assert judgement.decided
    assert confirming_rounds(judgement, cluster.seen) == ()
    streams = Counter(step.pairs[0] for step in stream_rounds(names(count), judgement))
    assert streams == dict.fromkeys(itertools.permutations(names(count), 2), 3)


@pytest.mark.parametrize("noise", [0.001, 0.01])
def test_two_pairs_at_once_are_what_it_takes_to_clear_a_node(noise):
    """Fewer than four nodes are never cleared, however quiet the network."""
    for count in range(2, 7):
        judgement = Cluster(healthy, noise=noise).run(names(count))
        states = {node.state for node in judgement.nodes.values()}
        assert states == {State.CLEARED if count >= LEAST_NODES else State.NOT_COMPARED}
        few = judgement.nodes["n0"].reason.startswith("too few nodes to compare")
        assert few is (count < LEAST_NODES)
    assert LEAST_NODES == 4


def test_a_failed_launch_counts_as_done_and_paths_need_a_topology():
    before = names(8), (), judge((), names(8))
    assert next_round(Mode.QUICK, *before, done=15) is not None
    assert next_round(Mode.QUICK, *before, done=16) is None
    with pytest.raises(NetproofError, match="needs a topology"):
        next_round(Mode.PATHS, *before)


def test_paths_are_across_and_within_in_turn():
    topology = tree(4, 4)
    cluster = Cluster(healthy)
    cluster.run(names(16), mode=Mode.PATHS, topology=topology)
    lengths = {
        number: {len(way(topology, *seen.nodes)) for seen in cluster.seen if seen.round == number}
        for number in range(4)
    }
    assert lengths == {0: {5}, 1: {1}, 2: {5}, 3: {1}}


def test_a_slow_port_stays_slow_alone_and_an_oversubscribed_uplink_recovers():
    topology, nodes = tree(4, 4), names(16)
    uplink = slow_on_the_way(0.5, topology, "uplink of leaf1")
    port = slow_nodes(0.5, "n3")
    for slower, slower_alone, recovery in (
        (port, port, Recovery.STAYS),
        (uplink, healthy, Recovery.RECOVERS),
    ):
        cluster = Cluster(slower)
        judgement = cluster.run(nodes, topology=topology)
        cluster.slower, cluster.drift = slower_alone, 0.0
        steps = confirming_rounds(judgement, cluster.seen)
        assert all(step.alone and len(step.pairs) == 1 for step in steps)
        cluster.measure(steps[0])
        (one,) = measured_alone(cluster.seen, judgement)
        assert one.recovery is Recovery.UNDECIDED
        assert "too few launches alone" in one.reason
        for step in steps[1:]:
            cluster.measure(step)
        (one,) = measured_alone(cluster.seen, judgement)
        assert one.recovery is recovery
        if slower is port:
            assert "n3" in one.pair
            assert one.effects[0].ratio == pytest.approx(0.5, rel=0.1)
        else:
            assert len({topology.leaf_of[node] for node in one.pair}) == 2


def both_ways(cluster: Cluster, topology: Topology, carries: dict[str, float] | None = None) -> int:
    """Measure both ways until no more is needed; return how many rounds that took.

    ``carries``: how many pairs at full rate each leaf's uplink carries, shared evenly.
    """
    nodes = [node for below in topology.leaves.values() for node in below]
    leaf, made = topology.leaf_of, 0
    while (step := both_ways_round(nodes, cluster.seen, topology, made=made)) is not None:
        across = [pair for pair in step.pairs if leaf[pair[0]] != leaf[pair[1]]]
        load = Counter(leaf[node] for pair in across for node in pair)

        def shared(one: str, other: str, _: int, load: Counter[str] = load) -> float:
            ends = () if leaf[one] == leaf[other] else (leaf[one], leaf[other])
            return min(1.0, *(carries[end] / load[end] for end in ends), 1.0)

        cluster.slower = shared if carries else cluster.slower
        cluster.measure_both_ways(step)
        made += 1
    return made


def test_an_uplink_that_only_shows_while_both_nodes_send_is_named_and_no_node():
    topology = tree(4, 4)
    cluster = Cluster(healthy, noise=0.01, drift=0.01)
    assert not cluster.run(names(16), topology=topology).accusations
    cluster.slower = slow_on_the_way(0.5, topology, "uplink of leaf2")
    assert both_ways(cluster, topology) == 4
    judgement = judge(cluster.seen, names(16), topology)
    (one,) = judgement.accusations
    assert (one.kind, one.name, one.alternatives) == (Kind.UPLINK, "uplink of leaf2", ())
    assert str(one.effects[0]).startswith("50")
    assert "rate both ways" in str(one)
    assert judgement.decided
    assert {state.state for state in judgement.nodes.values()} == {"cleared"}
    # Alone the pairs have all that their links carry, one way at a time.
    cluster.slower = healthy
    for step in confirming_rounds(judgement, cluster.seen):
        cluster.measure(step)
    found = measured_alone(cluster.seen, judgement)
    assert {one.recovery for one in found} == {Recovery.RECOVERS}


def test_an_uplink_that_is_accused_both_ways_is_not_accused_again_as_its_leaf():
    """One way at a time it is some slower too, which in two rounds may be its leaf."""
    topology = tree(4, 4)
    nodes = names(16)
    across = [(f"n{n}", f"n{n + 8}") for n in range(8)]
    other = [(f"n{n}", f"n{(n + 4) % 16}") for n in (0, 1, 2, 3, 8, 9, 10, 11)]
    cluster = Cluster(slow_on_the_way(0.8, topology, "uplink of leaf0"), noise=0.004, drift=0.01)
    cluster.all([across, other, across])
    (one,) = judge(cluster.seen, nodes, topology).accusations
    assert len({one.name, *one.alternatives} & {"leaf0", "switch leaf0", "uplink of leaf0"}) == 2
    cluster.slower = slow_on_the_way(0.5, topology, "uplink of leaf0")
    both_ways(cluster, topology)
    (one,) = judge(cluster.seen, nodes, topology).accusations
    assert (one.kind, one.name, one.alternatives) == (Kind.UPLINK, "uplink of leaf0", ())
    assert {effect.quantity for effect in one.effects} == {
        PairQuantity.RATE,
        PairQuantity.BOTH_WAYS,
    }


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(8, 8, 8, 5), (8, 8, 8, 8), (8, 5, 5, 5), (9, 8, 8, 8)])
def test_uplinks_that_carry_half_are_none_of_them_slow_however_many_nodes_are_there(sizes):
    nodes = iter(names(sum(sizes)))
    leaves = {f"leaf{n}": tuple(itertools.islice(nodes, size)) for n, size in enumerate(sizes)}
    topology = Topology(leaves, dict.fromkeys(leaves, "spine"))
    every = names(sum(sizes))
    cluster = Cluster(healthy, noise=0.01)
    cluster.run(every, topology=topology)
    both_ways(cluster, topology, dict.fromkeys(leaves, 4.0))
    assert not judge(cluster.seen, every, topology).accusations
    slow = Cluster(healthy, noise=0.01, seed=2)
    slow.run(every, topology=topology)
    both_ways(slow, topology, dict.fromkeys(leaves, 4.0) | {"leaf2": 2.0})
    (one,) = judge(slow.seen, every, topology).accusations
    assert one.name == "uplink of leaf2"


def test_disturbed_rounds_both_ways_are_made_again_up_to_a_limit():
    topology = tree(3, 4)
    seen: list[PairObservation] = []
    for made in range(MOST_BOTH_WAYS):
        step = both_ways_round(names(12), seen, topology, made=made)
        seen += [
            PairObservation(made, pair, both_ways_mb_s=1.0, disturbed=True) for pair in step.pairs
        ]
    assert both_ways_round(names(12), seen, topology, made=MOST_BOTH_WAYS) is None
    assert PairQuantity.BOTH_WAYS not in judge(seen, names(12), topology).noise


@pytest.mark.parametrize(
    "topology",
    [Topology({"one": tuple(names(8))}), tree(2, 4), tree(8, 1), Topology({})],
    ids=["one leaf", "two leaves", "a node each", "no leaves"],
)
def test_where_no_uplinks_can_be_compared_none_is_made(topology):
    assert both_ways_round(names(8), (), topology, made=0) is None


def met(rounds: Iterable[Pairs]) -> Counter[frozenset[str]]:
    return Counter(frozenset(pair) for step in rounds for pair in step)


def idle(step, nodes) -> list[str]:
    inside = {node for pair in step for node in pair}
    assert inside <= set(nodes)
    return sorted(set(nodes) - inside)


def assert_whole(step, nodes) -> None:
    assert len(idle(step, nodes)) == len(nodes) - 2 * len(step)


@given(st.integers(2, 33))
def test_a_tournament_meets_every_pair_once(count):
    nodes = names(count)
    rounds = [tournament(nodes, number) for number in range(rounds_of_all(count))]
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


def suspected(count, suspects=(), cleared=(), pairs=()) -> Judgement:
    nodes = {
        name: NodeState(State.CLEARED if name in cleared else State.UNDECIDED, (), "")
        for name in names(count)
    }
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


TWO_TIERS = Topology(
    tree(4, 4).leaves,
    {"leaf0": "a", "leaf1": "a", "leaf2": "b", "leaf3": "b", "a": "spine", "b": "spine"},
)


def test_longest_paths_cross_the_top_and_cover_every_uplink_and_node():
    nodes, topology, random = names(16), TWO_TIERS, np.random.default_rng(1)
    rounds: list[Pairs] = []
    for _ in range(3):
        step = longest_paths(topology, nodes, [*itertools.chain(*rounds)], random)
        rounds.append(step)
        assert not idle(step, nodes)
        crossed = {name for pair in step for name in way(topology, *pair)}
        assert {f"uplink of {name}" for name in ("leaf0", "leaf3", "a", "b")} <= crossed
        assert all("spine" in way(topology, *pair) for pair in step)
    assert set(met(rounds).values()) == {1}


def test_things_on_the_way_are_switches_and_uplinks_that_some_pairs_cross():
    nodes, ends = names(18), np.array([(0, 1), (0, 4), (4, 8), (8, 16), (16, 17)])
    topology = TWO_TIERS
    table = PairTable(tuple(nodes), np.zeros(5, int), *ends.T, np.zeros(5), topology)
    found = {thing.name: thing.rows.tolist() for thing in table.groups}
    ways = [way(topology, nodes[one], nodes[other]) for one, other in ends]
    assert found == {name: [row for row in range(5) if name in ways[row]] for name in found}
    crossed = ("leaf0", "leaf1", "leaf2", "a", "b")
    assert {*found} == {*crossed, "spine", *(f"uplink of {name}" for name in crossed)}
    assert topology.below["spine"] == tuple(nodes[:16])


def test_a_topology_that_is_no_tree_is_refused():
    with pytest.raises(NetproofError, match="above itself"):
        Topology({"a": ("n0",)}, {"a": "b", "b": "a"})
    with pytest.raises(NetproofError, match="n0 is on the leaves a and b"):
        Topology({"a": ("n0",), "b": ("n0",)})
