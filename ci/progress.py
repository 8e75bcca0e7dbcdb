"""Runs ReFrame with its output in a log, and tells how far it is and how long it takes yet.

On a terminal that is one line, which changes; elsewhere a line whenever a job ends, and at least
every ``EVERY_S`` seconds. The exit status is ReFrame's.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median
from types import FrameType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Column

from netproof.benchmarks import registry
from netproof.commands.nightly.measuring import ENDING_S, ending_with_this_process
from netproof.commands.site_show import shown
from netproof.errors import NetproofError
from netproof.present import tables
from netproof.site.jobs import PlannedJob, domain_of
from netproof.store import Store, questions
from netproof.store.durations import SESSIONS, TAKEN
from netproof.verdict.judged import CANNOT_JUDGE

EVERY_S = 30.0
"""Seconds after which there is a line, where there is no terminal."""
LOOK_S = 0.5
"""Seconds between looks at the log."""
LINES = 20
"""Lines of the log that are shown where ReFrame left no report."""

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_TEST = re.compile(
    r"\[ *(?P<word>RUN|OK|FAIL|ERROR|ABORT|SKIP|XFAIL|XPASS) *\] "
    r"(?:\( *(?P<done>\d+)/(?P<all>\d+)\) )?"
    r"(?P<name>\w+)(?P<parameters>.*?) /[0-9a-f]+ @[^:\s]+:(?P<partition>[^+\s]+)\+(?P<environ>\S+)"
)
_RANKS = re.compile(r"%ranks=(\d+)")
_BAD = ("FAIL", "ERROR", "ABORT", "XPASS")
_FURTHER = "Further"
"""How the names of tests end that launch on: as long as what they find undecided."""
_WEIGHT = 0.05
"""How much of what is expected of a run has to have ended to count half for its pace."""
_COMMANDS = "select session, command from sessions"
_TESTS = """
    select test, partition, environment, seconds from tests where result <> 'skip'
    union all select "check", partition, environment, seconds from cases where result <> 'skip'
"""

Test = tuple[str, str, str]
"""A test by its name as ReFrame displays it, its partition and its environment."""


@dataclass(frozen=True)
class Line:
    """A line of ReFrame's on one test: RUN, or how it ended.

    ``done`` of ``tests`` had ended by then, 0 where it does not tell; ``job``: None for a test
    that is no job of launches.
    """

    word: str
    done: int
    tests: int
    test: Test
    job: PlannedJob | None


def parse(text: str) -> Line | None:
    """What a line of ReFrame's output says of a test; None for any other line."""
    match = _TEST.match(_COLOUR.sub("", text))
    if match is None:
        return None
    job, ranks = None, _RANKS.search(match["parameters"])
    where = (match["partition"], match["environ"])
    found = registry.whose_job(match["name"])
    if found is not None:
        benchmark, default = found
        if benchmark.by_protocol:
            job = PlannedJob(*where, benchmark.name, 2)
        elif ranks:
            job = PlannedJob(*where, benchmark.name, int(ranks[1]), default)
    test = (match["name"] + match["parameters"], *where)
    return Line(match["word"], int(match["done"] or 0), int(match["all"] or 0), test, job)


@dataclass
class Course:
    """How far a run is. Times are seconds since it began.

    ``seconds``: how long each job should take by past sessions, empty where that is not known:
    then each takes as long as the like. ``domains``: of every job of the run, in which of them one
    job runs at a time. ``serial``: whether one test runs after the other, so that those to come
    have not begun; ``past``: how long each test took where the same was run before, so.
    """

    seconds: Mapping[PlannedJob, float] = field(default_factory=dict)
    domains: Mapping[PlannedJob, str] = field(default_factory=dict)
    serial: bool = False
    past: Mapping[Test, float] = field(default_factory=dict)
    done: int = 0
    tests: int = 0
    bad: int = 0
    jobs: dict[PlannedJob, float | None] = field(default_factory=dict)
    begun: dict[Test, float] = field(default_factory=dict)
    took: dict[Test, float] = field(default_factory=dict)
    job_of: dict[Test, PlannedJob] = field(default_factory=dict)

    def take(self, line: Line, now_s: float) -> bool:
        """Note what a line says; whether a job ended."""
        self.done, self.tests = max(self.done, line.done), max(self.tests, line.tests)
        self.bad += line.word in _BAD
        ended = line.word != "RUN"
        if ended:
            self.took[line.test] = now_s - self.begun.pop(line.test, now_s)
        else:
            self.begun[line.test] = now_s
        if line.job is None:
            return False
        self.job_of[line.test] = line.job
        self.jobs[line.job] = now_s if ended else None
        return ended

    def left_s(self, now_s: float) -> float | None:
        """How long it takes yet; None where nothing is known to tell it from."""
        if not self.serial:
            return self._left_of_domains(now_s)
        return self._left_by_past(now_s) if self.past else self._left_by_the_like(now_s)

    def at_least(self) -> bool:
        """Whether it may take any longer: something is to come whose time nothing tells.

        What launches on takes as long as what it finds undecided.
        """
        if self.past:
            known = self.past.keys() | self.took.keys() | self.begun.keys()
            return len(known) < self.tests or any(test not in self.past for test in self.begun)
        return self._further_to_come() > 0

    def _further_to_come(self) -> int:
        """How many tests that launch on have not ended: two for each job."""
        several = 2 * len(self.domains.keys() | self.jobs.keys())
        return several - sum(_launches_on(test) for test in self.took)

    def _overdue(self, now_s: float) -> bool:
        """Whether a test runs for longer than it ever should."""
        return any(now_s - at > self.past.get(test, 0) + 1 for test, at in self.begun.items())

    def _left_by_past(self, now_s: float) -> float:
        """As the same tests took, as much slower or faster as those that have ended were.

        What launched on has no part in that: it took as long as what it found undecided.
        """
        whole = sum(self.past.values())
        told = [test for test in self.took if test in self.past and not _launches_on(test)]
        weight = _WEIGHT * whole
        pace = (sum(self.took[test] for test in told) + weight) / (
            sum(self.past[test] for test in told) + weight
        )
        left = {test: pace * one for test, one in self.past.items() if test not in self.took}
        for test, since in self.begun.items():
            left[test] = max(0.0, left.get(test, 0.0) - (now_s - since))
        return sum(left.values())

    def _left_by_the_like(self, now_s: float) -> float | None:
        """Every job as past sessions have it, or as the like took; every other test as the mean.

        What launches on takes nothing, since it may find nothing undecided.
        """
        jobs = {self.job_of[test]: one for test, one in self.took.items() if test in self.job_of}
        if not jobs and not self.seconds:
            return None
        expected = sum(map(self._seconds, jobs)) if self.seconds else 0.0
        pace = sum(jobs.values()) / expected if expected else 1.0
        everyone = self.domains.keys() | self.jobs.keys()
        left = 0.0
        for job in everyone - jobs.keys():
            takes = pace * self._seconds(job) if self.seconds else _as_the_like(job, jobs)
            since = [at for test, at in self.begun.items() if self.job_of.get(test) == job]
            left += max(0.0, takes - (now_s - since[0] if since else 0.0))
        others = [
            one
            for test, one in self.took.items()
            if test not in self.job_of and not _launches_on(test)
        ]
        to_come = self.tests - 3 * len(everyone) - len(others)
        return left + max(0, to_come) * (mean(others) if others else 0.0)

    def _left_of_domains(self, now_s: float) -> float | None:
        """By the jobs, which all have begun; None where nothing is known to tell it from.

        As past sessions took, and as much slower or faster as the jobs that have ended were; of
        several domains the one that takes longest.
        """
        ended = {job: at for job, at in self.jobs.items() if at is not None}
        if not self.jobs or (not ended and not self.seconds):
            return None
        last: dict[str, float] = defaultdict(float)
        done: dict[str, float] = defaultdict(float)
        for job, at in ended.items():
            domain = self.domains.get(job, "")
            last[domain] = max(last[domain], at)
            done[domain] += self._seconds(job)
        expected = sum(done.values())
        pace = sum(last.values()) / expected if expected else 1.0
        running: dict[str, list[float]] = defaultdict(list)
        for job in self.jobs.keys() - ended.keys():
            running[self.domains.get(job, "")].append(pace * self._seconds(job))
        return max(
            (
                # A job that takes longer than it should takes none of the others' time.
                sum(several) - min(now_s - last[domain], sum(several) / len(several))
                for domain, several in running.items()
            ),
            default=0.0,
        )

    def _seconds(self, job: PlannedJob) -> float:
        if not self.seconds:
            return 1.0
        return self.seconds.get(job, sum(self.seconds.values()) / len(self.seconds))

    def sentence(self, now_s: float) -> str:
        """How long it has run, how long it takes yet, and how many tests failed so far."""
        left_s = self.left_s(now_s)
        at_least = self.at_least()
        if left_s is None:
            left = "time left not known yet"
        elif left_s >= 1:
            left = f"{'at least' if at_least else 'about'} {clock(left_s)} left"
        elif at_least or self._overdue(now_s):
            left = "time left not known"
        else:
            left = "nearly done"
        bad = f", {self.bad} failed" if self.bad else ""
        return f"{clock(now_s)}, {left}{bad}"


def clock(seconds: float) -> str:
    """Minutes and seconds: ``3:07``."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}"


def _launches_on(test: Test) -> bool:
    return test[0].split(" ", 1)[0].endswith(_FURTHER)


def _as_the_like(job: PlannedJob, took: Mapping[PlannedJob, float]) -> float:
    """How long a job takes by those that ended: of its benchmark and ranks, else of any."""
    for near in (
        lambda other: (other.what(), other.partition) == (job.what(), job.partition),
        lambda other: other.what() == job.what(),
        lambda other: other.benchmark == job.benchmark,
        lambda other: True,
    ):
        several = [one for other, one in took.items() if near(other)]
        if several:
            return mean(several)
    return 0.0


def by_past(system: str | None, store: Path | None, command: Sequence[str]) -> Course:
    """A course that knows what will run, and how long it took in past sessions of a store.

    Best by sessions of the same command, which had the same tests; else by their jobs.
    """
    serial = "--exec-policy=serial" in command
    if system is None or store is None:
        return Course(serial=serial)
    past = past_tests(system.partition(":")[0], store, command) if serial else {}
    try:
        found = shown(system, store, full=False)
    except NetproofError:
        # What is wrong with the site, ReFrame says too.
        return Course(serial=serial, past=past)
    seconds = {job: one.seconds for job, one in found.expected.items() if one.seconds is not None}
    domains = {job: domain_of(job, found.matrix) for job in found.jobs}
    return Course(seconds, domains, serial, past)


def past_tests(system: str, store: Path, command: Sequence[str]) -> dict[Test, float]:
    """How long each test took in the newest sessions of the same command, seconds.

    Only those of the newest one; empty where there is none. What launches on now and then has the
    mean, since it is mostly nothing, and all else the median.
    """
    try:
        opened = Store(store)
        sessions = opened.sessions(system)[-SESSIONS:]
        if not sessions:
            return {}
        table, _ = questions.each(
            opened,
            lambda these: questions.ask(opened, these, ["sessions"], _COMMANDS),
            sessions,
        )
        asked = {row["session"]: shlex.split(row["command"])[1:] for row in table.to_pylist()}
        wanted = list(command[1:])
        alike = [one for one in reversed(sessions) if asked.get(one.name) == wanted][:TAKEN]
        took: dict[Test, list[float]] = {}
        for number, stored in enumerate(alike):
            table = questions.ask(opened, [stored], ["tests", "cases"], _TESTS)
            for row in table.to_pylist():
                test = (row["test"], row["partition"], row["environment"])
                if number == 0 or test in took:
                    took.setdefault(test, []).append(row["seconds"])
    except (NetproofError, ValueError):
        # Without it the rest of the run tells, and whatever reads the store says what is wrong.
        return {}
    return {
        test: mean(several) if _launches_on(test) else median(several)
        for test, several in took.items()
    }


class Terminal:
    """One line on a terminal, and above it the jobs that failed."""

    def __init__(self, out: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            TextColumn(
                "{task.fields[told]}",
                markup=False,
                table_column=Column(no_wrap=True, overflow="ellipsis"),
            ),
            console=out,
            transient=True,
            refresh_per_second=2,
        )
        self._task = self._progress.add_task("starting", total=None, told="")
        self._progress.start()

    def tell(self, course: Course, now_s: float, ended: Sequence[Line]) -> None:
        """Change the line."""
        for line in ended:
            if line.word in _BAD:
                tables.say(self._progress.console, f"FAIL {line.job}", "red")
        about = f"{course.done} of {course.tests} tests" if course.tests else "measuring"
        self._progress.update(
            self._task,
            description=about,
            completed=course.done,
            total=course.tests or None,
            told=course.sentence(now_s),
        )

    def close(self) -> None:
        """Take the line away."""
        self._progress.stop()


class Lines:
    """A line for each job that ended, and one now and then, for a log."""

    def __init__(self, out: Console) -> None:
        self._out = out
        self._told_s = 0.0

    def tell(self, course: Course, now_s: float, ended: Sequence[Line]) -> None:
        """Print a line, if there is something to say or nothing was said for long."""
        if not ended and now_s - self._told_s < EVERY_S:
            return
        self._told_s = now_s
        about = f"{course.done} of {course.tests} tests, " if course.tests else ""
        names = ", ".join(f"{line.job} {_ended(line)}" for line in ended)
        tables.say(self._out, f"{about}{course.sentence(now_s)}{f': {names}' if names else ''}")

    def close(self) -> None:
        """Nothing is to be taken away."""


def _ended(line: Line) -> str:
    if line.word in _BAD:
        return "FAILED"
    return "skipped" if line.word == "SKIP" else "measured"


def follow(
    command: Sequence[str], log: Path, out: Console, past: Callable[[], Course]
) -> tuple[int, Course]:
    """Run the command, its output in ``log``, tell its progress, and give its exit status.

    A signal to end goes to the command too, and is its to act on; what is left of it after
    ``ENDING_S`` seconds is killed, and this process then ends by the same signal.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    got: list[int] = []
    with log.open("wb") as output:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # A signal of the terminal reaches it once, through this process.
            start_new_session=True,
            preexec_fn=ending_with_this_process(),
        )

    def pass_on(number: int, _: FrameType | None) -> None:
        got.append(number)
        child.send_signal(number)

    ending = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, pass_on) for number in ending}
    course, telling = Course(), None
    began = time.monotonic()
    try:
        telling = Terminal(out) if out.is_terminal else Lines(out)
        course = past()
        with log.open(errors="replace") as written:
            _tell(child, written.read, course, telling, began, got)
    finally:
        if telling is not None:
            telling.close()
        if child.poll() is None or got:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        for number, handler in before.items():
            signal.signal(number, handler)
    if got:
        tables.say(tables.console(stderr=True), f"ended by a signal; output of ReFrame {log}")
        signal.signal(got[0], signal.SIG_DFL)
        os.kill(os.getpid(), got[0])
    return child.returncode, course


def _tell(
    child: subprocess.Popen[bytes],
    read: Callable[[], str],
    course: Course,
    telling: Terminal | Lines,
    began: float,
    got: Sequence[int],
) -> None:
    """Read what the child writes and tell of it, until it has ended, or does not when told to."""
    rest, told_to_end = "", None
    while True:
        over = child.poll() is not None
        *whole, rest = (rest + read()).split("\n")
        now_s = time.monotonic() - began
        lines = [line for text in whole if (line := parse(text)) is not None]
        ended = [line for line in lines if course.take(line, now_s)]
        telling.tell(course, now_s, ended)
        if got and told_to_end is None:
            told_to_end = now_s
        if over or (told_to_end is not None and now_s - told_to_end > ENDING_S):
            return
        with suppress(subprocess.TimeoutExpired):
            child.wait(LOOK_S)


def end_of(log: Path) -> str:
    """The last lines of the log."""
    lines = _COLOUR.sub("", log.read_text(errors="replace")).splitlines()
    return "\n".join(lines[-LINES:]) or "(nothing)"


def main(arguments: Sequence[str]) -> int:
    """Run the command that follows ``--``; its exit status."""
    parser = argparse.ArgumentParser(prog="ci/progress.py", description=__doc__)
    parser.add_argument("--log", type=Path, required=True, help="file for the output")
    parser.add_argument("--report", type=Path, required=True, help="what ReFrame has to leave")
    parser.add_argument("--system", help="SYSTEM or SYSTEM:PARTITION, for how long jobs took")
    parser.add_argument("command", nargs="+")
    given = parser.parse_args(arguments)
    store = os.environ.get("NETPROOF_STORE")
    out = tables.console()
    tables.say(out, f"output of ReFrame: {given.log}")
    began = time.monotonic()
    try:
        status, course = follow(
            given.command,
            given.log,
            out,
            lambda: by_past(given.system, store and Path(store), given.command),
        )
    except OSError as error:
        why = f"{error.filename or given.log}: {error.strerror or error}"
        tables.say(tables.console(stderr=True), f"ci/progress.py: {why}", "red")
        return CANNOT_JUDGE
    failed = f", {course.bad} failed" if course.bad else ""
    took = clock(time.monotonic() - began)
    tables.say(out, f"{course.done} of {course.tests} tests ran in {took}{failed}")
    if not given.report.is_file():
        tables.say(
            tables.console(stderr=True),
            f"ReFrame left no report (exit status {status}); its output {given.log} ends:\n"
            f"{end_of(given.log)}",
            "red",
        )
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
