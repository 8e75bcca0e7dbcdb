"""Links as they should be, what is told of others, and what is ordered to mend them."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from ci.testbed import cables, topology
from ci.testbed.cables import Seen

FOLDER = Path(topology.__file__).parent
TREE = topology.load(FOLDER / "leaves.yaml")
SICK = topology.load(FOLDER.parents[1] / "docs/criteria/sick-switch.yaml")


def links(planted=None, of=TREE):
    return {cable.name: cable for cable in cables.cables(of, planted or {})}


def as_wanted(planted=None, of=TREE):
    """What the kernel shows of links that are as they should be."""
    return {
        end.place: Seen(end.mtu, end.up, cable.connected, end.address, end.bucket, end.drop)
        for cable in cables.cables(of, planted or {})
        for end in cable.ends
    }


def ordered(planted, before=None, of=TREE):
    """The lines that lead from what is planted ``before`` to what is now."""
    found = cables.orders(cables.cables(of, planted), as_wanted(before, of))
    return {where: order.ip + order.tc for where, order in found.items()}


def mbps(cable):
    return tuple(end.bucket and end.bucket.mbps for end in cable.ends)


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
    assert all(len(name) <= topology.MAX_INTERFACE_NAME for _, name in [*places, *bridges])


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


def test_nothing_is_told_and_ordered_of_links_that_are_right():
    planted = {"tree-1": {"rate": 0.5, "link": "down"}, "tree": {"mgmt_mbps": 5}}
    for faults in ({}, planted):
        wanted = cables.cables(TREE, faults)
        assert cables.differences(wanted, as_wanted(faults)) == []
        assert cables.orders(wanted, as_wanted(faults)) == {}


FAULTS = [
    {"tree-1": {"rate": 0.5}},
    {"tree-1": {"send_rate": 0.01}},
    {"tree-1": {"loss": 0.002}},
    {"tree-1": {"mtu": 1400}},
    {"tree-1": {"mtu": 9000}},
    {"tree-1": {"link": "down"}},
    {"tree-leaf-2": {"rate": 0.5}},
    {"tree-leaf-2": {"loss": 0.01}},
    {"tree-leaf-2": {"link": "down"}},
    {"tree": {"buffer": 20000}},
]
each_fault = pytest.mark.parametrize("planted", FAULTS, ids=lambda one: str(one))


@each_fault
def test_a_fault_that_is_not_there_is_told_and_so_is_one_that_should_not_be(planted):
    assert cables.differences(cables.cables(TREE, planted), as_wanted())
    assert cables.differences(cables.cables(TREE, {}), as_wanted(planted))


@each_fault
def test_planting_touches_the_place_alone(planted):
    (place,) = planted
    commands = [line for lines in ordered(planted).values() for line in lines]
    interfaces = {re.search(r" dev (\S+)", line)[1] for line in commands}
    of_place = {"tree-1": {"eth1", "tree-1"}, "tree-leaf-2": {"U1-2", "D1-2"}}.get(place)
    if of_place is None:
        assert "twin-1-1" not in interfaces
        assert {"U1-1", "D1-4", "eth1", "tree-16"} <= interfaces
    else:
        assert interfaces <= of_place
    assert set(ordered(planted)) <= {"netproof-switches"} | {
        cables.namespace(node.name) for node in TREE.nodes if place in (node.name, "tree")
    }


def test_lost_frames_are_of_both_directions_and_leave_with_the_filters():
    lines = ordered({"tree-1": {"loss": 0.25}})["netproof-switches"]
    assert lines[0] == "qdisc add dev tree-1 clsact"
    assert [line.split()[4] for line in lines[1:]] == ["ingress", "egress"]
    assert all(f",53 1 0 {2**30}," in line for line in lines[1:])
    assert ordered({}, {"tree-1": {"loss": 0.25}}) == {
        "netproof-switches": ["qdisc del dev tree-1 clsact"]
    }
    assert ordered({"tree-1": {"loss": 0.5}}, {"tree-1": {"loss": 0.25}})["netproof-switches"][
        :2
    ] == ["qdisc del dev tree-1 clsact", "qdisc add dev tree-1 clsact"]


SHOWN = {
    "length": 4,
    "insns": [
        {"code": 32, "jt": 0, "jf": 0, "k": 4294963256},
        {"code": 53, "jt": 1, "jf": 0, "k": 42949672},
        {"code": 6, "jt": 0, "jf": 0, "k": 2},
        {"code": 6, "jt": 0, "jf": 0, "k": 0},
    ],
}
"""What tc -json filter show printed of the testbed's own program."""


def test_a_filter_of_the_testbed_s_own_is_read_back_and_no_other():
    assert cables.odds(SHOWN) == 42949672
    other = {"length": 4, "insns": [*SHOWN["insns"][:3], {"code": 6, "jt": 0, "jf": 0, "k": 2}]}
    for unknown in (other, {"length": 1, "insns": SHOWN["insns"][:1]}, {}, None):
        assert cables.odds(unknown) is None


def test_a_filter_that_is_not_known_is_told_and_replaced():
    seen = as_wanted()
    place = ("netproof-switches", "tree-1")
    seen[place] = dataclasses.replace(seen[place], drop=None)
    wanted = cables.cables(TREE, {})
    (told,) = cables.differences(wanted, seen)
    assert told.startswith("tree-1: share of frames lost at the switch's end is not known")
    assert cables.orders(wanted, seen)["netproof-switches"].tc == ["qdisc del dev tree-1 clsact"]


def test_an_end_that_is_gone_is_told():
    seen = as_wanted()
    del seen[("netproof-tree-2", "eth1")]
    wanted = cables.cables(TREE, {})
    assert cables.differences(wanted, seen) == ["tree-2: the node's end of its link is not there"]
    assert [cable.name for cable in cables.missing(wanted, seen)] == ["tree-2"]


def test_a_management_network_that_should_not_be_is_told_by_its_bridges_and_ports():
    seen = as_wanted({"tree": {"mgmt_mbps": 5}})
    seen["netproof-switches", "G1"] = Seen(1500, True, True, None, None, 0)
    told = cables.differences(cables.cables(TREE, {}), seen)
    assert len(told) == 1 + len(TREE.nodes)
    assert all("of a second management network that should not be" in one for one in told)
    assert cables.differences(cables.cables(TREE, {"tree": {"mgmt_mbps": 5}}), seen) == []


def test_links_are_made_with_their_faults():
    planted = {"tree-1": {"mtu": 1400, "rate": 0.5, "link": "down"}}
    first, then = cables.making([links(planted)["tree-1"]])
    assert first["netproof-switches"].ip == [
        "link add name tree-1 mtu 1500 type veth peer name eth1 mtu 1400"
        " address 02:00:c6:12:01:01 netns netproof-tree-1"
    ]
    assert then["netproof-switches"].ip == ["link set dev tree-1 master tree-leaf-1"]
    script = then["netproof-tree-1"].script()
    assert "address add 198.18.1.1/24 dev eth1\n" in script
    known = re.findall(r"(?m)^neigh add (\S+) lladdr 02:00:c6:12:01:\S+ nud permanent", script)
    assert known == [f"198.18.1.{number}" for number in range(2, 17)]
    assert "tbf rate 5000000bit " in script
    assert script.endswith("ethtool -K eth1 tso off gso off\n")
