"""The control over many series of one night: what of them stands out."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

import numpy as np
import scipy

from netproof.history.changes import SETTINGS, DetectionSettings

K = TypeVar("K", bound=Hashable)


def controlled(p_values: Mapping[K, float], settings: DetectionSettings = SETTINGS) -> frozenset[K]:
    """The series whose p-value of tonight stands among those of all series.

    By Benjamini and Hochberg (1995): on average at most ``settings.false_share`` of those that
    are let through are false ones, also where series of one night go up and down together.
    """
    # None becomes smaller, and without one that small the others need no look.
    if not p_values or min(p_values.values()) > settings.false_share:
        return frozenset()
    adjusted = scipy.stats.false_discovery_control(list(p_values.values()))
    names = list(p_values)
    return frozenset(names[place] for place in np.flatnonzero(adjusted <= settings.false_share))


def expected_false_alarms(
    series: int, nights: int, settings: DetectionSettings = SETTINGS
) -> float:
    """How many false alarms so many nights of so many unchanged series bring, at most.

    On a night without any change the expected number that ``controlled`` lets through is the
    sum over ranks of what it takes for so many, at most share / (1 - share)² for independent
    series of any number (Finner and Roters 2001).
    """
    share = settings.false_share
    return nights * min(share / (1 - share) ** 2, float(series))
