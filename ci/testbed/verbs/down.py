"""The verb down: remove the testbed."""

from __future__ import annotations

from ci.testbed import network, processes, state
from ci.testbed.machine_lock import machine_lock
from ci.testbed.requirements import PACKAGES, other_testbeds, require_programs
from ci.testbed.state import StateFolder


def down(folder: StateFolder) -> int:
    """Remove the testbed: processes, network, folder, and the remains of a dead one."""
    require_programs({"ip": PACKAGES["ip"]})
    with machine_lock():
        others = other_testbeds(folder)
        killed = processes.kill("down", lambda process: process.state == str(folder.path))
        removed = 0
        if not others:
            killed += kill_in_namespaces()
            removed = network.remove()
            if (folder / state.MADE_NAMESPACE_FOLDER).exists():
                network.forget_namespace_folder()
        was_ours = folder.remove()
    print(f"down: ended {killed} processes, removed {removed} namespaces and interfaces")
    if not was_ours:
        print(f"{folder.path} was left: no testbed made it")
    return 0


def kill_testbed(folder: StateFolder) -> int:
    """Kill the processes of the testbed in ``folder`` and in any node; return their number."""
    killed = processes.kill("testbed", lambda process: process.state == str(folder.path))
    return killed + kill_in_namespaces()


def kill_in_namespaces() -> int:
    """Kill all processes in any testbed's node, whoever started them; return their number."""
    networks = network.inodes()
    return processes.kill("a node", lambda process: process.network in networks)
