"""ReFrame for a command that measures: its program, and one run of it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from netproof.errors import NetproofError
from netproof.present import tables

REFRAME = "reframe"
STDERR = 2


def run(arguments: Sequence[str], report: Path, what: str) -> None:
    """Run ReFrame, which leaves its report there; ``what`` is measured, for the line above it.

    What ReFrame prints goes to standard error. Raises NetproofError where it is not installed, and
    where it leaves no report.
    """
    program = Path(sys.executable).with_name(REFRAME)
    if not program.is_file():
        raise NetproofError(f"{program}: is not there, so nothing can be measured")
    report.parent.mkdir(parents=True, exist_ok=True)
    command = [str(program), *arguments, "-r"]
    if not sys.stderr.isatty():
        command.append("--nocolor")
    tables.say(tables.console(stderr=True), f"measuring {what}: {shlex.join(command)}")
    ended = subprocess.run(
        command,
        stdout=STDERR,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "RFM_REPORT_FILE": str(report)},
        check=False,
    )
    if not report.is_file():
        raise NetproofError(
            f"reframe left no report {report} (exit status {ended.returncode}); what it printed"
            " says why"
        )
