"""How long a run takes yet, on recorded ones."""

from __future__ import annotations

from typing import ClassVar

import pytest
from recorded_runs import recorded, timed

from ci.progress import Course, Launches, Line, launched, parse
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
        assert course.launches == Launches(5, 10)
        assert course.left_s(30.0) == 30.0
        assert course.sentence(30.0).endswith(f"; {line.job}: launch 5 of 10")
        course.launches = Launches(12, 10)
        assert course.sentence(30.0).endswith(f"; {line.job}: repeats, launch 12")
        assert launched(tmp_path, "another") == Launches()
        # Two of its launches are planned, and one of three repeats is made; each takes 2 s.
        (job / "mpich" / "plan.json").write_text('{"rounds": [[{"subject": "PingPong"}]]}')
        (job / "open.json").write_text('{"mpich": ["PingPong"], "openmpi4": []}')
        assert launched(tmp_path, line.folder) == Launches(5, 6, 2.0)


def at(course: Course, lines: list[tuple[float, Line]], now_s: float) -> Course:
    """The course as the run was by then."""
    for second, line in lines:
        if second <= now_s:
            course.take(line, second)
    return course


class TestOneTestAfterTheOther:
    """Recorded runs in which what is to come has not begun, as `ci/quickstart` makes them."""

    SMOKE = "serial-2.log"

    def jobs(self, name: str) -> set[PlannedJob]:
        return {line.job for _, line in timed(name) if line.job is not None}

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
        jobs = self.jobs(name) | {PlannedJob("fast-ethernet", "", "netpipe", 2)}
        course = at(Course({}, jobs), timed(name), now_s)
        assert course.left_s(now_s) > 50
        assert "at least" in course.sentence(now_s)

    def test_at_the_end_nothing_is_left(self):
        lines = timed(self.SMOKE)
        for past in ({}, self.past()):
            course = at(Course({}, self.jobs(self.SMOKE), past), lines, 1e6)
            assert course.left_s(lines[-1][0]) == 0
            assert course.sentence(lines[-1][0]).endswith("nearly done")


class TestRecordedQuickstart:
    """A whole run without an earlier one: within a third from half-way on, but for its pairs."""

    TOOK_S: ClassVar = {
        PlannedJob("gige", "", "imb", 2): 57.0,
        PlannedJob("gige", "", "imb", 4): 67.0,
        PlannedJob("fast-ethernet", "", "imb", 2): 89.0,
        PlannedJob("fast-ethernet", "", "imb", 4): 118.0,
        PlannedJob("gige", "", "netpipe", 2): 135.0,
        PlannedJob("fast-ethernet", "", "netpipe", 2): 274.0,
    }
    REPEATED = (36 / 102, 0.0, 12 / 102, 0.0, 6 / 192)

    @pytest.mark.parametrize(
        ("now_s", "made", "repeats_s"),
        [
            *((390, 85, 0.0), (420, 118, 0.0), (450, 164, 0.0)),
            *((480, 3, 0.0), (510, 18, 0.0), (540, 34, 0.0), (570, 55, 0.0), (600, 92, 0.0)),
            *((630, 117, 0.0), (660, 192, 84.0), (690, 209, 54.0)),
        ],
    )
    def test_it_is_right_within_a_third(self, now_s, made, repeats_s):
        ended, running = (4, 331.0) if now_s < 466 else (5, 466.0)
        jobs = list(self.TOOK_S)
        name = f"NetpipeJob %partition={jobs[ended].partition}"
        line = Line("RUN", ended, 169, (name, jobs[ended].partition, "openmpi4"), jobs[ended])
        course = Course({}, set(jobs), done=ended, tests=169, repeated=[*self.REPEATED[:ended]])
        for job in jobs[:ended]:
            test = (job.what(), job.partition, "mpich")
            course.job_of[test], course.took[test] = job, self.TOOK_S[job]
        course.take(line, running)
        course.launches = Launches(made, 192, repeats_s)
        measured_s = sum(self.TOOK_S.values())
        assert 2 / 3 < course.left_s(now_s) / (measured_s - now_s) < 4 / 3
        # Rounds of pairs, and checks that read what was measured, are not foreseen.
        assert "at least" in course.sentence(now_s)
