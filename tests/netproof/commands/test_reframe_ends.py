"""ReFrame ends with the command that started it, and has time to cancel its jobs."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

REFRAME = """#!/bin/bash
trap 'sleep 1; echo cancelled >{folder}/jobs; exit 1' TERM
echo began >{folder}/jobs
while :; do sleep 0.1; done
"""


def wait_for(path: Path, text: str) -> None:
    deadline = time.monotonic() + 30
    while not path.is_file() or path.read_text().strip() != text:
        assert time.monotonic() < deadline, f"{path}: {text} did not come"
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_ended_leaves_no_jobs(tmp_path, number):
    program = tmp_path / "reframe"
    program.write_text(REFRAME.format(folder=tmp_path))
    program.chmod(0o755)
    script = (
        "import sys; from pathlib import Path; from netproof.commands.reframe import measure;"
        f" sys.executable = '{tmp_path}/python3'; measure([], Path('{tmp_path}/run.json'))"
    )
    ran = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL)
    wait_for(tmp_path / "jobs", "began")
    ran.send_signal(number)
    assert ran.wait() != 0
    wait_for(tmp_path / "jobs", "cancelled")
