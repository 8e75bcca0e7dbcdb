"""What can be turned without being root, and how each MPI library is told.

A parameter becomes environment variables of a launch, or arguments of NPtcp. Which libraries have
it, and by which name, is data; a site names further variables itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from netproof.errors import NetproofError

TCP, MPI = "tcp", "mpi"
EAGER_LIMIT = "eager-limit"
EAGER_VARIABLES = ("UCX_RNDV_THRESH", "FI_OFI_RXM_BUFFER_SIZE")
"""Eager limits of the layer below MPI, in bytes: of UCX, and of libfabric's ``ofi_rxm``."""
BETWEEN = "between"

VALUE = "{value}"
"""Stands for the value in what a launch is told."""

WITH_COMMAS, WITH_COLONS = "{value,}", "{value:}"
"""Likewise for a value of several words, which ``+`` joins, as libraries join theirs."""

_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*[A-Za-z0-9_]*")


@dataclass(frozen=True)
class Told:
    """How a launch is told a value: variables to their values, and arguments word by word."""

    variables: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()

    def of(self, value: str) -> Told:
        """With the value in its place."""
        return Told(
            {name: _placed(text, value) for name, text in self.variables.items()},
            tuple(_placed(word, value) for word in self.arguments),
        )


def _placed(text: str, value: str) -> str:
    for place, mark in ((WITH_COMMAS, ","), (WITH_COLONS, ":")):
        text = text.replace(place, value.replace("+", mark))
    return text.replace(VALUE, value)


@dataclass(frozen=True)
class Parameter:
    """A setting that a sweep turns.

    ``values``: by default, apart from what is there without a word; ``in_bytes``: whether they are
    sizes; ``over_tcp``: how NPtcp is told, None where TCP has no such thing; ``libraries``: how MPI
    libraries are told, by how the site's name of the library begins; ``by_hook``: whether it is a
    node's, which a site's hook sets, and no launch is told; ``of_rails``: whether its values are
    the partition's rails, each alone and all together.
    """

    name: str
    title: str
    values: tuple[str, ...]
    in_bytes: bool = True
    over_tcp: Told | None = None
    libraries: Mapping[str, Told] = field(default_factory=dict)
    by_hook: bool = False
    of_rails: bool = False

    def values_on(self, rails: Sequence[str]) -> tuple[str, ...]:
        """Its values on a partition with these rails; NetproofError where it takes several."""
        if not self.of_rails:
            return self.values
        if len(rails) < 2:
            raise NetproofError(
                f"{self.title}: the partition names no two rails in its extras, so that there is"
                " nothing to choose: give it 'rails', or --values"
            )
        return (*rails, "+".join(rails))

    def of_the_network(self, protocol: str) -> bool:
        """Whether only messages between nodes have it: a card's, or of MPI over the network."""
        return self.by_hook or (protocol == MPI and self.name in BY_NAME)

    def told(self, protocol: str, library: str, path: str = BETWEEN) -> Told:
        """How a launch is told; NetproofError, with what can be turned there, where it is not.

        ``protocol``: ``tcp`` or ``mpi``; ``library``: the MPI library as its site names it;
        ``path``: ``between`` nodes or ``inside`` one.
        """
        if path != BETWEEN and self.of_the_network(protocol):
            raise NetproofError(
                f"{self.title} is of the network: inside a node it changes nothing, sweep it"
                " between two"
            )
        if self.by_hook:
            return Told()
        if protocol == TCP:
            if self.over_tcp is None:
                raise NetproofError(f"TCP has no {self.title}: sweep it over MPI, --protocol mpi")
            return self.over_tcp
        for start, told in self.libraries.items():
            if library.lower().startswith(start.lower()):
                return told
        known = ", ".join(self.libraries)
        raise NetproofError(
            f"how {library} is told its {self.title} is not known, only for {known}: name its"
            " environment variable instead"
            if known
            else f"{self.title} is no setting of an MPI library"
        )


def _sizes(*kib: int) -> tuple[str, ...]:
    return tuple(str(1024 * one) for one in kib)


PARAMETERS = (
    Parameter(
        "socket-buffer",
        "socket buffer",
        _sizes(16, 32, 64, 128, 256, 1024),
        over_tcp=Told(arguments=("-b", VALUE)),
        libraries={
            "Open MPI": Told(
                {"OMPI_MCA_btl_tcp_sndbuf": VALUE, "OMPI_MCA_btl_tcp_rcvbuf": VALUE},
            ),
        },
    ),
    Parameter(
        EAGER_LIMIT,
        "eager limit",
        _sizes(4, 16, 64, 256),
        libraries={
            "Open MPI": Told({"OMPI_MCA_btl_tcp_eager_limit": VALUE}),
            # Over libfabric, from 4.3 on; above it MPICH does the rendezvous itself.
            "MPICH": Told({"MPIR_CVAR_CH4_OFI_EAGER_THRESHOLD": VALUE}),
            "MVAPICH2": Told({"MV2_IBA_EAGER_THRESHOLD": VALUE}),
        },
    ),
    Parameter(
        "rails",
        "rails",
        (),
        in_bytes=False,
        libraries={
            "Open MPI": Told({"OMPI_MCA_btl_tcp_if_include": WITH_COMMAS}),
            "MVAPICH2": Told({"MV2_IBA_HCA": WITH_COLONS}),
        },
        of_rails=True,
    ),
    Parameter("mtu", "MTU", ("1500", "4500", "9000"), in_bytes=False, by_hook=True),
    # Microseconds that a card waits for further packets before it interrupts.
    Parameter(
        "coalescing", "interrupt coalescing", ("0", "8", "32", "128"), in_bytes=False, by_hook=True
    ),
)
"""Those that have a name."""

BY_NAME = {one.name: one for one in PARAMETERS}


def found(name: str, values: Sequence[str]) -> Parameter:
    """The parameter of that name, or an environment variable, which begins with a capital letter.

    ``values``: of a variable, which has none of its own. Raises NetproofError with those that
    there are.
    """
    if name in BY_NAME:
        return BY_NAME[name]
    if not _VARIABLE.fullmatch(name):
        raise NetproofError(
            f"{name!r} is no parameter; those are {', '.join(BY_NAME)}, and any environment"
            " variable in capital letters"
        )
    if not values:
        raise NetproofError(f"{name} has no values of its own: give --values")
    told = Told({name: VALUE})
    in_bytes = name in EAGER_VARIABLES
    return Parameter(name, name, tuple(values), in_bytes=in_bytes, libraries={"": told})


def is_eager_limit(name: str) -> bool:
    """Whether what a sweep turns is an eager limit: MPI's, or that of the layer below it."""
    return name == EAGER_LIMIT or name in EAGER_VARIABLES


def are_sizes(name: str) -> bool:
    """Whether the values of what a sweep turns are sizes."""
    return name in EAGER_VARIABLES or (name in BY_NAME and BY_NAME[name].in_bytes)


def insist_on_values(values: Sequence[str]) -> None:
    """NetproofError unless values are at least one, each once, of no white space."""
    if not values:
        raise NetproofError("a sweep takes a value at least, next to the default")
    for value in values:
        if not value or re.search(r"[\s\x00-\x1f\x7f]", value):
            raise NetproofError(f"{value!r} is no value: give words without white space")
        if values.count(value) > 1:
            raise NetproofError(f"{value!r} is twice among the values")
