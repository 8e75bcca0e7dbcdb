"""The usable nodes and switches that Slurm reports."""

from __future__ import annotations

from collections.abc import Sequence

from reframe.core.exceptions import ReframeError

from netproof.errors import NetproofError
from netproof.site import slurm


def count_usable(access: Sequence[str], most: int) -> int:
    """Return how many nodes a job can have; ``most`` if Slurm reports no usable ones.

    ``access``: ReFrame's options of the partition; ``most``: the site's limit per job. Slurm's own
    limits apply too. Nodes that other jobs hold now count, since the job waits for them. Raises
    ReframeError if Slurm does not answer or allows none.
    """
    try:
        there = slurm.partitions()
        named = slurm.names_in(access)
        usable = {
            node.name
            for name in named
            if name in there
            for node in there[name].nodes
            if node.usable
        }
    except NetproofError as error:
        raise ReframeError(f"which nodes are usable is not known: {error}") from None
    if not usable:
        return most
    allowed, refusal = slurm.most_nodes(access, min(most, len(usable)))
    if not allowed:
        raise ReframeError(refusal)
    return allowed


def tree() -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """Return Slurm's leaf switches with their nodes, and the switch above each.

    Raises ReframeError if Slurm does not answer.
    """
    try:
        known = slurm.topology()
    except NetproofError as error:
        raise ReframeError(f"which switch has which nodes is not known: {error}") from None
    if known is None:
        return {}, {}
    leaves = {one.name: one.nodes for one in known.leaves}
    parents = {below: one.name for one in known.switches for below in one.switches}
    return leaves, parents
