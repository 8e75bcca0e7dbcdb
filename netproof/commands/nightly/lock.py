"""One night at a time for each store and system."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from netproof.errors import NetproofError
from netproof.intake import trust


def alongside(store: Path, system: str) -> Path:
    """Return the lock's file, beside the store, which several machines may share."""
    return store.with_name(f"{store.name}.{system}.lock")


@contextmanager
def held(path: Path, started: datetime) -> Iterator[int]:
    """Hold the lock, which says who has it since when, and yield its descriptor.

    Whoever inherits the descriptor holds it too, and when the last of them ends, however it ends,
    the lock is free. Raises NetproofError at once where another night has it, or everybody can
    write the place, and OSError where the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    trust.insist(path, "the lock", data=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o664)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(descriptor, 1024, 0).decode(errors="replace").strip()
            raise NetproofError(
                "another night is still running, and goes on untouched:"
                f" {owner or 'it does not say which'} ({path})"
            ) from None
        since = f"{started:%Y-%m-%d %H:%M:%S %Z}"
        os.ftruncate(descriptor, 0)
        os.pwrite(
            descriptor,
            f"process {os.getpid()} on {socket.gethostname()} since {since}\n".encode(),
            0,
        )
        yield descriptor
    finally:
        os.close(descriptor)
