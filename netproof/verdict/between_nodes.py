"""What nodes are to one another: whether their clocks agree, and packets come through."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterator, Sequence

from netproof.criteria import Level
from netproof.session.node_differences import NodeInJob
from netproof.verdict.node_findings import NodeFinding, NodeFindingKind


def clocks(nodes: Sequence[NodeInJob], partition: str, bound_s: float) -> Iterator[NodeFinding]:
    """Clocks that are certainly further apart than ``bound_s``."""
    jobs: dict[str, dict[str, float]] = defaultdict(dict)
    kept: dict[str, float] = {}
    for one in nodes:
        node = one.node
        if node.clock_ahead_from_s is not None and node.clock_ahead_to_s is not None:
            certain = max(0.0, node.clock_ahead_from_s) + min(0.0, node.clock_ahead_to_s)
            jobs[one.jobid][node.node] = certain
        if node.clock_ntp_offset_s is not None and abs(node.clock_ntp_offset_s) > bound_s:
            kept[node.node] = node.clock_ntp_offset_s
    apart: dict[str, float] = {}
    undecided: dict[str, float] = {}
    for ahead in jobs.values():
        far = {node: by for node, by in ahead.items() if abs(by) > bound_s}
        if 2 * len(far) < len(ahead):
            apart |= far
        elif 2 * len(far) > len(ahead):
            # The clock of the job's first node is then the one that is off, by the least.
            least = min(far.values(), key=abs)
            apart |= {node: -least for node in ahead if node not in far}
        else:
            undecided |= far
    for node, by in sorted(apart.items()):
        why = f"{node}: clock at least {_seconds(by)} that of most others"
        yield _clock(partition, node, why, by)
    for node, by in sorted(undecided.items()):
        if node in apart:
            continue
        why = f"clock differs: {node} is at least {_seconds(by)} the first node of its job"
        yield _clock(partition, node, why, by)
    for node, by in sorted(kept.items()):
        if node not in {*apart, *undecided}:
            why = f"{node}: clock {abs(by):.3g} s off, by what keeps it"
            yield _clock(partition, node, why, by)


def _clock(partition: str, node: str, why: str, by: float) -> NodeFinding:
    return NodeFinding(
        partition, "clock", NodeFindingKind.CLOCK, Level.FAIL, why, (node,), f"{by:.3g} s"
    )


def paths(
    nodes: Sequence[NodeInJob], partition: str, found: Sequence[NodeFinding]
) -> list[NodeFinding]:
    """Pairs of nodes between which packets of the MTU do not come through.

    Where one end's MTU is another, that is the reason, and told with it.
    """
    tried: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for one in nodes:
        node = one.node
        if node.path_to and node.path_asked_bytes and node.path_passed_bytes:
            pair = (node.node, node.path_to)
            tried[pair].append((node.path_asked_bytes, node.path_passed_bytes))
    several = list(found)
    for (source, target), sizes in sorted(tried.items()):
        stopped = [(asked, passed) for asked, passed in sizes if passed < asked]
        if not stopped:
            continue
        asked, passed = max(stopped)
        reason = next(
            (
                place
                for place, one in enumerate(several)
                if one.fact == "mtu" and {source, target} & {*one.nodes}
            ),
            None,
        )
        if reason is not None:
            one = several[reason]
            whose = "its packets" if one.nodes == (source,) else f"packets from {source}"
            where = "it" if one.nodes == (target,) else target
            why = f"{one.why}; {whose} of {asked} bytes do not come through to {where}"
            several[reason] = dataclasses.replace(one, why=why)
            continue
        now_and_then = len(stopped) < len(sizes)
        why = (
            f"{source} to {target}: packets of {asked} bytes do not come through unfragmented,"
            f" those of {passed} do"
        )
        if now_and_then:
            why += f"; so it was in {len(stopped)} of {len(sizes)} jobs"
        level = Level.WARN if now_and_then else Level.FAIL
        pair = (source, target)
        several.append(
            NodeFinding(
                partition,
                "path",
                NodeFindingKind.PATH,
                level,
                why,
                pair,
                str(passed),
                str(asked),
            )
        )
    return several


def _seconds(by: float) -> str:
    return f"{abs(by):.3g} s {'ahead of' if by > 0 else 'behind'}"
