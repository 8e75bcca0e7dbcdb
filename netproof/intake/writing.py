"""Files that are written whole or not at all, and locks."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from netproof.errors import NetproofError
from netproof.intake import trust


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


def sync(folder: Path) -> None:
    """Put a folder's entries on disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
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
