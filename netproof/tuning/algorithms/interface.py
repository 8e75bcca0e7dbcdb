"""The content of a library's file: functions, algorithms, and the variables that choose one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from netproof.errors import NetproofError
from netproof.tuning.parameters import Told

FUNCTIONS = ("Allreduce", "Alltoall", "Bcast", "Allgather", "Reduce", "Reduce_scatter", "Barrier")
"""Functions of IMB whose algorithms are swept; Barrier has no message."""

Algorithms = Mapping[str, Mapping[str, str]]
"""Values by function, each with its name, empty where the value is the name."""


def named(*names: str) -> dict[str, str]:
    """Return algorithms chosen by name."""
    return dict.fromkeys(names, "")


def numbered(*names: str) -> dict[str, str]:
    """Return algorithms chosen by a number from 1 on, in order."""
    return {str(number): name for number, name in enumerate(names, 1)}


@dataclass(frozen=True)
class MpiLibrary:
    """An MPI library whose algorithms an environment variable chooses.

    ``number``: libraries with lower numbers match a name first; ``name``: beginning of the site's
    name of the library; ``setting``: variables and arguments for a function; ``algorithms``: of
    the newest version; ``since``: the first major version by function and value; ``heard``:
    variables that only a sweep sets, for more output; ``ignored``: the library's line that it
    ignores the value altogether; ``fell_back``: its line that it took its own choice in a call.
    """

    number: int
    name: str
    setting: Callable[[str], Told]
    algorithms: Algorithms
    since: Mapping[tuple[str, str], int] = field(default_factory=dict)
    heard: Mapping[str, str] = field(default_factory=dict)
    ignored: str = ""
    fell_back: str = ""

    def is_called(self, library: str) -> bool:
        """Check whether the site's name of a library is of this one."""
        return library.lower().startswith(self.name.lower())

    def values(self, function: str, library: str) -> dict[str, str]:
        """Return values of a function and their names, for the version in the site's name.

        Raise NetproofError where the function has no variable in this library.
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
