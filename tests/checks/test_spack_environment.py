"""A Spack environment that a site lists and that is not built fails the run; nothing shrinks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from netproof.session import session
from netproof.site import spack

# Each test runs ReFrame as a whole.
pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SITE = f"""import runpy
from netproof.site import spack
site_configuration = runpy.run_path("{ROOT}/site-config/testbed.py")["site_configuration"]
(system,) = site_configuration["systems"]
system["partitions"] = system["partitions"][:1]
system["partitions"][0]["environs"] = ["mpich-gcc"]
system["partitions"][0]["extras"]["baseline"] = "mpich-gcc"
site_configuration["environments"] += spack.environments()
"""
SETTINGS = """from pathlib import Path
from netproof import site
site_configuration = site.gather(Path(__file__).parent)
"""
REASON = (
    "the Spack environment mpich-gcc is not built: it has not been built;"
    " run ci/spack-envs build mpich-gcc"
)


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, str]:
    """A site that lists a Spack environment, and a spack-envs/ with nothing built."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "testbed.py").write_text(SITE)
    (site / "settings.py").write_text(SETTINGS)
    return {"RFM_CONFIG_PATH": str(site), spack.BUILDS: str(tmp_path / "builds")}


def test_its_jobs_fail_in_setup_with_the_reason_and_its_cases_are_expected(run, tmp_path, settings):
    command = ("reframe", "--system", "testbed:gige", "-c", str(ROOT / "checks"), "-r")
    ran = run(tmp_path, *command, **settings)
    assert ran.returncode != 0
    report = session.load(tmp_path / "run-0.json")
    jobs = [result for result in report.results if result.result == "fail"]
    assert len(jobs) == 6
    assert ran.stdout.count(f"Reason: reframe error: {REASON}") == 6
    assert "Failing phase: setup" in ran.stdout
    judged = run(tmp_path, "netproof", "verdict", "run-0.json", "--all", **settings)
    assert judged.returncode == 1
    counts = re.search(r"(\d+) of (\d+) cases passed", judged.stdout)
    assert counts
    assert counts[1] == "0"
    *others, failed = re.findall(r"(?m)^FAIL (\S.*)$", judged.stdout)
    assert all("nodes measured" in one for one in others), others
    assert failed.startswith("6 tests (testbed:gige mpich-gcc ")
    assert f"): fail in setup: reframe error: {REASON}" in failed
    assert f"; {counts[2]} cases did not run for them (" in failed
