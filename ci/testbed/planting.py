"""Plant faults on a running testbed, read them back, and lift them without a trace.

The state folder's RECORD has the planted faults, so that each verb knows the testbed's right state.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from typing import Any

from ci.testbed import delays, faults, network, processes
from ci.testbed.daemons import Daemons
from ci.testbed.errors import StepFailedError
from ci.testbed.faults import FaultError, Faults
from ci.testbed.state import StateFolder
from ci.testbed.topology import Node, Topology

RECORD = "faults.json"
BUSY_ROLE = "busy"
BUSY_SECONDS = 20.0
POLL_SECONDS = 0.02
LOOP = "while :; do :; done"


@dataclass(frozen=True)
class Record:
    """Planted faults, and the values of sysctls before them, by node and name."""

    planted: Faults = field(default_factory=dict)
    before: dict[str, dict[str, str]] = field(default_factory=dict)


def load(folder: StateFolder, topology: Topology) -> Record:
    """Read the record of the testbed in ``folder``. Raises StepFailedError if it is damaged."""
    place = folder / RECORD
    if not place.is_file():
        return Record()
    try:
        record: Any = json.loads(place.read_text(encoding="utf-8"))
        planted = {
            where: {key: topology.checked_fault(where, key, value) for key, value in keys.items()}
            for where, keys in record["planted"].items()
        }
        return Record(planted, {node: dict(values) for node, values in record["before"].items()})
    except (ValueError, KeyError, TypeError, AttributeError, FaultError) as error:
        raise StepFailedError(
            f"{place}: does not say what is planted ({error}); run 'testbed down'"
        ) from error


def forget(folder: StateFolder) -> None:
    """Remove the record, after its network is gone."""
    (folder / RECORD).unlink(missing_ok=True)


def settle(folder: StateFolder, daemons: Daemons, topology: Topology, wanted: Faults) -> None:
    """Plant and lift until exactly the faults ``wanted`` are there, and read all of them back.

    Raises FaultError before any change for faults that the kernel lacks, and StepFailedError if
    the testbed does not become as wanted.
    """
    record = load(folder, topology)
    if any("loss" in keys for keys in wanted.values()):
        network.probe_loss()
    if delays.lines(topology, wanted):
        delays.probe()
    before = {node: dict(values) for node, values in record.before.items()}
    for node, key in _sysctls(wanted):
        if key not in before.setdefault(node, {}):
            before[node][key] = _sysctl(node, key)
    # Record the faults first: lifting then knows all of them, even after an interruption.
    _write(folder, Record(wanted, before))
    network.mend(topology, wanted)
    for node, values in before.items():
        for key, value in values.items():
            _set(node, key, str(wanted.get(node, {}).get(key, value)))
    _occupy(folder, daemons, topology, wanted)
    delays.settle(folder, daemons, topology, wanted, before=record.planted)
    changed = {
        node: {key: values[key] for key in values if key in wanted.get(node, {})}
        for node, values in before.items()
    }
    _write(folder, Record(wanted, {node: values for node, values in changed.items() if values}))


def differences(folder: StateFolder, topology: Topology, planted: Faults) -> list[str]:
    """Return a sentence for each sysctl and process that is not as ``planted``."""
    wrong = []
    present = set(network.existing())
    for node, key in _sysctls(planted):
        found = _sysctl(node, key) if network.namespace(node) in present else None
        if found != planted[node][key]:
            wrong.append(f"{node}: {key} is {found} and should be {planted[node][key]}")
    busy = network.in_nodes(folder.path, BUSY_ROLE)
    for node in topology.nodes:
        found, should = len(busy.get(node.name, [])), _busy_wanted(planted, node)
        if found != should:
            wrong.append(f"{node.name}: {found} CPUs are kept busy and {should} should be")
    return wrong + delays.differences(folder, topology, planted)


def _write(folder: StateFolder, record: Record) -> None:
    if record == Record():
        forget(folder)
        return
    held = {"planted": record.planted, "before": record.before}
    folder.write(RECORD, json.dumps(held, indent=1) + "\n")


def _sysctls(planted: Faults) -> list[tuple[str, str]]:
    """Return node and name of each planted sysctl."""
    return [(node, key) for node, keys in planted.items() for key in keys if faults.is_sysctl(key)]


def _sysctl(node: str, key: str) -> str:
    """Return a sysctl's value in a node's network. Raises FaultError without it."""
    place = f"/proc/sys/{key.replace('.', '/')}"
    ran = network.in_node(node, "cat", "--", place)
    if ran.returncode:
        raise FaultError(f"{node}: has no sysctl {key}: {' '.join(ran.stderr.split())}")
    return " ".join(ran.stdout.split())


def _set(node: str, key: str, value: str) -> None:
    """Set a sysctl and read it back. Raises StepFailedError if it has another value then."""
    if _sysctl(node, key) == value:
        return
    place = f"/proc/sys/{key.replace('.', '/')}"
    ran = network.in_node(node, "sh", "-c", 'printf %s "$2" >"$1"', "sh", place, value)
    found = _sysctl(node, key)
    if ran.returncode or found != value:
        why = " ".join(ran.stderr.split()) or "nothing said"
        raise StepFailedError(f"{node}: {key} is {found} and should be {value} ({why})")


def _busy_wanted(planted: Faults, node: Node) -> int:
    return int(planted.get(node.name, {}).get("busy_cpus", 0))


def _occupy(folder: StateFolder, daemons: Daemons, topology: Topology, planted: Faults) -> None:
    """Keep CPUs of nodes busy, at a task's priority."""
    busy = network.in_nodes(folder.path, BUSY_ROLE)
    wanted = {node.name: _busy_wanted(planted, node) for node in topology.nodes}
    surplus = {
        (process.pid, process.started)
        for node, found in busy.items()
        for process in found[wanted.get(node, 0) :]
    }
    if surplus:
        processes.kill(BUSY_ROLE, lambda process: (process.pid, process.started) in surplus)
    cpus = sorted(os.sched_getaffinity(0))
    for node in topology.nodes:
        for index in range(len(busy.get(node.name, [])), wanted[node.name]):
            slurmd = daemons.slurmd(node)
            if slurmd is None:
                raise StepFailedError(f"{node.name}: is down, so nothing can keep its CPUs busy")
            # Bound to one CPU, like a task by the prolog.
            cpu = cpus[(int(node.name.rpartition("-")[2]) - 1 + index) % len(cpus)]
            command = ["nsenter", f"--target={slurmd}", "--net", "--uts", "--mount", "--ipc"]
            command += ["taskset", "--cpu-list", str(cpu), "sh", "-c", LOOP]
            daemons.start(BUSY_ROLE, command, processes.go_first)
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        found = {
            node: [p.command for p in of_it]
            for node, of_it in network.in_nodes(folder.path, BUSY_ROLE).items()
        }
        wrong = [n for n, count in wanted.items() if found.get(n, []) != ["sh"] * count]
        if not wrong:
            return
        if time.monotonic() > deadline:
            raise StepFailedError(
                f"{wrong[0]}: {len(found.get(wrong[0], []))} CPUs are kept busy and"
                f" {wanted[wrong[0]]} should be"
            )
        time.sleep(POLL_SECONDS)
