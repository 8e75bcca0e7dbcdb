"""The tree of switches between nodes, and what a pair's messages cross in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from netproof.errors import NetproofError

UPLINK_OF = "uplink of "


@dataclass(frozen=True)
class Topology:
    """A tree of switches, as ``scontrol show topology`` tells it.

    ``leaves``: the nodes of each leaf switch; ``parents``: the switch above a switch, where there
    is one. Raises NetproofError where a node has two leaves, or a switch is above itself.
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
        """The leaf switch of each node."""
        return {node: leaf for leaf, nodes in self.leaves.items() for node in nodes}

    def above(self, switch: str) -> tuple[str, ...]:
        """The switch and those above it, upwards. Raises NetproofError where they are a circle."""
        line = [switch]
        while (up := self.parents.get(line[-1])) is not None:
            if up in line:
                raise NetproofError(f"switch {up} is above itself: {', '.join(line)}")
            line.append(up)
        return tuple(line)

    def path(self, one: str, other: str) -> tuple[str, ...]:
        """The switches and uplinks between two nodes; () where the topology does not join them."""
        leaves = self.leaf_of.get(one), self.leaf_of.get(other)
        if leaves[0] is None or leaves[1] is None:
            return ()
        return self._between(leaves[0], leaves[1])

    @cached_property
    def crossed(self) -> tuple[str, ...]:
        """All switches and uplinks that a way may cross."""
        switches = dict.fromkeys(switch for leaf in self.leaves for switch in self.above(leaf))
        return tuple(sorted([*switches, *(UPLINK_OF + one for one in switches)]))

    @cached_property
    def _marks(self) -> dict[tuple[str | None, str | None], NDArray[np.bool_]]:
        return {}

    def marks(self, one: str | None, other: str | None) -> NDArray[np.bool_]:
        """For each of ``crossed``, whether the way between two leaves crosses it."""
        if (one, other) not in self._marks:
            way = set() if one is None or other is None else set(self._between(one, other))
            self._marks[one, other] = np.array([name in way for name in self.crossed], dtype=bool)
        return self._marks[one, other]

    def _between(self, one: str, other: str) -> tuple[str, ...]:
        lines = self.above(one), self.above(other)
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
        """Of each switch, the nodes of all leaves that are the switch or are below it."""
        found: dict[str, list[str]] = {}
        for leaf, nodes in self.leaves.items():
            for switch in self.above(leaf):
                found.setdefault(switch, []).extend(nodes)
        return {switch: tuple(nodes) for switch, nodes in found.items()}
