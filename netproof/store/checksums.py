"""Checksums of a session's files: written with it, verified when a file is read.

A session's ``checksums`` has a line for each file, which begins with the CRC-32 of the rest of
the line: the file's name, its length in bytes, and the CRC-32 of its bytes; CRCs in hexadecimal.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from netproof.errors import NetproofError

NAME = "checksums"
"""The file's name in the directory of a session."""

PARQUET = ".parquet"


class Damaged(NetproofError):
    """A file of a session that is not what was written; ``path``, and ``found``: in what."""

    def __init__(self, path: Path, found: object) -> None:
        self.path, self.found = path, found
        super().__init__(
            f"{path}: is damaged: {found}; move {path.parent} out of the store and add the"
            " session's report again"
        )


def of(files: Mapping[str, bytes]) -> bytes:
    """The content of ``checksums`` for files by their names."""
    lines = []
    for name, content in files.items():
        line = f"{name} {len(content)} {zlib.crc32(content):08x}"
        lines.append(f"{zlib.crc32(line.encode()):08x} {line}\n")
    return "".join(lines).encode()


def verify(folder: Path, name: str) -> bytes:
    """Return the content of a session's file; raise Damaged unless it is what was written."""
    length, crc = _read(folder / NAME, _content(folder / NAME).split(b"\n"), name)
    path = folder / name
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            size = os.fstat(descriptor).st_size
            content = _bytes(descriptor, size) if size == length else b""
        finally:
            os.close(descriptor)
    except OSError as error:
        raise Damaged(path, error.strerror) from error
    if size != length:
        raise Damaged(path, f"it has {size} bytes, and {length} were written")
    if zlib.crc32(content) != crc:
        found = f"{zlib.crc32(content):08x}"
        raise Damaged(path, f"the checksum of its bytes is {found}, and {crc:08x} was written")
    return content


def lists(folder: Path, name: str) -> bool:
    """Check whether a file was written with a session, or is there; raises Damaged."""
    return f" {name} ".encode() in _content(folder / NAME) or (folder / name).exists()


def _read(sums: Path, lines: Iterable[bytes], name: str) -> tuple[int, int]:
    """Length and CRC-32 of a file; Damaged where its line is missing or is not what was written."""
    head = f" {name} ".encode()
    for line in lines:
        if line[8 : 8 + len(head)] == head:
            if line[:8] != b"%08x" % zlib.crc32(line[9:]):
                raise Damaged(sums, f"its line on {name} does not have the checksum it begins with")
            length, crc = line[8 + len(head) :].split()
            return int(length), int(crc, 16)
    raise Damaged(sums, f"it has no line on {name}")


def _bytes(descriptor: int, size: int) -> bytes:
    """The first bytes of a file; fewer where it ends before."""
    read = os.read(descriptor, size)
    while len(read) < size:
        more = os.read(descriptor, size - len(read))
        if not more:
            break
        read += more
    return read


def _content(sums: Path) -> bytes:
    """All of a session's checksums; Damaged where they cannot be read."""
    try:
        descriptor = os.open(sums, os.O_RDONLY | os.O_NONBLOCK)
        try:
            return _bytes(descriptor, os.fstat(descriptor).st_size)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise Damaged(sums, error.strerror) from error


def faults(folder: Path, names: Sequence[str]) -> list[Damaged]:
    """Return all files of a session that are not what was written.

    ``names``: of the files that a session has. What is no file of a session's is told too.
    """
    # What opens a store loads no Arrow.
    import pyarrow as pa
    import pyarrow.parquet as pq

    found: list[Damaged] = []
    there = {path.name for path in folder.iterdir()}
    found += [
        Damaged(folder / name, "it is no file of a session's")
        for name in sorted(there - {*names, NAME})
    ]
    try:
        found += _odd_lines(folder / NAME, names)
    except Damaged as error:
        found.append(error)
    for name in names:
        try:
            verify(folder, name)
            if name.endswith(PARQUET):
                pq.read_table(folder / name, partitioning=None)
        except Damaged as error:
            found.append(error)
        except (OSError, ValueError, pa.ArrowException) as error:
            found.append(Damaged(folder / name, error))
    # Several files can share one fault of the checksums.
    return list({str(one): one for one in found}.values())


def _odd_lines(sums: Path, names: Sequence[str]) -> list[Damaged]:
    """What of the checksums is no line on a file, or not one for each."""
    content = _content(sums)
    lines = content.split(b"\n")
    if lines[-1] or len(lines) != len(names) + 1:
        return [Damaged(sums, f"it has not a line for each of {len(names)} files and no more")]
    return []
