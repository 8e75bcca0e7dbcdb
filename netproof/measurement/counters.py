"""What each node's network counted while a launch ran, as ``run/shell/counters.sh`` printed it.

Formats after the kernel's documentation: proc_net(5) for /proc/net/dev, snmp and netstat,
Documentation/ABI/testing/sysfs-class-net for carrier changes, Documentation/ABI/stable/
sysfs-class-infiniband for ports. Every source is read whole, by the names that it gives itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from netproof.errors import NetproofError

INTERFACE, TCP, SOFTNET, DRIVER, INFINIBAND = "interface", "tcp", "softnet", "driver", "infiniband"
"""Kinds of sources."""

CARRIER = "carrier_changes"
"""Of it alone what came between launches counts too, with the launch that follows."""

SINCE = "carriers-since"
"""Where the node's reading of carriers after its launch before is kept among those of this one."""

WORD_BYTES = 4
"""``port_xmit_data`` and ``port_rcv_data`` count words of 4 bytes."""


@dataclass(frozen=True, slots=True)
class CounterSource:
    """What one source of a node counted.

    ``kind``: one of those above; ``name``: of the interface, of the port as ``mlx5_0/1``, empty
    for the node's own. ``counted``: counters to what was added, never 0; ``read``: which of
    ``Counters.names`` has all that were read, to the others of which 0 was added; ``absent``:
    counters that are not known, each with the reason. ``layer``: of a port, ``InfiniBand`` or
    ``Ethernet``; ``interfaces``: those of a port, or below an interface, which counts their bytes
    too.
    """

    kind: str
    name: str
    counted: Mapping[str, int]
    read: int
    absent: Mapping[str, str] = field(default_factory=dict)
    layer: str = ""
    interfaces: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeCounters:
    """What a node counted from before its first rank began to after that ended.

    ``absent``: sources that could not be read, each with the reason; ``took_s``: seconds that
    reading them took, before and after together.
    """

    node: str
    sources: tuple[CounterSource, ...]
    absent: Mapping[str, str]
    took_s: float

    def source(self, kind: str, name: str = "") -> CounterSource | None:
        """One of its sources, None where it has none of that kind and name."""
        for one in self.sources:
            if (one.kind, one.name) == (kind, name):
                return one
        return None

    def of_kind(self, kind: str) -> tuple[CounterSource, ...]:
        """Its sources of a kind."""
        return tuple(one for one in self.sources if one.kind == kind)


@dataclass(frozen=True)
class Counters:
    """What all nodes of a launch counted; ``names``: sets of counters that a source refers to."""

    nodes: tuple[NodeCounters, ...]
    names: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        for node in self.nodes:
            for source in node.sources:
                if not 0 <= source.read < len(self.names):
                    raise NetproofError(f"{node.node}: {source.kind} {source.name} has no names")

    def of(self, node: str) -> NodeCounters | None:
        """What a node counted; None where it is no node of the launch."""
        return self._by_name.get(node)

    @cached_property
    def _by_name(self) -> Mapping[str, NodeCounters]:
        # A name that is there twice is the first one's.
        return {one.node: one for one in reversed(self.nodes)}

    def of_source(self, source: CounterSource, counter: str) -> int | None:
        """What was added to a counter: 0 where it was read and did not change, None not known."""
        if counter in source.counted:
            return source.counted[counter]
        return 0 if counter in self.names[source.read] else None

    def value(self, node: str, kind: str, name: str, counter: str) -> int | None:
        """The same by names; None also where there is no such node or source."""
        counted = self.of(node)
        source = None if counted is None else counted.source(kind, name)
        return None if source is None else self.of_source(source, counter)

    def why(self, node: str, kind: str, name: str, counter: str) -> str:
        """Why ``value`` is None."""
        counted = self.of(node)
        if counted is None:
            return f"{node} told of no counters"
        source = counted.source(kind, name)
        if source is not None and counter in source.absent:
            return source.absent[counter]
        for key in (f"{kind} {name}", kind, *counted.absent):
            if key.startswith(kind) and key in counted.absent:
                return counted.absent[key]
        return "the kernel has no such counter"


Readings = dict[str, dict[str, str]]
"""Name of a source to counter to the kernel's word for it."""
