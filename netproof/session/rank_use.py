"""What the ranks of a launch, or of one that only starts and ends, took of their nodes' CPUs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from netproof.measurement.cpu_use import NodeUse, interrupts_s
from netproof.measurement.disturbance import NodeLoad, Scheduled


@dataclass(frozen=True, slots=True)
class RankUse:
    """Where a rank ran and the CPU seconds it took, from its own report.

    ``scheduled``: its context switches, ``system_s``: which of its CPU seconds the kernel took for
    it; None where they were not recorded.
    """

    rank: int
    node: str
    wall_s: float
    cpu_s: float
    scheduled: Scheduled | None = None
    system_s: float | None = None

    def awake_s(self) -> float | None:
        """Seconds in which it ran, or could have run and had no CPU; None where not known."""
        waited = None if self.scheduled is None else self.scheduled.waited_s
        return None if waited is None else self.cpu_s + waited


@dataclass(frozen=True, slots=True)
class Start:
    """A launch that does little but start and end: its ranks, what else their nodes did.

    ``why``: why it is not known what it took, and then it has no ranks.
    """

    ranks: tuple[RankUse, ...]
    loads: tuple[NodeLoad, ...] = ()
    why: str = ""


def by_node(ranks: Sequence[RankUse], loads: Sequence[NodeLoad]) -> tuple[NodeUse, ...]:
    """What a launch took of each node, in rank order."""
    several: dict[str, list[RankUse]] = {}
    for use in ranks:
        several.setdefault(use.node, []).append(use)
    there = {load.node: load for load in loads}
    machines = Counter(load.machine for load in loads)
    return tuple(_of_node(node, uses, there.get(node), machines) for node, uses in several.items())


def _of_node(
    node: str,
    uses: Sequence[RankUse],
    load: NodeLoad | None,
    machines: Mapping[str | None, int],
) -> NodeUse:
    cpu_s = sum(use.cpu_s for use in uses)
    system_s = _sum([use.system_s for use in uses])
    slept = _sum([None if one is None else one.voluntary for one in (u.scheduled for u in uses)])
    sharing = 1
    if load is not None and load.machine is not None:
        sharing = machines[load.machine]
    return NodeUse(
        node,
        len(uses),
        max(use.wall_s for use in uses),
        cpu_s,
        None if system_s is None else cpu_s - system_s,
        system_s,
        None if load is None else interrupts_s(load),
        sharing,
        _sum([use.awake_s() for use in uses]),
        None if slept is None else int(slept),
    )


def _sum(values: Sequence[float | None]) -> float | None:
    """Of all of them; None where one is not known."""
    return None if None in values else sum(values)
