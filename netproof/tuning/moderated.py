"""Intervals of many gains at once, each of few launches: their variances inform each other.

With five rounds a variance of one value at one size is so uncertain that Student's interval for a
whole table is hardly ever narrow enough to tell anything. Smyth, "Linear models and empirical Bayes
methods for assessing differential expression", Stat. Appl. Genet. Mol. Biol. 3 (2004), section 6.2:
how much the variances of all scatter beyond chance says how much is to be taken of what they have
in common.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from scipy.optimize import brentq
from scipy.special import digamma, polygamma, stdtrit

from netproof.tuning.gains import ERROR, Gain

LEAST_VARIANCE = 1e-12
"""Of logarithms: times that are equal to a millionth are equal."""


@dataclass(frozen=True)
class Common:
    """What variances of a table have in common, and with how many degrees of freedom it counts."""

    variance: float
    freedom: float


def common(logs: Mapping[str, Sequence[Mapping[int, float]]]) -> Common:
    """What the variances of all values at all sizes have in common.

    ``logs``: of each value, the logarithm of its gain by size in bytes, of each launch. Sizes of a
    launch share its pace, so that they are no evidence of their own: what is common counts at most
    as the launches of all values but one do, and with one value not at all.
    """
    own = {value: len(several) - 1 for value, several in logs.items()}
    most = sum(own.values()) - max(own.values())
    found, beyond = [], 0.0
    for value, several in logs.items():
        half = own[value] / 2
        for size in several[0]:
            spread = max(variance([one[size] for one in several]), LEAST_VARIANCE)
            found.append(math.log(spread) - float(digamma(half)) + math.log(half))
            beyond -= float(polygamma(1, half))
    middle = fmean(found)
    if not most:
        return Common(math.exp(middle), 0.0)
    beyond = beyond / len(found) + variance(found)
    freedom = float(most)
    if beyond > float(polygamma(1, most / 2)):
        freedom = 2 * brentq(lambda half: float(polygamma(1, half)) - beyond, 1e-6, most / 2)
    half = freedom / 2
    return Common(math.exp(middle + float(digamma(half)) - math.log(half)), freedom)


def gain_with(logs: Sequence[float], shared: Common, questions: int) -> Gain:
    """The gain of these launches, so wide that all questions together err as often as one would."""
    own = len(logs) - 1
    freedom = own + shared.freedom
    spread = max(variance(logs), LEAST_VARIANCE)
    spread = (own * spread + shared.freedom * shared.variance) / freedom
    half = float(stdtrit(freedom, 1 - ERROR / questions / 2)) * math.sqrt(spread / len(logs))
    middle = fmean(logs)
    return Gain(math.exp(middle), (math.exp(middle - half), math.exp(min(middle + half, 700))))
