"""A port at half rate is red by its healthy twin, a healthy one is not; real Slurm and ReFrame."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ci.testbed import network, topology_reading
from netproof.session import session

pytestmark = [pytest.mark.testbed, pytest.mark.usefixtures("testbed")]

ROOT = Path(__file__).resolve().parents[2]
SWITCH = topology_reading.load(ROOT / "ci/testbed/topology.yaml").switches[0]


def shape(node: str, mbps: int) -> None:
    """Give a node's end of its link another rate, with buckets of the same length in time."""
    bucket = SWITCH.shape.burst * mbps // SWITCH.link_mbps
    options = f"rate {mbps}mbit burst {bucket} limit {SWITCH.buffer} overhead 24".split()
    place = f"--net={network.NAMED_NAMESPACES / network.namespace(node)}"
    tc = ["tc", "qdisc", "replace", "dev", "eth1", "root", "tbf", *options]
    subprocess.run(["nsenter", place, *tc], check=True)


@pytest.fixture
def half_rate() -> Iterator[None]:
    """The cards of all nodes at half of their rate, whichever of them the job gets."""
    nodes = [node.name for node in SWITCH.nodes]
    for node in nodes:
        shape(node, SWITCH.link_mbps // 2)
    yield
    for node in nodes:
        shape(node, SWITCH.link_mbps)


def judged(run, folder: Path) -> session.CheckResult:
    """TCP in one direction between two nodes, as a run judged it."""
    run(
        folder,
        *("reframe", "--system", "testbed:gige", "-c", str(ROOT / "checks"), "-p", "mpich"),
        *("-S", "launches=1", "-S", "NetpipeJob.variants=tcp-inter-node-oneway"),
        *("-n", "NetpipeTcp.*inter-node.*oneway", "-r"),
    )
    (found,) = (
        result
        for result in session.load(folder / "run-0.json").results
        if result.kind == "check" and result.case.function == "tcp"
    )
    return found


@pytest.mark.nightly
def test_a_healthy_link_carries_what_its_twin_does(run, tmp_path):
    found = judged(run, tmp_path)
    measured = found.measured
    # Whoever disturbs every launch leaves it open.
    assert found.result == "pass" or found.reason.startswith("inconclusive"), found.reason
    assert all(launch.twin is not None for launch in measured.launches)


def test_a_link_at_half_rate_is_red_by_its_twin(run, tmp_path, half_rate):
    found = judged(run, tmp_path)
    assert (found.result, found.phase) == ("fail", "performance")
    assert "paired_share" in found.reason
    measured = found.measured
    assert len(measured.launches) > 1, "it was not measured again before it counted"
    assert 0.4 < measured.landmarks.paired_share < 0.7
