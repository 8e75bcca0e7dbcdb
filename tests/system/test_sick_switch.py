"""A switch with a small buffer is found, confirmed and named; the real ReFrame, the real Slurm."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from netproof.session import session

pytestmark = [pytest.mark.testbed, pytest.mark.usefixtures("sick_testbed"), pytest.mark.nightly]

ROOT = Path(__file__).resolve().parents[2]
SICK = ROOT / "docs" / "criteria" / "sick-switch.yaml"


@pytest.fixture(scope="module")
def sick_testbed(other_testbed) -> None:
    """The switch gige with a small buffer."""
    other_testbed(SICK)


@pytest.fixture(scope="module")
def folder(run, tmp_path_factory) -> Path:
    """Folder of a run of one environment's NetPIPE."""
    folder = tmp_path_factory.mktemp("sick")
    run(
        folder,
        *("reframe", "--system", "testbed:gige", "-c", str(ROOT / "checks"), "-p", "mpich"),
        *("-n", "NetpipeTcp.*inter-node.*oneway", "-S", "launches=1"),
        *("-S", "NetpipeJob.variants=tcp-inter-node-oneway", "-r"),
    )
    return folder


def test_the_run_itself_ends_red_with_the_place(folder):
    (run,) = json.loads((folder / "run-0.json").read_text())["runs"]
    (check,) = (one for one in run["testcases"] if one["unique_name"].startswith("NetpipeTcp"))
    assert (check["result"], check["fail_phase"]) == ("fail", "performance")
    if not check["netproof_met"]:
        # A reference of the same curve is not met.
        return
    assert re.search(
        r"testbed:gige mpich NetPIPE \w+ inter-node \w+ \(switch gige\): from \d+ to 49152 bytes",
        check["fail_reason"],
    )
    assert " confirmed: " in check["fail_reason"]


def test_flagged_sizes_were_measured_again_closely_on_the_same_nodes(folder):
    launched = next(
        result
        for result in session.load(folder / "run-0.json").results
        if result.kind == "launches"
    )
    measured = [one.measured for one in session.load(folder / "run-0.json").results]
    several = [one for one in measured if one is not None and one.again is not None]
    assert several
    for one in several:
        assert {*one.nodes()} <= {*launched.nodes}
        assert 3 <= len(one.again) <= 9
        for launch in one.again:
            assert len(launch.curve.sizes) >= 8


def test_the_verdict_on_the_stored_session_is_the_same(run, folder):
    judged = run(folder, "netproof", "verdict", "--all", "run-0.json", "testbed:gige")
    assert judged.returncode == 1
    assert "(switch gige): " in judged.stdout
    assert re.search(r"Jump at \d+ bytes confirmed: \d of \d launches", judged.stdout)
