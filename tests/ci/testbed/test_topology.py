"""The switches of a testbed, their healthy twins, leaves and buckets."""

import pytest
from made_topologies import FOLDER, LEAVES, read

from ci.testbed import topology, topology_reading
from ci.testbed.topology import TopologyError


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
