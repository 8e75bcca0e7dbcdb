"""Read outputs of benchmarks, recognised by their content, into tables and curves."""

from __future__ import annotations

import re
from pathlib import Path

from netproof.benchmarks import registry
from netproof.benchmarks.interface import Benchmark, Output
from netproof.errors import ParseError
from netproof.intake import loading

_PREFIX = re.compile(
    r"^(\[[0-9]+\] ?|\[[0-9]+,[0-9]+\]<std(?:out|err)>: ?|[0-9]+: )(?=# ?OSU|#)", re.M
)
"""What a launcher writes before each line of a rank: Hydra, Open MPI, ``srun --label``."""
_LINE_END = re.compile(r"\r+\n|\r(?=#)")
"""Line ends of Windows, and a carriage return that only moved a terminal's cursor to a header."""


def text_of(path: Path) -> str:
    """Return an output file's content as a terminal shows it: line ends, TABs, byte order marks.

    Bytes that are not UTF-8 become escapes. Raise ParseError where nothing can be read.
    """
    try:
        content = loading.read_bytes(path)
    except OSError as fault:
        raise ParseError(str(path), 0, "", f"cannot be read: {fault.strerror}") from fault
    text = content.decode("utf-8-sig", "backslashreplace").replace("\ufeff#", "#")
    # The pattern begins with no letter to look for, and is slow.
    return _unlabelled((_LINE_END.sub("\n", text) if "\r" in text else text).expandtabs())


def _unlabelled(text: str) -> str:
    """Return the text without the rank that a launcher wrote before each line, if all have it."""
    found = _PREFIX.search(text)
    if found is None:
        return text
    before, labelled = text[: found.start()], text[found.start() :].split("\n")
    label = found[1]
    if any(line and not line.startswith(label.rstrip()) for line in labelled):
        return text
    return before + "\n".join(line.removeprefix(label) for line in labelled)


def recognised(text: str) -> Benchmark | None:
    """Return the benchmark that printed the text, None where it is unknown."""
    # Outputs with the benchmark's name come before one that is recognised by its columns.
    candidates = sorted(registry.BENCHMARKS, key=lambda one: one.by_protocol)
    return next((one for one in candidates if one.is_one(text)), None)


def read(text: str, path: str, *, bidirectional: bool = False) -> Output:
    """Read the output of a benchmark; ``bidirectional``: how NetPIPE was run.

    Lines of other programs (MPI library, launcher, shell) before the header or after the end are
    stored; within a table nothing foreign is accepted. Raise ParseError where the text is not as
    any benchmark prints it.
    """
    found = recognised(text)
    first = next((line for line in text.split("\n") if line.strip()), "")
    place = text.split("\n").index(first) + 1 if first else 0
    if found is None:
        known = ", of ".join(one.output_of for one in registry.BENCHMARKS)
        empty = "" if first else "is empty: "
        raise ParseError(path, place, first, f"{empty}expected the output of {known}")
    if bidirectional and not found.by_protocol:
        raise ParseError(path, 1, first, f"{found.label}'s output has no direction: leave it out")
    return found.read(text, path, bidirectional=bidirectional)
