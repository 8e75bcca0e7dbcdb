"""Delay lines of nodes: a node's outgoing packets wait in a program.

``delay.c`` holds packets that netfilter queues for it. Debian's kernels have such queues, and many
others that lack ``netem``.
"""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ci.testbed import cables, faults, network, processes
from ci.testbed.daemons import Daemons
from ci.testbed.errors import CannotRunError, StepFailedError
from ci.testbed.faults import FaultError, Faults
from ci.testbed.state import StateFolder
from ci.testbed.topology import Topology

ROLE = "delay"
PROGRAM = Path(__file__).resolve().parents[2] / ".opt" / "testbed" / "delay"
HOLDING = b"holding\n"
"""The program's line once it holds packets."""
QUEUE = 7
RULE = f"OUTPUT -o {cables.DATA} -j NFQUEUE --queue-num {QUEUE} --queue-bypass".split()
"""Without the program packets pass: a dead delay line does not break the link."""
MILLION = 1_000_000
PATIENCE_SECONDS = 20.0
POLL_SECONDS = 0.02


@dataclass(frozen=True)
class Line:
    """Delay line of a node: times in µs, ``reorder`` of a million packets."""

    delay: int = 0
    jitter: int = 0
    batch: int = 0
    reorder: int = 0

    def command(self, node: str) -> list[str]:
        """Return the program with its arguments; a node has the same draws every time."""
        seed = int.from_bytes(node.encode()[-7:], "big")
        numbers = (QUEUE, self.delay, self.jitter, self.batch, self.reorder, seed)
        return [str(PROGRAM), *map(str, numbers)]


@dataclass(frozen=True)
class Queue:
    """A netfilter queue: packets waiting in it, and packets lost."""

    waiting: int
    lost: int


NOTHING = Queue(waiting=0, lost=0)


def lines(topology: Topology, planted: Faults) -> dict[str, Line]:
    """Return the delay lines by node name.

    Raises FaultError for a line without any delay.
    """
    found = {}
    for node, keys in topology.delays(planted).items():
        useless = faults.nothing_waits(keys)
        if useless:
            raise FaultError(f"{node}: {useless}")
        times = {key: int(keys.get(key, 0)) for key in ("delay", "jitter", "batch")}
        found[node] = Line(**times, reorder=round(MILLION * float(keys.get("reorder", 0))))
    return found


def read_queue(table: str, pid: int) -> Queue | None:
    """Find the queue of process ``pid`` in ``/proc/net/netfilter/nfnetlink_queue``; None without.

    The kernel's columns: queue, process, waiting, copy mode and range, lost by a full queue, lost
    by a full socket, last number.
    """
    for row in table.splitlines():
        cells = row.split()
        if cells[:2] == [str(QUEUE), str(pid)]:
            return Queue(waiting=int(cells[2]), lost=int(cells[5]) + int(cells[6]))
    return None


def probe() -> None:
    """Raise CannotRunError if the program or the kernel's queues are missing."""
    if not os.access(PROGRAM, os.X_OK):
        raise CannotRunError(
            f"{PROGRAM}: is not there, and packets cannot be delayed without it: run 'ci/setup'"
        )
    rule = f"iptables --wait --append {' '.join(RULE)}"
    tried = subprocess.Popen(
        ["unshare", "--net", "sh", "-c", f'{rule} && exec "$@"', "sh", *Line().command("")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        ready, _, _ = select.select([tried.stdout], [], [], PATIENCE_SECONDS)
        holds = bool(ready) and tried.stdout.read(len(HOLDING)) == HOLDING
    finally:
        tried.kill()
        said = " ".join(tried.communicate()[1].decode(errors="replace").split())
    if not holds:
        raise CannotRunError(
            "this kernel cannot delay packets for us: boot one with CONFIG_NETFILTER_NETLINK_QUEUE"
            " and CONFIG_NETFILTER_XT_TARGET_NFQUEUE, or allow this container CAP_NET_ADMIN and"
            f" CAP_SYS_NICE ('{rule}' and {PROGRAM} said: {said or 'nothing'})"
        )


def settle(
    folder: StateFolder, daemons: Daemons, topology: Topology, planted: Faults, before: Faults
) -> None:
    """Start and stop delay lines until exactly the ``planted`` ones hold packets.

    ``before``: faults planted before. Raises FaultError as lines(), and StepFailedError if a line
    does not start or stop.
    """
    wanted, there = lines(topology, planted), network.in_nodes(folder.path, ROLE)
    unchanged = {node for node, line in wanted.items() if _right(there.get(node, []), line, node)}
    old = [node for node in {**topology.delays(before), **there} if node not in unchanged]
    for node in old:
        _rule(node, wanted=False)
    stale = {(one.pid, one.started): node for node in old for one in there.get(node, [])}
    # Let waiting packets go before the program ends, or they would be lost.
    _wait(lambda: [n for (pid, _), n in stale.items() if (_queue(pid) or NOTHING).waiting])
    if stale:
        processes.kill(ROLE, lambda process: (process.pid, process.started) in stale)
    started = {}
    for node, line in wanted.items():
        if node not in unchanged:
            where = network.NAMED_NAMESPACES / network.namespace(node)
            command = ["nsenter", f"--net={where}", *line.command(node)]
            started[node] = daemons.start(ROLE, command, processes.go_first)

    def not_yet() -> list[str]:
        for node, program in started.items():
            if program.poll() is not None:
                raise StepFailedError(
                    f"{node}: nothing holds its packets; see {folder / 'log'}/{ROLE}.out"
                )
        return [node for node, program in started.items() if _queue(program.pid) is None]

    _wait(not_yet)
    for node in wanted:
        _rule(node, wanted=True)


def differences(folder: StateFolder, topology: Topology, planted: Faults) -> list[str]:
    """Return a sentence for each delay line that is not as ``planted``."""
    wanted, there = lines(topology, planted), network.in_nodes(folder.path, ROLE)
    wrong = [f"{n}: its packets are held and should not be" for n in there if n not in wanted]
    for node, line in wanted.items():
        found = there.get(node, [])
        queue = _queue(found[0].pid) if _right(found, line, node) else None
        if queue is None or not _has_rule(node):
            wrong.append(f"{node}: its packets are not held as they should be")
        elif queue.lost:
            wrong.append(f"{node}: its delay line had no place for {queue.lost} packets")
    return wrong


def _right(found: list[processes.Process], line: Line, node: str) -> bool:
    """Return whether exactly the node's own line runs in it."""
    return len(found) == 1 and processes.title(found[0].pid) == " ".join(line.command(node))


def _queue(pid: int) -> Queue | None:
    """Return the queue that the process holds in its network; None without."""
    try:
        table = Path(f"/proc/{pid}/net/netfilter/nfnetlink_queue").read_text(encoding="utf-8")
    except OSError:
        return None
    return read_queue(table, pid)


def _wait(still: Callable[[], list[str]]) -> None:
    """Wait until ``still`` names no node. Raises StepFailedError if it never does."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while nodes := still():
        if time.monotonic() > deadline:
            raise StepFailedError(f"{nodes[0]}: its packets are not held as they should be")
        time.sleep(POLL_SECONDS)


def _rule(node: str, *, wanted: bool) -> None:
    """Add or remove the rule that queues a node's packets. Raises StepFailedError if that fails."""
    if _has_rule(node) == wanted:
        return
    ran = _iptables(node, "--append" if wanted else "--delete")
    if ran.returncode:
        why = " ".join(ran.stderr.split()) or "nothing said"
        raise StepFailedError(f"{node}: its packets are not held as they should be ({why})")


def _has_rule(node: str) -> bool:
    return _iptables(node, "--check").returncode == 0


def _iptables(node: str, what: str) -> subprocess.CompletedProcess[str]:
    return network.in_node(node, "iptables", "--wait", what, *RULE)
