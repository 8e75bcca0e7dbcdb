"""The virtual Slurm cluster, and commands with the environment of ``. ci/activate``."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TESTBED = ROOT / "ci" / "testbed" / "testbed"
# ci/ is no installed package.
sys.path.insert(0, str(ROOT))

from ci.testbed.state import CONF, DEFAULT  # noqa: E402

Run = Callable[..., subprocess.CompletedProcess[str]]


def _activated(folder: Path, **settings: str) -> dict[str, str]:
    """Environment of a shell that sourced ci/activate; reports go to ``folder``.

    Where there is a testbed it is entered.
    """
    enter = "ci/testbed/activate" if (DEFAULT / CONF).exists() else "ci/activate"
    ours = ("RFM_", "SLURM_")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    shown = subprocess.run(
        ["bash", "-c", f'. "{ROOT}/{enter}" && env -0'],
        env=clean,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    environment = dict(entry.split("=", 1) for entry in shown.split("\0") if entry)
    return environment | {"RFM_REPORT_FILE": str(folder / "run-0.json"), **settings}


@pytest.fixture(scope="session")
def run() -> Run:
    """``run(folder, *command, **settings)``: a command in ``folder``, as after ci/activate."""

    def run_in(folder: Path, *command: str, **settings: str) -> subprocess.CompletedProcess[str]:
        folder.mkdir(parents=True, exist_ok=True)
        return subprocess.run(
            command,
            cwd=folder,
            env=_activated(folder, **settings),
            capture_output=True,
            text=True,
            check=False,
        )

    return run_in


@pytest.fixture(scope="session")
def testbed_as_found() -> Iterator[None]:
    """Leave the machine with a testbed only if it had one."""
    was_up = subprocess.run([TESTBED, "status"], capture_output=True, check=False).returncode == 0
    yield
    if not was_up:
        subprocess.run([TESTBED, "down"], capture_output=True, check=True)


@pytest.fixture(scope="module")
def other_testbed(testbed_as_found: None) -> Iterator[Callable[[Path], None]]:
    """``other_testbed(topology)`` brings one up; the default testbed is back at the end."""

    def bring(*verb: str) -> None:
        done = subprocess.run([TESTBED, *verb], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def up(topology: Path) -> None:
        bring("down")
        bring("up", "--topology", str(topology))

    yield up
    bring("down")
    bring("up")


@pytest.fixture(scope="module")
def testbed(testbed_as_found: None) -> None:
    """The default testbed, up and whole, whatever other tests did to it."""
    up = subprocess.run([TESTBED, "up"], capture_output=True, text=True, check=False)
    assert up.returncode == 0, up.stdout + up.stderr
