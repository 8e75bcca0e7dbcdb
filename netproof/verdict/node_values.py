"""Facts that have to be alike on the nodes of a partition: what each reported, job by job."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median_low

from netproof.errors import shortened
from netproof.session import node_differences, node_facts
from netproof.session.node_differences import NodeInJob, memory_alike, memory_kib
from netproof.session.node_facts import Node

NOT_LISTED = "not listed"
"""What a node has of a key that others list, and it does not."""

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

    @property
    def unreported(self) -> dict[str, str]:
        """The nodes that never reported a value, and why."""
        return {node: why for node, why in self.reasons.items() if node not in self.reported}


def facts_of(nodes: Sequence[NodeInJob]) -> list[NodeFact]:
    """Return every fact that has to be alike, as the nodes reported it, each in each job."""
    facts: dict[tuple[str, str], NodeFact] = {}

    def fact(name: str, environment: str = "") -> NodeFact:
        return facts.setdefault((name, environment), NodeFact(name, environment))

    keys: dict[tuple[str, str], set[str]] = defaultdict(set)
    for found in nodes:
        for group in node_facts.GROUPS:
            keys[group, _scope(group, found)].update(_group(found.node, group))
    for found in nodes:
        node = found.node
        for one in dataclasses.fields(Node):
            if one.name in node_differences.OF_ITS_OWN or one.name == "interface":
                continue
            if one.name not in node_facts.GROUPS:
                value, why = getattr(node, one.name), node.absent.get(one.name)
                _add(fact(one.name), found, value, why)
                continue
            scope, here = _scope(one.name, found), _group(node, one.name)
            why = node.absent.get(one.name)
            if why is not None and not here:
                _add(fact(one.name, scope), found, None, why)
                continue
            for key in sorted(keys[one.name, scope]):
                why = node.absent.get(f"{one.name}.{key}")
                value = here.get(key, NOT_LISTED if why is None else None)
                _add(fact(f"{one.name} {key}", scope), found, value, why)
    return list(facts.values())


def _add(fact: NodeFact, found: NodeInJob, value: object, why: str | None) -> None:
    name = found.node.node
    if value is not None:
        fact.reported[name].append((found.jobid, str(value)))
    elif why is not None:
        fact.reasons.setdefault(name, why)


def values_of(fact: NodeFact) -> dict[str, str]:
    """Return each node's value, without nodes that changed between jobs."""
    values = {
        node: several[0][1] for node, several in fact.reported.items() if not changes(fact, several)
    }
    if fact.group != "memory" or not values:
        return values
    sizes = [size for value in values.values() if (size := memory_kib(value)) is not None]
    middle = str(median_low(sizes)) if sizes else ""
    return {n: middle if memory_alike((value, middle)) else value for n, value in values.items()}


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


def changes(fact: NodeFact, several: Sequence[tuple[str, str]]) -> bool:
    """Check whether a node differs between jobs."""
    values = {value for _, value in several}
    return len(values) > 1 and not (fact.group == "memory" and memory_alike(values))


def last_other(several: Sequence[tuple[str, str]]) -> str:
    """Return the last value that is not the first one."""
    return next(value for _, value in reversed(several) if value != several[0][1])


def shown(fact: NodeFact, value: str) -> str:
    """Return a value for a sentence: memory in GiB, all else shortened."""
    size = memory_kib(value) if fact.group == "memory" else None
    return shortened(value) if size is None else f"{size / 2**20:.4g} GiB"


def ordered_values(by_value: Mapping[str, Sequence[str]]) -> list[tuple[str, Sequence[str]]]:
    """Return values with their nodes, the one that most have first."""
    return sorted(by_value.items(), key=lambda one: (-len(one[1]), one[0]))
