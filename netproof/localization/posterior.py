"""Where an effect lies, by its contrasts with the others: a distribution on points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from netproof.localization.effects import FURTHEST, NoiseShape
from netproof.localization.pair_table import Floats


@dataclass(frozen=True)
class Posterior:
    """Where an effect lies, given contrasts with the others: a distribution on points.

    With a flat prior this is the exact conditional inference on a place (Pitman 1939; Fisher 1934):
    the probability at or below 0 is the p-value of no effect, whatever the shape of the noise.
    """

    points: Floats
    logs: Floats

    @classmethod
    def of(
        cls,
        contrasts: Floats,
        scales: Floats,
        shape: NoiseShape,
        factors: Sequence[float] = (1.0,),
    ) -> list[Posterior]:
        """From an effect's contrasts, one of each round, with their scales times each factor."""
        points = _points(contrasts, scales)
        widths = np.empty_like(points)
        widths[1:-1] = (points[2:] - points[:-2]) / 2
        widths[0], widths[-1] = points[1] - points[0], points[-1] - points[-2]
        log_widths = np.log(widths)
        off = ((contrasts[None, :] - points[:, None]) / scales[None, :]) ** 2
        found = []
        for factor in factors:
            densities = shape.density(off / factor**2, scales * factor)
            logs = np.log(densities).sum(axis=1) + log_widths
            found.append(cls(points, logs - _log_sum(logs)))
        return found

    def log_at_most(self, bound: float) -> float:
        """Logarithm of the probability that the effect is at most a bound."""
        return _log_sum(self.logs[self.points <= bound])

    def log_at_least(self, bound: float) -> float:
        """Logarithm of the probability that the effect is at least a bound."""
        return _log_sum(self.logs[self.points >= bound])

    def quantile(self, share: float) -> float:
        """The point below which so much of the distribution lies."""
        return float(np.interp(share, np.exp(self.logs).cumsum(), self.points))


def tails(contrasts: Floats, scales: Floats, shape: NoiseShape, bound: float) -> Floats:
    """For each row of contrasts, the probability that its effect is at least a bound.

    As ``Posterior`` has it, of many at once; a contrast of infinite scale says nothing.
    """
    found = []
    share = np.linspace(0, 1, _TAIL_POINTS)
    for some, wide in zip(
        np.array_split(contrasts, len(contrasts) // _AT_ONCE + 1),
        np.array_split(scales, len(scales) // _AT_ONCE + 1),
        strict=True,
    ):
        known = np.isfinite(wide)
        margin = 5 * np.where(known, wide, 0.0).max(axis=1)
        low = np.minimum(np.where(known, some, bound).min(axis=1), bound) - margin
        high = np.maximum(np.where(known, some, bound).max(axis=1), bound) + margin
        # The bound is where two steps meet, so that no step is on both sides.
        below = bound - (bound - low)[:, None] * (1 - share)
        above = bound + (high - bound)[:, None] * share
        masses = []
        for points in (below, above):
            logs = np.zeros_like(points)
            for place in range(some.shape[1]):
                scale = np.where(known[:, place], wide[:, place], 1.0)[:, None]
                off = ((some[:, place, None] - points) / scale) ** 2
                logs += np.where(known[:, place, None], np.log(shape.density(off, scale)), 0.0)
            masses.append(logs + np.log(points[:, 1:2] - points[:, :1]))
        most = np.maximum(masses[0].max(axis=1), masses[1].max(axis=1))[:, None]
        under, over = (np.exp(mass - most).sum(axis=1) for mass in masses)
        found.append(over / (over + under))
    return np.concatenate(found)


_TAIL_POINTS = 161
_AT_ONCE = 256
_MOST_CENTRES = 24


def _points(contrasts: Floats, scales: Floats) -> Floats:
    narrow = float(np.sqrt(1 / np.sum(1 / scales**2)))
    some = contrasts
    if len(some) > _MOST_CENTRES:
        some = np.quantile(contrasts, np.linspace(0, 1, _MOST_CENTRES))
    middle = float(np.median(contrasts))
    fine = np.linspace(-9, 9, 109) * narrow
    wide = np.linspace(-6, 6, 61) * float(np.median(scales))
    parts = [np.linspace(-FURTHEST, FURTHEST, 301), fine, middle + fine]
    parts += [centre + wide for centre in some] + [np.mean(contrasts) + fine]
    return np.unique(np.concatenate(parts))


def _log_sum(logs: Floats) -> float:
    if not len(logs):
        return -math.inf
    most = float(logs.max())
    return most + math.log(float(np.exp(logs - most).sum()))
