"""Curves in a line of text: a block per message size or several, as high as its logarithm."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import pairwise

from netproof.criteria.findings import READABLE

BLOCKS = "▁▂▃▄▅▆▇█"


def columns(sizes: Iterable[int], width: int) -> tuple[tuple[int, ...], ...]:
    """Spread increasing message sizes in bytes over at most ``width`` columns of a line.

    Neighbours share a column where there are more sizes than columns, as evenly as possible.
    """
    ordered = sorted(set(sizes))
    count = min(width, len(ordered))
    edges = [round(number * len(ordered) / count) for number in range(count + 1)] if count else []
    return tuple(tuple(ordered[a:b]) for a, b in pairwise(edges))


def readable(values: Iterable[float]) -> list[float]:
    """Return the values that have a logarithm to draw; a printed 0 does not."""
    return [value for value in values if READABLE[0] <= value <= READABLE[1]]


def sparkline(
    at: Mapping[int, float],
    over: Sequence[Collection[int]],
    scale: tuple[float, float],
    worst: Callable[[list[float]], float],
) -> str:
    """Return a block for each column of sizes, a blank where the curve has none of them.

    ``at``: size in bytes to value; ``over``: from ``columns``; ``scale``: the values of the lowest
    and the highest block, both above 0, between which heights go by the logarithm; ``worst``: which
    one of several values stands for a column, ``max`` for times, ``min`` for bandwidths, so that no
    dropout is lost where the line is short.
    """
    low, high = map(math.log, scale)
    line = []
    for sizes in over:
        values = readable(at[size] for size in sizes if size in at)
        if not values:
            line.append(" ")
            continue
        share = (math.log(worst(values)) - low) / (high - low) if high > low else 0.5
        step = min(max(int(share * len(BLOCKS)), 0), len(BLOCKS) - 1)
        line.append(BLOCKS[step])
    return "".join(line)
