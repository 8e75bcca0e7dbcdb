"""Read external files and JSON strictly and within limits; write files whole or not at all; locks.

Nothing is refused for being a large site: 10,000 cases, or 9,000 nodes. ReFrame's report has up to
2 KB per test case, 20 MB. A case has 3 KB per node and launch: ten launches on 9,000 nodes are
270 MB. References have up to 100 values per case, 1,000,000. Limits are twice that, so that a
malicious or damaged file costs seconds and not a night. JSON is refused by its file's size, and if
its values are denser than any record's; YAML, which costs 100 times as much CPU, by its own size.
"""

from __future__ import annotations

import errno
import fcntl
import json
import math
import os
import re
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, AnyStr

from pydantic_core import from_json

from netproof.errors import NetproofError, shortened
from netproof.intake import trust

VARIABLE = "NETPROOF_MOST_MB"
"""Variable with the largest file that is read, in 10⁶ bytes: a report, an output, a record."""

MOST_MB = 512.0

MOST_QUOTED = 80
"""Characters quoted from a faulty value."""

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
    return shortened(repr(value), MOST_QUOTED)


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
        # Room for all that is allowed takes three times as long to have as most files to read.
        content = b"" if found.st_size > most else file.read(found.st_size + 1)
        if len(content) > found.st_size:  # It grows, and one byte more than allowed shows how far.
            content += file.read(most - found.st_size)
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


class MalformedError(NetproofError):
    """Text that is not JSON, or not YAML: ``place``, ``line`` (0 if it is not known) and reason."""

    def __init__(self, form: str, place: object, line: int, reason: str) -> None:
        self.place, self.line, self.reason = place, line, reason
        super().__init__(f"{place}{f':{line}' if line else ''}: is no {form}: {reason}")


def json_file(path: Path) -> Any:
    """Read a JSON file as ``json_value`` does. Raise NetproofError and OSError."""
    try:
        text = read_text(path)
    except UnicodeDecodeError as error:
        raise NetproofError(
            f"{path}: is not UTF-8 text: invalid byte at position {error.start}"
        ) from error
    return json_value(text, path)


def json_value(text: str, place: object) -> Any:
    """Return the value of a JSON text; errors name ``place``.

    Raise NetproofError, with the line, for invalid JSON, and for a key of two values, NaN,
    Infinity, numbers beyond floats, lone surrogates, and whatever exceeds the limits.
    """
    most = most_bytes()
    if len(text) > most:
        raise NetproofError(too_much(place, f"{most} characters"))
    insist_on_few(text, (",", "[", "{"), place)
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_no_number,
            parse_float=_float,
            parse_int=_int,
        )
        if _HALF.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise NetproofError(f"{place}: {TOO_DEEP}") from None
    except json.JSONDecodeError as error:
        reason = f"{error.msg} at character {error.colno}"
        raise MalformedError("JSON", place, error.lineno, reason) from error
    except UnicodeEncodeError as error:
        raise NetproofError(f"{place}: has half a character, which is no text: {error}") from None
    except ValueError as error:
        raise NetproofError(f"{place}: is no JSON: {error}") from error
    return value


def sealed_value(content: bytes, place: object) -> Any:
    """Return the value of JSON that netproof wrote, as a SHA-256 says, twice as fast.

    Raise NetproofError, naming ``place``, for invalid JSON, NaN, or what exceeds the limits.
    """
    insist_on_few(content, (b",", b"[", b"{"), place)
    try:
        return from_json(content, allow_inf_nan=False)
    except ValueError as error:
        raise NetproofError(f"{place}: is no JSON: {error}") from error


def insist_on_few(text: AnyStr, begins: Iterable[AnyStr], place: object) -> None:
    """Raise NetproofError where a text has more values, by what begins one, than any record."""
    most = max(2_000_000, len(text) // JSON_CHARACTERS_PER_VALUE)
    if len(text) > most and sum(map(text.count, begins)) > most:
        raise NetproofError(too_much(place, f"{most} values"))


_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    # iperf3 repeats what it says of each stream.
    for key, value in pairs if len(made) < len(pairs) else ():
        if made[key] != value:
            raise ValueError(f"duplicate key {shown(key)}; remove one of them")
    return made


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no number")


def _float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{shown(digits)} is beyond all numbers")
    return value


def _int(digits: str) -> int:
    if len(digits) > 20:
        raise ValueError(f"{shown(digits)} is beyond all numbers")
    return int(digits)


def replace(path: Path, content: str | bytes) -> None:
    """Put ``content`` in a file's place at once, with the file's permissions; links are followed.

    When it returns, the file is on disk. Raise OSError where the folder cannot be written; what was
    there is there still.
    """
    path = path.resolve()
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content.encode() if isinstance(content, str) else content)
            stream.flush()
            os.fsync(stream.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, path.stat().st_mode & 0o7777 if path.exists() else 0o666 & ~mask)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
    sync(path.parent)


def sync(path: Path) -> None:
    """Put a file, or a folder's entries, on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, on disk when it returns."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync(folder.parent)


@contextmanager
def locked(path: Path, holder: str, refusal: str) -> Iterator[int]:
    """Hold a lock file, which names the ``holder``, and yield its descriptor.

    Whoever inherits the descriptor holds it too, and when the last of them ends, however it ends,
    the lock is free. Raise NetproofError at once, the ``refusal`` with the other holder, where it
    is held, or everybody can write the place, and OSError where the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    trust.insist(path, "the lock", data=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o664)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(descriptor, 1024, 0).decode(errors="replace").strip()
            who = owner or "it does not say which"
            raise NetproofError(f"{refusal}: {who} ({path})") from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{holder}\n".encode(), 0)
        yield descriptor
    finally:
        os.close(descriptor)
