"""Links as they should be, by topology and faults."""

from __future__ import annotations

import dataclasses

import pytest
from made_cables import SICK, TREE, links, mbps, ordered
from made_topologies import SWITCH, read

from ci.testbed import cables, topology_reading


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


def test_no_interface_is_there_twice_and_no_name_is_too_long():
    planted = {"tree": {"mgmt_mbps": 5}}
    places = [end.place for cable in cables.cables(TREE, planted) for end in cable.ends]
    bridges = cables.bridges(TREE, planted)
    assert len({*places, *bridges}) == len(places) + len(bridges)
    assert all(len(name) <= topology_reading.MAX_INTERFACE_NAME for _, name in [*places, *bridges])


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


def test_a_slower_bucket_is_as_long_in_time_and_holds_a_frame():
    for share in (0.5, 0.01):
        near = links({"gige-2": {"rate": share}}, SICK)["gige-2"].near
        burst = SICK.switches[0].shape.burst
        assert near.bucket.burst == max(round(burst * share), 1500 + 14 + 24)


def test_an_unshaped_end_gets_a_bucket_for_a_share_of_its_rate():
    (switch,) = SICK.switches
    bare = dataclasses.replace(switch, shape=dataclasses.replace(switch.shape, burst=None))
    of = dataclasses.replace(SICK, switches=(bare,))
    assert mbps(links(of=of)["gige-1"]) == (None, 1000)
    assert mbps(links({"gige-1": {"rate": 0.5}}, of)["gige-1"]) == (500, 500)
    assert ordered({}, {"gige-1": {"send_rate": 0.5}}, of) == {
        "netproof-gige-1": ["qdisc del dev eth1 root"]
    }


def test_a_uplink_at_a_share_of_its_rate_is_one_link():
    healthy, found = links(), links({"tree-leaf-3": {"rate": 0.5}})
    assert mbps(found["tree-leaf-3"]) == (20, 20)
    assert {n for n in found if found[n] != healthy[n]} == {"tree-leaf-3"}


def test_a_small_buffer_is_of_all_links_of_the_switch_and_not_of_its_twin():
    healthy, found = links(), links({"tree": {"buffer": 20000}})
    limits = {end.bucket.limit for n in found for end in found[n].ends if "twin" not in n}
    assert limits == {20000}
    twins = [name for name in found if "twin" in name]
    assert len(twins) == 2
    assert all(found[name] == healthy[name] for name in twins)


def test_a_second_management_network_has_a_rate_of_its_own():
    found = links({"tree": {"mgmt_mbps": 500}})
    cable = found["tree-3 mgmt0"]
    assert (cable.near.interface, cable.near.address) == ("mgmt0", "198.19.101.3")
    assert mbps(cable) == (500, 500)
    assert mbps(found["tree-3"]) == (10, 10)
    assert not any("mgmt0" in name for name in links())


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
