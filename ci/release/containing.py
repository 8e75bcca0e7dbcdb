"""Run a program in namespaces of its own, and leave none of its processes."""

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
    """A signal requested the end."""

    def __init__(self, number: int) -> None:
        """Take the signal's number."""
        super().__init__(signal.Signals(number).name)
        self.number = number


@contextmanager
def stopping() -> Iterator[None]:
    """Raise StoppedError on the first SIGINT, SIGTERM or SIGHUP in the block."""

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
    """Run ``command`` in namespaces of its own; return its exit status, and leave no process.

    It ends with this process, however that ends.
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
    """Return the kernel's number of a namespace of the process ``pid``.

    Return None if it is gone, or has rights that this process lacks, unlike its own children.
    """
    try:
        return os.stat(f"/proc/{pid}/ns/{kind}").st_ino
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None


def _await_end(namespace: int | None) -> None:
    """Wait until no process is left in the process ``namespace``, whose first was killed."""
    if namespace in (None, _namespace("self", "pid")):
        return
    deadline = time.monotonic() + KILL_SECONDS
    while left := [
        p for p in os.listdir("/proc") if p.isdigit() and _namespace(p, "pid") == namespace
    ]:
        if time.monotonic() > deadline:
            raise CannotRunError(f"still running after SIGKILL: processes {', '.join(left)}")
        time.sleep(POLL_S)
