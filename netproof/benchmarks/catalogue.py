"""What is measured: the functions of IMB-MPI1 and the variants of NetPIPE, as data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

NETPIPE_PROTOCOLS = ("tcp", "mpi")
NETPIPE_PATHS = ("between", "inside")
"""Between two nodes, and between two ranks of one node."""
NETPIPE_DIRECTIONS = ("oneway", "bidirectional")

FEATURES = {
    "netpipe-tcp": "NetPIPE over TCP (NPtcp)",
    "netpipe-mpi": "NetPIPE over MPI (NPmpi)",
    "imb": "Intel MPI Benchmarks (IMB-MPI1)",
}
"""What an environment can offer; each is a feature of it, or absent with a reason."""


@dataclass(frozen=True)
class ImbFunction:
    """One benchmark of IMB-MPI1.

    ``pair``: runs on two ranks, whatever the job has. ``pairs``: needs an even number of ranks.
    ``least_bytes``: the smallest message that is asked for, 4 where the data are floats, None
    where there is no message. ``default``: part of a plain acceptance run.
    """

    name: str
    pair: bool = False
    pairs: bool = False
    least_bytes: int | None = 1
    default: bool = False


IMB_FUNCTIONS = (
    ImbFunction("PingPong", pair=True, default=True),
    ImbFunction("PingPing", pair=True),
    ImbFunction("Sendrecv", default=True),
    ImbFunction("Exchange"),
    ImbFunction("Uniband", pairs=True),
    ImbFunction("Biband", pairs=True),
    ImbFunction("Bcast", default=True),
    ImbFunction("Allgather", default=True),
    ImbFunction("Allgatherv"),
    ImbFunction("Gather"),
    ImbFunction("Gatherv"),
    ImbFunction("Scatter"),
    ImbFunction("Scatterv"),
    ImbFunction("Alltoall", default=True),
    ImbFunction("Alltoallv"),
    ImbFunction("Reduce", least_bytes=4),
    ImbFunction("Reduce_scatter", least_bytes=4, default=True),
    ImbFunction("Reduce_scatter_block", least_bytes=4),
    ImbFunction("Allreduce", least_bytes=4, default=True),
    ImbFunction("Barrier", least_bytes=None, default=True),
)

DEFAULT_IMB = [function.name for function in IMB_FUNCTIONS if function.default]
OTHER_IMB = [function.name for function in IMB_FUNCTIONS if not function.default]
"""Names of the functions of a plain acceptance run, and of those beyond it."""

LINK_FACTORS = {"Sendrecv": 2.0, "Exchange": 2.0, "Biband": 2.0}
"""Bandwidth of a function over what one link carries each way: these count both ways."""

_BY_NAME = {function.name: function for function in IMB_FUNCTIONS}


def imb_function(name: str) -> ImbFunction:
    """The IMB function of that name; KeyError where there is none."""
    return _BY_NAME[name]


def check_name(benchmark: str, function: str) -> str:
    """Name of the class in ``checks/`` that judges a function, and of its references.

    ``ImbReduceScatter`` for IMB's Reduce_scatter, ``NetpipeTcp`` for NetPIPE's tcp.
    """
    return benchmark.capitalize() + "".join(
        part[:1].upper() + part[1:] for part in function.split("_")
    )


def link_factor(function: ImbFunction, ranks: int, ranks_per_node: int) -> float:
    """The bandwidth that a function reports over what one node's link then carries each way.

    PingPong and PingPing report one message in its time. Sendrecv counts the message sent and the
    one received, Exchange two of each; whatever the ranks a node, one or two messages leave it.
    Uniband and Biband add all pairs up, of which a node has one for each of its ranks. Source:
    the IMB User Guide, "Bandwidth calculation".
    """
    factor = LINK_FACTORS.get(function.name, 1.0)
    return factor * (ranks // 2) / ranks_per_node if function.pairs else factor


def messages_on_link(function: ImbFunction, ranks: int, ranks_per_node: int) -> tuple[float, float]:
    """How many message sizes cross a node's link one after the other in a function's time.

    The least and the most. Between two ranks they are equal: one message, in Exchange two; of
    Uniband and Biband, whose time is the share of one message among all pairs, as many as
    ``link_factor`` says. Of a collective the least is one, the most what the algorithm puts there
    that needs it most, of those in Thakur, Rabenseifner and Gropp, "Optimization of collective
    communication operations in MPICH", IJHPCA 19 (2005), and of the linear ones, none of which
    knows which ranks share a node. Sizes are as the IMB User Guide defines them: of Allgather,
    Gather, Scatter, Alltoall and Reduce_scatter_block those of one rank's part, of the others
    those of the whole.
    """
    if function.name not in _COLLECTIVES_MOST:
        count = 2.0 if function.name == "Exchange" else 1.0
        if function.pairs:
            count = 1 / link_factor(function, ranks, ranks_per_node)
        return count, count
    return 1.0, float(max(1, _COLLECTIVES_MOST[function.name](ranks, ranks_per_node)))


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


_COLLECTIVES_MOST: dict[str, Callable[[int, int], int]] = {
    **dict.fromkeys(("Bcast", "Reduce", "Gather", "Gatherv", "Scatter", "Scatterv"), _outside),
    # Reduced and sent back down flat trees, or in one part for each rank.
    "Allreduce": lambda ranks, a_node: 2 * _outside(ranks, a_node),
    "Reduce_scatter": lambda ranks, a_node: 1 + _outside(ranks, a_node),
    "Reduce_scatter_block": lambda ranks, a_node: (ranks + 1) * _outside(ranks, a_node),
    **dict.fromkeys(("Allgather", "Allgatherv"), _allgather),
    **dict.fromkeys(("Alltoall", "Alltoallv"), _alltoall),
}


def imb_sizes(function: ImbFunction, most_bytes: int) -> tuple[int, ...]:
    """Message sizes in bytes asked for: powers of two up to ``most_bytes``; (0,) for Barrier."""
    if function.least_bytes is None:
        return (0,)
    sizes = []
    size = function.least_bytes
    while size <= most_bytes:
        sizes.append(size)
        size *= 2
    return tuple(sizes)
