"""How far a run is: ReFrame's lines in a log, and on the screen how long it takes yet."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ci.progress import main
from ci.testbed import processes

ROOT = Path(__file__).resolve().parents[3]
RECORDED = ROOT / "tests" / "data" / "reframe" / "whole.log"

PLAYS = """
import sys, time
for line in open(sys.argv[1]):
    print(line, end="", flush=True)
    if "Job" in line and "/86)" in line:
        time.sleep(0.1)
"""
SAYS_SO_AND_WAITS = """
import signal, sys, time
def end(number, frame):
    print("ended by", number, flush=True)
    sys.exit(1)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, end)
print("waiting", flush=True)
time.sleep(60)
"""


def words(tmp_path: Path, *command: str) -> list[str]:
    files = ("--log", str(tmp_path / "run.log"), "--report", str(tmp_path / "run.json"))
    return [*files, "--", *command]


def progress(tmp_path: Path, *command: str) -> list[str]:
    program = (sys.executable, str(ROOT / "ci" / "progress.py"))
    return [*program, *words(tmp_path, *command)]


def play(tmp_path: Path) -> tuple[str, ...]:
    return (sys.executable, "-c", PLAYS, str(RECORDED))


@pytest.mark.slow
def test_in_a_log_there_is_a_line_for_each_job_and_reframe_s_lines_are_elsewhere(tmp_path):
    (tmp_path / "run.json").write_text("{}")
    ran = subprocess.run(
        progress(tmp_path, *play(tmp_path)), capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert (tmp_path / "run.log").read_text() == RECORDED.read_text()
    first, *lines, last = ran.stdout.splitlines()
    assert first == f"output of ReFrame: {tmp_path / 'run.log'}"
    assert sum(line.count(" measured") for line in lines) == 3
    assert len(lines) <= 3
    assert all(" of 86 tests, 0:0" in line for line in lines)
    assert last.startswith("86 of 86 tests ran in 0:0")
    assert "RUN" not in ran.stdout


@pytest.mark.slow
def test_on_a_terminal_it_is_one_line_that_changes(tmp_path):
    (tmp_path / "run.json").write_text("{}")
    terminal, theirs = pty.openpty()
    with subprocess.Popen(
        progress(tmp_path, *play(tmp_path)),
        stdout=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    ) as ran:
        os.close(theirs)
        shown = b""
        while True:
            try:
                shown += os.read(terminal, 65536)
            except OSError:
                break
        os.close(terminal)
    text = shown.decode()
    assert ran.returncode == 0
    assert "of 86 tests" in text
    # Of what changed, nothing stays but the last line.
    assert text.count("\n") <= 4 + text.count("\x1b[1A")
    assert "ImbBarrier" not in text


@pytest.mark.parametrize("left", [False, True])
def test_the_exit_status_is_that_of_the_command_and_its_end_is_shown_without_a_report(
    tmp_path, capsys, left
):
    if left:
        (tmp_path / "run.json").write_text("{}")
    command = ("sh", "-c", "echo reframe: no such check; exit 3")
    assert main(words(tmp_path, *command)) == 3
    out, err = capsys.readouterr()
    assert "no such check" not in out
    # A report of failed tests is for the verdict to read.
    assert ("ReFrame left no report (exit status 3); its output" in err) is not left
    assert ("reframe: no such check" in err) is not left
    (tmp_path / "run.log").unlink()
    (tmp_path / "run.log").mkdir()
    assert main(words(tmp_path, "true")) == 2
    assert capsys.readouterr().err == f"ci/progress: {tmp_path / 'run.log'}: Is a directory\n"


def alive(text: str) -> bool:
    """Whether a process has this in its command line."""
    return any(text in processes.title(one.pid) for one in processes.running())


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_signal_reaches_the_command_and_nothing_is_left(tmp_path, number):
    log = tmp_path / "run.log"
    mark = f"# {tmp_path}"
    command = (sys.executable, "-c", SAYS_SO_AND_WAITS + mark)
    with subprocess.Popen(
        progress(tmp_path, *command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as ran:
        _until(lambda: log.is_file() and "waiting" in log.read_text())
        ran.send_signal(number)
        assert ran.wait(30) == -number
    _until(lambda: not alive(mark))
    # The kernel sends its signal to the child of a killed process.
    assert log.read_text() == f"waiting\nended by {int(signal.SIGTERM)}\n"


@pytest.mark.slow
def test_a_signal_that_comes_as_the_command_begins_ends_it_too(tmp_path):
    command = ("sh", "-c", "kill -HUP $PPID; exec sleep 60")
    ran = subprocess.run(progress(tmp_path, *command), capture_output=True, text=True, timeout=30)
    assert ran.returncode == -signal.SIGHUP
    assert "ended by a signal" in ran.stderr


def _until(true) -> None:
    patience = time.monotonic() + 20
    while not true():
        assert time.monotonic() < patience
        time.sleep(0.05)
