"""Find a testbed's processes by the kernel instead of files that may be stale.

Every daemon has two variables in its environment: the state folder and its role. All processes in
a node's network namespace belong to the testbed as well, whoever started them. Those in another
namespace of process numbers, as a container has one, belong to a testbed in there.
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ci.testbed.errors import StepFailedError

STATE_VARIABLE = "NETPROOF_TESTBED"
ROLE_VARIABLE = "NETPROOF_TESTBED_ROLE"
KILL_SECONDS = 15.0
NICENESS = -10
TIME_SLICE_NS = 100_000
SCHED_SETATTR = {"x86_64": 314, "aarch64": 274, "riscv64": 274, "ppc64le": 355, "s390x": 345}
"""Number of the system call, which has no wrapper in Debian 12's C library."""


@dataclass(frozen=True)
class Process:
    """A live process: its state folder and role if it has them, and its network."""

    pid: int
    parent: int
    started: int
    command: str
    state: str | None
    role: str | None
    network: int | None


def go_first() -> None:
    """Give this process and its children the CPU before others, and soon after they wake.

    A sender that waits for the CPU slows its link. The short slice makes kernels from 6.12 on
    interrupt the running task; earlier ones ignore it. Raises OSError if it is not allowed.
    """
    number = SCHED_SETATTR.get(os.uname().machine)
    if number is None:
        os.setpriority(os.PRIO_PROCESS, 0, NICENESS)
        return
    # struct sched_attr, first version: size, policy, flags, nice, priority, runtime and two more.
    attributes = struct.pack("=IIQiIQQQ", 48, 0, 0, NICENESS, 0, TIME_SLICE_NS, 0, 0)
    library = ctypes.CDLL(None, use_errno=True)
    if library.syscall(number, 0, attributes, 0):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _read(pid: int) -> Process | None:
    """Read the process ``pid``; None if it is gone, a zombie, a kernel thread or in a container."""
    place = Path("/proc") / str(pid)
    try:
        if not (place / "ns/pid").samefile("/proc/self/ns/pid"):
            return None
        stat = (place / "stat").read_text(encoding="utf-8", errors="replace")
        environment = (place / "environ").read_bytes()
        network = (place / "ns/net").stat().st_ino
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    command = stat[stat.index("(") + 1 : stat.rindex(")")]
    fields = stat[stat.rindex(")") + 2 :].split()
    if fields[0] in "ZX":
        return None
    variables = dict(
        entry.split("=", 1)
        for entry in environment.decode(errors="surrogateescape").split("\0")
        if "=" in entry
    )
    return Process(
        pid,
        int(fields[1]),
        int(fields[19]),
        command,
        variables.get(STATE_VARIABLE),
        variables.get(ROLE_VARIABLE),
        network,
    )


def title(pid: int) -> str:
    """Return the title of the process ``pid``, by default its command line; "" once gone."""
    try:
        shown = (Path("/proc") / str(pid) / "cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return shown.decode(errors="replace").replace("\0", " ").strip()


def running() -> list[Process]:
    """Return every live process that this user may read, without those of containers."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [process for process in map(_read, pids) if process is not None]


def daemon(processes: list[Process], state: Path, role: str) -> Process | None:
    """Return the daemon of ``role``: the oldest process of its name; its forks are younger."""
    wanted = str(state), role, role.partition(":")[0]
    found = [one for one in processes if (one.state, one.role, one.command) == wanted]
    return min(found, key=lambda process: process.started, default=None)


def kill(what: str, belongs: Callable[[Process], bool]) -> int:
    """Kill every process that ``belongs``, with later forks; return their number.

    Raises StepFailedError if some are still there after KILL_SECONDS.
    """
    spared = _ancestors()
    killed: set[tuple[int, int]] = set()
    deadline = time.monotonic() + KILL_SECONDS
    while True:
        left = [p for p in running() if belongs(p) and p.pid not in spared]
        if not left:
            return len(killed)
        if time.monotonic() > deadline:
            names = ", ".join(f"{p.command} ({p.pid})" for p in left)
            raise StepFailedError(f"{what}: still running after SIGKILL: {names}")
        for process in left:
            _kill_same(process)
            killed.add((process.pid, process.started))
        time.sleep(0.01)


def _kill_same(process: Process) -> None:
    """Send SIGKILL to ``process``, and to no other that has its number now."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    try:
        now = _read(process.pid)
        if now is not None and now.started == process.started:
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        os.close(descriptor)


def _ancestors() -> set[int]:
    """Return this process and its ancestors."""
    above = set()
    pid = os.getpid()
    while pid > 0:
        above.add(pid)
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            break
        pid = int(stat[stat.rindex(")") + 2 :].split()[1])
    return above
