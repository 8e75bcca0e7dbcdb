"""Criterion 2: how many times as fast as the score baseline a configuration is."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from netproof.criteria.findings import (
    Bounds,
    Finding,
    Level,
    common_sizes,
    sizes_in_words,
    undefined,
)
from netproof.criteria.interface import Criterion
from netproof.criteria.points import times_of
from netproof.errors import NetproofError
from netproof.measurement.curve import Curve
from netproof.measurement.launches import median_curve


@dataclass(frozen=True)
class ScoreSettings(Bounds):
    """A score below ``warn`` or ``fail`` is flagged; by default nothing is asserted.

    ``resamples`` bootstrap samples over the launches give the interval of ``confidence``;
    ``random_seed`` makes it the same for the same launches.
    """

    resamples: int = 2000
    confidence: float = 0.95
    random_seed: int = 20060701
    reached: ClassVar[Callable[[float, float], bool]] = operator.lt

    def __post_init__(self) -> None:
        """Check the values as the class describes."""
        super().__post_init__()
        if self.resamples < 100 or not 0 < self.confidence < 1:
            raise NetproofError(
                f"ScoreSettings: resamples={self.resamples}, confidence={self.confidence}: "
                "an interval takes 100 resamples or more and a confidence between 0 and 1"
            )


def score(
    launches: Sequence[Curve],
    baseline_launches: Sequence[Curve],
    *,
    where: str,
    baseline: str,
    red_sizes: Sequence[int] = (),
    settings: ScoreSettings = ScoreSettings(),
) -> Finding:
    """Return the geometric mean over the common sizes of t_baseline / t (criterion 2).

    Above 1 is faster than the baseline. The curves compared are the medians of the launches; the
    ``interval`` is the percentile bootstrap over the launches of both, which needs two or more of
    each. Undefined without ``baseline_launches``. ``red_sizes``: those that ``above_envelope``
    failed, which are named with the score. After the GigE synthetic-benchmark report.

    Raises NetproofError where launches of one case differ in their sizes.
    """
    if not launches:
        return undefined("score", where, "it has no launch")
    if not baseline_launches:
        return undefined("score", where, f"the baseline {baseline} did not run")
    for label, several in ((where, launches), (baseline, baseline_launches)):
        for number, curve in enumerate(several, 1):
            fault = times_of(curve, settings).fault
            if fault is not None:
                return undefined("score", where, f"in launch {number} of {label}, {fault}")
    case_times = times_of(median_curve(launches), settings).at
    baseline_times = times_of(median_curve(baseline_launches), settings).at
    sizes = sorted(case_times.keys() & baseline_times.keys())
    if not sizes:
        return undefined("score", where, f"it has no size in common with the baseline {baseline}")
    common = common_sizes(sizes)
    logs = [math.log(baseline_times[size] / case_times[size]) for size in sizes]
    value = math.exp(math.fsum(logs) / len(logs))
    interval = None
    spoken = "no interval, which takes two launches of both"
    if len(launches) > 1 and len(baseline_launches) > 1:
        interval = _bootstrap(launches, baseline_launches, sizes, settings)
        spoken = f"{settings.confidence:.0%} interval {interval[0]:.3g} to {interval[1]:.3g}"
    level, bound = settings.level(value, interval)
    mark = f"; red at {sizes_in_words(red_sizes)}" if red_sizes else ""
    held = f", where below {bound:g} is flagged" if bound is not None else ""
    held += "; inconclusive: the interval contains it" if level is Level.INCONCLUSIVE else ""
    return Finding(
        "score",
        level,
        where,
        f"{value:.3g} times as fast as {baseline} {common} ({spoken}){held}{mark}",
        value=value,
        bound=bound,
        common=common,
        interval=interval,
        against=baseline,
    )


def _bootstrap(
    launches: Sequence[Curve],
    baseline_launches: Sequence[Curve],
    sizes: Sequence[int],
    settings: ScoreSettings,
) -> tuple[float, float]:
    random = np.random.default_rng(settings.random_seed)

    def resampled_logs(several: Sequence[Curve]) -> np.ndarray:
        columns = [several[0].sizes.index(size) for size in sizes]
        times = np.array([curve.time_us for curve in several])[:, columns]
        return np.log(resampled_medians(times, settings, random)).mean(axis=1)

    scores = np.exp(resampled_logs(baseline_launches) - resampled_logs(launches))
    return percentile_interval(scores, settings)


def resampled_medians(
    launches: np.ndarray, settings: ScoreSettings, random: np.random.Generator
) -> np.ndarray:
    """Return the medians over the launches in bootstrap samples of them.

    ``launches``: a row for each launch, a column for each size. Shape of the result: resamples,
    sizes; in the unit of the values.
    """
    drawn = random.integers(0, len(launches), (settings.resamples, len(launches)))
    if len(launches) > _FEW:
        return np.median(launches[drawn], axis=1)
    # Most samples of few launches are the same ones in another order.
    drawn.sort(axis=1)
    codes = drawn @ len(launches) ** np.arange(len(launches))
    _, firsts, which = np.unique(codes, return_index=True, return_inverse=True)
    return np.median(launches[drawn[firsts]], axis=1)[which]


def percentile_interval(values: np.ndarray, settings: ScoreSettings) -> tuple[float, float]:
    """Return the interval of the settings' confidence from the values of bootstrap samples."""
    outside = (1 - settings.confidence) / 2
    low, high = np.quantile(values, [outside, 1 - outside])
    return float(low), float(high)


_FEW = 6
"""Launches of which there are fewer different samples, 462, than are drawn."""

CRITERION = Criterion(2, {"score": ScoreSettings()}, {"score": "score"})
