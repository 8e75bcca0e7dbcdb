"""A session in one file: JSON, a line for each test, compressed by zstd.

The first line is ReFrame's report without its test cases; each other line is the number of a run
and one of its test cases, with what its record has.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from netproof.errors import NetproofError
from netproof.intake import json_reading, loading

MOST_BYTES = 20_000_000_000
"""Size limit of all lines: 100,000 cases with all their launches."""


def packed(lines: Iterable[Any]) -> bytes:
    """Return values of JSON, a line each, compressed."""
    import pyarrow as pa  # Nothing that reads reports alone has to load it.

    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as out:
        for line in lines:
            out.write(json.dumps(line, separators=(",", ":"), allow_nan=False).encode() + b"\n")
    compressed: bytes = sink.getvalue().to_pybytes()
    return compressed


def unpacked(
    content: bytes, place: object, most_bytes: int = MOST_BYTES, *, containing: bytes = b""
) -> Iterator[Any]:
    """Yield the values that ``packed`` compressed; errors name ``place``.

    ``containing``: after the first line, only those with these bytes.

    Raise NetproofError for lines that are cut, no JSON, or larger than is read.
    """
    import pyarrow as pa

    longest, total = loading.most_bytes(), 0
    try:
        with io.BufferedReader(pa.CompressedInputStream(pa.py_buffer(content), "zstd")) as file:
            while line := file.readline(longest + 2):
                total += len(line)
                if total > most_bytes:
                    raise NetproofError(f"{place}: has more than {most_bytes} bytes")
                if not line.endswith(b"\n"):
                    raise NetproofError(f"{place}: has a line that is cut, or longer than is read")
                if containing in line or total == len(line):
                    # Checksums say that netproof wrote it, and the codec says what it may be.
                    yield json_reading.sealed_value(line, place)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise NetproofError(f"{place}: cannot be unpacked: {error}") from error


def of_document(document: Mapping[str, Any]) -> bytes:
    """Return the file of a session's document, as ``session.document_of`` reads it."""
    runs = document["runs"]
    head = {**document, "runs": [{**run, "testcases": []} for run in runs]}
    tests = ([number, test] for number, run in enumerate(runs) for test in run["testcases"])
    return packed([head, *tests])


def document(content: bytes, place: object, key: str = "") -> dict[str, Any]:
    """Return the document of a session's file, less tests without ``key``; NetproofError."""
    lines = unpacked(content, place, containing=key.encode())
    try:
        whole: dict[str, Any] = next(lines)
        for number, test in lines:
            whole["runs"][number]["testcases"].append(test)
        for run in whole["runs"] if key else ():
            run["num_cases"] = len(run["testcases"])
    except (StopIteration, AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        raise NetproofError(f"{place}: is no session: {error!r}") from error
    return whole
