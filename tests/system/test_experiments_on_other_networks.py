"""Two leaves with a shared uplink, and nodes with two rails, as ``netproof measure`` sees them."""

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


def test_crossing_a_shared_uplink_costs_far_more_than_staying_within_a_leaf(
    run, other_testbed, tmp_path
):
    (tmp_path / "shared-uplink.yaml").write_text(TOPOLOGY)
    other_testbed(tmp_path / "shared-uplink.yaml")
    settings = settings_of(tmp_path, load={"repetitions": 8, "most": 1.05})
    asked = ("netproof", "measure", "load", "testbed:tree", "--environment", "mpich")
    few = ("--victims", "bandwidth", "--aggressors", "one-to-one", "--rounds", "3")
    ran = run(tmp_path, *asked, *few, "--format=json", **settings)
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


def test_each_rail_alone_carries_half_of_what_both_do(run, other_testbed, tmp_path):
    other_testbed(ROOT / "ci" / "testbed" / "rails.yaml")
    where = ("testbed:rails", "rails", "--environment", "openmpi5", "--protocol", "mpi")
    asked = ("netproof", "measure", "tune", *where, "--rounds", "3", "--format=json")
    # Only long messages are sent over both.
    ran = run(tmp_path, *asked, **settings_of(tmp_path, max_message_bytes=1 << 20))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (swept,) = json.loads(ran.stdout)["sweeps"]
    factors = {one["value"]: one["ranges"]["long"]["factor"] for one in swept["values"]}
    assert sorted(factors) == ["eth1", "eth1+eth2", "eth2"]
    # The default is both.
    assert swept["recommended"] is None
    assert 0.8 < factors["eth1+eth2"] < 1.25
    assert max(factors["eth1"], factors["eth2"]) < 0.75
