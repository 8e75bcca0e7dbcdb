"""Links as they should be, by topology and faults."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from made_cables import TREE, as_wanted, links, mbps, ordered
from made_topologies import SWITCH, read

from ci.testbed import cables, delays, faults, mending, topology, topology_reading
from ci.testbed.delays import Line
from ci.testbed.errors import CannotRunError
from ci.testbed.faults import NODE, FaultError
from ci.testbed.topology import TopologyError


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


# Differences of links are reported, and commands correct them.


def test_nothing_is_reported_and_ordered_of_links_that_are_right():
    planted = {"tree-1": {"rate": 0.5, "link": "down"}, "tree": {"mgmt_mbps": 5}}
    for there in ({}, planted):
        wanted = cables.cables(TREE, there)
        assert mending.differences(wanted, as_wanted(there)) == []
        assert mending.orders(wanted, as_wanted(there)) == {}


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


# Which nodes have a delay line, what it is asked for, and what is said where there can be none.

TWO = topology_reading.load(Path(topology.__file__).with_name("topology.yaml"))
SWITCHES = "switches:\n  one: {{link_mbps: 10, mtu: 1500, buffer: 9000, nodes: 2, cpus: 1, {}}}\n"


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("delay", -1, "found -1; write µs, a whole number from 0 to 100000"),
        ("delay", 0.5, "found 0.5"),
        ("jitter", 0, "found 0; write µs, a whole number from 1"),
        ("batch", 100001, "found 100001"),
        ("reorder", 1, "found 1; write a share of packets"),
    ],
)
def test_what_no_line_can_do_is_refused(key, value, says):
    with pytest.raises(FaultError, match=says):
        faults.checked(NODE, key, value)


def test_a_switch_s_line_is_that_of_all_its_nodes():
    found = delays.lines(TWO, {"gige": {"delay": 100, "buffer": 20000}})
    assert found == {f"gige-{number}": Line(delay=100) for number in range(1, 5)}


def test_what_a_node_says_goes_before_what_its_switch_says():
    found = delays.lines(
        TWO, {"gige": {"delay": 100, "jitter": 5}, "gige-2": {"delay": 0, "reorder": 0.01}}
    )
    assert found["gige-1"] == Line(delay=100, jitter=5)
    assert found["gige-2"] == Line(delay=0, jitter=5, reorder=10_000)


def test_reordering_where_nothing_waits_is_refused():
    with pytest.raises(FaultError, match="gige-1: reorder lets packets overtake those that wait"):
        delays.lines(TWO, {"gige-1": {"reorder": 0.01, "delay": 0}})
    assert delays.lines(TWO, {"gige": {"batch": 50}, "gige-1": {"reorder": 0.01}})


def test_a_file_that_asks_for_it_is_refused_with_its_line(tmp_path):
    file = tmp_path / "topology.yaml"
    file.write_text(SWITCHES.format("faults: {one-2: {reorder: 0.1}}"))
    with pytest.raises(TopologyError, match=r"topology.yaml:2: faults: one-2: reorder lets"):
        topology_reading.load(file)
    file.write_text(SWITCHES.format("faults: {one-2: {reorder: 0.1}, one: {delay: 50}}"))
    assert topology_reading.load(file).faults == {"one-2": {"reorder": 0.1}, "one": {"delay": 50}}


def test_the_program_gets_the_same_draws_for_a_node_each_time():
    line = Line(delay=100, jitter=20, batch=50, reorder=10_000)
    first, again = line.command("gige-1"), line.command("gige-1")
    assert first == again
    assert first[1:-1] == ["7", "100", "20", "50", "10000"]
    assert first[-1] != line.command("gige-2")[-1]


def test_without_the_program_setup_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(delays, "PROGRAM", tmp_path / "delay")
    with pytest.raises(CannotRunError, match=r"delay: is not there, .* run 'ci/setup'"):
        delays.probe()


@pytest.mark.parametrize(
    "said",
    [
        "iptables v1.8.9 (nf_tables): RULE_APPEND failed (No such file or directory): rule in"
        " chain OUTPUT",
        "delay: cannot go before others: Operation not permitted",
    ],
)
def test_what_the_kernel_does_not_have_is_one_sentence(monkeypatch, tmp_path, said):
    fake = tmp_path / "unshare"
    fake.write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(delays, "PROGRAM", fake)
    with pytest.raises(CannotRunError) as refused:
        delays.probe()
    assert str(refused.value).startswith("this kernel cannot delay packets for us: boot one with")
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
