"""Checksums of a session's files: written with it, verified when a file is read.

A session's ``checksums`` has a line for each file, which begins with the CRC-32 of the rest of
the line: the file's name, and the parts that the file is made of, one after the other, in JSON.
A part is ``[end, crc32]`` or ``[end, crc32, ranges]``: the offset of its end in bytes, the CRC-32
of its bytes in hexadecimal, and the least and the largest value of each column of the key in it.
The parts are row groups, and the footer last, so that a question about one case verifies what it
reads and no more.
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
from netproof.store.columns import KEY

NAME = "checksums"
"""The file's name in the directory of a session."""

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
    """The content of ``checksums`` for Parquet files by their names."""
    lines = []
    for name, content in files.items():
        parts, start = [], 0
        for end, *ranges in _parts(content):
            parts.append([end, f"{zlib.crc32(content[start:end]):08x}", *ranges])
            start = end
        line = f"{name} {json.dumps(parts, separators=(',', ':'))}"
        lines.append(f"{zlib.crc32(line.encode()):08x} {line}\n")
    return "".join(lines).encode()


def _parts(content: bytes) -> list[list[Any]]:
    """Where the parts of a Parquet file end, with the ranges of those that have them."""
    read = pq.read_metadata(pa.BufferReader(content))
    if read.num_row_groups < 2:
        return [[len(content)]]
    groups = [read.row_group(number) for number in range(read.num_row_groups)]
    starts = [_start(group) for group in groups]
    last = groups[-1]
    columns = [last.column(number) for number in range(last.num_columns)]
    ends = [*starts[1:], max(_first(one) + one.total_compressed_size for one in columns)]
    ranges = map(_ranges, groups)
    return [*([end, *one] for end, one in zip(ends, ranges, strict=True)), [len(content)]]


def _first(column: Any) -> int:
    """Offset of a column's first page in a row group."""
    if column.has_dictionary_page:
        return min(column.dictionary_page_offset, column.data_page_offset)
    return column.data_page_offset


def _start(group: Any) -> int:
    return min(_first(group.column(number)) for number in range(group.num_columns))


def _ranges(group: Any) -> list[list[list[Any]]]:
    """Least and largest value of each column of the key; nothing where they are not known."""
    columns = (group.column(number) for number in range(group.num_columns))
    told = {one.path_in_schema: one.statistics for one in columns if one.path_in_schema in KEY}
    if set(told) != set(KEY) or not all(one and one.has_min_max for one in told.values()):
        return []
    return [[[told[name].min, told[name].max] for name in KEY]]


def verify(folder: Path, name: str, key: Sequence[Any] | None = None) -> bool:
    """Whether a file of a session is what was written; False where the session has no checksums.

    ``key``: values of ``columns.KEY``: only what a reader of this case's rows reads is verified.
    Raises Damaged.
    """
    sums = folder / NAME
    try:
        lines = _content(sums).split(b"\n")
    except FileNotFoundError:
        return False
    except OSError as error:
        raise Damaged(sums, error) from error
    return _verify(folder, name, _read(sums, lines, name), key)


def _read(sums: Path, lines: Iterable[bytes], name: str) -> list[list[Any]]:
    """The parts of a file; Damaged where its line is missing or is not what was written."""
    head = f" {name} ".encode()
    for line in lines:
        if line[8 : 8 + len(head)] == head:
            if line[:8] != b"%08x" % zlib.crc32(line[9:]):
                raise Damaged(sums, f"its line on {name} does not have the checksum it begins with")
            return json.loads(line[8 + len(head) :])
    raise Damaged(sums, f"it has no line on {name}")


def _verify(folder: Path, name: str, parts: list[list[Any]], key: Sequence[Any] | None) -> bool:
    path = folder / name
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            size = os.fstat(descriptor).st_size
            if size != parts[-1][0]:
                raise Damaged(path, f"it has {size} bytes, and {parts[-1][0]} were written")
            start = 0
            for end, crc, *ranges in parts:
                if key is None or not ranges or _within(key, ranges[0]):
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


def _within(key: Sequence[Any], ranges: list[list[Any]]) -> bool:
    return all(low <= value <= high for value, (low, high) in zip(key, ranges, strict=True))


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
