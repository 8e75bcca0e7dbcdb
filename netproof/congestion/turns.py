"""The launches of a load test: victim, nodes, and alone or alongside which aggressor.

As in GPCNeT (Chunduri et al., "GPCNeT: designing a benchmark suite for inducing and measuring
contention in HPC networks", SC19), a victim's and an aggressor's nodes are disjoint.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from netproof.errors import NetproofError

LEAST_NODES = 4
"""Two for the victim, two for the aggressor."""

SHORT_BYTES = 8
"""GPCNeT's message for latency and Allreduce."""


class Victim(StrEnum):
    """A measurement between two nodes."""

    LATENCY = "latency"
    BANDWIDTH = "bandwidth"
    ALLREDUCE = "allreduce"

    @property
    def function(self) -> str:
        """Return the function of IMB-MPI1."""
        return "Allreduce" if self is Victim.ALLREDUCE else "PingPong"

    def size(self, most_bytes: int) -> int:
        """Return its message in bytes, where the partition's largest message is ``most_bytes``."""
        return most_bytes if self is Victim.BANDWIDTH else SHORT_BYTES


class Aggressor(StrEnum):
    """A load on all other nodes."""

    INCAST = "incast"
    ALL_TO_ALL = "all-to-all"
    BROADCAST = "broadcast"
    ONE_TO_ONE = "one-to-one"

    @property
    def function(self) -> str:
        """Return the function of IMB-MPI1: libraries mostly gather unequal data without a tree."""
        return {
            Aggressor.INCAST: "Gatherv",
            Aggressor.ALL_TO_ALL: "Alltoall",
            Aggressor.BROADCAST: "Bcast",
            Aggressor.ONE_TO_ONE: "PingPing",
        }[self]


class VictimPlace(StrEnum):
    """Place of the victim's two nodes, as far as Slurm knows the switches."""

    ANYWHERE = "anywhere"
    WITHIN = "within a leaf"
    ACROSS = "across leaves"

    @property
    def word(self) -> str:
        """Return its part of a step's name."""
        return self.value.partition(" ")[0]


@dataclass(frozen=True)
class VictimTurn:
    """One launch of a victim: its round (from 1), its place, and alone or alongside its aggressor.

    ``nodes``: the victim's; ``others``: the aggressor's in the order of its ranks, silent in
    launches alone. An incast goes to the first, a broadcast comes from it.
    """

    round: int
    place: VictimPlace
    victim: Victim
    aggressor: Aggressor
    beside: bool
    nodes: tuple[str, ...]
    others: tuple[str, ...]

    @property
    def subject(self) -> str:
        """Return the stem of the names of such launches."""
        when = "beside" if self.beside else "without"
        return f"{self.victim}-{self.place.word}-{when}-{self.aggressor}"

    @property
    def step(self) -> str:
        """Return the name of its step."""
        return f"{self.subject}.{self.round}"

    @property
    def aggressor_step(self) -> str:
        """Return the name of its aggressor's step."""
        return f"aggressor-{self.step}"


def chosen(kind: type[StrEnum], text: str) -> tuple[StrEnum, ...]:
    """Return the members that a list with commas names, or ``all``; NetproofError for others."""
    if text == "all":
        return tuple(kind)
    names = dict.fromkeys(text.split(","))
    unknown = [name for name in names if name not in list(kind)]
    if unknown:
        raise NetproofError(f"unknown {unknown[0]!r}; choose from {', '.join(kind)}")
    return tuple(map(kind, names))


def turns(
    nodes: Sequence[str],
    leaves: Mapping[str, Sequence[str]],
    victims: Sequence[Victim],
    aggressors: Sequence[Aggressor],
    rounds: int,
    seed: int,
) -> tuple[VictimTurn, ...]:
    """Return the launches of a job on ``nodes`` in their order.

    Each round draws nodes, first those that were the victim's least often, so that each is
    measured; and shuffles everything that is compared. Launches alone and alongside follow each
    other in random order. ``leaves``: nodes by switch, empty where Slurm knows none. Raise
    NetproofError for fewer than ``LEAST_NODES`` nodes.
    """
    if len(nodes) < LEAST_NODES:
        raise NetproofError(
            f"the job has {len(nodes)} nodes, {', '.join(nodes)}, and load takes {LEAST_NODES}: two"
            " for what is measured, two for what congests"
        )
    draw = random.Random(seed)
    found: list[VictimTurn] = []
    measured_in: Counter[str] = Counter()
    for number in range(1, rounds + 1):
        places = _drawn(nodes, leaves, draw, measured_in)
        measured_in.update({node for measured, _ in places.values() for node in measured})
        compared = [
            (place, victim, aggressor)
            for place in places
            for victim in victims
            for aggressor in aggressors
        ]
        draw.shuffle(compared)
        for place, victim, aggressor in compared:
            measured, others = places[place]
            # Pairs leave an odd node out.
            odd = aggressor is Aggressor.ONE_TO_ONE and len(others) % 2
            sending = others[:-1] if odd else others
            both = [False, True]
            draw.shuffle(both)
            found += [
                VictimTurn(number, place, victim, aggressor, alongside, measured, sending)
                for alongside in both
            ]
    return tuple(found)


def _drawn(
    nodes: Sequence[str],
    leaves: Mapping[str, Sequence[str]],
    draw: random.Random,
    measured_in: Counter[str],
) -> dict[VictimPlace, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Draw the victim's nodes and the others, by place; ``measured_in``: earlier rounds by node.

    With leaves, the victim is within one, or across two, while the others send the same: from leaf
    to leaf, an incast to a node of the second.
    """

    def shuffled(several: Sequence[str]) -> list[str]:
        """Return them shuffled, those first that were measured least often."""
        return sorted(draw.sample(several, len(several)), key=measured_in.__getitem__)

    below = [[node for node in of_leaf if node in nodes] for of_leaf in leaves.values()]
    wide = [of_leaf for of_leaf in below if len(of_leaf) >= 2]
    if len(wide) < 2:
        drawn_first = shuffled(list(nodes))
        others = draw.sample(drawn_first[2:], len(drawn_first) - 2)
        return {VictimPlace.ANYWHERE: (tuple(drawn_first[:2]), tuple(others))}
    fewest = min(measured_in[node] for of_leaf in wide for node in of_leaf)
    first, second, *_ = sorted(
        draw.sample(wide, len(wide)),
        key=lambda of_leaf: -sum(measured_in[node] == fewest for node in of_leaf),
    )
    one, other, *more = shuffled(first)
    first = [one, other, *draw.sample(more, len(more))]
    last, *more = shuffled(second)
    second = [*draw.sample(more, len(more)), last]
    rest = [draw.sample(one, len(one)) for one in below if set(one).isdisjoint(first + second)]
    known = {node for one in below for node in one}
    rest.append([node for node in nodes if node not in known])
    drawn = {
        VictimPlace.WITHIN: (first[0], first[1]),
        VictimPlace.ACROSS: (first[0], second[-1]),
    }
    return {
        place: (
            measured,
            tuple(
                _in_turns([[node for node in one if node not in measured] for one in order]),
            ),
        )
        for place, measured in drawn.items()
        for order in [[second, first, *rest]]
    }


def _in_turns(several: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the first of each, then the second of each, until all are through."""
    for place in range(max(map(len, several))):
        yield from (one[place] for one in several if place < len(one))
