from pathlib import Path

import pytest

from ci.testbed import topology
from ci.testbed.topology import TopologyError

SWITCH = "{link_mbps: 1000, mtu: 1500, buffer: 1000000, nodes: 2, cpus: 4}"
FOLDER = Path(topology.__file__).parent


def read(tmp_path, text):
    file = tmp_path / "topology.yaml"
    file.write_text(text)
    return topology.load(file)


def test_the_default_has_gige_and_fast_ethernet_of_four_nodes_each():
    switches = topology.load(FOLDER / "topology.yaml").switches
    assert [(s.name, s.link_mbps, s.mtu, len(s.nodes)) for s in switches] == [
        ("gige", 1000, 1500, 4),
        ("fast-ethernet", 100, 1500, 4),
    ]


def test_a_sick_switch_differs_by_its_buffer_and_shape():
    healthy = topology.load(FOLDER / "topology.yaml").switches[0]
    sick = topology.load(FOLDER.parents[1] / "docs/criteria/sick-switch.yaml").switches[0]
    assert (sick.name, sick.link_mbps, sick.nodes) == ("gige", healthy.link_mbps, healthy.nodes)
    assert sick.buffer < healthy.buffer
    assert sick.shape == topology.Shape(burst=16384, port_burst=16384, offload=True)


def test_the_twin_of_a_sick_switch_is_healthy_and_on_a_network_of_its_own():
    healthy = topology.load(FOLDER / "topology.yaml")
    sick = topology.load(FOLDER.parents[1] / "docs/criteria/sick-switch.yaml")
    twin, like = sick.twins[0].healthy, healthy.twins[0].healthy
    assert (twin.shape, twin.buffer, twin.link_mbps, twin.mtu) == (
        *(healthy.switches[0].shape, healthy.switches[0].buffer),
        *(sick.switches[0].link_mbps, sick.switches[0].mtu),
    )
    assert twin == like
    assert [end.address for end in sick.twins[0].ends] == ["198.19.1.1", "198.19.1.2"]
    names = {node.name for node in (*healthy.nodes, *healthy.switches)}
    assert not names & {end.name for one in healthy.twins for end in one.ends}


def test_an_end_can_be_left_unshaped(tmp_path):
    shaped = SWITCH.replace("cpus: 4", "cpus: 4, shape: {burst: null, port_burst: 16384}")
    assert read(tmp_path, f"switches:\n  one: {shaped}\n").switches[0].shape == topology.Shape(
        burst=None, port_burst=16384, offload=False
    )


def test_a_third_switch_takes_one_line(tmp_path):
    lines = [f"  {name}: {SWITCH}" for name in ("one", "two", "three")]
    found = read(tmp_path, "switches:\n" + "\n".join(lines))
    assert [node.name for node in found.switches[2].nodes] == ["three-1", "three-2"]
    assert [node.address for node in found.switches[2].nodes] == ["198.18.3.1", "198.18.3.2"]


def test_no_address_and_no_name_is_used_twice(tmp_path):
    found = read(tmp_path, f"switches:\n  one: {SWITCH}\n  two: {SWITCH}\n")
    for attribute in ("name", "address", "management_address"):
        values = [getattr(node, attribute) for node in found.nodes]
        assert len(set(values)) == len(values)


def test_the_default_bucket_grows_with_the_rate_and_holds_a_frame_at_least():
    assert topology.default_shape(1000, 1500).burst > topology.default_shape(100, 1500).burst
    assert topology.default_shape(1, 9000).burst > 9000


@pytest.mark.parametrize(
    ("change", "line", "says"),
    [
        (("mtu: 1500", "mtu: 1500, colour: red"), 2, "colour: unknown key of switch one"),
        (("mtu: 1500, ", ""), 2, "switch one has no mtu"),
        (("mtu: 1500", "mtu: 100"), 2, "mtu: found 100; write a whole number from 576 to 9000"),
        (("mtu: 1500", "mtu: true"), 2, "mtu: found True"),
        (("1000000", "1MB"), 2, "buffer: found '1MB'"),
        (("1000000", "1000"), 2, "buffer: found 1000; write a whole number from 1514"),
        (("nodes: 2", "nodes: 1"), 2, "nodes: found 1; write a whole number from 2"),
        (("cpus: 4", "cpus: 4, shape: {bucket: 9}"), 2, "bucket: unknown key of shape"),
        (("cpus: 4", "cpus: 4, shape: {burst: 100}"), 2, "burst: found 100"),
        (("cpus: 4", "cpus: 4, shape: {offload: 1}"), 2, "offload: found 1; write true or false"),
        (("cpus: 4", "cpus: 4, shape: {burst: null, port_burst: null}"), 2, "both ends unshaped"),
        (("cpus: 4", "cpus: 4, shape: 7"), 2, "shape: must hold"),
        (("one:", "One:"), 2, "lower case"),
        (("one:", "a-very-long-switch:"), 2, "choose a shorter name"),
        (("switches:", "switch:"), 1, "switch: unknown key of the topology"),
        (("{link", "[link"), 2, "not valid YAML"),
    ],
)
def test_what_is_wrong_is_refused_with_file_line_and_remedy(tmp_path, change, line, says):
    text = f"switches:\n  one: {SWITCH}\n".replace(*change)
    with pytest.raises(TopologyError) as refused:
        read(tmp_path, text)
    assert str(refused.value).startswith(f"{tmp_path}/topology.yaml:{line}: ")
    assert says in str(refused.value)


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
        topology.load(tmp_path / "none.yaml")


def test_bytes_that_are_no_text_are_refused_by_name(tmp_path):
    file = tmp_path / "topology.yaml"
    file.write_bytes(b"switches: \xff\n")
    with pytest.raises(TopologyError, match=r"topology.yaml"):
        topology.load(file)


def test_an_unknown_node_is_refused_with_the_names_of_all():
    with pytest.raises(TopologyError, match=r"no node 'gige-9'.*gige-1 gige-2 .*fast-ethernet-4"):
        topology.load(FOLDER / "topology.yaml").node("gige-9")
