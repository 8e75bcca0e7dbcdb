"""Names of nodes as Slurm abbreviates them: ``node[1-3,7],login-1``."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

from netproof.errors import NetproofError, shortened

_NUMBERED = re.compile(r"[A-Za-z0-9_.-]*[0-9]")
_HOST = r"(?:(?:[A-Za-z0-9_.-]*\[[0-9,-]+\])+[A-Za-z0-9_.-]*|[A-Za-z0-9_.-]+)"
_HOST_LIST = re.compile(rf"{_HOST}(?:,{_HOST})*")
MOST_HOSTS = 100_000
"""More names than any cluster has: a damaged list is refused, not expanded."""


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


def unfold(text: str) -> tuple[str, ...]:
    """Return the names in a Slurm list of hosts: ``wide-[1-3,7],login`` are five.

    Raises NetproofError for any other text, or more than MOST_HOSTS names.
    """
    names: list[str] = []
    try:
        if not _HOST_LIST.fullmatch(text):
            raise ValueError("it takes names, and commas and ranges of numbers in brackets")
        for part in re.findall(_HOST, text):
            # A range is counted before it is expanded.
            ranges = [one.split(",") for one in re.findall(r"\[(.*?)\]", part)]
            if math.prod(sum(map(_length, one)) for one in ranges) > MOST_HOSTS - len(names):
                raise ValueError(f"it has more than {MOST_HOSTS} names")
            names += NodeSet(part, resolver=RESOLVER_NOGROUP)
    except (ValueError, NodeSetException) as error:
        text = shortened(repr(text), 80)
        raise NetproofError(f"{text} is no list of Slurm's hosts: {error}") from error
    return tuple(names)


def _length(numbers: str) -> int:
    low, _, high = numbers.partition("-")
    return int(high or low) - int(low) + 1
