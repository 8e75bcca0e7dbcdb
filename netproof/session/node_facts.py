"""Facts of each node of a job, from the files that it left, and differences between nodes."""

from __future__ import annotations

import dataclasses
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_type_hints

from netproof import codec
from netproof.errors import NetproofError, shortened
from netproof.intake import disk
from netproof.session import job_files

NODE_HEADER = "netproof-node 4"

NODE_FILES = "node.*.txt"
"""Output of the job's nodes, a file each, named after the node."""

PATH_HEADER = "netproof-path 4"

PATH_FILES = "path.*.txt"
"""Each node's findings on the ways to its neighbours, named after the node."""

CLOCK_FILE = "clock.json"
"""Between which moments of the first node's clock the nodes described themselves."""

RING_FILE = "ring.txt"
"""Each node of the job, the next one with its address, and the one before with its own."""

JOB_NODES_FILE = "job_nodes.json"
"""A job's number and nodes, as it notes them from within: ``sacct`` may be asked too early."""

NODE_STEP_LIMIT_S = 60
"""Seconds after which a step that is no launch is ended; each takes about one."""

NOT_BUSY = "none"
"""Value of a node's ``busy`` without any program."""

NOBODY = "none"
"""Value of a node's ``tcp_answered`` and ``tcp_unanswered`` that name no other."""


@dataclass(frozen=True)
class Node:
    """A node as a job found it.

    ``link_mbit_s`` in 10⁶ bit/s, ``mtu`` in bytes; ``offloads``, ``coalescing``: what
    ``ethtool -k`` and ``-c`` list; ``programs``: SHA-256 and path of each benchmark and of the
    MPI libraries that it loads. What is None or empty has its reason in ``absent``.

    ``state``: of the interface, ``up``, ``down`` or ``no carrier``; ``address``: its
    IPv4 address; ``rings``: what ``ethtool -g`` lists; ``memory`` in KiB, of all and of each NUMA
    node; ``pci``: the card's link, as it is and at most; ``mitigations``: of flaws of the CPU;
    ``clock_s``: its clock when it described itself, in seconds since 1970;
    ``clock_ntp_offset_s``: by what keeps it; ``clock_ahead_from_s`` and ``clock_ahead_to_s``:
    between these it was ahead of the clock of the job's first node; ``path_passed_bytes``: the
    packets, headers with them, that came unfragmented to the job's next node, ``path_to``, of
    ``path_asked_bytes``, the interface's MTU, or the least that were tried.

    ``busy``: the programs of other users or jobs that took a tenth of a CPU while
    the node described itself, each with its process, its user and its share; ``none``.

    ``tcp_answered`` and ``tcp_unanswered``: the job's next node and the one before,
    by whether their kernels took or refused a TCP connection, or nothing came back within 3 s,
    twice; names with commas between them, ``none``.

    ``partition``, ``environment``, ``job`` by ReFrame's name and ``jobid`` by Slurm's: of the job
    that found it, empty until the session's nodes are gathered.
    """

    node: str
    kernel: str | None
    architecture: str | None
    cpu: str | None
    cpus: int | None
    interface: str
    nic: str | None
    driver: str | None
    driver_version: str | None
    firmware: str | None
    bus: str | None
    link_mbit_s: int | None
    mtu: int | None
    offloads: dict[str, str]
    coalescing: dict[str, str]
    sysctls: dict[str, str]
    programs: dict[str, str]
    absent: dict[str, str]
    state: str | None = None
    address: str | None = None
    duplex: str | None = None
    autonegotiation: str | None = None
    governor: str | None = None
    microcode: str | None = None
    memory: dict[str, str] = field(default_factory=dict)
    rings: dict[str, str] = field(default_factory=dict)
    pci: dict[str, str] = field(default_factory=dict)
    hugepages: str | None = None
    mitigations: dict[str, str] = field(default_factory=dict)
    clock_source: str | None = None
    clock_s: float | None = None
    clock_ntp_offset_s: float | None = None
    clock_ahead_from_s: float | None = None
    clock_ahead_to_s: float | None = None
    path_to: str | None = None
    path_asked_bytes: int | None = None
    path_passed_bytes: int | None = None
    busy: str | None = None
    tcp_answered: str | None = None
    tcp_unanswered: str | None = None
    partition: str = ""
    environment: str = ""
    job: str = ""
    jobid: str = ""


_HINTS = get_type_hints(Node)

MAPS = tuple(name for name, kind in _HINTS.items() if kind == dict[str, str])

GROUPS = tuple(name for name in MAPS if name != "absent")
"""Keys that a node has several times, by name."""

_OF_SESSION = ("partition", "environment", "job", "jobid")

NAMES = tuple(name for name in _HINTS if name not in _OF_SESSION)
"""Fields that a node says of itself."""

_OF_THE_STEP = ("clock_ahead_from_s", "clock_ahead_to_s")

_OF_THE_PATH = (
    *("path_to", "path_asked_bytes", "path_passed_bytes"),
    *("tcp_answered", "tcp_unanswered"),
)


def named(others: str | None) -> tuple[str, ...]:
    """The nodes that ``tcp_answered`` or ``tcp_unanswered`` names."""
    return () if others in (None, NOBODY) else tuple(others.split(","))


def unconnected(
    folder: Path, nodes: Sequence[str], *, some_through: bool = False
) -> set[frozenset[str]]:
    """Return pairs of nodes that have no path: no connection, or none for packets of the MTU.

    Where no node answers, or no packet of the MTU comes through, that shows nothing of a pair;
    ``some_through``: whether some packets are known to come through elsewhere.
    """
    answered, unanswered = set(), set()
    through: set[frozenset[str]] = set()
    short: set[frozenset[str]] = set()
    for node in nodes:
        path = folder / PATH_FILES.replace("*", node)
        try:
            values = facts_of(path, PATH_HEADER)
        except NetproofError:
            # Whoever reads the nodes' files says so.
            continue
        answered |= {frozenset((node, one)) for one in named(values.get("tcp_answered"))}
        unanswered |= {frozenset((node, one)) for one in named(values.get("tcp_unanswered"))}
        if passed := values.get("path_passed_bytes"):
            whole = passed == values["path_asked_bytes"]
            (through if whole else short).add(frozenset((node, values["path_to"])))
    return (unanswered - answered if answered else set()) | (
        short if through or some_through else set()
    )


def nodes_of_job(folder: Path, jobid: str) -> tuple[str, ...]:
    """The nodes of a job by Slurm's names, in Slurm's order, as it noted them from within.

    ``folder`` has its ``JOB_NODES_FILE``; ``jobid`` is Slurm's. Raises NetproofError, naming the
    file, where that is missing, empty, cut short or of another job.
    """
    path = folder / JOB_NODES_FILE
    try:
        noted = codec.decode(dict[str, tuple[str, ...]], disk.json_file(path), "its nodes")
    except (NetproofError, OSError) as error:
        raise NetproofError(f"{path}: cannot be read: {error}; see {folder}'s *.err") from error
    if not noted.get(jobid):
        raise NetproofError(f"{path}: is of job {', '.join(noted)} and not of {jobid}")
    return noted[jobid]


def clock_window(path: Path) -> tuple[float, float] | str:
    """Both moments of a job's ``CLOCK_FILE`` in seconds, or why they are not known."""
    try:
        return codec.decode(tuple[float, float], disk.json_file(path), "moments")
    except (NetproofError, OSError) as error:
        return f"{path}: cannot be read: {error}"


def with_clock(node: Node, window: tuple[float, float] | str) -> Node:
    """The node with the bounds of how far its clock is ahead of the job's first node's."""
    if isinstance(window, str) or node.clock_s is None:
        why = {name: str(window) for name in _OF_THE_STEP}
        return dataclasses.replace(node, absent={**node.absent, **why})
    began, ended = window
    return dataclasses.replace(
        node, clock_ahead_from_s=node.clock_s - ended, clock_ahead_to_s=node.clock_s - began
    )


def with_path(node: Node, folder: Path, count: int) -> Node:
    """The node with what it found of the ways to the others, of ``count`` nodes of its job."""
    path = folder / PATH_FILES.replace("*", node.node)
    values: dict[str, Any] = {}
    why = "the job has one node"
    if count > 1:
        try:
            values, why = facts_of(path, PATH_HEADER), f"{path}: does not say"
        except NetproofError as error:
            why = f"{error}; see path.*.err beside it"
    reasons = {name: why for name in _OF_THE_PATH if name not in values}
    absent = {**node.absent, **reasons, **values.get("absent", {})}
    return codec.decode(Node, {**vars(node), **values, "absent": absent}, str(path))


def facts_of(path: Path, header: str) -> dict[str, Any]:
    """Return what ``run/shell/node.py`` printed into a file of a job.

    What a prolog or a wrapper printed before or after that is skipped. Raises NetproofError where
    it is not there or cut short.
    """
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError as error:
        raise NetproofError(f"{path}: cannot be read: {error}") from error
    number = next((n for n, line in enumerate(lines) if line.startswith(f"{header} ")), None)
    if number is None:
        errors = path.with_suffix(".err")
        words = job_files.last_words(errors)
        found = f"found {shortened(repr(lines[0]))}{words}" if lines else "the file is empty"
        if not lines:
            found += words or f", and so is {errors.name}"
        raise NetproofError(f"{path}:1: the header {header!r} is missing: {found}")
    place, text = f"{path}:{number + 1}", lines[number].removeprefix(header)
    return codec.decode(dict[str, Any], disk.json_value(text, place), place)


def read_node(path: Path) -> Node:
    """Return the node of a file; NetproofError where it is not whole."""
    later = ("absent", *_OF_THE_STEP, *_OF_THE_PATH)
    values = {
        **{name: {} if name in MAPS else None for name in NAMES},
        **facts_of(path, NODE_HEADER),
    }
    node = codec.decode(Node, values, str(path))
    for key in NAMES:
        if key not in later and getattr(node, key) in (None, {}) and not reasons(node.absent, key):
            raise NetproofError(f"{path}: {key} is missing, and no line says why")
    return node


def reasons(absent: Mapping[str, str], key: str) -> dict[str, str]:
    """Why a field of a node, or keys of a group of them, are not known: by key, the reason."""
    return {name: why for name, why in absent.items() if name == key or name.startswith(f"{key}.")}


OF_ITS_OWN = (
    *("node", "address", "bus", "absent"),
    *("clock_s", "clock_ntp_offset_s", "clock_ahead_from_s", "clock_ahead_to_s"),
    *("path_to", "path_asked_bytes", "path_passed_bytes", "busy"),
    *("tcp_answered", "tcp_unanswered"),
)
"""Fields of ``Node`` that are not the same on sound nodes that are alike."""

Fact = tuple[str, str]

MEMORY_SHARE = 0.05
"""Memory differs from this share of the larger on: firmware reserves some, hypervisors move it."""


def memory_kib(value: str) -> int | None:
    """Return a size of memory in KiB; None for a text that is no number."""
    return int(value) if re.fullmatch("[0-9]{1,15}", value) else None


def memory_alike(values: Iterable[str]) -> bool:
    """Check whether sizes of memory are less than ``MEMORY_SHARE`` of the largest apart."""
    several = [memory_kib(value) for value in values]
    sizes = [one for one in several if one is not None]
    if len(sizes) < len(several):
        return False
    return max(sizes) - min(sizes) < MEMORY_SHARE * max(sizes)


def differences(nodes: Sequence[Node]) -> tuple[str, ...]:
    """Sentences on everything in which nodes differ that should be alike.

    All nodes of a partition are compared with one another, a node in several jobs against
    itself; programs only within an environment. What one of them could not tell counts as a
    value of its own.
    """
    seen: dict[tuple[str, str], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    reporting: dict[tuple[str, str], set[str]] = defaultdict(set)
    for found in nodes:
        for scope, key, value in _values(found):
            seen[scope, key][value].add(found.node)
        for scope in (found.partition, f"{found.partition} {found.environment}"):
            reporting[scope, ""].add(found.node)
    sentences = []
    for (scope, key), by_value in sorted(seen.items()):
        if key.startswith("memory ") and memory_alike(by_value):
            by_value = {next(iter(by_value)): set().union(*by_value.values())}
        silent = reporting[scope, ""] - set().union(*by_value.values())
        if silent:
            by_value["not known"] = by_value.get("not known", set()) | silent
        if len(by_value) > 1:
            each = sorted(by_value.items(), key=lambda item: (-len(item[1]), item[0]))
            stated = "; ".join(f"{value} ({', '.join(sorted(on))})" for value, on in each)
            sentences.append(f"{scope}: {key}: {stated}")
    return tuple(sentences)


def between(
    first: Sequence[Node], second: Sequence[Node]
) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Values that two runs both know and differ in, by name; of programs the hash alone."""
    sides: list[dict[str, set[str]]] = []
    for nodes in (first, second):
        known: dict[str, set[str]] = defaultdict(set)
        for found in nodes:
            for _, key, value in _values(found):
                known[key].add(value.split(" ")[0] if key.startswith("programs ") else value)
        sides.append(known)
    one, other = sides
    return {
        key: (tuple(sorted(one[key])), tuple(sorted(other[key])))
        for key in one
        if key in other
        and one[key] != other[key]
        and not (key.startswith("memory ") and memory_alike(one[key] | other[key]))
    }


def facts(node: Mapping[str, Any], apart: Collection[str] = OF_ITS_OWN) -> Iterator[Fact]:
    """Yield name and value of what a node says, a group such as ``sysctls`` by each of its keys.

    ``node``: the fields of a ``Node``; ``apart``: fields that are left out.
    """
    for name in NAMES:
        value = node[name]
        if name in apart or value is None:
            continue
        if name in MAPS:
            yield from ((f"{name} {key}", text) for key, text in value.items())
        else:
            yield name, str(value)


def _values(found: Node) -> Iterator[tuple[str, str, str]]:
    """Yield scope, name and value of what has to be alike."""
    for name, value in facts(vars(found)):
        of_environment = f" {found.environment}" if name.startswith("programs ") else ""
        yield f"{found.partition}{of_environment}", name, value
