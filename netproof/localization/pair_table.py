"""What pairs measured of one quantity, in columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from netproof.localization.observations import Pair, PairObservation, PairQuantity

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEAST_PAIRS = 2
"""Pairs of a round at least: rounds differ in level, so a pair is compared within its round."""

LEAST_NODES = 2 * LEAST_PAIRS
"""Nodes at least so that one can be cleared or accused; of fewer, a round has a single pair."""


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
        """Measurements."""
        return len(self.slowness)

    @cached_property
    def rounds(self) -> int:
        """Rounds."""
        return int(self.round[-1]) + 1 if self.rows else 0

    @cached_property
    def pair(self) -> Ints:
        """A number for each row's pair, the same for both orders of its nodes."""
        low, high = np.minimum(self.one, self.other), np.maximum(self.one, self.other)
        return np.unique(low * len(self.names) + high, return_inverse=True)[1].reshape(-1)

    @cached_property
    def pairs(self) -> int:
        """Different pairs."""
        return int(self.pair.max()) + 1 if self.rows else 0

    @cached_property
    def medians(self) -> Floats:
        """The median slowness of each round."""
        starts = np.searchsorted(self.round, np.arange(self.rounds + 1))
        return np.array([np.median(self.slowness[a:b]) for a, b in pairwise(starts)])

    @cached_property
    def measured(self) -> Ints:
        """In how many rounds each node was."""
        return np.bincount(self.nodes_of_rows, minlength=len(self.names))

    @cached_property
    def nodes_of_rows(self) -> Ints:
        """Node of each end of each row: first all ``one``, then all ``other``."""
        return np.concatenate([self.one, self.other])


def table_of(
    observations: Sequence[PairObservation], nodes: Sequence[str], quantity: PairQuantity
) -> PairTable:
    """The measurements of a quantity that can be compared: not alone, not disturbed.

    A round of fewer than ``LEAST_PAIRS`` is left out, as are nodes that are not among ``nodes``.
    Where a node is there twice in a round, the first counts.
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
