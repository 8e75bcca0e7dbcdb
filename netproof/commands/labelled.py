"""Sessions with a label, measured now: of one file of checks, in one environment of a partition."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from netproof.benchmarks.registry import OF_PAIRS
from netproof.errors import NetproofError
from netproof.present import documents, tables
from netproof.session import labelled
from netproof.site import shipped
from netproof.site.matrix import Matrix
from netproof.verdict import judging

REFRAME = "reframe"
STDERR = 2


def place(where: str) -> tuple[str, str]:
    """Return system and partition of ``SYSTEM:PARTITION``. Raises NetproofError for other forms."""
    system, _, partition = where.partition(":")
    if not partition:
        raise NetproofError(f"--system {where}: name a partition too, SYSTEM:PARTITION")
    return system, partition


def insist_on_environment(found: Matrix, where: str, environment: str) -> None:
    """Raise NetproofError where an environment of a partition cannot measure nodes in pairs."""
    there = sorted({case.environment for case in found.cases if case.benchmark == OF_PAIRS.name})
    if environment not in there:
        raise NetproofError(
            f"{where} has no environment {environment!r} with {OF_PAIRS.label}; it has"
            f" {', '.join(there) or 'none'}"
        )


def measure(
    where: tuple[str, str],
    checks: str,
    settings: Mapping[str, str],
    *,
    label: str,
    subject: str,
    what: str,
) -> Path:
    """Have ReFrame measure, and return the path of its report.

    ``where``: system with partition, and environment; ``checks``: their file; ``settings``: of its
    tests, name to value; ``label``: the session's, and its subfolder's in that of reports, which no
    verdict reads; ``subject``: in the report's name; ``what``: is measured, in words. ReFrame's
    output goes to standard error. Raises NetproofError where it is missing or leaves no report.
    """
    system, environment = where
    folder = labelled.folder_of(judging.reports_folder(), label)
    report = folder / f"run-{subject}-{datetime.now(UTC):%Y%m%dT%H%M%S}.json"
    arguments = ["--system", system, "-p", environment]
    arguments += ["-c", str(shipped.folder("checks") / checks)]
    arguments += [word for name, value in settings.items() for word in ("-S", f"{name}={value}")]
    reframe([*arguments, f"--session-extras={label}={subject}"], report, what)
    return report


def show(
    sweeps: Sequence[tuple[Any, Any]],
    report: Path,
    document: Callable[[Sequence[tuple[Any, Any]]], dict[str, Any]],
    print_one: Callable[[Any, Any, Console], None],
    page: Path | None = None,
    *,
    as_json: bool,
) -> None:
    """Print the sweeps of a report: ``document`` of them all, or ``print_one`` of each.

    ``page``: the path of a page that was written on them.
    """
    if as_json:
        documents.write(document(sweeps), sys.stdout)
        return
    out = tables.console()
    for swept, result in sweeps:
        print_one(swept, result, out)
    tables.say(out, f"report {report}")
    if page is not None:
        tables.say(out, f"page {page}")


def reframe(arguments: Sequence[str], report: Path, what: str) -> None:
    """Run ReFrame, which leaves its report there; ``what`` is measured, for the line above it.

    ReFrame's output goes to standard error. Raises NetproofError where it is not installed, and
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
