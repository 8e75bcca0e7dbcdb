"""Slurm's view of a run's partitions and their nodes when it began."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netproof import codec
from netproof.errors import NetproofError
from netproof.session.node_facts import ProvenanceError
from netproof.site.hostlist import fold
from netproof.site.slurm import SlurmNode, SlurmPartition, node_of

SLURM_KEY = "netproof_slurm"
"""The key under which one test case of a run keeps what Slurm said of the partitions."""


@dataclass(frozen=True)
class PartitionNodes:
    """The nodes of one of ReFrame's partitions, as Slurm had them at the run's start.

    ``why`` they are not known, or empty; there are none then.
    """

    partition: str
    nodes: tuple[SlurmNode, ...]
    why: str = ""

    @property
    def usable(self) -> tuple[str, ...]:
        """The names of those that a job can have, now or later."""
        return tuple(node.name for node in self.nodes if node.usable)


TRIES = "try-*"
"""Folders of a job's earlier tries: Slurm requeued it after each."""

REQUEUED = "requeued: "
"""How the sentence of such a try begins."""


@dataclass(frozen=True)
class Requeued:
    """An earlier try of a job: the nodes it ran on, with Slurm's states when the next began."""

    partition: str
    job: str
    jobid: str
    nodes: tuple[SlurmNode, ...]

    @property
    def died(self) -> tuple[SlurmNode, ...]:
        """The nodes that no job could have by then."""
        return tuple(node for node in self.nodes if not node.usable)

    def __str__(self) -> str:
        ran_on = f" on {fold(node.name for node in self.nodes)}" if self.nodes else ""
        why = (
            "; ".join(map(str, self.died))
            or "no node of it is down now: preempted, restarted, or by hand"
        )
        return f"{REQUEUED}{self.job} (job {self.jobid}), after a try{ran_on}: {why}"


def labelled(difference: str) -> str:
    """Return a difference of a session for people: a requeue says itself that it is one."""
    return difference if difference.startswith(REQUEUED) else f"nodes differ: {difference}"


def earlier_tries(folder: Path) -> tuple[tuple[SlurmNode, ...], ...]:
    """Return the nodes of each earlier try of the job in ``folder``."""
    tries = []
    for path in sorted(folder.glob(TRIES)):
        listed = path / "nodes.txt"
        lines = listed.read_text(errors="replace").splitlines() if listed.exists() else []
        tries.append(tuple(node_of(*line.split("|", 2)) for line in lines if line.count("|") >= 2))
    return tuple(tries)


def partition_nodes(
    partition: str,
    named: Sequence[str],
    restricting: Sequence[str],
    known: Mapping[str, SlurmPartition],
) -> PartitionNodes:
    """The nodes of one of ReFrame's partitions.

    ``named``: Slurm's partitions of its access; ``restricting``: options of the access that choose
    among their nodes, whose choice only Slurm knows; ``known``: what Slurm has, by name.
    """
    missing = [name for name in named if name not in known]
    if not named:
        return PartitionNodes(partition, (), "its access names no partition of Slurm's")
    if missing:
        return PartitionNodes(partition, (), f"Slurm has no partition {missing[0]}")
    if restricting:
        return PartitionNodes(
            partition, (), f"its access chooses among the nodes: {' '.join(restricting)}"
        )
    nodes = {node.name: node for name in named for node in known[name].nodes}
    return PartitionNodes(partition, tuple(nodes[name] for name in sorted(nodes)))


def partitions_of(values: Any, place: str) -> list[PartitionNodes]:
    """Return what Slurm said of the partitions, from the record in a report; ProvenanceError."""
    try:
        found = codec.decode(tuple[PartitionNodes, ...], values, "partitions")
    except NetproofError as error:
        raise ProvenanceError(f"{place}: is not whole: {error}") from error
    return sorted(found, key=lambda one: one.partition)
