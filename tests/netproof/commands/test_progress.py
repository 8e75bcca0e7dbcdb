"""Slow commands show on a terminal what they do, and nothing elsewhere."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from netproof.diagnosis.diagnosis import ingest
from netproof.store import Store

ROOT = Path(__file__).resolve().parents[3]
SESSIONS = ROOT / "tests" / "data" / "sessions"
PASSED = SESSIONS / "passed.json"
REPEATED = [str(SESSIONS / f"repeated-{number}.json") for number in (1, 2, 3)]

SAID = [
    (["store", "add", str(PASSED), "--store", "{new}"], f"storing {PASSED}, 1 of 1"),
    (
        ["store", "export", "--store", "{store}", "--format", "csv", "--to", "{new}"],
        "writing session 20261120T233238-d1f0d2ad",
    ),
    (["references", "derive", *REPEATED], "deriving references of 3 sessions"),
    (["measure", "study", "--list", str(PASSED)], f"reading {PASSED}"),
]


@pytest.fixture
def store(tmp_path) -> Path:
    ingest(Store.create(tmp_path / "store"), PASSED)
    return tmp_path / "store"


def begun(arguments: list[str], tmp_path: Path, store: Path, stderr: int) -> subprocess.Popen:
    stated = [one.format(new=tmp_path / "new", store=store) for one in arguments]
    return subprocess.Popen(
        [sys.executable, "-c", "from netproof.commands.cli import main; main()", *stated],
        env={**os.environ, "TERM": "xterm", "COLUMNS": "200"},
        stdout=subprocess.DEVNULL,
        stderr=stderr,
    )


def all_of(terminal: int) -> str:
    """Return what is written to a terminal until its other end closes."""
    read = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:
            return read.decode()
        read += part


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "said"), SAID, ids=[said[0][0] for said in SAID])
def test_on_a_terminal_it_says_what_it_does(arguments, said, tmp_path, store):
    terminal, theirs = pty.openpty()
    with begun(arguments, tmp_path, store, theirs) as command:
        os.close(theirs)
        output = all_of(terminal)
        os.close(terminal)
    assert command.returncode == 0, output
    assert said in " ".join(output.split())


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "said"), SAID, ids=[said[0][0] for said in SAID])
def test_in_a_file_no_progress_stands(arguments, said, tmp_path, store):
    with (tmp_path / "errors").open("w+") as errors:
        with begun(arguments, tmp_path, store, errors.fileno()) as command:
            command.wait()
        errors.seek(0)
        assert command.returncode == 0
        assert said not in errors.read()
