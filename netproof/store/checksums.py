"""Checksums of a session's files: written with it, verified when a file is read.

A session's ``checksums`` has a line for each file, which begins with the CRC-32 of the rest of
the line: the file's name, and the parts that the file is made of, one after the other, in JSON.
A part is ``[end, crc32]``: the offset of its end in bytes, and the CRC-32 of its bytes in
hexadecimal. A file is one part; sessions of before have one for each row group, and its ranges.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from netproof.errors import NetproofError

NAME = "checksums"
"""The file's name in the directory of a session."""

PARQUET = ".parquet"

MARK = {b"netproof.checksums": b"1"}
"""In the footer of a file whose session has checksums: one that lost them is not an older one."""


class Damaged(NetproofError):
    """A file of a session that is not what was written; ``path``, and ``found``: in what."""

    def __init__(self, path: Path, found: object) -> None:
        self.path, self.found = path, found
        super().__init__(
            f"{path}: is damaged: {found}; move {path.parent} out of the store and ingest the"
            " session's report again"
        )


def of(files: Mapping[str, bytes]) -> bytes:
    """The content of ``checksums`` for files by their names."""
    lines = []
    for name, content in files.items():
        parts = [[len(content), f"{zlib.crc32(content):08x}"]]
        line = f"{name} {json.dumps(parts, separators=(',', ':'))}"
        lines.append(f"{zlib.crc32(line.encode()):08x} {line}\n")
    return "".join(lines).encode()


def verify(folder: Path, name: str) -> bool:
    """Whether a file of a session is what was written; False where the session has no checksums.

    Raises Damaged.
    """
    sums = folder / NAME
    try:
        lines = _content(sums).split(b"\n")
    except FileNotFoundError:
        return False
    except OSError as error:
        raise Damaged(sums, error) from error
    return _verify(folder, name, _read(sums, lines, name))


def lists(folder: Path, name: str) -> bool:
    """Whether a file was written with a session, by its checksums, or is there; raises Damaged."""
    sums, path = folder / NAME, folder / name
    try:
        content = _content(sums)
    except FileNotFoundError:
        return path.exists()
    except OSError as error:
        raise Damaged(sums, error) from error
    return f" {name} ".encode() in content or path.exists()


def _read(sums: Path, lines: Iterable[bytes], name: str) -> list[list[Any]]:
    """The parts of a file; Damaged where its line is missing or is not what was written."""
    head = f" {name} ".encode()
    for line in lines:
        if line[8 : 8 + len(head)] == head:
            if line[:8] != b"%08x" % zlib.crc32(line[9:]):
                raise Damaged(sums, f"its line on {name} does not have the checksum it begins with")
            return json.loads(line[8 + len(head) :])
    raise Damaged(sums, f"it has no line on {name}")


def _verify(folder: Path, name: str, parts: list[list[Any]]) -> bool:
    path = folder / name
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            size = os.fstat(descriptor).st_size
            if size != parts[-1][0]:
                raise Damaged(path, f"it has {size} bytes, and {parts[-1][0]} were written")
            start = 0
            for end, crc, *_ in parts:
                found = f"{zlib.crc32(_bytes(descriptor, start, end)):08x}"
                if found != crc:
                    raise Damaged(
                        path,
                        f"the checksum of its bytes {start} to {end - 1} is {found}, and {crc}"
                        " was written",
                    )
                start = end
        finally:
            os.close(descriptor)
    except OSError as error:
        raise Damaged(path, error.strerror) from error
    return True


def _bytes(descriptor: int, start: int, end: int) -> bytes:
    """What a file has from ``start`` to before ``end``; less where it ends there."""
    read = os.pread(descriptor, end - start, start)
    while len(read) < end - start:
        more = os.pread(descriptor, end - start - len(read), start + len(read))
        if not more:
            break
        read += more
    return read


def _content(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        return _bytes(descriptor, 0, os.fstat(descriptor).st_size)
    finally:
        os.close(descriptor)


def insist_on_none(folder: Path, schema: pa.Schema) -> None:
    """Raises Damaged where a session without checksums has a file that was written with them."""
    if MARK.items() <= (schema.metadata or {}).items():
        raise Damaged(folder / NAME, "it was written with the session and is not there")


def faults(folder: Path, names: Sequence[str]) -> tuple[bool, list[Damaged]]:
    """Whether a session has checksums, and all of its files that are not what was written.

    ``names``: of the files that a session has. What is no file of a session's is told too.
    """
    found: list[Damaged] = []
    there = {path.name for path in folder.iterdir()}
    found += [
        Damaged(folder / name, "it is no file of a session's")
        for name in sorted(there - {*names, NAME})
    ]
    sums = folder / NAME
    if NAME in there:
        try:
            found += _odd_lines(sums, names)
        except OSError as error:
            found.append(Damaged(sums, error))
    for name in names:
        try:
            verify(folder, name)
            if not name.endswith(PARQUET):
                if NAME not in there:
                    found.append(Damaged(folder / name, "it was written without checksums"))
                continue
            read = pq.read_table(folder / name, partitioning=None)
            if NAME not in there:
                insist_on_none(folder, read.schema)
        except Damaged as error:
            found.append(error)
        except (OSError, ValueError, pa.ArrowException) as error:
            found.append(Damaged(folder / name, error))
    # One line of the checksums can be told of several times.
    return NAME in there, list({str(one): one for one in found}.values())


def _odd_lines(sums: Path, names: Sequence[str]) -> list[Damaged]:
    """What of the checksums is no line on a file, or not one for each."""
    content = _content(sums)
    lines = content.split(b"\n")
    if lines[-1] or len(lines) != len(names) + 1:
        return [Damaged(sums, f"it has not a line for each of {len(names)} files and no more")]
    return []
