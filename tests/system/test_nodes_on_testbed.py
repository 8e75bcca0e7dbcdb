"""Nodes that are not the same are named by the verdict, healthy ones are not; real Slurm."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ci.testbed import network

pytestmark = [pytest.mark.testbed, pytest.mark.usefixtures("testbed")]

ROOT = Path(__file__).resolve().parents[2]


def inside(node: str, *command: str) -> None:
    place = f"--net={network.NAMED_NAMESPACES / network.namespace(node)}"
    subprocess.run(["nsenter", place, *command], check=True, capture_output=True)


@pytest.fixture
def planted() -> Iterator[None]:
    """Another MTU on gige-4 and another sysctl on gige-3."""
    inside("gige-4", "ip", "link", "set", "eth1", "mtu", "1400")
    inside("gige-3", "sysctl", "-w", "net.ipv4.tcp_sack=0")
    yield
    inside("gige-4", "ip", "link", "set", "eth1", "mtu", "1500")
    inside("gige-3", "sysctl", "-w", "net.ipv4.tcp_sack=1")


def judged(run, folder: Path) -> dict[str, Any]:
    """What the verdict says of a run of all four nodes."""
    run(
        folder,
        *("reframe", "--system", "testbed:gige", "-c", str(ROOT / "checks"), "-p", "mpich"),
        *("-S", "launches=1", "-n", "ImbSendrecv.*ranks=4", "-r"),
    )
    verdict = ("netproof", "verdict", "run-0.json", "--system", "testbed:gige", "--json")
    return json.loads(run(folder, *verdict).stdout)


def test_healthy_nodes_are_the_same_and_all_are_measured(run, tmp_path):
    said = judged(run, tmp_path)
    assert said["nodes"] == []
    (covered,) = said["coverage"]
    assert covered["sentence"] == "gige: 4 of 4 usable nodes measured"
    assert covered["told"]
    assert covered["known"]


def test_another_mtu_and_another_sysctl_fail_in_a_sentence_each(run, tmp_path, planted):
    mtu = "gige: gige-4: MTU 1400, 3 others 1500, as the site's file says"
    if shutil.which("ping"):
        mtu += "; packets from gige-3 of 1500 bytes do not come through to it"
    said = judged(run, tmp_path)
    assert {one for one in said["faults"] if "gige-" in one} == {
        mtu,
        "gige: gige-3: sysctl net.ipv4.tcp_sack = 0, 3 others 1",
    }
    assert said["verdict"] == "fail"
