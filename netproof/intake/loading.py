"""Read external files within limits.

Every limit, here and in ``read_limits``, is far above what netproof or a site writes, and so low
that a malicious or damaged file costs a second and not a night.
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

MOST_MB = 64.0
"""Twice the size of the largest report within the other limits."""

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
    most = _most_bytes() if most is None else most
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


def _most_bytes() -> int:
    stated = os.environ.get(VARIABLE)
    try:
        most_mb = float(stated) if stated else MOST_MB
    except ValueError:
        most_mb = math.nan
    if not 0 < most_mb < math.inf:
        raise NetproofError(f"{VARIABLE} is {stated!r}, and has to be a number of MB")
    return int(most_mb * 1e6)
