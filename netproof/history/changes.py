"""Changes in series of nights, constants of their detection, and control over many series."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

import numpy as np
import scipy

K = TypeVar("K", bound=Hashable)

ALARM = 2e-3
"""P-value of one series on one night from which on a change is listed."""

FALSE_SHARE = 0.05
"""Share of false ones among the series that ``controlled`` lets pass."""

COLD_NIGHTS = 10
"""Nights at its level up to which a series is judged by median and MAD."""

MEMORY = 180
"""Newest nights at a level that level and noise are taken from."""

LEAST_NOISE = 0.0025
"""Least relative noise, so that a series that repeats to the last digit does not alarm at it."""

BAD_NIGHT, ALIKE = 4.0, 3.3
"""Standard deviations off the level from which on a night is set aside, unless the one before or
after it is alike; and by how much two such nights may differ."""

BACK = 7.0
"""Logarithm of the odds at which a series has gone back to its old level."""

NOW_NIGHTS, AGO_NIGHTS = 14, 30
"""Nights now and long ago that are compared for a drift."""

LEAST_DRIFT = 0.02
"""Relative size of the least drift."""


class ChangeKind(StrEnum):
    """Kind of a change in a series."""

    STEP = "step"
    DRIFT = "drift"
    BAD_NIGHT = "bad night"


@dataclass(frozen=True)
class Change:
    """A change in a series.

    ``index``: first night of the new level, or the bad night; ``found``: night on which the p-value
    of this series alone first reached ``ALARM``; ``before``, ``after``: levels, in the unit of the
    series; ``size``: after / before - 1; ``p_value``: chance of such a change, from all nights up
    to its end; ``ended``: first night back, of a bad night the next that differs; ``accepted``: the
    new level was accepted as intended.
    """

    kind: ChangeKind
    index: int
    found: int
    before: float
    after: float
    size: float
    p_value: float
    ended: int | None = None
    accepted: bool = False

    @property
    def open(self) -> bool:
        """Check whether it still stands and alarms; a bad night never does."""
        return self.kind is not ChangeKind.BAD_NIGHT and self.ended is None and not self.accepted


@dataclass(frozen=True)
class Followed:
    """A series as it was followed night by night.

    ``changes``: by index; ``level``: tonight's, in its unit, None without any value; ``noise``:
    relative standard deviation of a night, None with too few values; ``p_value``: tonight's, 1.0
    without a result.
    """

    changes: tuple[Change, ...]
    level: float | None
    noise: float | None
    p_value: float


def change_between(
    kind: ChangeKind, index: int, found: int, before: float, after: float, p_value: float
) -> Change:
    """Return a change between two levels that are given as logarithms."""
    was, now = math.exp(before), math.exp(after)
    return Change(kind, index, found, was, now, math.expm1(after - before), float(p_value))


def controlled(p_values: Mapping[K, float]) -> frozenset[K]:
    """Return the series whose p-value of tonight stands out among those of all series.

    By Benjamini and Hochberg (1995): on average at most ``FALSE_SHARE`` of them are false,
    even where series of one night go up and down together.
    """
    # p-values only become larger: without a small one, nothing can stand out.
    if not p_values or min(p_values.values()) > FALSE_SHARE:
        return frozenset()
    adjusted = scipy.stats.false_discovery_control(list(p_values.values()))
    names = list(p_values)
    return frozenset(names[place] for place in np.flatnonzero(adjusted <= FALSE_SHARE))


def expected_false_alarms(series: int, nights: int) -> float:
    """Return the largest expected number of false alarms for unchanged series over nights.

    ``controlled`` lets through on average the sum over ranks of the chance to reach each: for
    independent series at most share / (1 - share)² a night (Finner and Roters 2001).
    """
    return nights * min(FALSE_SHARE / (1 - FALSE_SHARE) ** 2, float(series))
