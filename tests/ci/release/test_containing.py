"""`ci/test --release` leaves none of its processes behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from made_machine import ROOT, as_root

from ci.release import containing, registries


@as_root
def test_the_status_of_what_ran_is_passed_on():
    environment = registries.passed_on(os.environ)
    assert containing.contained(["sh", "-c", "exit 7"], environment) == 7


@pytest.mark.slow
@as_root
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_a_signal_leaves_no_process_and_no_mount(tmp_path, number):
    """The process has left its parent and its session, and has mounted something."""
    where = tmp_path / "mounted"
    where.mkdir()
    inside = f"mount -t tmpfs tmpfs {where}; setsid sleep 4711.5 & sleep 4711.5"
    script = (
        "import os, sys\n"
        "from ci.release import containing\n"
        "try:\n"
        "    with containing.stopping():\n"
        f"        containing.contained(['sh', '-c', {inside!r}], os.environ)\n"
        "except containing.StoppedError as stopped:\n"
        "    sys.exit(128 + stopped.number)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT)
    await_count(2)
    process.send_signal(number)
    status = process.wait(timeout=30)
    if number is signal.SIGKILL:
        await_count(0)
    assert status == (-number if number is signal.SIGKILL else 128 + number)
    assert sleeping() == 0
    assert str(where) not in Path("/proc/mounts").read_text()


def sleeping() -> int:
    """How many of the sleeps are there."""
    found = 0
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += place.read_bytes() == b"sleep\0004711.5\0"
        except OSError:
            continue
    return found


def await_count(count: int) -> None:
    """Waits until there are ``count`` sleeps."""
    deadline = time.monotonic() + 30
    while sleeping() != count:
        assert time.monotonic() < deadline
        time.sleep(0.05)
