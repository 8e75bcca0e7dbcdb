"""Differences between nodes, or between two looks at one."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from netproof.session.node_facts import MAPS, NAMES, Node

OF_ITS_OWN = (
    *("node", "address", "bus", "absent"),
    *("clock_s", "clock_ntp_offset_s", "clock_ahead_from_s", "clock_ahead_to_s"),
    *("path_to", "path_asked_bytes", "path_passed_bytes", "busy"),
    *("tcp_answered", "tcp_unanswered"),
)
"""Fields of ``Node`` that are not the same on sound nodes that are alike."""

Fact = tuple[str, str]

MEMORY_SHARE = 0.05
"""Memory differs from this share of the larger on: firmware reserves some, hypervisors move it."""


@dataclass(frozen=True)
class NodeInJob:
    """A node in one job of a session, whose ``job`` is ReFrame's name and ``jobid`` Slurm's."""

    partition: str
    environment: str
    job: str
    jobid: str
    node: Node


def memory_kib(value: str) -> int | None:
    """Return a size of memory in KiB; None for a text that is no number."""
    return int(value) if re.fullmatch("[0-9]{1,15}", value) else None


def memory_alike(values: Iterable[str]) -> bool:
    """Check whether sizes of memory are less than ``MEMORY_SHARE`` of the largest apart."""
    several = [memory_kib(value) for value in values]
    sizes = [one for one in several if one is not None]
    if len(sizes) < len(several):
        return False
    return max(sizes) - min(sizes) < MEMORY_SHARE * max(sizes)


def differences(nodes: Sequence[NodeInJob]) -> tuple[str, ...]:
    """Sentences on everything in which nodes differ that should be alike.

    All nodes of a partition are compared with one another, a node in several jobs against
    itself; programs only within an environment. What one of them could not tell counts as a
    value of its own.
    """
    seen: dict[tuple[str, str], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    reporting: dict[tuple[str, str], set[str]] = defaultdict(set)
    for found in nodes:
        for scope, key, value in _values(found):
            seen[scope, key][value].add(found.node.node)
        for scope in (found.partition, f"{found.partition} {found.environment}"):
            reporting[scope, ""].add(found.node.node)
    sentences = []
    for (scope, key), by_value in sorted(seen.items()):
        if key.startswith("memory ") and memory_alike(by_value):
            by_value = {next(iter(by_value)): set().union(*by_value.values())}
        silent = reporting[scope, ""] - set().union(*by_value.values())
        if silent:
            by_value["not known"] = by_value.get("not known", set()) | silent
        if len(by_value) > 1:
            each = sorted(by_value.items(), key=lambda item: (-len(item[1]), item[0]))
            stated = "; ".join(f"{value} ({', '.join(sorted(on))})" for value, on in each)
            sentences.append(f"{scope}: {key}: {stated}")
    return tuple(sentences)


def between(
    first: Sequence[NodeInJob], second: Sequence[NodeInJob]
) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Values that two runs both know and differ in, by name; of programs the hash alone."""
    sides: list[dict[str, set[str]]] = []
    for nodes in (first, second):
        known: dict[str, set[str]] = defaultdict(set)
        for found in nodes:
            for _, key, value in _values(found):
                known[key].add(value.split(" ")[0] if key.startswith("programs ") else value)
        sides.append(known)
    one, other = sides
    return {
        key: (tuple(sorted(one[key])), tuple(sorted(other[key])))
        for key in one
        if key in other
        and one[key] != other[key]
        and not (key.startswith("memory ") and memory_alike(one[key] | other[key]))
    }


def facts(node: Mapping[str, Any], apart: Collection[str] = OF_ITS_OWN) -> Iterator[Fact]:
    """Yield name and value of what a node says, a group such as ``sysctls`` by each of its keys.

    ``node``: the fields of a ``Node``; ``apart``: fields that are left out.
    """
    for name in NAMES:
        value = node[name]
        if name in apart or value is None:
            continue
        if name in MAPS:
            yield from ((f"{name} {key}", text) for key, text in value.items())
        else:
            yield name, str(value)


def _values(found: NodeInJob) -> Iterator[tuple[str, str, str]]:
    """Yield scope, name and value of what has to be alike."""
    for name, value in facts(vars(found.node)):
        of_environment = f" {found.environment}" if name.startswith("programs ") else ""
        yield f"{found.partition}{of_environment}", name, value
