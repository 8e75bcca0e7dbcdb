"""Whether the nodes of a partition are alike, and as the site states them.

All jobs of a session are taken together, so that nodes of different jobs are compared too. Names,
addresses, places on the bus and clocks may differ (``node_facts.OF_ITS_OWN``); memory by less
than ``node_facts.MEMORY_SHARE``, and clocks by the partition's ``clock_offset_ms``. A site
lists further facts that may differ in the partition's ``may_differ``.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from statistics import median_low

from netproof.criteria import Level
from netproof.errors import counted, grouped, listed, shortened
from netproof.session import node_facts
from netproof.session.node_facts import Node, memory_alike, memory_kib, named
from netproof.session.provenance import Provenance
from netproof.site.partition import Partition
from netproof.site.slurm import fold

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
    why: str
    nodes: tuple[str, ...]
    value: str | None = None
    others: str | None = None
    level: Level = Level.FAIL
    environment: str = ""

    def __str__(self) -> str:
        return f"{f'{self.partition} {self.environment}'.strip()}: {self.why}"


def _folded(found: Sequence[NodeFinding]) -> list[NodeFinding]:
    """Return the findings, with one for many keys of a group in which the same nodes differ."""
    together: dict[tuple[object, ...], list[NodeFinding]] = defaultdict(list)
    for one in found:
        group, _, key = one.fact.partition(" ")
        # Single facts each stay what they are.
        own = (group,) if key else (group, one.value)
        together[one.environment, one.kind, one.nodes, own].append(one)
    several: list[NodeFinding] = []
    for alike in together.values():
        if len(alike) < FOLDED_FROM:
            several += alike
            continue
        group, nodes, count = alike[0].fact.partition(" ")[0], fold(alike[0].nodes), len(alike)
        reasons = (one.why.removeprefix(f"{nodes}: ") for one in alike[:NAMED])
        named = "; ".join(sentence.replace(" differs: ", " ", 1) for sentence in reasons)
        why = f"{nodes}: {count} {group} differ: {named}; and {count - NAMED} more"
        several.append(replace(alike[0], fact=group, why=why, value=None, others=None))
    return several


SILENT = "does not answer TCP connections"
"""Fault of a node that others ask in vain."""

UNHEARD = "gets no answer to TCP connections"
"""Fault of a node that asks others in vain."""

UNANSWERED = "TCP connections are not answered"
"""Fault between two nodes that is neither node's own."""

UP, FULL = "up", "Full"
"""State that the interface of every node has to have, and its link's."""

AS_STATED = ", as the site's file says"

MOST_VALUES = 4
"""Values of a fact that have a sentence each; of more there is one for all."""

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
    "offloads": "offload",
    "sysctls": "sysctl",
    "programs": "program",
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

NOT_LISTED = "not listed"
"""Value of a key that other nodes list and this one does not."""

_HASH = 12


@dataclass
class NodeFact:
    """One fact: what each node ``reported``, (job, value) in order, and ``reasons`` against it."""

    name: str
    environment: str = ""
    reported: dict[str, list[tuple[str, str]]] = field(default_factory=lambda: defaultdict(list))
    reasons: dict[str, str] = field(default_factory=dict)

    @property
    def group(self) -> str:
        """The fact's own name, or that of the group whose key it is."""
        return self.name.partition(" ")[0]

    def changed(self, node: str) -> bool:
        """Check whether a node differs between jobs."""
        values = {value for _, value in self.reported[node]}
        return len(values) > 1 and not (self.group == "memory" and memory_alike(values))

    def values(self) -> dict[str, str]:
        """Return each node's value, without nodes that changed between jobs."""
        values = {
            node: several[0][1] for node, several in self.reported.items() if not self.changed(node)
        }
        if self.group != "memory":
            return values
        sizes = [size for value in values.values() if (size := memory_kib(value)) is not None]
        middle = str(median_low(sizes)) if sizes else ""
        return {n: middle if memory_alike((one, middle)) else one for n, one in values.items()}

    def shown(self, value: str) -> str:
        """Return a value for a sentence: memory in GiB, all else shortened."""
        size = memory_kib(value) if self.group == "memory" else None
        return shortened(value) if size is None else f"{size / 2**20:.4g} GiB"


def _facts_of(nodes: Sequence[Node]) -> list[NodeFact]:
    """Return every fact that has to be alike, as the nodes reported it, each in each job."""
    facts: dict[tuple[str, str], NodeFact] = {}
    keys: dict[tuple[str, str], set[str]] = defaultdict(set)
    for found in nodes:
        for group in node_facts.GROUPS:
            keys[group, _scope(group, found)].update(_group(found, group))
    in_order = {known: sorted(several) for known, several in keys.items()}
    left_out = {*node_facts.OF_ITS_OWN, "interface"}
    names = [name for name in node_facts.NAMES if name not in left_out]
    for node in nodes:
        for name in names:
            scope, why = _scope(name, node), node.absent.get(name)
            values: dict[str, tuple[object, str | None]] = {name: (None, why)}
            if name not in node_facts.GROUPS:
                values = {name: (getattr(node, name), why)}
            elif (here := _group(node, name)) or why is None:
                values = {}
                for key in in_order[name, scope]:
                    reason = node.absent.get(f"{name}.{key}")
                    stated = here.get(key, NOT_LISTED if reason is None else None)
                    values[f"{name} {key}"] = stated, reason
            for key, (value, reason) in values.items():
                if (fact := facts.get((key, scope))) is None:
                    fact = facts[key, scope] = NodeFact(key, scope)
                if value is not None:
                    fact.reported[node.node].append((node.jobid, str(value)))
                elif reason is not None:
                    fact.reasons.setdefault(node.node, reason)
    return list(facts.values())


def _scope(group: str, found: Node) -> str:
    """Programs have to be alike within an environment, all else within the partition."""
    return found.environment if group == "programs" else ""


def _group(node: Node, group: str) -> dict[str, str]:
    values: dict[str, str] = getattr(node, group)
    if group == "programs":
        return {name: stated.split(" ")[0][:_HASH] for name, stated in values.items()}
    if group == "coalescing":
        adapts = values.get("Adaptive RX", "")
        momentary = [
            *(["rx-usecs", "rx-frames"] if adapts.startswith("on") else []),
            *(["tx-usecs", "tx-frames"] if adapts.endswith("TX: on") else []),
        ]
        return {key: value for key, value in values.items() if not key.startswith((*momentary,))}
    return values


def judge(made: Provenance, partitions: Mapping[str, Partition]) -> tuple[NodeFinding, ...]:
    """Return all findings on the nodes of a session, by partition.

    ``partitions``: those that are judged, each with the links that were declared when it was
    measured.
    """
    found: list[NodeFinding] = []
    for name, partition in partitions.items():
        nodes = [*made.by_partition.get(name, ())]
        # In the order in which Slurm took the jobs.
        nodes.sort(key=lambda one: (one.jobid.isdecimal(), len(one.jobid), one.jobid))
        if nodes:
            found += _Partition(name, partition, nodes).findings()
    return tuple(found)


class _Partition:
    """One partition's nodes, each in each job, in the order of the jobs."""

    def __init__(self, name: str, site: Partition, nodes: Sequence[Node]) -> None:
        self.site, self.nodes = site, nodes
        self._found = partial(NodeFinding, name)
        # Whose interface was down, or not there, in any job.
        self.not_up = {
            one.node for one in nodes if one.state not in (None, UP) or "state" in one.absent
        }

    def findings(self) -> list[NodeFinding]:
        facts = [fact for fact in _facts_of(self.nodes) if not self._may_differ(fact.name)]
        found = [one for fact in facts for one in self._changed(fact)]
        found += [one for fact in facts for one in self._compared(fact)]
        found = [*_folded(found), *self._below_maximum(found)]
        if not self._may_differ("clock"):
            found += self._clocks(self.site.clock_offset_ms / 1000)
        if not self._may_differ("path"):
            found = self._paths(found)
        if not self._may_differ("tcp"):
            found += self._connections()
        return [*found, *self._not_known(facts)]

    def _may_differ(self, name: str) -> bool:
        return name in self.site.may_differ or name.partition(" ")[0] in self.site.may_differ

    def _changed(self, fact: NodeFact) -> Iterator[NodeFinding]:
        alike: dict[tuple[str, str], list[str]] = defaultdict(list)
        for node, several in fact.reported.items():
            if fact.changed(node):
                first = several[0][1]
                last = next(value for _, value in reversed(several) if value != first)
                alike[first, last].append(node)
        for (first, last), nodes in alike.items():
            jobs = {value: job for job, value in reversed(fact.reported[nodes[0]])}
            before, after = jobs[first], jobs[last]
            why = (
                f"{fold(nodes)}: {self._label(fact)} {fact.shown(first)} in job {before},"
                f" {fact.shown(last)} in job {after}"
            )
            # A virtual machine is given memory, and gives it back, while it runs.
            level = Level.WARN if fact.group == "memory" else Level.FAIL
            kind, on = NodeFindingKind.CHANGED, tuple(sorted(nodes))
            yield self._found(fact.name, kind, why, on, last, first, level, fact.environment)

    def _label(self, fact: NodeFact) -> str:
        group, _, key = fact.name.partition(" ")
        if fact.name == "state":
            return f"interface {self.site.interface}"
        if group == "memory":
            return f"memory {key.removesuffix(' KiB').replace('total', '')}".strip()
        if group in node_facts.GROUPS and not key:
            return group
        label = f"{_LABELS.get(group, group)} {key}".strip()
        return f"{label} =" if group == "sysctls" else label

    def _compared(self, fact: NodeFact) -> Iterator[NodeFinding]:
        """Yield the differences from what has to be, or from most nodes."""
        values = fact.values()
        by_value = grouped((value, node) for node, value in values.items())
        ordered = sorted(by_value.items(), key=lambda item: (-len(item[1]), item[0]))
        label = self._label(fact)
        site = {"mtu": str(self.site.mtu), "link_mbit_s": str(self.site.link_mbit_s)}
        usual = (site | {"state": UP, "duplex": FULL}).get(fact.name, "")
        stated = AS_STATED if fact.name in site else ""
        found = partial(self._found, fact.name, environment=fact.environment)
        if usual:
            kind, differ = NodeFindingKind.DECLARED, [one for one in ordered if one[0] != usual]
            end = ", the site's file says " + usual if stated else ""
            if right := len(by_value.get(usual, ())):
                end = f", {counted(right, 'other')} {usual}{stated}"
        elif len(by_value) < 2:
            return
        else:
            (usual, holders), *differ = ordered
            kind, end = (
                NodeFindingKind.MINORITY,
                f", {counted(len(holders), 'other')} {fact.shown(usual)}",
            )
            if 2 * len(holders) <= len(values):
                several = [f"{fold(nodes)} {fact.shown(value)}" for value, nodes in ordered]
                why = f"{label.removesuffix(' =')} differs: {listed(several)}"
                yield found(NodeFindingKind.NO_MAJORITY, why, tuple(sorted(values)))
                return
            if len(differ) > MOST_VALUES:
                nodes = [node for _, several in differ for node in several]
                why = f"{fold(nodes)}: {label} of {len(differ)} other values{end}"
                yield found(kind, why, tuple(sorted(nodes)), None, usual)
                return
        for value, nodes in differ:
            why = f"{fold(nodes)}: {label} {fact.shown(value)}{end}"
            yield found(kind, why, tuple(sorted(nodes)), value, usual)

    def _below_maximum(self, found: Sequence[NodeFinding]) -> Iterator[NodeFinding]:
        """Cards whose link is slower or narrower than they can, where no other node tells it."""
        if self._may_differ("pci"):
            return
        accused = {
            node for one in found if one.fact.partition(" ")[0] == "pci" for node in one.nodes
        }
        for name, unit in (("width", "x"), ("speed", "")):
            slower: dict[tuple[str, str], set[str]] = defaultdict(set)
            for node in (one for one in self.nodes if one.node not in accused):
                now, most = node.pci.get(name), node.pci.get(f"maximum {name}")
                if now and most and _leading(now) < _leading(most):
                    slower[now, most].add(node.node)
            for (now, most), nodes in slower.items():
                why = f"{fold(nodes)}: PCI {name} {unit}{now}, the card can {unit}{most}"
                kind = NodeFindingKind.BELOW_MAXIMUM
                on = tuple(sorted(nodes))
                yield self._found(f"pci {name}", kind, why, on, now, most, Level.WARN)

    def _not_known(self, facts: Sequence[NodeFact]) -> Iterator[NodeFinding]:
        """Yield what some nodes do not know and others, or the site, do; each reason once."""
        alike: dict[tuple[tuple[str, ...], str, int, str], list[NodeFact]] = defaultdict(list)
        knowing: dict[str, set[str]] = defaultdict(set)
        for fact in facts:
            knowing[fact.group].update(fact.reported)
        for fact in facts:
            of_link = fact.name != "state" and fact.group in _OF_THE_LINK
            known_on = {*fact.reported, *(self.not_up if of_link else ())}
            silent = {node: why for node, why in fact.reasons.items() if node not in known_on}
            # Other nodes know the keys of a group that a node does not know at all.
            known = len(fact.reported) or len(knowing[fact.group])
            stated = fact.name in ("mtu", "link_mbit_s")
            for why in dict.fromkeys(silent.values()) if known or stated else ():
                nodes = tuple(sorted(node for node, reason in silent.items() if reason == why))
                alike[nodes, why, known, fact.environment].append(fact)
        yield from self._unknown_paths()
        for (nodes, why, known, environment), several in alike.items():
            labels = [self._label(one).removesuffix(" =") for one in several]
            # Without its interface a node is not of the partition.
            gone = any(one.name == "state" for one in several)
            name = several[0].name if len(several) == 1 else several[0].group
            sentence = f"{fold(nodes)}: {listed(labels)} not known ({shortened(why)})"
            sentence += f", known on {counted(known, 'other')}" if known else ""
            level = Level.FAIL if gone else Level.WARN
            name, kind = "state" if gone else name, NodeFindingKind.NOT_KNOWN
            yield self._found(name, kind, sentence, nodes, level=level, environment=environment)

    def _unknown_paths(self) -> Iterator[NodeFinding]:
        if self._may_differ("path"):
            return
        known = set()
        silent: dict[str, tuple[str, str]] = {}
        for node in self.nodes:
            if node.path_passed_bytes is not None:
                known.add(node.node)
            elif node.path_to is not None and not {node.node, node.path_to} & self.not_up:
                why = node.absent.get("path_passed_bytes", "no reason is given")
                silent.setdefault(node.node, (node.path_to, why))
        for name, (target, why) in sorted(silent.items()):
            if known and name not in known:
                why = f"{name} to {target}: {_LABELS['path']} not known ({shortened(why)})"
                kind, ends = NodeFindingKind.NOT_KNOWN, (name, target)
                yield self._found("path", kind, why, ends, level=Level.WARN)

    def _clocks(self, bound_s: float) -> Iterator[NodeFinding]:
        """Yield clocks that are certainly further apart than ``bound_s``."""
        kind = NodeFindingKind.CLOCK
        jobs: dict[str, dict[str, float]] = defaultdict(dict)
        by_ntp: dict[str, float] = {}
        for node in self.nodes:
            if node.clock_ahead_from_s is not None and node.clock_ahead_to_s is not None:
                certain = max(0.0, node.clock_ahead_from_s) + min(0.0, node.clock_ahead_to_s)
                jobs[node.jobid][node.node] = certain
            if node.clock_ntp_offset_s is not None and abs(node.clock_ntp_offset_s) > bound_s:
                by_ntp[node.node] = node.clock_ntp_offset_s
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
        sentences = (
            (apart, "{node}: clock at least {by} that of most others"),
            (undecided, "clock differs: {node} is at least {by} the first node of its job"),
            (by_ntp, "{node}: clock {off} s off, by what keeps it"),
        )
        named: set[str] = set()
        for several, sentence in sentences:
            for name, by in sorted(several.items()):
                if name not in named:
                    side = "ahead of" if by > 0 else "behind"
                    off = f"{abs(by):.3g}"
                    why = sentence.format(node=name, by=f"{off} s {side}", off=off)
                    yield self._found("clock", kind, why, (name,), f"{by:.3g} s")
            named |= several.keys()

    def _paths(self, found: Sequence[NodeFinding]) -> list[NodeFinding]:
        """Return the findings, and pairs between which packets of the MTU do not come through.

        Where one end's MTU is another, that finding has it.
        """
        tried = grouped(
            ((node.node, node.path_to), (node.path_asked_bytes, node.path_passed_bytes))
            for node in self.nodes
            if node.path_to and node.path_asked_bytes and node.path_passed_bytes
        )
        several = list(found)
        for (source, target), sizes in sorted(tried.items()):
            stopped = [(asked, passed) for asked, passed in sizes if passed < asked]
            if not stopped:
                continue
            asked, passed = max(stopped)
            ends = {source, target}
            mtu = next((n for n in several if n.fact == "mtu" and ends & {*n.nodes}), None)
            if mtu is not None:
                whose = "its packets" if mtu.nodes == (source,) else f"packets from {source}"
                where = "it" if mtu.nodes == (target,) else target
                why = f"{mtu.why}; {whose} of {asked} bytes do not come through to {where}"
                several[several.index(mtu)] = replace(mtu, why=why)
                continue
            level, kind, pair = Level.FAIL, NodeFindingKind.PATH, (source, target)
            why = (
                f"{source} to {target}: packets of {asked} bytes do not come through unfragmented,"
                f" those of {passed} do"
            )
            if len(stopped) < len(sizes):
                level = Level.WARN
                why += f"; so it was in {len(stopped)} of {len(sizes)} jobs"
            several.append(self._found("path", kind, why, pair, str(passed), str(asked), level))
        return several

    def _connections(self) -> Iterator[NodeFinding]:
        """Yield nodes that answer no TCP connection of others, or that others do not answer.

        Those that do so in some jobs only come last. An interface that is not up has a finding
        already. Where nobody answers anybody, the site's firewalls are meant to be so.
        """
        kind = NodeFindingKind.TCP
        asked: dict[tuple[str, str], list[bool]] = defaultdict(list)
        for node in self.nodes:
            for others, answered in ((node.tcp_answered, True), (node.tcp_unanswered, False)):
                for other in named(others):
                    if not {node.node, other} & self.not_up:
                        asked[node.node, other].append(answered)
        answers = {pair for pair, several in asked.items() if any(several)}
        if not answers:
            return
        heard, answering = ({pair[end] for pair in answers} for end in (0, 1))
        never = sorted(asked.keys() - answers)
        silent = grouped((target, source) for source, target in never if target not in answering)
        unheard = grouped(pair for pair in never if pair[1] in answering and pair[0] not in heard)
        pinged = {one.path_to for one in self.nodes if one.path_passed_bytes is not None}
        for target, sources in silent.items():
            why = f"{target}: answers no TCP connection of {_and(sources)}"
            if target in unheard:
                why += f", gets no answer of {_and(unheard[target])} either"
            if target in pinged:
                why += ", and pings come through"
            why += f": look for a firewall on {self.site.interface} there"
            if not {*sources} & heard:
                why += f", or on {_and(sources)}, which no other node answered"
            yield self._found("tcp", kind, why, (target,), SILENT)
        blamed = {source for source, targets in unheard.items() if len(targets) > 1} - {*silent}
        for source in sorted(blamed):
            why = f"{source}: {UNHEARD}, of {_and(unheard[source])}, which answer others"
            yield self._found("tcp", kind, why, (source,), UNHEARD)
        for source, target in never:
            if target in answering and source not in {*blamed, *(silent.keys() & unheard.keys())}:
                why = f"{source} to {target}: {UNANSWERED}, and {target} answers others"
                yield self._found("tcp", kind, why, (source, target), UNANSWERED)
        counts: dict[str, dict[str, str]] = defaultdict(dict)
        for (source, target), several in sorted(asked.items()):
            if len({*several}) > 1:
                counts[target][source] = f"in {several.count(False)} of {len(several)} jobs"
        for target, by_source in counts.items():
            each = ", ".join(f"of {source} {count}" for source, count in by_source.items())
            nodes, words = [target], f"{SILENT} in some jobs"
            why = f"{target}: {SILENT} {each}"
            if len(by_source) == 1:
                ((source, count),) = by_source.items()
                nodes, words = [source, target], f"{UNANSWERED} {count}"
                why = f"{source} to {target}: {words}"
            yield self._found("tcp", kind, why, tuple(nodes), words, level=Level.WARN)


def _and(nodes: Sequence[str]) -> str:
    return " and ".join(nodes) if len(nodes) < 3 else fold(nodes)


def _leading(text: str) -> float:
    """Return the number that a text begins with, ``16.0 GT/s PCIe`` or ``16``; 0 without any."""
    number = re.match(r"\d+(\.\d+)?(?= |$)", text)
    return float(number[0]) if number else 0.0
