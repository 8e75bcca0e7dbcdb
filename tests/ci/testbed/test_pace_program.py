"""How far the CPUs of this machine are apart, by the program of the testbed."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[3] / "ci" / "testbed" / "pace.c"


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler here: ci/setup installs one for the testbed")
    built = tmp_path_factory.mktemp("pace") / "pace"
    command = ["cc", "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-o", str(built)]
    subprocess.run([*command, str(SOURCE), "-lpthread"], check=True)
    return built


@pytest.mark.slow
def test_two_cpus_hand_a_line_over_in_some_time(program):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("this machine has one CPU")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([program, "watch"], **pipes) as watching:
        time.sleep(1)
        printed, _ = watching.communicate()
    assert watching.returncode == 0
    halves = [int(half) for half in printed.split()]
    assert len(halves) == 2
    assert all(0 < half < 1_000_000 for half in halves)


def test_of_too_short_a_time_it_tells_nothing(program):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("this machine has one CPU")
    ran = subprocess.run([program, "watch"], input="", capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "readings, and it takes 4" in ran.stderr
    assert subprocess.run([program], capture_output=True, check=False).returncode == 2
