"""The system that ReFrame runs on: rank counts, environments of pairs, Slurm's nodes."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Sequence

from reframe.core.exceptions import ReframeError
from reframe.core.runtime import runtime
from reframe.core.systems import SystemPartition

from netproof.errors import NetproofError
from netproof.session import provenance
from netproof.site import slurm
from netproof.site.keys import PARTITION_KEYS
from netproof.site.partition import (
    Partition,
    ScoreBaseline,
    pair_environments,
    score_baseline,
)


def rank_counts() -> list[int]:
    """Return the rank counts of all partitions; NetproofError if the system is not configured."""
    # A parameter without values is a warning of ReFrame's; no partition has one rank.
    return sorted({count for one in _partitions() for count in one.extras["rank_counts"]}) or [1]


def partition_names() -> list[str]:
    """Return the names of the partitions of the system that ReFrame runs on."""
    return [one.name for one in _partitions()]


@functools.cache
def pair_places() -> dict[tuple[str, int], list[str]]:
    """Return environment and turn of each job of pairs, with its ``SYSTEM:PARTITION``s.

    Only environments that ``-p`` selects count. Raises NetproofError as ``rank_counts`` does.
    """
    places: dict[tuple[str, int], list[str]] = {}
    for one in _partitions():
        settings = Partition.model_validate(one.extras).pair_settings()
        there = [(environ.name, environ.features, environ.extras) for environ in one.environs]
        for name in pair_environments(settings, there):
            for turn in range(pair_turns(one.name)):
                places.setdefault((name, turn + 1), []).append(one.fullname)
    return places


@functools.cache
def pair_turns(partition: str) -> int:
    """Return how many jobs it takes until the site's share of usable nodes has been in one.

    One where a job can have them all, or a single one, and where that is not known.
    """
    (own,) = (one for one in _partitions() if one.name == partition)
    if slurm.options_in(own.access, slurm.CHOOSING):
        return 1
    try:
        count, usable = usable_nodes(own.access, own.extras["nodes"])
    except ReframeError:
        # The job asks again, and fails with the reason.
        return 1
    needed = math.ceil(len(usable) * own.extras["coverage_percent"] / 100)
    return max(1, math.ceil(needed / count)) if count > 1 else 1


_TODAY = int(time.time() // 86400)
"""The day on which the run began."""


def first_turn(partition: str) -> int:
    """Return the number of today's first turn: of more nodes than needed each has its day."""
    return _TODAY * pair_turns(partition)


def _partitions() -> list[SystemPartition]:
    several: list[SystemPartition] = runtime().system.partitions
    for partition in several:
        missing = [key for key in PARTITION_KEYS if key not in partition.extras]
        if missing:
            raise NetproofError(
                f"partition {partition.fullname} has no extras[{missing[0]!r}]: the checks need"
                " a configuration from site-config/; source the site's activate,"
                " or set RFM_CONFIG_PATH and choose a system with --system"
            )
    return several


def baseline_of_system() -> ScoreBaseline | None:
    """Return the configuration that scores of this system are relative to."""
    partitions = [{"name": one.name, "extras": one.extras} for one in runtime().system.partitions]
    return score_baseline(partitions)


def slurm_now() -> list[provenance.PartitionNodes]:
    """Return Slurm's present nodes of every partition of the system that ReFrame runs on."""
    several, found = runtime().system.partitions, []
    try:
        known = slurm.partitions()
    except NetproofError as error:
        return [provenance.PartitionNodes(one.name, (), str(error)) for one in several]
    for one in several:
        named, choosing = slurm.names_in(one.access), slurm.options_in(one.access, slurm.CHOOSING)
        found.append(provenance.partition_nodes(one.name, named, choosing, known))
    return found


def of_other_turns(usable: Sequence[str], count: int, turn: int) -> tuple[str, ...]:
    """Return the nodes that the job of a turn leaves to others; ``count``: those that it takes.

    Each turn goes on where the one before ended, again from the first node after the last.
    """
    ordered = sorted(usable)
    own = {ordered[(turn * count + n) % len(ordered)] for n in range(count)}
    return tuple(name for name in ordered if name not in own)


def usable_nodes(access: Sequence[str], most: int) -> tuple[int, tuple[str, ...]]:
    """Return how many nodes a job can have, and the usable ones; ``most`` if there are none.

    ``access``: ReFrame's options of the partition; ``most``: the site's limit per job. Slurm's own
    limits apply too. Nodes that other jobs hold now count, since the job waits for them. Raises
    ReframeError if Slurm does not answer or allows none.
    """
    try:
        there, named = slurm.partitions(), slurm.names_in(access)
        nodes = (node for name in named if name in there for node in there[name].nodes)
        usable = {node.name for node in nodes if node.usable}
    except NetproofError as error:
        raise ReframeError(f"which nodes are usable is not known: {error}") from None
    if not usable:
        return most, ()
    allowed, refusal = slurm.most_nodes(access, min(most, len(usable)))
    if not allowed:
        raise ReframeError(refusal)
    return allowed, tuple(usable)


def tree() -> slurm.Tree:
    """Return Slurm's leaf switches with their nodes, and the switch above each; ReframeError."""
    try:
        return slurm.topology()
    except NetproofError as error:
        raise ReframeError(f"which switch has which nodes is not known: {error}") from None
