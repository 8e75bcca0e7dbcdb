"""Links as they should be, by topology and faults."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from made_cables import TREE, as_wanted, links, mbps, ordered
from made_programs import program
from made_topologies import SWITCH, read

from ci.testbed import cables, delays, mending, topology, topology_reading
from ci.testbed.delays import Line
from ci.testbed.errors import CannotRunError
from ci.testbed.faults import FaultError


def test_a_node_is_on_its_leaf_and_a_leaf_on_the_spine():
    found = links()
    assert found["tree-5"].far.bridge == "tree-leaf-2"
    ends = found["tree-leaf-2"].ends
    assert [end.bridge for end in ends] == ["tree-leaf-2", "tree-spine"]
    assert (mbps(found["tree-leaf-2"]), mbps(found["tree-5"])) == ((40, 40), (10, 10))
    names = {name for _, name in cables.bridges(TREE, {})}
    assert names == {"tree-spine", *(f"tree-leaf-{i}" for i in range(1, 5)), "twin-1"}


def test_a_share_of_the_rate_is_of_one_direction_or_both_of_one_link_and_a_buffer_of_all():
    healthy = links()
    for fault, expected in (
        ({"rate": 0.5}, (5, 5)),
        ({"send_rate": 0.1}, (1, 10)),
        ({"send_rate": 0.1, "receive_rate": 0.25}, (1, 2.5)),
    ):
        found = links({"tree-6": fault})
        assert mbps(found["tree-6"]) == expected
        assert {name for name in found if found[name] != healthy[name]} == {"tree-6"}
    found = links({"tree": {"buffer": 20000}})
    alike = {name for name in found if found[name] == healthy[name]}
    assert alike == {name for name in found if "twin" in name}
    limits = {end.bucket.limit for name in {*found} - alike for end in found[name].ends}
    assert (limits, len(alike)) == ({20000}, 2)


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


@pytest.mark.parametrize(
    "planted",
    [
        {"tree-1": {"rate": 0.5, "link": "down"}, "tree": {"mgmt_mbps": 5}},
        *({"tree-1": {key: value}} for key, value in (("send_rate", 0.01), ("loss", 0.002))),
        *({"tree-1": {key: value}} for key, value in (("mtu", 1400), ("link", "down"))),
        {"tree-leaf-2": {"rate": 0.5}},
        {"tree": {"buffer": 20000}},
    ],
)
def test_a_fault_that_is_not_there_is_reported_and_so_is_one_that_should_not_be(planted):
    wanted = cables.cables(TREE, planted)
    assert mending.differences(wanted, as_wanted())
    assert mending.differences(cables.cables(TREE, {}), as_wanted(planted))
    assert mending.differences(wanted, as_wanted(planted)) == []
    assert mending.orders(wanted, as_wanted(planted)) == {}


def test_lost_frames_are_of_both_directions_and_leave_with_the_filters():
    lines = ordered({"tree-1": {"loss": 0.25}})["netproof-switches"]
    assert lines[0] == "qdisc add dev tree-1 clsact"
    assert [line.split()[4] for line in lines[1:]] == ["ingress", "egress"]
    assert all(f",53 1 0 {2**30}," in line for line in lines[1:])
    assert ordered({}, {"tree-1": {"loss": 0.25}}) == {
        "netproof-switches": ["qdisc del dev tree-1 clsact"]
    }
    changed = ordered({"tree-1": {"loss": 0.5}}, {"tree-1": {"loss": 0.25}})["netproof-switches"]
    assert [line.split()[1] for line in changed[:2]] == ["del", "add"]
    # Output of tc -json filter show on such a filter.
    numbers = [(32, 0, 0, 4294963256), (53, 1, 0, 42949672), (6, 0, 0, 2), (6, 0, 0, 0)]
    own = [dict(zip(("code", "jt", "jf", "k"), one, strict=True)) for one in numbers]
    assert mending.odds({"length": 4, "insns": own}) == 42949672
    for insns in ([*own[:3], own[2]], own[:1]):
        assert mending.odds({"length": len(insns), "insns": insns}) is None
    assert mending.odds({}) is mending.odds(None) is None


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


def test_a_switch_s_line_is_that_of_its_nodes_and_what_a_node_says_goes_before():
    planted = {"gige": {"delay": 100, "buffer": 20000}, "gige-2": {"delay": 0, "jitter": 5}}
    others = {f"gige-{number}": Line(delay=100) for number in (1, 3, 4)}
    assert delays.lines(TWO, planted) == {**others, "gige-2": Line(delay=0, jitter=5)}


def test_reordering_where_nothing_waits_is_refused():
    with pytest.raises(FaultError, match="gige-1: reorder lets packets overtake those that wait"):
        delays.lines(TWO, {"gige-1": {"reorder": 0.01, "delay": 0}})
    found = delays.lines(TWO, {"gige": {"batch": 50}, "gige-1": {"reorder": 0.01}})
    assert found["gige-1"] == Line(batch=50, reorder=10_000)


def test_the_program_gets_the_same_draws_for_a_node_each_time(monkeypatch, tmp_path):
    line = Line(delay=100, jitter=20, batch=50, reorder=10_000)
    first = line.command("gige-1")
    assert first == line.command("gige-1")
    assert first[1:-1] == ["7", "100", "20", "50", "10000"]
    assert first[-1] != line.command("gige-2")[-1]
    monkeypatch.setattr(delays, "PROGRAM", tmp_path / "delay")
    with pytest.raises(CannotRunError, match=r"delay: is not there, .* run 'ci/setup'"):
        delays.probe()


def test_what_the_kernel_does_not_have_is_one_sentence(monkeypatch, tmp_path):
    fake = program(tmp_path / "unshare", "echo 'iptables: RULE_APPEND failed' >&2\nexit 1")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(delays, "PROGRAM", fake)
    with pytest.raises(CannotRunError, match=r"^this kernel cannot delay packets for us: boot one"):
        delays.probe()
