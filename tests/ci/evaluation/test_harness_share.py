"""The harness's share is wall time less steps; the naive way runs the very same steps alone."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ci.evaluation import harness_share as share
from netproof.errors import NetproofError
from netproof.session.plan import JobPlan, Step

ROOT = Path(__file__).resolve().parents[3]
JOBS = ROOT / "tests" / "data" / "jobs"


def comparison(wall_s: float, steps_s: float, jobs: int, naive_jobs: int):
    return share.Comparison(
        share.Way(wall_s, steps_s, 62, jobs), share.Way(300.0, 60.0, 62, naive_jobs)
    )


def test_the_share_is_the_wall_time_outside_of_steps():
    assert comparison(80.0, 60.0, 8, 62).netproof.share == 0.25


def test_aims_that_are_met_leave_nothing_to_say():
    assert comparison(80.0, 60.0, 8, 62).missed() == []


def test_each_missed_aim_has_its_figures():
    assert comparison(80.0, 56.0, 16, 62).missed() == [
        "the harness's share is 30.0%, above 25%",
        "3.9 times fewer jobs, and not 5",
    ]


def test_json_has_both_ways_and_the_aims():
    plain = comparison(80.0, 60.0, 8, 62).as_json()
    assert plain["netproof"] == {
        "wall_s": 80.0,
        "steps_s": 60.0,
        "steps": 62,
        "slurm_jobs": 8,
        "share": 0.25,
    }
    assert plain["fewer_jobs"] == 62 / 8
    assert plain["aims"] == {"most_share": 0.25, "least_fewer_jobs": 5.0}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A job of three steps."""
    job = tmp_path / "job"
    job.mkdir()
    (job / "rfm_job.sh").write_text("#!/bin/bash\nexport A=b\nbash launches.sh\n")
    steps = tuple(Step("Bcast", number, ("srun", "IMB-MPI1")) for number in (1, 2, 3))
    extras = JobPlan.read(JOBS / "pairs" / "plan.json").extras
    JobPlan(7, extras, (steps,), transport=("srun", "IMB-MPI1")).write(job)
    return job


def test_each_step_alone_keeps_its_command_and_its_jobs_environment(folder):
    job_script, alone = share.single_plans(folder)
    assert job_script == (folder / "rfm_job.sh").read_text()
    assert list(alone) == ["Bcast.1", "Bcast.2", "Bcast.3"]
    for name, planned in alone.items():
        assert [[step.name for step in steps] for steps in planned.rounds] == [[name]]
        assert not planned.describe_nodes
        assert not planned.transport


def test_a_job_script_that_is_not_as_planned_is_refused(folder):
    with (folder / "rfm_job.sh").open("a") as script:
        script.write("true\n")
    with pytest.raises(NetproofError, match=r"does not end in 'bash launches\.sh'"):
        share.single_plans(folder)


def test_a_failed_step_is_not_measured():
    with pytest.raises(NetproofError, match=r"Barrier\.1\.err: the step ended with status 124"):
        share.step_seconds(JOBS / "imb-faulty")


def test_seconds_in_steps_are_those_of_the_job_record():
    seconds = share.step_seconds(JOBS / "netpipe")
    assert len(seconds) == 8
    assert all(value > 0 for value in seconds.values())


def test_jobs_are_read_from_the_accounting():
    jobs = share.parse_jobs(
        "7|COMPLETED|2026-11-20T23:22:24|2026-11-20T23:22:25|2026-11-20T23:22:28\n"
        "8|CANCELLED by 0|2026-11-20T23:22:25|Unknown|2026-11-20T23:22:29\n"
    )
    assert [(job.jobid, job.state) for job in jobs] == [("7", "COMPLETED"), ("8", "CANCELLED")]
    assert jobs[1].submit - jobs[0].submit == 1


@pytest.mark.parametrize("line", ["7|COMPLETED", "7||2026-11-20T23:22:24|x|y", "7|FAILED|?|x|y"])
def test_an_accounting_line_that_is_none_is_refused(line):
    with pytest.raises(NetproofError, match="sacct: "):
        share.parse_jobs(line)


def test_without_a_testbed_it_says_how_to_have_one(tmp_path):
    for name in ("harness-share", "evaluate", "activate", "testbed"):
        (tmp_path / "ci").mkdir(exist_ok=True)
        if name != "testbed":
            shutil.copy(ROOT / "ci" / name, tmp_path / "ci")
    down = tmp_path / "ci" / "testbed" / "testbed"
    down.parent.mkdir()
    down.write_text("#!/bin/bash\nexit 2\n")
    down.chmod(0o755)
    ran = subprocess.run(
        [tmp_path / "ci" / "harness-share"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ,
    )
    assert ran.returncode == 2
    assert ran.stderr == "ci/harness-share: the testbed is not up; run ci/testbed/testbed up\n"
