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

OF_ONE_RANK = frozenset(("Bcast", "Reduce", "Gather", "Gatherv", "Scatter", "Scatterv"))
"""Operations in which all messages come from one rank, or go to it."""

MOST_ON_LINK: dict[str, Callable[[int, int], int]] = {
    # A flat tree: the root's link carries one per rank on another node.
    **dict.fromkeys(OF_ONE_RANK, lambda ranks, per_node: ranks - per_node),
    # Reduced and sent back down flat trees, or in one part per rank.
    "Allreduce": lambda ranks, per_node: 2 * (ranks - per_node),
    "Reduce_scatter": lambda ranks, per_node: 1 + ranks - per_node,
    "Reduce_scatter_block": lambda ranks, per_node: (ranks + 1) * (ranks - per_node),
    # The larger of a linear exchange, and a gather with the whole down a binomial tree.
    **dict.fromkeys(
        ("Allgather", "Allgatherv"),
        lambda ranks, per_node: max(
            per_node * (ranks - per_node), ranks - per_node + ranks * (ranks - 1).bit_length()
        ),
    ),
    # The larger of a linear exchange, and Bruck's: half of all parts in each round.
    **dict.fromkeys(
        ("Alltoall", "Alltoallv"),
        lambda ranks, per_node: (
            per_node * max(ranks - per_node, (ranks + 1) // 2 * (ranks - 1).bit_length())
        ),
    ),
}
"""The most message sizes on one node's link, by operation, from ranks and ranks per node."""

DEALT_OUT = frozenset(("Reduce_scatter",))
"""Operations that deal one message out to all ranks."""


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
    # From every rank to every other node, once where its ranks share it.
    **dict.fromkeys(("Allgather", "Allgatherv"), lambda nodes: len(nodes) * (len(set(nodes)) - 1)),
    # To or from the ranks of other nodes than the root's, the fullest.
    **dict.fromkeys(
        ("Gather", "Gatherv", "Scatter", "Scatterv"),
        lambda nodes: len(nodes) - max(Counter(nodes).values()),
    ),
    # From every rank to every rank of other nodes.
    **dict.fromkeys(
        ("Alltoall", "Alltoallv"),
        lambda nodes: sum(count * (len(nodes) - count) for count in Counter(nodes).values()),
    ),
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
