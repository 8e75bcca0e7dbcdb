"""What is between two leaves of two nodes, which only pairs alone show."""

from __future__ import annotations

import numpy as np
import pytest
from made_pairs import names, tree

from netproof.pairs.alone import LEAST_LONE, slow_uplink, two_by_two
from netproof.pairs.model import Kind, PairObservation
from netproof.pairs.rounds import ACROSS, WITHIN, leaf_rounds

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


def test_what_is_slower_by_less_than_counts_is_not_accused() -> None:
    assert slow_uplink(NODES, lone(0.92, 0.001), TREE) is None


def test_disturbed_and_missing_launches_accuse_nothing() -> None:
    seen = lone(0.34, 0.01)
    rest = [one for one in seen if one.nodes != seen[0].nodes]
    assert slow_uplink(NODES, rest, TREE) is None


def test_each_kind_is_planned_as_often_as_it_is_missing() -> None:
    several = [one.why.split(", ")[1] for one in leaf_rounds(TREE, 1)]
    assert several == [WITHIN, ACROSS] * (LEAST_LONE - 1)
    assert not leaf_rounds(TREE, LEAST_LONE)


@pytest.mark.parametrize(
    ("nodes", "leaves", "size"), [(names(4), 1, 4), (names(4), 4, 1), (names(6), 2, 3)]
)
def test_other_shapes_are_judged_by_their_rounds(nodes: list[str], leaves: int, size: int) -> None:
    assert not two_by_two(nodes, tree(leaves, size))
    assert slow_uplink(nodes, [], tree(leaves, size)) is None
