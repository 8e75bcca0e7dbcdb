"""A topology file is read, or refused with its line and the remedy."""

from pathlib import Path

import pytest
from made_topologies import FOLDER, LEAVES, SWITCH, read

from ci.testbed import slurm, topology, topology_reading
from ci.testbed.state import StateFolder
from ci.testbed.topology import TopologyError


def test_no_address_and_no_name_is_used_twice(tmp_path):
    found = read(tmp_path, f"switches:\n  one: {SWITCH}\n  two: {SWITCH}\n")
    for attribute in ("name", "address", "management_address"):
        values = [getattr(node, attribute) for node in found.nodes]
        assert len(set(values)) == len(values)


@pytest.mark.parametrize(
    ("change", "line", "says"),
    [
        (
            ("mtu: 1500", "mtu: 1500, colour: red"),
            2,
            "colour: unknown key; the keys are buffer, cpus, faults",
        ),
        (("mtu: 1500, ", ""), 2, "mtu: is missing"),
        (("mtu: 1500", "mtu: 100"), 2, "mtu: found 100; it should be greater than or equal to 576"),
        (("mtu: 1500", "mtu: true"), 2, "mtu: found True"),
        (("1000000", "1MB"), 2, "buffer: found '1MB'"),
        (("1000000", "1000"), 2, "buffer: found 1000; write at least 1514, a frame"),
        (("nodes: 2", "nodes: 1"), 2, "nodes: found 1; it should be greater than or equal to 2"),
        (
            ("cpus: 4", "cpus: 4, shape: {bucket: 9}"),
            2,
            "bucket: unknown key; the keys are burst, offload",
        ),
        (("cpus: 4", "cpus: 4, shape: {burst: 100}"), 2, "burst: found 100"),
        (
            ("cpus: 4", "cpus: 4, shape: {offload: 1}"),
            2,
            "offload: found 1; it should be a valid boolean",
        ),
        (("cpus: 4", "cpus: 4, shape: {burst: null, port_burst: null}"), 2, "both ends unshaped"),
        (("cpus: 4", "cpus: 4, shape: 7"), 2, "shape: found 7; it should hold keys"),
        (("one:", "One:"), 2, "lower case"),
        (("one:", "a-very-long-switch:"), 2, "choose a shorter name"),
        (("switches:", "switch:"), 1, "switch: unknown key; the keys are domain, prolog_prints"),
        (("{link", "[link"), 2, "not valid YAML"),
    ],
)
def test_what_is_wrong_is_refused_with_file_line_and_remedy(tmp_path, change, line, says):
    text = f"switches:\n  one: {SWITCH}\n".replace(*change)
    with pytest.raises(TopologyError) as refused:
        read(tmp_path, text)
    assert str(refused.value).startswith(f"{tmp_path}/topology.yaml:{line}: ")
    assert says in str(refused.value)


def test_nodes_are_spread_over_the_leaves_in_their_order(tmp_path):
    (switch,) = read(tmp_path, f"switches:\n  one: {LEAVES}\n").switches
    assert [(leaf.name, [node.name for node in leaf.nodes]) for leaf in switch.leaves] == [
        ("one-leaf-1", ["one-1", "one-2", "one-3"]),
        ("one-leaf-2", ["one-4", "one-5", "one-6"]),
        ("one-leaf-3", ["one-7", "one-8", "one-9", "one-10"]),
    ]
    assert (switch.spine, switch.uplink_mbps) == ("one-spine", 400)
    assert (switch.uplink.link_mbps, switch.uplink.shape) == (
        400,
        topology.default_shape(400, 1500),
    )
    assert switch.nodes[-1].address == "198.18.1.10"


def test_faults_of_nodes_leaves_and_the_switch_are_kept_by_place(tmp_path):
    faults = (
        "faults: {one: {buffer: 20000, mgmt_mbps: 50}, one-leaf-2: {rate: 0.5},"
        " one-3: {loss: 0.005, mtu: 1400, busy_cpus: 2, link: down, net.ipv4.tcp_sack: 0}}"
    )
    found = read(tmp_path, f"switches:\n  one: {LEAVES.replace('cpus: 4', f'cpus: 4, {faults}')}\n")
    assert found.faults == {
        "one": {"buffer": 20000, "mgmt_mbps": 50},
        "one-leaf-2": {"rate": 0.5},
        "one-3": {
            "loss": 0.005,
            "mtu": 1400,
            "busy_cpus": 2,
            "link": "down",
            "net.ipv4.tcp_sack": "0",
        },
    }
    planted = found.with_switch_faults(found.faults).switches[0]
    assert (planted.buffer, planted.mgmt_mbps) == (20000, 50)
    assert (found.switches[0].buffer, found.switches[0].mgmt_mbps) == (1000000, None)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("leaves: 3", "leaves: 6"), "leaves: found 6, which take at least 12 nodes"),
        (("leaves: 3", "leaves: 1"), "leaves: found 1"),
        (("nodes: 10", "nodes: 3"), "found 3, which take at least 6 nodes"),
        ((", uplink_mbps: 400", ""), "leaves: leaves and uplink_mbps go together"),
        (("leaves: 3, ", ""), "uplink_mbps: leaves and uplink_mbps go together"),
        (("uplink_mbps: 400", "uplink_mbps: fast"), "uplink_mbps: found 'fast'"),
        (("cpus: 4", "cpus: 4, mgmt_mbps: 0"), "mgmt_mbps: found 0"),
        (("cpus: 4", "cpus: 4, rails: 3"), "rails: found 3; it should be less than or equal to 2"),
        (("cpus: 4", "cpus: 4, rails: 2"), "rails: a switch with leaves has one rail"),
        (("one:", "switch-nine:"), "makes the name switch-nine-leaf-3, longer than the 15"),
        (("cpus: 4", "cpus: 4, faults: 7"), "faults: found 7; it should be a valid dictionary"),
        (("cpus: 4", "cpus: 4, faults: {two-1: {rate: 0.5}}"), "two-1: no node or leaf of one"),
        (("cpus: 4", "cpus: 4, faults: {one-1: {}}"), "one-1: must hold at least one fault"),
        (("cpus: 4", "cpus: 4, faults: {one-1: {rate: 2}}"), "rate: found 2"),
        (("cpus: 4", "cpus: 4, faults: {one-1: {colour: 2}}"), "colour: no fault of a node"),
        (("cpus: 4", "cpus: 4, faults: {one-1: {mtu: 1500}}"), "is the switch's own"),
        (
            ("cpus: 4", "cpus: 4, faults: {one: {buffer: 1000}}"),
            "buffer: found 1000; write at least",
        ),
        (
            ("cpus: 4", "cpus: 4, faults: {one-1: {rate: 0.5, send_rate: 0.5}}"),
            "rate is of both directions",
        ),
    ],
)
def test_wrong_leaves_and_faults_are_refused_with_file_and_line(tmp_path, change, says):
    text = f"switches:\n  one: {LEAVES}\n"
    assert change[0] in text
    with pytest.raises(TopologyError) as refused:
        read(tmp_path, text.replace(*change))
    assert str(refused.value).startswith(f"{tmp_path}/topology.yaml:2: ")
    assert says in str(refused.value)


def test_a_node_that_is_called_like_a_leaf_is_refused(tmp_path):
    with pytest.raises(TopologyError, match=r"topology.yaml:3: .* has the name that one uses"):
        read(tmp_path, f"switches:\n  one: {LEAVES}\n  one-leaf: {SWITCH}\n")


@pytest.mark.parametrize("text", ["", "7\n", "switches:\n", "switches: []\n", "switches: {}\n"])
def test_a_file_without_switches_is_refused(tmp_path, text):
    with pytest.raises(TopologyError, match=r"topology.yaml:1: "):
        read(tmp_path, text)


def test_two_switches_of_one_name_are_refused(tmp_path):
    with pytest.raises(TopologyError, match="duplicate key"):
        read(tmp_path, f"switches:\n  one: {SWITCH}\n  one: {SWITCH}\n")


def test_a_switch_that_is_called_like_a_node_is_refused(tmp_path):
    with pytest.raises(TopologyError, match=r"topology.yaml:2: one: its node one-1"):
        read(tmp_path, f"switches:\n  one: {SWITCH}\n  one-1: {SWITCH}\n")


def test_more_nodes_than_there_are_addresses_are_refused(tmp_path):
    many = SWITCH.replace("nodes: 2", "nodes: 64")
    lines = [f"  {name}: {many}" for name in "abcd"]
    with pytest.raises(TopologyError, match=r"topology.yaml:5: d: makes more than 200 nodes"):
        read(tmp_path, "switches:\n" + "\n".join(lines))


def test_a_file_that_is_not_there_is_refused_by_name(tmp_path):
    with pytest.raises(TopologyError, match=r"none.yaml: cannot read the topology"):
        topology_reading.load(tmp_path / "none.yaml")


def test_bytes_that_are_no_text_are_refused_by_name(tmp_path):
    file = tmp_path / "topology.yaml"
    file.write_bytes(b"switches: \xff\n")
    with pytest.raises(TopologyError, match=r"topology.yaml"):
        topology_reading.load(file)


def test_a_domain_a_greeting_and_a_limit_of_nodes_reach_slurms_files(tmp_path):
    limited = SWITCH.replace("cpus: 4", "cpus: 4, max_nodes: 1")
    text = f"domain: example.org\nprolog_prints: welcome\nswitches:\n  one: {limited}\n"
    found = read(tmp_path, text)
    assert found.hostname(found.nodes[0]) == "one-1.example.org"
    assert "198.18.1.1 one-1.example.org one-1" in slurm.hosts(found, "machine").splitlines()
    configuration = slurm.configuration(found, StateFolder(Path("/tmp/tb")), "machine", 1000)
    assert "MaxNodes=1" in configuration
    assert "echo 'print welcome'" in slurm.task_prolog([0], found.prolog_prints)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("domain: Example org", "1: domain: found 'Example org'"),
        ("domain: 7", "1: domain: found 7"),
        ('prolog_prints: "it\'s"', "1: prolog_prints: found"),
    ],
)
def test_a_domain_or_greeting_that_cannot_be_is_refused(tmp_path, line, says):
    with pytest.raises(TopologyError, match=says):
        read(tmp_path, f"{line}\nswitches:\n  one: {SWITCH}\n")


# The switches of a testbed, their healthy twins, leaves and buckets.


def test_a_sick_switch_differs_by_its_buffer_and_shape():
    healthy = topology_reading.load(FOLDER / "topology.yaml").switches[0]
    sick = topology_reading.load(FOLDER.parents[1] / "docs/criteria/sick-switch.yaml").switches[0]
    assert (sick.name, sick.link_mbps, sick.nodes) == ("gige", healthy.link_mbps, healthy.nodes)
    assert sick.buffer < healthy.buffer
    assert sick.shape == topology.Shape(burst=16384, port_burst=16384, offload=True)


def test_the_twin_of_a_sick_switch_is_healthy_and_on_a_network_of_its_own():
    healthy = topology_reading.load(FOLDER / "topology.yaml")
    sick = topology_reading.load(FOLDER.parents[1] / "docs/criteria/sick-switch.yaml")
    twin, like = sick.twins[0].healthy, healthy.twins[0].healthy
    assert (twin.shape, twin.buffer, twin.link_mbps, twin.mtu) == (
        *(healthy.switches[0].shape, healthy.switches[0].buffer),
        *(sick.switches[0].link_mbps, sick.switches[0].mtu),
    )
    assert twin == like
    assert [end.address for end in sick.twins[0].ends] == ["198.19.1.1", "198.19.1.2"]
    names = {node.name for node in (*healthy.nodes, *healthy.switches)}
    assert not names & {end.name for one in healthy.twins for end in one.ends}


def test_the_twin_of_a_switch_with_leaves_is_one_link(tmp_path):
    faults = "faults: {one-leaf-1: {rate: 0.5}, one: {mgmt_mbps: 10}}"
    text = f"switches:\n  one: {LEAVES.replace('cpus: 4', f'cpus: 4, mgmt_mbps: 50, {faults}')}\n"
    twin = read(tmp_path, text).twins[0].healthy
    assert (twin.leaves, twin.uplink_mbps, twin.mgmt_mbps, twin.link_mbps) == ((), None, None, 1000)


def test_what_comes_with_the_testbed_has_64_nodes_and_four_leaves():
    (wide,) = topology_reading.load(FOLDER / "wide.yaml").switches
    assert (len(wide.nodes), wide.link_mbps, wide.leaves) == (64, 10, ())
    (tree,) = topology_reading.load(FOLDER / "leaves.yaml").switches
    assert [len(leaf.nodes) for leaf in tree.leaves] == [4, 4, 4, 4]
    # All nodes of a leaf can send over its uplink.
    assert tree.uplink_mbps == 4 * tree.link_mbps
    (rails,) = topology_reading.load(FOLDER / "rails.yaml").switches
    assert (rails.rails, [node.rail_address for node in rails.nodes]) == (
        2,
        ["198.18.101.1", "198.18.101.2"],
    )


def test_an_unknown_node_is_refused_with_the_names_of_all():
    with pytest.raises(TopologyError, match=r"no node 'gige-9'.*gige-1 gige-2 .*fast-ethernet-4"):
        topology_reading.load(FOLDER / "topology.yaml").node("gige-9")
