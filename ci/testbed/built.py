"""The testbed in a state folder."""

from __future__ import annotations

from ci.testbed import topology_reading
from ci.testbed.errors import CannotRunError
from ci.testbed.state import StateFolder
from ci.testbed.topology import Topology


def is_up(folder: StateFolder) -> bool:
    """Return whether there is a testbed in ``folder``."""
    return folder.is_marked() and (folder / "topology.yaml").is_file()


def built_topology(folder: StateFolder) -> Topology:
    """Return the topology of the testbed in ``folder``. Raises CannotRunError without one."""
    if not is_up(folder):
        raise CannotRunError(f"no testbed in {folder.path}: run 'testbed up'")
    return topology_reading.load(folder / "topology.yaml")
