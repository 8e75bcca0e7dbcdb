"""The store's folder: a session is a directory, written aside and put in place by one rename.

Nothing in a session's directory ever changes afterwards, so readers need no lock, and writers
on several machines none either: of two that bring the same session, one rename succeeds.

A session's ``checksums`` has a line for each file, which begins with the CRC-32 of the rest of
the line: the file's name, its length in bytes, and the CRC-32 of its bytes; CRCs in hexadecimal.
They are verified when a file is read.
"""

from __future__ import annotations

import errno
import glob
import io
import itertools
import json
import os
import re
import secrets
import shutil
import socket
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json

from netproof import codec
from netproof.errors import NetproofError
from netproof.intake import disk, trust

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = 7
"""Format of the store; raised when a table's columns change."""

CHECKSUMS = "checksums"
PARQUET = ".parquet"

MARKER = "netproof-store.json"
INCOMING = ".incoming"
"""Where sessions are written before they are put in place; readers do not look into it."""

SESSION = "session.jsonl.zst"
"""The file in a session's directory that has the session: JSON, compressed by zstd.

The first line is ReFrame's report without its test cases; each other line is the number of a run,
and the number of one of its test cases with what its record has. Those with rounds of pairs come
first, so that a stored verdict is read without all others.
"""

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


class Damaged(NetproofError):
    """A file of a session that is not what was written; ``path``, and ``found``: in what."""

    def __init__(self, path: Path, found: object) -> None:
        self.path, self.found = path, found
        super().__init__(
            f"{path}: is damaged: {found}; move {path.parent} out of the store and add the"
            " session's report again"
        )


def verify(folder: Path, name: str) -> bytes:
    """Return the content of a session's file; raise Damaged unless it is what was written."""
    path, head = folder / name, f" {name} ".encode()
    lines = _read(folder / CHECKSUMS).split(b"\n")
    line = next((line for line in lines if line[8 : 8 + len(head)] == head), None)
    if line is None:
        raise Damaged(folder / CHECKSUMS, f"it has no line on {name}")
    if line[:8] != b"%08x" % zlib.crc32(line[9:]):
        reason = f"its line on {name} does not have the checksum it begins with"
        raise Damaged(folder / CHECKSUMS, reason)
    length, crc = line[8 + len(head) :].split()
    content = _read(path, int(length))
    found = b"%08x" % zlib.crc32(content)
    if found != crc:
        reason = f"the checksum of its bytes is {found.decode()}, and {crc.decode()} was written"
        raise Damaged(path, reason)
    return content


def _read(path: Path, length: int | None = None) -> bytes:
    """Return a file's bytes; Damaged where it cannot be read, or has another length."""
    try:
        size = path.stat().st_size
        if length is not None and size != length:
            raise Damaged(path, f"it has {size} bytes, and {length} were written")
        return disk.read_bytes(path, length)
    except OSError as error:
        raise Damaged(path, error.strerror) from error
    except Damaged:
        raise
    except NetproofError as error:
        raise Damaged(path, error) from error


def faults(folder: Path, names: Sequence[str]) -> list[Damaged]:
    """Return the files of a session, of ``names``, that are not what was written, and others."""
    there = {path.name for path in folder.iterdir()}
    found = [
        Damaged(folder / name, "it is no file of a session's")
        for name in sorted(there - {*names, CHECKSUMS})
    ]
    try:
        *lines, last = _read(folder / CHECKSUMS).split(b"\n")
        if last or len(lines) != len(names):
            reason = f"it has not a line for each of {len(names)} files and no more"
            found.append(Damaged(folder / CHECKSUMS, reason))
    except Damaged as error:
        found.append(error)
    for name in names:
        try:
            verify(folder, name)
        except Damaged as error:
            found.append(error)
    # Several files can share one fault of the checksums.
    return list({str(one): one for one in found}.values())


def _checksums(files: Mapping[str, bytes]) -> bytes:
    lines = [f"{name} {len(content)} {zlib.crc32(content):08x}" for name, content in files.items()]
    return "".join(f"{zlib.crc32(line.encode()):08x} {line}\n" for line in lines).encode()


@dataclass(frozen=True, order=True)
class StoredSession:
    """A session's place in a store; in order of their start.

    ``name`` is its start in UTC and the first part of its uuid, ``20261120T231136-00bbc432``.
    Raise NetproofError for what cannot be a path's part.
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
    def start(self) -> datetime:
        """Return when it began, UTC, to the second."""
        return datetime.strptime(self.name[:15], "%Y%m%dT%H%M%S")

    @property
    def place(self) -> Path:
        """Return the path of its directory within the store."""
        month = f"month={self.name[:4]}-{self.name[4:6]}"
        return Path(f"system={self.system}", month, f"session={self.name}")


@dataclass(frozen=True)
class Store:
    """A folder of sessions; NetproofError unless it is one, of a format that is known."""

    folder: Path

    def __post_init__(self) -> None:
        marker = self.folder / MARKER
        trust.insist(marker, "the store", data=True)
        try:
            found = disk.json_file(marker)["format"]
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
                f"{self.folder}: is a store of format {found}, and this netproof knows {FORMAT};"
                " move it away, and add its sessions' reports to a new one: 'netproof store add'"
            )

    @classmethod
    def create(cls, folder: Path) -> Store:
        """Return the store in ``folder``, made if there is nothing yet.

        Raise NetproofError where the folder holds other things than a store.
        """
        marker = folder / MARKER
        trust.insist(marker, "the store", data=True)
        if os.path.isfile(folder):
            raise _a_file(folder)
        if not os.path.exists(marker):
            try:
                folder.mkdir(parents=True, exist_ok=True)
                own = (f".{MARKER}", INCOMING, ACCEPTED)
                others = [one.name for one in folder.iterdir() if not one.name.startswith(own)]
                if others and not marker.exists():
                    raise NetproofError(
                        f"{folder}: is no store and not empty, it has {sorted(others)[0]!r};"
                        " name a folder of its own for the store"
                    )
                disk.replace(marker, json.dumps({"format": FORMAT}) + "\n")
            except OSError as error:
                raise _failure(folder, error) from error
        return cls(folder)

    @classmethod
    def holding(cls, path: Path) -> tuple[Store, StoredSession]:
        """Return the store and the session whose directory ``path`` is; NetproofError if none."""
        stored = _stored(path)
        return cls(path.parents[2]), stored

    def path(self, stored: StoredSession) -> Path:
        """Return the session's directory, whether it is there or not."""
        return self.folder / stored.place

    def put(self, stored: StoredSession, files: Mapping[str, bytes]) -> bool:
        """Put a session in place, whole or not at all; return False where it is there already.

        ``files``: contents by name, ``packed_tables`` among them. When it returns, the session is
        on disk. Raise NetproofError where the file system refuses, with the store as it was.
        """
        target = self.path(stored)
        if target.exists():
            return False
        try:
            # This writer's own, within the store's file system.
            own = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(8)}"
            incoming = self.folder / INCOMING / own
            incoming.mkdir(parents=True)
            try:
                self._sweep(incoming)
                for name, content in (*files.items(), (CHECKSUMS, _checksums(files))):
                    disk.replace(incoming / name, content)
                disk.make_folder(target.parent)
                try:
                    incoming.rename(target)
                except OSError as error:
                    if error.errno in (errno.EEXIST, errno.ENOTEMPTY):
                        return False
                    raise
                disk.sync(target.parent)
                return True
            finally:
                shutil.rmtree(incoming, ignore_errors=True)
        except OSError as error:
            raise _failure(self.folder, error) from error

    def files(self, stored: StoredSession) -> tuple[str, ...]:
        """Return the names of a session's files, without its checksums; raise Damaged."""
        from netproof.store.tables import TABLES

        tables = (f"{name}{PARQUET}" for name in TABLES)
        return (*tables, SESSION, *((VERDICT,) if self.has_verdict(stored) else ()))

    def table(
        self, stored: StoredSession, name: str, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """Return a session's table, or columns of it; Damaged where it is not what was written."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        from netproof.store.tables import TABLES

        path = self.path(stored) / f"{name}{PARQUET}"
        verify(path.parent, path.name)
        try:
            # A third of what read_table takes, and many sessions are asked one after the other.
            with pq.ParquetFile(path) as file:
                found = file.read(columns=columns and [*columns], use_threads=False)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise Damaged(path, error) from error
        if columns is None and found.schema != TABLES[name]:
            raise Damaged(path, "its columns are not the store's")
        return found

    def has_verdict(self, stored: StoredSession) -> bool:
        """Check whether a session was stored with a verdict; raise Damaged."""
        folder = self.path(stored)
        listed = f" {VERDICT} ".encode() in _read(folder / CHECKSUMS)
        return listed or (folder / VERDICT).exists()

    def acceptances(self, system: str) -> tuple[Path, ...]:
        """Return the files of all acceptances of a system, by name."""
        # What a killed writer left begins with a dot.
        return tuple(sorted((self.folder / ACCEPTED / system).glob("[!.]*")))

    def followed(self, system: str) -> Path:
        """Return the file with the state of a system's histories, whether it is there or not."""
        return self.folder / FOLLOWED / system

    def replace(self, target: Path, content: bytes, command: str) -> None:
        """Put a file into the store, whole or not at all, for a ``command`` that can be repeated.

        Raise NetproofError where the file system refuses.
        """
        try:
            disk.make_folder(target.parent)
            disk.replace(target, content)
        except OSError as error:
            raise _failure(self.folder, error, command) from error

    def sessions(self, system: str | None = None) -> tuple[StoredSession, ...]:
        """Return all sessions, of one system or of all, in order of their start."""
        of_system = "*" if system is None else glob.escape(system)
        found = self.folder.glob(f"system={of_system}/month=*/session=*")
        return tuple(sorted(map(_stored, found)))

    def newest(self, system: str | None = None) -> StoredSession:
        """Return the session that began last; raise NetproofError without any."""
        found = self.sessions(system)
        if not found:
            of = f" of system {system}" if system else ""
            raise NetproofError(
                f"{self.folder}: holds no session{of}; 'netproof store add REPORT' brings one"
            )
        return found[-1]

    def find(self, name: str, system: str | None = None) -> StoredSession:
        """Return the session of that name, or of the only name that begins so, or the ``newest``.

        ``system``: of this one. Raise NetproofError where none or several fit.
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
    return NetproofError(
        f"{folder}: is a file, and a store is a folder: name one with --store or NETPROOF_STORE"
    )


def _stored(path: Path) -> StoredSession:
    """Return the session whose directory this is; NetproofError for a foreign one."""
    system, _, name = (part.partition("=")[2] for part in path.parts[-3:])
    try:
        return StoredSession(name, system)
    except NetproofError as error:
        raise NetproofError(f"{path}: does not belong into a store: {error}") from error


def packed_tables(parts: Iterable[Mapping[str, pa.Table]]) -> dict[str, bytes]:
    """Return the Parquet files of tables whose rows come in parts."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sinks: dict[str, pa.BufferOutputStream] = defaultdict(pa.BufferOutputStream)
    writers: dict[str, pq.ParquetWriter] = {}
    for part in parts:
        for name, table in part.items():
            if name not in writers:
                writers[name] = pq.ParquetWriter(sinks[name], table.schema, compression="zstd")
            elif not table.num_rows:
                continue
            writers[name].write_table(table, row_group_size=ROW_GROUP)
    for writer in writers.values():
        writer.close()
    return {f"{name}{PARQUET}": bytes(sink.getvalue()) for name, sink in sinks.items()}


def _failure(folder: Path, error: OSError, command: str = "add") -> NetproofError:
    if error.errno in _FULL:
        return NetproofError(
            f"{folder}: the file system is full ({error.strerror}); what the store had is"
            f" untouched. Free some space and {command} again"
        )
    return NetproofError(f"{folder}: cannot be written: {error}; what the store had is untouched")


MOST_BYTES = 20_000_000_000
"""Size limit of all lines: 100,000 cases with all their launches."""


def packed(lines: Iterable[Any]) -> bytes:
    """Return plain values, as ``codec.encode`` makes them, as a line of JSON each, compressed."""
    import pyarrow as pa  # Nothing that reads reports alone has to load it.

    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as out:
        for line in lines:
            out.write(to_json(line) + b"\n")
    compressed: bytes = sink.getvalue().to_pybytes()
    return compressed


def unpacked(content: bytes, place: object, most_bytes: int = MOST_BYTES) -> Iterator[Any]:
    """Yield the values that ``packed`` compressed; errors name ``place``.

    Raise NetproofError for lines that are cut, no JSON, or larger than is read.
    """
    import pyarrow as pa

    longest, total = disk.most_bytes(), 0
    try:
        stream = pa.CompressedInputStream(pa.py_buffer(content), "zstd")
        with io.BufferedReader(stream, 1 << 20) as file:
            while line := file.readline(longest + 2):
                total += len(line)
                if total > most_bytes:
                    raise NetproofError(f"{place}: has more than {most_bytes} bytes")
                if not line.endswith(b"\n"):
                    raise NetproofError(f"{place}: has a line that is cut, or longer than is read")
                # Checksums say that netproof wrote it, and the codec says what it may be.
                yield disk.sealed_value(line, place)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise NetproofError(f"{place}: cannot be unpacked: {error}") from error


def packed_session(document: Mapping[str, Any], first: str) -> bytes:
    """Return the file of a ``session.document_of``; tests that have the key ``first`` come so."""
    runs = document["runs"]
    head = {**document, "runs": [{**run, "testcases": []} for run in runs]}
    tests = [(at, test) for at, run in enumerate(runs) for test in enumerate(run["testcases"])]
    tests.sort(key=lambda line: not line[1][1].get(first))
    return packed(map(codec.encode, [head, *tests]))


def session_document(content: bytes, place: object, key: str = "") -> dict[str, Any]:
    """Return the document of a session's file, or with ``key`` of its first tests, which have it.

    Raise NetproofError where it is no session's.
    """
    lines = unpacked(content, place)
    try:
        whole: dict[str, Any] = next(lines)
        wanted = itertools.takewhile(lambda line: not key or line[1][1].get(key), lines)
        for number, (_, test) in sorted(wanted, key=lambda line: (line[0], line[1][0])):
            whole["runs"][number]["testcases"].append(test)
        for run in whole["runs"] if key else ():
            run["num_cases"] = len(run["testcases"])
    except (StopIteration, AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        raise NetproofError(f"{place}: is no session: {error!r}") from error
    return whole
