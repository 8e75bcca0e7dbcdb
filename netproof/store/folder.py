"""The store's folder: a session is a directory, written aside and put in place by one rename.

Nothing in a session's directory ever changes afterwards, so readers need no lock, and writers
on several machines none either: of two that bring the same session, one rename succeeds.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import shutil
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from netproof.errors import NetproofError
from netproof.intake import json_reading, trust
from netproof.store import checksums

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = 2
"""Format of the store; raised when a table's columns change."""

MARKER = "netproof-store.json"
INCOMING = ".incoming"
"""Where sessions are written before they are put in place; readers do not look into it."""

SESSION = "session.jsonl.zst"
"""The file in a session's directory that has the session, as ``session.packed`` writes it."""

VERDICT = "verdict.jsonl.zst"
"""The file in a session's directory that has the verdict on it, where there is one."""

ACCEPTED = "accepted"
"""Where changes that are intended are recorded, a folder for each system."""

FOLLOWED = "followed"
"""Where the state of histories is stored, a file for each system; it can be rebuilt."""

ROW_GROUP = 8192
"""Rows of a row group: a reader that wants one case skips all groups but its own."""

ABANDONED_AFTER_S = 86400
"""Age at which what a killed writer left in ``.incoming`` is removed."""

_SYSTEM = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_NAME = re.compile(r"[0-9]{8}T[0-9]{6}-[0-9a-f]{8}")
_FULL = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True, order=True)
class StoredSession:
    """A session's place in a store; in order of their start.

    ``name`` is its start in UTC and the first part of its uuid, ``20261120T231136-00bbc432``.
    Raises NetproofError for what cannot be a path's part.
    """

    name: str
    system: str

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise NetproofError(
                f"{self.name!r} is no session's name; they look like 20261120T231136-00bbc432"
            )
        if not _SYSTEM.fullmatch(self.system):
            raise NetproofError(
                f"{self.system!r} is no system's name: letters, digits, - and _, no digit first"
            )

    @property
    def month(self) -> str:
        """The month in which it began, ``2026-11``."""
        return f"{self.name[:4]}-{self.name[4:6]}"

    @property
    def start(self) -> datetime:
        """When it began, UTC, to the second."""
        return datetime.strptime(self.name[:15], "%Y%m%dT%H%M%S")

    @property
    def place(self) -> Path:
        """Path of its directory within the store."""
        return Path(f"system={self.system}", f"month={self.month}", f"session={self.name}")


@dataclass(frozen=True)
class Store:
    """A folder of sessions; NetproofError unless it is one, of a format that is known."""

    folder: Path

    def __post_init__(self) -> None:
        marker = self.folder / MARKER
        trust.insist(marker, "the store", data=True)
        try:
            found = json_reading.json_file(marker)["format"]
        except FileNotFoundError:
            raise NetproofError(
                f"{self.folder}: is no store, it has no {MARKER}; 'netproof store add' makes one"
            ) from None
        except NotADirectoryError:
            raise _a_file(self.folder) from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise NetproofError(f"{marker}: cannot be read: {error!r}") from error
        if found != FORMAT:
            raise NetproofError(
                f"{self.folder}: is a store of format {found}, and this netproof knows {FORMAT}"
            )

    @classmethod
    def create(cls, folder: Path) -> Store:
        """The store in ``folder``, made if there is nothing yet.

        Raises NetproofError where the folder holds other things than a store.
        """
        marker = folder / MARKER
        trust.insist(marker, "the store", data=True)
        if os.path.isfile(folder):
            raise _a_file(folder)
        if not os.path.exists(marker):
            try:
                folder.mkdir(parents=True, exist_ok=True)
                others = [path.name for path in folder.iterdir() if path.name != MARKER]
                if others and not marker.exists() and not set(others) <= {INCOMING, ACCEPTED}:
                    raise NetproofError(
                        f"{folder}: is no store and not empty, it has {sorted(others)[0]!r};"
                        " name a folder of its own for the store"
                    )
                incoming = _incoming(folder)
                try:
                    text = json.dumps({"format": FORMAT}) + "\n"
                    _write(incoming / MARKER, text.encode())
                    os.replace(incoming / MARKER, marker)
                    _sync_folder(folder)
                finally:
                    shutil.rmtree(incoming, ignore_errors=True)
            except OSError as error:
                raise _failure(folder, error) from error
        return cls(folder)

    @classmethod
    def holding(cls, path: Path) -> tuple[Store, StoredSession]:
        """The store and the session whose directory ``path`` is.

        Raises NetproofError where it is none.
        """
        stored = _stored(path)
        return cls(path.parents[2]), stored

    def path(self, stored: StoredSession) -> Path:
        """The session's directory, whether it is there or not."""
        return self.folder / stored.place

    def put(
        self,
        stored: StoredSession,
        tables: Mapping[str, pa.Table],
        others: Mapping[str, bytes] = MappingProxyType({}),
    ) -> bool:
        """Put a session in place, whole or not at all; False where it is there already.

        ``tables``: one for each of ``tables.TABLES``; ``others``: contents of ``SESSION`` and
        ``VERDICT``. When it returns, the session is on disk. Raises NetproofError where the file
        system refuses, with the store as it was.
        """
        # What opens a store loads no Arrow.
        from netproof.store.tables import TABLES

        target = self.path(stored)
        if target.exists():
            return False
        try:
            incoming = _incoming(self.folder)
            try:
                self._sweep(incoming)
                files = {
                    f"{name}.parquet": _parquet(tables[name], table.schema())
                    for name, table in TABLES.items()
                } | others
                for name, content in (*files.items(), (checksums.NAME, checksums.of(files))):
                    _write(incoming / name, content)
                _sync_folder(incoming)
                for parent in (target.parents[1], target.parents[0]):
                    if not parent.exists():
                        parent.mkdir(exist_ok=True)
                        _sync_folder(parent.parent)
                return _rename(incoming, target)
            finally:
                shutil.rmtree(incoming, ignore_errors=True)
        except OSError as error:
            raise _failure(self.folder, error) from error

    def files(self, stored: StoredSession) -> tuple[str, ...]:
        """Return the names of a session's files, without its checksums; raises Damaged."""
        from netproof.store.tables import TABLES

        tables = (f"{name}{checksums.PARQUET}" for name in TABLES)
        return (*tables, SESSION, *((VERDICT,) if self.has_verdict(stored) else ()))

    def has_verdict(self, stored: StoredSession) -> bool:
        """Check whether a session was stored with a verdict; raises Damaged."""
        return checksums.lists(self.path(stored), VERDICT)

    def acceptances(self, system: str) -> tuple[Path, ...]:
        """The files of all acceptances of a system, by name."""
        return tuple(sorted((self.folder / ACCEPTED / system).glob("*")))

    def accept(self, system: str, name: str, content: bytes) -> Path:
        """Put an acceptance in place, whole or not at all; the same one again changes nothing.

        Returns its file. Raises NetproofError where the file system refuses.
        """
        target = self.folder / ACCEPTED / system / name
        self._replace(target, content, "accept")
        return target

    def followed(self, system: str) -> Path:
        """The file with the state of a system's histories, whether it is there or not."""
        return self.folder / FOLLOWED / system

    def put_followed(self, system: str, content: bytes) -> None:
        """Replace the state of a system's histories, whole or not at all.

        Raises NetproofError where the file system refuses.
        """
        self._replace(self.followed(system), content, "follow")

    def _replace(self, target: Path, content: bytes, command: str) -> None:
        """Put a file in place, whole or not at all; NetproofError where that is refused."""
        try:
            incoming = _incoming(self.folder)
            try:
                _write(incoming / target.name, content)
                for parent in reversed(target.relative_to(self.folder).parents[:-1]):
                    if not (self.folder / parent).exists():
                        (self.folder / parent).mkdir(exist_ok=True)
                        _sync_folder((self.folder / parent).parent)
                os.replace(incoming / target.name, target)
                _sync_folder(target.parent)
            finally:
                shutil.rmtree(incoming, ignore_errors=True)
        except OSError as error:
            raise _failure(self.folder, error, command) from error

    def sessions(self, system: str | None = None) -> tuple[StoredSession, ...]:
        """All sessions, of one system or of all, in order of their start."""
        found = [path for top in self._systems(system) for path in top.glob("month=*/session=*")]
        return tuple(sorted(_stored(path) for path in found))

    def newest(self, system: str | None = None) -> StoredSession:
        """The session that began last; looks only into each system's last months.

        Raises NetproofError where there is none.
        """
        found = []
        for folder in self._systems(system):
            # A month can be empty: a writer made it and was killed before its session came.
            for month in sorted(folder.glob("month=*"), reverse=True):
                sessions = [_stored(path) for path in month.glob("session=*")]
                if sessions:
                    found.append(max(sessions))
                    break
        if not found:
            of = f" of system {system}" if system else ""
            raise NetproofError(
                f"{self.folder}: holds no session{of}; 'netproof store add REPORT' brings one"
            )
        return max(found)

    def find(self, name: str, system: str | None = None) -> StoredSession:
        """The session of that name, or of the only name that begins so, or the ``newest``.

        ``system``: of this one. Raises NetproofError where none or several fit.
        """
        if name == "newest":
            return self.newest(system)
        found = [stored for stored in self.sessions(system) if stored.name.startswith(name)]
        exact = [stored for stored in found if stored.name == name]
        if len(exact or found) == 1:
            return (exact or found)[0]
        if not found:
            last = self.newest(system)
            raise NetproofError(
                f"{self.folder}: has no session {name!r}; its newest is {last.name} of"
                f" {last.system}, and a report is named by its file"
            )
        some = ", ".join(f"{stored.name} of {stored.system}" for stored in found[:3])
        raise NetproofError(
            f"{self.folder}: {len(found)} sessions begin with {name!r}, among them {some}; say more"
            " of the name"
        )

    def _systems(self, system: str | None) -> list[Path]:
        if system is None:
            return sorted(self.folder.glob("system=*"))
        folder = self.folder / f"system={system}"
        return [folder] if folder.is_dir() else []

    def _sweep(self, mine: Path) -> None:
        """Remove what killed writers left; by the file server's clock, which all share."""
        now = mine.stat().st_mtime
        for path in mine.parent.iterdir():
            try:
                old = now - path.stat().st_mtime > ABANDONED_AFTER_S
            except FileNotFoundError:
                continue
            if old:
                shutil.rmtree(path, ignore_errors=True)


def _a_file(folder: Path) -> NetproofError:
    return NetproofError(f"{folder}: is a file, and a store is a folder")


def _stored(path: Path) -> StoredSession:
    """The session whose directory this is; NetproofError for a foreign one."""
    system, _, name = (part.partition("=")[2] for part in path.parts[-3:])
    try:
        return StoredSession(name, system)
    except NetproofError as error:
        raise NetproofError(f"{path}: does not belong into a store: {error}") from error


def _incoming(folder: Path) -> Path:
    """A new directory of this writer's own within the store's file system."""
    name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(8)}"
    path = folder / INCOMING / name
    path.mkdir(parents=True)
    return path


def _parquet(table: pa.Table, schema: pa.Schema) -> bytes:
    if table.schema != schema:
        raise NetproofError(f"a table of columns {table.schema.names} is not of the store")
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", row_group_size=ROW_GROUP)
    return sink.getvalue().to_pybytes()


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _rename(incoming: Path, target: Path) -> bool:
    try:
        incoming.rename(target)
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY):
            return False
        raise
    _sync_folder(target.parent)
    return True


def _failure(folder: Path, error: OSError, command: str = "add") -> NetproofError:
    if error.errno in _FULL:
        return NetproofError(
            f"{folder}: the file system is full ({error.strerror}); what the store had is"
            f" untouched. Free some space and {command} again"
        )
    return NetproofError(f"{folder}: cannot be written: {error}; what the store had is untouched")
