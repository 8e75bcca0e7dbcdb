"""Levels of tests that are repeated after every round, and err together as a whole run may."""

from __future__ import annotations

from functools import cache

import numpy as np
import scipy

from netproof.pairs.model import Floats

_GRID_POINTS = 241

MOST_JOINT_LOOKS = 40
"""Looks up to which their dependence is computed; beyond, each has its own share of the error."""


@cache
def nominal_levels(error: float, looks: int) -> tuple[float, ...]:
    """Return one-sided levels of the tests after each of ``looks`` rounds that together err so.

    After round k of K the share k/K is spent (Lan and DeMets, Biometrika 70, 1983; Kim and
    DeMets, Biometrika 74, 1987), for a sum to which every round adds the same information
    (Armitage, McPherson and Rowe, J. R. Statist. Soc. A 132, 1969). For more rounds than
    ``MOST_JOINT_LOOKS`` each round's share is its level, which is stricter.
    """
    shares = np.full(looks, error / looks)
    if looks > MOST_JOINT_LOOKS:
        return tuple(shares)
    levels = [float(shares[0])]
    bound = -float(scipy.special.ndtri(shares[0]))
    # The density of the sum where no bound was crossed so far, at points of their own each round.
    points, weights = _grid(bound)
    density = np.exp(-(points**2) / 2) / np.sqrt(2 * np.pi)
    for look in range(2, looks + 1):
        mass = density * weights
        low, high = 0.0, -float(scipy.special.ndtri(shares[look - 1] / 4)) * np.sqrt(look)
        for _ in range(50):
            middle = (low + high) / 2
            beyond = float(mass @ scipy.special.ndtr(points - middle))
            low, high = (middle, high) if beyond > shares[look - 1] else (low, middle)
        bound = (low + high) / 2
        levels.append(float(np.exp(scipy.special.log_ndtr(-bound / np.sqrt(look)))))
        new, new_weights = _grid(bound, look)
        density = (np.exp(-((new[:, None] - points) ** 2) / 2) / np.sqrt(2 * np.pi)) @ mass
        points, weights = new, new_weights
    return tuple(levels)


def _grid(bound: float, look: int = 1) -> tuple[Floats, Floats]:
    """Return points from far below up to the bound, and Simpson's weights."""
    low = -8.0 * np.sqrt(look)
    points = np.linspace(low, bound, _GRID_POINTS)
    weights = np.full(_GRID_POINTS, 2.0)
    weights[1::2] = 4.0
    weights[0] = weights[-1] = 1.0
    return points, weights * (points[1] - points[0]) / 3
