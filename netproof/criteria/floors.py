"""Criterion 20: whether a configuration is far slower than another of its partition as a whole.

A score is relative to one configuration, and asserts nothing by itself: where that one is slow, all
others look fast. Here each environment of a partition is scored against each other one. They send
over one link, so that neither its rate nor any machine's number is needed.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import ClassVar

from netproof.criteria.findings import (
    Bounds,
    CommonSizes,
    Finding,
    Level,
    bound_in_words,
    common_sizes,
    undefined,
)
from netproof.criteria.interface import Criterion
from netproof.criteria.points import times_of
from netproof.measurement import interval as intervals
from netproof.measurement.curve import Curve

_ADVICE = "look at which transport and which algorithm this library takes"
_ORDER = (Level.FAIL, Level.INCONCLUSIVE)


@dataclass(frozen=True)
class FloorSettings(Bounds):
    """``warn`` and ``fail`` below this score against another environment of the partition.

    The envelope allows an order of magnitude at a size. A mean over all sizes comes near that only
    where hardly a size is sound, so a quarter fails.
    """

    warn: float | None = 0.5
    fail: float | None = 0.25
    reached: ClassVar[Callable[[float, float], bool]] = operator.lt


SHOWN_INSIDE = FloorSettings(warn=None, fail=None)
"""Bounds within a node, where libraries copy once or twice: nothing is asserted."""


def floor(
    launches: Sequence[Curve],
    others: Mapping[str, Sequence[Curve]],
    *,
    where: str,
    settings: FloorSettings = FloorSettings(),
    pairs: Mapping[str, Sequence[tuple[Curve, Curve]]] | None = None,
    weighed: Callable[[Finding], Finding] = lambda finding: finding,
) -> Finding | None:
    """Return the lowest score of a case against other environments of its partition (criterion 20).

    A pure number as in ``score``: the geometric mean over the common sizes of t_other / t, below 1
    where the case is slower. ``others``: their launches, by the labels of their cases; ``pairs``:
    interleaved launches of the case and of the other, which alone are compared if there are two or
    more. It fails where the whole interval against any other is below the bound. ``weighed``:
    adjusts a finding to what its launches are worth, before the worst is chosen. None without
    another environment.
    """
    if not others:
        return None
    for number, curve in enumerate(launches, 1):
        fault = times_of(curve, settings).fault
        if fault is not None:
            return undefined("floor", where, f"in launch {number}, {fault}")
    compared = []
    for label, theirs in others.items():
        together = (pairs or {}).get(label, ())
        if len(together) > 1:
            own, other = zip(*together, strict=True)
            found = _compared(label, own, other, settings, paired=True)
        else:
            found = _compared(label, launches, theirs, settings)
        if found is not None:
            compared.append(weighed(found.finding(where)))
    if not compared:
        return undefined("floor", where, "it has no size in common with another environment")
    against = [one for level in _ORDER for one in compared if one.level is level]
    level = against[0].level if against else None
    return min(
        (one for one in compared if level is None or one.level is level),
        key=lambda one: one.value or 0.0,
    )


@dataclass(frozen=True)
class _Compared:
    """A case against another one, ``label``; ``pairs``: how many interleaved ones, 0 for none."""

    label: str
    score: float
    interval: intervals.Interval | None
    sizes: CommonSizes
    pairs: int
    level: Level
    bound: float | None

    def finding(self, where: str) -> Finding:
        spoken = "no interval, which takes two launches of both"
        if self.interval is not None:
            low, high = self.interval
            spoken = f"{intervals.CONFIDENCE:.0%} interval {low:.3g} to {high:.3g}"
        if self.pairs:
            spoken += f", in {self.pairs} interleaved pairs of launches"
        then = ""
        if self.level in (Level.WARN, Level.FAIL):
            then = f"; {_ADVICE}"
        elif self.level is Level.INCONCLUSIVE:
            then = "; the interval contains that bound"
        return Finding(
            "floor",
            self.level,
            where,
            f"{self.score:.3g} times as fast as {self.label} {self.sizes} ({spoken})"
            f"{bound_in_words(self.level, self.bound, below=True)}{then}",
            value=self.score,
            bound=self.bound,
            common=self.sizes,
            interval=self.interval,
            against=self.label,
        )


def _compared(
    label: str,
    launches: Sequence[Curve],
    others: Sequence[Curve],
    settings: FloorSettings,
    *,
    paired: bool = False,
) -> _Compared | None:
    """Compare a case with another one; None where one cannot be judged or no size is common."""
    sides = [[times_of(one, settings) for one in several] for several in (launches, others)]
    if not all(sides) or any(one.fault is not None for side in sides for one in side):
        return None
    sizes = sorted(set.intersection(*(set(one.at) for side in sides for one in side)))
    if not sizes:
        return None
    own, theirs = (
        [math.exp(math.fsum(math.log(one.at[size]) for size in sizes) / len(sizes)) for one in side]
        for side in sides
    )
    if paired:
        scores = [other / mine for mine, other in zip(own, theirs, strict=True)]
        score, interval = median(scores), intervals.of_median(scores)
    else:
        score, interval = median(theirs) / median(own), intervals.of_ratio(theirs, own)
    level, bound = settings.level(score, interval)
    pairs = len(own) if paired else 0
    return _Compared(label, score, interval, common_sizes(sizes), pairs, level, bound)


CRITERION = Criterion(
    20,
    {"floor": FloorSettings(), "floor_inside": SHOWN_INSIDE},
    {"floor": "floor"},
)
