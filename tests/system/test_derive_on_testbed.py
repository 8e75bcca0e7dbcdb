"""References derived from runs on the testbed bind the next run."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
import yaml  # what ReFrame reads references with
from made_site import settings_of
from typer.testing import CliRunner

from netproof.commands.cli import app
from netproof.session import session

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).resolve().parents[2]
PINGPONG = "ImbPingPong"


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """A folder with the testbed's references; they and ReFrame's reports are looked for there."""
    shutil.copy(ROOT / "reference-values" / "testbed.yaml", tmp_path)
    monkeypatch.setenv("RFM_REFERENCE_PREFIX", str(tmp_path))
    # What something else disturbed would be open, and nothing is derived of that.
    monkeypatch.setenv("RFM_CONFIG_PATH", settings_of(tmp_path, others=1)["RFM_CONFIG_PATH"])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def met(report: Path) -> bool:
    """Whether references are met; on a busy machine criteria may fail."""
    (check,) = (one for one in session.load(report).results if one.case is not None)
    return check.result == "pass"


@pytest.mark.testbed
def test_a_run_is_judged_by_what_was_derived_and_a_bound_too_tight_fails_it(testbed, run, here):
    reframe = ["reframe", "--system", "testbed:gige", "-c", str(ROOT / "checks"), "-p", "mpich"]
    reframe += ["-n", PINGPONG, "-S", "ImbJob.functions=PingPong", "-S", "launches=1", "-r"]
    reports, site = [], {"RFM_CONFIG_PATH": os.environ["RFM_CONFIG_PATH"]}
    for number in range(3):
        reports.append(here / f"run-{number}.json")
        run(here, *reframe, RFM_REPORT_FILE=str(reports[-1]), **site)
        assert met(reports[-1])
    settings = ("--write", "--floor", "0.9", "--spread-limit", "0.2", "--risk", "0.9")
    ran = CliRunner().invoke(app, ["references", "derive", *map(str, reports), *settings])
    assert ran.exit_code == 0, ran.stderr
    file = here / "testbed.yaml"
    # Short messages take three times as long while the machine is busy; the link's rate is shaped.
    names = r"latency_us|\w+_size|rate_\w+|twin_\w+|asymptotic_mb_s|half_performance_bytes"
    names += "|line_rate_share"
    noisy = rf"({names}): \[[^,]+, [^,]+, [^,]+, "
    file.write_text(re.sub(noisy, r"\1: [0, null, null, ", file.read_text()))
    written = yaml.safe_load(file.read_text())[PINGPONG]
    assert "testbed:gige" in written, ran.stderr
    derived = written["testbed:gige"]["mpich"][2]
    value, lower, upper, unit = derived["peak_mb_s"]
    assert lower <= -0.9
    run(here, *reframe, RFM_REFERENCE_PREFIX=str(here), **site)
    assert met(here / "run-0.json")
    text, tight = file.read_text(), f"peak_mb_s: [{value * 100}, -0.1, 0.1, {unit}]"
    written = f"peak_mb_s: [{value}, {lower}, {upper}, {unit}]"
    assert text.count(written) == 1
    file.write_text(text.replace(written, tight))
    ran = run(here, *reframe, RFM_REFERENCE_PREFIX=str(here), **site)
    assert ran.returncode == 1, ran.stdout
    assert "failed to meet reference(s)" in ran.stdout
    assert "peak_mb_s=" in ran.stdout
