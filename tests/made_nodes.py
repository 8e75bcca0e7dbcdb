"""The nodes of a recorded job, as they were or changed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from netproof.session import provenance
from netproof.session.node_facts import Node
from netproof.session.provenance import Provenance

RECORDED = Path(__file__).parent / "data" / "nodes"
GIGE = tuple(f"gige-{n}" for n in range(1, 5))
SOFTWARE = Provenance("0.1.0", "4.10.4", "slurm 22.05.8", "abc", False, {}, ())


def in_job(folder: str = "same", jobid: str = "7", environment: str = "mpich") -> list[Node]:
    """The nodes of a recorded job."""
    job = {"partition": "gige", "environment": environment, "jobid": jobid}
    record = provenance.of_job(RECORDED / folder, GIGE, SOFTWARE)
    return [Node(**{**values, **job}) for values in record["nodes"]]


def changed(found: Node, **values: Any) -> Node:
    """The node with other values; those of a group are added to what it has."""
    merged = {
        name: {**getattr(found, name), **value} if isinstance(value, Mapping) else value
        for name, value in values.items()
    }
    return dataclasses.replace(found, **merged)
