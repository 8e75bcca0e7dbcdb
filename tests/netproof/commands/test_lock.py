"""Two nights never run at once, and a killed one is in nobody's way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from netproof.commands import night
from netproof.errors import NetproofError

SINCE = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)

HOLDER = """
import sys, time
from datetime import UTC, datetime
from pathlib import Path
from netproof.commands import night
with night.held(Path(sys.argv[1]), datetime(2026, 11, 21, 2, 0, tzinfo=UTC)):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_second_night_is_refused_and_told_who_runs_since_when(tmp_path):
    path = tmp_path / "lock"
    with (
        night.held(path, SINCE),
        pytest.raises(NetproofError, match=rf"process {os.getpid()} on \S+ since 2026-11-21 02:00"),
        night.held(path, SINCE),
    ):
        pass
    with night.held(path, SINCE):
        pass


def test_a_killed_night_holds_nothing(tmp_path):
    path = tmp_path / "lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, path], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(NetproofError, match="still running"), night.held(path, SINCE):
        pass
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    with night.held(path, SINCE):
        assert f"process {os.getpid()} " in path.read_text()


def test_what_inherits_the_lock_holds_it_too(tmp_path):
    path = tmp_path / "lock"
    with night.held(path, SINCE) as descriptor:
        child = subprocess.Popen(["sleep", "600"], pass_fds=(descriptor,))
    with pytest.raises(NetproofError, match="still running"), night.held(path, SINCE):
        pass
    child.kill()
    child.wait()
    with night.held(path, SINCE):
        pass


def test_systems_of_one_store_have_locks_of_their_own():
    store = Path("/shared/netproof")
    assert night.lock_of(store, "one") == Path("/shared/netproof.one.lock")
    assert night.lock_of(store, "two") != night.lock_of(store, "one")
