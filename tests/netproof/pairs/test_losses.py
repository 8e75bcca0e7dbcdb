"""Whose port loses is told from what both ends of its messages send again."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

from netproof.pairs.losses import Resent, port_losses

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


def test_a_suspect_whose_partners_met_nobody_else_is_not_told_from_them():
    star = [
        one
        for n, pair in enumerate(("da", "db", "dc"))
        for one in launch(n, tuple(pair), {"d": 0.01})
    ]
    found = {one.node: one for one in port_losses(star)}
    assert found["a"].or_of == ("d",)
    with_one_more = [*star, *launch(9, ("a", "b"), {})]
    found = {one.node: one for one in port_losses(with_one_more)}
    assert found["d"].or_of == ()
    assert found["d"].share == pytest.approx(0.01, rel=0.01)


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


@pytest.mark.parametrize("count", [4, 16, 64])
def test_at_random_rounds_one_port_in_many_is_found(count):
    random = np.random.default_rng(count)
    names = tuple(f"n{number}" for number in range(count))
    loses = {name: 1e-4 for name in names} | {"n2": 0.002}
    found = shares(rounds(names, loses, 6, random))
    assert max(found, key=found.get) == "n2"
    assert found["n2"] == pytest.approx(0.002, rel=0.5)
    assert sorted(found.values())[-2] < 0.001


def test_two_lossy_ports_are_both_found():
    random = np.random.default_rng(5)
    names = tuple(f"n{number}" for number in range(8))
    found = shares(rounds(names, {"n1": 0.01, "n6": 0.004}, 8, random))
    assert found["n1"] == pytest.approx(0.01, rel=0.2)
    assert found["n6"] == pytest.approx(0.004, rel=0.2)
    assert max(share for name, share in found.items() if name not in ("n1", "n6")) < 5e-4


def test_two_nodes_that_only_send_to_each_other_share_it_alike():
    several = launch(1, ("a", "b"), {"a": 0.01}) + launch(2, ("c", "d"), {})
    found = shares(several)
    assert found["a"] == pytest.approx(found["b"]) == pytest.approx(0.005)
    assert found["c"] == found["d"] == 0
    either = {one.node: one.or_of for one in port_losses(several)}
    assert (either["a"], either["b"]) == (("b",), ("a",))


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


def test_of_one_burst_nobody_says_that_it_persists():
    quiet = [one for number in range(9) for one in launch(number, ("a", "b", "c"), {})]
    burst = launch(9, ("a", "b", "c"), {"a": 0.05})
    (found, *_) = port_losses([*quiet, *burst])
    assert found.node == "a"
    assert found.share > 0.001
    assert (found.seen, found.launches, found.persists) == (1, 10, False)


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


def test_a_port_that_loses_in_one_direction_is_no_way():
    sent = [
        Resent(number, one, pair, 600 * (one == "a"), SEGMENTS)
        for number, pair in enumerate(itertools.combinations("abcd", 2))
        for one in pair
    ]
    assert not any(port.to for port in port_losses(sent))


def test_a_lossy_port_is_found_in_launches_of_a_thousand_nodes():
    names = tuple(f"n{number}" for number in range(1000))
    several = [
        Resent(number, name, names, 900 if name == "n7" else 1, SEGMENTS)
        for number in range(4)
        for name in names
    ]
    worst = max(port_losses(several), key=lambda one: one.share)
    assert (worst.node, worst.seen, worst.launches, worst.persists) == ("n7", 4, 4, True)
