"""How long a run takes yet, on recorded ones."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from recorded_runs import RECORDED, recorded, timed

from ci.progress import Course, Launches, Line, launched, parse
from netproof.site.matrix import PlannedJob


class TestTimeLeft:
    """By the running job's launches and the jobs that ended."""

    def test_where_nothing_is_known_it_is_not_shown(self):
        course = Course()
        course.take(parse(recorded("NetpipeJob")), 0.0)
        assert course.left_s(5.0) is None
        assert course.sentence(5.0) == "0:05, time left not known yet"

    def test_the_launches_of_the_running_job_tell_before_any_job_has_ended(self, tmp_path):
        course, line = Course(), parse(recorded("NetpipeJob"))
        course.take(line, 0.0)
        job = tmp_path / "2026-11-27T08-24-43" / line.folder
        for name, made in (("mpich", 3), ("openmpi4", 2)):
            (job / name).mkdir(parents=True)
            (job / name / "plan.json").write_text('{"rounds": [[{}, {}], [{}, {}, {}]]}')
            lines = "PingPong.1\t1\t3\t0\t60\n" * made
            (job / name / "launches.tsv").write_text(f"step\tstart\n{lines}")
        course.launches = launched(tmp_path, line.folder)
        assert course.launches == Launches(5, 10, 10.0)
        assert course.left_s(30.0) == 10.0
        assert course.sentence(30.0).endswith(f"about 0:10 left; {line.job}: launch 5 of 10")
        course.launches = Launches(12, 10, 24.0)
        said = f"0:30, time left not known; {line.job}: repeats, launch 12"
        assert course.sentence(30.0) == said
        assert launched(tmp_path, "another") == Launches()
        (job / "mpich" / "plan.json").write_text("[")
        assert launched(tmp_path, line.folder) == Launches()


class TestOneTestAfterTheOther:
    """Recorded runs in which what is to come has not begun, as `ci/quickstart` makes them."""

    def at(self, name: str, share: float, *more: PlannedJob) -> tuple[float, float, Course]:
        """The second at a share of a run, all of its seconds, and its course by then."""
        lines = timed(name)
        whole_s = lines[-1][0]
        jobs = [*(line.job for _, line in lines if line.job is not None), *more]
        course = Course(dict.fromkeys(jobs, 1))
        for second, line in lines:
            if second <= share * whole_s:
                course.take(line, second)
        return share * whole_s, whole_s, course

    @pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
    def test_without_the_launches_of_its_jobs_it_is_no_more_than_is_left(self, share):
        now_s, whole_s, course = self.at("serial.log", share)
        assert (course.left_s(now_s) or 0) <= whole_s - now_s
        assert "nearly done" not in course.sentence(now_s)

    @pytest.mark.parametrize("share", [0.2, 0.9])
    def test_jobs_that_have_not_begun_are_to_come(self, share):
        one = PlannedJob("fast-ethernet", "", "netpipe", 2)
        now_s, _, course = self.at("serial-whole-cut.log", share, one)
        assert course.left_s(now_s) > 50

    def test_at_the_end_nothing_is_left(self):
        now_s, _, course = self.at("serial.log", 1)
        assert course.left_s(now_s) == 0
        assert course.sentence(now_s).endswith("nearly done")


RUNS = json.loads((RECORDED.parent / "quickstarts.json").read_text())


def right(run: dict) -> list[bool]:
    """Whether each time left, from half-way on, is within a third of what was left."""
    jobs = {
        PlannedJob(where, "", *what): one for one in run["jobs"] for where, *what in [one["job"]]
    }
    expected = {job: one["cases"] for job, one in jobs.items()}
    course = Course(expected, pairs=len(run["pairs"]), tests=run["tests"])
    events = [
        (at, "", number, job) for number, job in enumerate(jobs) for at in jobs[job]["seconds"]
    ]
    events += [
        (at, "PairJob", number, None) for number, one in enumerate(run["pairs"]) for at in one
    ]
    found, events = [], sorted(events, key=lambda event: event[0])
    for now_s in range(5, int(run["seconds"]) - 4, 5):
        while events and events[0][0] <= now_s:
            at, name, number, job = events.pop(0)
            line = Line("OK", 0, run["tests"], (f"{name} {number}", "gige", "mpich"), job)
            if course.running != line:
                line = replace(line, word="RUN")
            elif job:
                course.launches = read(jobs[job], at)
            course.take(line, at)
        if course.running and course.running.job:
            course.launches = read(jobs[course.running.job], now_s)
        left_s, is_left_s = course.left_s(now_s), run["seconds"] - now_s
        if now_s > run["seconds"] / 2 and left_s is not None and left_s >= 1:
            found.append(abs(left_s / is_left_s - 1) <= 1 / 3)
    return found


def read(job: dict, now_s: float) -> Launches:
    """What the job's files said when they were last read."""
    known = [one for one in job["readings"] if one[0] <= now_s]
    if not known:
        return Launches()
    _, made, made_s, _ = known[-1]
    return Launches(made, job["planned"], made_s)


class TestRecordedQuickstart:
    """Runs without an earlier one, of the quick start as a whole and of its short one."""

    @pytest.mark.parametrize(("command", "share"), [("", 0.7), ("--smoke", 0.55)])
    def test_from_half_way_on_it_is_mostly_right_within_a_third(self, command, share):
        several = [right(run) for run in RUNS if run["command"] == command]
        assert len(several) >= 3
        assert sum(map(sum, several)) / sum(map(len, several)) >= share
