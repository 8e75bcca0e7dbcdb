"""Hockney's asymptotic bandwidth r∞ and half-performance length n½ of a curve (criterion 12).

t(n) = t₀ + n / r∞ = (n + n½) / r∞, after R. W. Hockney, "The communication challenge for MPP:
Intel Paragon and Meiko CS-2", Parallel Computing 20 (1994). A constant cost, be it latency or what
a token bucket lets pass at once, is in t₀ and not in r∞.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

TOP = 8
"""r∞ is that of the sizes from the largest over this on."""


@dataclass(frozen=True)
class Hockney:
    """The line through the top of a curve.

    ``r_mb_s``: r∞ in MB/s (10⁶ bytes/s); ``t_us``: t₀; ``n_half_bytes``: n½ = t₀ · r∞, below 0
    where the line meets the axis below 0.
    """

    r_mb_s: float
    t_us: float

    @property
    def n_half_bytes(self) -> float:
        """The size that reaches half of r∞."""
        return self.t_us * self.r_mb_s


def top(sizes: Sequence[int]) -> list[int]:
    """Places of the sizes that the line goes through: from an eighth of the largest on."""
    return [place for place, size in enumerate(sizes) if size * TOP >= sizes[-1]]


def theil_sen(sizes: Sequence[int], time_us: Sequence[float]) -> Hockney | None:
    """The line through all points given: median slope of all pairs, median intercept.

    None for fewer than two points, or where time does not grow with the size.
    """
    if len(sizes) < 2:
        return None
    x, y = np.asarray(sizes, float), np.asarray(time_us, float)
    one, other = np.triu_indices(len(x), 1)
    slope = float(np.median((y[other] - y[one]) / (x[other] - x[one])))
    if slope <= 0:
        return None
    return Hockney(1 / slope, float(np.median(y - slope * x)))
