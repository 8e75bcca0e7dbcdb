"""Histories with known answers: noise, normal or recorded, and a change that begins on a night."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from netproof.history.series import pooled
from netproof.measurement.interval import MAD_OF_NORMAL

Floats = NDArray[np.float64]
RECORDED = Path(__file__).resolve().parents[2] / "tests/data/history/noise.json"
NOISE = 0.02
"""Relative noise of a night."""
BEFORE = 180
"""Nights before a change by default."""
AFTER = 30
"""Nights within which a change has to be found."""
SHARED = 0.5
"""Share of the variance that the series of a pool share, if any."""
SEED = 20061


@dataclass(frozen=True)
class Size:
    """Size of the simulation: series without a change and their nights, series with one."""

    null_series: int
    null_nights: int
    series: int


FULL = Size(400, 300, 1000)
SMOKE = Size(100, 100, 200)


@dataclass(frozen=True)
class Noise:
    """Source of the noise: its name, series per pool, and whether nights are shared."""

    name: str
    pool: int = 1
    shared: bool = False

    def drawn(self, series: int, nights: int, seed: int) -> Floats:
        """Draw deviations of logarithms: series x pool x nights."""
        random = np.random.default_rng([SEED, seed, self.pool, self.shared])
        shape = (series, self.pool, nights)
        if self.name == "normal":
            own = random.normal(size=shape)
            if self.shared:
                common = random.normal(size=(series, 1, nights))
                own = math.sqrt(SHARED) * common + math.sqrt(1 - SHARED) * own
            return NOISE * own
        rows = recorded()
        which = np.stack([random.permutation(len(rows))[: self.pool] for _ in range(series)])
        # Nights are drawn independently: recorded sessions were minutes apart, so their order
        # says nothing on nights. The series of a pool share them.
        sessions = random.integers(
            rows.shape[1], size=(series, 1 if self.shared else self.pool, nights)
        )
        return NOISE * rows[which[:, :, np.newaxis], sessions]


@cache
def recorded() -> Floats:
    """Return recorded deviations, series x sessions, in standard deviations of each series."""
    document = json.loads(RECORDED.read_text())
    off = np.array(list(document["deviations"].values()))
    spread = MAD_OF_NORMAL * np.median(np.abs(off), axis=1)
    return off / spread[:, np.newaxis]


def histories(noise: Noise, series: int, nights: int, seed: int, change: Floats | None) -> Floats:
    """Return values, series x nights, with the relative ``change`` in all series of a pool.

    In every other series it goes down.
    """
    logs = noise.drawn(series, nights, seed)
    if change is not None:
        side = np.where(np.arange(series) % 2, -1.0, 1.0)[:, np.newaxis, np.newaxis]
        logs = logs + np.log1p(side * change)
    values = np.exp(logs)
    if noise.pool == 1:
        return values[:, 0]
    return np.array([pooled(several.tolist()) for several in values])


def changed(before: int, after: int, shape: Callable[[Floats], Floats]) -> Floats:
    """Return a relative change: 0 for ``before`` nights, then ``shape``."""
    return np.concatenate([np.zeros(before), shape(np.arange(float(after)))])


def step(size: float) -> Callable[[Floats], Floats]:
    """Return the shape of a step by a relative size."""
    return lambda nights: np.full(len(nights), size)


def drift(size: float, over: int) -> Callable[[Floats], Floats]:
    """Return the shape of a drift to a relative size within ``over`` nights, which then stays."""
    return lambda nights: size * np.minimum((nights + 1) / over, 1.0)


def bad_night(size: float) -> Callable[[Floats], Floats]:
    """Return the shape of one bad night."""
    return lambda nights: np.where(nights == 0, size, 0.0)


NORMAL, REAL = Noise("normal"), Noise("recorded")
