"""The verb down: takes everything away again."""

from __future__ import annotations

from ci.testbed import network, processes, state
from ci.testbed.machine_lock import machine_lock
from ci.testbed.requirements import PACKAGES, other_testbeds, require_programs
from ci.testbed.state import StateFolder


def down(folder: StateFolder) -> int:
    """Takes the testbed away: processes, network, folder; and what a dead one left behind."""
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
    """Ends the processes of the testbed in ``folder``, and those in any node; how many."""
    killed = processes.kill("testbed", lambda process: process.state == str(folder.path))
    return killed + kill_in_namespaces()


def kill_in_namespaces() -> int:
    """Ends what runs in any testbed's node, whoever started it there; how many it were."""
    networks = network.inodes()
    return processes.kill("a node", lambda process: process.network in networks)
