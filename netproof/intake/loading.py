"""Read external files within limits.

Nothing is refused for being a large site: 10,000 cases, or 9,000 nodes. ReFrame's report has up to
2 KB per test case, 20 MB. A case has 3 KB per node and launch: ten launches on 9,000 nodes are
270 MB. References have up to 100 values per case, 1,000,000. Limits are twice that, so that a
malicious or damaged file costs seconds and not a night. JSON is refused by its file's size, and if
its values are denser than any record's; YAML, which costs 100 times as much CPU, by its own size.
"""

from __future__ import annotations

import errno
import math
import os
import stat
from pathlib import Path

from netproof.errors import NetproofError

VARIABLE = "NETPROOF_MOST_MB"
"""Variable with the largest file that is read, in 10⁶ bytes: a report, an output, a record."""

MOST_MB = 512.0

_NOT_SHOWN = 80


YAML_CHARACTERS = 20_000_000

YAML_VALUES = 2_000_000
"""Scalars, lists and mappings, each as often as aliases repeat it."""

TOO_DEEP = "lists and mappings are nested deeper than is read"

JSON_CHARACTERS_PER_VALUE = 8
"""The fewest in a long text; records have 12 to 20."""


def too_much(place: object, most: str) -> str:
    """Return the message that a file exceeds the limit ``most``."""
    return f"{place}: has more than {most}, the most that is read"


def shown(value: object) -> str:
    """Return a value as Python writes it, shortened where it is long."""
    text = repr(value)
    return text if len(text) <= _NOT_SHOWN else f"{text[:_NOT_SHOWN]}…"


_FORMS = {
    stat.S_ISFIFO: "a pipe",
    stat.S_ISSOCK: "a socket",
    stat.S_ISCHR: "a device",
    stat.S_ISBLK: "a device",
}


def read_bytes(path: Path, most: int | None = None) -> bytes:
    """Return the bytes of a regular file, without waiting for a pipe or a device.

    ``most``: bytes that it may have, by default what ``NETPROOF_MOST_MB`` allows. Raise OSError
    where it cannot be read, and NetproofError where it is not a file, or larger.
    """
    most = most_bytes() if most is None else most
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        form = next((word for is_it, word in _FORMS.items() if is_it(found.st_mode)), "other")
        raise NetproofError(f"{path}: cannot be read: it is {form} and no file")
    with open(descriptor, "rb") as file:
        # One byte more than allowed detects a file that grows.
        content = b"" if found.st_size > most else file.read(most + 1)
    if found.st_size > most or len(content) > most:
        raise NetproofError(
            f"{path}: is larger than the {most / 1e6:g} MB that are read; {VARIABLE} raises that"
        )
    return content


def read_text(path: Path, most: int | None = None) -> str:
    """Return the text of a regular UTF-8 file with its line ends; raise as ``read_bytes`` does.

    Raise UnicodeDecodeError, which is a ValueError, for other encodings.
    """
    return read_bytes(path, most).decode("utf-8")


def most_bytes() -> int:
    """Return the bytes that a file may have."""
    stated = os.environ.get(VARIABLE)
    try:
        most_mb = float(stated) if stated else MOST_MB
    except ValueError:
        most_mb = math.nan
    if not 0 < most_mb < math.inf:
        raise NetproofError(f"{VARIABLE} is {stated!r}, and has to be a number of MB")
    return int(most_mb * 1e6)
