"""Confidence intervals of medians over launches, and on which side of a bound they lie.

A value is compared with a bound by its whole interval (Hoefler and Belli, "Scientific benchmarking
of parallel computing systems", SC15): all of it within passes, all of it beyond fails, and an
interval astride the bound says that more launches are needed. The variance of few values is drawn
to the common value of many, whose weight their scatter beyond chance determines (Smyth, "Linear
models and empirical Bayes methods for assessing differential expression", Stat. Appl. Genet. Mol.
Biol. 3, 2004, section 6.2).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache
from operator import add
from statistics import fmean, median

Interval = tuple[float, float]

CONFIDENCE = 0.95
"""Confidence of every interval here."""

MAD_OF_NORMAL = 1.4826
"""Standard deviations of normal noise in one median absolute deviation (MAD)."""

FEWEST_RANKED = 6
"""Launches from which on order statistics alone give 95 %: of 6, the least and the largest."""

_LEVEL_OF_FEW = 0.97
"""Level of Student's interval, so that it holds other distributions than the normal one too.

Simulated with two to five values whose logarithms are normal, uniform, exponential or those of
two kinds of launches, it holds their median in 95 to 98 %.
"""


class Side(StrEnum):
    """Where an interval lies relative to the bounds of what passes."""

    WITHIN = "within"
    BEYOND = "beyond"
    ASTRIDE = "astride"


def of_median(values: Sequence[float]) -> Interval | None:
    """Return the 95 % interval of the median that ``values``, one of each launch, are drawn around.

    From six values on it is that of order statistics, which holds for any distribution; of two to
    five it is Student's, of the logarithms, around their mean. None for one value or none, and for
    two to five where one is not above 0 and finite.
    """
    if len(values) >= FEWEST_RANKED:
        return of_middle(values)
    if not values or not (min(values) > 0 and math.isfinite(sum(values))):
        return None
    found = of_middle([math.log(value) for value in values])
    return None if found is None else (math.exp(found[0]), _exp(found[1]))


def most(values: Sequence[float]) -> float:
    """Return the upper end of ``of_median``; of fewer than six values, the largest of them."""
    found = of_median(values) if len(values) >= FEWEST_RANKED else None
    return found[1] if found else max(values)


def of_middle(values: Sequence[float]) -> Interval | None:
    """Return the same of values of any sign: of two to five it is around their mean."""
    count = len(values)
    if count < 2:
        return None
    if count >= FEWEST_RANKED:
        ranked, left_out = sorted(values), _ranks_left_out(count)
        return ranked[left_out - 1], ranked[-left_out]
    # A session has thousands; the exact fractions of ``statistics`` take most of its time.
    middle = math.fsum(values) / count
    spread = math.hypot(*[value - middle for value in values]) / math.sqrt(count - 1)
    half = _student_of_few(count) * spread / math.sqrt(count)
    return middle - half, middle + half


def _exp(power: float) -> float:
    """Return e to this power; a spread of launches that no exponential holds has no upper end."""
    return math.exp(power) if power < 700 else math.inf


@cache
def _student_of_few(count: int) -> float:
    import scipy

    return float(scipy.special.stdtrit(count - 1, (1 + _LEVEL_OF_FEW) / 2))


@cache
def most_apart(count: int) -> float:
    """Return how far an end of ``of_median`` is from the median, at most.

    In logarithms, and as a multiple of those of the largest of so many values over the least.
    """
    few = 1 < count < FEWEST_RANKED
    return 1 + _student_of_few(count) / (2 * math.sqrt(count - 1)) if few else 1


@cache
def _ranks_left_out(count: int) -> int:
    """Return how many of ``count`` values lie beyond each end of the interval of their median."""
    import scipy

    left_out = 0
    while 2 * float(scipy.special.bdtr(left_out, count, 0.5)) <= 1 - CONFIDENCE:
        left_out += 1
    return left_out


def pseudomedian(values: Sequence[float]) -> float:
    """Return the geometric middle of ratios above 0: the median of the means of all pairs of logs.

    The estimate of Hodges and Lehmann (Annals of Mathematical Statistics 34, 1963). Of ratios of
    two alike things it is their median, and scatters less than that of the values.
    """
    return math.exp(median(_means_of_pairs(tuple(values))))


def of_pseudomedian(values: Sequence[float]) -> Interval | None:
    """Return the 95 % interval of ``pseudomedian``.

    From six values on it is that of Wilcoxon's signed ranks, which holds for any distribution of
    the logarithms that is symmetric; of fewer as ``of_median``.
    """
    if len(values) < FEWEST_RANKED:
        return of_median(values)
    means = _means_of_pairs(tuple(values))
    left_out = _signed_ranks_left_out(len(values))
    return math.exp(means[left_out - 1]), math.exp(means[-left_out])


# A case's variables have first their values, and then their intervals.
@lru_cache(maxsize=16)
def _means_of_pairs(values: tuple[float, ...]) -> list[float]:
    """Return the means of pairs of logarithms, each with itself too, in order (Walsh averages)."""
    logs = [math.log(value) for value in values]
    return sorted((one + other) / 2 for at, one in enumerate(logs) for other in logs[at:])


@cache
def _signed_ranks_left_out(count: int) -> int:
    """Return how many means of pairs lie beyond each end of the interval of ``count`` values."""
    ways = [1]
    for rank in range(1, count + 1):
        ways = list(map(add, [*ways, *[0] * rank], [*[0] * rank, *ways]))
    beyond, left_out = 0, 0
    while 2 * (beyond := beyond + ways[left_out]) <= (1 - CONFIDENCE) * 2**count:
        left_out += 1
    return left_out


def of_ratio(values: Sequence[float], others: Sequence[float]) -> Interval | None:
    """Return the 95 % interval of the median of ``values`` over that of ``others``.

    Both intervals joined in logarithms by MOVER (Zou and Donner, Statistics in Medicine 27, 2008).
    None where a side has none, or holds a value that is not above 0.
    """
    one, other = _logs_of_median(tuple(values)), _logs_of_median(tuple(others))
    if one is None or other is None:
        return None
    below = math.hypot(one[1] - one[0], other[2] - other[1])
    above = math.hypot(one[2] - one[1], other[1] - other[0])
    middle = one[1] - other[1]
    return math.exp(middle - below), _exp(middle + above)


@lru_cache(maxsize=4096)
def _logs_of_median(values: tuple[float, ...]) -> tuple[float, float, float] | None:
    """Return the logarithms of the interval's lower end, the median and the upper end, or None.

    Many configurations are compared with the same launches of another.
    """
    ends = of_median(values)
    if ends is None or min(values) <= 0:
        return None
    high = math.log(ends[1]) if ends[1] < math.inf else math.inf
    return math.log(ends[0]), math.log(median(values)), high


def side(interval: Interval, low: float, high: float) -> Side:
    """Return on which side of what passes, ``low`` to ``high``, an interval lies."""
    if interval[0] >= low and interval[1] <= high:
        return Side.WITHIN
    if interval[1] < low or interval[0] > high:
        return Side.BEYOND
    return Side.ASTRIDE


@dataclass(frozen=True)
class Variance:
    """An estimate of a variance, and its degrees of freedom."""

    variance: float
    freedom: float

    def half_width(self, error: float, per_variance: float) -> float:
        """Return half of Student's interval with a chance of ``error`` for both ends together.

        ``per_variance``: the variance of the interval's estimate, over this one.
        """
        import scipy

        quantile = float(scipy.special.stdtrit(self.freedom, 1 - error / 2))
        return quantile * math.sqrt(self.variance * per_variance)


def in_common(own: Sequence[Variance], most: float, beyond: float | None = None) -> Variance:
    """Return the common value of variances above 0, with ``most`` degrees of freedom at most.

    ``beyond``: the scatter of their logarithms beyond chance, a variance, where it is known better
    than from these alone.
    """
    import scipy

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
    import scipy

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
    import scipy

    half = one.freedom / 2
    return math.log(one.variance) - float(scipy.special.digamma(half)) + math.log(half)


def moderated(own: Variance, shared: Variance) -> Variance:
    """Return one variance, drawn to the common value."""
    freedom = own.freedom + shared.freedom
    together = own.freedom * own.variance + shared.freedom * shared.variance
    return Variance(together / freedom, freedom)
