"""Two cases compared size by size, as ratios with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from netproof.criteria.findings import AtSize, Level
from netproof.criteria.interface import Companion
from netproof.criteria.points import Points
from netproof.measurement import interval as intervals


class LaunchedBounds(Protocol):
    """Bounds that assert nothing with fewer than ``launches`` of either side."""

    launches: int

    def level(
        self, value: float, interval: tuple[float, float] | None = None
    ) -> tuple[Level, float | None]:
        """As ``Bounds.level``."""


@dataclass(frozen=True)
class AlongsideAnother:
    """Ratio of a case's time to that of another, ``label``, at a size, and both times in µs.

    ``interval``: of the ratio, None where a side has too few launches.
    """

    ratio: AtSize
    label: str
    times_us: tuple[float, float]
    interval: tuple[float, float] | None
    level: Level
    bound: float | None

    def interval_in_words(self, launches: int) -> str:
        """Return the interval, or why it is missing; ``launches``: how many it takes of both."""
        if self.interval is None:
            return f"no interval, which takes {launches} launches of both"
        return f"95% interval {self.interval[0]:.3g} to {self.interval[1]:.3g}"


def alongside(
    own: tuple[Companion, Points],
    other: tuple[Companion, Points],
    label: str,
    settings: LaunchedBounds,
    explained: float = 1.0,
) -> list[AlongsideAnother]:
    """Return the ratio of times at each common size, divided by what is ``explained`` of it.

    ``own``, ``other``: a case with its times. An interval that contains a bound is shown, since no
    further launches would decide it.
    """
    found = []
    mine, theirs = own[1].at, other[1].at
    for size in sorted(mine.keys() & theirs.keys()):
        value = mine[size] / theirs[size] / explained
        interval = _interval(size, own[0], other[0], settings.launches)
        level, bound = Level.SHOWN, None
        if interval is not None:
            interval = (interval[0] / explained, interval[1] / explained)
            level, bound = settings.level(value, interval)
        if level is Level.INCONCLUSIVE:
            level = Level.SHOWN if value > bound else settings.level(value)[0]
        times = mine[size], theirs[size]
        found.append(AlongsideAnother(AtSize(size, value), label, times, interval, level, bound))
    return found


def worst_of(compared: Sequence[AlongsideAnother]) -> AlongsideAnother:
    """Return the largest ratio, among those that fail where some do."""
    failing = [one for one in compared if one.level is Level.FAIL]
    return max(failing or compared, key=lambda one: one.ratio.value)


def _interval(
    size: int, own: Companion, other: Companion, needed: int
) -> tuple[float, float] | None:
    several = []
    for side in (own, other):
        times = [
            launch.time_us[launch.sizes.index(size)]
            for launch in side.launches
            if size in launch.sizes
        ]
        if len(times) < needed:
            return None
        several.append(times)
    return intervals.of_ratio(*several)
