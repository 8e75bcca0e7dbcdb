"""Names of nodes as Slurm abbreviates them: ``node[1-3,7],login-1``."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from netproof.errors import NetproofError

_NUMBERED = re.compile(r"[A-Za-z0-9_.-]*[0-9]")


def fold(names: Iterable[str]) -> str:
    """Return the names in Slurm's short form: names with the same stem together, each once.

    As ``scontrol show hostlist`` prints them: numbers keep their leading zeros, and consecutive
    numbers of one width form a range.
    """
    different = sorted(set(names))
    numbered = [name for name in different if _NUMBERED.fullmatch(name)]
    folded = NodeSet.fromlist(numbered, resolver=RESOLVER_NOGROUP)
    # Racks are no ranges.
    folded.fold_axis = (-1,)
    plain = [name for name in different if not _NUMBERED.fullmatch(name)]
    return ",".join(filter(None, (str(folded), *plain)))


def unfold(text: str) -> list[str]:
    """Return the names that a text abbreviates; NetproofError where it is no list of nodes."""
    try:
        return list(NodeSet(text, resolver=RESOLVER_NOGROUP))
    except NodeSetException as error:
        raise NetproofError(f"{text!r} is no list of nodes: {error}") from error
