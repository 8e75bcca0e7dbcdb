"""Where a session came from: software, configuration, and every node as it was found in its job.

In a job, ``run/shell/node.sh`` prints what a node is; ``of_job`` reads these files when the job has
ended and gives the plain values that the report keeps under ``KEY``;
``of_report`` gathers them from all jobs of a report and says in what nodes differ.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
import shlex
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netproof.errors import NetproofError, shortened
from netproof.intake.shapes import TEXT, TEXTS_BY_NAME, WHOLE, YES_OR_NO, Each, Keys, OrNone, insist

FORMAT = 1
"""Format of a job's record in the report; raised when its keys change."""

KEY = "netproof_provenance"
"""The key under which a job's test case keeps it in the report."""

NODE_HEADER = "netproof-node\t1"
NODE_END = "end"
NODE_FILES = "node.*.txt"
"""What the job's nodes print, a file each, named after the node."""

JOB_NODES_FILE = "job_nodes.txt"
"""Where a job notes, from within, which nodes Slurm gave it. ``sacct`` may be asked too early."""

JOB_NODES_HEADER = "netproof-job-nodes\t1"

NODE_STEP_LIMIT_S = 60
"""Seconds after which the step that describes the nodes is ended; it takes about one."""

KIND_CONFIGURATION, KIND_REFERENCES = "configuration", "references"

_MAPS = ("offloads", "coalescing", "sysctls", "programs", "absent")
_NUMBERS = ("cpus", "link_mbit_s", "mtu")
_IDENTITY = ("node", "interface")


class ProvenanceError(NetproofError):
    """A node's file or a report's record that is not whole; the text names the place."""


@dataclass(frozen=True)
class Node:
    """A node as a job found it.

    ``link_mbit_s`` in 10⁶ bit/s, ``mtu`` in bytes; ``offloads``, ``coalescing``: what
    ``ethtool -k`` and ``-c`` list; ``programs``: SHA-256 and path of each benchmark and of the
    MPI libraries that it loads. What is None or empty has its reason in ``absent``.
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


@dataclass(frozen=True)
class File:
    """A file of configuration or references, and the SHA-256 of what it held."""

    kind: str
    path: str
    sha256: str


@dataclass(frozen=True)
class Software:
    """Versions, and the revision and the files that the run was made with.

    None has its reason in ``absent``; ``git_changed`` tells of changes that are in no revision.
    """

    netproof: str
    reframe: str
    slurm: str | None
    git_revision: str | None
    git_changed: bool | None
    files: tuple[File, ...]
    absent: dict[str, str]


@dataclass(frozen=True)
class NodeInJob:
    """A node in one job of a session, whose ``job`` is ReFrame's name and ``jobid`` Slurm's."""

    partition: str
    environment: str
    job: str
    jobid: str
    node: Node


@dataclass(frozen=True)
class OfSession:
    """Provenance of a session; ``unknown`` says of each part that is missing why it is.

    ``differences``: a sentence for everything in which nodes of one partition, or jobs, differ.
    """

    software: Software | None
    nodes: tuple[NodeInJob, ...]
    differences: tuple[str, ...]
    unknown: dict[str, str]


_FILE_SHAPE = Keys(dict.fromkeys(("kind", "path", "sha256"), TEXT))
_SOFTWARE_SHAPE = Keys(
    {
        **dict.fromkeys(("netproof", "reframe"), TEXT),
        **dict.fromkeys(("slurm", "git_revision"), OrNone(TEXT)),
        "git_changed": OrNone(YES_OR_NO),
        "files": Each(_FILE_SHAPE),
        "absent": TEXTS_BY_NAME,
    }
)
_NODE_SHAPE = Keys(
    {
        **dict.fromkeys((field.name for field in dataclasses.fields(Node)), OrNone(TEXT)),
        **dict.fromkeys(_IDENTITY, TEXT),
        **dict.fromkeys(_NUMBERS, OrNone(WHOLE)),
        **dict.fromkeys(_MAPS, TEXTS_BY_NAME),
    }
)
_RECORD_SHAPE = Keys({"software": _SOFTWARE_SHAPE, "nodes": Each(_NODE_SHAPE)})
"""Of what kind each value of a job's record is."""


def software(configuration: Path, references: Path, checkout: Path) -> Software:
    """What the session runs with: asks Slurm and git, and hashes the files of two folders.

    ``configuration``: the folder of the sites' ``*.py``; ``references``: that of their
    ``*.yaml``; ``checkout``: a folder within the repository. Raises ProvenanceError where a
    folder or a file cannot be read.
    """
    absent: dict[str, str] = {}

    def ask(key: str, *command: str) -> str | None:
        try:
            return _output(command)
        except ProvenanceError as error:
            absent[key] = str(error)
            return None

    revision = ask("git_revision", "git", "-C", str(checkout), "rev-parse", "HEAD")
    changes = ask("git_changed", "git", "-C", str(checkout), "status", "--porcelain", "-uno")
    return Software(
        netproof=importlib.metadata.version("netproof"),
        reframe=importlib.metadata.version("reframe-hpc"),
        slurm=ask("slurm", "scontrol", "--version"),
        git_revision=revision,
        git_changed=None if changes is None else bool(changes),
        files=(
            *_hashed(KIND_CONFIGURATION, configuration, "*.py"),
            *_hashed(KIND_REFERENCES, references, "*.yaml"),
        ),
        absent=absent,
    )


def node_step(interface: str) -> str:
    """Shell text, within a job's script, of the step in which every node writes its file.

    ``interface``: that of the partition. It ends after ``NODE_STEP_LIMIT_S`` and never ends the
    script: what is missing then is for ``of_job`` to tell. ``node.sh`` has to be in the folder.
    """
    everywhere = (
        '--nodes="$SLURM_JOB_NUM_NODES" --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1'
        " --output=node.%N.txt --error=node.%N.err"
    )
    limit = f"timeout --signal=TERM --kill-after=5 {NODE_STEP_LIMIT_S}"
    return f"{limit} srun --mpi=none {everywhere} bash ./node.sh {shlex.quote(interface)}"


def nodes_of_job(folder: Path, jobid: str) -> tuple[str, ...]:
    """The nodes of a job by Slurm's names, in Slurm's order, as it noted them from within.

    ``folder`` has its ``JOB_NODES_FILE``; ``jobid`` is Slurm's. Raises ProvenanceError, naming the
    file, where that is missing, empty, cut short, of another job or not what ``job_nodes`` prints.
    """
    path = folder / JOB_NODES_FILE
    try:
        text = path.read_text()
    except (OSError, ValueError) as error:
        raise ProvenanceError(f"{path}: cannot be read: {error}; see {folder}'s *.err") from error
    lines = text.splitlines()
    if not lines or lines[0] != JOB_NODES_HEADER:
        raise ProvenanceError(f"{path}:1: the header {JOB_NODES_HEADER!r} is missing")
    if lines[-1] != NODE_END or not text.endswith("\n"):
        raise ProvenanceError(f"{path}:{len(lines)}: is cut short, {NODE_END!r} is missing")
    found = []
    for number, (line, key) in enumerate(
        zip(lines[1:-1], ("jobid", "count", *("node" for _ in lines)), strict=False), 2
    ):
        name, _, value = line.partition("\t")
        if name != key or not value.strip():
            raise ProvenanceError(f"{path}:{number}: {line!r} is no {key} with a value")
        found.append(value)
    if len(found) < 3:
        raise ProvenanceError(f"{path}: names no node")
    noted, count, *nodes = found
    if noted != jobid:
        raise ProvenanceError(f"{path}:2: is of job {noted} and not of {jobid}")
    if count != str(len(nodes)) or len(set(nodes)) != len(nodes):
        raise ProvenanceError(
            f"{path}:3: Slurm gave {count} nodes, and those listed are {', '.join(nodes)}"
        )
    return tuple(nodes)


def of_job(folder: Path, nodes: Sequence[str], ran_with: Software) -> dict[str, Any]:
    """Plain values for the report: the software, and every node of a job.

    ``folder`` has a file of ``NODE_FILES`` from each of ``nodes``, those of ``nodes_of_job``.
    Raises ProvenanceError where a node's file is missing, foreign or not whole.
    """
    found = {}
    for path in sorted(folder.glob(NODE_FILES)):
        node = read_node(path)
        if node.node in found:
            raise ProvenanceError(f"{path}: node {node.node} has another file too")
        found[node.node] = node
    missing, foreign = sorted(set(nodes) - set(found)), sorted(set(found) - set(nodes))
    if missing:
        raise ProvenanceError(
            f"{folder}: no {NODE_FILES} of {', '.join(missing)}; see its node.*.err"
        )
    if foreign:
        raise ProvenanceError(f"{folder}: {', '.join(foreign)} wrote a file and is not of the job")
    return {
        "format": FORMAT,
        "software": dataclasses.asdict(ran_with),
        "nodes": [dataclasses.asdict(found[name]) for name in sorted(found)],
    }


def read_node(path: Path) -> Node:
    """A node from what ``run/shell/node.sh`` printed; ProvenanceError, with the line, if cut."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, ValueError) as error:
        raise ProvenanceError(f"{path}: cannot be read: {error}") from error
    if not lines or lines[0] != NODE_HEADER:
        raise ProvenanceError(f"{path}:1: the header {NODE_HEADER!r} is missing")
    if lines[-1] != NODE_END:
        raise ProvenanceError(f"{path}:{len(lines)}: is cut short, {NODE_END!r} is missing")
    values: dict[str, Any] = {name: {} for name in _MAPS}
    plain = [field.name for field in dataclasses.fields(Node) if field.name not in _MAPS]
    for number, line in enumerate(lines[1:-1], 2):
        key, tab, value = line.partition("\t")
        group, dot, name = key.partition(".")
        if not tab or not value:
            raise ProvenanceError(
                f"{path}:{number}: {shortened(repr(line))} is no key with a value"
            )
        if dot and group in _MAPS:
            place, key = values[group], name
        elif key in plain:
            place = values
        else:
            raise ProvenanceError(f"{path}:{number}: {shortened(repr(key))} is not known")
        if key in place:
            raise ProvenanceError(
                f"{path}:{number}: {shortened(repr(line))} is the second of its key"
            )
        place[key] = _number(path, number, value) if place is values and key in _NUMBERS else value
    for key in _IDENTITY:
        if key not in values:
            raise ProvenanceError(f"{path}: {key} is missing")
    for key in (*plain, *_MAPS[:-1]):
        reasons = [name for name in values["absent"] if name == key or name.startswith(f"{key}.")]
        if not values.get(key) and not reasons:
            raise ProvenanceError(f"{path}: {key} is missing, and no line says why")
    return Node(**dict.fromkeys(plain) | values)


def of_report(report: Mapping[str, Any], path: str) -> OfSession:
    """Provenance from a report's document; ``path`` is named in errors.

    Raises ProvenanceError where a job's record is not what ``of_job`` gave.
    """
    nodes: list[NodeInJob] = []
    ran_with: dict[str, Software] = {}
    unknown: dict[str, str] = {}
    jobs = [test for run in report["runs"] for test in run["testcases"] if KEY in test]
    if not jobs:
        reason = "the report is of a netproof that recorded none"
        return OfSession(None, (), (), {"software": reason, "nodes": reason})
    for test in jobs:
        job, record = test["display_name"], test[KEY]
        if not record:
            how = test["result"] + (f" in {test['fail_phase']}" if test["fail_phase"] else "")
            unknown[f"nodes of {job}"] = f"the job left no record of them: {how}"
            continue
        place = f"{path}: {job}: {KEY}"
        stated_format = record.get("format") if isinstance(record, Mapping) else None
        if stated_format != FORMAT:
            raise ProvenanceError(
                f"{place}: is of format {shortened(repr(stated_format))}, and this netproof reads"
                f" {FORMAT}"
            )
        try:
            insist(record, _RECORD_SHAPE, "a job's record")
            stated = dict(record["software"])
            stated["files"] = tuple(File(**file) for file in stated["files"])
            ran_with[job] = Software(**stated)
            nodes += [
                NodeInJob(test["partition"], test["environ"], job, str(test["jobid"]), Node(**node))
                for node in record["nodes"]
            ]
        except (NetproofError, AttributeError, KeyError, TypeError, ValueError) as error:
            raise ProvenanceError(f"{place}: is not whole: {error}") from error
    first = next(iter(ran_with.values()), None)
    if first is None:
        unknown["software"] = "no job of the report says what it ran with"
    else:
        unknown |= first.absent
    for found in nodes:
        for key, reason in found.node.absent.items():
            unknown.setdefault(f"{found.partition} {found.node.node} {key}", reason)
    changed = tuple(
        f"{job} ran with other versions, revision or files than {next(iter(ran_with))}"
        for job, other in ran_with.items()
        if other != first
    )
    return OfSession(first, tuple(nodes), (*differences(nodes), *changed), unknown)


def differences(nodes: Sequence[NodeInJob]) -> tuple[str, ...]:
    """Sentences on everything in which nodes differ that should be alike.

    All nodes of a partition are held against one another, a node in several jobs against
    itself; programs only within an environment. What one of them could not tell counts as a
    value of its own.
    """
    seen: dict[tuple[str, str], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    told: dict[tuple[str, str], set[str]] = defaultdict(set)
    for found in nodes:
        for scope, key, value in _values(found):
            seen[scope, key][value].add(found.node.node)
        for scope in (found.partition, f"{found.partition} {found.environment}"):
            told[scope, ""].add(found.node.node)
    sentences = []
    for (scope, key), by_value in sorted(seen.items()):
        silent = told[scope, ""] - set().union(*by_value.values())
        if silent:
            by_value["not known"] |= silent
        if len(by_value) > 1:
            each = sorted(by_value.items(), key=lambda item: (-len(item[1]), item[0]))
            stated = "; ".join(f"{value} ({', '.join(sorted(on))})" for value, on in each)
            sentences.append(f"{scope}: {key}: {stated}")
    return tuple(sentences)


def between(
    first: Sequence[NodeInJob], second: Sequence[NodeInJob]
) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """In what the nodes of two runs differ, by name to the values in each, sorted.

    Only what both know; of a program that both have, the hash without the path.
    """
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
        if key in other and one[key] != other[key]
    }


def _values(found: NodeInJob) -> Iterator[tuple[str, str, str]]:
    """Scope, name and value of what has to be alike; the place on the bus need not be."""
    for field in dataclasses.fields(Node):
        value = getattr(found.node, field.name)
        if field.name in ("node", "bus", "absent"):
            continue
        if field.name in _MAPS:
            scope = found.partition
            if field.name == "programs":
                scope = f"{found.partition} {found.environment}"
            yield from ((scope, f"{field.name} {key}", text) for key, text in value.items())
        elif value is not None:
            yield found.partition, field.name, str(value)


def _number(path: Path, number: int, value: str) -> int:
    if not value.isascii() or not value.isdigit():
        raise ProvenanceError(f"{path}:{number}: {shortened(repr(value))} is no whole number")
    return int(value)


def _hashed(kind: str, folder: Path, pattern: str) -> Iterator[File]:
    paths = sorted(folder.glob(pattern))
    if not paths:
        raise ProvenanceError(f"{folder}: has no {pattern} to tell the {kind} from")
    for path in paths:
        try:
            yield File(kind, str(path), hashlib.sha256(path.read_bytes()).hexdigest())
        except OSError as error:
            raise ProvenanceError(f"{path}: cannot be read: {error}") from error


def _output(command: Sequence[str]) -> str:
    if shutil.which(command[0]) is None:
        raise ProvenanceError(f"{command[0]} is not installed")
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ProvenanceError(f"{' '.join(command)}: {error}") from error
    if done.returncode:
        raise ProvenanceError(f"{' '.join(command)}: {done.stderr.strip() or 'failed'}")
    return done.stdout.strip()
