"""A finding on nodes of a partition: what it is about, how bad, and in which words."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from netproof.criteria import Level
from netproof.site.hostlist import fold

FOLDED_FROM = 4
"""So many keys of a group in which the same nodes differ are told in one sentence."""

NAMED = 2
"""How many of them it names."""


class NodeFindingKind(StrEnum):
    """What a finding on nodes is.

    ``MINORITY``: others than most nodes; ``NO_MAJORITY``: they differ, and none is what most are;
    ``DECLARED``: other than it has to be, by the site's file where it says; ``CHANGED``: a node
    differs between jobs; ``NOT_KNOWN``: what others know; ``PATH``: packets of the MTU do not come
    through; ``TCP``: nothing comes back to TCP connections; ``CLOCK``: clocks are apart;
    ``BELOW_MAXIMUM``: a card in a slot that slows it.
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
    """In what nodes of a partition are not as they should be.

    ``fact``: a field of ``node_facts.Node``, of a group with the key, ``sysctls
    net.ipv4.tcp_sack``, or ``path``, ``tcp`` or ``clock``; of several keys the group alone.
    ``nodes``: the accused, all that differ where there is no majority, both ends of a path;
    ``value``: what they have, of ``tcp`` what is wrong in words, ``others``: what the others have
    or the site says, None where there is not one value; ``environment``: in which a program
    differs.
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
        """The sentence, with the place."""
        return f"{f'{self.partition} {self.environment}'.strip()}: {self.why}"


def folded(found: Sequence[NodeFinding]) -> list[NodeFinding]:
    """The findings, those on many keys of a group in which the same nodes differ in one."""
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
        told = (one.why.removeprefix(f"{fold(one.nodes)}: ") for one in alike[:NAMED])
        named = "; ".join(sentence.replace(" differs: ", " ", 1) for sentence in told)
        why = (
            f"{fold(first.nodes)}: {len(alike)} {group} differ: {named}; and {len(alike) - NAMED}"
            " more"
        )
        several.append(dataclasses.replace(first, fact=group, why=why, value=None, others=None))
    return several
