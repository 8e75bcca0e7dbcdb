"""Algorithms of collectives that MPI libraries offer, and the values that a sweep of one tries."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from netproof.errors import NetproofError
from netproof.experiments.parameters import VALUE, Assignment, insist_on_values

FUNCTIONS = ("Allreduce", "Alltoall", "Bcast", "Allgather", "Reduce", "Reduce_scatter", "Barrier")
"""Functions of IMB whose algorithms are swept; Barrier has no message."""

Algorithms = Mapping[str, Mapping[str, str]]
"""Values by function, each with its name, empty where the value is the name."""


def named(words: str) -> dict[str, str]:
    """Return algorithms chosen by name."""
    return dict.fromkeys(words.split(), "")


def numbered(words: str, first: int = 1) -> dict[str, str]:
    """Return algorithms chosen by number, in order."""
    return {str(number): name for number, name in enumerate(words.split(), first)}


@dataclass(frozen=True)
class MpiLibrary:
    """An MPI library whose algorithms an environment variable chooses.

    ``name``: beginning of the site's name of the library; ``setting``: variables and arguments for
    a function; ``algorithms``: of the newest version; ``since``: the first major version by
    function and value; ``heard``: variables that only a sweep sets, for more output; ``ignored``:
    the library's line that it ignores the value altogether; ``fell_back``: its line that it took
    its own choice in a call.
    """

    name: str
    setting: Callable[[str], Assignment]
    algorithms: Algorithms
    since: Mapping[tuple[str, str], int] = field(default_factory=dict)
    heard: Mapping[str, str] = field(default_factory=dict)
    ignored: str = ""
    fell_back: str = ""

    def values(self, function: str, library: str) -> dict[str, str]:
        """Return a function's values with names, by the library's version; NetproofError."""
        if function not in self.algorithms:
            raise NetproofError(
                f"{library} lets nobody choose the algorithm of {function} by an environment"
                f" variable that is known; it does of {', '.join(self.algorithms)}"
            )
        version = re.search(r"(\d+)\.", library)
        major = int(version[1]) if version else None
        return {
            value: name
            for value, name in self.algorithms[function].items()
            if major is None or self.since.get((function, value), 0) <= major
        }


OPEN_MPI = MpiLibrary(
    name="Open MPI",
    setting=lambda function: Assignment(
        {
            "OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
            f"OMPI_MCA_coll_tuned_{function.lower()}_algorithm": VALUE,
        }
    ),
    algorithms={
        "Allreduce": numbered(
            "basic_linear nonoverlapping recursive_doubling ring segmented_ring rabenseifner"
        ),
        "Alltoall": numbered("linear pairwise modified_bruck linear_sync two_proc"),
        "Bcast": numbered(
            "basic_linear chain pipeline split_binary_tree binary_tree "
            "binomial knomial scatter_allgather scatter_allgather_ring"
        ),
        "Allgather": numbered("linear bruck recursive_doubling ring neighbor two_proc sparbit"),
        "Reduce": numbered("linear chain pipeline binary binomial in-order_binary rabenseifner"),
        "Reduce_scatter": numbered("non-overlapping recursive_halving ring butterfly"),
        "Barrier": numbered("linear double_ring recursive_doubling bruck two_proc tree"),
    },
    since={("Allgather", "7"): 5},
)
"""The component ``tuned`` of the framework ``coll``.

Numbers and names are those that ``ompi_info --param coll tuned --level 9`` of 4.1.4 and 5.0.11
prints.
"""

MPICH = MpiLibrary(
    name="MPICH",
    setting=lambda function: Assignment({f"MPIR_CVAR_{function.upper()}_INTRA_ALGORITHM": VALUE}),
    algorithms={
        "Allreduce": named(
            "nb smp recursive_doubling recursive_multiplying "
            "reduce_scatter_allgather tree recexch ring "
            "k_reduce_scatter_allgather"
        ),
        "Alltoall": named("brucks k_brucks nb pairwise pairwise_sendrecv_replace scattered"),
        "Bcast": named(
            "binomial nb smp scatter_recursive_doubling_allgather "
            "scatter_ring_allgather pipelined_tree tree"
        ),
        "Allgather": named(
            "brucks k_brucks nb recursive_doubling ring recexch_doubling recexch_halving"
        ),
        "Reduce": named("binomial nb smp reduce_scatter_gather"),
        "Reduce_scatter": named("nb noncommutative pairwise recursive_doubling recursive_halving"),
        "Barrier": named("nb smp k_dissemination recexch"),
    },
    heard={"MPIR_CVAR_COLLECTIVE_FALLBACK": "print"},
    fell_back="User set collective algorithm is not usable",
)
"""Names are as ``mpivars`` of 5.0.2 prints them, without ``auto``, the library's own choice, and
``ccl``, which is for GPUs. By default MPICH falls back to its own choice silently: here an
algorithm that cannot do a call must say so.
"""

INTEL_PRESETS = {
    "Allreduce": 32,
    "Alltoall": 18,
    "Bcast": 22,
    "Allgather": 6,
    "Reduce": 19,
    "Reduce_scatter": 6,
    "Barrier": 11,
}
"""The last preset of each function: the variable's range in ``impi_info -v`` of 2021.18.

By the Developer Reference a function has more presets than algorithms, so that names of algorithms
are not names of presets. 0 is the library's own choice.
"""

INTEL_MPI = MpiLibrary(
    name="Intel MPI",
    setting=lambda function: Assignment({f"I_MPI_ADJUST_{function.upper()}": VALUE}),
    algorithms={
        function: {str(number): "" for number in range(1, last + 1)}
        for function, last in INTEL_PRESETS.items()
    },
    ignored=r"Incorrect (algorithm|adjust value): .*will be ignored",
)

MVAPICH2_VARIABLES = {
    "Allreduce": "MV2_INTER_ALLREDUCE_TUNING",
    "Alltoall": "MV2_ALLTOALL_TUNING",
    "Allgather": "MV2_INTER_ALLGATHER_TUNING",
}

MVAPICH2 = MpiLibrary(
    name="MVAPICH2",
    setting=lambda function: Assignment({MVAPICH2_VARIABLES[function]: VALUE}),
    algorithms={
        "Allreduce": numbered("recursive_doubling reduce_scatter_allgather"),
        "Alltoall": numbered("bruck recursive_doubling scatter_dest pairwise", 0),
        "Allgather": numbered("recursive_doubling_allgather_comm recursive_doubling bruck ring"),
    },
)
"""Up to 2.3: variables that override its tuning tables.

Numbers are those in the comments of its ``allreduce_tuning.h``, ``alltoall_tuning.h`` and
``allgather_tuning.h``; no list is public for the other functions.
"""

MVAPICH = dataclasses.replace(
    MPICH,
    name="MVAPICH",
    algorithms={
        **MPICH.algorithms,
        "Barrier": {**MPICH.algorithms["Barrier"], **named("osu_pairwise")},
    },
)
"""From 3.0 on, derived from MPICH, with its variables.

Its list of environment variables (mvapich-docs.readthedocs.io) has MPICH's names and further ones
that begin with ``osu_``.
"""

LIBRARIES = (OPEN_MPI, MPICH, INTEL_MPI, MVAPICH2, MVAPICH)
"""The first one matches whose name begins a site's: MVAPICH2 is before MVAPICH."""


def title(function: str) -> str:
    """Return the name of the setting."""
    return f"{function} algorithm"


def library_of(name: str) -> MpiLibrary:
    """Return the library of a site's name for it; NetproofError where it is not known."""
    found = [one for one in LIBRARIES if name.lower().startswith(one.name.lower())]
    if not found:
        raise NetproofError(
            f"choosing an algorithm is not known for {name}, only for"
            f" {', '.join(known.name for known in LIBRARIES)}: name its environment variable"
            " instead, with --values and --protocol mpi"
        )
    return found[0]


def choice(library: str, function: str, given: Sequence[str] = ()) -> dict[str, str]:
    """Return the values that a sweep of a function tries, with their names, in order.

    ``library``: as its site names it; ``given``: names or values in place of all; unknown ones are
    passed on, since other versions have others. Raise NetproofError for a function or a library
    without algorithms.
    """
    if function not in FUNCTIONS:
        raise NetproofError(
            f"{function!r} is no function whose algorithms are swept; those are"
            f" {', '.join(FUNCTIONS)}"
        )
    names = library_of(library).values(function, library)
    if given:
        by_name = {name: value for value, name in names.items() if name}
        values = [by_name.get(word, word) for word in given]
        insist_on_values(values)
        names = {value: names.get(value, "") for value in values}
    return names
