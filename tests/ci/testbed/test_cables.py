"""Links as they should be, by topology and faults."""

from __future__ import annotations

import pytest
from made_cables import TREE, links, mbps
from made_topologies import SWITCH, read

from ci.testbed import cables


def test_a_node_is_on_its_leaf_and_a_leaf_on_the_spine():
    found = links()
    assert found["tree-5"].far.bridge == "tree-leaf-2"
    assert (found["tree-leaf-2"].near.bridge, found["tree-leaf-2"].far.bridge) == (
        "tree-leaf-2",
        "tree-spine",
    )
    assert mbps(found["tree-leaf-2"]) == (40, 40)
    assert mbps(found["tree-5"]) == (10, 10)
    names = {name for _, name in cables.bridges(TREE, {})}
    assert names == {"tree-spine", *(f"tree-leaf-{i}" for i in range(1, 5)), "twin-1"}


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ({"rate": 0.5}, (5, 5)),
        ({"send_rate": 0.1}, (1, 10)),
        ({"receive_rate": 0.25}, (10, 2.5)),
        ({"send_rate": 0.1, "receive_rate": 0.25}, (1, 2.5)),
    ],
)
def test_a_share_of_the_rate_is_of_one_direction_or_both_and_of_one_link(fault, expected):
    healthy, found = links(), links({"tree-6": fault})
    assert mbps(found["tree-6"]) == expected
    assert {n for n in found if found[n] != healthy[n]} == {"tree-6"}


def test_a_small_buffer_is_of_all_links_of_the_switch_and_not_of_its_twin():
    healthy, found = links(), links({"tree": {"buffer": 20000}})
    limits = {end.bucket.limit for n in found for end in found[n].ends if "twin" not in n}
    assert limits == {20000}
    twins = [name for name in found if "twin" in name]
    assert len(twins) == 2
    assert all(found[name] == healthy[name] for name in twins)


def test_a_second_rail_is_like_the_first_without_the_faults_of_its_nodes(tmp_path):
    switch = SWITCH.replace("cpus: 4", "cpus: 4, rails: 2")
    topology = read(tmp_path, f"switches:\n  one: {switch}\n")
    planted = {"one-1": {"rate": 0.5, "mtu": 1400}, "one": {"buffer": 20000}}
    found = {cable.name: cable for cable in cables.cables(topology, planted)}
    first, second = found["one-1"], found["one-1 eth2"]
    assert (second.near.interface, second.near.address) == ("eth2", "198.18.101.1")
    assert second.near.neighbours == ("198.18.101.2",)
    assert (mbps(first), mbps(second)) == ((500, 500), (1000, 1000))
    assert (first.near.mtu, second.near.mtu) == (1400, 1500)
    assert {end.bucket.limit for end in second.ends} == {20000}
    assert (second.far.interface, second.far.bridge) == ("R1-1", "R1")
    assert cables.bridges(topology, {})[cables.SWITCHES, "R1"] == 1500
    assert not any("eth2" in name for name in found if "twin" in name)
    assert not any("eth2" in name for name in links())
