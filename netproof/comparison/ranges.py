"""Ranges of sizes over which one side is faster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from netproof.measurement.curve import Curve

RANGE_SIZES = 3
"""Sizes that make a range: at each, the launches of both sides do not overlap."""

RANGE_LAUNCHES = 3
"""Launches of each side that a range takes."""

LONE_SIZE_RATIO = 2.0
"""Ratio from which a size outside all ranges is reported too."""


@dataclass(frozen=True)
class Range:
    """Neighbouring sizes, from ``least`` to ``largest`` bytes, over which one side is faster.

    ``faster``: whether the second side is; ``ratio`` at ``size`` is the one furthest from 1.
    """

    least: int
    largest: int
    faster: bool
    size: int
    ratio: float

    def __str__(self) -> str:
        """Return the range as part of a sentence about the second side."""
        word = "faster" if self.faster else "slower"
        if self.least == self.largest:
            return f"{word} at {self.size} bytes ({self.ratio:.3g} times as fast)"
        return (
            f"{word} from {self.least} to {self.largest} bytes ({self.ratio:.3g} times as fast at"
            f" {self.size})"
        )


def ranges_of(
    first: Sequence[Curve], second: Sequence[Curve], ratios: Mapping[int, float]
) -> tuple[Range, ...]:
    """Return the ranges in which all launches of one side beat all of the other.

    A range has ``RANGE_SIZES`` such sizes or more, with at most one other size between two. Single
    sizes count where one side is ``LONE_SIZE_RATIO`` times as fast. With fewer than
    ``RANGE_LAUNCHES`` launches, chance separates sides too often.
    """
    if min(len(first), len(second)) < RANGE_LAUNCHES:
        return ()
    runs: list[list[int]] = []
    since = 0
    for size, ratio in ratios.items():
        if not _apart(first, second, size):
            since += 1
            continue
        if runs and since < 2 and (ratios[runs[-1][-1]] > 1) == (ratio > 1):
            runs[-1].append(size)
        else:
            runs.append([size])
        since = 0
    found = []
    for run in runs:
        parts = [run] if len(run) >= RANGE_SIZES else [[size] for size in run]
        for sizes in parts:
            size = max(sizes, key=lambda one: _factor(ratios[one]))
            if len(sizes) > 1 or _factor(ratios[size]) >= LONE_SIZE_RATIO:
                found.append(Range(sizes[0], sizes[-1], ratios[size] > 1, size, ratios[size]))
    return tuple(found)


def _factor(ratio: float) -> float:
    """Return how far a ratio is from 1, to either side."""
    return max(ratio, 1 / ratio)


def _apart(first: Sequence[Curve], second: Sequence[Curve], size: int) -> bool:
    one, other = (
        [curve.time_us[curve.sizes.index(size)] for curve in launches]
        for launches in (first, second)
    )
    return max(one) < min(other) or max(other) < min(one)
