"""Measurements of pairs of nodes in the launches of a run, single and in columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from netproof.errors import NetproofError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Pair = tuple[str, str]


class PairQuantity(StrEnum):
    """Time of a small message in µs, or rate of a large one in MB/s.

    ``BOTH_WAYS``: the rate while both nodes send, which loads what pairs share as far as it can.
    """

    LATENCY = "latency"
    RATE = "rate"
    BOTH_WAYS = "rate both ways"

    @property
    def of_nodes(self) -> bool:
        """True if nodes are judged by it, and not only what several pairs share."""
        return self is not PairQuantity.BOTH_WAYS


@dataclass(frozen=True)
class PairObservation:
    """Measurement of one pair of nodes in one launch.

    ``round``: the launch's number, the same for all of its pairs; ``time_us``: of a small message,
    and ``rate_mb_s``: of a large one, None if not measured; ``alone``: all other nodes were silent;
    ``disturbed``: something else loaded its nodes; ``both_ways_mb_s``: rate in each direction while
    both nodes send. Raises NetproofError if a pair is one node, nothing was measured, or a figure
    is not above 0 and finite.
    """

    round: int
    nodes: Pair
    time_us: float | None = None
    rate_mb_s: float | None = None
    alone: bool = False
    disturbed: bool = False
    both_ways_mb_s: float | None = None

    def __post_init__(self) -> None:
        fault = None
        if self.nodes[0] == self.nodes[1]:
            fault = "a pair is two different nodes"
        elif self.time_us is None and self.rate_mb_s is None and self.both_ways_mb_s is None:
            fault = "neither a time nor a rate"
        for name in ("time_us", "rate_mb_s", "both_ways_mb_s"):
            value = getattr(self, name)
            if fault is None and value is not None and not 0 < value < math.inf:
                fault = f"{name} is {value}, and has to be above 0 and finite"
        if fault is not None:
            raise NetproofError(f"round {self.round}, {self.nodes[0]} – {self.nodes[1]}: {fault}")

    def slowness(self, quantity: PairQuantity) -> float | None:
        """Return the logarithm of the time, or of one over the rate: larger is slower."""
        if quantity is PairQuantity.LATENCY:
            return None if self.time_us is None else math.log(self.time_us)
        rate = self.rate_mb_s if quantity is PairQuantity.RATE else self.both_ways_mb_s
        return None if rate is None else -math.log(rate)


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


def table_of(
    observations: Sequence[PairObservation], nodes: Sequence[str], quantity: PairQuantity
) -> PairTable:
    """Return the comparable measurements of a quantity: not alone, not disturbed.

    A round of fewer than ``LEAST_PAIRS`` is left out, as are nodes that are not among ``nodes``. If
    a node is there twice in a round, the first counts.
    """
    number = {name: place for place, name in enumerate(nodes)}
    by_round: dict[int, list[tuple[Pair, float]]] = {}
    busy: set[tuple[int, str]] = set()
    for seen in observations:
        slowness = seen.slowness(quantity)
        if seen.alone or seen.disturbed or slowness is None:
            continue
        ends = {(seen.round, node) for node in seen.nodes}
        if all(node in number for node in seen.nodes) and not ends & busy:
            busy |= ends
            by_round.setdefault(seen.round, []).append((seen.nodes, slowness))
    rows = [
        (place, number[one], number[other], slowness)
        for place, name in enumerate(
            sorted(r for r, pairs in by_round.items() if len(pairs) >= LEAST_PAIRS)
        )
        for (one, other), slowness in by_round[name]
    ]
    columns = list(zip(*rows, strict=True)) if rows else [(), (), (), ()]
    whole = [np.array(column, dtype=np.int64) for column in columns[:3]]
    return PairTable(tuple(nodes), *whole, np.array(columns[3], dtype=np.float64))
