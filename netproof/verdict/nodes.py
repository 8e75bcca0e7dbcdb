"""Whether the nodes of a partition are alike, and as the site states them.

All jobs of a session are taken together, so that nodes of different jobs are compared too. Names,
addresses, places on the bus and clocks may differ (``node_differences.OF_ITS_OWN``); memory by less
than ``node_differences.MEMORY_SHARE``, and clocks by the partition's ``clock_offset_ms``. A site
lists further facts that may differ in the partition's ``may_differ``.
"""

from __future__ import annotations

import dataclasses
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from netproof.criteria import Level
from netproof.errors import shortened
from netproof.session.node_differences import NodeInJob
from netproof.session.node_facts import named
from netproof.session.provenance import OfSession
from netproof.site.hostlist import fold
from netproof.site.partition import Partition
from netproof.verdict.node_values import (
    NodeFact,
    changes,
    facts_of,
    last_other,
    ordered_values,
    shown,
    values_of,
)

FOLDED_FROM = 4
"""Keys of a group in which the same nodes differ, from which on one sentence reports them."""

NAMED = 2
"""Number of these that it names."""


class NodeFindingKind(StrEnum):
    """Kind of a finding on nodes.

    ``DECLARED``: other than it has to be, by the site's file or at all; ``CHANGED``: between jobs;
    ``NOT_KNOWN``: what others know; ``PATH``: packets of the MTU do not come through; ``TCP``:
    nothing answers; ``BELOW_MAXIMUM``: a card in a slot that slows it.
    """

    MINORITY = "minority"
    NO_MAJORITY = "no majority"
    DECLARED = "declared"
    CHANGED = "changed"
    NOT_KNOWN = "not known"
    PATH = "path"
    TCP = "tcp"
    CLOCK = "clock"
    BELOW_MAXIMUM = "below maximum"


@dataclass(frozen=True)
class NodeFinding:
    """A finding that nodes of a partition are not as they should be.

    ``fact``: a field of ``node_facts.Node``, with the key of a group (``sysctls
    net.ipv4.tcp_sack``), or ``path``, ``tcp`` or ``clock``; ``nodes``: all that differ where there
    is no majority, both ends of a path; ``value``: what they have, of ``tcp`` in words; ``others``:
    what the others have or the site says, None where it is not one value; ``environment``: in which
    a program differs.
    """

    partition: str
    fact: str
    kind: NodeFindingKind
    level: Level
    why: str
    nodes: tuple[str, ...]
    value: str | None = None
    others: str | None = None
    environment: str = ""

    def __str__(self) -> str:
        """Return the sentence, with the place."""
        return f"{f'{self.partition} {self.environment}'.strip()}: {self.why}"


def folded(found: Sequence[NodeFinding]) -> list[NodeFinding]:
    """Return the findings, with one for many keys of a group in which the same nodes differ."""
    together: dict[tuple, list[NodeFinding]] = defaultdict(list)
    for one in found:
        group, _, key = one.fact.partition(" ")
        # Single facts each stay what they are.
        alike = (group,) if key else (group, one.value)
        together[one.environment, one.kind, one.nodes, alike].append(one)
    several = []
    for alike in together.values():
        if len(alike) < FOLDED_FROM:
            several += alike
            continue
        first = alike[0]
        group = first.fact.partition(" ")[0]
        reasons = (one.why.removeprefix(f"{fold(one.nodes)}: ") for one in alike[:NAMED])
        named = "; ".join(sentence.replace(" differs: ", " ", 1) for sentence in reasons)
        why = (
            f"{fold(first.nodes)}: {len(alike)} {group} differ: {named}; and {len(alike) - NAMED}"
            " more"
        )
        several.append(dataclasses.replace(first, fact=group, why=why, value=None, others=None))
    return several


SILENT = "does not answer TCP connections"
"""Fault of a node that others ask in vain."""

UNHEARD = "gets no answer to TCP connections"
"""Fault of a node that asks others in vain."""

UNANSWERED = "TCP connections are not answered"
"""Fault between two nodes that is neither node's own."""


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
        yield _between(partition, NodeFindingKind.CLOCK, why, (node,), f"{by:.3g} s")
    for node, by in sorted(undecided.items()):
        if node not in apart:
            why = f"clock differs: {node} is at least {_seconds(by)} the first node of its job"
            yield _between(partition, NodeFindingKind.CLOCK, why, (node,), f"{by:.3g} s")
    for node, by in sorted(kept.items()):
        if node not in {*apart, *undecided}:
            why = f"{node}: clock {abs(by):.3g} s off, by what keeps it"
            yield _between(partition, NodeFindingKind.CLOCK, why, (node,), f"{by:.3g} s")


def paths(
    nodes: Sequence[NodeInJob], partition: str, found: Sequence[NodeFinding]
) -> list[NodeFinding]:
    """Pairs of nodes between which packets of the MTU do not come through.

    Where one end's MTU is another, that finding has it.
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
        kind, pair = NodeFindingKind.PATH, (source, target)
        several.append(
            _between(partition, kind, why, pair, str(passed), others=str(asked), level=level)
        )
    return several


def connections(
    nodes: Sequence[NodeInJob], partition: str, interface: str, not_up: Collection[str]
) -> Iterator[NodeFinding]:
    """Nodes that answer no TCP connection of others, or that others do not answer.

    ``not_up``: nodes whose interface is not up, which has a finding already. Where nobody answers
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
        yield _between(partition, NodeFindingKind.TCP, why, (target,), SILENT)
    blamed = {source for source, targets in unheard.items() if len(targets) > 1} - {*silent}
    for source in sorted(blamed):
        why = f"{source}: {UNHEARD}, of {_listed(unheard[source])}, which answer others"
        yield _between(partition, NodeFindingKind.TCP, why, (source,), UNHEARD)
    for source, target in never:
        if target in answering and source not in {*blamed, *(silent.keys() & unheard.keys())}:
            why = f"{source} to {target}: {UNANSWERED}, and {target} answers others"
            yield _between(partition, NodeFindingKind.TCP, why, (source, target), UNANSWERED)
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
        each = ", ".join(f"of {source} {count}" for source, count in by_source.items())
        nodes, words = (target,), f"{SILENT} in some jobs"
        why = f"{target}: {SILENT} {each}"
        if len(by_source) == 1:
            ((source, count),) = by_source.items()
            nodes, words = (source, target), f"{UNANSWERED} {count}"
            why = f"{source} to {target}: {words}"
        yield _between(partition, NodeFindingKind.TCP, why, nodes, words, level=Level.WARN)


def _between(
    partition: str,
    kind: NodeFindingKind,
    why: str,
    nodes: tuple[str, ...],
    value: str,
    *,
    others: str | None = None,
    level: Level = Level.FAIL,
) -> NodeFinding:
    """Return a finding on what nodes are to one another; its fact has the name of its kind."""
    return NodeFinding(partition, kind.value, kind, level, why, nodes, value, others)


def _listed(nodes: Sequence[str]) -> str:
    return " and ".join(nodes) if len(nodes) < 3 else fold(nodes)


def _seconds(by: float) -> str:
    return f"{abs(by):.3g} s {'ahead of' if by > 0 else 'behind'}"


UP, FULL = "up", "Full"
"""State that the interface of every node has to have, and its link's."""

AS_STATED = ", as the site's file says"

MOST_VALUES = 4
"""Values of a fact that a sentence has, each with its nodes."""

_LABELS = {
    "cpu": "CPU",
    "cpus": "number of CPUs",
    "nic": "NIC",
    "driver_version": "driver version",
    "link_mbit_s": "link rate in Mbit/s",
    "mtu": "MTU",
    "hugepages": "transparent hugepages",
    "clock_source": "clock source",
    "path": "whether packets of the MTU come through",
}

_OF_GROUPS = {
    "offloads": "offload",
    "coalescing": "coalescing",
    "sysctls": "sysctl",
    "programs": "program",
    "memory": "memory",
    "rings": "ring",
    "pci": "PCI",
    "mitigations": "mitigation of",
}

_OF_THE_LINK = frozenset(
    {
        *("state", "address", "mtu", "link_mbit_s", "duplex", "autonegotiation", "driver"),
        *("driver_version", "firmware", "nic", "pci", "offloads", "coalescing", "rings", "path"),
    }
)
"""Facts that are not known, or not as they should be, where the interface is not up."""


def judge(made: OfSession, partitions: Mapping[str, Partition]) -> tuple[NodeFinding, ...]:
    """Return all findings on the nodes of a session, by partition.

    ``partitions``: those that are judged, each with the links that were declared when it was
    measured.
    """
    found: list[NodeFinding] = []
    for name, partition in partitions.items():
        nodes = [one for one in made.nodes if one.partition == name]
        if nodes:
            nodes.sort(key=lambda one: _number(one.jobid))
            found += _Partition(name, partition, nodes).findings()
    return tuple(found)


@dataclass(frozen=True)
class _Partition:
    """One partition's nodes, each in each job, in the order of the jobs."""

    name: str
    site: Partition
    nodes: Sequence[NodeInJob]

    def findings(self) -> list[NodeFinding]:
        facts = [fact for fact in facts_of(self.nodes) if not self._may_differ(fact.name)]
        found = [one for fact in facts for one in self._changed(fact)]
        found += [one for fact in facts for one in self._compared(fact, values_of(fact))]
        found = [*folded(found), *self._below_maximum(found)]
        if not self._may_differ("clock"):
            found += clocks(self.nodes, self.name, self.site.clock_offset_ms / 1000)
        if not self._may_differ("path"):
            found = paths(self.nodes, self.name, found)
        if not self._may_differ("tcp"):
            found += connections(self.nodes, self.name, self.site.interface, self._not_up())
        return [*found, *self._not_known(facts)]

    def _may_differ(self, name: str) -> bool:
        return name in self.site.may_differ or name.partition(" ")[0] in self.site.may_differ

    def _found(
        self,
        fact: NodeFact | str,
        kind: NodeFindingKind,
        why: str,
        nodes: Iterable[str],
        value: str | None = None,
        others: str | None = None,
        level: Level = Level.FAIL,
    ) -> NodeFinding:
        name, environment = (fact, "") if isinstance(fact, str) else (fact.name, fact.environment)
        return NodeFinding(
            self.name, name, kind, level, why, tuple(sorted(nodes)), value, others, environment
        )

    def _changed(self, fact: NodeFact) -> Iterator[NodeFinding]:
        alike: dict[tuple[str, str], list[str]] = defaultdict(list)
        for node, several in fact.reported.items():
            if changes(fact, several):
                alike[several[0][1], last_other(several)].append(node)
        for (first, last), nodes in alike.items():
            before, after = (
                next(job for job, value in fact.reported[nodes[0]] if value == one)
                for one in (first, last)
            )
            why = (
                f"{fold(nodes)}: {self._label(fact)} {shown(fact, first)} in job {before},"
                f" {shown(fact, last)} in job {after}"
            )
            # A virtual machine is given memory, and gives it back, while it runs.
            level = Level.WARN if fact.group == "memory" else Level.FAIL
            yield self._found(fact, NodeFindingKind.CHANGED, why, nodes, last, first, level)

    def _label(self, fact: NodeFact) -> str:
        group, _, key = fact.name.partition(" ")
        if fact.name == "state":
            return f"interface {self.site.interface}"
        if group == "memory":
            return f"memory {key.removesuffix(' KiB').replace('total', '')}".strip()
        if group == "sysctls":
            return f"sysctl {key} ="
        if key:
            return f"{_OF_GROUPS[group]} {key}"
        return _LABELS.get(group, group)

    def _expected(self, fact: NodeFact) -> tuple[str, bool] | None:
        """Return what a fact has to be, and whether the site's file says so; None without it."""
        return {
            "mtu": (str(self.site.mtu), True),
            "link_mbit_s": (str(self.site.link_mbit_s), True),
            "state": (UP, False),
            "duplex": (FULL, False),
        }.get(fact.name)

    def _compared(self, fact: NodeFact, values: Mapping[str, str]) -> list[NodeFinding]:
        """Return the differences from the site's word, or from most nodes."""
        by_value: dict[str, list[str]] = defaultdict(list)
        for node, value in values.items():
            by_value[value].append(node)
        expected = self._expected(fact)
        if expected is not None:
            wanted, stated = expected
            end = ", the site's file says " + wanted if stated else ""
            if right := len(by_value.get(wanted, ())):
                end = f", {_others(right)} {wanted}{AS_STATED if stated else ''}"
            return [
                self._found(
                    fact,
                    NodeFindingKind.DECLARED,
                    f"{fold(nodes)}: {self._label(fact)} {shown(fact, value)}{end}",
                    nodes,
                    value,
                    wanted,
                )
                for value, nodes in ordered_values(by_value)
                if value != wanted
            ]
        if len(by_value) < 2:
            return []
        ordered = ordered_values(by_value)
        most, holders = ordered[0]
        others = ordered[1:]
        if 2 * len(holders) <= len(values):
            listed = [f"{fold(nodes)} {shown(fact, value)}" for value, nodes in ordered]
            more = len(listed) - MOST_VALUES
            first = ", ".join(listed[:MOST_VALUES])
            why = f"{self._label(fact).removesuffix(' =')} differs: {first}"
            why += f" and {more} more values" if more > 0 else ""
            return [self._found(fact, NodeFindingKind.NO_MAJORITY, why, values)]
        usual = f"{_others(len(holders))} {shown(fact, most)}"
        if len(others) > MOST_VALUES:
            nodes = [node for _, several in others for node in several]
            why = f"{fold(nodes)}: {self._label(fact)} of {len(others)} other values, {usual}"
            return [self._found(fact, NodeFindingKind.MINORITY, why, nodes, None, most)]
        return [
            self._found(
                fact,
                NodeFindingKind.MINORITY,
                f"{fold(nodes)}: {self._label(fact)} {shown(fact, value)}, {usual}",
                nodes,
                value,
                most,
            )
            for value, nodes in others
        ]

    def _below_maximum(self, found: Sequence[NodeFinding]) -> Iterator[NodeFinding]:
        """Cards whose link is slower or narrower than they can, where no other node tells it."""
        if self._may_differ("pci"):
            return
        accused = {
            node for one in found if one.fact.partition(" ")[0] == "pci" for node in one.nodes
        }
        for name, unit in (("width", "x"), ("speed", "")):
            slower: dict[tuple[str, str], set[str]] = defaultdict(set)
            for one in self.nodes:
                now, most = (one.node.pci.get(key) for key in (name, f"maximum {name}"))
                if one.node.node in accused or now is None or most is None:
                    continue
                if (_leading(now) or 0) < (_leading(most) or 0):
                    slower[now, most].add(one.node.node)
            for (now, most), nodes in slower.items():
                why = f"{fold(nodes)}: PCI {name} {unit}{now}, the card can {unit}{most}"
                kind = NodeFindingKind.BELOW_MAXIMUM
                yield self._found(f"pci {name}", kind, why, nodes, now, most, Level.WARN)

    def _not_known(self, facts: Sequence[NodeFact]) -> Iterator[NodeFinding]:
        """Yield what some nodes do not know and others, or the site, do; each reason once."""
        not_up = self._not_up()
        unknown: dict[tuple[str, str], tuple[NodeFact, dict[str, str], int]] = {}
        knowing: dict[str, set[str]] = defaultdict(set)
        for fact in facts:
            knowing[fact.group].update(fact.reported)
        for fact in facts:
            silent = fact.unreported
            if fact.name != "state" and fact.group in _OF_THE_LINK:
                silent = {node: why for node, why in silent.items() if node not in not_up}
            # Other nodes know the keys of a group that a node does not know at all.
            known = len(fact.reported) or len(knowing[fact.group])
            _, stated = self._expected(fact) or ("", False)
            if silent and (known or stated):
                unknown[fact.name, fact.environment] = (fact, silent, known)
        yield from self._unknown_paths(not_up)
        alike: dict[tuple[tuple[str, ...], str, int, str], list[NodeFact]] = defaultdict(list)
        for fact, silent, known in unknown.values():
            by_reason: dict[str, list[str]] = defaultdict(list)
            for node, why in silent.items():
                by_reason[why].append(node)
            for why, nodes in by_reason.items():
                alike[tuple(sorted(nodes)), why, known, fact.environment].append(fact)
        for (nodes, why, known, environment), several in alike.items():
            labels = [self._label(fact).removesuffix(" =") for fact in several]
            more = len(labels) - FOLDED_FROM
            which = ", ".join(labels[:FOLDED_FROM]) + (f" and {more} more" if more > 0 else "")
            # Without its interface a node is none of the partition's.
            gone = any(fact.name == "state" for fact in several)
            name = several[0].name if len(several) == 1 else several[0].group
            sentence = f"{fold(nodes)}: {which} not known ({shortened(why)})"
            sentence += f", known on {_others(known)}" if known else ""
            one = self._found(
                "state" if gone else name,
                NodeFindingKind.NOT_KNOWN,
                sentence,
                nodes,
                level=Level.FAIL if gone else Level.WARN,
            )
            yield dataclasses.replace(one, environment=environment)

    def _not_up(self) -> set[str]:
        """Return the nodes whose interface is down, or not there, in any job."""
        return {
            one.node.node
            for one in self.nodes
            if one.node.state not in (None, UP) or "state" in one.node.absent
        }

    def _unknown_paths(self, not_up: set[str]) -> Iterator[NodeFinding]:
        if self._may_differ("path"):
            return
        known, silent = set(), {}
        for one in self.nodes:
            node = one.node
            if node.path_passed_bytes is not None:
                known.add(node.node)
            elif node.path_to is not None and not {node.node, node.path_to} & not_up:
                why = node.absent.get("path_passed_bytes", "no reason is given")
                silent.setdefault(node.node, (node.path_to, why))
        for name, (target, why) in sorted(silent.items()):
            if known and name not in known:
                why = f"{name} to {target}: {_LABELS['path']} not known ({shortened(why)})"
                kind = NodeFindingKind.NOT_KNOWN
                one = self._found("path", kind, why, (), level=Level.WARN)
                yield dataclasses.replace(one, nodes=(name, target))


def _others(count: int) -> str:
    return f"{count} other" if count == 1 else f"{count} others"


def _leading(text: str) -> float | None:
    """Return the number that a text begins with, ``16.0 GT/s PCIe`` or ``16``."""
    try:
        return float(text.split(" ")[0])
    except ValueError:
        return None


def _number(jobid: str) -> tuple[int, str]:
    """Return the sort key of jobs: the order in which Slurm took them."""
    return (int(jobid) if re.fullmatch("[0-9]{1,18}", jobid) else 0, jobid)
