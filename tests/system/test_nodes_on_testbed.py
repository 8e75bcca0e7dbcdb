"""A node that others hold is left out and named, and so is one with a firewall; real Slurm."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from made_site import SMALL, settings_of
from made_testbed import inside

pytestmark = [pytest.mark.testbed, pytest.mark.usefixtures("testbed"), pytest.mark.nightly]

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def judged(run, tmp_path):
    """``judged(partition, names)``: the verdict on a run with 10 s for nodes and for a figure.

    It has a job of one function on all four nodes.
    """
    impatient = {"wait_for_nodes_s": 10, "first_figure_s": 10, "crash_retries": 1}
    settings = settings_of(tmp_path, **SMALL, **impatient)
    settings["RFM_REPORT_FILE"] = str(tmp_path / "run-0.json")

    def judge(partition: str, names: str = "") -> dict[str, Any]:
        system = f"testbed:{partition}"
        checks = ("-c", str(ROOT / "checks"), "-n", f"{names}ImbSendrecv.*ranks=4", "-p", "mpich")
        few = ("-S", "launches=1", "-r")
        run(tmp_path, "reframe", "--system", system, *checks, *few, **settings)
        verdict = ("netproof", "verdict", "run-0.json", system, "--format=json")
        said: dict[str, Any] = json.loads(run(tmp_path, *verdict, **settings).stdout)
        return said

    return judge


@pytest.fixture
def held(run, tmp_path: Path) -> Iterator[None]:
    """fast-ethernet-3 with another job, longer than the run takes."""
    of_another = ("sbatch", "--parsable", "--exclusive", "-p", "fast-ethernet", "-o", "/dev/null")
    said = run(tmp_path, *of_another, "-w", "fast-ethernet-3", "--wrap", "sleep 600")
    assert said.returncode == 0, said.stderr
    yield
    run(tmp_path, "scancel", said.stdout.strip())


def test_a_busy_node_is_deferred_and_named_and_the_others_are_measured(judged, held):
    said = judged("fast-ethernet", "Pair|")
    (covered,) = said["coverage"]
    assert covered["waited_for"] == ["fast-ethernet-3"]
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


def test_a_firewall_on_a_node_is_named_and_what_waits_for_it_ends(run, tmp_path, judged, firewall):
    said = judged("gige")
    assert said["verdict"] == "fail"
    (named,) = (one for one in said["faults"] if "TCP" in one)
    assert named.startswith("gige: gige-2: answers no TCP connection of gige-1 and gige-3")
    diagnosed = run(tmp_path, "netproof", "diagnose", "run-0.json")
    assert "gige-2 (eth1): does not answer TCP connections" in diagnosed.stdout, diagnosed.stdout
    (job,) = (path.parent for path in tmp_path.rglob("MpiJob_*/*/launches.tsv"))
    errors = [path.read_text() for path in job.glob("*.err")]
    assert any("had no figure in 10 s" in one for one in errors)
