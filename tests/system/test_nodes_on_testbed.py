"""Nodes that are not the same are named by the verdict, healthy ones are not; real Slurm."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from made_site import SMALL
from made_testbed import inside

pytestmark = [pytest.mark.testbed, pytest.mark.usefixtures("testbed")]

ROOT = Path(__file__).resolve().parents[2]


SENDRECV = ("-n", "ImbSendrecv.*ranks=4", "-S", "ImbJob.functions=Sendrecv")
"""A job of one function on all four nodes."""


@pytest.fixture
def planted() -> Iterator[None]:
    """Another MTU on gige-4 and another sysctl on gige-3."""
    inside("gige-4", "ip", "link", "set", "eth1", "mtu", "1400")
    inside("gige-3", "sysctl", "-w", "net.ipv4.tcp_sack=0")
    yield
    inside("gige-4", "ip", "link", "set", "eth1", "mtu", "1500")
    inside("gige-3", "sysctl", "-w", "net.ipv4.tcp_sack=1")


def judged(run, folder: Path, **environment: str) -> dict[str, Any]:
    """What the verdict says of a run of all four nodes."""
    run(
        folder,
        *("reframe", "--system", "testbed:gige", "-c", str(ROOT / "checks"), "-p", "mpich"),
        *("-S", "launches=1", *SENDRECV, "-r"),
        **environment,
    )
    verdict = ("netproof", "verdict", "run-0.json", "testbed:gige", "--format=json")
    return json.loads(run(folder, *verdict).stdout)


def test_healthy_nodes_are_the_same_and_all_are_measured(run, tmp_path):
    said = judged(run, tmp_path)
    assert said["nodes"] == []
    (covered,) = said["coverage"]
    assert covered["sentence"] == "gige: 4 of 4 usable nodes measured"
    assert covered["asked"]
    assert covered["known"]


@pytest.mark.nightly
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


IMPATIENT_SITE = """import runpy
site_configuration = runpy.run_path("SITE")["site_configuration"]
for partition in site_configuration["systems"][0]["partitions"]:
    partition["extras"] |= SMALL | {"wait_for_nodes_s": 10, "first_figure_s": 10}
    partition["extras"]["crash_retries"] = 1
"""


@pytest.fixture
def impatient(tmp_path: Path) -> str:
    """The testbed's configuration, with 10 s for nodes that others hold, and for a figure."""
    folder = Path(shutil.copytree(ROOT / "site-config", tmp_path / "site"))
    (folder / "testbed.py").write_text(
        IMPATIENT_SITE.replace("SITE", str(ROOT / "site-config" / "testbed.py")).replace(
            "SMALL", repr(SMALL)
        )
    )
    return str(folder)


@pytest.fixture
def held(run, tmp_path: Path) -> Iterator[None]:
    """fast-ethernet-3 with another job, longer than the run takes."""
    of_another = ("sbatch", "--parsable", "--exclusive", "-p", "fast-ethernet", "-o", "/dev/null")
    said = run(tmp_path, *of_another, "-w", "fast-ethernet-3", "--wrap", "sleep 600")
    assert said.returncode == 0, said.stderr
    yield
    run(tmp_path, "scancel", said.stdout.strip())


@pytest.mark.nightly
def test_a_busy_node_is_deferred_and_named_and_the_others_are_measured(
    run, tmp_path, impatient, held
):
    switch = "testbed:fast-ethernet"
    selected = ("-p", "mpich", "-S", "launches=1", "-n", f"Pair|{SENDRECV[1]}", *SENDRECV[2:], "-r")
    checks = ("-c", str(ROOT / "checks"))
    ran = run(
        tmp_path, "reframe", "--system", switch, *checks, *selected, RFM_CONFIG_PATH=impatient
    )
    verdict = ("netproof", "verdict", "run-0.json", switch, "--format=json")
    said = json.loads(run(tmp_path, *verdict, RFM_CONFIG_PATH=impatient).stdout)
    (covered,) = said["coverage"]
    assert covered["waited_for"] == ["fast-ethernet-3"], ran.stdout
    assert len(covered["measured"]) == 3
    assert (covered["failed"], covered["short"]) == (False, True)
    (left,) = said["skipped"]
    assert not left["planned"]
    assert left["why"].startswith("Slurm gave it no 4 nodes in ")
    assert left["why"].endswith("other jobs held fast-ethernet-3")
    assert {case["function"] for case in left["cases"]} >= {"Sendrecv"}


@pytest.fixture
def firewall() -> Iterator[None]:
    """gige-2 drops whoever asks it for a TCP connection over the switch."""
    rule = ("INPUT", "-i", "eth1", "-p", "tcp", "--syn", "-j", "DROP")
    inside("gige-2", "iptables", "-A", *rule)
    yield
    inside("gige-2", "iptables", "-D", *rule)


@pytest.mark.nightly
def test_a_firewall_on_a_node_is_named_and_what_waits_for_it_ends(
    run, tmp_path, impatient, firewall
):
    said = judged(run, tmp_path, RFM_CONFIG_PATH=impatient)
    assert said["verdict"] == "fail"
    (named,) = (one for one in said["faults"] if "TCP" in one)
    assert named.startswith("gige: gige-2: answers no TCP connection of gige-1 and gige-3")
    diagnosed = run(tmp_path, "netproof", "diagnose", "run-0.json")
    assert "gige-2 (eth1): does not answer TCP connections" in diagnosed.stdout, diagnosed.stdout
    (job,) = (path.parent for path in tmp_path.rglob("ImbJob_*/*/launches.tsv"))
    errors = [path.read_text() for path in job.glob("*.err")]
    assert any("had no figure in 10 s" in one for one in errors)
