"""Several series of one configuration as one."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from netproof.history import night as statistic
from netproof.history.changes import DetectionSettings
from netproof.history.logarithms import logarithms
from netproof.history.night import Floats


def pooled(series: Sequence[Sequence[float | None]]) -> list[float | None]:
    """Several series of the same nights, of one configuration, as one: 1 is their usual level.

    The weighted geometric mean of each night's values over the series' own medians; a weight is
    one over the square of a series' noise, taken from the differences of successive nights, so
    that no step enters it. What all series share of a night's noise stays in the result, and is
    part of the noise that ``follow`` finds in it. A night on which none has a value is None.
    Raises NetproofError as ``follow_all``.
    """
    if not series:
        return []
    logs = logarithms(series)
    logs = logs[np.isfinite(logs).any(axis=1)]
    if np.isfinite(logs).all() and logs.shape[1] > 1:
        middles = np.median(logs, axis=1)
        noise = np.median(np.abs(np.diff(logs, axis=1)), axis=1).tolist()
    else:
        middles = np.array([_middle(row) for row in logs])
        noise = [_middle(np.abs(np.diff(row[np.isfinite(row)]))) for row in logs]
    off = logs - middles.reshape(-1, 1)
    floor = DetectionSettings.least_noise
    weight = np.array([max(each * statistic.MAD_OF_NORMAL / math.sqrt(2), floor) for each in noise])
    weights = np.where(np.isfinite(off), weight.reshape(-1, 1) ** -2.0, 0.0)
    totals = weights.sum(axis=0)
    sums = (weights * np.nan_to_num(off)).sum(axis=0)
    return [
        math.exp(sum_ / total) if total > 0 else None
        for sum_, total in zip(sums.tolist(), totals.tolist(), strict=True)
    ]


def _middle(row: Floats) -> float:
    present = row[np.isfinite(row)]
    return float(np.median(present)) if len(present) else 0.0
