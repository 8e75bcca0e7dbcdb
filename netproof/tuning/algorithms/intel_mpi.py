"""Intel MPI: ``I_MPI_ADJUST_FUNCTION``.

The presets per function are the variable's range in ``impi_info -v`` of 2021.18. They are numbers
only: by the Developer Reference a function has more presets than algorithms, so that names of
algorithms are not names of presets. 0 is the library's own choice.
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


def _setting(function: str) -> Told:
    return Told({f"I_MPI_ADJUST_{function.upper()}": VALUE})


LIBRARY = MpiLibrary(
    number=3,
    name="Intel MPI",
    setting=_setting,
    algorithms={
        function: {str(number): "" for number in range(1, last + 1)}
        for function, last in PRESETS.items()
    },
    ignored=r"Incorrect (algorithm|adjust value): .*will be ignored",
)
