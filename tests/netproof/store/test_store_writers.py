"""Whatever happens to a writer, the store is as it was or has the session whole."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime, tzinfo
from pathlib import Path

import pytest
import typer

from netproof.commands import stores
from netproof.diagnosis.diagnosis import ingest
from netproof.errors import NetproofError
from netproof.store import Store, folder, questions
from netproof.store.folder import INCOMING
from netproof.verdict import stored

pytestmark = pytest.mark.slow

PASSED = Path(__file__).resolve().parents[2] / "data" / "sessions" / "passed.json"
SERVER = """
import datetime, os, signal, sys
from pathlib import Path
import typer
from netproof.commands.stores import add
from netproof.present import terminal
from netproof.store import folder
from netproof.verdict import stored

class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2026, 11, 22, 8, tzinfo=tz)

stored.datetime = Clock
while line := sys.stdin.readline():
    step, where, *reports = line.rstrip("\\n").split("\\t")
    child = os.fork()
    if child == 0:
        steps = int(step)
        def counted(function):
            def called(*arguments):
                global steps
                steps -= 1
                if steps == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return function(*arguments)
            return called
        os.fsync, Path.rename = counted(os.fsync), counted(Path.rename)
        try:
            add(reports, Path(where))
        except typer.Exit as ended:
            os._exit(ended.exit_code)
    print(child, flush=True)
    # Until it is asked for, the process id stays the writer's, ended or not.
    sys.stdin.readline()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Forks a writer for each line: a step to be killed before, or 0, the store and the reports."""


def run(reports: list[Path], folder: Path) -> int:
    """Ingest reports, and return the exit status."""
    with pytest.raises(typer.Exit) as ended:
        stores.add([str(report) for report in reports], folder)
    return ended.value.exit_code


class Writers:
    """Writers that start at once, their modules being loaded before they are forked."""

    def __init__(self) -> None:
        self.server = subprocess.Popen(
            [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def start(self, store: Path, reports: list[Path], *, step: int = 0) -> int:
        """Start a writer; returns its process id."""
        print(step, store, *reports, sep="\t", file=self.server.stdin, flush=True)
        return int(self._told())

    def status(self) -> int:
        """Its exit status once it has ended, below 0 for a signal."""
        print(file=self.server.stdin, flush=True)
        return int(self._told())

    def _told(self) -> str:
        # What the writer itself prints of its reports comes between the server's lines.
        for line in self.server.stdout:
            if line.strip().lstrip("-").isdigit():
                return line
        raise AssertionError("the server of writers has ended")

    def end(self) -> None:
        """No more writers."""
        self.server.stdin.close()
        assert self.server.wait() == 0


@pytest.fixture
def writers() -> Iterator[Writers]:
    started = Writers()
    yield started
    started.end()


def reports(tmp_path: Path, count: int) -> list[Path]:
    """So many reports of sessions of their own."""
    document = json.loads(PASSED.read_text())
    paths = []
    for number in range(count):
        document["session_info"]["uuid"] = f"{number:08x}-0000-4000-8000-000000000000"
        document["session_info"]["time_start_unix"] += 86400
        paths.append(tmp_path / f"run-{number}.json")
        paths[-1].write_text(json.dumps(document))
    return paths


def sessions(store: Path) -> dict[str, dict[str, bytes]]:
    """Each session's files, as a reader sees them."""
    return {
        path.name: {file.name: file.read_bytes() for file in path.iterdir()}
        for path in store.glob("system=*/month=*/session=*")
    }


class Clock(datetime):
    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Clock:
        return cls(2026, 11, 22, 8, tzinfo=tz)


@pytest.fixture
def whole(tmp_path, monkeypatch) -> dict[str, dict[str, bytes]]:
    """What a store has when five reports have come in undisturbed."""
    # The writers judge at the same time.
    monkeypatch.setattr(stored, "datetime", Clock)
    assert run(reports(tmp_path, 5), tmp_path / "undisturbed") == 0
    return sessions(tmp_path / "undisturbed")


def check(store: Path, whole: dict[str, dict[str, bytes]], before: set[str]) -> int:
    """Number of sessions that have come; all of them, and all that were there, are whole."""
    found = sessions(store)
    assert before <= set(found)
    assert all(found[name] == whole[name] for name in found)
    assert {f"session={stored.name}" for stored in Store(store).sessions()} == set(found)
    return len(found) - len(before)


def test_killed_before_each_step_that_reaches_the_disk_the_store_is_as_before_or_complete(
    tmp_path, writers, whole
):
    coming, store = reports(tmp_path, 5), tmp_path / "store"
    run(coming[:4], store)
    before = set(sessions(store))
    outcomes = []
    for step in range(1, 100):
        writers.start(store, coming[4:], step=step)
        status = writers.status()
        outcomes.append(check(store, whole, before))
        if status == 0:
            break
        assert status == -signal.SIGKILL
        if outcomes[-1]:
            shutil.rmtree(next(store.glob(f"system=*/month=*/{max(sessions(store))}")))
    # As before up to the rename, complete from then on, and the last one was not killed.
    assert len(outcomes) > 10
    assert outcomes == sorted(outcomes)
    assert outcomes[0] == 0
    assert outcomes[-2:] == [1, 1]


def test_killed_while_the_store_is_made_it_can_be_made_again(tmp_path, writers):
    (report,) = reports(tmp_path, 1)
    for step in (1, 2, 3):
        store = tmp_path / f"store-{step}"
        writers.start(store, [report], step=step)
        assert writers.status() == -signal.SIGKILL
        assert run([report], store) == 0
        assert len(Store(store).sessions()) == 1


def test_what_killed_writers_left_is_removed_after_a_day(tmp_path, writers):
    first, second = reports(tmp_path, 2)
    store = tmp_path / "store"
    run([first], store)
    writers.start(store, [second], step=3)
    assert writers.status() == -signal.SIGKILL
    (left,) = (store / INCOMING).iterdir()
    run([second], store)
    assert left.exists()
    yesterday = time.time() - folder.ABANDONED_AFTER_S - 60
    os.utime(left, (yesterday, yesterday))
    (third,) = reports(tmp_path, 3)[2:]
    run([third], store)
    assert not left.exists()


def test_of_two_writers_at_once_both_are_in(tmp_path, whole):
    coming, store = reports(tmp_path, 5), tmp_path / "store"
    several = [Writers(), Writers()]
    for _ in range(4):
        # The middle one is brought by both.
        for writer, brought in zip(several, (coming[:3], coming[2:]), strict=True):
            writer.start(store, brought)
        assert [writer.status() for writer in several] == [0, 0]
        assert sessions(store) == whole
        shutil.rmtree(store)
    for writer in several:
        writer.end()


def test_a_session_that_came_meanwhile_is_not_replaced(tmp_path, monkeypatch):
    (report,) = reports(tmp_path, 1)
    store = Store.create(tmp_path / "store")
    rename = Path.rename

    def late(path: Path, target: Path) -> Path:
        monkeypatch.setattr(Path, "rename", rename)
        assert ingest(store, report).new
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", late)
    assert not ingest(store, report).new
    assert len(store.sessions()) == 1
    assert list((store.folder / INCOMING).iterdir()) == []


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Path]:
    """A file system of 1 MB, which only root can mount: without root its tests fail."""
    if os.geteuid() != 0:
        pytest.skip("to mount a file system takes root")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "netproof-test", disk], check=True)
    yield disk
    subprocess.run(["umount", disk], check=True)


def test_a_full_disk_loses_nothing_that_was_there(tmp_path, whole, small_disk):
    coming, store = reports(tmp_path, 5), small_disk / "store"
    assert run(coming[:1], store) == 0
    before = set(sessions(store))
    filler = small_disk / "filler"
    free = shutil.disk_usage(small_disk).free
    refused = 0
    for left in range(0, free, 4096):
        filler.write_bytes(bytes(free - left))
        try:
            ingest(Store(store), coming[1])
        except NetproofError as error:
            refused += 1
            assert_full(error)
            assert check(store, whole, before) == 0
            assert list((store / INCOMING).iterdir()) == []
        else:
            break
        filler.unlink()
    assert refused > 5
    assert check(store, whole, before) == 1
    filler.unlink()
    assert run(coming, store) == 0
    assert sessions(store) == whole
    assert questions.load(Store(store), Store(store).newest()).results


def assert_full(error: NetproofError) -> None:
    assert "the file system is full" in str(error)
    assert "what the store had is untouched" in str(error)
