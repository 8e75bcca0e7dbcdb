"""Run ReFrame serially with its output in a log, and show its progress and the time left.

On a terminal this is one changing line; elsewhere a line whenever a job ends, and at least every
``EVERY_S`` seconds. The exit status is ReFrame's.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean, median
from types import FrameType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Column

from netproof.benchmarks import registry
from netproof.commands.reframe import ENDING_S, ending_with_this_process
from netproof.commands.site_show import ShownMatrix
from netproof.criteria.settings import ConfirmSettings
from netproof.errors import NetproofError
from netproof.jobs.acceptance import OPEN_FILE
from netproof.present import terminal
from netproof.site.matrix import PlannedJob
from netproof.store import Store, questions
from netproof.store.durations import SESSIONS, TAKEN
from netproof.verdict import CANNOT

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_TEST = re.compile(
    r"\[ *(?P<word>RUN|OK|FAIL|ERROR|ABORT|SKIP|XFAIL|XPASS) *\] "
    r"(?:\( *(?P<done>\d+)/(?P<all>\d+)\) )?"
    r"(?P<name>\w+)(?P<parameters>.*?) /(?P<hash>[0-9a-f]+)"
    r" @(?P<system>[^:\s]+):(?P<partition>[^+\s]+)\+(?P<environ>\S+)"
)
_RANKS = re.compile(r"%ranks=(\d+)")
BAD = ("FAIL", "ERROR", "ABORT", "XPASS")
PAIR_JOB = "PairJob"
ALL_ENVIRONMENTS = ""
"""In the place of a job's environment."""

Test = tuple[str, str, str]
"""ReFrame's display name of a test, its partition and its environment."""


@dataclass(frozen=True)
class Line:
    """A line of ReFrame on one test: RUN, or its result.

    ``done`` of ``tests`` had ended by then, 0 if not shown; ``job``: None for a test without
    launches; ``folder``: the job's, below ReFrame's stage folder.
    """

    word: str
    done: int
    tests: int
    test: Test
    job: PlannedJob | None
    folder: str = field(default="", compare=False)


JOBS = {
    f"{start}{one.name.capitalize()}Job": (one, default)
    for one in registry.STARTED
    for start, default in (("", True), ("Other", False))
}
"""Jobs of ``checks/`` by name, each with its benchmark, and whether it is a plain run's."""


def parse(text: str) -> Line | None:
    """Parse a line of ReFrame's output on a test; return None for any other line."""
    match = _TEST.match(COLOUR.sub("", text))
    if match is None:
        return None
    job, ranks = None, _RANKS.search(match["parameters"])
    # A job measures all environments of its partition.
    where = (match["partition"], ALL_ENVIRONMENTS)
    if match["name"] in JOBS:
        benchmark, default = JOBS[match["name"]]
        if benchmark.by_protocol:
            job = PlannedJob(*where, benchmark.name, 2)
        elif ranks:
            job = PlannedJob(*where, benchmark.name, int(ranks[1]), default)
    test = (match["name"] + match["parameters"], match["partition"], match["environ"])
    place = (match[key] for key in ("system", "partition", "environ"))
    folder = "/".join((*place, f"{match['name']}_{match['hash']}"))
    return Line(match["word"], int(match["done"] or 0), int(match["all"] or 0), test, job, folder)


@dataclass(frozen=True)
class Launches:
    """Launches of a job: made so far, planned without repeats, and the seconds of known repeats.

    ``made_s``: seconds of those made.
    """

    made: int = 0
    planned: int = 0
    repeats_s: float = 0.0
    made_s: float = 0.0


def launched(stage: Path, folder: str) -> Launches:
    """Return the launches of the job of a folder; none before it begins, or without its files.

    A case that is undecided is launched again as often as confirming takes, at least.
    """
    made, planned, repeats_s, made_s = 0, 0, 0.0, 0.0
    # Each session has a folder of its own.
    for job in sorted(stage.glob(f"*/{folder}"))[-1:]:
        try:
            path = job / OPEN_FILE
            undecided = json.loads(path.read_text()) if path.exists() else {}
            for plan in job.glob("**/plan.json"):
                units = json.loads(plan.read_text()).get("rounds", [])
                first = Counter(one.get("subject") for unit in units for one in unit)
                record = plan.with_name("launches.tsv")
                lines = record.read_text().splitlines()[1:] if record.exists() else []
                planned, made = planned + first.total(), made + len(lines)
                took: dict[str, list[float]] = defaultdict(list)
                for name, begun, ended, *_ in (line.split("\t") for line in lines):
                    took[name.rpartition(".")[0]].append(float(ended) - float(begun))
                made_s += sum(map(sum, took.values()))
                for subject in undecided.get(plan.parent.name, ()):
                    # With the one over the link's healthy twin.
                    for one in {subject, f"{subject}-twin"} & took.keys():
                        left = first[one] + ConfirmSettings().launches - len(took[one])
                        repeats_s += max(0, left) * mean(took[one])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return Launches()
    return Launches(made, planned, repeats_s, made_s)


PAIR_LAUNCHES = 20
"""Launches that take as long as the rounds of pairs of a partition of few nodes, by none so far."""

_WEIGHT = 0.05
"""Share of the expected time that has to have ended to count half for the pace."""


@dataclass
class Course:
    """Progress of a run. Times are seconds since it began.

    Tests run one by one, and later ones have not begun. ``seconds``: each job's time in past
    sessions, empty if unknown: similar jobs decide then. ``expected``: the jobs of the run, each
    with its number of cases; ``past``: each test's time in past runs of the same command;
    ``pairs``: jobs that measure nodes in pairs.
    """

    seconds: Mapping[PlannedJob, float] = field(default_factory=dict)
    expected: Mapping[PlannedJob, int] = field(default_factory=dict)
    past: Mapping[Test, float] = field(default_factory=dict)
    pairs: int = 0
    done: int = 0
    tests: int = 0
    bad: int = 0
    jobs: set[PlannedJob] = field(default_factory=set)
    begun: dict[Test, float] = field(default_factory=dict)
    took: dict[Test, float] = field(default_factory=dict)
    job_of: dict[Test, PlannedJob] = field(default_factory=dict)
    running: Line | None = None
    launches: Launches = Launches()
    """Launches of the running job."""
    repeated: list[float] = field(default_factory=list)
    """Repeats of each finished job, as a share of its planned launches."""
    launch_s: list[float] = field(default_factory=list)
    """Mean time of the launches of each finished job."""

    def take(self, line: Line, now_s: float) -> bool:
        """Note a line; return whether a job ended."""
        self.done, self.tests = max(self.done, line.done), max(self.tests, line.tests)
        self.bad += line.word in BAD
        ended = line.word != "RUN"
        if ended:
            self.took[line.test] = now_s - self.begun.pop(line.test, now_s)
        else:
            self.begun[line.test] = now_s
        if line.job is None:
            return False
        self.job_of[line.test] = line.job
        self.jobs.add(line.job)
        if ended and self.launches.made and self.launches.planned:
            self.repeated.append(self.launches.made / self.launches.planned - 1)
            self.launch_s.append(self.launches.made_s / self.launches.made)
        self.running, self.launches = None if ended else line, Launches()
        return ended

    def left_s(self, now_s: float) -> float | None:
        """Return the seconds left; None if nothing is known."""
        return self._left_by_past(now_s) if self.past else self._left_by_similar_jobs(now_s)

    def at_least(self) -> bool:
        """Return whether the time left is a lower limit, since a later test's time is unknown.

        Without past times nobody knows how much a job will launch again.
        """
        if self.past:
            known = self.past.keys() | self.took.keys() | self.begun.keys()
            return len(known) < self.tests or any(test not in self.past for test in self.begun)
        done = {self.job_of[test] for test in self.took if test in self.job_of}
        others = any(test not in self.job_of for test in self.took)
        everyone = self.expected.keys() | self.jobs
        return bool(everyone - done) or (self.done < self.tests and not others)

    def _overdue(self, now_s: float) -> bool:
        """Return whether a test runs for longer than expected."""
        return any(now_s - at > self.past.get(test, 0) + 1 for test, at in self.begun.items())

    def _left_by_past(self, now_s: float) -> float:
        """Estimate from the same tests' past times, scaled by the pace of finished tests."""
        whole = sum(self.past.values())
        both = [test for test in self.took if test in self.past]
        weight = _WEIGHT * whole
        pace = (sum(self.took[test] for test in both) + weight) / (
            sum(self.past[test] for test in both) + weight
        )
        left = {test: pace * one for test, one in self.past.items() if test not in self.took}
        for test, since in self.begun.items():
            left[test] = max(0.0, left.get(test, 0.0) - (now_s - since))
        return sum(left.values())

    def _left_by_similar_jobs(self, now_s: float) -> float | None:
        """Estimate jobs from past sessions or similar jobs, and other tests from their mean."""
        jobs = {self.job_of[test]: one for test, one in self.took.items() if test in self.job_of}
        left = 0.0
        if self.running and self.running.job and self.launches.made:
            elapsed = now_s - self.begun[self.running.test]
            whole = self._running_s(self.running.job, jobs, elapsed)
            jobs, left = {**jobs, self.running.job: whole}, whole - elapsed
        if not jobs and not self.seconds:
            return None
        everyone = self.expected.keys() | self.jobs
        for job in everyone - jobs.keys():
            since = [at for test, at in self.begun.items() if self.job_of.get(test) == job]
            left += max(0.0, self._takes(job, jobs) - (now_s - since[0] if since else 0.0))
        others = {test: one for test, one in self.took.items() if test not in self.job_of}
        pairs = [others.pop(test) for test in [*others] if test[0].startswith(PAIR_JOB)]
        each = mean(pairs) if pairs else PAIR_LAUNCHES * mean(self.launch_s or [0.0])
        begun = [now_s - at for test, at in self.begun.items() if test[0].startswith(PAIR_JOB)]
        left += max(0.0, (self.pairs - len(pairs)) * each - sum(begun))
        to_come = self.tests - len(everyone) - len(others) - max(self.pairs, len(pairs))
        return left + max(0, to_come) * (mean(others.values()) if others else 0.0)

    def _running_s(
        self, job: PlannedJob, jobs: Mapping[PlannedJob, float], elapsed: float
    ) -> float:
        """Estimate the running job by its own pace, and at its beginning by similar jobs.

        It is expected to repeat as large a share of its launches as finished jobs did.
        """
        made, planned = self.launches.made, self.launches.planned
        repeats = mean(self.repeated) if self.repeated else 0.0
        to_make = max(0.0, planned * (1 + repeats) - made)
        own = elapsed + max(to_make * self.launches.made_s / made, self.launches.repeats_s)
        if made >= planned:
            return own
        if job not in self.seconds and not any(other.benchmark == job.benchmark for other in jobs):
            return own
        # Launches of one kind may come first, behind what is done once.
        weight = made / planned
        return max(elapsed, weight * own + (1 - weight) * self._takes(job, jobs))

    def _takes(self, job: PlannedJob, jobs: Mapping[PlannedJob, float]) -> float:
        """Estimate a job by its past, at the pace of those so far; without one by similar jobs."""
        if not self.seconds or (job not in self.seconds and jobs):
            return _mean_of_similar(job, jobs, self.expected)
        expected = sum(map(self._seconds, jobs))
        return self._seconds(job) * (sum(jobs.values()) / expected if expected else 1.0)

    def _seconds(self, job: PlannedJob) -> float:
        if not self.seconds:
            return 1.0
        return self.seconds.get(job, sum(self.seconds.values()) / len(self.seconds))

    def sentence(self, now_s: float) -> str:
        """Return a sentence: time so far, time left, and failed tests."""
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
        made, planned = self.launches.made, self.launches.planned
        launches = ""
        if self.running and made:
            repeats = "repeats, " if made > planned else ""
            number = f"{made} of {planned}" if made <= planned else f"{made}"
            launches = f"; {self.running.job}: {repeats}launch {number}"
        return f"{clock(now_s)}, {left}{bad}{launches}"


def clock(seconds: float) -> str:
    """Format minutes and seconds: ``3:07``."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}"


def _times(partition: str, other: str, took: Mapping[PlannedJob, float]) -> float:
    """Return how many times as long jobs take on a partition as the same ones on another."""
    here = {job.what(): one for job, one in took.items() if job.partition == partition}
    there = {job.what(): one for job, one in took.items() if job.partition == other}
    both = here.keys() & there.keys()
    if not both or not sum(there[what] for what in both):
        return 1.0
    return sum(here[what] for what in both) / sum(there[what] for what in both)


def _mean_of_similar(
    job: PlannedJob, took: Mapping[PlannedJob, float], cases: Mapping[PlannedJob, int]
) -> float:
    """Estimate a job from finished ones: of its benchmark and ranks, else of any.

    Those of another partition count as many times as its jobs take here, and those that measure
    something else by the number of their ``cases``.
    """
    alike = {other: one for other, one in took.items() if other.what() == job.what()}
    here = [one for other, one in alike.items() if other.partition == job.partition]
    if alike:
        times = {other: _times(job.partition, other.partition, took) for other in alike}
        return mean(here or [one * times[other] for other, one in alike.items()])
    for near in (
        lambda other: other.benchmark == job.benchmark,
        lambda other: True,
    ):
        several = [one for other, one in took.items() if near(other)]
        if several:
            own = sum(cases.get(other, 1) for other in took if near(other))
            return sum(several) * cases.get(job, 1) / own
    return 0.0


_COMMANDS = "select session, command from sessions"
_TESTS = """
    select test, partition, environment, seconds from tests where result <> 'skip'
    union all select "check", partition, environment, seconds from cases where result <> 'skip'
"""


def by_past(system: str | None, store: Path | None, command: Sequence[str]) -> Course:
    """Return a course with the expected jobs, and their times in past sessions of a store.

    Sessions of the same command give each test's time; others give the jobs' times.
    """
    if system is None or store is None:
        return Course()
    past = past_tests(system.partition(":")[0], store, command)
    try:
        found = ShownMatrix(system, store, full=False)
    except NetproofError:
        # ReFrame reports the site's faults.
        return Course(past=past)
    seconds: dict[PlannedJob, float] = defaultdict(float)
    for job, one in found.expected.items():
        if one.seconds is not None:
            seconds[replace(job, environment=ALL_ENVIRONMENTS)] += one.seconds
    jobs: Counter[PlannedJob] = Counter()
    for job, cases in found.jobs.items():
        jobs[replace(job, environment=ALL_ENVIRONMENTS)] += len(cases)
    pairs = sum(len(found.pairs_in(partition)) for partition in found.matrix.partitions)
    return Course(seconds, jobs, past, pairs)


def past_tests(system: str, store: Path, command: Sequence[str]) -> dict[Test, float]:
    """Return each test's seconds in the newest sessions of the same command.

    Only tests of the newest one count, by their medians; empty without a session.
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
        # The run itself gives estimates later, and other readers report the store's fault.
        return {}
    return {test: median(several) for test, several in took.items()}


EVERY_S = 30.0
"""Seconds between lines without a terminal."""


class Terminal:
    """One line on a terminal, and failed jobs above it."""

    def __init__(self, out: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            TextColumn(
                "{task.fields[sentence]}",
                markup=False,
                table_column=Column(no_wrap=True, overflow="ellipsis"),
            ),
            console=out,
            transient=True,
            refresh_per_second=2,
        )
        self._task = self._progress.add_task("starting", total=None, sentence="")
        self._progress.start()

    def show(self, course: Course, now_s: float, ended: Sequence[Line]) -> None:
        """Change the line."""
        for line in ended:
            if line.word in BAD:
                terminal.say(f"FAIL {line.job}", "red", self._progress.console)
        about = f"{course.done} of {course.tests} tests" if course.tests else "measuring"
        self._progress.update(
            self._task,
            description=about,
            completed=course.done,
            total=course.tests or None,
            sentence=course.sentence(now_s),
        )

    def close(self) -> None:
        """Remove the line."""
        self._progress.stop()


class Lines:
    """Lines for a log: one for each finished job, and one now and then."""

    def __init__(self, out: Console) -> None:
        self._out = out
        self._shown_s = 0.0

    def show(self, course: Course, now_s: float, ended: Sequence[Line]) -> None:
        """Print a line if a job ended or the last line is old."""
        if not ended and now_s - self._shown_s < EVERY_S:
            return
        self._shown_s = now_s
        about = f"{course.done} of {course.tests} tests, " if course.tests else ""
        names = ", ".join(f"{line.job} {_ended(line)}" for line in ended)
        named = f": {names}" if names else ""
        terminal.say(f"{about}{course.sentence(now_s)}{named}", out=self._out)

    def close(self) -> None:
        """Do nothing."""


def _ended(line: Line) -> str:
    if line.word in BAD:
        return "FAILED"
    return "skipped" if line.word == "SKIP" else "measured"


LOOK_S = 0.5
"""Seconds between looks at the log."""
READ_S = 10.0
"""Seconds between readings of the running job's files: that takes CPU from what it measures."""
LINES = 20
"""Lines of the log to show if ReFrame left no report."""


def follow(
    command: Sequence[str], log: Path, out: Console, past: Callable[[], Course]
) -> tuple[int, Course]:
    """Run the command with its output in ``log``, show its progress; return its exit status.

    A signal to end is passed to the command. After ``ENDING_S`` seconds the rest of it is killed,
    and this process ends by the same signal.
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
    course, display = Course(), None
    began = time.monotonic()
    try:
        display = Terminal(out) if out.is_terminal else Lines(out)
        course = past()
        with log.open(errors="replace") as written:
            _show(child, written.read, course, display, began, got)
    finally:
        if display is not None:
            display.close()
        if child.poll() is None or got:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        for number, handler in before.items():
            signal.signal(number, handler)
    if got:
        terminal.say(f"ended by a signal; output of ReFrame {log}", stderr=True)
        signal.signal(got[0], signal.SIG_DFL)
        os.kill(os.getpid(), got[0])
    return child.returncode, course


def _show(
    child: subprocess.Popen[bytes],
    read: Callable[[], str],
    course: Course,
    display: Terminal | Lines,
    began: float,
    got: Sequence[int],
) -> None:
    """Read the child's output and show progress, until it has ended or ignores a signal."""
    rest, signalled_s, read_s = "", None, 0.0
    while True:
        over = child.poll() is not None
        *whole, rest = (rest + read()).split("\n")
        now_s = time.monotonic() - began
        lines = [line for text in whole if (line := parse(text)) is not None]
        ended = []
        for line in lines:
            if course.running and line.job:
                # It has ended, with more repeats than when it was last read.
                course.launches = launched(Path("stage"), course.running.folder)
            ended += [line] if course.take(line, now_s) else []
        if course.running and now_s - read_s > READ_S:
            course.launches, read_s = launched(Path("stage"), course.running.folder), now_s
        display.show(course, now_s, ended)
        if got and signalled_s is None:
            signalled_s = now_s
        if over or (signalled_s is not None and now_s - signalled_s > ENDING_S):
            return
        with suppress(subprocess.TimeoutExpired):
            child.wait(LOOK_S)


def end_of(log: Path) -> str:
    """Return the last lines of the log."""
    lines = COLOUR.sub("", log.read_text(errors="replace")).splitlines()
    return "\n".join(lines[-LINES:]) or "(nothing)"


def main(arguments: Sequence[str]) -> int:
    """Run the command that follows ``--``; return its exit status."""
    parser = argparse.ArgumentParser(prog="ci/progress", description=__doc__)
    parser.add_argument("--log", type=Path, required=True, help="file for the output")
    parser.add_argument("--report", type=Path, required=True, help="report that ReFrame writes")
    parser.add_argument("--system", help="SYSTEM or SYSTEM:PARTITION, for how long jobs took")
    parser.add_argument("command", nargs="+")
    given = parser.parse_args(arguments)
    store = os.environ.get("NETPROOF_STORE")
    out = terminal.console()
    terminal.say(f"output of ReFrame: {given.log}", out=out)
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
        terminal.say(f"ci/progress: {why}", "red", stderr=True)
        return CANNOT
    failed = f", {course.bad} failed" if course.bad else ""
    took = clock(time.monotonic() - began)
    terminal.say(f"{course.done} of {course.tests} tests ran in {took}{failed}", out=out)
    if not given.report.is_file():
        terminal.say(
            f"ReFrame left no report (exit status {status}); its output {given.log} ends:\n"
            f"{end_of(given.log)}",
            "red",
            stderr=True,
        )
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
