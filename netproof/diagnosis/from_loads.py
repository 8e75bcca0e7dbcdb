"""What else ran on nodes, as evidence."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from netproof.diagnosis.evidence import Evidence, Sign, Source, Sure
from netproof.diagnosis.partition_view import LEAST_LAUNCHES, PartitionView
from netproof.measurement.disturbance import DisturbanceSettings, NodeLoad, disturbed
from netproof.session.rank_use import RankUse

WAITED_TIMES = 3.0
"""A node's ranks wait for CPUs where they do so many times as much as those of the others."""


def of_loads(view: PartitionView) -> Iterator[Evidence]:
    """Nodes of which other programs took the CPUs, and others not."""
    settings = view.site.settings().disturbance
    busy, waits = _busy(view.launches(), settings), _waits(view.launches(), settings)
    taken = {node for node, (count, of) in busy.items() if 2 * count > of >= LEAST_LAUNCHES}
    if 2 * len(taken) >= len(busy):
        taken = set()
    for node in sorted(taken):
        count, of = busy[node]
        yield _cpu(
            view,
            node,
            f"in {count} of {of} launches other programs took CPUs of {node}, and not of"
            " most other nodes",
            "the kernel counted it",
        )
    for node, (share, usual) in sorted(waits.items()):
        if node not in taken:
            yield _cpu(
                view,
                node,
                f"ranks on {node} could run and had no CPU for {100 * share:.0f} % of the time,"
                f" and for {100 * usual:.0f} % on the other nodes of the same launches",
                "the scheduler counted it",
            )


def _cpu(view: PartitionView, node: str, sentence: str, why: str) -> Evidence:
    place = view.node(node, interface=False)
    return Evidence(Source.LOAD, Sign.CPU, place, sentence, Sure.SEEN, why)


def _busy(
    launches: Iterable[tuple[Sequence[NodeLoad], Sequence[RankUse]]], settings: DisturbanceSettings
) -> dict[str, tuple[int, int]]:
    """Of each node, in how many launches other programs took its CPUs, and of how many."""
    found: dict[str, list[bool]] = defaultdict(list)
    for loads, _ in launches:
        for load in loads:
            found[load.node].append(bool(disturbed([load], settings)))
    return {node: (sum(several), len(several)) for node, several in found.items()}


def _waits(
    launches: Iterable[tuple[Sequence[NodeLoad], Sequence[RankUse]]], settings: DisturbanceSettings
) -> dict[str, tuple[float, float]]:
    """The nodes whose ranks wait for CPUs in most launches, and those of the others there do not.

    With the median over its launches of the share of the time that they wait, and of what is usual
    on the others: the median of those that take part in a launch.
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
