"""Evidence of other programs on nodes."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from netproof.diagnosis.evidence import Evidence, EvidenceSource, Sign, Sure
from netproof.diagnosis.partition_view import LEAST_LAUNCHES, PartitionView
from netproof.measurement.disturbance import DisturbanceSettings, NodeLoad, disturbed
from netproof.session.node_facts import NOT_BUSY, Node
from netproof.session.rank_use import RankUse

WAITED_TIMES = 3.0
"""Ratio to the waiting time on other nodes above which ranks count as waiting for CPUs."""


def of_loads(view: PartitionView) -> Iterator[Evidence]:
    """Yield nodes whose CPUs other programs used, unlike those of most nodes."""
    settings = view.site.settings().disturbance
    busy, waits = _busy(view.launches(), settings), _waits(view.launches(), settings)
    disturbed_on = {node for node, (count, of) in busy.items() if 2 * count > of >= LEAST_LAUNCHES}
    taken = set() if 2 * len(disturbed_on) >= len(busy) else disturbed_on
    programs = _programs(view.described)
    named = {node for node in disturbed_on & programs.keys() if node not in taken}
    if 2 * len(named) < len(busy):
        for node in sorted(named):
            several, of = programs[node]
            yield _cpu(
                view,
                node,
                f"in {len(several)} of {of} jobs a program of its own took CPUs of {node} before"
                f" the launches: {several[-1]}",
                "the kernel counted it, and something took CPUs during most launches",
            )
    for node in sorted(taken):
        count, of = busy[node]
        yield _cpu(
            view,
            node,
            f"in {count} of {of} launches other programs took CPUs of {node}, and not of"
            " most other nodes",
            "the kernel counted it",
        )
    together = _sharing(view.launches())
    for node, (share, usual) in sorted(waits.items()):
        # Nodes on one machine wait for the same CPUs, whichever of them uses them.
        if node not in taken | named and node not in together:
            yield _cpu(
                view,
                node,
                f"ranks on {node} could run and had no CPU for {100 * share:.0f} % of the time,"
                f" and for {100 * usual:.0f} % on the other nodes of the same launches",
                "the scheduler counted it",
            )


def _cpu(view: PartitionView, node: str, sentence: str, why: str) -> Evidence:
    place = view.node(node, interface=False)
    return Evidence(EvidenceSource.LOAD, Sign.CPU, place, sentence, Sure.SEEN, why)


def _programs(described: Iterable[Node]) -> dict[str, tuple[list[str], int]]:
    """Return the busy programs of nodes that named one in most jobs, and their number of jobs."""
    found: dict[str, list[str | None]] = defaultdict(list)
    for node in described:
        found[node.node].append(node.busy)
    named = {
        node: ([one for one in several if one not in (None, NOT_BUSY)], len(several))
        for node, several in found.items()
    }
    return {node: (words, of) for node, (words, of) in named.items() if 2 * len(words) > of}


def _sharing(launches: Iterable[tuple[Sequence[NodeLoad], Sequence[RankUse]]]) -> set[str]:
    """Return the nodes that share a machine with another."""
    on: dict[str, set[str]] = defaultdict(set)
    for loads, _ in launches:
        for load in loads:
            if load.machine is not None:
                on[load.machine].add(load.node)
    return {node for nodes in on.values() if len(nodes) > 1 for node in nodes}


def _busy(
    launches: Iterable[tuple[Sequence[NodeLoad], Sequence[RankUse]]], settings: DisturbanceSettings
) -> dict[str, tuple[int, int]]:
    """Return the launches in which other programs used a node's CPUs, and all launches, by node."""
    found: dict[str, list[bool]] = defaultdict(list)
    for loads, _ in launches:
        for load in loads:
            found[load.node].append(bool(disturbed([load], settings)))
    return {node: (sum(several), len(several)) for node, several in found.items()}


def _waits(
    launches: Iterable[tuple[Sequence[NodeLoad], Sequence[RankUse]]], settings: DisturbanceSettings
) -> dict[str, tuple[float, float]]:
    """Return the nodes whose ranks wait for CPUs in most launches, unlike those of other nodes.

    Each has the median over its launches of the share of time spent waiting, and of the other
    nodes' median share.
    """
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for _, ranks in launches:
        here: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for use in ranks:
            if use.scheduled is not None and use.scheduled.waited_s is not None and use.wall_s > 0:
                here[use.node].append((use.scheduled.waited_s, use.wall_s))
        shares = {
            node: sum(waited for waited, _ in several) / sum(wall for _, wall in several)
            for node, several in here.items()
        }
        for node, share in shares.items():
            others = [other for name, other in shares.items() if name != node]
            if others:
                found[node].append((share, statistics.median(others)))
    waiting = {}
    for node, several in found.items():
        long = [
            share > WAITED_TIMES * usual and share - usual > settings.others
            for share, usual in several
        ]
        if len(long) >= LEAST_LAUNCHES and 2 * sum(long) > len(long):
            waiting[node] = (
                statistics.median(share for share, _ in several),
                statistics.median(usual for _, usual in several),
            )
    return waiting
