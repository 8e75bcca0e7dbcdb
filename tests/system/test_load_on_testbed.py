"""A network under load on the testbed: what crosses an uplink that others fill waits for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from made_site import settings_of

pytestmark = [pytest.mark.testbed, pytest.mark.nightly]

ROOT = Path(__file__).resolve().parents[2]

TOPOLOGY = """switches:
  tree:
    link_mbps: 10
    mtu: 1500
    buffer: 1000000
    nodes: 8
    cpus: 4
    leaves: 2
    uplink_mbps: 10
"""
"""Two leaves of four nodes, whose uplink carries what one node can send."""

COMMAND = (
    *("netproof", "measure", "load", "testbed:tree", "--environment", "mpich"),
    *("--victims", "bandwidth", "--aggressors", "one-to-one", "--rounds", "3"),
)


@pytest.fixture(scope="module")
def shared_uplink(other_testbed, tmp_path_factory) -> None:
    file = tmp_path_factory.mktemp("topology") / "shared-uplink.yaml"
    file.write_text(TOPOLOGY)
    other_testbed(file)


@pytest.fixture
def settings(shared_uplink, tmp_path) -> dict[str, str]:
    """Of a command on a site that has this testbed, which reports into ``tmp_path``."""
    return settings_of(tmp_path, load={"repetitions": 8, "most": 1.05})


def test_crossing_a_shared_uplink_costs_far_more_than_staying_within_a_leaf(
    run, settings, tmp_path
):
    ran = run(tmp_path, *COMMAND, "--format=json", **settings)
    # Crossing the uplink is beyond a bound that a sound network keeps.
    assert ran.returncode == 1, ran.stdout + ran.stderr
    (session,) = json.loads(ran.stdout)["load"]
    assert len(session["nodes"]) == 8
    by_place = {one["where"]: one for one in session["factors"]}
    for one in by_place.values():
        assert (one["rounds"], one["refused"]) == (3, [])
        assert one["99th percentile"]["value"] is None
    across, within = by_place["across leaves"], by_place["within a leaf"]
    assert across["median"]["value"] > 2 * within["median"]["value"]
    assert across["mean"]["side"] == "beyond"
    # On a busy machine three rounds may be too few to name it; nothing else may be named.
    assert {cause["kind"] for cause in session["causes"]} <= {"uplinks oversubscribed"}
    (kept,) = (tmp_path / "load").glob("run-tree-*.json")
    # No verdict takes it for an acceptance run.
    assert not list(tmp_path.glob("run-*.json"))
    again = run(tmp_path, "netproof", "measure", "load", str(kept), "--format=json", **settings)
    assert (again.returncode, again.stdout) == (1, ran.stdout)


def test_three_usable_nodes_are_refused_and_no_job_is_made(run, settings, tmp_path):
    def update(*words: str) -> None:
        ran = run(tmp_path, "scontrol", "update", "nodename=tree-[1-5]", *words)
        assert ran.returncode == 0, ran.stderr

    update("state=drain", "reason=test")
    try:
        ran = run(tmp_path, *COMMAND, **settings)
    finally:
        update("state=resume")
    assert ran.returncode == 2
    last = ran.stderr.splitlines()[-1]
    assert "testbed:tree has 3 usable nodes for this, and load takes 4" in last
    (kept,) = (tmp_path / "load").glob("run-tree-*.json")
    (only,) = json.loads(kept.read_text())["runs"]
    phases = {test["name"]: test["fail_phase"] for test in only["testcases"]}
    assert phases["LoadJob"] == "setup"
