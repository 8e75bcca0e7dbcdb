"""Calls by `ci/quickstart`, with stand-ins that record them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SAYS = '#!/bin/bash\necho "CALL ${0##*/} $*"\n'


@pytest.fixture
def quickstart(tmp_path):
    """Runs it in a checkout of stand-ins; its calls, and its exit status."""
    ci, found = tmp_path / "ci", tmp_path / "bin"
    (ci / "testbed").mkdir(parents=True)
    found.mkdir()
    shutil.copy(ROOT / "ci" / "quickstart", ci)
    (ci / "testbed" / "activate").write_text("")
    own = (ci / "setup", ci / "spack-envs", ci / "testbed" / "testbed")
    for path in (*own, *map(found.joinpath, NAMES)):
        path.write_text(SAYS)
        path.chmod(0o755)

    def run(*arguments: str) -> tuple[int, list[str]]:
        ran = subprocess.run(
            [ci / "quickstart", *arguments],
            env={**os.environ, "PATH": f"{found}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )
        calls = [line[5:] for line in ran.stdout.splitlines() if line.startswith("CALL ")]
        return ran.returncode, calls

    return run


NAMES = ("python", "reframe", "netproof")


def test_reframe_s_lines_go_to_a_log_alongside_the_report(quickstart, tmp_path):
    status, calls = quickstart("--smoke")
    assert status == 0
    assert [call.split()[0] for call in calls] == [
        *("setup", "testbed", "python", "netproof", "testbed")
    ]
    words = calls[2].split()
    assert words[1] == "ci/progress.py"
    given = dict(zip(words[2:8:2], words[3:8:2], strict=True))
    stem = given["--report"].removesuffix(".json")
    assert given == {
        "--report": f"{stem}.json",
        "--log": f"{stem}.log",
        "--system": "testbed:gige",
    }
    assert stem.startswith(f"{tmp_path}/reports/run-quickstart-")
    options = "-S launches=1 --exec-policy=serial"
    command = f"-- reframe --system testbed:gige {options} -c checks -r"
    assert calls[2].endswith(command)


def test_verbose_shows_them(quickstart):
    _, calls = quickstart("--verbose", "--keep")
    assert calls[2] == "reframe --system testbed --exec-policy=serial -c checks -r"
    # It is kept up.
    assert calls[-1].startswith("netproof verdict ")


def test_what_it_does_not_know_runs_nothing(quickstart):
    assert quickstart("--fast") == (2, [])


def test_spack_environments_are_built_before_and_tried_under_slurm(quickstart):
    status, calls = quickstart("--spack", "openmpi-gcc", "mpich-gcc", "--smoke")
    assert status == 0
    assert calls[1] == "spack-envs build openmpi-gcc mpich-gcc"
    assert calls[2].split()[:2] == ["testbed", "up"]
    assert calls[3] == ("spack-envs check openmpi-gcc mpich-gcc --slurm --partition=gige --nodes=2")
    assert calls[4].startswith("python ci/progress.py ")


@pytest.mark.parametrize("arguments", [["--spack"], ["--spack", "--smoke"], ["mpich-gcc"]])
def test_environments_are_named_behind_spack_and_nowhere_else(quickstart, arguments):
    assert quickstart(*arguments) == (2, [])
