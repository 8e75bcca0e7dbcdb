"""Several series of one configuration as one."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence

import numpy as np

from netproof.history.changes import SETTINGS
from netproof.history.night import Floats, logarithms
from netproof.measurement.interval import MAD_OF_NORMAL

STRIDE = 20
"""Nights after which weights are updated."""


def phase_of(*key: str) -> int:
    """Return the offset in nights, 0 to 19, at which a pool of this name updates its weights.

    It spreads the updates, so that no night must follow all pools from their beginning.
    """
    return zlib.crc32("\0".join(key).encode()) % STRIDE


def pooled(series: Sequence[Sequence[float | None]], phase: int = 0) -> list[float | None]:
    """Return several series of a configuration's nights as one: 1 is their usual level.

    The weighted geometric mean of each night's values over the series' own medians. A weight is one
    over the square of a series' noise, taken from the differences of successive nights, so that no
    step enters it. Medians and noise are of all nights up to the last multiple of ``STRIDE``,
    ``phase`` nights before it, and of all where a series has fewer than ``STRIDE`` values in those.
    A night's value thus stays the same on most nights, and following can continue from there. Noise
    that all series share on a night stays in the result, and is part of the noise that ``follow``
    finds in it. A night without values is None. Raise NetproofError as ``follow_all``.
    """
    if not series:
        return []
    logs = logarithms(series)
    there = np.isfinite(logs)
    logs, there = logs[there.any(axis=1)], there[there.any(axis=1)]
    nights = max((logs.shape[1] + phase) // STRIDE * STRIDE - phase, 0)
    few = there[:, :nights].sum(axis=1) < STRIDE
    middles, noise = np.zeros(len(logs)), np.zeros(len(logs))
    for these, known in ((~few, nights), (few, logs.shape[1])):
        if these.any():
            middles[these], noise[these] = _usual(logs[these, :known])
    off = logs - middles.reshape(-1, 1)
    weight = np.maximum(noise * MAD_OF_NORMAL / math.sqrt(2), SETTINGS.least_noise)
    weights = np.where(there, weight.reshape(-1, 1) ** -2.0, 0.0)
    totals = weights.sum(axis=0)
    sums = (weights * np.nan_to_num(off)).sum(axis=0)
    return [
        math.exp(sum_ / total) if total > 0 else None
        for sum_, total in zip(sums.tolist(), totals.tolist(), strict=True)
    ]


def _usual(logs: Floats) -> tuple[Floats, Floats]:
    """Return the median of each row, and that of the differences of successive values."""
    if np.isfinite(logs).all() and logs.shape[1] > 1:
        return np.median(logs, axis=1), np.median(np.abs(np.diff(logs, axis=1)), axis=1)
    middles = [_middle(row) for row in logs]
    noise = [_middle(np.abs(np.diff(row[np.isfinite(row)]))) for row in logs]
    return np.array(middles), np.array(noise)


def _middle(row: Floats) -> float:
    present = row[np.isfinite(row)]
    return float(np.median(present)) if len(present) else 0.0
