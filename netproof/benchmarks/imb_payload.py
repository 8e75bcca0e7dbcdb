"""The least that a call of IMB must send between nodes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from netproof.benchmarks.collectives import LEAST_CROSSING, between

DEFAULT_WINDOW = 64

_WINDOW_ASKED = re.compile(r"^#.* -window_size ([0-9]{1,9})\b", re.MULTILINE)


def _to_next(nodes: Sequence[str]) -> int:
    return between(zip(nodes, [*nodes[1:], nodes[0]], strict=True))


def _to_other_half(nodes: Sequence[str]) -> int:
    half = len(nodes) // 2
    return between(zip(nodes[:half], nodes[half : 2 * half], strict=True))


CROSSING: Mapping[str, Callable[[Sequence[str]], int]] = {
    "PingPong": lambda nodes: 2 * _to_other_half(nodes),
    "PingPing": lambda nodes: 2 * _to_other_half(nodes),
    "Sendrecv": _to_next,
    "Exchange": lambda nodes: 2 * _to_next(nodes),
    "Uniband": _to_other_half,
    "Biband": lambda nodes: 2 * _to_other_half(nodes),
    **LEAST_CROSSING,
}
"""The least messages that cross between nodes in a call, from the node of each rank."""


def window(printed: str) -> int:
    """Return the messages that Uniband and Biband send for each one that they count."""
    asked = _WINDOW_ASKED.search(printed)
    return int(asked[1]) if asked else DEFAULT_WINDOW
