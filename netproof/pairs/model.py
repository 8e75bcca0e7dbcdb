"""A robust additive fit of pairs' measurements by rounds and the few things that are slow.

In logarithms a pair of round r measures ``level_r + effect + noise``. The effect is that of the
slowest of the things on the pair's way that have one: a pair is as fast as its slower port.
Everything without an effect of its own is one of the many that are alike; how far those lie apart
is part of the noise. So a handful of rounds is enough for thousands of nodes.

The noise is normal at its core; a share of it is wider, and any single measurement may be
disturbed and lie anywhere: a mixture fitted by expectation and maximisation, whose weights are
those of the least squares (Lange, Little and Taylor, JASA 84, 1989). Scale and shares are the run's
own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from netproof.errors import NetproofError
from netproof.site.partition import PairQuantity

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Pair = tuple[str, str]


@dataclass(frozen=True)
class PairObservation:
    """Measurement of one pair of nodes in one launch.

    ``round``: the same for all pairs of a launch; ``time_us``: of a small message, ``rate_mb_s``:
    of a large one, ``both_ways_mb_s``: while both nodes send, None if not measured; ``alone``: all
    other nodes were silent; ``disturbed``: something else loaded its nodes. Raises NetproofError
    for a pair of one node, or a figure that is not above 0 and finite.
    """

    round: int
    nodes: Pair
    time_us: float | None = None
    rate_mb_s: float | None = None
    alone: bool = False
    disturbed: bool = False
    both_ways_mb_s: float | None = None

    def __post_init__(self) -> None:
        one, other = self.nodes
        figures = (self.time_us, self.rate_mb_s, self.both_ways_mb_s)
        if one == other or not all(value is None or 0 < value < math.inf for value in figures):
            found = f"round {self.round}, {one} – {other}: found {figures}"
            raise NetproofError(f"{found}, expected figures above 0 of two nodes")

    def slowness(self, quantity: PairQuantity) -> float | None:
        """Return the logarithm of the time, or of one over the rate: larger is slower."""
        if quantity is PairQuantity.LATENCY:
            return None if self.time_us is None else math.log(self.time_us)
        rate = self.rate_mb_s if quantity is PairQuantity.RATE else self.both_ways_mb_s
        return None if rate is None else -math.log(rate)


UPLINK_OF = "uplink of "


@dataclass(frozen=True)
class Topology:
    """A tree of switches, as ``scontrol show topology`` shows it.

    ``leaves``: the nodes of each leaf switch; ``parents``: the switch above a switch, if there is
    one. Raises NetproofError if a node has two leaves, or a switch is above itself.
    """

    leaves: Mapping[str, tuple[str, ...]]
    parents: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        seen: dict[str, str] = {}
        for leaf, nodes in self.leaves.items():
            for node in nodes:
                if node in seen:
                    raise NetproofError(f"{node} is on the leaves {seen[node]} and {leaf}")
                seen[node] = leaf
            self.above(leaf)

    @cached_property
    def leaf_of(self) -> Mapping[str, str]:
        """Leaf switch of each node."""
        return {node: leaf for leaf, nodes in self.leaves.items() for node in nodes}

    def above(self, switch: str) -> tuple[str, ...]:
        """Return the switch and those above it, upwards; NetproofError if they form a circle."""
        line = [switch]
        while (up := self.parents.get(line[-1])) is not None:
            if up in line:
                raise NetproofError(f"switch {up} is above itself: {', '.join(line)}")
            line.append(up)
        return tuple(line)

    @cached_property
    def below(self) -> Mapping[str, tuple[str, ...]]:
        """Nodes of all leaves that are a switch or below it, by switch."""
        found: dict[str, list[str]] = {}
        for leaf, nodes in self.leaves.items():
            for switch in self.above(leaf):
                found.setdefault(switch, []).extend(nodes)
        return {switch: tuple(nodes) for switch, nodes in found.items()}


class Kind(StrEnum):
    """Kinds of slow things. A group: nodes that share something that no topology names."""

    NODE = "node"
    PAIR = "pair"
    SWITCH = "switch"
    UPLINK = "uplink"
    GROUP = "group"


def named(kind: Kind, name: str) -> str:
    """Return kind and name; an uplink's name has its kind."""
    return name if kind is Kind.UPLINK else f"{kind} {name}"


@dataclass(frozen=True)
class Thing:
    """Something that may be slow: its nodes by number, and the rows whose path leads over it."""

    kind: Kind
    name: str
    nodes: tuple[int, ...]
    rows: Ints

    @property
    def key(self) -> tuple[Kind, str]:
        """Key of the thing: equal keys are the same thing."""
        return self.kind, self.name

    @property
    def shared(self) -> bool:
        """True for a switch or uplink, which several pairs share."""
        return self.kind not in (Kind.NODE, Kind.PAIR)

    def __str__(self) -> str:
        return named(self.kind, self.name)


LEAST_PAIRS = 2
"""Least pairs of a round: rounds differ in level, so pairs are compared within their round."""

LEAST_NODES = 2 * LEAST_PAIRS
"""Least nodes with which one is cleared or accused; of fewer, a round has a single pair."""


@dataclass(frozen=True)
class PairTable:
    """Measurements in columns, by round: ``round``, ``one`` and ``other`` count from 0.

    ``slowness``: logarithms of times, or of one over rates; ``names``: of the nodes.
    """

    names: tuple[str, ...]
    round: Ints
    one: Ints
    other: Ints
    slowness: Floats
    topology: Topology | None = None

    @property
    def rows(self) -> int:
        """Number of measurements."""
        return len(self.slowness)

    @cached_property
    def rounds(self) -> int:
        """Number of rounds."""
        return int(self.round[-1]) + 1 if self.rows else 0

    @cached_property
    def pair(self) -> Ints:
        """Number of each row's pair, the same for both orders of its nodes."""
        low, high = np.minimum(self.one, self.other), np.maximum(self.one, self.other)
        return np.unique(low * len(self.names) + high, return_inverse=True)[1].reshape(-1)

    @cached_property
    def pairs(self) -> int:
        """Number of different pairs."""
        return int(self.pair.max()) + 1 if self.rows else 0

    @cached_property
    def medians(self) -> Floats:
        """Median slowness of each round."""
        starts = np.searchsorted(self.round, np.arange(self.rounds + 1))
        return np.array([np.median(self.slowness[a:b]) for a, b in pairwise(starts)])

    @cached_property
    def measured(self) -> Ints:
        """Number of rounds of each node."""
        return np.bincount(self.nodes_of_rows, minlength=len(self.names))

    @cached_property
    def nodes_of_rows(self) -> Ints:
        """Node of each end of each row: first all ``one``, then all ``other``."""
        return np.concatenate([self.one, self.other])

    def as_node(self, number: int) -> Thing:
        """Return a node as a thing."""
        mine = np.flatnonzero((self.one == number) | (self.other == number))
        return Thing(Kind.NODE, self.names[number], (number,), mine)

    def as_pair(self, number: int) -> Thing:
        """Return a pair as a thing, by its number."""
        mine = np.flatnonzero(self.pair == number)
        ends = sorted((int(self.one[mine[0]]), int(self.other[mine[0]])))
        name = " – ".join(self.names[end] for end in ends)
        return Thing(Kind.PAIR, name, tuple(ends), mine)

    @cached_property
    def groups(self) -> tuple[Thing, ...]:
        """Switches and uplinks that some pairs cross, and others do not, by name."""
        if (topology := self.topology) is None:
            return ()
        number = {name: place for place, name in enumerate(self.names)}
        # From the top down, so that the lowest switch above both nodes of a row is the last.
        switches = sorted(topology.below, key=lambda name: len(topology.above(name)))
        lowest, things, below = np.full(self.rows, -1), [], {}
        for place, switch in enumerate(switches):
            nodes = tuple(number[node] for node in topology.below[switch] if node in number)
            one, other = np.isin(self.one, nodes), np.isin(self.other, nodes)
            lowest[one & other] = place
            below[switch] = nodes, one != other
        for place, (switch, (nodes, over)) in enumerate(below.items()):
            across = over & (lowest >= 0)
            for kind, name, crossed in (
                (Kind.SWITCH, switch, across | (lowest == place)),
                (Kind.UPLINK, UPLINK_OF + switch, across),
            ):
                if crossed.any() and not crossed.all():
                    things.append(Thing(kind, name, nodes, np.flatnonzero(crossed)))
        return tuple(sorted(things, key=lambda thing: thing.name))

    @cached_property
    def repeated(self) -> Bools:
        """Pairs measured more than once: one measurement does not distinguish one from noise."""
        return np.bincount(self.pair, minlength=self.pairs) > 1


def table_of(
    observations: Sequence[PairObservation],
    nodes: Sequence[str],
    quantity: PairQuantity,
    topology: Topology | None = None,
) -> PairTable:
    """Return the comparable measurements of a quantity: not alone, not disturbed.

    A round of fewer than ``LEAST_PAIRS`` is left out, as are nodes that are not among ``nodes``.
    """
    number = {name: place for place, name in enumerate(nodes)}
    rows = [
        (seen.round, number[seen.nodes[0]], number[seen.nodes[1]], slowness)
        for seen in observations
        if not (seen.alone or seen.disturbed)
        and seen.nodes[0] in number
        and seen.nodes[1] in number
        and (slowness := seen.slowness(quantity)) is not None
    ]
    columns = np.array(rows, dtype=np.float64).reshape(-1, 4)
    columns = columns[np.argsort(columns[:, 0], kind="stable")]
    _, place, counts = np.unique(columns[:, 0], return_inverse=True, return_counts=True)
    columns = columns[(counts >= LEAST_PAIRS)[place.reshape(-1)]]
    rounds = np.unique(columns[:, 0], return_inverse=True)[1].reshape(-1)
    one, other = columns[:, 1:3].astype(np.int64).T
    return PairTable(tuple(nodes), rounds, one, other, columns[:, 3].copy(), topology)


FURTHEST = 3.0
"""Largest deviation of a disturbed measurement, a factor of 20, unless noise is wider."""

PRIOR_WEIGHT = 8.0
"""Weight of the expected shares of wider and disturbed measurements, in measurements."""

WIDER = 4.0
"""Ratio of the scale of wider noise to that of the core."""

_SHAPE_STEPS = 20


@dataclass(frozen=True)
class NoiseShape:
    """Shares of the noise that are wider, and that lie anywhere."""

    wide: float
    disturbed: float

    def parts(
        self, standard_squared: Floats, scale: Floats | float
    ) -> tuple[Floats, Floats, Floats | float]:
        """Return the densities of core, wider and flat part, for squared standard deviates.

        Disturbed measurements lie further off than noise. Else, before anything explains a port at
        a tenth of the rate, all residuals would be disturbed, and none noise.
        """
        height = 1 / (scale * math.sqrt(2 * math.pi))
        core = (1 - self.wide - self.disturbed) * height * np.exp(-standard_squared / 2)
        wide = self.wide / WIDER * height * np.exp(-standard_squared / (2 * WIDER**2))
        # All of the disturbed may be slower ones.
        return core, wide, self.disturbed / np.maximum(FURTHEST, 2 * WIDER * scale)

    def with_rows(self, standard: Floats, scale: Floats, rows: int) -> NoiseShape:
        """Return the shape if rows that an effect explains are noise too.

        ``standard``: their deviates; ``rows``: number of rows of the estimate. Disturbed ones stay
        as rare as in the others: else two far rows could never show anything. If many are wider the
        tail is long, and has the same share of them.
        """
        wide, of = self.wide, rows + PRIOR_WEIGHT
        for _ in range(_SHAPE_STEPS):
            core, wider, flat = NoiseShape(wide, self.disturbed).parts(standard**2, scale)
            wide = min(self.wide + float((wider / (core + wider + flat)).sum()) / of, 0.9)
        return NoiseShape(wide, max(self.disturbed, wide**2))

    def density(self, standard_squared: Floats, scale: Floats | float) -> Floats:
        """Return the density at squared standard deviates, with these scales of the core."""
        core, wide, flat = self.parts(standard_squared, scale)
        return core + wide + flat


@dataclass(frozen=True)
class Fit:
    """Fit of a table with some slow ``things``, which explain it.

    ``effects``: logarithms by which each is slower; ``owner``: for each row the thing that sets its
    time, or -1; ``levels``: for each round; ``left``: residual of each row; ``weights``: 1 for a
    row of the noise's core, 0 for a disturbed one; ``scale``: standard deviation of the core for
    one row; ``freedom``: degrees of freedom of the scale; ``shape``: of the noise; ``value``: log
    likelihood less the price of the things.
    """

    table: PairTable
    things: tuple[Thing, ...]
    effects: Floats
    owner: Ints
    levels: Floats
    left: Floats
    weights: Floats
    scale: float
    freedom: float
    shape: NoiseShape
    log_likelihood: float
    value: float

    @cached_property
    def off(self) -> Floats:
        """Slowness of each row beyond its round's level."""
        return self.left + taken(self.effects, self.owner)

    @cached_property
    def round_weights(self) -> Floats:
        """Sum of the weights of each round."""
        return round_weights(self.table, self.weights)

    @cached_property
    def owned_weights(self) -> Floats:
        """Weights of the rows that each effect sets: rounds x effects."""
        return owned_weights(self.table, self.owner, self.weights, len(self.effects))

    @cached_property
    def information(self) -> Floats:
        """Information on the effects, with the rounds' levels estimated too: effects x effects."""
        return information_of(self.owned_weights, self.round_weights)

    @cached_property
    def covariance(self) -> Floats:
        """Covariance of the effects over the squared scale: effects x effects."""
        inverse: Floats = np.linalg.pinv(self.information).astype(np.float64)
        return inverse

    def added(self, group: Ints, count: int, rows: Ints, values: Floats) -> tuple[Floats, Floats]:
        """Return score and information of one more effect, for each of ``count`` groups of rows.

        ``rows`` with their ``group``: at most one of a round in each group; ``values``: weighted
        residuals. An estimate is score over information, its variance the squared scale over the
        information. Rows that an effect sets already count for nothing.
        """
        table = self.table
        free = self.owner[rows] < 0
        group, rows, values = group[free], rows[free], values[free]
        weights, rounds = self.weights[rows], table.round[rows]
        score = sums(group, values, count)
        own = weights - weights**2 / self.round_weights[rounds]
        information = sums(group, own, count)
        if len(self.effects):
            share = -weights / self.round_weights[rounds]
            effects = (share * owned for owned in self.owned_weights[rounds].T)
            shared = np.stack([sums(group, one, count) for one in effects], axis=1)
            lost = np.einsum("ge,ef,gf->g", shared, self.covariance, shared)
            information = np.maximum(information - lost, 0.0)
        return score, information


def sums(group: Ints, values: Floats, count: int) -> Floats:
    """Return the sum of the values of each of ``count`` groups."""
    return np.bincount(group, values, count).astype(np.float64)


def taken(effects: Floats, owner: Ints) -> Floats:
    """Return the slowness that effects explain of each row."""
    explained: Floats = np.append(effects, 0.0)[owner]
    return explained


def round_weights(table: PairTable, weights: Floats) -> Floats:
    """Return the sum of the weights of each round's rows."""
    return np.maximum(sums(table.round, weights, table.rounds), 1e-9)


def owned_weights(table: PairTable, owner: Ints, weights: Floats, count: int) -> Floats:
    """Return the weights of the rows that each of ``count`` effects sets: rounds x effects."""
    mine = owner >= 0
    place = table.round[mine] * count + owner[mine]
    return sums(place, weights[mine], table.rounds * count).reshape(table.rounds, count)


def information_of(owned: Floats, of_rounds: Floats) -> Floats:
    """Return the information on effects whose rows have these weights, rounds x effects."""
    return np.diag(owned.sum(axis=0)) - owned.T @ (owned / of_rounds[:, None])


@dataclass(frozen=True)
class Posterior:
    """Distribution of an effect on points, given its contrasts with the others.

    With a flat prior this is the exact conditional inference on a place (Pitman 1939; Fisher 1934):
    the probability at or below 0 is the p-value of no effect, whatever the shape of the noise.
    """

    points: Floats
    logs: Floats

    @classmethod
    def of(
        cls,
        contrasts: Floats,
        scales: Floats,
        shape: NoiseShape,
        factors: Iterable[float] = (1.0,),
    ) -> list[Posterior]:
        """Return a distribution per factor, from rounds' contrasts with scales times the factor."""
        points = _points(contrasts, scales)
        log_widths = np.log(np.gradient(points))
        off = ((contrasts[None, :] - points[:, None]) / scales[None, :]) ** 2
        found = []
        for factor in factors:
            densities = shape.density(off / factor**2, scales * factor)
            logs = np.log(densities).sum(axis=1) + log_widths
            found.append(cls(points, logs - np.logaddexp.reduce(logs)))
        return found

    def log_at_most(self, bound: float) -> float:
        """Return the logarithm of the probability that the effect is at most a bound."""
        return float(np.logaddexp.reduce(self.logs[self.points <= bound]))

    def log_at_least(self, bound: float) -> float:
        """Return the logarithm of the probability that the effect is at least a bound."""
        return float(np.logaddexp.reduce(self.logs[self.points >= bound]))

    def quantile(self, share: float) -> float:
        """Return the point below which that share of the distribution lies."""
        return float(np.interp(share, np.exp(self.logs).cumsum(), self.points))


_MOST_CENTRES = 24


def _points(contrasts: Floats, scales: Floats) -> Floats:
    narrow = float(np.sqrt(1 / np.sum(1 / scales**2)))
    some = contrasts
    if len(some) > _MOST_CENTRES:
        some = np.quantile(contrasts, np.linspace(0, 1, _MOST_CENTRES))
    middle = float(np.median(contrasts))
    fine = np.linspace(-9, 9, 109) * narrow
    wide = np.linspace(-6, 6, 61) * float(np.median(scales))
    parts = [np.linspace(-FURTHEST, FURTHEST, 301), fine, middle + fine]
    parts += [centre + wide for centre in some] + [np.mean(contrasts) + fine]
    return np.unique(np.concatenate(parts))
