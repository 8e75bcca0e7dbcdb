"""Run ReFrame serially with its output in a log, and show its progress and the time left.

On a terminal this is one changing line; elsewhere a line whenever a job ends, and at least every
``EVERY_S`` seconds. The exit status is ReFrame's.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Column

from netproof.benchmarks import registry
from netproof.commands.reframe import end_reframe, ending_with_this_process
from netproof.commands.site_show import ShownMatrix
from netproof.errors import NetproofError
from netproof.present import terminal
from netproof.site.matrix import slurm_job
from netproof.verdict import CANNOT

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_TEST = re.compile(
    r"\[ *(?P<word>RUN|OK|FAIL|ERROR|ABORT|SKIP|XFAIL|XPASS) *\] "
    r"(?:\( *(?P<done>\d+)/(?P<all>\d+)\) )?"
    r"(?P<name>\w+)(?P<parameters>.*?) /(?P<hash>[0-9a-f]+)"
    r" @(?P<system>[^:\s]+):(?P<partition>[^+\s]+)\+(?P<environ>\S+)"
)
BAD = ("FAIL", "ERROR", "ABORT", "XPASS")
ENDED = {"SKIP": "skipped"} | dict.fromkeys(BAD, "FAILED")


@dataclass(frozen=True)
class Line:
    """A line of ReFrame on one test: RUN, or its result.

    ``done`` of ``tests`` had ended by then, 0 if not shown; ``test``: ReFrame's display name, the
    partition and the environment; ``job``: None for a test without launches; ``folder``: the job's,
    below ReFrame's stage folder.
    """

    word: str = field(compare=False)
    done: int = field(compare=False)
    tests: int = field(compare=False)
    test: tuple[str, str, str]
    job: str | None
    folder: str = field(default="", compare=False)

    @property
    def pairs(self) -> bool:
        """Check whether the test measures nodes in pairs."""
        return self.test[0].startswith("PairJob")


JOBS = {
    **{f"{one.name.capitalize()}Job": one.label for one in registry.STARTED},
    "MpiJob": "MPI",
}
"""What each job of ``checks/`` measures, by its name."""


def parse(text: str) -> Line | None:
    """Parse a line of ReFrame's output on a test; return None for any other line."""
    match = _TEST.match(COLOUR.sub("", text))
    if match is None:
        return None
    what, ranks = JOBS.get(match["name"]), re.search(r"%ranks=(\d+)", match["parameters"])
    job = what and f"{match['partition']} {what}{f' on {ranks[1]} ranks' if ranks else ''}"
    test = (match["name"] + match["parameters"], match["partition"], match["environ"])
    place = (match[key] for key in ("system", "partition", "environ"))
    folder = "/".join((*place, f"{match['name']}_{match['hash']}"))
    return Line(match["word"], int(match["done"] or 0), int(match["all"] or 0), test, job, folder)


class Launches(NamedTuple):
    """Launches of a job: made so far, and planned without repeats."""

    made: int = 0
    planned: int = 0


def launched(stage: Path, folder: str) -> Launches:
    """Return the launches of the job of a folder; none before it begins, or without its files."""
    made = planned = 0
    # Each session has a folder of its own.
    folders = sorted(stage.glob(f"*/{folder}"))[-1:]
    try:
        for plan in (one for job in folders for one in job.glob("**/plan.json")):
            planned += sum(map(len, json.loads(plan.read_text()).get("rounds", [])))
            record = plan.with_name("launches.tsv")
            made += len(record.read_text().splitlines()[1:]) if record.exists() else 0
    except (OSError, ValueError, TypeError, AttributeError):
        return Launches()
    return Launches(made, planned)


PAIR_CASES = 5
"""Cases that take as long as the rounds of pairs of a partition of few nodes."""


@dataclass
class Course:
    """Progress of a run, whose tests run one by one. Times are seconds since it began.

    ``expected``: the jobs of the run, each with its number of cases; ``pairs``: jobs that measure
    nodes in pairs. ``measured``: cases of the jobs that ended, PAIR_CASES for one of pairs.
    ``running``: a test, with its ``launches``.
    """

    expected: Mapping[str, int] = field(default_factory=dict)
    pairs: int = 0
    done: int = 0
    tests: int = 0
    bad: int = 0
    measured: int = 0
    running: Line | None = None
    launches: Launches = field(default_factory=Launches)

    def take(self, line: Line) -> bool:
        """Note a line; return whether a job ended."""
        self.done, self.tests = max(self.done, line.done), max(self.tests, line.tests)
        self.bad += line.word in BAD
        if line.word == "RUN":
            self.running, self.launches = line, Launches()
            return False
        self.running = None
        own = self.expected.get(line.job, 0) if line.job else 0
        self.measured += PAIR_CASES if line.pairs else own
        return line.job is not None

    def read(self) -> None:
        """Read the running job's launches."""
        if self.running and self.running.job:
            self.launches = launched(Path("stage"), self.running.folder)

    def left_s(self, now_s: float) -> float | None:
        """Estimate the seconds left, as if all cases took as long; None before the first launch.

        In the recorded quick starts of tests/data/reframe seven of ten estimates from half-way on
        are right within a third, as many as by each job's own seconds.
        """
        measured, job = float(self.measured), self.running.job if self.running else None
        if job and self.launches.planned:
            part = min(1.0, self.launches.made / self.launches.planned)
            measured += self.expected.get(job, 0) * part
        whole = sum(self.expected.values()) + PAIR_CASES * self.pairs
        return now_s * max(0.0, whole - measured) / measured if measured else None

    def sentence(self, now_s: float) -> str:
        """Return a sentence: time so far, time left, and failed tests."""
        left_s, running = self.left_s(now_s), self.running and self.running.job
        if left_s is None:
            left = "time left not known yet"
        elif left_s >= 1:
            left = f"about {clock(left_s)} left"
        else:
            left = "time left not known" if running else "nearly done"
        bad = f", {self.bad} failed" if self.bad else ""
        made, planned = self.launches
        launches = ""
        if running and made:
            number = f"launch {made} of {planned}" if made <= planned else f"repeats, launch {made}"
            launches = f"; {running}: {number}"
        return f"{clock(now_s)}, {left}{bad}{launches}"


def clock(seconds: float) -> str:
    """Format minutes and seconds: ``3:07``."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}"


def expected(system: str) -> Course:
    """Return a course with the jobs that the site requires; without any if it has a fault."""
    try:
        found = ShownMatrix(system, None, full=False)
    except NetproofError:
        # ReFrame reports the site's faults.
        return Course()
    jobs: Counter[str] = Counter()
    for job, cases in found.jobs.items():
        jobs[slurm_job(job, found.matrix)] += len(cases)
    return Course(jobs, sum(len(found.pairs_in(one)) for one in found.matrix.partitions))


EVERY_S = 30.0
"""Seconds between lines without a terminal."""


class Display:
    """One changing line on a terminal, and failed jobs above it.

    In a log a line for each finished job, and one now and then.
    """

    def __init__(self, out: Console) -> None:
        self._out, self._shown_s = out, 0.0
        sentence = Column(no_wrap=True, overflow="ellipsis")
        self.progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[sentence]}", markup=False, table_column=sentence),
            console=out,
            transient=True,
            refresh_per_second=2,
            disable=not out.is_terminal,
        )
        self._task = self.progress.add_task("starting", total=None, sentence="")
        self.progress.start()

    def show(self, course: Course, now_s: float, ended: Sequence[Line]) -> None:
        """Change the line; in a log print one if a job ended or the last one is old."""
        sentence = course.sentence(now_s)
        about = f"{course.done} of {course.tests} tests" if course.tests else "measuring"
        if not self.progress.disable:
            for line in ended:
                if line.word in BAD:
                    terminal.say(f"FAIL {line.job}", "red", self._out)
            self.progress.update(
                self._task,
                description=about,
                completed=course.done,
                total=course.tests or None,
                sentence=sentence,
            )
        elif ended or now_s - self._shown_s >= EVERY_S:
            self._shown_s = now_s
            names = ", ".join(f"{line.job} {ENDED.get(line.word, 'measured')}" for line in ended)
            terminal.say(f"{about}, {sentence}{names and f': {names}'}", out=self._out)


LOOK_S = 0.5
"""Seconds between looks at the log."""
READ_S = 10.0
"""Seconds between readings of the running job's files: that takes CPU from what it measures."""
LINES = 20
"""Lines of the log to show if ReFrame left no report."""


def follow(command: Sequence[str], log: Path, out: Console, course: Course) -> int:
    """Run the command with its output in ``log``, show its progress; return its exit status.

    On a signal the command is ended, killed if that takes long, and then this process by the same.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    child, got, display = None, 0, Display(out)
    rest, read_s, over = "", 0.0, False

    def end(number: int, _: FrameType | None) -> None:
        raise KeyboardInterrupt(number)

    try:
        for number in before:
            signal.signal(number, end)
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
        began = time.monotonic()
        with log.open(errors="replace") as written:
            while not over:
                with suppress(subprocess.TimeoutExpired):
                    child.wait(LOOK_S)
                over = child.poll() is not None
                *whole, rest = (rest + written.read()).split("\n")
                now_s = time.monotonic() - began
                ended = []
                for line in filter(None, map(parse, whole)):
                    ended += [line] if course.take(line) else []
                if now_s - read_s > READ_S:
                    course.read()
                    read_s = now_s
                display.show(course, now_s, ended)
    except KeyboardInterrupt as signalled:
        (got,) = signalled.args
    finally:
        for number in before:
            signal.signal(number, signal.SIG_IGN)
        display.progress.stop()
        if child and child.poll() is None:
            end_reframe(child)
        for number, handler in before.items():
            signal.signal(number, handler)
    if got:
        terminal.say(f"ended by a signal; output of ReFrame {log}", stderr=True)
        signal.signal(got, signal.SIG_DFL)
        os.kill(os.getpid(), got)
    return child.returncode


def main(arguments: Sequence[str]) -> int:
    """Run the command that follows ``--``; return its exit status."""
    parser = argparse.ArgumentParser(prog="ci/progress", description=__doc__)
    parser.add_argument("--log", type=Path, required=True, help="file for the output")
    parser.add_argument("--report", type=Path, required=True, help="report that ReFrame writes")
    parser.add_argument("--system", help="SYSTEM or SYSTEM:PARTITION, for the jobs to come")
    parser.add_argument("command", nargs="+")
    given = parser.parse_args(arguments)
    out = terminal.console()
    terminal.say(f"output of ReFrame: {given.log}", out=out)
    began = time.monotonic()
    course = expected(given.system) if given.system else Course()
    try:
        status = follow(given.command, given.log, out, course)
    except OSError as error:
        why = f"{error.filename or given.log}: {error.strerror or error}"
        terminal.say(f"ci/progress: {why}", "red", stderr=True)
        return CANNOT
    failed = f", {course.bad} failed" if course.bad else ""
    took = clock(time.monotonic() - began)
    terminal.say(f"{course.done} of {course.tests} tests ran in {took}{failed}", out=out)
    if not given.report.is_file():
        lines = COLOUR.sub("", given.log.read_text(errors="replace")).splitlines() or ["(nothing)"]
        end = "\n".join(lines[-LINES:])
        terminal.say(
            f"ReFrame left no report (exit status {status}); its output {given.log} ends:\n{end}",
            "red",
            stderr=True,
        )
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
