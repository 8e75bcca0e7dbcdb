"""A program in namespaces of its own, of which nothing is left when it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType

from ci.release.errors import CannotRunError

KILL_SECONDS = 30.0
POLL_S = 0.05


class StoppedError(Exception):
    """A signal asked for the end."""

    def __init__(self, number: int) -> None:
        """``number``: the signal's."""
        super().__init__(signal.Signals(number).name)
        self.number = number


@contextmanager
def stopping() -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP raise StoppedError within, once."""

    def stop(number: int, frame: FrameType | None) -> None:
        for other in numbers:
            signal.signal(other, signal.SIG_IGN)
        raise StoppedError(number)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def contained(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """The exit status of ``command`` in namespaces of its own; nothing of it is left afterwards.

    With this process it ends as well, however that ends.
    """
    words = ["setpriv", "--pdeathsig", "KILL", "unshare", "--kill-child=KILL", "--fork"]
    words += ["--mount", "--pid", "--ipc", "--uts", "--"]
    child = subprocess.Popen(
        [*words, *command], env=environment, stdin=subprocess.DEVNULL, start_new_session=True
    )
    try:
        return child.wait()
    finally:
        if child.poll() is None:
            namespace = _namespace(child.pid, "pid_for_children")
            child.kill()
            child.wait()
            _await_end(namespace)


def _namespace(pid: int | str, kind: str) -> int | None:
    """The kernel's number of a namespace of the process ``pid``.

    None when it is gone, or has rights that this process lacks, as none has that it started.
    """
    try:
        return os.stat(f"/proc/{pid}/ns/{kind}").st_ino
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None


def _await_end(namespace: int | None) -> None:
    """Waits until no process is left in the process ``namespace``, whose first was killed."""
    if namespace in (None, _namespace("self", "pid")):
        return
    deadline = time.monotonic() + KILL_SECONDS
    while left := [
        p for p in os.listdir("/proc") if p.isdigit() and _namespace(p, "pid") == namespace
    ]:
        if time.monotonic() > deadline:
            raise CannotRunError(f"still running after SIGKILL: processes {', '.join(left)}")
        time.sleep(POLL_S)
