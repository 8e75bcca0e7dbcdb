"""Settings that can be changed without being root, algorithms of collectives, and their restoring.

``parameters.yaml`` has them, and how each MPI library takes them: by environment variables of a
launch, or arguments of NPtcp. A site names further variables itself.

A sweep by a site's hook changes values on nodes: a record is written before any change, and removed
when every node has its own value again. A job that is killed leaves it; the next sweep restores
first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from netproof import codec
from netproof.errors import NetproofError
from netproof.intake import disk, trust, yaml_reading
from netproof.session import job_files, session
from netproof.site import slurm

TCP, MPI = "tcp", "mpi"
EAGER_VARIABLES = ("UCX_RNDV_THRESH", "FI_OFI_RXM_BUFFER_SIZE")
"""Eager limits of the layer below MPI, in bytes: of UCX, and of libfabric's ``ofi_rxm``."""
INTER_NODE = "inter-node"
FUNCTIONS = ("Allreduce", "Alltoall", "Bcast", "Allgather", "Reduce", "Reduce_scatter", "Barrier")
"""Functions of IMB whose algorithms are swept; Barrier has no message."""

_FILE = Path(__file__).with_suffix(".yaml")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*[A-Za-z0-9_]*")
_PLACES = {"{value}": "+", "{value,}": ",", "{value:}": ":"}
"""Placeholders of a value, and what stands between its words, which ``+`` joins."""


@dataclass(frozen=True)
class Assignment:
    """Variables and arguments by which a launch gets a value, the arguments word by word."""

    variables: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()

    def of(self, value: str) -> Assignment:
        """Return it with the value in place of the placeholder."""

        def placed(text: str) -> str:
            for place, mark in _PLACES.items():
                text = text.replace(place, value.replace("+", mark))
            return text

        variables = {name: placed(text) for name, text in self.variables.items()}
        return Assignment(variables, tuple(map(placed, self.arguments)))


@dataclass(frozen=True)
class Parameter:
    """A setting that a sweep changes; ``parameters.yaml`` describes its fields."""

    name: str
    title: str
    values: tuple[str, ...] = ()
    in_bytes: bool = True
    eager_limit: bool = False
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

    def assignment(self, protocol: str, library: str, path: str = INTER_NODE) -> Assignment:
        """Return its variables and arguments; NetproofError, with the choices, if not available.

        ``protocol``: ``tcp`` or ``mpi``; ``library``: the MPI library as its site names it;
        ``path``: ``inter-node`` or ``intra-node``.
        """
        of_the_network = self.by_hook or (protocol == MPI and self.name in BY_NAME)
        if path != INTER_NODE and of_the_network:
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
        raise NetproofError(
            f"setting the {self.title} is not known for {library}, only for"
            f" {', '.join(self.libraries)}: name its environment variable instead"
        )


@dataclass(frozen=True)
class MpiLibrary:
    """An MPI library whose algorithms variables choose; ``parameters.yaml`` describes its fields.

    ``name``: beginning of the site's name of the library.
    """

    name: str
    variables: Mapping[str, str]
    called: Mapping[str, str] = field(default_factory=dict)
    algorithms: Mapping[str, str] = field(default_factory=dict)
    first: int | None = None
    presets: Mapping[str, int] = field(default_factory=dict)
    since: Mapping[str, int] = field(default_factory=dict)
    heard: Mapping[str, str] = field(default_factory=dict)
    ignored: str = ""
    fell_back: str = ""

    def setting(self, function: str) -> Assignment:
        """Return the variables that choose the algorithm of a function."""
        called = self.called.get(function, function)
        named = {"{function}": called.lower(), "{FUNCTION}": called.upper()}
        variables = dict(self.variables)
        for place, word in named.items():
            variables = {name.replace(place, word): text for name, text in variables.items()}
        return Assignment(variables)

    def values(self, function: str, library: str) -> dict[str, str]:
        """Return a function's values with names, empty where the value is the name.

        ``library``: as its site names it, with the version. Raise NetproofError for a function
        without values.
        """
        if function in self.presets:
            return {str(number): "" for number in range(1, self.presets[function] + 1)}
        if function not in self.algorithms:
            raise NetproofError(
                f"{library} lets nobody choose the algorithm of {function} by an environment"
                f" variable that is known; it does of {', '.join(self.algorithms)}"
            )
        version, first = re.search(r"(\d+)\.", library), self.first
        known = {
            place: name
            for place, name in enumerate(self.algorithms[function].split())
            if not version or self.since.get(f"{function} {name}", 0) <= int(version[1])
        }
        if first is None:
            return dict.fromkeys(known.values(), "")
        return {str(first + place): name for place, name in known.items()}


_KNOWN = yaml_reading.yaml_value(disk.read_text(_FILE), _FILE)
_LIBRARIES = codec.decode(tuple[MpiLibrary, ...], _KNOWN["libraries"], f"{_FILE}: libraries")
_PARAMETERS = codec.decode(tuple[Parameter, ...], _KNOWN["parameters"], f"{_FILE}: parameters")
BY_NAME = {one.name: one for one in _PARAMETERS}


def of(name: str) -> Parameter:
    """Return the parameter of that name, or that of an environment variable, without values."""
    eager = name in EAGER_VARIABLES
    libraries = {"": Assignment({name: "{value}"})}
    variable = Parameter(name, name, in_bytes=eager, eager_limit=eager, libraries=libraries)
    return BY_NAME.get(name, variable)


def found(name: str, values: Sequence[str]) -> Parameter:
    """Return the parameter of that name, or an environment variable (begins with a capital).

    ``values``: of a variable, which has none of its own. Raise NetproofError, with the known names,
    for others.
    """
    if name not in BY_NAME and not _VARIABLE.fullmatch(name):
        raise NetproofError(
            f"{name!r} is no parameter; those are {', '.join(BY_NAME)}, and any environment"
            " variable in capital letters"
        )
    if name not in BY_NAME and not values:
        raise NetproofError(f"{name} has no values of its own: give --values")
    return of(name)


def insist_on_values(values: Sequence[str]) -> None:
    """Raise NetproofError unless there are values, each once, without white space."""
    if not values:
        raise NetproofError("a sweep takes a value at least, next to the default")
    for value in values:
        if not value or re.search(r"[\s\x00-\x1f\x7f]", value):
            raise NetproofError(f"{value!r} is no value: give words without white space")
        if values.count(value) > 1:
            raise NetproofError(f"{value!r} is twice among the values")


def library_of(name: str) -> MpiLibrary:
    """Return the library of a site's name for it; NetproofError where it is not known."""
    for one in _LIBRARIES:
        if name.lower().startswith(one.name.lower()):
            return one
    raise NetproofError(
        f"choosing an algorithm is not known for {name}, only for"
        f" {', '.join(one.name for one in _LIBRARIES)}: name its environment variable"
        " instead, with --values and --protocol mpi"
    )


def algorithms(library: str, function: str, given: Sequence[str] = ()) -> dict[str, str]:
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


ANSWER_S = 120
"""Seconds in which a node must answer: it may have to wait for its job to end."""


OWN_FILE = "own_values.json"
"""The same as a record in the job's folder, where it stays: the nodes' values at its start."""

OwnValues = tuple[tuple[str, str, str], ...]
"""Nodes with a setting and its own value before a sweep."""

FOLDER = "tuning"
"""Folder of sweeps in the folder of reports, which no verdict reads."""


def record_of(reports: Path, system: str, partition: str) -> Path:
    """Return the record of sweeps on a partition; ``reports``: as for ``session.folder_of``."""
    return session.folder_of(reports, FOLDER) / f"not-restored-{system}-{partition}.json"


def read(record: Path) -> OwnValues:
    """Return what a record has, nothing without one; NetproofError if it is damaged."""
    if not record.exists():
        return ()
    trust.insist(record, "the record of a sweep")
    try:
        return job_files.noted(record, OwnValues)
    except NetproofError as error:
        remedy = "restore the nodes by hand, and remove the file"
        raise NetproofError(f"{error}; {remedy}") from None


def restore(record: Path, hook: Sequence[str], access: Sequence[str]) -> OwnValues:
    """Set the recorded values on their nodes, read them back, and remove the record.

    ``access``: ReFrame's options of the partition. Return the restored values. Raise NetproofError
    where a node failed, which stays in the record.
    """
    several = read(record)
    if several and not hook:
        raise NetproofError(
            f"{record}: an earlier sweep ended before everything was restored, and the partition"
            " has no tuning_hook any more: restore its nodes by hand, and remove the file"
        )
    failed, reasons = [], []
    for node, name, value in several:
        try:
            put(node, hook, name, value, access)
        except NetproofError as error:
            failed.append((node, name, value))
            reasons.append(str(error))
    if failed:
        job_files.note(record, failed)
        raise NetproofError(f"{record}: cannot be restored: {'; '.join(reasons)}")
    record.unlink(missing_ok=True)
    return several


def put(node: str, hook: Sequence[str], name: str, value: str, access: Sequence[str] = ()) -> None:
    """Set a value on a node by the hook, and read it back; NetproofError if it is another."""
    ask(node, [*hook, "set", name, value], access)
    now = ask(node, [*hook, "get", name], access)
    if now != value:
        raise NetproofError(f"{node}: {name} was set to {value} and is {now}")


def ask(node: str, command: Sequence[str], access: Sequence[str] = ()) -> str:
    """Return what a command prints on a node; raise NetproofError if it fails there."""
    options = [f"--nodelist={node}", "--nodes=1", "--ntasks=1", "--mpi=none", "--quiet"]
    try:
        return slurm.ask("srun", *access, *options, *command, limit_s=ANSWER_S).strip()
    except NetproofError as error:
        raise NetproofError(f"{node}: {error}") from None
