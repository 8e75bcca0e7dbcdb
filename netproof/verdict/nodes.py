"""Whether the nodes of a partition are the same, and what the site says that they are.

All jobs of a session are taken together, so that nodes of different jobs are compared too. What
may differ without a word is ``node_differences.OF_ITS_OWN``: names, addresses, the place on the
bus, what a clock shows. Memory may differ by ``MEMORY_SHARE``, since firmware keeps some of it, and
clocks by the partition's ``clock_offset_ms``. What a card that adapts its interrupt rates has for
them is of the moment. What else may differ a site lists in the partition's ``may_differ``.
"""

from __future__ import annotations

import dataclasses
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median_low

from netproof.criteria import Level
from netproof.errors import shortened
from netproof.session import node_differences, node_facts
from netproof.session.node_differences import NodeInJob
from netproof.session.node_facts import Node
from netproof.session.provenance import OfSession
from netproof.site.hostlist import fold
from netproof.site.partition import Partition
from netproof.verdict.node_findings import FOLDED_FROM, NodeFinding, NodeFindingKind, folded

MEMORY_SHARE = 0.01
"""By this share of the median the memory of nodes may differ."""

UP, FULL = "up", "Full"
"""How the interface of every node has to be, and its link."""

AS_STATED = ", as the site's file says"

NOT_LISTED = "not listed"
"""What a node has of a key that others list, and it does not."""

MOST_VALUES = 4
"""How many values of a fact a sentence has, each with its nodes."""

_HASH = 12

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


@dataclass(frozen=True)
class Declared:
    """What the site said of a partition's links when it was measured."""

    interface: str
    link_mbit_s: int
    mtu: int


@dataclass
class _Fact:
    """What nodes say of one fact: values in the order of the jobs, with these, and reasons."""

    name: str
    environment: str = ""
    told: dict[str, list[tuple[str, str]]] = field(default_factory=lambda: defaultdict(list))
    reasons: dict[str, str] = field(default_factory=dict)

    @property
    def group(self) -> str:
        return self.name.partition(" ")[0]

    @property
    def silent(self) -> dict[str, str]:
        """The nodes that never told a value, and why."""
        return {node: why for node, why in self.reasons.items() if node not in self.told}


def judge(
    made: OfSession, partitions: Mapping[str, Partition], declared: Mapping[str, Declared]
) -> tuple[NodeFinding, ...]:
    """All findings on the nodes of a session, by partition.

    ``partitions``: what the site says now of those that are judged; ``declared``: of their links
    when they were measured, by the partition's name.
    """
    found: list[NodeFinding] = []
    for name, partition in partitions.items():
        nodes = sorted(
            (one for one in made.nodes if one.partition == name), key=lambda one: _number(one.jobid)
        )
        if nodes:
            found += _Partition(name, partition, declared[name], nodes).findings()
    return tuple(found)


@dataclass(frozen=True)
class _Partition:
    """One partition's nodes, each in each job, in the order of the jobs."""

    name: str
    site: Partition
    declared: Declared
    nodes: Sequence[NodeInJob]

    def findings(self) -> list[NodeFinding]:
        facts = [fact for fact in self._facts() if not self._may_differ(fact.name)]
        values = {(fact.name, fact.environment): self._values(fact) for fact in facts}
        found = [one for fact in facts for one in self._changed(fact)]
        for fact in facts:
            found += self._compared(fact, values[fact.name, fact.environment])
        found = [*folded(found), *self._below_maximum(found)]
        if not self._may_differ("clock"):
            found += self._clocks()
        if not self._may_differ("path"):
            found = self._paths(found)
        return [*found, *self._not_known(facts)]

    def _may_differ(self, name: str) -> bool:
        return name in self.site.may_differ or name.partition(" ")[0] in self.site.may_differ

    def _found(
        self,
        fact: _Fact | str,
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

    def _facts(self) -> list[_Fact]:
        """Every fact that has to be alike, as the nodes tell it."""
        facts: dict[tuple[str, str], _Fact] = {}

        def fact(name: str, environment: str = "") -> _Fact:
            return facts.setdefault((name, environment), _Fact(name, environment))

        keys: dict[tuple[str, str], set[str]] = defaultdict(set)
        for found in self.nodes:
            for group in node_facts.GROUPS:
                keys[group, _scope(group, found)].update(_group(found.node, group))
        for found in self.nodes:
            node = found.node
            for one in dataclasses.fields(Node):
                if one.name in node_differences.OF_ITS_OWN or one.name == "interface":
                    continue
                if one.name not in node_facts.GROUPS:
                    value, why = getattr(node, one.name), node.absent.get(one.name)
                    self._tell(fact(one.name), found, value, why)
                    continue
                scope, here = _scope(one.name, found), _group(node, one.name)
                why = node.absent.get(one.name)
                if why is not None and not here:
                    self._tell(fact(one.name, scope), found, None, why)
                    continue
                asked = bool(here) or bool(node_facts.reasons(node.absent, one.name))
                for key in sorted(keys[one.name, scope]) if asked else ():
                    why = node.absent.get(f"{one.name}.{key}")
                    value = here.get(key, NOT_LISTED if why is None else None)
                    self._tell(fact(f"{one.name} {key}", scope), found, value, why)
        return list(facts.values())

    @staticmethod
    def _tell(fact: _Fact, found: NodeInJob, value: object, why: str | None) -> None:
        name = found.node.node
        if value is not None:
            fact.told[name].append((found.jobid, str(value)))
        elif why is not None:
            fact.reasons.setdefault(name, why)

    def _values(self, fact: _Fact) -> dict[str, str]:
        """What each node has, those left out that changed between jobs."""
        told = {node: several for node, several in fact.told.items() if not _changes(fact, several)}
        values = {node: several[0][1] for node, several in told.items()}
        if fact.group != "memory" or not values:
            return values
        sizes = {node: size for node, value in values.items() if (size := _kib(value)) is not None}
        middle = median_low(sizes.values()) if sizes else 0
        near = {n for n, size in sizes.items() if abs(size - middle) <= MEMORY_SHARE * middle}
        return {node: str(middle) if node in near else value for node, value in values.items()}

    def _changed(self, fact: _Fact) -> Iterator[NodeFinding]:
        alike: dict[tuple[str, str], list[str]] = defaultdict(list)
        for node, several in fact.told.items():
            if _changes(fact, several):
                alike[several[0][1], _last_other(several)].append(node)
        for (first, last), nodes in alike.items():
            before, after = (
                next(job for job, value in fact.told[nodes[0]] if value == one)
                for one in (first, last)
            )
            why = (
                f"{fold(nodes)}: {self._label(fact)} {_shown(fact, first)} in job {before},"
                f" {_shown(fact, last)} in job {after}"
            )
            yield self._found(fact, NodeFindingKind.CHANGED, why, nodes, last, first)

    def _label(self, fact: _Fact) -> str:
        group, _, key = fact.name.partition(" ")
        if fact.name == "state":
            return f"interface {self.declared.interface}"
        if group == "memory":
            return f"memory {key.removesuffix(' KiB').replace('total', '')}".strip()
        if group == "sysctls":
            return f"sysctl {key} ="
        if key:
            return f"{_OF_GROUPS[group]} {key}"
        return _LABELS.get(group, group)

    def _expected(self, fact: _Fact) -> tuple[str, bool] | None:
        """What a fact has to be, and whether the site's file says so; None where nothing does."""
        return {
            "mtu": (str(self.declared.mtu), True),
            "link_mbit_s": (str(self.declared.link_mbit_s), True),
            "state": (UP, False),
            "duplex": (FULL, False),
        }.get(fact.name)

    def _compared(self, fact: _Fact, values: Mapping[str, str]) -> list[NodeFinding]:
        """What differs from the site's word, or from most nodes."""
        by_value: dict[str, list[str]] = defaultdict(list)
        for node, value in values.items():
            by_value[value].append(node)
        expected = self._expected(fact)
        if expected is not None:
            wanted, stated = expected
            return [
                self._declared(fact, value, nodes, wanted, stated, len(by_value.get(wanted, ())))
                for value, nodes in _ordered(by_value)
                if value != wanted
            ]
        if len(by_value) < 2:
            return []
        ordered = _ordered(by_value)
        most, holders = ordered[0]
        others = ordered[1:]
        if 2 * len(holders) <= len(values):
            listed = [f"{fold(nodes)} {_shown(fact, value)}" for value, nodes in ordered]
            more = len(listed) - MOST_VALUES
            told = ", ".join(listed[:MOST_VALUES])
            why = f"{self._label(fact).removesuffix(' =')} differs: {told}"
            why += f" and {more} more values" if more > 0 else ""
            return [self._found(fact, NodeFindingKind.NO_MAJORITY, why, values)]
        told = f"{_others(len(holders))} {_shown(fact, most)}"
        if len(others) > MOST_VALUES:
            nodes = [node for _, several in others for node in several]
            why = f"{fold(nodes)}: {self._label(fact)} of {len(others)} other values, {told}"
            return [self._found(fact, NodeFindingKind.MINORITY, why, nodes, None, most)]
        return [
            self._found(
                fact,
                NodeFindingKind.MINORITY,
                f"{fold(nodes)}: {self._label(fact)} {_shown(fact, value)}, {told}",
                nodes,
                value,
                most,
            )
            for value, nodes in others
        ]

    def _declared(
        self, fact: _Fact, value: str, nodes: Sequence[str], wanted: str, stated: bool, right: int
    ) -> NodeFinding:
        why = f"{fold(nodes)}: {self._label(fact)} {_shown(fact, value)}"
        if right:
            why += f", {_others(right)} {wanted}{AS_STATED if stated else ''}"
        elif stated:
            why += f", the site's file says {wanted}"
        return self._found(fact, NodeFindingKind.DECLARED, why, nodes, value, wanted)

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

    def _clocks(self) -> Iterator[NodeFinding]:
        """Clocks that are certainly further apart than the site lets them be."""
        bound = self.site.clock_offset_ms / 1000
        jobs: dict[str, dict[str, float]] = defaultdict(dict)
        kept: dict[str, float] = {}
        for one in self.nodes:
            node = one.node
            if node.clock_ahead_from_s is not None and node.clock_ahead_to_s is not None:
                certain = max(0.0, node.clock_ahead_from_s) + min(0.0, node.clock_ahead_to_s)
                jobs[one.jobid][node.node] = certain
            if node.clock_ntp_offset_s is not None and abs(node.clock_ntp_offset_s) > bound:
                kept[node.node] = node.clock_ntp_offset_s
        apart: dict[str, float] = {}
        undecided: dict[str, float] = {}
        for ahead in jobs.values():
            far = {node: by for node, by in ahead.items() if abs(by) > bound}
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
            yield self._found("clock", NodeFindingKind.CLOCK, why, [node], f"{by:.3g} s")
        for node, by in sorted(undecided.items()):
            if node in apart:
                continue
            why = f"clock differs: {node} is at least {_seconds(by)} the first node of its job"
            yield self._found("clock", NodeFindingKind.CLOCK, why, [node], f"{by:.3g} s")
        for node, by in sorted(kept.items()):
            if node not in {*apart, *undecided}:
                why = f"{node}: clock {abs(by):.3g} s off, by what keeps it"
                yield self._found("clock", NodeFindingKind.CLOCK, why, [node], f"{by:.3g} s")

    def _paths(self, found: Sequence[NodeFinding]) -> list[NodeFinding]:
        """Pairs of nodes between which packets of the MTU do not come through.

        Where one end's MTU is another, that is the reason, and told with it.
        """
        tried: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
        for one in self.nodes:
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
            one = self._found("path", NodeFindingKind.PATH, why, (), str(passed), str(asked), level)
            several.append(dataclasses.replace(one, nodes=(source, target)))
        return several

    def _not_known(self, facts: Sequence[_Fact]) -> Iterator[NodeFinding]:
        """What some nodes cannot tell and others, or the site, can; each reason once."""
        not_up = {
            one.node.node
            for one in self.nodes
            if one.node.state not in (None, UP) or "state" in one.node.absent
        }
        told: dict[tuple[str, str], tuple[_Fact, dict[str, str], int]] = {}
        knowing: dict[str, set[str]] = defaultdict(set)
        for fact in facts:
            knowing[fact.group].update(fact.told)
        for fact in facts:
            silent = fact.silent
            if fact.name != "state" and fact.group in _OF_THE_LINK:
                silent = {node: why for node, why in silent.items() if node not in not_up}
            # Of a group that a node cannot tell at all others tell the keys.
            known = len(fact.told) or len(knowing[fact.group])
            _, stated = self._expected(fact) or ("", False)
            if silent and (known or stated):
                told[fact.name, fact.environment] = (fact, silent, known)
        yield from self._unknown_paths(not_up)
        alike: dict[tuple[tuple[str, ...], str, int, str], list[_Fact]] = defaultdict(list)
        for fact, silent, known in told.values():
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
                told = f"{name} to {target}: {_LABELS['path']} not known ({shortened(why)})"
                kind = NodeFindingKind.NOT_KNOWN
                one = self._found("path", kind, told, (), level=Level.WARN)
                yield dataclasses.replace(one, nodes=(name, target))


def _scope(group: str, found: NodeInJob) -> str:
    """Programs have to be alike within an environment, all else within the partition."""
    return found.environment if group == "programs" else ""


def _group(node: Node, group: str) -> dict[str, str]:
    """The keys of a group that have to be alike, and their values."""
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


def _changes(fact: _Fact, several: Sequence[tuple[str, str]]) -> bool:
    """Whether a node differs between jobs."""
    values = {value for _, value in several}
    if len(values) < 2 or fact.group != "memory":
        return len(values) > 1
    sizes = [_kib(value) for value in values]
    if None in sizes:
        return True
    return max(sizes) - min(sizes) > MEMORY_SHARE * max(sizes)


def _last_other(several: Sequence[tuple[str, str]]) -> str:
    """The last value that is not the first one."""
    return next(value for _, value in reversed(several) if value != several[0][1])


def _shown(fact: _Fact, value: str) -> str:
    size = _kib(value) if fact.group == "memory" else None
    return shortened(value) if size is None else f"{size / 2**20:.4g} GiB"


def _kib(value: str) -> int | None:
    """KiB of memory; None for what is no number of it."""
    return int(value) if re.fullmatch("[0-9]{1,15}", value) else None


def _ordered(by_value: Mapping[str, Sequence[str]]) -> list[tuple[str, Sequence[str]]]:
    """Values with their nodes, the one that most have first."""
    return sorted(by_value.items(), key=lambda one: (-len(one[1]), one[0]))


def _others(count: int) -> str:
    return f"{count} other" if count == 1 else f"{count} others"


def _leading(text: str) -> float | None:
    """The number that a text begins with, ``16.0 GT/s PCIe`` or ``16``."""
    try:
        return float(text.split(" ")[0])
    except ValueError:
        return None


def _seconds(by: float) -> str:
    return f"{abs(by):.3g} s {'ahead of' if by > 0 else 'behind'}"


def _number(jobid: str) -> tuple[int, str]:
    """By which jobs are in the order in which Slurm took them."""
    return (int(jobid) if re.fullmatch("[0-9]{1,18}", jobid) else 0, jobid)
