"""Settings that can be changed without being root, and how each MPI library takes them.

A parameter becomes environment variables of a launch, or arguments of NPtcp. The libraries that
have it, and its name there, are data; a site names further variables itself.
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
INTER_NODE = "inter-node"

VALUE = "{value}"
"""Placeholder of the value."""

WITH_COMMAS, WITH_COLONS = "{value,}", "{value:}"
"""Placeholders of a value of several words, joined by ``+``, in the libraries' notation."""

_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*[A-Za-z0-9_]*")


@dataclass(frozen=True)
class Assignment:
    """Variables and arguments by which a launch gets a value, the arguments word by word."""

    variables: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()

    def of(self, value: str) -> Assignment:
        """Return it with the value in place of the placeholder."""
        return Assignment(
            {name: _placed(text, value) for name, text in self.variables.items()},
            tuple(_placed(word, value) for word in self.arguments),
        )


def _placed(text: str, value: str) -> str:
    for place, mark in ((WITH_COMMAS, ","), (WITH_COLONS, ":")):
        text = text.replace(place, value.replace("+", mark))
    return text.replace(VALUE, value)


@dataclass(frozen=True)
class Parameter:
    """A setting that a sweep changes.

    ``values``: by default, besides the default itself; ``in_bytes``: whether they are sizes;
    ``over_tcp``: for NPtcp, None where TCP has no such setting; ``libraries``: for MPI libraries,
    by the beginning of the site's name of the library; ``by_hook``: whether a site's hook sets it
    on nodes, and launches need nothing; ``of_rails``: whether its values are the partition's rails,
    each alone and all together.
    """

    name: str
    title: str
    values: tuple[str, ...]
    in_bytes: bool = True
    over_tcp: Assignment | None = None
    libraries: Mapping[str, Assignment] = field(default_factory=dict)
    by_hook: bool = False
    of_rails: bool = False

    def values_on(self, rails: Sequence[str]) -> tuple[str, ...]:
        """Return its values on a partition with these rails; NetproofError for too few."""
        if not self.of_rails:
            return self.values
        if len(rails) < 2:
            raise NetproofError(
                f"{self.title}: the partition names no two rails in its extras, which leaves"
                " nothing to choose: give it 'rails', or --values"
            )
        return (*rails, "+".join(rails))

    def of_the_network(self, protocol: str) -> bool:
        """Check whether only messages between nodes have it: a card's, or MPI's for the network."""
        return self.by_hook or (protocol == MPI and self.name in BY_NAME)

    def assignment(self, protocol: str, library: str, path: str = INTER_NODE) -> Assignment:
        """Return its variables and arguments; NetproofError, with the choices, if not available.

        ``protocol``: ``tcp`` or ``mpi``; ``library``: the MPI library as its site names it;
        ``path``: ``inter-node`` or ``intra-node``.
        """
        if path != INTER_NODE and self.of_the_network(protocol):
            raise NetproofError(
                f"{self.title} is of the network: inside a node it changes nothing, sweep it"
                " between two"
            )
        if self.by_hook:
            return Assignment()
        if protocol == TCP:
            if self.over_tcp is None:
                raise NetproofError(f"TCP has no {self.title}: sweep it over MPI, --protocol mpi")
            return self.over_tcp
        for start, setting in self.libraries.items():
            if library.lower().startswith(start.lower()):
                return setting
        known = ", ".join(self.libraries)
        raise NetproofError(
            f"setting the {self.title} is not known for {library}, only for {known}: name its"
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
        over_tcp=Assignment(arguments=("-b", VALUE)),
        libraries={
            "Open MPI": Assignment(
                {"OMPI_MCA_btl_tcp_sndbuf": VALUE, "OMPI_MCA_btl_tcp_rcvbuf": VALUE},
            ),
        },
    ),
    Parameter(
        EAGER_LIMIT,
        "eager limit",
        _sizes(4, 16, 64, 256),
        libraries={
            "Open MPI": Assignment({"OMPI_MCA_btl_tcp_eager_limit": VALUE}),
            # Over libfabric, from 4.3 on; above it MPICH does the rendezvous itself.
            "MPICH": Assignment({"MPIR_CVAR_CH4_OFI_EAGER_THRESHOLD": VALUE}),
            "MVAPICH2": Assignment({"MV2_IBA_EAGER_THRESHOLD": VALUE}),
        },
    ),
    Parameter(
        "rails",
        "rails",
        (),
        in_bytes=False,
        libraries={
            "Open MPI": Assignment({"OMPI_MCA_btl_tcp_if_include": WITH_COMMAS}),
            "MVAPICH2": Assignment({"MV2_IBA_HCA": WITH_COLONS}),
        },
        of_rails=True,
    ),
    Parameter("mtu", "MTU", ("1500", "4500", "9000"), in_bytes=False, by_hook=True),
    # Microseconds that a card waits for further packets before it interrupts.
    Parameter(
        "coalescing", "interrupt coalescing", ("0", "8", "32", "128"), in_bytes=False, by_hook=True
    ),
)
"""Settings that have a name."""

BY_NAME = {one.name: one for one in PARAMETERS}


def found(name: str, values: Sequence[str]) -> Parameter:
    """Return the parameter of that name, or an environment variable (begins with a capital).

    ``values``: of a variable, which has none of its own. Raise NetproofError, with the known names,
    for others.
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
    setting = Assignment({name: VALUE})
    in_bytes = name in EAGER_VARIABLES
    return Parameter(name, name, tuple(values), in_bytes=in_bytes, libraries={"": setting})


def is_eager_limit(name: str) -> bool:
    """Check whether a sweep changes an eager limit: MPI's, or that of the layer below it."""
    return name == EAGER_LIMIT or name in EAGER_VARIABLES


def are_sizes(name: str) -> bool:
    """Check whether the values of a sweep are sizes."""
    return name in EAGER_VARIABLES or (name in BY_NAME and BY_NAME[name].in_bytes)


def insist_on_values(values: Sequence[str]) -> None:
    """Raise NetproofError unless there are values, each once, without white space."""
    if not values:
        raise NetproofError("a sweep takes a value at least, next to the default")
    for value in values:
        if not value or re.search(r"[\s\x00-\x1f\x7f]", value):
            raise NetproofError(f"{value!r} is no value: give words without white space")
        if values.count(value) > 1:
            raise NetproofError(f"{value!r} is twice among the values")
