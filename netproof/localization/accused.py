"""What comes of localization: the state of each node, and who is accused of what."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from netproof.errors import NetproofError
from netproof.localization.observations import Pair, PairQuantity
from netproof.localization.pair_table import PairTable
from netproof.localization.searching import Explanation, Kind, Thing

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class AccusationSettings:
    """What counts, and how sure an answer has to be.

    ``slower``: the share by which a rate has to be lower to count; ``slower_latency``: the same of
    one over a time, so that 0.25 is a time a third longer: small messages scatter far more;
    ``error``: share of healthy runs that accuse anyone, at most; ``missed``: probability that a
    node is cleared which is slower by just that; ``rounds``: over which both are spent, and
    the most that mode quick makes; ``disturbed_share``: of single measurements, as expected before
    the run itself tells, a tenth of that of noise wider than the rest; ``resolution``: relative
    differences below this are not believed. Raises NetproofError where one is not in its range.
    """

    slower: float = 0.10
    slower_latency: float = 0.25
    error: float = 0.001
    missed: float = 0.01
    rounds: int = 16
    disturbed_share: float = 0.01
    resolution: float = 0.001

    def __post_init__(self) -> None:
        for name in (
            "slower",
            "slower_latency",
            "error",
            "missed",
            "disturbed_share",
            "resolution",
        ):
            value = getattr(self, name)
            if not 0 < value < 1:
                raise NetproofError(f"{name} is {value}, and has to be between 0 and 1")
        if self.rounds < 2:
            raise NetproofError(f"rounds is {self.rounds}, and has to be at least 2")

    def counts(self, quantity: PairQuantity) -> float:
        """The logarithm of what counts in a quantity."""
        latency = quantity is PairQuantity.LATENCY
        return -math.log1p(-(self.slower_latency if latency else self.slower))


DEFAULTS = AccusationSettings()


class State(StrEnum):
    """What is known of a node; ``NOT_COMPARED``: too few nodes were measured to compare it."""

    CLEARED = "cleared"
    ACCUSED = "accused"
    UNDECIDED = "undecided"
    NOT_COMPARED = "not compared"


@dataclass(frozen=True)
class Effect:
    """How slow something is: ``ratio`` to the others' rate or time, with its 95 % interval.

    ``rounds``: in how many it was seen.
    """

    quantity: PairQuantity
    ratio: float
    interval: tuple[float, float]
    rounds: int

    def __str__(self) -> str:
        of = "time" if self.quantity is PairQuantity.LATENCY else self.quantity
        shares = [f"{100 * share:.3g}" for share in (self.ratio, *self.interval)]
        return f"{shares[0]} % of the others' {of}, {shares[1]} to {shares[2]} %"


@dataclass(frozen=True)
class NodeState:
    """A node's state, with why; ``effects``: what could be estimated, one for each quantity."""

    node: str
    state: State
    effects: tuple[Effect, ...]
    reason: str


@dataclass(frozen=True)
class Accusation:
    """Something that is slow, with its nodes; ``alternatives``: what fits equally well."""

    kind: Kind
    name: str
    nodes: tuple[str, ...]
    effects: tuple[Effect, ...]
    alternatives: tuple[str, ...]

    def __str__(self) -> str:
        told = f"{named(self.kind, self.name)}: {'; '.join(map(str, self.effects))}"
        if self.kind is Kind.PAIR and not self.alternatives:
            told += "; both nodes are fine with others"
        if self.alternatives:
            told += f"; fits equally well: {', or '.join(self.alternatives)}"
        return told


def named(kind: Kind, name: str) -> str:
    """A thing by kind and name; an uplink's name has its kind."""
    return name if kind is Kind.UPLINK else f"{kind} {name}"


@dataclass(frozen=True)
class Noise:
    """How far apart healthy measurements lie, as the run itself shows.

    ``share``: noise of one measurement, relative, None where it could not be estimated, from
    ``freedom`` degrees of freedom; ``nodes_share``: how far healthy nodes lie apart beyond it;
    ``disturbed``: share of measurements that are far from the others, or wider.
    """

    quantity: PairQuantity
    share: float | None
    nodes_share: float
    freedom: float
    disturbed: float


@dataclass(frozen=True)
class Judgement:
    """What the rounds so far say.

    ``rounds``: how many could be used; ``suspects``: undecided nodes that look slow, worst first;
    ``suspected_pairs``: pairs that were slow whenever measured, and are not accused;
    ``disturbed``: observations that were left out as such; ``said``: what else a reader has to
    know.
    """

    rounds: int
    nodes: Mapping[str, NodeState]
    accusations: tuple[Accusation, ...]
    noise: tuple[Noise, ...]
    suspects: tuple[str, ...]
    suspected_pairs: tuple[Pair, ...]
    disturbed: int
    said: tuple[str, ...]

    @property
    def decided(self) -> bool:
        """Whether no pair is suspected, and no node undecided that more rounds tell something of.

        Of the nodes of a slow leaf they tell nothing.
        """
        hidden = {
            node
            for accusation in self.accusations
            if accusation.kind is Kind.SWITCH
            for node in accusation.nodes
        }
        return not self.suspected_pairs and all(
            node.state is not State.UNDECIDED or name in hidden for name, node in self.nodes.items()
        )


MOST_THINGS = 24
"""Things that are looked for at most: more of them are no exceptions."""


@dataclass(frozen=True)
class Accused:
    """An accused thing, with its effect and what fits equally well."""

    thing: Thing
    effect: Effect
    alternatives: tuple[str, ...]


@dataclass(frozen=True)
class QuantityVerdict:
    """What the rounds say in one quantity, nodes by number.

    ``cleared``: by node; ``estimates``: logarithms by which each node is slower, NaN where not
    known, with their ``errors``; ``explanation`` is None where there is no noise to go by.
    """

    quantity: PairQuantity
    table: PairTable
    explanation: Explanation | None
    accused: tuple[Accused, ...]
    cleared: NDArray[np.bool_]
    estimates: Floats
    errors: Floats
    suspects: tuple[int, ...]
    suspected_pairs: tuple[tuple[int, int], ...]
    noise: Noise

    @property
    def accused_nodes(self) -> dict[int, Accused]:
        """The accused thing of each node that is itself accused."""
        return {
            accused.thing.nodes[0]: accused
            for accused in self.accused
            if accused.thing.kind is Kind.NODE and not accused.alternatives
        }


def effect_of(
    quantity: PairQuantity, middle: float, low: float, high: float, rounds: int
) -> Effect:
    """The effect of a slowness in logarithms, with its interval, as rates or times have it."""
    if quantity is PairQuantity.LATENCY:
        return Effect(quantity, _exp(middle), (_exp(low), _exp(high)), rounds)
    return Effect(quantity, _exp(-middle), (_exp(-high), _exp(-low)), rounds)


def _exp(log: float) -> float:
    return math.exp(log) if log < 700 else math.inf
