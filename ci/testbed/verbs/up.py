"""The verb up: start the testbed, or repair it."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ci.testbed import network, planting, processes, slurm, state, topology_reading
from ci.testbed.daemons import Daemons
from ci.testbed.errors import CannotRunError, StepFailedError
from ci.testbed.machine_lock import machine_lock
from ci.testbed.requirements import (
    PACKAGES,
    refuse_another,
    require_files,
    require_priority,
    require_programs,
)
from ci.testbed.state import StateFolder
from ci.testbed.topology import Topology
from ci.testbed.verbs.down import kill_in_namespaces, kill_testbed
from ci.testbed.verbs.plant import print_faults


def up(folder: StateFolder, topology_file: Path) -> int:
    """Start the testbed, or restart dead parts and lift faults; leave the rest alone."""
    begun = time.monotonic()
    require_programs(PACKAGES)
    require_files()
    wanted = topology_reading.load(topology_file)
    with machine_lock():
        refuse_another(folder)
        network.probe()
        require_priority()
        _settle(folder, wanted, topology_file)
        _configure(folder, wanted)
        daemons = Daemons(folder, wanted)
        report = _Report()
        with ThreadPoolExecutor() as pool:
            begin = [
                pool.submit(report.step, "network", lambda: _connect(folder, wanted)),
                pool.submit(report.step, "munged", daemons.start_munged),
                pool.submit(report.step, "mariadbd", daemons.start_database),
            ]
            for future in begin:
                future.result()
        report.step("slurmdbd", daemons.start_accounting)
        report.step("slurmctld", daemons.start_controller)
        started = daemons.start_nodes()
        report.step(f"{len(wanted.nodes)} nodes", lambda: daemons.wait_for_nodes() or started)
        daemons.pass_over_lost_jobs()
        daemons.register_cluster()
        if wanted.faults or planting.load(folder, wanted) != planting.Record():
            planting.settle(folder, daemons, wanted, wanted.faults)
            print_faults(wanted.faults)
    print(
        f"up in {time.monotonic() - begun:.1f} s; to use it: . ci/testbed/activate, or export"
        f" SLURM_CONF={folder / state.CONF}"
    )
    return 0


class _Report:
    """Prints a line for each step with its time."""

    def step(self, what: str, work: Callable[[], bool]) -> None:
        begun = time.monotonic()
        changed = work()
        outcome = "started" if changed else "was up"
        print(f"{what:<12}{outcome:<9}{time.monotonic() - begun:6.2f} s", flush=True)


def _settle(folder: StateFolder, wanted: Topology, topology_file: Path) -> None:
    """Make ``folder`` ready for the topology ``wanted``; wipe it if its files are stale."""
    folder.claim()
    ours = [p for p in processes.running() if p.state == str(folder.path)]
    if folder.survived_this_boot() and (folder / "topology.yaml").is_file():
        if topology_reading.load(folder / "topology.yaml") == wanted:
            return
        if ours:
            raise CannotRunError(
                f"the testbed is up with another topology than {topology_file} says: run"
                " 'testbed down' first"
            )
    kill_testbed(folder)
    # Faults planted on its nodes would have no record.
    network.remove()
    folder.wipe()
    folder.write("topology.yaml", topology_file.read_text(encoding="utf-8"))
    folder.write("boot-id", state.boot_id())


def _configure(folder: StateFolder, wanted: Topology) -> None:
    """Write the configuration files. Raises CannotRunError if daemons run with different ones."""
    host = socket.gethostname().partition(".")[0]
    prolog = slurm.task_prolog(sorted(os.sched_getaffinity(0)), wanted.prolog_prints)
    memory_mb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    files = {
        state.CONF: (slurm.configuration(wanted, folder, host, memory_mb), 0o644),
        "cgroup.conf": (slurm.CGROUP_CONFIGURATION, 0o644),
        "slurmdbd.conf": (slurm.database_configuration(folder, host), 0o600),
        "hosts": (slurm.hosts(wanted, host), 0o644),
        **({slurm.TOPOLOGY_CONF: (slurm.tree(wanted), 0o644)} if slurm.has_tree(wanted) else {}),
        slurm.TASK_PROLOG: (prolog, 0o755),
    }
    stale = [n for n, (text, _) in files.items() if not folder.holds(n, text)]
    running = any(p.state == str(folder.path) for p in processes.running())
    if running and any((folder / name).exists() for name in stale):
        raise CannotRunError(
            f"the testbed is up with another {', '.join(stale)} than would be written now: run"
            " 'testbed down' first"
        )
    for name in stale:
        folder.write(name, *files[name])
    (folder / "log").mkdir(exist_ok=True)


def _connect(folder: StateFolder, wanted: Topology) -> bool:
    """Correct the network, or build a new one if that fails, and kill processes in the old one."""
    alias = f"netproof testbed {folder.path}"
    if network.built_for() == alias:
        try:
            return network.mend(wanted, wanted.faults)
        except StepFailedError as error:
            print(f"{error}: rebuilding it", file=sys.stderr)
    kill_in_namespaces()
    network.remove()
    planting.forget(folder)
    if not network.NAMED_NAMESPACES.exists():
        (folder / state.MADE_NAMESPACE_FOLDER).touch()
    network.build(wanted, wanted.faults, alias)
    return True
