"""A run that measured nothing is green for ReFrame, and not for netproof."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from made_altered_site import altered_site

from netproof.session import session

# Each test runs ReFrame as a whole.
pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
GIGE = ("reframe", "--system", "testbed:gige", "-c")
VERDICT = ("netproof", "verdict", "run-0.json", "testbed:gige", "--all")


def unwrapped(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def test_a_missing_reference_file_fails_with_its_name(run, tmp_path):
    ran = run(
        tmp_path,
        *(*GIGE, str(ROOT / "checks" / "mpi.py"), "-p", "mpich", "-n", "ImbPingPong", "-r"),
        RFM_REFERENCE_PREFIX=str(tmp_path),
    )
    assert ran.returncode != 0
    judged = run(tmp_path, *VERDICT)
    assert judged.returncode == 1
    assert f"no references, {tmp_path}/testbed.yaml" in unwrapped(judged.stdout)
    assert "; 1 case did not run for it (IMB PingPong 2 ranks)" in unwrapped(judged.stdout)
    # An earlier session is not gone on with, and ReFrame says why.
    ran = run(
        tmp_path, *GIGE, str(ROOT / "checks" / "mpi.py"), "--restore-session=run-0.json", "-r"
    )
    assert ran.returncode == 1
    assert "leave out --restore-session" in unwrapped(ran.stdout + ran.stderr)


def test_a_check_file_with_an_import_error_is_not_passed(run, tmp_path):
    checks = tmp_path / "checks"
    checks.mkdir()
    text = (ROOT / "checks" / "mpi.py").read_text()
    (checks / "mpi.py").write_text(text.replace("MpiCheck", "MpiChek", 1))
    ran = run(tmp_path, *GIGE, str(checks), "-r")
    assert "cannot import name 'MpiChek'" in ran.stdout + ran.stderr
    judged = run(tmp_path, *VERDICT)
    assert judged.returncode == 2
    assert "ReFrame leaves no report where no test ran" in unwrapped(judged.stderr)


def test_what_the_references_do_not_name_fails_before_anything_runs(run, tmp_path):
    """A class, a partition, an environment and a number of ranks, of a check each."""
    text = (ROOT / "reference-values" / "testbed.yaml").read_text()
    levels = "  $index: [$partition, $environ, ranks]\n  'testbed:.*': {'.*': {2"
    missing = {
        "ImbPingPong": ("", "testbed.yaml has no ImbPingPong for testbed:gige, intelmpi"),
        "ImbSendrecv": (levels.replace("testbed:", "testbed:fast"), "key 'testbed:gige'"),
        "ImbBcast": (levels.replace("{'.*'", "{'openmpi'"), "key 'intelmpi'"),
        "ImbAlltoall": (levels.replace("{2", "{8"), "key 2"),
    }
    for name, (otherwise, _) in missing.items():
        old = f"\n{name}:\n{levels}"
        assert text.count(old) == 1
        new = f"\n{name}:\n{otherwise}" if otherwise else f"\n{name}s:\n{levels}"
        text = text.replace(old, new)
    (tmp_path / "testbed.yaml").write_text(text)
    several = "|".join(missing)
    ran = run(
        tmp_path,
        *(*GIGE, str(ROOT / "checks" / "mpi.py"), "-p", "intelmpi", "-n", f"^({several})"),
        "--dry-run",
        RFM_REFERENCE_PREFIX=str(tmp_path),
    )
    assert ran.returncode != 0
    for name, (_, said) in missing.items():
        reason = re.search(f"testbed.yaml has no {name} for testbed:gige, .*", ran.stdout)[0]
        assert said in reason
        assert "object at 0x" not in reason


MAINTENANCE = """
    @run_after("setup")
    def maintain(self):
        self.skip_if(self.current_environ.name == "mpich", "maintenance")
"""


def test_what_waits_for_a_job_that_was_skipped_is_not_passed(run, tmp_path):
    """Its job runs in the first of its environments."""
    text = (ROOT / "checks" / "mpi.py").read_text()
    limited = "    limited = False\n"
    assert text.count(limited) == 1
    text = text.replace(limited, limited + MAINTENANCE)
    checks = tmp_path / "mpi.py"
    checks.write_text(f"from reframe.core.builtins import run_after\n{text}")
    ran = run(tmp_path, *GIGE, str(checks), "--dry-run")
    assert ran.returncode == 0, ran.stdout
    # As of a run, whose other jobs would measure.
    report = tmp_path / "run-0.json"
    report.write_text(report.read_text().replace(" --dry-run", ""))
    judged = run(tmp_path, *VERDICT)
    assert judged.returncode == 1
    said = unwrapped(judged.stdout)
    skipped = "(15 of gige mpich, 15 of gige intelmpi): was skipped: the reason is in what ReFrame"
    assert f"FAIL 30 cases {skipped} printed FAIL" in said
    jobs = [f"testbed:gige mpich MpiJob %partition=gige %ranks={count}" for count in (2, 4)]
    assert f"FAIL 2 tests ({', '.join(jobs)}): was skipped: the reason is in what ReFrame" in said


UNUSABLE = """import runpy
site_configuration = runpy.run_path("SITE")["site_configuration"]
for environment in site_configuration["environments"]:
    if environment["name"] == "mpich":
        environment["extras"]["unusable"] = "mpich is not built: run make"
"""


def test_an_environment_that_cannot_be_used_fails_and_does_not_take_the_others_with_it(
    run, tmp_path
):
    site = altered_site(tmp_path, UNUSABLE)
    checks = (*GIGE, str(ROOT / "checks" / "mpi.py"), "-n", "ImbPingPong")
    ran = run(tmp_path, *checks, "-p", "mpich", "-r", RFM_CONFIG_PATH=str(site))
    assert ran.returncode != 0
    judged = run(tmp_path, *VERDICT, RFM_CONFIG_PATH=str(site))
    assert judged.returncode == 1
    said = unwrapped(judged.stdout)
    assert "mpich MpiJob %partition=gige %ranks=2: fail in setup: " in said
    assert "mpich is not built: run make" in said
    assert "; 1 case did not run for it (IMB PingPong 2 ranks)" in said
    run(tmp_path, *checks, "--dry-run", RFM_CONFIG_PATH=str(site))
    results = {
        (one.name.split()[0], one.environment): one
        for one in session.load(tmp_path / "run-0.json").results
    }
    # The job is below the first of its environments.
    outcomes = {name: one.result for name, one in results.items()}
    assert outcomes == {
        ("MpiJob", "mpich"): "pass",
        ("ImbPingPong", "mpich"): "fail",
        ("ImbPingPong", "intelmpi"): "pass",
    }
    assert "mpich is not built: run make" in results["ImbPingPong", "mpich"].why
