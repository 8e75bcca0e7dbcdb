"""Facts of each node of a job: the files that it left, read strictly."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_type_hints

from netproof import codec
from netproof.errors import NetproofError, shortened
from netproof.intake import json_reading
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
"""Seconds after which a step that describes the nodes is ended; each of the two takes about one."""

NOT_BUSY = "none"
"""Value of a node's ``busy`` without any program."""

NOBODY = "none"
"""Value of a node's ``tcp_answered`` and ``tcp_unanswered`` that name no other."""


class ProvenanceError(NetproofError):
    """A node's file or a report's record that is not whole; the text names the place."""


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


_HINTS = get_type_hints(Node)

MAPS = tuple(name for name, kind in _HINTS.items() if kind == dict[str, str])

GROUPS = tuple(name for name in MAPS if name != "absent")
"""Keys that a node has several times, by name."""

NAMES = tuple(_HINTS)

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
        except ProvenanceError:
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

    ``folder`` has its ``JOB_NODES_FILE``; ``jobid`` is Slurm's. Raises ProvenanceError, naming the
    file, where that is missing, empty, cut short or of another job.
    """
    path = folder / JOB_NODES_FILE
    try:
        noted = codec.decode(dict[str, tuple[str, ...]], json_reading.json_file(path), "its nodes")
    except (NetproofError, OSError) as error:
        raise ProvenanceError(f"{path}: cannot be read: {error}; see {folder}'s *.err") from error
    if not noted.get(jobid):
        raise ProvenanceError(f"{path}: is of job {', '.join(noted)} and not of {jobid}")
    return noted[jobid]


def clock_window(path: Path) -> tuple[float, float] | str:
    """Both moments of a job's ``CLOCK_FILE`` in seconds, or why they are not known."""
    try:
        return codec.decode(tuple[float, float], json_reading.json_file(path), "moments")
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
        except ProvenanceError as error:
            why = f"{error}; see path.*.err next to it"
    reasons = {name: why for name in _OF_THE_PATH if name not in values}
    absent = {**node.absent, **reasons, **values.get("absent", {})}
    return _node({**vars(node), **values, "absent": absent}, path)


def facts_of(path: Path, header: str) -> dict[str, Any]:
    """Return what ``run/shell/node.py`` printed into a file of a job.

    What a prolog or a wrapper printed before or after that is skipped. Raises ProvenanceError where
    it is not there or cut short.
    """
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError as error:
        raise ProvenanceError(f"{path}: cannot be read: {error}") from error
    number = next((n for n, line in enumerate(lines) if line.startswith(f"{header} ")), None)
    if number is None:
        raise ProvenanceError(f"{path}:1: the header {header!r} is missing{_instead(path, lines)}")
    place, text = f"{path}:{number + 1}", lines[number].removeprefix(header)
    try:
        return codec.decode(dict[str, Any], json_reading.json_value(text, place), place)
    except NetproofError as error:
        raise ProvenanceError(str(error)) from error


def _instead(path: Path, lines: Sequence[str]) -> str:
    """Return the first line of a file without its header, and the step's last words."""
    errors = path.with_suffix(".err")
    words = job_files.last_words(errors)
    if lines:
        return f": found {shortened(repr(lines[0]))}{words}"
    return f": the file is empty{words or f', and so is {errors.name}'}"


def read_node(path: Path) -> Node:
    """Return the node of a file; ProvenanceError where it is not whole."""
    later = ("absent", *_OF_THE_STEP, *_OF_THE_PATH)
    values = {
        **{name: {} if name in MAPS else None for name in NAMES},
        **facts_of(path, NODE_HEADER),
    }
    node = _node(values, path)
    for key in NAMES:
        if key not in later and getattr(node, key) in (None, {}) and not reasons(node.absent, key):
            raise ProvenanceError(f"{path}: {key} is missing, and no line says why")
    return node


def _node(values: Mapping[str, Any], path: Path) -> Node:
    try:
        return codec.decode(Node, values, str(path))
    except NetproofError as error:
        raise ProvenanceError(str(error)) from error


def reasons(absent: Mapping[str, str], key: str) -> dict[str, str]:
    """Why a field of a node, or keys of a group of them, are not known: by key, the reason."""
    return {name: why for name, why in absent.items() if name == key or name.startswith(f"{key}.")}
