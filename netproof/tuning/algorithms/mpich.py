"""MPICH: its control variables.

Names are as ``mpivars`` of 5.0.2 prints them, except ``auto``, the library's own choice, and
``ccl``, which is for GPUs. By default MPICH falls back to its own choice silently: here an
algorithm that cannot do a call must say so.
"""

from netproof.tuning.algorithms.interface import MpiLibrary, named
from netproof.tuning.parameters import VALUE, Told

HEARD = {"MPIR_CVAR_COLLECTIVE_FALLBACK": "print"}
FELL_BACK = "User set collective algorithm is not usable"


def setting(function: str) -> Told:
    """Return the variable of a function, for MPICH and libraries derived from it."""
    return Told({f"MPIR_CVAR_{function.upper()}_INTRA_ALGORITHM": VALUE})


ALGORITHMS = {
    "Allreduce": named(
        "nb",
        "smp",
        "recursive_doubling",
        "recursive_multiplying",
        "reduce_scatter_allgather",
        "tree",
        "recexch",
        "ring",
        "k_reduce_scatter_allgather",
    ),
    "Alltoall": named(
        "brucks", "k_brucks", "nb", "pairwise", "pairwise_sendrecv_replace", "scattered"
    ),
    "Bcast": named(
        "binomial",
        "nb",
        "smp",
        "scatter_recursive_doubling_allgather",
        "scatter_ring_allgather",
        "pipelined_tree",
        "tree",
    ),
    "Allgather": named(
        "brucks",
        "k_brucks",
        "nb",
        "recursive_doubling",
        "ring",
        "recexch_doubling",
        "recexch_halving",
    ),
    "Reduce": named("binomial", "nb", "smp", "reduce_scatter_gather"),
    "Reduce_scatter": named(
        "nb", "noncommutative", "pairwise", "recursive_doubling", "recursive_halving"
    ),
    "Barrier": named("nb", "smp", "k_dissemination", "recexch"),
}

LIBRARY = MpiLibrary(
    number=2,
    name="MPICH",
    setting=setting,
    algorithms=ALGORITHMS,
    heard=HEARD,
    fell_back=FELL_BACK,
)
