"""Whatever happens to a writer, the store is as it was or has the session whole."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime, tzinfo
from pathlib import Path

import pytest
from made_reports import altered, another
from made_stores import added
from typer.testing import CliRunner

from ci.evaluation import store_flips
from netproof.commands.cli import app
from netproof.diagnosis.diagnosis import ingest
from netproof.errors import NetproofError
from netproof.store import Store, StoredSession, questions
from netproof.store.folder import ABANDONED_AFTER_S, CHECKSUMS, INCOMING, SESSION, VERDICT
from netproof.store.tables import TABLES
from netproof.verdict import stored

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("project")]
SERVER = """
import datetime, os, signal, sys
from pathlib import Path
import typer
from netproof.commands.stores import add
from netproof.session import session
from netproof.verdict import session_verdict, stored

class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2026, 11, 22, 8, tzinfo=tz)

stored.datetime = Clock
judge, judged = session_verdict.judge_session, {}
session_verdict.judge_session = lambda read, **asked: judged[read.path]
while line := sys.stdin.readline():
    step, where, *reports = line.rstrip("\\n").split("\\t")
    for report in {*map(Path, reports)} - {*judged}:
        judged[report] = judge(session.load(report), fold=0)
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
"""Forks a writer for each line: a step to be killed before, or 0, the store and the reports.

A report is judged once, before its writers are forked: they differ in what they write.
"""


class Writers:
    """Writers that start at once, their modules being loaded before they are forked."""

    def __init__(self) -> None:
        self.server = subprocess.Popen(
            [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def start(self, store: Path, reports: list[Path], *, step: int = 0) -> int:
        """Start a writer; returns its process id."""
        print(step, store, *reports, sep="\t", file=self.server.stdin, flush=True)
        return int(self._line())

    def status(self) -> int:
        """Its exit status once it has ended, below 0 for a signal."""
        print(file=self.server.stdin, flush=True)
        return int(self._line())

    def _line(self) -> str:
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
    return [
        altered(
            tmp_path,
            lambda document, n=number: another(document, n, 86400 * (n + 1)),
            file=f"run-{number}.json",
        )
        for number in range(count)
    ]


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
    """The sessions of a store after five reports have come in undisturbed."""
    # The writers judge at the same time.
    monkeypatch.setattr(stored, "datetime", Clock)
    assert added(reports(tmp_path, 5), tmp_path / "undisturbed") == 0
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
    added(coming[:4], store)
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
        assert added([report], store) == 0
        assert len(Store(store).sessions()) == 1


def test_what_killed_writers_left_is_removed_after_a_day(tmp_path, writers):
    first, second = reports(tmp_path, 2)
    store = tmp_path / "store"
    added([first], store)
    writers.start(store, [second], step=3)
    assert writers.status() == -signal.SIGKILL
    (left,) = (store / INCOMING).iterdir()
    added([second], store)
    assert left.exists()
    yesterday = time.time() - ABANDONED_AFTER_S - 60
    os.utime(left, (yesterday, yesterday))
    (third,) = reports(tmp_path, 3)[2:]
    added([third], store)
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
    assert added(coming[:1], store) == 0
    before = set(sessions(store))
    filler = small_disk / "filler"
    free = shutil.disk_usage(small_disk).free
    refused = []
    for left in range(0, free, 8192):
        filler.write_bytes(bytes(free - left))
        try:
            ingest(Store(store), coming[1])
        except NetproofError as error:
            refused.append(str(error))
            assert check(store, whole, before) == 0
            assert list((store / INCOMING).iterdir()) == []
        else:
            break
        filler.unlink()
    assert len(refused) > 5
    for message in refused:
        assert "the file system is full" in message
        assert "what the store had is untouched" in message
    assert check(store, whole, before) == 1
    filler.unlink()
    assert added(coming, store) == 0
    assert sessions(store) == whole
    assert questions.load(Store(store), Store(store).newest()).results


# What of a store is not what was written is named by its file, whoever reads it.

ROOT = Path(__file__).resolve().parents[3]
SICK, PASSED = (ROOT / "tests" / "data" / "sessions" / f"{n}.json" for n in ("sick", "passed"))


@pytest.fixture
def stored_faulty(tmp_path) -> tuple[Store, StoredSession]:
    store = Store.create(tmp_path / "store")
    return store, ingest(store, SICK).stored


def checked(store: Store) -> tuple[int, str]:
    ran = CliRunner().invoke(app, ["store", "check", "--store", str(store.folder)])
    return ran.exit_code, " ".join(ran.stdout.split())


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def test_a_sound_store_is_verified_and_what_is_missing_too_much_or_anothers_is_named(
    stored_faulty,
):
    store, session = stored_faulty
    assert checked(store) == (0, "1 session: 1 verified, 0 damaged")
    folder = store.path(session)
    (folder / "other.parquet").write_bytes(b"")
    (folder / "tests.parquet").unlink()
    status, said = checked(store)
    assert status == 1
    assert "other.parquet: is damaged: it is no file of a session's" in said
    assert "tests.parquet: is damaged: No such file" in said
    other = ingest(store, PASSED).stored
    shutil.copy(store.path(other) / SESSION, folder / SESSION)
    with pytest.raises(NetproofError, match=r"session\.jsonl\.zst: is damaged: it has \d+ bytes"):
        questions.load(store, session)


@pytest.mark.parametrize(
    "name", [*(f"{table}.parquet" for table in TABLES), SESSION, VERDICT, CHECKSUMS]
)
def test_a_flipped_bit_in_any_file_is_named(stored_faulty, name):
    store, session = stored_faulty
    path = store.path(session) / name
    flip(path, path.stat().st_size // 2)
    status, said = checked(store)
    assert status == 1
    assert f"{path.name}: is damaged: " in said
    assert said.endswith("1 session: 0 verified, 1 damaged")
    with pytest.raises(NetproofError, match=rf"{re.escape(str(path))}: is damaged: "):
        store_flips.stored(store, session, path)


def test_every_question_verifies_what_it_reads(stored_faulty):
    store, session = stored_faulty
    asked = {
        "cases": lambda: questions.passed(store, session),
        "curves": lambda: questions.nightly(store, [session], None),
        "sessions": lambda: questions.with_label(store, "kernel=6.1"),
        "launches": lambda: questions.seconds(store, [session]),
    }
    for name, ask in asked.items():
        path = store.path(session) / f"{name}.parquet"
        middle = path.stat().st_size // 3
        flip(path, middle)
        with pytest.raises(NetproofError, match=rf"{name}\.parquet: is damaged: the checksum"):
            ask()
        flip(path, middle)
