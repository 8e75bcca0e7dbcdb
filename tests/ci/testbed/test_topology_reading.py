"""A topology file is read, or refused with its line and the remedy."""

import pytest
from made_topologies import FOLDER, LEAVES, SWITCH, read

from ci.testbed import topology, topology_reading
from ci.testbed.topology import TopologyError


def test_no_address_and_no_name_is_used_twice(tmp_path):
    found = read(tmp_path, f"switches:\n  one: {SWITCH}\n  two: {SWITCH}\n")
    for attribute in ("name", "address", "management_address"):
        values = [getattr(node, attribute) for node in found.nodes]
        assert len(set(values)) == len(values)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("mtu: 1500", "mtu: 1500, colour: red", "colour: unknown key; the keys are buffer, cpus"),
        ("mtu: 1500, ", "", "mtu: is missing"),
        ("mtu: 1500", "mtu: 100", "mtu: found 100; it should be greater than or equal to 576"),
        ("mtu: 1500", "mtu: true", "mtu: found True"),
        ("1000000", "1MB", "buffer: found '1MB'"),
        ("1000000", "1000", "buffer: found 1000; write at least 1514, a frame"),
        ("nodes: 2", "nodes: 1", "nodes: found 1; it should be greater than or equal to 2"),
        ("cpus: 4", "cpus: 4, shape: {bucket: 9}", "bucket: unknown key; the keys are burst"),
        ("cpus: 4", "cpus: 4, shape: {burst: 100}", "burst: found 100"),
        ("cpus: 4", "cpus: 4, shape: {offload: 1}", "offload: found 1; it should be a valid bool"),
        ("cpus: 4", "cpus: 4, shape: {burst: null, port_burst: null}", "both ends unshaped"),
        ("cpus: 4", "cpus: 4, shape: 7", "shape: found 7; it should hold keys"),
        ("one:", "One:", "lower case"),
        ("one:", "a-very-long-switch:", "choose a shorter name"),
        ("switches:", "switch:", "switch: unknown key; the keys are switches"),
        ("{link", "[link", "not valid YAML"),
        # Leaves and faults.
        ("leaves: 3", "leaves: 6", "leaves: found 6, which take at least 12 nodes"),
        ("leaves: 3", "leaves: 1", "leaves: found 1"),
        (", uplink_mbps: 400", "", "leaves: leaves and uplink_mbps go together"),
        ("uplink_mbps: 400", "uplink_mbps: fast", "uplink_mbps: found 'fast'"),
        ("cpus: 4", "cpus: 4, mgmt_mbps: 0", "mgmt_mbps: found 0"),
        ("cpus: 4", "cpus: 4, rails: 3", "rails: found 3; it should be less than or equal to 2"),
        (", uplink", ", rails: 2, uplink", "rails: a switch with leaves has one rail"),
        (
            "one: {link_mbps: 1000, mtu: 1500, buffer: 1000000, nodes: 10",
            "switch-nine: {link_mbps: 1000, mtu: 1500, buffer: 1000000, nodes: 10",
            "makes the name switch-nine-leaf-3, longer than the 15",
        ),
        *(
            ("cpus: 4", f"cpus: 4, faults: {faults}", says)
            for faults, says in (
                ("7", "faults: found 7; it should be a valid dictionary"),
                ("{two-1: {rate: 0.5}}", "two-1: no node or leaf of one"),
                ("{one-1: {}}", "one-1: must hold at least one fault"),
                ("{one-1: {rate: 2}}", "rate: found 2"),
                ("{one-1: {colour: 2}}", "colour: no fault of a node"),
                ("{one-1: {mtu: 1500}}", "is the switch's own"),
                ("{one: {buffer: 1000}}", "buffer: found 1000; write at least"),
                ("{one-1: {rate: 0.5, send_rate: 0.5}}", "rate is of both directions"),
                ("{one-2: {reorder: 0.1}}", "faults: one-2: reorder lets"),
            )
        ),
    ],
)
def test_what_is_wrong_is_refused_with_file_line_and_remedy(tmp_path, old, new, says):
    plain, leaves = (f"switches:\n  one: {switch}\n" for switch in (SWITCH, LEAVES))
    text = plain if old in plain else leaves
    assert old in text
    with pytest.raises(TopologyError) as refused:
        read(tmp_path, text.replace(old, new))
    line = 1 if new == "switch:" else 2
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


MANY, ONE = SWITCH.replace("nodes: 2", "nodes: 64"), f"switches:\n  one: {SWITCH}\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        *((text, ":1: ") for text in ("", "7\n", "switches:\n", "switches: []\n")),
        (f"switches:\n  one: {LEAVES}\n  one-leaf: {SWITCH}\n", ":3: .* the name that one uses"),
        (f"switches:\n  one: {SWITCH}\n  one: {SWITCH}\n", "duplicate key"),
        (f"switches:\n  one: {SWITCH}\n  one-1: {SWITCH}\n", ":2: one: its node one-1"),
        (
            "switches:\n" + "".join(f"  {name}: {MANY}\n" for name in "abcd"),
            ":5: d: makes more than 200 nodes",
        ),
    ],
)
def test_a_file_of_no_usable_switches_is_refused(tmp_path, text, says):
    with pytest.raises(TopologyError, match=f"topology.yaml{says}" if says[0] == ":" else says):
        read(tmp_path, text)


def test_a_file_that_cannot_be_read_is_refused_by_name(tmp_path):
    with pytest.raises(TopologyError, match=r"none.yaml: cannot read the topology"):
        topology_reading.load(tmp_path / "none.yaml")
    file = tmp_path / "topology.yaml"
    file.write_bytes(b"switches: \xff\n")
    with pytest.raises(TopologyError, match=r"topology.yaml"):
        topology_reading.load(file)


# The switches of a testbed, their healthy twins, leaves and buckets.


def test_a_sick_switch_has_a_healthy_twin_on_a_network_of_its_own():
    healthy = topology_reading.load(FOLDER / "topology.yaml")
    sick = topology_reading.load(FOLDER.parents[1] / "docs/criteria/sick-switch.yaml")
    good, bad, twin = healthy.switches[0], sick.switches[0], sick.twins[0].healthy
    assert (bad.name, bad.link_mbps, bad.nodes) == ("gige", good.link_mbps, good.nodes)
    assert bad.buffer < good.buffer
    assert bad.shape == topology.Shape(burst=16384, port_burst=16384, offload=True)
    assert twin == healthy.twins[0].healthy
    assert (twin.shape, twin.buffer, twin.mtu) == (good.shape, good.buffer, bad.mtu)
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
