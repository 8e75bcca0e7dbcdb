"""Control over many series of one night: which of them stand out."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

import numpy as np
import scipy

from netproof.history.changes import SETTINGS, DetectionSettings

K = TypeVar("K", bound=Hashable)


def controlled(p_values: Mapping[K, float], settings: DetectionSettings = SETTINGS) -> frozenset[K]:
    """Return the series whose p-value of tonight stands out among those of all series.

    By Benjamini and Hochberg (1995): on average at most ``settings.false_share`` of them are false,
    even where series of one night go up and down together.
    """
    # p-values only become larger: without a small one, nothing can stand out.
    if not p_values or min(p_values.values()) > settings.false_share:
        return frozenset()
    adjusted = scipy.stats.false_discovery_control(list(p_values.values()))
    names = list(p_values)
    return frozenset(names[place] for place in np.flatnonzero(adjusted <= settings.false_share))


def expected_false_alarms(
    series: int, nights: int, settings: DetectionSettings = SETTINGS
) -> float:
    """Return the largest expected number of false alarms for unchanged series over nights.

    On a night without any change, the number that ``controlled`` lets through is on average the sum
    over ranks of the chance to reach each. For independent series it is at most share / (1 -
    share)² (Finner and Roters 2001).
    """
    share = settings.false_share
    return nights * min(share / (1 - share) ** 2, float(series))
