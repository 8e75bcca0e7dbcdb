"""A cluster unlike the testbed: domains, a greeting, limits, a dirty environment, a dead node."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from made_site import SMALL, settings_of

from ci.testbed.state import DEFAULT

pytestmark = [pytest.mark.testbed, pytest.mark.nightly]

ROOT = Path(__file__).resolve().parents[2]
SWITCH = "{link_mbps: 1000, mtu: 1500, buffer: 1000000, cpus: 4, nodes: %s}"
TOPOLOGY = f"""domain: cluster.example.org
prolog_prints: welcome
switches:
  gige: {SWITCH % "4, max_nodes: 3"}
  pair: {SWITCH % "2"}
"""
PATIENCE_S = 60


@pytest.fixture(scope="module")
def cluster(other_testbed, tmp_path_factory) -> None:
    """Bring this cluster up."""
    topology = tmp_path_factory.mktemp("unlike") / "topology.yaml"
    topology.write_text(TOPOLOGY)
    other_testbed(topology)


@pytest.fixture
def settings(cluster, tmp_path) -> dict[str, str]:
    """Of a command on this cluster, whose jobs may be requeued and get no environment."""
    settings = settings_of(tmp_path, **SMALL)
    site = tmp_path / "site" / "testbed.py"
    access = '    partition["access"] += ["--export=NONE", "--requeue"]\n'
    site.write_text(site.read_text() + access)
    return settings


def queue(run, folder: Path, *arguments: str) -> str:
    asked = ("squeue", "--noheader", "--partition=gige", *arguments)
    return run(folder, *asked).stdout.strip()


def lose_a_node(run, folder: Path) -> str:
    """Kill a node of the first job that runs, as a power supply does; its name."""
    end = time.monotonic() + PATIENCE_S
    while not (
        (found := queue(run, folder, "--states=RUNNING", "--format=%A %N %Z").split())
        and Path(found[2], "launches.tsv").exists()
    ):
        assert time.monotonic() < end, "no job began"
        time.sleep(0.2)
    job, nodes, _ = found
    *_, node = run(folder, "scontrol", "show", "hostnames", nodes).stdout.split()
    daemon = int((DEFAULT / "nodes" / node / "pid").read_text())
    subprocess.run(["kill", f"-{signal.SIGKILL}", str(daemon)], check=True)
    down = ("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=no power")
    assert run(folder, *down).returncode == 0
    # Slurm would wait for two minutes.
    while run(folder, "scontrol", "update", f"JobId={job}", "StartTime=now").returncode:
        assert time.monotonic() < end, "the job was not requeued"
        time.sleep(0.2)
    return node


def test_a_run_from_within_a_step_survives_all_of_it_and_names_the_dead_node(
    run, tmp_path, settings
):
    checks = ("-c", str(ROOT / "checks"), "-n", "NetpipeTcp|Pair.*", "-p", "mpich", "-r")
    reframe = ("reframe", "--system", "testbed:gige", "-S", "launches=2", *checks)
    dirty = "export SLURM_LABELIO=1 SLURM_UNBUFFEREDIO=1 PMIX_RANK=7; exec "
    within = ("srun", "--mpi=pmi2", "--partition=pair", "--nodes=1", "bash", "-c")
    with ThreadPoolExecutor() as beside:
        ran = beside.submit(run, tmp_path, *within, dirty + shlex.join(reframe), **settings)
        dead = lose_a_node(run, tmp_path)
        ran.result()
    said = run(tmp_path, "netproof", "verdict", "testbed:gige", "--format=json", **settings)
    verdict = json.loads(said.stdout)
    assert not [one for one in verdict["faults"] if "header" in one or "was to run on" in one]
    (covered,) = verdict["coverage"]
    assert "; a job can have 3: sbatch" in covered["sentence"]
    assert not covered["failed"]
    measured = [one for one in verdict["cases"] if one["benchmark"] == "netpipe"]
    assert len([one for one in measured if one["measured"]]) == 4
    found = run(tmp_path, "netproof", "diagnose", "testbed:gige", "--format=json", **settings)
    (gige,) = json.loads(found.stdout)["partitions"]
    assert gige["culprits"][0]["cause"] == "node died"
    assert gige["culprits"][0]["place"]["nodes"] == [dead]


def test_two_nodes_are_not_compared_and_make_no_run_inconclusive(run, tmp_path, settings):
    checks = ("-c", str(ROOT / "checks"), "-n", "Pair.*", "-p", "mpich", "-r")
    ran = run(tmp_path, "reframe", "--system", "testbed:pair", *checks, **settings)
    assert ran.returncode == 0, ran.stdout
    verdict = json.loads(
        run(tmp_path, "netproof", "verdict", "testbed:pair", "--format=json", **settings).stdout
    )
    (pairs,) = verdict["pairs"]
    assert {one["state"] for one in pairs["nodes"].values()} == {"not compared"}
    assert pairs["faults"] == []
    assert not [one for one in verdict["faults"] if "undecided" in one]
