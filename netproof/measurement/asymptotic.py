"""Hockney's asymptotic bandwidth r∞ and half-performance length n½ of a curve.

t(n) = t₀ + n / r∞ = (n + n½) / r∞, after R. W. Hockney, "The communication challenge for MPP: Intel
Paragon and Meiko CS-2", Parallel Computing 20 (1994). A constant cost, such as latency or the burst
of a token bucket, is part of t₀ and not of r∞.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from statistics import NormalDist, median

import numpy as np
import scipy

from netproof.measurement.interval import CONFIDENCE, Interval, of_median

TOP = 8
"""Sizes from the largest over this on make r∞."""

_NORMAL = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
"""Standard errors from the middle of an interval to its end."""

_STEEPEST = 50.0
"""Limit on the difference of halves, in slopes of the line: more makes no difference."""


def top(sizes: Sequence[int]) -> list[int]:
    """Return the places of the sizes on the line: from the largest over ``TOP`` on."""
    return [place for place, size in enumerate(sizes) if size * TOP >= sizes[-1]]


def theil_sen(sizes: Sequence[int], time_us: Sequence[float]) -> tuple[float, float] | None:
    """Return r∞ in MB/s (10⁶ bytes/s) and t₀ in µs of the line through all points.

    It has the median slope of all pairs and the median intercept; n½ in bytes is r∞ · t₀.

    None for fewer than two points, or where time does not grow with the size.
    """
    if len(sizes) < 2:
        return None
    slope = _slope(sizes, time_us)
    # The rate of a subnormal slope is infinite.
    if slope <= 0 or math.isinf(1 / slope):
        return None
    starts = [time - slope * size for size, time in zip(sizes, time_us, strict=True)]
    return 1 / slope, median(starts)


def r_interval(sizes: Sequence[int], launches: Sequence[Sequence[float]]) -> Interval | None:
    """Return r∞'s 95 % interval in MB/s, from each launch's times in µs at ``sizes`` in bytes.

    For several launches it is the interval of the median of their own r∞, each with the noise of
    its sizes. Simulated, it contains r∞ in 95 to 98 % of cases for 3, 6 and 9 launches with 4 or 7
    sizes. For one launch it is Sen's (Journal of the American Statistical Association 63, 1968)
    over the pairs of its sizes, which ignores how launches differ; four sizes have too few pairs
    for 95 %, and give their whole range. The upper end is infinite where time may not grow at all.
    None where several launches have no interval, and where time falls.
    """
    if len(launches) == 1:
        return _rates(*_sen(sizes, launches[0]))
    slopes = [_slope(sizes, time_us) for time_us in launches]
    if min(slopes) > 0:
        return of_median([1 / slope for slope in slopes])
    steepest = max(map(abs, slopes))
    found = of_median([math.exp(slope / steepest) for slope in slopes]) if steepest else None
    if found is None:
        return None
    return _rates(math.log(found[0]) * steepest, math.log(found[1]) * steepest)


def _rates(low: float, high: float) -> Interval | None:
    """Return the rates in MB/s for the ends of an interval of slopes in µs per byte."""
    if high <= 0:
        return None
    return 1 / high, 1 / low if low > 0 else math.inf


def bend(sizes: Sequence[int], launches: Sequence[Sequence[float]]) -> Interval | None:
    """Return how much faster time grows in the upper half of the sizes than in the lower one.

    The 95 % interval of the difference of the two slopes, over the slope of the line through all: 0
    for a line, and above 0 where the network gets slower. ``launches``: of each the times in µs at
    ``sizes``. Several launches give it from their differences; one launch from its residuals over
    two lines, weighted for a noise in proportion to the time. None where there is no interval: one
    launch with fewer than five sizes, or a time that does not grow.
    """
    slope = _slope(sizes, [median(times) for times in zip(*launches, strict=True)])
    if slope <= 0:
        return None
    half = len(sizes) // 2
    if len(launches) == 1:
        return _bend_of_one(np.asarray(sizes, float), np.asarray(launches[0], float), slope)
    differences = [
        (_slope(sizes[half:], times[half:]) - _slope(sizes[:half], times[:half])) / slope
        for times in launches
    ]
    # The interval of medians expects ratios, and the differences are logarithms.
    found = of_median([math.exp(min(max(one, -_STEEPEST), _STEEPEST)) for one in differences])
    return None if found is None else (math.log(found[0]), math.log(found[1]))


def _bend_of_one(x: np.ndarray, y: np.ndarray, slope: float) -> Interval | None:
    half, freedom = len(x) // 2, len(x) - 4
    if freedom < 1:
        return None
    slopes, left, variance = [], 0.0, 0.0
    for part in (slice(0, half), slice(half, None)):
        u, v, weight = x[part], y[part], x[part] ** -2
        u, v = u - np.average(u, weights=weight), v - np.average(v, weights=weight)
        square = float((weight * u**2).sum())
        own = float((weight * u * v).sum()) / square
        slopes.append(own)
        left += float((weight * (v - own * u) ** 2).sum())
        variance += 1 / square
    middle = (slopes[1] - slopes[0]) / slope
    wide = float(scipy.special.stdtrit(freedom, (1 + CONFIDENCE) / 2)) * math.sqrt(
        left / freedom * variance
    )
    return middle - wide / slope, middle + wide / slope


def _slope(sizes: Sequence[int], time_us: Sequence[float]) -> float:
    """Return the median slope of all pairs."""
    return median(_slopes(sizes, time_us))


def _slopes(sizes: Sequence[int], time_us: Sequence[float]) -> list[float]:
    points = zip(sizes, time_us, strict=True)
    return [
        (time - before) / (size - less) for (less, before), (size, time) in combinations(points, 2)
    ]


def _sen(sizes: Sequence[int], time_us: Sequence[float]) -> Interval:
    """Return Sen's 95 % interval of the slope; equal times narrow it."""
    slopes, count = sorted(_slopes(sizes, time_us)), len(sizes)
    several = (count, *(-equal for equal in Counter(time_us).values() if equal > 1))
    variance = sum(k * (abs(k) - 1) * (2 * abs(k) + 5) for k in several) / 18
    ranks = _NORMAL * math.sqrt(variance)
    low = max(round((len(slopes) - ranks) / 2) - 1, 0)
    high = min(round((len(slopes) + ranks) / 2), len(slopes) - 1)
    return slopes[low], slopes[high]
