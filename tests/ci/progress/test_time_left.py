"""How long a run takes yet, on recorded ones."""

from __future__ import annotations

import json

import pytest
from recorded_runs import RECORDED, recorded, timed

from ci.progress import PAIR_JOB, Course, Launches, Line, launched, parse
from netproof.site.matrix import PlannedJob


class TestTimeLeft:
    """By past sessions, else by the share of the jobs that ended."""

    def test_where_nothing_is_known_it_is_not_shown(self):
        course = Course()
        course.take(parse(recorded("NetpipeJob")), 0.0)
        assert course.left_s(5.0) is None
        assert course.sentence(5.0) == "0:05, time left not known yet"

    def test_past_sessions_tell_before_a_job_has_ended(self):
        job = PlannedJob("gige", "", "netpipe", 2)
        course = Course({job: 21.0})
        course.take(parse(recorded("NetpipeJob")), 0.0)
        assert course.left_s(0.0) == 21
        assert course.left_s(6.0) == 15
        # It takes longer than it should.
        assert course.left_s(60.0) == 0
        assert course.sentence(60.0) == "1:00, time left not known"

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
        assert course.launches == Launches(5, 10, 0.0, 10.0)
        assert course.left_s(30.0) == 10.0
        assert course.sentence(30.0).endswith(f"; {line.job}: launch 5 of 10")
        course.launches = Launches(12, 10, 0.0, 24.0)
        assert course.sentence(30.0).endswith(f"; {line.job}: repeats, launch 12")
        assert launched(tmp_path, "another") == Launches()
        # Two of its launches are planned, and one of three repeats is made; each takes 2 s.
        (job / "mpich" / "plan.json").write_text('{"rounds": [[{"subject": "PingPong"}]]}')
        (job / "open.json").write_text('{"mpich": ["PingPong"], "openmpi4": []}')
        assert launched(tmp_path, line.folder) == Launches(5, 6, 2.0, 10.0)


def at(course: Course, lines: list[tuple[float, Line]], now_s: float) -> Course:
    """The course as the run was by then."""
    for second, line in lines:
        if second <= now_s:
            course.take(line, second)
    return course


class TestOneTestAfterTheOther:
    """Recorded runs in which what is to come has not begun, as `ci/quickstart` makes them."""

    SMOKE = "serial-2.log"

    def jobs(self, name: str) -> dict[PlannedJob, int]:
        return {line.job: 1 for _, line in timed(name) if line.job is not None}

    def past(self) -> dict:
        return at(Course(), timed("serial-1.log"), 1e6).took

    @pytest.mark.parametrize("share", [0.1, 0.5])
    def test_by_an_earlier_run_of_the_same_it_is_within_a_factor_of_three(self, share):
        """That one took twice as long, since the machine had other work."""
        lines = timed(self.SMOKE)
        whole_s = lines[-1][0]
        course = Course({}, self.jobs(self.SMOKE), self.past())
        left_s = at(course, lines, share * whole_s).left_s(share * whole_s)
        assert 1 / 3 < left_s / (whole_s - share * whole_s) < 3
        assert "about" in course.sentence(share * whole_s)

    @pytest.mark.parametrize("share", [0.1, 0.25, 0.5, 0.75, 0.9])
    def test_without_one_it_is_at_least_what_is_reported_and_never_nearly_done(self, share):
        lines = timed(self.SMOKE)
        whole_s = lines[-1][0]
        course = at(Course({}, self.jobs(self.SMOKE)), lines, share * whole_s)
        assert (course.left_s(share * whole_s) or 0) <= whole_s - share * whole_s
        sentence = course.sentence(share * whole_s)
        assert "at least" in sentence or "not known" in sentence

    @pytest.mark.parametrize("now_s", [60.0, 140.0, 310.0])
    def test_jobs_that_have_not_begun_are_to_come(self, now_s):
        """Its run of one switch lasted for longer than 5 minutes."""
        name = "serial-whole-cut.log"
        jobs = self.jobs(name) | {PlannedJob("fast-ethernet", "", "netpipe", 2): 1}
        course = at(Course({}, jobs), timed(name), now_s)
        assert course.left_s(now_s) > 50
        assert "at least" in course.sentence(now_s)

    def test_at_the_end_nothing_is_left(self):
        lines = timed(self.SMOKE)
        for past in ({}, self.past()):
            course = at(Course({}, self.jobs(self.SMOKE), past), lines, 1e6)
            assert course.left_s(lines[-1][0]) == 0
            assert course.sentence(lines[-1][0]).endswith("nearly done")


RUNS = json.loads((RECORDED.parent / "quickstarts.json").read_text())


def right(run: dict) -> list[bool]:
    """Whether each time left, from half-way on, is within a third of what was left."""
    jobs = {
        PlannedJob(where, "", *what): one for one in run["jobs"] for where, *what in [one["job"]]
    }
    expected = {job: one["cases"] for job, one in jobs.items()}
    course = Course({}, expected, pairs=len(run["pairs"]), tests=run["tests"])
    events = [
        (at, "", number, job) for number, job in enumerate(jobs) for at in jobs[job]["seconds"]
    ]
    events += [
        (at, PAIR_JOB, number, None) for number, one in enumerate(run["pairs"]) for at in one
    ]
    found, seen = [], set()
    for now_s in range(5, int(run["seconds"]) - 4, 5):
        for at, name, number, job in sorted(events, key=lambda it: it[0]):
            if at > now_s or (at, name, number) in seen:
                continue
            seen.add((at, name, number))
            test = (f"{name} {number}", "gige", "mpich")
            if test in course.begun and job:
                course.launches = read(jobs[job], at)
            word = "OK" if test in course.begun else "RUN"
            course.take(Line(word, 0, run["tests"], test, job), at)
        if course.running:
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
    _, made, made_s, repeats_s = known[-1]
    return Launches(made, job["planned"], repeats_s, made_s)


class TestRecordedQuickstart:
    """Runs without an earlier one, of the quick start as a whole and of its short one."""

    @pytest.mark.parametrize(("command", "share"), [("", 0.7), ("--smoke", 0.55)])
    def test_from_half_way_on_it_is_mostly_right_within_a_third(self, command, share):
        several = [right(run) for run in RUNS if run["command"] == command]
        assert len(several) >= 3
        assert sum(map(sum, several)) / sum(map(len, several)) >= share
