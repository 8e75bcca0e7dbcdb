"""What a library's file says: functions, their algorithms, and the variables that choose one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from netproof.errors import NetproofError
from netproof.tuning.parameters import Told

FUNCTIONS = ("Allreduce", "Alltoall", "Bcast", "Allgather", "Reduce", "Reduce_scatter", "Barrier")
"""Functions of IMB whose algorithms are swept; Barrier has no message."""

Algorithms = Mapping[str, Mapping[str, str]]
"""Function to values, each with what people call it, empty where the value is all there is."""


def named(*names: str) -> dict[str, str]:
    """Algorithms that are chosen by their name."""
    return dict.fromkeys(names, "")


def numbered(*names: str) -> dict[str, str]:
    """Algorithms that are chosen by a number from 1 on, in its order."""
    return {str(number): name for number, name in enumerate(names, 1)}


@dataclass(frozen=True)
class MpiLibrary:
    """An MPI library whose algorithms an environment variable chooses.

    ``number``: the library of the least one is asked first whether a name is its; ``name``: how
    the site's name of the library begins; ``told``: what launches are told of a function;
    ``algorithms``: of the newest version; ``since``: function and value to the first major version
    that has it; ``heard``: variables that only a sweep sets, so that the library says more;
    ``ignored``: a line by which it says that it takes no notice of the value at all;
    ``fell_back``: one by which it says that it took its own choice in a call.
    """

    number: int
    name: str
    told: Callable[[str], Told]
    algorithms: Algorithms
    since: Mapping[tuple[str, str], int] = field(default_factory=dict)
    heard: Mapping[str, str] = field(default_factory=dict)
    ignored: str = ""
    fell_back: str = ""

    def is_called(self, library: str) -> bool:
        """Whether the site's name of a library is of this one."""
        return library.lower().startswith(self.name.lower())

    def values(self, function: str, library: str) -> dict[str, str]:
        """Values of a function with what they are called, of the version in the site's name.

        Raises NetproofError where the function has no variable in this library.
        """
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
