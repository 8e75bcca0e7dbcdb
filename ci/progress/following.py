"""Run ReFrame with its output in a log, and follow the log."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType

from rich.console import Console

from ci.progress.course import Course
from ci.progress.lines import COLOUR, parse
from ci.progress.telling import Lines, Terminal
from netproof.commands.night import ENDING_S, ending_with_this_process
from netproof.present import terminal

LOOK_S = 0.5
"""Seconds between looks at the log."""
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
        terminal.say(terminal.console(stderr=True), f"ended by a signal; output of ReFrame {log}")
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
    rest, signalled_s = "", None
    while True:
        over = child.poll() is not None
        *whole, rest = (rest + read()).split("\n")
        now_s = time.monotonic() - began
        lines = [line for text in whole if (line := parse(text)) is not None]
        ended = [line for line in lines if course.take(line, now_s)]
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
