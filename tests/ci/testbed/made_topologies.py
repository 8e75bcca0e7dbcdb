"""Topology files that tests make."""

from pathlib import Path

from ci.testbed import topology, topology_reading

SWITCH = "{link_mbps: 1000, mtu: 1500, buffer: 1000000, nodes: 2, cpus: 4}"
FOLDER = Path(topology.__file__).parent


def read(tmp_path, text):
    file = tmp_path / "topology.yaml"
    file.write_text(text)
    return topology_reading.load(file)


LEAVES = SWITCH.replace("nodes: 2", "nodes: 10, leaves: 3, uplink_mbps: 400")
