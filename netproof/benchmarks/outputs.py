"""What benchmarks print, read into tables and curves; which one it is, told by the content."""

from __future__ import annotations

import re
from pathlib import Path

from netproof.benchmarks import imb, netpipe
from netproof.errors import ParseError
from netproof.intake import loading

_COLUMNS = re.compile(r" *[0-9]+(?: +[-0-9.a-zA-Z]+){2,4} *")


def text_of(path: Path) -> str:
    """Content of an output file, line ends as they are; ParseError where there is none to read."""
    try:
        return loading.read_bytes(path).decode("ascii")
    except OSError as fault:
        raise ParseError(str(path), 0, "", f"cannot be read: {fault.strerror}") from fault
    except UnicodeDecodeError as fault:
        line = fault.object[: fault.start].count(b"\n") + 1
        raise ParseError(str(path), line, "", "is no plain text: benchmarks print ASCII") from fault


def read(
    text: str, path: str, *, bidirectional: bool = False
) -> imb.ImbOutput | netpipe.NetpipeOutput:
    """Read the output of IMB or NetPIPE; ``bidirectional`` says how NetPIPE was run.

    Raises ParseError where it is neither, or is not what the benchmark prints.
    """
    first = next((line for line in text.split("\n") if line.strip()), "")
    if imb.is_one(text) or first.startswith("#"):
        if bidirectional:
            raise ParseError(path, 1, first, "IMB's output has no direction: leave it out")
        return imb.read(text, path)
    if "Now starting the main loop" in text:
        return netpipe.read_print(text, path, bidirectional=bidirectional)
    if _COLUMNS.fullmatch(first):
        return netpipe.read_file(text, path, bidirectional=bidirectional)
    place = text.split("\n").index(first) + 1 if first else 0
    raise ParseError(path, place, first, "expected the output of IMB-MPI1 or of NetPIPE")
