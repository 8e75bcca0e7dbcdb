"""Intel MPI: ``I_MPI_ADJUST_FUNCTION``.

How many presets a function has is what ``impi_info -v`` of 2021.18 prints as the variable's range.
They are numbers only: the Developer Reference says that there are more presets than algorithms, so
that the names of algorithms are no names of presets. 0 is the library's own choice.
"""

from netproof.tuning.algorithms.interface import MpiLibrary
from netproof.tuning.parameters import VALUE, Told

PRESETS = {
    "Allreduce": 32,
    "Alltoall": 18,
    "Bcast": 22,
    "Allgather": 6,
    "Reduce": 19,
    "Reduce_scatter": 6,
    "Barrier": 11,
}
"""The last preset of each function."""


def _told(function: str) -> Told:
    return Told({f"I_MPI_ADJUST_{function.upper()}": VALUE})


LIBRARY = MpiLibrary(
    number=3,
    name="Intel MPI",
    told=_told,
    algorithms={
        function: {str(number): "" for number in range(1, last + 1)}
        for function, last in PRESETS.items()
    },
    ignored=r"Incorrect (algorithm|adjust value): .*will be ignored",
)
