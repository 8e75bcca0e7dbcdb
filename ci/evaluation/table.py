"""Tables as Markdown, and the statistics of proportions, for all evaluations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from scipy.stats import binomtest

CONFIDENCE = 0.95


def markdown(rows: Sequence[Sequence[object]]) -> list[str]:
    """Return the lines of a table in Markdown; the first row is its head."""
    several = rows[0], ["---"] * len(rows[0]), *rows[1:]
    return [f"| {' | '.join(map(str, row))} |" for row in several]


def show(head: Sequence[object], rows: Iterable[Sequence[object]]) -> None:
    """Print a table in Markdown, and an empty line."""
    print("\n".join(markdown([head, *rows])), end="\n\n")


def upper_limit(wrong: int, runs: int) -> float:
    """Return the one-sided limit on the rate of ``wrong`` (Clopper and Pearson 1934)."""
    return binomtest(wrong, runs, alternative="less").proportion_ci(CONFIDENCE, "exact").high


def exact_interval(hits: int, runs: int) -> tuple[float, float]:
    """Return the exact 95 % interval of a share (Clopper and Pearson, Biometrika 26, 1934)."""
    interval = binomtest(hits, runs).proportion_ci(CONFIDENCE, "exact")
    return interval.low, interval.high


def counted(names: Iterable[str]) -> str:
    """Return how often each name occurs, the most frequent first."""
    return ", ".join(f"{name} {count}" for name, count in Counter(names).most_common()) or "-"
