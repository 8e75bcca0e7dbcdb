"""Names of nodes as Slurm abbreviates them: ``node[1-3,7],login-1``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from netproof.errors import NetproofError

_NUMBERED = re.compile(r"(.*?)(\d+)")


def fold(names: Iterable[str]) -> str:
    """Return the names in Slurm's short form: names with the same stem together, each once.

    As ``scontrol show hostlist`` prints them: numbers keep their leading zeros, and consecutive
    numbers of one width form a range.
    """
    plain: list[str] = []
    numbered: dict[str, set[str]] = {}
    for name in sorted(set(names)):
        found = _NUMBERED.fullmatch(name)
        if found is None:
            plain.append(name)
        else:
            numbered.setdefault(found[1], set()).add(found[2])
    folded = [*(_bracketed(prefix, numbers) for prefix, numbers in numbered.items()), *plain]
    return ",".join(folded)


def unfold(text: str) -> list[str]:
    """Return the names that a text abbreviates; NetproofError where it is no list of nodes."""
    try:
        return list(NodeSet(text, resolver=RESOLVER_NOGROUP))
    except NodeSetException as error:
        raise NetproofError(f"{text!r} is no list of nodes: {error}") from error


def _bracketed(prefix: str, numbers: Iterable[str]) -> str:
    ordered = sorted(numbers, key=lambda number: (_width(number), int(number), len(number)))
    if len(ordered) == 1:
        return prefix + ordered[0]
    ranges = []
    # In a run, number and place rise together.
    runs = groupby(enumerate(ordered), lambda one: (_width(one[1]), int(one[1]) - one[0]))
    for _, run in runs:
        first, *more = (number for _, number in run)
        ranges.append(f"{first}-{more[-1]}" if more else first)
    return f"{prefix}[{','.join(ranges)}]"


def _width(number: str) -> int:
    """Return the number of digits to which a number is zero-padded; 0 where it is not."""
    return len(number) if number.startswith("0") else 0
