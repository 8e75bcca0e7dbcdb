"""ReFrame's lines on tests, and how long a run takes yet, on recorded ones."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from ci.progress import JOBS, Course, Launches, Line, launched, parse

ROOT = Path(__file__).resolve().parents[3]
RECORDED = ROOT / "tests" / "data" / "reframe"
LINES = (RECORDED / "whole.log").read_text().splitlines()


def recorded(word: str) -> Line:
    return parse(next(line for line in LINES if word in line))


def test_a_job_is_known_by_its_partition_and_ranks_and_a_check_is_none():
    line = recorded("OK\x1b[0m ] ( 1/86)")
    test = ("ImbJob %partition=gige %ranks=2", "gige", "mpich")
    assert line == Line("OK", 1, 86, test, "gige IMB on 2 ranks")
    assert recorded("NetpipeJob").job == "gige NetPIPE"
    line = parse("[     FAIL ] ( 12/159) ImbBarrier %job_ranks=2 /fb87b7e1 @testbed:gige+mpich")
    assert line == Line("FAIL", 12, 159, ("ImbBarrier %job_ranks=2", "gige", "mpich"), None)
    assert parse("[----------] all spawned checks have finished") is None


def test_every_job_in_the_checks_is_known_by_its_name():
    job = re.compile(r"^class (\w+Job)\((?:Mpi|Netpipe)Launches\)", re.MULTILINE)
    checks = (ROOT / "checks").rglob("*.py")
    named = {name for path in checks for name in job.findall(path.read_text())}
    # Those of a full run are not made by ci/quickstart.
    assert {name for name in named if not name.startswith("Other")} == JOBS.keys()


def test_every_test_of_a_recorded_run_ends_and_three_are_jobs():
    course = Course()
    jobs = sum(map(course.take, filter(None, map(parse, LINES))))
    assert (course.done, course.tests, course.bad, jobs) == (86, 86, 8, 3)


def test_the_launches_of_the_running_job_are_a_part_of_its_cases(tmp_path):
    line = recorded("NetpipeJob")
    course = Course({line.job: 4, "gige IMB on 2 ranks": 4})
    course.take(line)
    assert course.sentence(5.0) == "0:05, time left not known yet"
    job = tmp_path / "2026-11-27T08-24-43" / line.folder
    for name, made in (("mpich", 3), ("openmpi4", 2)):
        (job / name).mkdir(parents=True)
        (job / name / "plan.json").write_text('{"rounds": [[{}, {}], [{}, {}, {}]]}')
        lines = "PingPong.1\t1\t3\t0\t60\n" * made
        (job / name / "launches.tsv").write_text(f"step\tstart\n{lines}")
    course.launches = launched(tmp_path, line.folder)
    assert course.sentence(30.0) == f"0:30, about 1:30 left; {line.job}: launch 5 of 10"
    assert launched(tmp_path, "another") == Launches()
    (job / "mpich" / "plan.json").write_text("[")
    assert launched(tmp_path, line.folder) == Launches()
    last = Course({line.job: 4}, running=line, launches=Launches(12, 10))
    said = f"0:30, time left not known; {line.job}: repeats, launch 12"
    assert last.sentence(30.0) == said
    last.take(replace(line, word="OK"))
    assert last.sentence(40.0) == "0:40, nearly done"


RUNS = json.loads((RECORDED / "quickstarts.json").read_text())


def right(run: dict) -> list[bool]:
    """Whether each time left, from half-way on, is within a third of what was left."""
    jobs = {" ".join(map(str, one["job"])): one for one in run["jobs"]}
    course = Course({job: one["cases"] for job, one in jobs.items()}, pairs=len(run["pairs"]))
    ends = [(one["seconds"], job, "") for job, one in jobs.items()]
    ends += [(seconds, None, "PairJob") for seconds in run["pairs"]]
    events = [
        (at, Line(word, 0, run["tests"], (name, "gige", "mpich"), job))
        for seconds, job, name in ends
        for at, word in zip(seconds, ("RUN", "OK"), strict=True)
    ]
    events.sort(key=lambda event: event[0])
    found = []
    for now_s in range(5, int(run["seconds"]) - 4, 5):
        while events and events[0][0] <= now_s:
            course.take(events.pop(0)[1])
        if course.running and (job := course.running.job):
            read = [made for at, made, *_ in jobs[job]["readings"] if at <= now_s]
            course.launches = Launches(max(read, default=0), jobs[job]["planned"])
        left_s, is_left_s = course.left_s(now_s), run["seconds"] - now_s
        if now_s > run["seconds"] / 2 and left_s is not None and left_s >= 1:
            found.append(abs(left_s / is_left_s - 1) <= 1 / 3)
    return found


@pytest.mark.parametrize(("command", "share"), [("", 0.7), ("--smoke", 0.65)])
def test_from_half_way_on_it_is_mostly_right_within_a_third(command, share):
    several = [right(run) for run in RUNS if run["command"] == command]
    assert len(several) >= 3
    assert sum(map(sum, several)) / sum(map(len, several)) >= share
