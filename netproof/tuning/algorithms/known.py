"""The values that a sweep of one function tries with an MPI library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from netproof.errors import NetproofError
from netproof.tuning import parameters
from netproof.tuning.algorithms.libraries import FUNCTIONS, LIBRARIES
from netproof.tuning.parameters import Told


@dataclass(frozen=True)
class Choice:
    """The values of a sweep with their names, and how to set them.

    ``library``: as the site names it; ``heard``, ``ignored``, ``fell_back``: as in ``MpiLibrary``.
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
        """Return the values, in the library's order."""
        return tuple(self.names)

    @property
    def title(self) -> str:
        """Return the name of the setting."""
        return f"{self.function} algorithm"


def choice(library: str, function: str, given: Sequence[str] = ()) -> Choice:
    """Return the values that a sweep of a function tries with a library as its site names it.

    ``given``: names or values in place of all; unknown ones are passed on, since other versions
    have others. Raise NetproofError for a function or a library without algorithms.
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
            f"choosing an algorithm is not known for {library}, only for"
            f" {', '.join(known.name for known in LIBRARIES)}: name its environment variable"
            " instead, with --values and --protocol mpi"
        )
    names = one.values(function, library)
    if given:
        by_name = {name: value for value, name in names.items() if name}
        values = [by_name.get(word, word) for word in given]
        parameters.insist_on_values(values)
        names = {value: names.get(value, "") for value in values}
    setting = one.setting(function)
    return Choice(library, function, names, setting, one.heard, one.ignored, one.fell_back)
