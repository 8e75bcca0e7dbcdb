"""Maps of rounds of pairs: in the order of the topology, symmetric, and with their figures."""

from __future__ import annotations

import dataclasses

import pytest

from netproof.measurement.case import Curve
from netproof.present.html import figures as pair_map
from netproof.session.measured import Launch
from netproof.session.pair_rounds import PairRounds

Measurement = tuple[tuple[str, str], Curve]


def measured(nodes: tuple[str, str], small_us: float, large_us: float) -> Measurement:
    return nodes, Curve((4, 65536), (small_us, large_us))


def rounds(*launches: tuple[Measurement, ...], nodes="abcd", **others) -> PairRounds:
    several = tuple(
        Launch(number, 0, 0.0, 0.0, (), curves, round=number, pairs=pairs, alone=len(pairs) == 1)
        for number, launch in enumerate(launches, 1)
        for pairs, curves in [tuple(zip(*launch, strict=True))]
    )
    return PairRounds("testbed", "tree", "mpich", tuple(nodes), several, "7", "quick", 1, **others)


@pytest.fixture
def made() -> PairRounds:
    return rounds(
        (measured(("a", "b"), 50, 1000), measured(("c", "d"), 50, 2000)),
        (measured(("b", "a"), 60, 1200), measured(("c", "d"), 50, 2000)),
        (measured(("a", "c"), 10, 10),),
    )


def test_each_pair_is_on_both_sides_with_the_median_of_its_launches_among_others(made):
    rate, latency = pair_map.of_rounds(made)
    at = {(row["node"], row["partner"]): row for row in rate.rows}
    assert set(at) == {("a", "b"), ("b", "a"), ("c", "d"), ("d", "c")}
    assert at["a", "b"]["value"] == pytest.approx((65.536 + 65536 / 1200) / 2)
    assert at["a", "b"]["launches"] == 2
    assert {row["value"] for row in latency.rows} == {55, 50}
    assert (rate.name, latency.name) == ("pairs-rate-tree-mpich", "pairs-latency-tree-mpich")


def test_nodes_of_a_leaf_stand_together_and_leaves_of_a_spine_too(made):
    leaves = {"leaf1": ("d", "a"), "leaf2": ("b",), "leaf3": ("c",)}
    parents = {"leaf1": "spine2", "leaf2": "spine1", "leaf3": "spine2"}
    placed = dataclasses.replace(made, leaves=leaves, parents=parents)
    assert pair_map.ordered(placed) == ("b", "d", "a", "c")
    assert pair_map.ordered(made) == ("a", "b", "c", "d")
    rate, _ = pair_map.of_rounds(placed)
    assert rate.chart["encoding"]["x"]["sort"] == ["b", "d", "a", "c"]


def _scale(figure):
    return figure.chart["layer"][0]["encoding"]["color"]["scale"]


def test_what_is_slow_is_dark_and_first_in_the_table_and_noise_is_not(made):
    rate, latency = pair_map.of_rounds(made)
    assert [_scale(one)["reverse"] for one in (rate, latency)] == [False, True]
    even = rounds((measured(("a", "b"), 50, 1000), measured(("c", "d"), 50, 1010)))
    low, high = _scale(pair_map.of_rounds(even)[0])["domain"]
    assert low < 0.75 * high
    assert [row[0] for row in rate.table.rows] == ["c – d", "a – b"]
    assert [row[0] for row in latency.table.rows] == ["a – b", "c – d"]


def test_many_nodes_have_no_names_and_no_figures_in_their_cells():
    rate, _ = pair_map.of_rounds(many(80))
    assert len(rate.chart["layer"]) == 1
    assert rate.chart["encoding"]["x"]["axis"]["labels"] is False


LEAF = 20


def many(count: int, **others) -> PairRounds:
    """A round of neighbours and one of nodes a leaf apart; the third node is slow."""
    nodes = [f"n{number}" for number in range(count)]
    near = zip(nodes[::2], nodes[1::2], strict=True)
    far = [
        pair
        for at in range(0, count, 2 * LEAF)
        for pair in zip(nodes[at : at + LEAF], nodes[at + LEAF : at + 2 * LEAF], strict=True)
    ]
    launches = (
        tuple(measured(pair, 50, 9000 if "n2" in pair else 1000) for pair in pairs)
        for pairs in (near, far)
    )
    return rounds(*launches, nodes=nodes, **others)


def leaves(count: int) -> dict[str, tuple[str, ...]]:
    several = range(0, count, LEAF)
    return {f"leaf{at}": tuple(f"n{at + node}" for node in range(LEAF)) for at in several}


def cells(figure):
    return figure.data[pair_map.CELLS]


def test_more_nodes_than_pixels_are_drawn_leaf_by_leaf_with_the_slowest_pair():
    rate, latency = pair_map.of_rounds(many(400, leaves=leaves(400)))
    assert rate.title.endswith("of each pair of leaf switches")
    at = {(row["node"], row["partner"]): row for row in cells(rate)}
    assert len(at) == 20 + 20
    assert at["leaf0", "leaf20"]["value"] == pytest.approx(65.536)
    assert at["leaf0", "leaf20"]["slowest"] == "n2 – n22"
    assert at["leaf0", "leaf20"]["slowest_value"] == pytest.approx(65536 / 9000)
    assert (at["leaf0", "leaf20"]["pairs"], at["leaf0", "leaf0"]["pairs"]) == (20, 10)
    assert {row["value"] for row in cells(latency)} == {50}
    tips = [tip["title"] for tip in rate.chart["layer"][0]["encoding"]["tooltip"]]
    assert tips == ["node", "with", "median MB/s", "pairs", "slowest pair", "its MB/s"]
    assert len(rate.rows) == 2 * (200 + 200)
    assert rate.table.rows[0][0] in ("n2 – n3", "n2 – n22")


def names(figure):
    return figure.chart["encoding"]["x"]["sort"]


def test_nodes_without_a_topology_are_drawn_with_those_that_follow_and_of_no_switch_in_a_group():
    for count, above, first in (
        (2000, {}, "n0 to n9"),
        (4400, {"leaves": leaves(4400)}, "n0 to n101"),
    ):
        drawn = names(pair_map.of_rounds(many(count, **above))[0])
        assert (drawn[0], len(drawn)) == (first, pair_map.DRAWN_UP_TO)
    some = {leaf: nodes for leaf, nodes in leaves(400).items() if leaf != "leaf0"}
    assert names(pair_map.of_rounds(many(400, leaves=some))[0])[-1] == pair_map.OTHERS
