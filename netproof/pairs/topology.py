"""The tree of switches between nodes, and the switches and uplinks that a pair's messages cross."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from netproof.errors import NetproofError

UPLINK_OF = "uplink of "


@dataclass(frozen=True)
class Topology:
    """A tree of switches, as ``scontrol show topology`` shows it.

    ``leaves``: the nodes of each leaf switch; ``parents``: the switch above a switch, if there is
    one. Raises NetproofError if a node has two leaves, or a switch is above itself.
    """

    leaves: Mapping[str, tuple[str, ...]]
    parents: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        seen: dict[str, str] = {}
        for leaf, nodes in self.leaves.items():
            for node in nodes:
                if node in seen:
                    raise NetproofError(f"{node} is on the leaves {seen[node]} and {leaf}")
                seen[node] = leaf
            self.above(leaf)

    @cached_property
    def leaf_of(self) -> Mapping[str, str]:
        """Leaf switch of each node."""
        return {node: leaf for leaf, nodes in self.leaves.items() for node in nodes}

    def above(self, switch: str) -> tuple[str, ...]:
        """Return the switch and those above it, upwards; NetproofError if they form a circle."""
        line = [switch]
        while (up := self.parents.get(line[-1])) is not None:
            if up in line:
                raise NetproofError(f"switch {up} is above itself: {', '.join(line)}")
            line.append(up)
        return tuple(line)

    def between(self, one: str | None, other: str | None) -> tuple[str, ...]:
        """Return the switches and uplinks between two leaves; () if nothing joins them."""
        lines = [() if leaf is None else self.above(leaf) for leaf in (one, other)]
        top = next((switch for switch in lines[0] if switch in lines[1]), None)
        if top is None:
            return ()
        crossed = [
            name
            for line in lines
            for switch in line[: line.index(top)]
            for name in (switch, UPLINK_OF + switch)
        ]
        return (*crossed, top)

    @cached_property
    def below(self) -> Mapping[str, tuple[str, ...]]:
        """Nodes of all leaves that are a switch or below it, by switch."""
        found: dict[str, list[str]] = {}
        for leaf, nodes in self.leaves.items():
            for switch in self.above(leaf):
                found.setdefault(switch, []).extend(nodes)
        return {switch: tuple(nodes) for switch, nodes in found.items()}
