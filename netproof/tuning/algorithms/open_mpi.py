"""Open MPI: the component ``tuned`` of its framework ``coll``.

Numbers and names are those that ``ompi_info --param coll tuned --level 9`` of 4.1.4 and 5.0.11
prints.
"""

from netproof.tuning.algorithms.interface import MpiLibrary, numbered
from netproof.tuning.parameters import VALUE, Told


def _setting(function: str) -> Told:
    return Told(
        {
            "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
            f"OMPI_MCA_coll_tuned_{function.lower()}_algorithm": VALUE,
        }
    )


LIBRARY = MpiLibrary(
    number=1,
    name="Open MPI",
    setting=_setting,
    algorithms={
        "Allreduce": numbered(
            "basic_linear",
            "nonoverlapping",
            "recursive_doubling",
            "ring",
            "segmented_ring",
            "rabenseifner",
        ),
        "Alltoall": numbered("linear", "pairwise", "modified_bruck", "linear_sync", "two_proc"),
        "Bcast": numbered(
            "basic_linear",
            "chain",
            "pipeline",
            "split_binary_tree",
            "binary_tree",
            "binomial",
            "knomial",
            "scatter_allgather",
            "scatter_allgather_ring",
        ),
        "Allgather": numbered(
            "linear", "bruck", "recursive_doubling", "ring", "neighbor", "two_proc", "sparbit"
        ),
        "Reduce": numbered(
            "linear", "chain", "pipeline", "binary", "binomial", "in-order_binary", "rabenseifner"
        ),
        "Reduce_scatter": numbered("non-overlapping", "recursive_halving", "ring", "butterfly"),
        "Barrier": numbered(
            "linear", "double_ring", "recursive_doubling", "bruck", "two_proc", "tree"
        ),
    },
    since={("Allgather", "7"): 5},
)
