"""Intervals of many gains, each from few launches: their variances inform each other.

With five rounds the variance of one value at one size is so uncertain that Student's intervals for
a whole table are hardly ever narrow enough.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, variance

from netproof.measurement.variances import Variance, in_common, moderated
from netproof.tuning.gains import ERROR, Gain

LEAST_VARIANCE = 1e-12
"""Least variance of logarithms: times within a millionth are equal."""


def common(logs: Mapping[str, Sequence[Mapping[int, float]]]) -> Variance:
    """Return the common variance of all values at all sizes.

    ``logs``: by value, for each launch the logarithm of its gain by size in bytes. Sizes of a
    launch share its pace and are not independent: the common variance has at most the weight of the
    launches of all values but one, and none with one value.
    """
    own = {value: len(several) - 1 for value, several in logs.items()}
    spreads = [
        _variance([one[size] for one in several])
        for several in logs.values()
        for size in several[0]
    ]
    return in_common(spreads, sum(own.values()) - max(own.values()))


def gain_with(logs: Sequence[float], shared: Variance, questions: int) -> Gain:
    """Return a gain, its interval so wide that all questions together err as often as one would."""
    spread = moderated(_variance(logs), shared)
    half = spread.half_width(ERROR / questions, 1 / len(logs))
    middle = fmean(logs)
    return Gain(math.exp(middle), (math.exp(middle - half), math.exp(min(middle + half, 700))))


def _variance(logs: Sequence[float]) -> Variance:
    return Variance(max(variance(logs), LEAST_VARIANCE), len(logs) - 1)
