"""What MPI's collective operations put on a node's link, whichever benchmark measures them.

Of those algorithms in Thakur, Rabenseifner and Gropp, "Optimization of collective communication
operations in MPICH", IJHPCA 19 (2005), and of the linear ones, none of which knows which ranks
share a node, the most that one puts there. Counted in message sizes as IMB and OMB define them: of
Allgather, Gather, Scatter, Alltoall and Reduce_scatter_block those of one rank's part, of the
others those of the whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence


def _outside(ranks: int, a_node: int) -> int:
    """A flat tree: the root's link carries a message for each rank on another node."""
    return ranks - a_node


def _allgather(ranks: int, a_node: int) -> int:
    """Each rank from each by itself; or gathered by one, and the whole down a binomial tree."""
    rounds = (ranks - 1).bit_length()
    return max(a_node * (ranks - a_node), ranks - a_node + ranks * rounds)


def _alltoall(ranks: int, a_node: int) -> int:
    """Each rank to each on its own; or Bruck's, half of all parts in each of its rounds."""
    rounds = (ranks - 1).bit_length()
    return a_node * max(ranks - a_node, (ranks + 1) // 2 * rounds)


MOST_ON_LINK: dict[str, Callable[[int, int], int]] = {
    **dict.fromkeys(("Bcast", "Reduce", "Gather", "Gatherv", "Scatter", "Scatterv"), _outside),
    # Reduced and sent back down flat trees, or in one part for each rank.
    "Allreduce": lambda ranks, a_node: 2 * _outside(ranks, a_node),
    "Reduce_scatter": lambda ranks, a_node: 1 + _outside(ranks, a_node),
    "Reduce_scatter_block": lambda ranks, a_node: (ranks + 1) * _outside(ranks, a_node),
    **dict.fromkeys(("Allgather", "Allgatherv"), _allgather),
    **dict.fromkeys(("Alltoall", "Alltoallv"), _alltoall),
}
"""The most message sizes on one node's link, by operation, of ranks and ranks a node."""


DEALT_OUT = frozenset(("Reduce_scatter",))
"""Operations of which one message is dealt out to all ranks."""

OF_ONE_RANK = frozenset(("Bcast", "Reduce", "Gather", "Gatherv", "Scatter", "Scatterv"))
"""Operations in which all messages come from one rank, or go to it."""


def between(pairs: Iterable[tuple[str, str]]) -> int:
    """How many of these pairs of nodes are two."""
    return sum(first != second for first, second in pairs)


def _to_all_others(nodes: Sequence[str]) -> int:
    """From every rank to every rank of other nodes."""
    return sum(count * (len(nodes) - count) for count in Counter(nodes).values())


def _to_other_nodes(nodes: Sequence[str]) -> int:
    """Once from every rank to every other node, where its ranks share it."""
    return len(nodes) * (len(set(nodes)) - 1)


def _of_root(nodes: Sequence[str]) -> int:
    """To or from the ranks of other nodes than the root's, which has the most."""
    return len(nodes) - max(Counter(nodes).values())


def _once_a_node(nodes: Sequence[str]) -> int:
    """To every node but one."""
    return len(set(nodes)) - 1


LEAST_CROSSING: Mapping[str, Callable[[Sequence[str]], int]] = {
    **dict.fromkeys(("Bcast", "Reduce", "Reduce_scatter"), _once_a_node),
    "Reduce_scatter_block": lambda nodes: len(nodes) * _once_a_node(nodes),
    "Allreduce": lambda nodes: 2 * _once_a_node(nodes),
    **dict.fromkeys(("Allgather", "Allgatherv"), _to_other_nodes),
    **dict.fromkeys(("Gather", "Gatherv", "Scatter", "Scatterv"), _of_root),
    **dict.fromkeys(("Alltoall", "Alltoallv"), _to_all_others),
}
"""The least message sizes that cross between nodes in a call, by the node of each rank.

Ranks of one node share memory, so that what they all need has to come once, and what they all add
to has to leave once (Chan et al., "Collective communication: theory, practice, and experience",
2007).
"""
