"""One command at a time works on a machine's testbed."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ci.testbed.errors import StepFailedError

MACHINE_LOCK = "\0netproof-testbed"
LOCK_SECONDS = 180.0


@contextmanager
def machine_lock() -> Iterator[None]:
    """Allow one `up` or `down` at a time on this machine, whatever its state folder.

    A name in the kernel's abstract socket space ends with its process.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as lock:
        deadline = time.monotonic() + LOCK_SECONDS
        shown = False
        while True:
            try:
                lock.bind(MACHINE_LOCK)
                break
            except OSError as error:
                if time.monotonic() > deadline:
                    raise StepFailedError(
                        f"another testbed command is at work for {LOCK_SECONDS:g} s: {error}"
                    ) from error
            if not shown:
                print("waiting for another testbed command", file=sys.stderr)
                shown = True
            time.sleep(0.05)
        yield
