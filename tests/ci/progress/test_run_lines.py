"""ReFrame's lines on tests."""

from __future__ import annotations

import re
from pathlib import Path

from recorded_runs import RECORDED, recorded

from ci.progress import JOBS, Course, Line, parse
from netproof.benchmarks import registry
from netproof.site.matrix import PlannedJob


def test_a_job_is_known_by_its_partition_and_ranks_and_a_check_is_none():
    line = parse(recorded("OK\x1b[0m ] ( 1/86)"))
    test = ("ImbJob %partition=gige %ranks=2", "gige", "mpich")
    assert line == Line("OK", 1, 86, test, PlannedJob("gige", "", "imb", 2))
    assert parse(recorded("NetpipeJob")).job == PlannedJob("gige", "", "netpipe", 2)
    line = parse("[     FAIL ] ( 12/159) ImbBarrier %job_ranks=2 /fb87b7e1 @testbed:gige+mpich")
    assert line == Line("FAIL", 12, 159, ("ImbBarrier %job_ranks=2", "gige", "mpich"), None)
    assert parse("[----------] all spawned checks have finished") is None


def test_every_job_in_the_checks_is_known_by_its_name():
    job = re.compile(r"^class (\w+Job)\((?:Mpi|Netpipe)Launches\)", re.MULTILINE)
    checks = Path(__file__).resolve().parents[3] / "checks"
    named = {name for path in checks.rglob("*.py") for name in job.findall(path.read_text())}
    # Those of a full run are not made by ci/quickstart.
    assert {name for name in named if not name.startswith("Other")} == JOBS.keys()
    assert [*JOBS.values()] == [*registry.STARTED]


def test_every_test_of_a_recorded_run_ends_and_three_are_jobs():
    course = Course()
    for line in filter(None, map(parse, RECORDED.read_text().splitlines())):
        course.take(line, 329.0)
    assert (course.done, course.tests, course.bad, len(course.jobs_s)) == (86, 86, 8, 3)
    assert course.left_s(329.0) == 0
