"""A testbed's switches, their nodes, and the resulting addresses."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from ci.testbed import faults
from ci.testbed.faults import FaultError, Faults
from netproof.errors import NetproofError, shortened

CONTROLLER_ADDRESS = "198.18.0.254"
"""The machine's address in the management network; 198.18.0.0/15 is RFC 2544's test range."""
ETHERNET_HEADER_BYTES = 14
FRAME_OVERHEAD_BYTES = 24
"""Bytes of a frame on the wire that the kernel does not count: preamble 8, FCS 4, gap 12."""
HEALTHY_BUFFER_BYTES = 1_000_000
"""Queue at a healthy link's ends: larger than any measured message."""
BURST_US = 56
LATE_TIMER_US = 17
PORT_BURST_US = 512


class TopologyError(NetproofError):
    """An invalid topology file; the text names file, line, key and remedy."""


@dataclass(frozen=True)
class Shape:
    """Token buckets that slow a switch's links to their rate; sizes in bytes.

    ``burst`` is the bucket of a node's network card, and ``port_burst`` that of a switch port to
    its node; None leaves that end unshaped. ``offload`` allows segments larger than the MTU, like
    a card with TSO.
    """

    burst: int | None
    port_burst: int | None
    offload: bool


@dataclass(frozen=True)
class Node:
    """A node: ``address`` on its switch, ``management_address`` for Slurm's own traffic.

    ``rail_address``: on the second rail of its switch, None without one.
    """

    name: str
    address: str
    management_address: str
    rail_address: str | None = None


@dataclass(frozen=True)
class Leaf:
    """A leaf switch and its nodes; its uplink to the spine has the same name."""

    name: str
    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class Switch:
    """A switch with its nodes: link rate in Mbit/s, MTU and buffer (queue) in bytes.

    ``leaves``: leaf switches, each with an uplink of ``uplink_mbps`` to a spine. ``mgmt_mbps``:
    rate of the nodes' links to a second management network, None without one. ``rails``: links of
    each node, 1 or 2, each to a switch of its own.
    """

    name: str
    link_mbps: int
    mtu: int
    buffer: int
    cpus: int
    shape: Shape
    nodes: tuple[Node, ...]
    leaves: tuple[Leaf, ...] = ()
    uplink_mbps: int | None = None
    mgmt_mbps: int | None = None
    rails: int = 1

    @property
    def spine(self) -> str:
        """Name of the spine, if it has leaves."""
        return f"{self.name}-spine"

    @property
    def uplink(self) -> Switch:
        """The switch with links like the uplinks: their rate, and a shape for it."""
        mbps = self.uplink_mbps or self.link_mbps
        return dataclasses.replace(self, link_mbps=mbps, shape=default_shape(mbps, self.mtu))


@dataclass(frozen=True)
class Twin:
    """Two ends outside Slurm, with links like those of the switch when healthy."""

    switch: Switch
    number: int

    @property
    def ends(self) -> tuple[Node, Node]:
        """Both ends, with their addresses on a bridge of their own."""
        return tuple(
            Node(f"{self.switch.name}@twin-{end}", f"198.19.{self.number}.{end}", "")
            for end in (1, 2)
        )

    @property
    def healthy(self) -> Switch:
        """The switch that they are on."""
        return dataclasses.replace(
            self.switch,
            name=f"twin-{self.number}",
            buffer=max(self.switch.buffer, HEALTHY_BUFFER_BYTES),
            shape=default_shape(self.switch.link_mbps, self.switch.mtu),
            nodes=self.ends,
            leaves=(),
            uplink_mbps=None,
            mgmt_mbps=None,
            rails=1,
        )


@dataclass(frozen=True)
class Topology:
    """All switches, in the order of the file; the first one is Slurm's default partition.

    ``faults``: planted by ``up``.
    """

    switches: tuple[Switch, ...]
    faults: Faults = dataclasses.field(default_factory=dict)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Every node, switch by switch."""
        return tuple(node for switch in self.switches for node in switch.nodes)

    @property
    def twins(self) -> tuple[Twin, ...]:
        """Healthy twins of all switches."""
        return tuple(Twin(switch, number) for number, switch in enumerate(self.switches, 1))

    def node(self, name: str) -> Node:
        """Return the node called ``name``. Raises TopologyError with all nodes if it is missing."""
        for node in self.nodes:
            if node.name == name:
                return node
        names = " ".join(node.name for node in self.nodes)
        raise TopologyError(f"no node {name!r} in this testbed; its nodes are: {names}")

    @property
    def places(self) -> dict[str, tuple[str, Switch]]:
        """Places of faults: kind and switch, by the name of node, leaf or switch."""
        found: dict[str, tuple[str, Switch]] = {}
        for switch in self.switches:
            found |= {node.name: (faults.NODE, switch) for node in switch.nodes}
            found |= {leaf.name: (faults.LEAF, switch) for leaf in switch.leaves}
            found[switch.name] = (faults.SWITCH, switch)
        return found

    def checked_fault(self, place: object, key: object, value: object) -> faults.Value:
        """Return the value to store of a fault. Raises FaultError if it is not possible here."""
        kind, switch = (
            self.places.get(place, (None, None)) if isinstance(place, str) else (None,) * 2
        )
        if kind is None or switch is None:
            raise FaultError(
                f"{shortened(str(place), 80)}: no node, leaf or switch of this testbed; it has"
                f" {shortened(' '.join(self.places))}"
            )
        found = faults.checked(kind, key, value)
        least = switch.mtu + ETHERNET_HEADER_BYTES
        if key == "mtu" and found == switch.mtu:
            raise FaultError(f"mtu: {found} is the switch's own; write another")
        if key == "buffer" and int(found) < least:
            raise FaultError(
                f"buffer: found {found}; write at least {least}, a frame of {switch.name}"
            )
        return found

    def delays(self, planted: Faults) -> Faults:
        """Return the faults.DELAYS of each node that has any: its switch's, changed by its own."""
        found: Faults = {}
        for switch in self.switches:
            for node in switch.nodes:
                keys = planted.get(switch.name, {}) | planted.get(node.name, {})
                held = {key: keys[key] for key in faults.DELAYS if key in keys}
                found |= {node.name: held} if held else {}
        return found

    def with_switch_faults(self, planted: Faults) -> Topology:
        """Return this topology with the ``planted`` faults of whole switches."""
        fields = {"buffer", "mgmt_mbps"}
        return dataclasses.replace(
            self,
            switches=tuple(
                dataclasses.replace(
                    switch,
                    **{k: v for k, v in planted.get(switch.name, {}).items() if k in fields},
                )
                for switch in self.switches
            ),
        )


def default_shape(link_mbps: int, mtu: int) -> Shape:
    """Return the shape of a healthy link.

    A bucket passes its fill above the line rate after each pause, and loses rate if it is too
    shallow for late timers. At the node's end it holds BURST_US of the link, and at least a frame
    and LATE_TIMER_US. With that, NPtcp's messages of 64 KiB and more had 85 to 101 % of the line
    rate. At the switch's end it only has to hold back several senders to one node, and may be
    deeper.
    """
    frame = mtu + ETHERNET_HEADER_BYTES + FRAME_OVERHEAD_BYTES
    bytes_per_us = link_mbps / 8
    return Shape(
        burst=max(round(BURST_US * bytes_per_us), frame + round(LATE_TIMER_US * bytes_per_us)),
        port_burst=max(round(PORT_BURST_US * bytes_per_us), 4 * frame),
        offload=False,
    )
