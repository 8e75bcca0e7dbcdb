"""Links of topologies of the testbed's, as they should be and as the kernel shows them."""

from __future__ import annotations

from pathlib import Path

from ci.testbed import cables, mending, topology, topology_reading
from ci.testbed.mending import Seen

FOLDER = Path(topology.__file__).parent
TREE = topology_reading.load(FOLDER / "leaves.yaml")
SICK = topology_reading.load(FOLDER.parents[1] / "docs/criteria/sick-switch.yaml")


def links(planted=None, of=TREE):
    return {cable.name: cable for cable in cables.cables(of, planted or {})}


def as_wanted(planted=None, of=TREE):
    """The kernel's view of links that are as they should be."""
    return {
        end.place: Seen(end.mtu, end.up, cable.connected, end.address, end.bucket, end.drop)
        for cable in cables.cables(of, planted or {})
        for end in cable.ends
    }


def ordered(planted, before=None, of=TREE):
    """The lines that lead from what is planted ``before`` to what is now."""
    found = mending.orders(cables.cables(of, planted), as_wanted(before, of))
    return {where: order.ip + order.tc for where, order in found.items()}


def mbps(cable):
    return tuple(end.bucket and end.bucket.mbps for end in cable.ends)
