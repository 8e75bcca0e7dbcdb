"""CPU time that a case costs each node, without starting and ending.

A low latency from a spinning core is recognised by the benchmark's CPU seconds. An MPI library
takes CPU time to start and to end, and polls meanwhile: a job therefore also makes launches that do
little else, and their median is subtracted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from statistics import median
from typing import Any

from netproof.measurement.counters import Payload
from netproof.measurement.disturbance import NodeLoad

BYTES_PER_GB = 1e9
_US_PER_S = 1e6

ONE_THREAD = 1.05
"""Most time awake of a rank with one thread, over its seconds, including rounding."""

NO_STARTS = "its job made no launch that only starts and ends"


Use = Mapping[str, Any]
"""CPU time that a launch's ranks on one node took, and how they waited, by name.

``ranks``: their number; ``wall_s``: of the slowest; ``cpu_s``: of all, ``user_s`` plus
``system_s``; ``interrupts_s``: of the node's machine, which hosts ``sharing`` nodes of the launch;
``awake_s``: in which ranks ran, or waited for a CPU; ``slept``: how often their first threads gave
the CPU up. None means not known.
"""


@dataclass(frozen=True)
class NodeCost:
    """Cost of a case to a node: medians over its launches, less those of starting and ending.

    ``seconds``: duration of the launches; ``cpu_s``: CPU seconds of all ranks of the node;
    ``start_s``: those subtracted; ``cores``: CPU seconds per second; ``interrupts_s``: of the
    node's machine, which hosts ``sharing`` nodes of the case; ``asleep_share``: share of its time
    that a rank neither ran nor waited for a CPU; ``slept_per_message``: how often it gave the CPU
    up; ``s_per_gb``, ``us_per_message``: CPU seconds per 10⁹ bytes, CPU µs per message, sent or
    received. None means not known, with the reason by name in ``absent``.
    """

    node: str
    ranks: int
    sharing: int
    seconds: float | None = None
    cpu_s: float | None = None
    user_s: float | None = None
    system_s: float | None = None
    start_s: float | None = None
    cores: float | None = None
    interrupts_s: float | None = None
    asleep_share: float | None = None
    slept_per_message: float | None = None
    s_per_gb: float | None = None
    us_per_message: float | None = None
    absent: Mapping[str, str] = field(default_factory=dict)

    def why(self, name: str) -> str:
        """Return why the figure of this name is None; empty where it has a value."""
        return self.absent.get(name, "")


FIGURES = tuple(
    name
    for name in NodeCost.__dataclass_fields__
    if name not in ("node", "ranks", "sharing", "absent")
)
"""Figures of a cost that may be known."""


def interrupts_s(load: NodeLoad) -> float | None:
    """Return the CPU seconds of a node's machine for interrupts, including the network's."""
    if load.network_share is None or load.cpus is None or load.wall_s is None:
        return None
    return load.network_share * load.cpus * load.wall_s


def node_costs(
    launches: Sequence[Mapping[str, Use]],
    starts: Sequence[Mapping[str, Use]],
    exchanged: Sequence[Payload | None],
    without: str = NO_STARTS,
) -> tuple[NodeCost, ...]:
    """Return the cost of a case to each of its nodes, in the order of the launches.

    ``launches``: what each took of its nodes; ``starts``: the same of those that only start and
    end; ``exchanged``: of each launch, None where it was not recorded; ``without``: why there are
    no ``starts``. All nodes have the same share of messages.
    """
    costs = []
    for node in dict.fromkeys(chain.from_iterable(launches)):
        made = [
            (launch[node], sent, len(launch))
            for launch, sent in zip(launches, exchanged, strict=True)
            if node in launch
        ]
        started = [start[node] for start in starts if node in start]
        why = f"none of these launches ran on {node}" if starts else without
        absent = {} if started else dict.fromkeys(FIGURES, why)
        found = _figures(made, started, absent) if started else {}
        place = node, made[0][0]["ranks"], made[0][0]["sharing"]
        costs.append(NodeCost(*place, **found, absent=absent))
    return tuple(costs)


def costliest(costs: Sequence[NodeCost]) -> NodeCost:
    """Return the cost to the node that spent most CPU time; unknown ones come last."""
    return max(costs, key=lambda cost: -1.0 if cost.cpu_s is None else cost.cpu_s)


_SAMPLED = {
    "user_s": "it was not recorded",
    "system_s": "it was not recorded",
    "interrupts_s": "the node's load does not tell what interrupts took",
}
"""Figures that the kernel samples or counts in ticks, each with the reason if it is missing."""


def _figures(
    made: Sequence[tuple[Use, Payload | None, int]], started: Sequence[Use], absent: dict[str, str]
) -> dict[str, Any]:
    """Return a node's figures by name, and the reasons for missing ones to ``absent``.

    ``made``: a node's use by each launch, what was sent in it, and on how many nodes.
    """
    own = [use for use, _, _ in made]

    def net(name: str) -> float | None:
        """Return the median over launches, less that over those that only start and end."""
        ours, theirs = ([use[name] for use in uses] for uses in (own, started))
        return None if None in ours or None in theirs else median(ours) - median(theirs)

    seconds, cpu_s, awake_s = net("wall_s") or 0.0, net("cpu_s") or 0.0, net("awake_s")
    start_s = median(use["cpu_s"] for use in started)
    if seconds <= 0 or cpu_s <= 0:
        all_s, in_s, start_in_s = (
            median(use[name] for use in uses)
            for uses, name in ((own, "cpu_s"), (own, "wall_s"), (started, "wall_s"))
        )
        reason = (
            f"the launches took {all_s:.3g} CPU s in {in_s:.3g} s, no more than those that only"
            f" start and end, {start_s:.3g} CPU s in {start_in_s:.3g} s"
        )
        absent |= dict.fromkeys(FIGURES, reason)
        return {}
    found: dict[str, float] = {}
    for name, why in _SAMPLED.items():
        if (sampled := net(name)) is None:
            absent[name] = why
        else:
            found[name] = max(0.0, sampled)
    found |= {"seconds": seconds, "cpu_s": cpu_s, "start_s": start_s, "cores": cpu_s / seconds}
    could_s = own[0]["ranks"] * seconds
    if awake_s is None:
        absent["asleep_share"] = "the kernel does not tell how long its ranks waited for a CPU"
    elif awake_s > ONE_THREAD * could_s:
        absent["asleep_share"] = (
            "a rank had several threads at work, and the kernel reports only how long the first"
            " one waited"
        )
    else:
        found["asleep_share"] = max(0.0, 1 - awake_s / could_s)
    for _, sent, _ in made:
        reason = ""
        if sent is None or sent.bytes is None or sent.messages is None:
            reason = "how much was sent was not recorded" if sent is None else sent.why
        elif not sent.messages or not sent.bytes:
            reason = "it sends no data"
        if reason:
            absent |= dict.fromkeys(("s_per_gb", "us_per_message", "slept_per_message"), reason)
            return found

    def each(name: str, amount: str, unit: float = 1.0) -> float:
        """Return the median of a figure, less starting and ending, over what a node handled."""
        start = median(use[name] for use in started)
        # Each message leaves one node and arrives at one.
        costs: list[float] = [
            (use[name] - start) / (2 / nodes * getattr(sent, amount) / unit)
            for use, sent, nodes in made
        ]
        return median(costs)

    found["s_per_gb"] = each("cpu_s", "bytes", BYTES_PER_GB)
    found["us_per_message"] = each("cpu_s", "messages", _US_PER_S)
    if None in [use["slept"] for use in (*started, *own)]:
        absent["slept_per_message"] = "the kernel does not tell how often its ranks slept"
    else:
        found["slept_per_message"] = max(0.0, each("slept", "messages"))
    return found
