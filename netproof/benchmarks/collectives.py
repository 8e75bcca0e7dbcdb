"""Messages that MPI's collective operations put on a node's link, for any benchmark.

Upper limits hold for linear algorithms and those of Thakur, Rabenseifner and Gropp, "Optimization
of collective communication operations in MPICH", IJHPCA 19 (2005). None of them knows the ranks
that share a node. The unit is the message size as IMB and OMB define it: one rank's part for
Allgather, Gather, Scatter, Alltoall and Reduce_scatter_block, the whole for the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from operator import ne


def _outside(ranks: int, per_node: int) -> int:
    """Return the messages of a flat tree: the root's link carries one per rank on another node."""
    return ranks - per_node


def _allgather(ranks: int, per_node: int) -> int:
    """Return the larger of a linear exchange, and a gather with the whole down a binomial tree."""
    rounds = (ranks - 1).bit_length()
    return max(per_node * (ranks - per_node), ranks - per_node + ranks * rounds)


def _alltoall(ranks: int, per_node: int) -> int:
    """Return the larger of a linear exchange, and Bruck's: half of all parts in each round."""
    rounds = (ranks - 1).bit_length()
    return per_node * max(ranks - per_node, (ranks + 1) // 2 * rounds)


MOST_ON_LINK: dict[str, Callable[[int, int], int]] = {
    **dict.fromkeys(("Bcast", "Reduce", "Gather", "Gatherv", "Scatter", "Scatterv"), _outside),
    # Reduced and sent back down flat trees, or in one part per rank.
    "Allreduce": lambda ranks, per_node: 2 * _outside(ranks, per_node),
    "Reduce_scatter": lambda ranks, per_node: 1 + _outside(ranks, per_node),
    "Reduce_scatter_block": lambda ranks, per_node: (ranks + 1) * _outside(ranks, per_node),
    **dict.fromkeys(("Allgather", "Allgatherv"), _allgather),
    **dict.fromkeys(("Alltoall", "Alltoallv"), _alltoall),
}
"""The most message sizes on one node's link, by operation, from ranks and ranks per node."""


DEALT_OUT = frozenset(("Reduce_scatter",))
"""Operations that deal one message out to all ranks."""

OF_ONE_RANK = frozenset(("Bcast", "Reduce", "Gather", "Gatherv", "Scatter", "Scatterv"))
"""Operations in which all messages come from one rank, or go to it."""


def _to_all_others(nodes: Sequence[str]) -> int:
    """Return the messages from every rank to every rank of other nodes."""
    return sum(count * (len(nodes) - count) for count in Counter(nodes).values())


def _to_other_nodes(nodes: Sequence[str]) -> int:
    """Return the messages from every rank to every other node, once where its ranks share it."""
    return len(nodes) * (len(set(nodes)) - 1)


def _of_root(nodes: Sequence[str]) -> int:
    """Return the messages to or from the ranks of other nodes than the root's, the fullest."""
    return len(nodes) - max(Counter(nodes).values())


def _once_a_node(nodes: Sequence[str]) -> int:
    """Return the messages to every node but one."""
    return len(set(nodes)) - 1


def _to_next(nodes: Sequence[str]) -> int:
    """Return the messages from every rank to the next one, where that is on another node."""
    return sum(map(ne, nodes, [*nodes[1:], nodes[0]]))


def _to_other_half(nodes: Sequence[str]) -> int:
    """Return the messages from the first half of the ranks to their partners in the second."""
    half = len(nodes) // 2
    return sum(map(ne, nodes[:half], nodes[half : 2 * half]))


CROSSING: Mapping[str, Callable[[Sequence[str]], int]] = {
    **dict.fromkeys(("Bcast", "Reduce", "Reduce_scatter"), _once_a_node),
    "Reduce_scatter_block": lambda nodes: len(nodes) * _once_a_node(nodes),
    "Allreduce": lambda nodes: 2 * _once_a_node(nodes),
    **dict.fromkeys(("Allgather", "Allgatherv"), _to_other_nodes),
    **dict.fromkeys(("Gather", "Gatherv", "Scatter", "Scatterv"), _of_root),
    **dict.fromkeys(("Alltoall", "Alltoallv"), _to_all_others),
    **dict.fromkeys(("PingPong", "PingPing", "Biband"), lambda nodes: 2 * _to_other_half(nodes)),
    "Uniband": _to_other_half,
    "Sendrecv": _to_next,
    "Exchange": lambda nodes: 2 * _to_next(nodes),
}
"""The least message sizes that cross between nodes in a call, from the node of each rank.

Ranks of one node share memory: data that all of them need arrives once, and a sum of theirs leaves
once (Chan et al., "Collective communication: theory, practice, and experience", 2007). Functions
of IMB between ranks have their own names.
"""
