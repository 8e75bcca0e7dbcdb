"""Where a session came from: software, configuration, and every node as it was found in its job.

In a job, ``run/shell/node.py`` prints what a node is, which packets come through to the next, and
which neighbours answer over TCP; ``of_job`` reads these files when the job has ended
and gives the plain values that the report keeps under ``KEY``. ``of_results`` gathers all of a
session and says in what nodes differ; what of that is a fault is for the verdict.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from netproof import codec
from netproof.errors import NetproofError, grouped
from netproof.session.node_facts import (
    CLOCK_FILE,
    NODE_FILES,
    Node,
    clock_window,
    differences,
    read_node,
    with_clock,
    with_path,
)
from netproof.site.slurm import SlurmPartition, States, fold, state_of, unusable

if TYPE_CHECKING:
    from netproof.session.session import CheckResult

KEY = "netproof_provenance"
"""The key under which a job's test case keeps it in the report."""

KIND_CONFIGURATION, KIND_REFERENCES = "configuration", "references"


PartitionNodes = States | str
"""Nodes of one of ReFrame's partitions, as Slurm had them, or why they are not known."""


TRIES = "try-*"
"""Folders of a job's earlier tries: Slurm requeued it after each."""

REQUEUED = "requeued: "
"""How the sentence of such a try begins."""


@dataclass(frozen=True)
class Provenance:
    """Provenance of a job or a session: software and nodes.

    ``netproof``, ``reframe``, ``slurm``: versions, empty where no job has a record;
    ``git_changed``: there were changes in no revision; ``files``: the SHA-256 of each, by kind and
    path; ``unknown``: why each part that is missing is.

    Of a session also: ``of_nodes``: a sentence for everything in which nodes of one partition
    differ; ``beyond_nodes``: the same of jobs; ``partitions``: what Slurm's had when the run began.
    """

    netproof: str
    reframe: str
    slurm: str | None
    git_revision: str | None
    git_changed: bool | None
    files: dict[str, dict[str, str]]
    nodes: tuple[Node, ...]
    of_nodes: tuple[str, ...] = ()
    unknown: dict[str, str] = field(default_factory=dict)
    partitions: Mapping[str, PartitionNodes] = field(default_factory=dict)
    beyond_nodes: tuple[str, ...] = ()

    @cached_property
    def by_partition(self) -> Mapping[str, list[Node]]:
        """Return the nodes of each partition, each in each job."""
        return grouped((one.partition, one) for one in self.nodes)

    @property
    def differences(self) -> tuple[str, ...]:
        """Return all differences, those of nodes first."""
        return (*self.of_nodes, *self.beyond_nodes)


def software(configuration: Path, references: Path, checkout: Path) -> Provenance:
    """Return it without nodes: ask Slurm and git, and hash the files of two folders.

    ``configuration``: the folder of the sites' ``*.py``; ``references``: that of their
    ``*.yaml``; ``checkout``: a folder within the repository. Raises NetproofError where a
    folder or a file cannot be read.
    """
    unknown: dict[str, str] = {}

    def ask(key: str, *command: str) -> str | None:
        try:
            return _output(command)
        except NetproofError as error:
            unknown[key] = str(error)
            return None

    revision = ask("git_revision", "git", "-C", str(checkout), "rev-parse", "HEAD")
    changes = ask("git_changed", "git", "-C", str(checkout), "status", "--porcelain", "-uno")
    return Provenance(
        netproof=importlib.metadata.version("netproof"),
        reframe=importlib.metadata.version("reframe-hpc"),
        slurm=ask("slurm", "scontrol", "--version"),
        git_revision=revision,
        git_changed=None if changes is None else bool(changes),
        files={
            KIND_CONFIGURATION: _hashed(KIND_CONFIGURATION, configuration, "*.py"),
            KIND_REFERENCES: _hashed(KIND_REFERENCES, references, "*.yaml"),
        },
        nodes=(),
        unknown=unknown,
    )


def of_job(folder: Path, nodes: Sequence[str], ran_with: Provenance) -> dict[str, Any]:
    """Plain values for the report: ``ran_with``, the software, and every node of a job.

    ``folder`` has a file of ``NODE_FILES`` from each of ``nodes``, those of ``nodes_of_job``.
    Raises NetproofError where a node's file is missing, foreign or not whole. Without the files
    of the step on paths, or the moments of the step, the nodes say why these are not known.
    """
    found = {}
    for path in sorted(folder.glob(NODE_FILES)):
        node = read_node(path)
        if node.node in found:
            raise NetproofError(f"{path}: node {node.node} has another file too")
        found[node.node] = node
    missing, foreign = sorted(set(nodes) - set(found)), sorted(set(found) - set(nodes))
    if missing:
        raise NetproofError(
            f"{folder}: no {NODE_FILES} of {', '.join(missing)}; see its node.*.err and the"
            " rfm_job.err of its job: the environment may not be set up"
        )
    if foreign:
        raise NetproofError(f"{folder}: {', '.join(foreign)} wrote a file and is not of the job")
    window = clock_window(folder / CLOCK_FILE)
    described = [
        with_path(with_clock(found[name], window), folder, len(nodes)) for name in sorted(found)
    ]
    return dataclasses.asdict(dataclasses.replace(ran_with, nodes=tuple(described)))


def of_test(test: Mapping[str, Any], place: str) -> Provenance | str:
    """Return the provenance of a job's test case, or why it left none; NetproofError."""
    if not test[KEY]:
        how = test["result"] + (f" in {test['fail_phase']}" if test.get("fail_phase") else "")
        return f"the job left no record of them: {how}"
    made = codec.decode(Provenance, test[KEY], f"{place}: {KEY}: is not whole")
    where = {"partition": test["partition"], "environment": test["environ"]}
    where |= {"job": test["display_name"], "jobid": str(test["jobid"])}
    nodes = (dataclasses.replace(one, **where) for one in made.nodes)
    return dataclasses.replace(made, nodes=tuple(nodes))


def of_results(results: Sequence[CheckResult]) -> Provenance:
    """Return the provenance of a session by its results."""
    nodes: list[Node] = []
    ran_with: dict[str, Provenance] = {}
    unknown: dict[str, str] = {}
    requeued: dict[str, States] = {}
    for result in results:
        job, made_by = result.name, result.made_by
        requeued |= result.requeued
        if isinstance(made_by, str):
            unknown[f"nodes of {job}"] = made_by
        elif made_by is not None:
            ran_with[job] = dataclasses.replace(made_by, nodes=())
            nodes += made_by.nodes
    first = next(iter(ran_with.values()), Provenance("", "", None, None, None, {}, ()))
    if not ran_with:
        reason = "no job of the report says what it ran with, and on what"
        unknown |= {"software": reason, "nodes": reason}
    unknown |= first.unknown
    for found in nodes:
        for key, reason in found.absent.items():
            unknown.setdefault(f"{found.partition} {found.node} {key}", reason)
    changed = tuple(
        f"{job} ran with other versions, revision or files than {next(iter(ran_with))}"
        for job, other in ran_with.items()
        if other != first
    )
    return dataclasses.replace(
        first,
        nodes=tuple(nodes),
        of_nodes=differences(nodes),
        unknown=unknown,
        partitions={name: one for result in results for name, one in sorted(result.slurm.items())},
        beyond_nodes=(*changed, *requeued),
    )


def _hashed(kind: str, folder: Path, pattern: str) -> dict[str, str]:
    paths = sorted(folder.glob(pattern))
    if not paths:
        raise NetproofError(f"{folder}: has no {pattern} to tell the {kind} from")
    try:
        return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
    except OSError as error:
        raise NetproofError(f"{error.filename}: cannot be read: {error}") from error


def _output(command: Sequence[str]) -> str:
    if shutil.which(command[0]) is None:
        raise NetproofError(f"{command[0]} is not installed")
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NetproofError(f"{' '.join(command)}: {error}") from error
    if done.returncode:
        raise NetproofError(f"{' '.join(command)}: {done.stderr.strip() or 'failed'}")
    return done.stdout.strip()


def labelled(difference: str) -> str:
    """Return a difference of a session for people: a requeue says itself that it is one."""
    return difference if difference.startswith(REQUEUED) else f"nodes differ: {difference}"


def requeues(job: str, tries: Sequence[States]) -> dict[str, States]:
    """Return the nodes of each of ``earlier_tries`` of a job by a sentence on it."""
    found = {}
    for nodes in tries:
        ran_on = f" on {fold(nodes)}" if nodes else ""
        why = unusable(nodes) or "no node of it is down now: preempted, restarted, or by hand"
        found[f"{REQUEUED}{job}, after a try{ran_on}: {why}"] = nodes
    return found


def earlier_tries(folder: Path) -> list[dict[str, str]]:
    """Return the nodes of each earlier try of the job in ``folder``, as the next one found them."""
    tries = []
    for path in sorted(folder.glob(TRIES)):
        listed = path / "nodes.txt"
        lines = listed.read_text(errors="replace").splitlines() if listed.exists() else []
        found = (line.split("|", 2) for line in lines if line.count("|") >= 2)
        tries.append({name: state_of(state, reason) for name, state, reason in found})
    return tries


def partition_nodes(
    named: Sequence[str], restricting: Sequence[str], known: Mapping[str, SlurmPartition]
) -> PartitionNodes:
    """The nodes of one of ReFrame's partitions.

    ``named``: Slurm's partitions of its access; ``restricting``: options of the access that choose
    among their nodes, whose choice only Slurm knows; ``known``: what Slurm has, by name.
    """
    missing = [name for name in named if name not in known]
    if not named:
        return "its access names no partition of Slurm's"
    if missing:
        return f"Slurm has no partition {missing[0]}"
    if restricting:
        return f"its access chooses among the nodes: {' '.join(restricting)}"
    nodes = {node: state for name in named for node, state in known[name].nodes.items()}
    return dict(sorted(nodes.items()))


TRANSPORT_STEP = "transport"
"""Stem of the files of the step in which an MPI library is asked; recorded, never judged."""

MOST_LINES = 40
MOST_LETTERS = 200
MOST_TOLD = 5

ASK = {
    "OMPI_MCA_hook_comm_method_display": "mpi_init",
    # Open MPI 4 has not that in every build: it says which BTL it uses to whom.
    "OMPI_MCA_hook_comm_method_enable_mpi_init": "1",
    "OMPI_MCA_btl_base_verbose": "1",
    "UCX_LOG_LEVEL": "info",
    "MPIR_CVAR_DEBUG_SUMMARY": "1",
    "I_MPI_DEBUG": "4",
}
"""How MPI libraries are asked, each by its own variables; those of others mean nothing to them."""

_BENCHMARKS_OWN = re.compile(
    r"\s*|\s*#.*|[\s\d.]+|\s*[0-9]+: +[0-9]+ bytes.*|[0-9]+: \S+|Now starting the main loop"
    r"|Using no perturbations|Sending output to .*|srun: .*"
)
"""Lines that are IMB's, NetPIPE's and srun's."""

_TELLING = re.compile(r"libfabric provider: |o[nf]f?-host: |: Using \S+ btl |_cfg#[0-9]|netmod")
"""Lines of Intel MPI and MPICH, of Open MPI, and of UCX."""


def transport_step(program: Sequence[str], srun: Sequence[str], nodes: int) -> tuple[str, ...]:
    """Return the arguments of a run of ``program``'s two ranks on one or two nodes.

    The library says there what it uses, before a job's launches.
    """
    variables = [f"{name}={value}" for name, value in ASK.items()]
    placed = [f"--nodes={nodes}", "--ntasks=2", f"--ntasks-per-node={2 // nodes}"]
    return ("env", *variables, *srun, *placed, "--kill-on-bad-exit=1", *program)


def transport_of(folder: Path) -> tuple[str, ...] | str:
    """Return a library's lines on its transport, by a job's folder, or why there are none."""
    lines: list[str] = []
    try:
        for kind in ("out", "err"):
            text = (folder / f"{TRANSPORT_STEP}.{kind}").read_text(errors="replace")
            found = [line.rstrip() for line in text.splitlines()]
            lines += [line for line in found if not _BENCHMARKS_OWN.fullmatch(line)]
    except OSError as error:
        return f"{error.filename}: {error.strerror}: the job ended before it was asked"
    printable = ("".join(one if one.isprintable() else " " for one in line) for line in lines)
    said = [line[:MOST_LETTERS] for line in dict.fromkeys(printable)]
    if len(said) > MOST_LINES:
        # What names a transport first, whatever else was said before.
        said.sort(key=lambda line: _TELLING.search(line) is None)
        said = [*said[:MOST_LINES], f"… and {len(said) - MOST_LINES} more lines"]
    return tuple(said) or "the library said nothing of it"


def telling(said: Sequence[str]) -> tuple[str, ...]:
    """The lines that name a transport; where none of them does, the first few."""
    return tuple(line for line in said if _TELLING.search(line)) or tuple(said[:MOST_TOLD])
