"""The testbed's links as topology and faults define them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ci.testbed import faults
from ci.testbed.faults import Faults, Value
from ci.testbed.topology import (
    ETHERNET_HEADER_BYTES,
    FRAME_OVERHEAD_BYTES,
    HEALTHY_BUFFER_BYTES,
    Node,
    Switch,
    Topology,
    default_shape,
)

PREFIX = "netproof-"
SWITCHES = f"{PREFIX}switches"
TWINS = f"{PREFIX}twins"
DATA = "eth1"
RAIL = "eth2"
RAIL_PORT = "R"
"""First letter of the names of bridges and ports of second rails."""
MGMT = "mgmt0"
MGMT_MTU = 1500
MGMT_PORT = "G"
"""First letter of the names of bridges and ports of second management networks.

Names outside the topology file begin with capital letters, so that no name is used twice.
"""
UPLINK, DOWNLINK = "U", "D"
BYTES_PER_MBIT = 125_000
RANDOM_RANGE = 2**32


def namespace(node: str) -> str:
    """Return the name of a node's network namespace."""
    return PREFIX + node


@dataclass(frozen=True)
class Bucket:
    """A token bucket: ``rate`` in bytes/s, ``burst`` and ``limit`` (its queue) in bytes."""

    rate: int
    burst: int
    limit: int

    @property
    def mbps(self) -> float:
        """Rate in Mbit/s."""
        return self.rate / BYTES_PER_MBIT


@dataclass(frozen=True)
class End:
    """One end of a link as it should be, an interface in the namespace ``where``.

    ``drop``: lost frames of 2³², in each direction. ``neighbours``: addresses with a permanent
    entry in its neighbour table.
    """

    whose: str
    where: str
    interface: str
    mtu: int
    bucket: Bucket | None
    up: bool = True
    drop: int = 0
    address: str | None = None
    neighbours: tuple[str, ...] = ()
    bridge: str | None = None
    offload: bool = True

    @property
    def place(self) -> tuple[str, str]:
        """Namespace and interface."""
        return self.where, self.interface


@dataclass(frozen=True)
class Cable:
    """A link; ``near`` is its end at the node or leaf, and ``far`` the one above."""

    name: str
    near: End
    far: End

    @property
    def ends(self) -> tuple[End, End]:
        """Both ends."""
        return self.near, self.far

    @property
    def connected(self) -> bool:
        """Whether both ends should have a carrier."""
        return self.near.up and self.far.up


def cables(topology: Topology, planted: Faults) -> tuple[Cable, ...]:
    """Return every link of the testbed with the ``planted`` faults, and those of healthy twins."""
    as_planted = topology.with_switch_faults(planted)
    found: list[Cable] = []
    for number, switch in enumerate(as_planted.switches, 1):
        bridges = {node.name: leaf.name for leaf in switch.leaves for node in leaf.nodes}
        for index, node in enumerate(switch.nodes, 1):
            bridge = bridges.get(node.name, switch.name)
            own = planted.get(node.name, {})
            found.append(_of_node(switch, node, SWITCHES, node.name, bridge, own))
            if node.rail_address is not None:
                found.append(_of_rail(switch, node, node.rail_address, number, index))
            if switch.mgmt_mbps is not None:
                found.append(_of_mgmt(switch, node, number, index))
        for index, leaf in enumerate(switch.leaves, 1):
            own = planted.get(leaf.name, {})
            found.append(_uplink(switch.uplink, leaf.name, f"{number}-{index}", own))
    for twin in topology.twins:
        for number, end in enumerate(twin.ends, 1):
            healthy = twin.healthy
            found.append(
                _of_node(healthy, end, TWINS, f"{healthy.name}-{number}", healthy.name, {})
            )
    return tuple(found)


def bridges(topology: Topology, planted: Faults) -> dict[tuple[str, str], int]:
    """Return the MTU of every bridge, by namespace and name."""
    found: dict[tuple[str, str], int] = {}
    for number, switch in enumerate(topology.with_switch_faults(planted).switches, 1):
        names = [leaf.name for leaf in switch.leaves]
        for name in [*names, switch.spine] if names else [switch.name]:
            found[SWITCHES, name] = switch.mtu
        if switch.rails > 1:
            found[SWITCHES, f"{RAIL_PORT}{number}"] = switch.mtu
        if switch.mgmt_mbps is not None:
            found[SWITCHES, f"{MGMT_PORT}{number}"] = MGMT_MTU
    return found | {(TWINS, twin.healthy.name): twin.healthy.mtu for twin in topology.twins}


def mgmt_network(number: int) -> str:
    """Return the second management network of a switch by number, without its last part."""
    return f"198.19.{100 + number}."


def _of_node(
    switch: Switch, node: Node, where: str, port: str, bridge: str, own: Mapping[str, Value]
) -> Cable:
    """Return a node's link, with the node's ``own`` faults."""
    mtu = int(own.get("mtu", switch.mtu))
    healthy, shape = default_shape(switch.link_mbps, switch.mtu), switch.shape
    near = End(
        whose="node's",
        where=namespace(node.name),
        interface=DATA,
        mtu=mtu,
        bucket=_bucket(switch, shape.burst, healthy.burst, _share(own, "send_rate"), mtu),
        address=node.address,
        neighbours=tuple(other.address for other in switch.nodes if other != node),
        offload=shape.offload,
    )
    far = End(
        whose="switch's",
        where=where,
        interface=port,
        mtu=switch.mtu,
        bucket=_bucket(
            *(switch, shape.port_burst, healthy.port_burst),
            *(_share(own, "receive_rate"), switch.mtu),
        ),
        up=own.get("link") != "down",
        drop=_drop(own),
        bridge=bridge,
    )
    return Cable(node.name, near, far)


def _of_rail(switch: Switch, node: Node, address: str, number: int, index: int) -> Cable:
    """Return a node's link to the second rail of its switch: like the first, without faults."""
    first = _of_node(
        switch, node, SWITCHES, f"{RAIL_PORT}{number}-{index}", f"{RAIL_PORT}{number}", {}
    )
    others = tuple(one.rail_address for one in switch.nodes if one != node and one.rail_address)
    near = replace(first.near, interface=RAIL, address=address, neighbours=others)
    return Cable(f"{node.name} {RAIL}", near, first.far)


def _uplink(switch: Switch, leaf: str, numbers: str, own: Mapping[str, Value]) -> Cable:
    """Return a leaf's link to the spine; ``switch`` has the rate and shape of its uplinks."""
    burst = switch.shape.port_burst

    def bucket(key: str) -> Bucket | None:
        return _bucket(switch, burst, burst, _share(own, key), switch.mtu)

    near = End(
        whose="leaf's",
        where=SWITCHES,
        interface=f"{UPLINK}{numbers}",
        mtu=switch.mtu,
        bucket=bucket("send_rate"),
        bridge=leaf,
    )
    far = End(
        whose="spine's",
        where=SWITCHES,
        interface=f"{DOWNLINK}{numbers}",
        mtu=switch.mtu,
        bucket=bucket("receive_rate"),
        up=own.get("link") != "down",
        drop=_drop(own),
        bridge=switch.spine,
    )
    return Cable(leaf, near, far)


def _of_mgmt(switch: Switch, node: Node, number: int, index: int) -> Cable:
    """Return a node's link to the second management network of its switch."""
    mbps = switch.mgmt_mbps or 0
    shape = default_shape(mbps, MGMT_MTU)

    def bucket(burst: int | None) -> Bucket:
        return Bucket(mbps * BYTES_PER_MBIT, burst or 0, HEALTHY_BUFFER_BYTES)

    near = End(
        whose="node's",
        where=namespace(node.name),
        interface=MGMT,
        mtu=MGMT_MTU,
        bucket=bucket(shape.burst),
        address=f"{mgmt_network(number)}{index}",
        neighbours=tuple(
            f"{mgmt_network(number)}{other}"
            for other in range(1, len(switch.nodes) + 1)
            if other != index
        ),
        offload=False,
    )
    far = End(
        whose="switch's",
        where=SWITCHES,
        interface=f"{MGMT_PORT}{number}-{index}",
        mtu=MGMT_MTU,
        bucket=bucket(shape.port_burst),
        bridge=f"{MGMT_PORT}{number}",
    )
    return Cable(f"{node.name} {MGMT}", near, far)


def _share(own: Mapping[str, Value], one_way: str) -> float:
    """Return the share of its rate that an end has left."""
    return float(own.get(one_way, own.get(faults.BOTH_WAYS, 1)))


def _drop(own: Mapping[str, Value]) -> int:
    return round(float(own.get("loss", 0)) * RANDOM_RANGE)


def _bucket(
    switch: Switch, burst: int | None, healthy: int | None, share: float, mtu: int
) -> Bucket | None:
    """Return an end's token bucket; None for an unshaped end at its full rate.

    A slower bucket lasts as long, and holds at least a frame.
    """
    if share == 1 and burst is None:
        return None
    held = burst if burst is not None else healthy or 0
    if share < 1 or mtu > switch.mtu:
        held = max(round(held * share), mtu + ETHERNET_HEADER_BYTES + FRAME_OVERHEAD_BYTES)
    return Bucket(round(switch.link_mbps * BYTES_PER_MBIT * share), held, switch.buffer)
