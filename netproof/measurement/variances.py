"""Variances of few values each, which inform each other.

A variance of three or five values is so uncertain that an interval by it alone is wide, or far too
narrow. Smyth, "Linear models and empirical Bayes methods for assessing differential expression",
Stat. Appl. Genet. Mol. Biol. 3 (2004), section 6.2: the scatter of all variances beyond chance
determines the weight of their common value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

import scipy


@dataclass(frozen=True)
class Variance:
    """An estimate of a variance, and its degrees of freedom."""

    variance: float
    freedom: float

    def half_width(self, error: float, per_variance: float) -> float:
        """Return half of Student's interval with a chance of ``error`` for both ends together.

        ``per_variance``: the variance of the interval's estimate, over this one.
        """
        quantile = float(scipy.special.stdtrit(self.freedom, 1 - error / 2))
        return quantile * math.sqrt(self.variance * per_variance)


def in_common(own: Sequence[Variance], most: float, beyond: float | None = None) -> Variance:
    """Return the common value of variances above 0, with ``most`` degrees of freedom at most.

    ``beyond``: the scatter of their logarithms beyond chance, a variance, where it is known better
    than from these alone.
    """
    middle = fmean(map(_logarithm, own))
    if not most:
        return Variance(math.exp(middle), 0.0)
    if beyond is None:
        beyond = beyond_chance([own])
    freedom = float(most)
    if beyond > float(scipy.special.polygamma(1, most / 2)):
        freedom = 2 * scipy.optimize.brentq(
            lambda half: float(scipy.special.polygamma(1, half)) - beyond, 1e-6, most / 2
        )
    half = freedom / 2
    return Variance(math.exp(middle + float(scipy.special.digamma(half)) - math.log(half)), freedom)


def beyond_chance(groups: Iterable[Sequence[Variance]]) -> float:
    """Return the scatter of logarithms of variances within groups beyond chance, a variance.

    Below 0 where they scatter less than by chance, or no group has two.
    """
    squares, by_chance, freedom = 0.0, 0.0, 0
    for group in groups:
        if len(group) < 2:
            continue
        found = [_logarithm(one) for one in group]
        middle = fmean(found)
        squares += sum((one - middle) ** 2 for one in found)
        freedom += len(group) - 1
        chance = fmean(float(scipy.special.polygamma(1, one.freedom / 2)) for one in group)
        by_chance += (len(group) - 1) * chance
    return (squares - by_chance) / freedom if freedom else -math.inf


def _logarithm(one: Variance) -> float:
    """Return the variance's logarithm, corrected for its mean bias with few degrees of freedom."""
    half = one.freedom / 2
    return math.log(one.variance) - float(scipy.special.digamma(half)) + math.log(half)


def moderated(own: Variance, shared: Variance) -> Variance:
    """Return one variance, drawn to the common value."""
    freedom = own.freedom + shared.freedom
    together = own.freedom * own.variance + shared.freedom * shared.variance
    return Variance(together / freedom, freedom)
