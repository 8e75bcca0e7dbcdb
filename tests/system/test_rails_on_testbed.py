"""Two rails on the testbed: what both carry together, and that one alone carries half."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from made_site import settings_of

pytestmark = [pytest.mark.testbed, pytest.mark.nightly]

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def settings(other_testbed, tmp_path) -> dict[str, str]:
    """Of a command on a testbed with two rails, which reports into ``tmp_path``."""
    other_testbed(ROOT / "ci" / "testbed" / "rails.yaml")
    return settings_of(tmp_path)


def test_each_rail_alone_carries_half_of_what_both_do(run, tmp_path, settings):
    where = ("testbed:rails", "rails", "--environment", "openmpi5")
    asked = (
        "netproof",
        "measure",
        "tune",
        *where,
        "--protocol",
        "mpi",
        "--rounds",
        "3",
        "--format=json",
    )
    ran = run(tmp_path, *asked, **settings)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (swept,) = json.loads(ran.stdout)["sweeps"]
    factors = {one["value"]: one["ranges"]["long"]["factor"] for one in swept["values"]}
    assert sorted(factors) == ["eth1", "eth1+eth2", "eth2"]
    # The default is both.
    assert swept["recommended"] is None
    assert 0.8 < factors["eth1+eth2"] < 1.25
    assert max(factors["eth1"], factors["eth2"]) < 0.75
