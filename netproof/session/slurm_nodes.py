"""What Slurm said of a run's partitions and their nodes when it began."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from netproof.errors import NetproofError
from netproof.intake.shapes import TEXT, WHOLE, Each, Keys, insist
from netproof.session.node_facts import ProvenanceError
from netproof.site.slurm import SlurmNode, SlurmPartition

SLURM_KEY = "netproof_slurm"
"""The key under which one test case of a run keeps what Slurm said of the partitions."""

SLURM_FORMAT = 1


@dataclass(frozen=True)
class PartitionNodes:
    """The nodes of one of ReFrame's partitions, as Slurm had them at the run's start.

    ``why`` they are not known, or empty; there are none then.
    """

    partition: str
    nodes: tuple[SlurmNode, ...]
    why: str = ""


_SLURM_SHAPE = Keys(
    {
        "format": WHOLE,
        "partitions": Each(
            Keys(
                {
                    "partition": TEXT,
                    "why": TEXT,
                    "nodes": Each(Keys(dict.fromkeys(("name", "state", "reason"), TEXT))),
                }
            )
        ),
    }
)


def slurm_record(found: Sequence[PartitionNodes]) -> dict[str, Any]:
    """Plain values for the report of what Slurm said of the partitions at the run's start."""
    return {"format": SLURM_FORMAT, "partitions": [dataclasses.asdict(one) for one in found]}


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


def read_slurm_record(record: Any, place: str) -> list[PartitionNodes]:
    """What Slurm said of the partitions, from the record in a report."""
    try:
        insist(record, _SLURM_SHAPE, "a record")
    except NetproofError as error:
        raise ProvenanceError(f"{place}: is not whole: {error}") from error
    if record["format"] != SLURM_FORMAT:
        raise ProvenanceError(
            f"{place}: is of format {record['format']}, and this netproof reads {SLURM_FORMAT}"
        )
    found = [
        PartitionNodes(
            one["partition"], tuple(SlurmNode(**node) for node in one["nodes"]), one["why"]
        )
        for one in record["partitions"]
    ]
    return sorted(found, key=lambda one: one.partition)
