"""Differences of links are reported, and commands correct them."""

from __future__ import annotations

import re

import pytest
from made_cables import TREE, as_wanted, links, ordered

from ci.testbed import cables, mending


def test_nothing_is_reported_and_ordered_of_links_that_are_right():
    planted = {"tree-1": {"rate": 0.5, "link": "down"}, "tree": {"mgmt_mbps": 5}}
    for faults in ({}, planted):
        wanted = cables.cables(TREE, faults)
        assert mending.differences(wanted, as_wanted(faults)) == []
        assert mending.orders(wanted, as_wanted(faults)) == {}


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
def test_a_fault_that_is_not_there_is_reported_and_so_is_one_that_should_not_be(planted):
    assert mending.differences(cables.cables(TREE, planted), as_wanted())
    assert mending.differences(cables.cables(TREE, {}), as_wanted(planted))


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
"""Output of tc -json filter show on the testbed's own program."""


def test_a_filter_of_the_testbed_s_own_is_read_back_and_no_other():
    assert mending.odds(SHOWN) == 42949672
    other = {"length": 4, "insns": [*SHOWN["insns"][:3], {"code": 6, "jt": 0, "jf": 0, "k": 2}]}
    for unknown in (other, {"length": 1, "insns": SHOWN["insns"][:1]}, {}, None):
        assert mending.odds(unknown) is None


def test_an_end_that_is_gone_is_reported():
    seen = as_wanted()
    del seen[("netproof-tree-2", "eth1")]
    wanted = cables.cables(TREE, {})
    assert mending.differences(wanted, seen) == ["tree-2: the node's end of its link is not there"]
    assert [cable.name for cable in mending.missing(wanted, seen)] == ["tree-2"]


def test_links_are_made_with_their_faults():
    planted = {"tree-1": {"mtu": 1400, "rate": 0.5, "link": "down"}}
    first, then = mending.making([links(planted)["tree-1"]])
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
