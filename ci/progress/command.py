"""Run ReFrame with its output in a log, and show its progress and the time left.

On a terminal this is one changing line; elsewhere a line whenever a job ends, and at least every
``EVERY_S`` seconds. The exit status is ReFrame's.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from pathlib import Path

from ci.progress.course import clock
from ci.progress.following import end_of, follow
from ci.progress.past import by_past
from netproof.present import terminal
from netproof.verdict.exit_status import CANNOT


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
    terminal.say(out, f"output of ReFrame: {given.log}")
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
        terminal.say(terminal.console(stderr=True), f"ci/progress: {why}", "red")
        return CANNOT
    failed = f", {course.bad} failed" if course.bad else ""
    took = clock(time.monotonic() - began)
    terminal.say(out, f"{course.done} of {course.tests} tests ran in {took}{failed}")
    if not given.report.is_file():
        terminal.say(
            terminal.console(stderr=True),
            f"ReFrame left no report (exit status {status}); its output {given.log} ends:\n"
            f"{end_of(given.log)}",
            "red",
        )
    return status if status >= 0 else 128 - status
