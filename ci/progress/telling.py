"""Show a run's progress: one changing line on a terminal, lines in a log."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Column

from ci.progress.course import Course
from ci.progress.lines import BAD, Line
from netproof.present import terminal

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
                terminal.say(self._progress.console, f"FAIL {line.job}", "red")
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
        terminal.say(self._out, f"{about}{course.sentence(now_s)}{f': {names}' if names else ''}")

    def close(self) -> None:
        """Do nothing."""


def _ended(line: Line) -> str:
    if line.word in BAD:
        return "FAILED"
    return "skipped" if line.word == "SKIP" else "measured"
