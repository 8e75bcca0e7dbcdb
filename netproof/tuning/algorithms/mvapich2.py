"""MVAPICH2, up to 2.3: variables that override its tuning tables.

Numbers are those in the comments of its ``allreduce_tuning.h``, ``alltoall_tuning.h`` and
``allgather_tuning.h``; no list is public for the other functions.
"""

from netproof.tuning.algorithms.interface import MpiLibrary, numbered
from netproof.tuning.parameters import VALUE, Told

VARIABLES = {
    "Allreduce": "MV2_INTER_ALLREDUCE_TUNING",
    "Alltoall": "MV2_ALLTOALL_TUNING",
    "Allgather": "MV2_INTER_ALLGATHER_TUNING",
}


def _setting(function: str) -> Told:
    return Told({VARIABLES[function]: VALUE})


LIBRARY = MpiLibrary(
    number=4,
    name="MVAPICH2",
    setting=_setting,
    algorithms={
        "Allreduce": numbered("recursive_doubling", "reduce_scatter_allgather"),
        "Alltoall": {
            "0": "bruck",
            "1": "recursive_doubling",
            "2": "scatter_dest",
            "3": "pairwise",
        },
        "Allgather": numbered(
            "recursive_doubling_allgather_comm", "recursive_doubling", "bruck", "ring"
        ),
    },
)
