"""What nodes are to one another: whether clocks agree, packets come through, TCP is answered."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

from netproof.criteria import Level
from netproof.session.node_differences import NodeInJob
from netproof.session.node_facts import named
from netproof.site.hostlist import fold
from netproof.verdict.node_findings import NodeFinding, NodeFindingKind

SILENT = "does not answer TCP connections"
"""What is wrong with a node that others ask in vain."""

UNHEARD = "gets no answer to TCP connections"
"""What is wrong with a node that asks others in vain."""

UNANSWERED = "TCP connections are not answered"
"""What is wrong between two nodes, where it is neither node's own."""


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


def connections(
    nodes: Sequence[NodeInJob], partition: str, interface: str, not_up: Collection[str]
) -> Iterator[NodeFinding]:
    """Nodes that answer no TCP connection of others, or that others do not answer.

    ``not_up``: nodes whose interface is not up, which is told of them already. Where nobody answers
    anybody, the site's firewalls are meant to be so.
    """
    asked: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for one in nodes:
        node = one.node
        for others, answered in ((node.tcp_answered, True), (node.tcp_unanswered, False)):
            for other in named(others):
                if node.node not in not_up and other not in not_up:
                    asked[node.node, other].append(answered)
    answers = {pair for pair, several in asked.items() if any(several)}
    if not answers:
        return
    heard, answering = ({pair[end] for pair in answers} for end in (0, 1))
    never = sorted(asked.keys() - answers)
    silent: dict[str, list[str]] = defaultdict(list)
    unheard: dict[str, list[str]] = defaultdict(list)
    for source, target in never:
        if target not in answering:
            silent[target].append(source)
        elif source not in heard:
            unheard[source].append(target)
    pinged = {one.node.path_to for one in nodes if one.node.path_passed_bytes is not None}
    for target, sources in silent.items():
        why = f"{target}: answers no TCP connection of {_listed(sources)}"
        if target in unheard:
            why += f", gets no answer of {_listed(unheard[target])} either"
        if target in pinged:
            why += ", and pings come through"
        why += f": look for a firewall on {interface} there"
        if not {*sources} & heard:
            why += f", or on {_listed(sources)}, which no other node answered"
        yield _tcp(partition, why, (target,), SILENT)
    blamed = {source for source, targets in unheard.items() if len(targets) > 1} - {*silent}
    for source in sorted(blamed):
        why = f"{source}: {UNHEARD}, of {_listed(unheard[source])}, which answer others"
        yield _tcp(partition, why, (source,), UNHEARD)
    for source, target in never:
        if target in answering and source not in {*blamed, *(silent.keys() & unheard.keys())}:
            why = f"{source} to {target}: {UNANSWERED}, and {target} answers others"
            yield _tcp(partition, why, (source, target), UNANSWERED)
    yield from _now_and_then(asked, partition)


def _now_and_then(
    asked: dict[tuple[str, str], list[bool]], partition: str
) -> Iterator[NodeFinding]:
    """Nodes that answered TCP connections of the same others in some jobs only."""
    counts: dict[str, dict[str, str]] = defaultdict(dict)
    for (source, target), several in sorted(asked.items()):
        if len({*several}) > 1:
            counts[target][source] = f"in {several.count(False)} of {len(several)} jobs"
    for target, by_source in counts.items():
        if len(by_source) == 1:
            ((source, count),) = by_source.items()
            words = f"{UNANSWERED} {count}"
            why = f"{source} to {target}: {words}"
            yield _tcp(partition, why, (source, target), words, Level.WARN)
            continue
        each = ", ".join(f"of {source} {count}" for source, count in by_source.items())
        why = f"{target}: {SILENT} {each}"
        yield _tcp(partition, why, (target,), f"{SILENT} in some jobs", Level.WARN)


def _tcp(
    partition: str, why: str, nodes: tuple[str, ...], words: str, level: Level = Level.FAIL
) -> NodeFinding:
    return NodeFinding(partition, "tcp", NodeFindingKind.TCP, level, why, nodes, words)


def _listed(nodes: Sequence[str]) -> str:
    return " and ".join(nodes) if len(nodes) < 3 else fold(nodes)


def _seconds(by: float) -> str:
    return f"{abs(by):.3g} s {'ahead of' if by > 0 else 'behind'}"
