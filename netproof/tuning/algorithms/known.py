"""All libraries whose algorithms are known, and what a sweep of one function tries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from netproof.declared import declared
from netproof.errors import NetproofError
from netproof.tuning import parameters
from netproof.tuning.algorithms.interface import FUNCTIONS, MpiLibrary
from netproof.tuning.parameters import Told

LIBRARIES: tuple[MpiLibrary, ...] = declared(
    "netproof.tuning.algorithms", "LIBRARY", not_asked=("interface", "known")
)
"""Those that have a file here, MVAPICH2 before MVAPICH."""


@dataclass(frozen=True)
class Choice:
    """What a sweep tries: the values, each with its name or none, and how launches are told.

    ``library``: as the site names it; ``heard``, ``ignored``, ``fell_back``: as ``MpiLibrary`` has
    them.
    """

    library: str
    function: str
    names: Mapping[str, str]
    told: Told
    heard: Mapping[str, str]
    ignored: str
    fell_back: str

    @property
    def values(self) -> tuple[str, ...]:
        """The values, in the library's order."""
        return tuple(self.names)

    @property
    def title(self) -> str:
        """What is turned, in words."""
        return f"{self.function} algorithm"


def choice(library: str, function: str, given: Sequence[str] = ()) -> Choice:
    """What a sweep of a function tries with a library as its site names it.

    ``given``: names or values in place of all; one that is not known is handed on as it is, since
    other versions have others. Raises NetproofError for a function or a library that has none.
    """
    if function not in FUNCTIONS:
        raise NetproofError(
            f"{function!r} is no function whose algorithms are swept; those are"
            f" {', '.join(FUNCTIONS)}"
        )
    for one in LIBRARIES:
        if one.is_called(library):
            break
    else:
        raise NetproofError(
            f"how {library} is told an algorithm is not known, only for"
            f" {', '.join(known.name for known in LIBRARIES)}: name its environment variable"
            " instead, with --values and --protocol mpi"
        )
    names = one.values(function, library)
    if given:
        by_name = {name: value for value, name in names.items() if name}
        values = [by_name.get(word, word) for word in given]
        parameters.insist_on_values(values)
        names = {value: names.get(value, "") for value in values}
    told = one.told(function)
    return Choice(library, function, names, told, one.heard, one.ignored, one.fell_back)
