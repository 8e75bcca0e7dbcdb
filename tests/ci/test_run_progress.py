"""How far a run is: ReFrame's lines in a log, and on the screen how long it takes yet."""

from __future__ import annotations

import os
import pty
import shlex
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import pytest

from ci.progress import Course, Line, clock, parse, past_tests
from netproof.session import session
from netproof.site.jobs import PlannedJob
from netproof.store import Store
from netproof.verdict.keeping import ingest

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "tests" / "data" / "reframe" / "whole.log"

PLAYS = """
import sys, time
for line in open(sys.argv[1]):
    print(line, end="", flush=True)
    if "Job" in line and "/159)" in line:
        time.sleep(0.1)
"""
SAYS_SO_AND_WAITS = """
import signal, sys, time
def end(number, frame):
    print("told to end by", number, flush=True)
    sys.exit(1)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, end)
print("waiting", flush=True)
time.sleep(60)
"""


def recorded(word: str) -> str:
    return next(line for line in RECORDED.read_text().splitlines() if word in line)


def course_of(seconds=None, domains=None) -> Course:
    """The recorded run up to its first job's end, at 10 seconds."""
    course = Course(seconds or {}, domains or {})
    for text in RECORDED.read_text().splitlines():
        line = parse(text)
        if line is not None and course.take(line, 10.0):
            return course
    raise AssertionError("no job ended")


class TestLines:
    """What ReFrame prints of a test."""

    def test_a_job_is_known_by_its_configuration_and_ranks(self):
        line = parse(recorded("OK\x1b[0m ] (  1/159)"))
        test = ("ImbJob %ranks=2", "gige", "mpich")
        assert line == Line("OK", 1, 159, test, PlannedJob("gige", "mpich", "imb", 2))
        test = ("NetpipeJob", "gige", "openmpi4")
        assert parse(recorded("NetpipeJob")) == Line(
            "RUN", 0, 0, test, PlannedJob("gige", "openmpi4", "netpipe", 2)
        )

    def test_a_check_is_no_job(self):
        line = parse("[     FAIL ] ( 12/159) ImbBarrier %job_ranks=2 /fb87b7e1 @testbed:gige+mpich")
        test = ("ImbBarrier %job_ranks=2", "gige", "mpich")
        assert line == Line("FAIL", 12, 159, test, None)

    def test_functions_beyond_the_default_have_a_job_of_their_own(self):
        line = parse("[ RUN      ] OtherImbJob %ranks=16 /0a1b @mycluster:edr-1+intel/2021.9")
        assert line.job == PlannedJob("edr-1", "intel/2021.9", "imb", 16, default=False)

    @pytest.mark.parametrize(
        "text",
        ["", "[==========] Running 32 check(s)", "[----------] all spawned checks have finished"],
    )
    def test_what_is_of_no_test_says_nothing(self, text):
        assert parse(text) is None

    def test_every_test_of_a_recorded_run_ends_and_sixteen_are_jobs(self):
        course = Course()
        for text in RECORDED.read_text().splitlines():
            line = parse(text)
            if line is not None:
                course.take(line, 401.0)
        assert (course.done, course.tests, course.bad, len(course.jobs)) == (159, 159, 0, 16)
        assert course.left_s(401.0) == 0


class TestTimeLeft:
    """By past sessions, else by the share of the jobs that ended."""

    def test_where_nothing_is_known_it_is_not_told(self):
        course = Course()
        course.take(parse(recorded("NetpipeJob")), 0.0)
        assert course.left_s(5.0) is None
        assert course.sentence(5.0) == "0:05, time left not known yet"

    def test_without_past_sessions_a_job_takes_as_long_as_those_that_ended(self):
        assert course_of().left_s(10.0) == pytest.approx(15 * 10)
        assert course_of().left_s(14.0) == pytest.approx(15 * 10 - 4)

    def test_past_sessions_tell_before_a_job_has_ended(self):
        job = PlannedJob("gige", "openmpi4", "netpipe", 2)
        course = Course({job: 21.0})
        course.take(parse(recorded("NetpipeJob")), 0.0)
        assert course.left_s(0.0) == 21
        assert course.left_s(6.0) == 15
        # It takes longer than it should.
        assert course.left_s(60.0) == 0
        assert course.sentence(60.0) == "1:00, time left not known"

    def test_a_run_that_is_slower_than_the_past_ones_takes_longer_to_its_end(self):
        alike = {job: 5.0 for job in course_of().jobs}
        # 10 seconds for a job of 5.
        assert course_of(alike).left_s(10.0) == pytest.approx(15 * 5 * 2)

    def test_domains_run_beside_each_other(self):
        jobs = course_of().jobs
        course = course_of({job: 10.0 for job in jobs}, {job: job.partition for job in jobs})
        # Of gige 7 jobs are left; of fast-ethernet none of the 8 has ended, after 10 seconds.
        assert course.left_s(10.0) == pytest.approx(70)

    def test_failures_are_counted(self):
        course = Course()
        course.take(parse("[ FAIL ] ( 2/159) NetpipeJob /5d098b8f @testbed:gige+mpich"), 61.0)
        assert course.sentence(61.0) == "1:01, time left not known, 1 failed"

    def test_a_time_is_minutes_and_seconds(self):
        assert [clock(seconds) for seconds in (0, 59.6, 187, 3600)] == [
            *("0:00", "1:00", "3:07", "60:00")
        ]


def timed(name: str) -> list[tuple[float, Line]]:
    """The lines of a recorded run of one test after the other, each with its second."""
    found = []
    for text in (RECORDED.parent / name).read_text().splitlines():
        stamp, _, rest = text.partition("] info: reframe: ")
        found.append((datetime.fromisoformat(stamp.removeprefix("[")).timestamp(), parse(rest)))
    return [(at - found[0][0], line) for at, line in found]


def at(course: Course, lines: list[tuple[float, Line]], now_s: float) -> Course:
    """The course as the run was by then."""
    for second, line in lines:
        if second <= now_s:
            course.take(line, second)
    return course


class TestOneTestAfterTheOther:
    """Recorded runs in which what is to come has not begun, as `ci/quickstart` makes them."""

    SMOKE = "serial-2.log"

    def domains(self, name: str) -> dict[PlannedJob, str]:
        return {line.job: "all" for _, line in timed(name) if line.job is not None}

    def past(self) -> dict:
        return at(Course(serial=True), timed("serial-1.log"), 1e6).took

    @pytest.mark.parametrize("share", [0.1, 0.5])
    def test_by_an_earlier_run_of_the_same_it_is_within_a_factor_of_two(self, share):
        lines = timed(self.SMOKE)
        whole_s = lines[-1][0]
        course = Course({}, self.domains(self.SMOKE), True, self.past())
        left_s = at(course, lines, share * whole_s).left_s(share * whole_s)
        assert 0.5 < left_s / (whole_s - share * whole_s) < 2
        assert "about" in course.sentence(share * whole_s)

    @pytest.mark.parametrize("share", [0.1, 0.25, 0.5, 0.75, 0.9])
    def test_without_one_it_is_at_least_what_is_told_and_never_nearly_done(self, share):
        lines = timed(self.SMOKE)
        whole_s = lines[-1][0]
        course = at(Course({}, self.domains(self.SMOKE), True), lines, share * whole_s)
        assert course.left_s(share * whole_s) <= whole_s - share * whole_s
        told = course.sentence(share * whole_s)
        assert "at least" in told or "not known" in told

    @pytest.mark.parametrize("now_s", [60.0, 240.0, 480.0])
    def test_jobs_that_have_not_begun_are_to_come(self, now_s):
        """Of a run that lasted for longer than 9:20, and was ended at half of its tests."""
        name = "serial-whole-cut.log"
        jobs = {
            PlannedJob(job.partition, mpi, *rest)
            for job in self.domains(name)
            for mpi, *rest in [(job.environment, job.benchmark, job.ranks)]
        } | {
            PlannedJob("fast-ethernet", mpi, "netpipe", 2)
            for mpi in ("openmpi5", "mpich", "intelmpi")
        }
        course = at(Course({}, dict.fromkeys(jobs, "all"), True), timed(name), now_s)
        assert course.left_s(now_s) > 100
        assert "at least" in course.sentence(now_s)

    def test_at_the_end_nothing_is_left(self):
        lines = timed(self.SMOKE)
        for past in ({}, self.past()):
            course = at(Course({}, self.domains(self.SMOKE), True, past), lines, 1e6)
            assert course.left_s(lines[-1][0]) == 0
            assert course.sentence(lines[-1][0]).endswith("nearly done")

    def test_a_test_that_no_earlier_run_had_makes_it_a_lower_bound(self):
        past = self.past()
        del past["NetpipeJob", "gige", "mpich"]
        course = at(Course({}, self.domains(self.SMOKE), True, past), timed(self.SMOKE), 10.0)
        assert "at least" in course.sentence(10.0)


@pytest.mark.slow
def test_the_store_has_how_long_the_tests_of_the_same_command_took(tmp_path):
    store = Store.create(tmp_path / "store")
    report = RECORDED.parents[1] / "sessions" / "sick.json"
    ingest(store, report)
    kept = session.load(report)
    command = shlex.split(kept.info["cmdline"])
    system = kept.results[0].system
    took = past_tests(system, store.folder, ["elsewhere/reframe", *command[1:]])
    assert took == {
        (one.name, one.partition, one.environment): one.seconds
        for one in kept.results
        if one.result != "skip"
    }
    assert past_tests(system, store.folder, [*command, "-S", "launches=1"]) == {}
    assert past_tests("other", store.folder, command) == {}
    assert past_tests(system, tmp_path / "none", command) == {}


def progress(tmp_path: Path, *command: str, report: Path | None = None) -> list[str]:
    return [
        *(sys.executable, str(ROOT / "ci" / "progress.py"), "--log", str(tmp_path / "run.log")),
        *("--report", str(report or tmp_path / "run.json"), "--", *command),
    ]


def play(tmp_path: Path) -> tuple[str, ...]:
    return (sys.executable, "-c", PLAYS, str(RECORDED))


@pytest.mark.slow
def test_in_a_log_there_is_a_line_for_each_job_and_reframe_s_lines_are_elsewhere(tmp_path):
    (tmp_path / "run.json").write_text("{}")
    ran = subprocess.run(
        progress(tmp_path, *play(tmp_path)), capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert (tmp_path / "run.log").read_text() == RECORDED.read_text()
    first, *lines, last = ran.stdout.splitlines()
    assert first == f"output of ReFrame: {tmp_path / 'run.log'}"
    assert sum(line.count(" measured") for line in lines) == 16
    assert len(lines) <= 16
    assert all(" of 159 tests, 0:0" in line for line in lines)
    assert last.startswith("159 of 159 tests ran in 0:0")
    assert "RUN" not in ran.stdout


@pytest.mark.slow
def test_on_a_terminal_it_is_one_line_that_changes(tmp_path):
    (tmp_path / "run.json").write_text("{}")
    terminal, theirs = pty.openpty()
    with subprocess.Popen(
        progress(tmp_path, *play(tmp_path)),
        stdout=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    ) as ran:
        os.close(theirs)
        told = b""
        while True:
            try:
                told += os.read(terminal, 65536)
            except OSError:
                break
        os.close(terminal)
    text = told.decode()
    assert ran.returncode == 0
    assert "left" in text
    assert "of 159 tests" in text
    # Of what changed, nothing stays but the last line.
    assert text.count("\n") <= 4 + text.count("\x1b[1A")
    assert "ImbBarrier" not in text


@pytest.mark.slow
def test_the_exit_status_is_that_of_the_command_and_its_end_is_shown_without_a_report(tmp_path):
    command = ("sh", "-c", "echo reframe: no such check; exit 3")
    ran = subprocess.run(progress(tmp_path, *command), capture_output=True, text=True, check=False)
    assert ran.returncode == 3
    assert "ReFrame left no report (exit status 3); its output" in ran.stderr
    assert "reframe: no such check" in ran.stderr
    assert "no such check" not in ran.stdout


@pytest.mark.slow
def test_a_report_of_failed_tests_is_for_the_verdict_to_tell(tmp_path):
    (tmp_path / "run.json").write_text("{}")
    ran = subprocess.run(
        progress(tmp_path, "sh", "-c", "echo it failed; exit 1"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (1, "")


@pytest.mark.slow
def test_a_log_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "run.log").mkdir()
    ran = subprocess.run(progress(tmp_path, "true"), capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert ran.stderr == f"ci/progress.py: {tmp_path / 'run.log'}: Is a directory\n"


def alive(text: str) -> bool:
    """Whether a process has this in its command line."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if text.encode() in path.read_bytes():
                return True
        except OSError:
            continue
    return False


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_signal_reaches_the_command_and_nothing_is_left(tmp_path, number):
    log = tmp_path / "run.log"
    mark = f"# {tmp_path}"
    command = (sys.executable, "-c", SAYS_SO_AND_WAITS + mark)
    with subprocess.Popen(
        progress(tmp_path, *command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as ran:
        _until(lambda: log.is_file() and "waiting" in log.read_text())
        ran.send_signal(number)
        assert ran.wait(30) == -number
    _until(lambda: not alive(mark))
    # Of one that is killed, its own child is told by the kernel.
    told = signal.SIGTERM if number == signal.SIGKILL else number
    assert log.read_text() == f"waiting\ntold to end by {int(told)}\n"


def _until(true) -> None:
    patience = time.monotonic() + 20
    while not true():
        assert time.monotonic() < patience
        time.sleep(0.05)
