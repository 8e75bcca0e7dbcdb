"""A run of the campaign on the testbed, alongside a load."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from made_site import NETPIPE_ALONE, written_site

from ci.evaluation import engine
from ci.evaluation.plants import EVALUATIONS, Grade

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).resolve().parents[2]
EVALUATION = EVALUATIONS["false-reds"]


@pytest.mark.testbed
def test_a_run_alongside_a_load_is_made_judged_and_kept(testbed, run, tmp_path):
    site = written_site(tmp_path, "FEW = {}\n" + NETPIPE_ALONE)
    folder = tmp_path / "campaign"
    counts = [f"--{one}={int(one == 'one-cpu')}" for one in EVALUATION.plants]
    ran = run(
        tmp_path,
        *("python", "-m", "ci.evaluation", "false-reds"),
        *("--out", str(folder), "--quiet-share", "1", *counts),
        RFM_CONFIG_PATH=site,
        PYTHONPATH=str(ROOT),
    )
    # One run is too few for the aims.
    assert ran.returncode == 1, ran.stderr
    (only,) = engine.read(EVALUATION, folder)[1]
    # What the load disturbs may be inconclusive, and is never red.
    assert only.judged.found in (Grade.GREEN, Grade.INCONCLUSIVE)
    assert only.load_cpu_s > 1
    assert "| one CPU taken throughout | gige | 1 | " in ran.stdout
    up = subprocess.run([ROOT / "ci/testbed/testbed", "status"], capture_output=True, check=False)
    assert up.returncode == 0
