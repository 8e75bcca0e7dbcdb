import subprocess
from pathlib import Path

import pytest

from ci.testbed import slurm, topology, topology_reading
from ci.testbed.state import StateFolder

DEFAULT = topology_reading.load(Path(topology.__file__).with_name("topology.yaml"))


@pytest.fixture
def settings(tmp_path):
    text = slurm.configuration(DEFAULT, StateFolder(Path("/tmp/tb")), "machine", 1000)
    return text.splitlines()


def values(settings, key):
    return [line.partition("=")[2] for line in settings if line.startswith(f"{key}=")]


def test_each_switch_is_a_partition_of_its_name_and_the_first_is_the_default(settings):
    first, second = values(settings, "PartitionName")
    assert first.startswith("gige Nodes=gige-1,gige-2,gige-3,gige-4 Default=YES")
    assert second.startswith("fast-ethernet Nodes=fast-ethernet-1,")
    assert "Default=NO" in second


def test_slurm_talks_over_the_management_network_and_never_over_a_switch(settings):
    switch_addresses = {node.address for node in DEFAULT.nodes}
    assert not any(address in line for line in settings for address in switch_addresses)
    assert values(settings, "SlurmctldHost") == ["machine(198.18.0.254)"]


def test_leaves_and_spine_are_slurms_tree_and_another_switch_is_a_leaf_of_its_own(tmp_path):
    leaves = Path(topology.__file__).with_name("leaves.yaml").read_text()
    other = "  gige: {link_mbps: 1000, mtu: 1500, buffer: 1000000, nodes: 2, cpus: 4}\n"
    (tmp_path / "topology.yaml").write_text(leaves + other)
    both = topology_reading.load(tmp_path / "topology.yaml")
    text = slurm.configuration(both, StateFolder(Path("/tmp/tb")), "machine", 1000)
    assert values(text.splitlines(), "TopologyPlugin") == ["topology/tree"]
    lines = slurm.tree(both).splitlines()
    assert lines[0] == "SwitchName=tree-leaf-1 Nodes=tree-1,tree-2,tree-3,tree-4"
    assert lines[4] == (
        "SwitchName=tree-spine Switches=tree-leaf-1,tree-leaf-2,tree-leaf-3,tree-leaf-4"
    )
    assert lines[5:] == ["SwitchName=gige Nodes=gige-1,gige-2"]


def test_a_nodes_name_stands_for_its_address_on_the_switch():
    lines = slurm.hosts(DEFAULT, "machine").splitlines()
    assert "198.18.1.2 gige-2" in lines
    assert "198.18.2.4 fast-ethernet-4" in lines


@pytest.mark.parametrize(("rank", "cpu"), [(0, 2), (1, 5), (2, 2), (3, 5)])
def test_neighbouring_ranks_are_bound_to_different_cpus(tmp_path, rank, cpu):
    (tmp_path / "taskset").write_text('#!/bin/sh\necho "$@" >"$SAID"\n')
    (tmp_path / "taskset").chmod(0o755)
    environment = {
        "PATH": f"{tmp_path}:/usr/bin:/bin",
        "SAID": str(tmp_path / "said"),
        "SLURM_PROCID": str(rank),
        "SLURM_STEP_ID": "0",
    }
    script = slurm.task_prolog([2, 5])
    subprocess.run(["sh"], input=script, text=True, env=environment, check=True)
    assert (tmp_path / "said").read_text().split()[:3] == ["--cpu-list", "--pid", str(cpu)]
