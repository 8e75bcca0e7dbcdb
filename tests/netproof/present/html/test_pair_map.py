"""Maps of rounds of pairs: in the order of the topology, symmetric, and with their figures."""

from __future__ import annotations

import dataclasses

import pytest

from netproof.localization.observations import PairQuantity
from netproof.measurement.curve import Curve
from netproof.present.html import pair_map
from netproof.present.html.looks import Looks
from netproof.session.pair_rounds import PairCurve, PairLaunch, PairRounds

LOOKS = Looks(("tree",), ("mpich",))


def measured(nodes: tuple[str, str], small_us: float, large_us: float) -> PairCurve:
    return PairCurve(nodes, Curve((4, 65536), (small_us, large_us)))


def rounds(*launches: tuple[PairCurve, ...], nodes="abcd", **others) -> PairRounds:
    several = tuple(
        PairLaunch(number, number, number, 0.0, 1.0, pairs, alone=len(pairs) == 1)
        for number, pairs in enumerate(launches, 1)
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
    chart = rate.for_page(LOOKS)
    assert chart["layer"][0]["encoding"]["x"]["sort"] == ["b", "d", "a", "c"]


def test_what_is_slow_is_dark_and_noise_is_not(made):
    rate, latency = pair_map.of_rounds(made)
    colours = [one.for_page(LOOKS)["layer"][0]["encoding"]["color"] for one in (rate, latency)]
    assert [colour["scale"]["reverse"] for colour in colours] == [False, True]
    even = rounds((measured(("a", "b"), 50, 1000), measured(("c", "d"), 50, 1010)))
    low, high = pair_map.of_rounds(even)[0].domain()
    assert low < 0.75 * high


def test_the_table_has_the_slowest_pair_first(made):
    rate, latency = pair_map.of_rounds(made)
    assert [row[0] for row in rate.table().rows] == ["c – d", "a – b"]
    assert [row[0] for row in latency.table().rows] == ["a – b", "c – d"]


def test_many_nodes_have_no_names_and_no_figures_in_their_cells():
    nodes = [f"n{number}" for number in range(80)]
    pairwise = zip(nodes[::2], nodes[1::2], strict=True)
    pairs = tuple(measured((one, other), 50, 1000) for one, other in pairwise)
    rate, _ = pair_map.of_rounds(rounds(pairs, nodes=nodes))
    chart = rate.for_page(LOOKS)
    assert len(chart["layer"]) == 1
    assert chart["layer"][0]["encoding"]["x"]["axis"]["labels"] is False


def test_rounds_without_pairs_among_others_have_no_map():
    assert pair_map.of_rounds(rounds((measured(("a", "b"), 50, 1000),))) == ()


def test_a_file_has_its_title_and_what_is_told_below_it(made):
    rate, _ = pair_map.of_rounds(made)
    title = rate.for_file(LOOKS)["title"]
    assert "tree mpich" in title["text"]
    assert "Dark is slow." in title["subtitle"][0]
    assert rate.quantity is PairQuantity.RATE
