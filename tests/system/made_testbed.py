"""The testbed's verbs, its nodes, and what becomes true in a while."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ci.testbed import network

TESTBED = Path(__file__).resolve().parents[2] / "ci" / "testbed" / "testbed"


def verb(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [str(TESTBED), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


def done(*arguments: object, **options: Any) -> str:
    """Output of a verb that succeeds."""
    ran = verb(*arguments, **options)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def refused(*arguments: object, **options: Any) -> str:
    """The one sentence of a refusal."""
    ran = verb(*arguments, **options)
    assert ran.returncode == 2, ran.stdout + ran.stderr
    assert ran.stderr.count("\n") == 1, ran.stderr
    return ran.stderr


def inside(node: str, *command: str) -> str:
    """Output of a command in a node's network."""
    where = f"--net={network.NAMED_NAMESPACES / network.namespace(node)}"
    return subprocess.run(
        ["nsenter", where, *command], capture_output=True, text=True, check=True
    ).stdout


def eventually(holds: Callable[[], object], what: str = "", seconds: float = 90) -> None:
    """Wait for what comes true."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def started_with(assignment: str) -> list[str]:
    """Command lines of the processes that have a variable, such as a Slurm job's number."""
    found, mark = [], assignment.encode()
    for process in Path("/proc").glob("[0-9]*"):
        # It has ended, or is not for root to read, and so none of ours.
        with contextlib.suppress(OSError):
            if mark in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return found
