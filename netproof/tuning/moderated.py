"""Intervals of many gains at once, each of few launches: their variances inform each other.

With five rounds a variance of one value at one size is so uncertain that Student's interval for a
whole table is hardly ever narrow enough to tell anything.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, variance

from netproof.measurement.variances import Variance, in_common, moderated
from netproof.tuning.gains import ERROR, Gain

LEAST_VARIANCE = 1e-12
"""Of logarithms: times that are equal to a millionth are equal."""


def common(logs: Mapping[str, Sequence[Mapping[int, float]]]) -> Variance:
    """What the variances of all values at all sizes have in common.

    ``logs``: of each value, the logarithm of its gain by size in bytes, of each launch. Sizes of a
    launch share its pace, so that they are no evidence of their own: what is common counts at most
    as the launches of all values but one do, and with one value not at all.
    """
    own = {value: len(several) - 1 for value, several in logs.items()}
    spreads = [
        _variance([one[size] for one in several])
        for several in logs.values()
        for size in several[0]
    ]
    return in_common(spreads, sum(own.values()) - max(own.values()))


def gain_with(logs: Sequence[float], shared: Variance, questions: int) -> Gain:
    """The gain of these launches, so wide that all questions together err as often as one would."""
    spread = moderated(_variance(logs), shared)
    half = spread.half_width(ERROR / questions, 1 / len(logs))
    middle = fmean(logs)
    return Gain(math.exp(middle), (math.exp(middle - half), math.exp(min(middle + half, 700))))


def _variance(logs: Sequence[float]) -> Variance:
    return Variance(max(variance(logs), LEAST_VARIANCE), len(logs) - 1)
