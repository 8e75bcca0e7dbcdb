"""The score: how fast a configuration is compared with a baseline, over all sizes.

It is relative to one configuration, and by default asserts nothing: where that one is slow, all
others look fast. After the GigE synthetic-benchmark report, which has no interval.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from netproof.criteria.findings import (
    Below,
    CannotJudgeError,
    Finding,
    Level,
    geometric_mean,
    in_common,
    over_common,
    sizes_in_words,
    then,
)
from netproof.criteria.interface import CaseCurves, ComparedCases, Criterion
from netproof.measurement.case import Curve, median_curve
from netproof.measurement.interval import CONFIDENCE

if TYPE_CHECKING:
    import numpy as np

SCORE = Below()
"""Scores below these bounds are flagged; by default nothing is asserted."""

RESAMPLES = 2000
"""Bootstrap samples; an interval takes 1,000 or more (Efron and Tibshirani 1993)."""

SEED = 20060701
"""Seed of the bootstrap, so that the same launches have the same interval."""

NO_INTERVAL = "no interval, which takes two launches of both"


class ScoredSide:
    """The launches of one side of a score: their median times, and their bootstrap samples.

    Raises CannotJudgeError, and NetproofError where the launches differ in sizes.
    """

    def __init__(
        self, launches: Sequence[Curve], label: str, settings: Below, curve: Curve | None = None
    ) -> None:
        self.each, self.label = settings.times_of_each(launches, of=f" of {label}"), label
        self.times = settings.times(curve or median_curve(launches))
        self._logs: dict[tuple[tuple[int, ...], tuple[int, int], int], np.ndarray] = {}

    def logs(self, sizes: tuple[int, ...], counts: tuple[int, int], side: int) -> np.ndarray:
        """Return the mean logarithm of its times in each bootstrap sample of so many launches."""
        import numpy as np

        if (sizes, counts, side) not in self._logs:
            different, which = samples(counts)[side]
            times = np.array([[one[size] for size in sizes] for one in self.each])
            logs = medians(times, different, np.log).mean(axis=1)
            self._logs[sizes, counts, side] = logs[which]
        return self._logs[sizes, counts, side]


def score(
    own: ScoredSide, base: ScoredSide, settings: Below = SCORE, red_sizes: Sequence[int] = ()
) -> Finding:
    """Return the geometric mean over the common sizes of t_baseline / t.

    Above 1 is faster. The curves are the medians of the launches; the ``interval`` is the
    percentile bootstrap over the launches of both. ``red_sizes``: those that ``above_envelope``
    failed. Raises CannotJudgeError.
    """
    sizes = in_common((own.times, base.times))
    if not sizes:
        raise CannotJudgeError(f"it has no size in common with the baseline {base.label}")
    value = geometric_mean([base.times[size] / own.times[size] for size in sizes])
    interval, counts = None, (len(base.each), len(own.each))
    if min(counts) > 1:
        import numpy as np

        logs = (one.logs(sizes, counts, side) for side, one in enumerate((base, own)))
        interval = percentile_interval(np.exp(np.subtract(*logs)))
    mark = f"; red at {sizes_in_words(red_sizes)}" if red_sizes else ""
    reason = f"{value:.3g} times as fast as {base.label} {over_common(sizes)}"
    reason += (f" ({NO_INTERVAL})" if interval is None else "") + mark
    found = settings.finding(value, reason, interval=interval, common=sizes, against=base.label)
    return found.but(criterion="score")


Samples = tuple["np.ndarray", "np.ndarray"]
"""Different bootstrap samples, places of launches in rows, and which of them each sample is."""


@cache
def samples(counts: tuple[int, int]) -> tuple[Samples, ...]:
    """Return ``_drawn`` for each side, of so many launches; the same whatever these took."""
    import numpy as np

    random = np.random.default_rng(SEED)
    return tuple(_drawn(count, random) for count in counts)


_FEW = 6
"""Launches that have fewer different samples, 462, than are drawn."""


def medians(
    launches: np.ndarray,
    samples: np.ndarray,
    of: Callable[[np.ndarray], np.ndarray] = lambda values: values,
) -> np.ndarray:
    """Return the medians of ``samples``, rows of places of launches, in shape (samples, sizes).

    ``of``: what is asked for of each. Ranks fit in a byte, of which the CPU sorts many at once: 20
    times as fast as of the values.
    """
    import numpy as np

    count, sizes = launches.shape
    ranks = launches.argsort(axis=0).argsort(axis=0).astype(np.min_scalar_type(count))
    drawn = [*ranks.take(samples.T, axis=0)]
    for turn in range(count):
        for at in range(turn % 2, count - 1, 2):
            both = drawn[at], drawn[at + 1]
            drawn[at], drawn[at + 1] = np.minimum(*both), np.maximum(*both)
    ordered = np.sort(launches, axis=0)
    # Between each two launches, of which most samples have the same.
    middles = of((ordered[:, None] + ordered) / 2)
    places = drawn[(count - 1) // 2].astype(int) * count + drawn[count // 2]
    found: np.ndarray = middles.take(places * sizes + np.arange(sizes))
    return found


def _drawn(count: int, random: np.random.Generator) -> Samples:
    """Return the different bootstrap samples of so many launches, and which of them each is."""
    import numpy as np

    drawn = random.integers(0, count, (RESAMPLES, count))
    if count > _FEW:
        return drawn, np.arange(RESAMPLES)
    # Most samples of few launches are the same ones in another order.
    drawn.sort(axis=1)
    codes = drawn @ count ** np.arange(count)
    _, firsts, which = np.unique(codes, return_index=True, return_inverse=True)
    return drawn[firsts], which


def percentile_interval(values: np.ndarray) -> tuple[float, float]:
    """Return the interval of CONFIDENCE from the values of bootstrap samples."""
    import numpy as np

    outside = (1 - CONFIDENCE) / 2
    low, high = np.quantile(values, [outside, 1 - outside]).tolist()
    return low, high


def _of_case(case: CaseCurves, compared: ComparedCases, settings: Below) -> Finding | None:
    """Return the score of a case; one that rests on disturbed launches says so at any level."""
    if compared.baseline is None:
        why = "score undefined: the baseline is no part of this run"
        return Finding("score", Level.UNDEFINED, case.where, why)
    base = [compared.cases[label] for label in compared.baseline]
    if not base and not compared.baseline_name:
        return None
    if not base:
        raise CannotJudgeError(f"the baseline {compared.baseline_name} did not run")
    own = ScoredSide(case.launches, case.where, settings, case.curve)
    if settings not in compared.shared:
        launches = [launch for one in base for launch in one.launches]
        compared.shared[settings] = ScoredSide(launches, base[0].name, settings)
    red = compared.red.get(case.where, ())
    finding = score(own, compared.shared[settings], settings, red).but(against=base[0].where)
    noise = compared.noise(case.where, *compared.baseline)
    if not noise:
        return finding
    if finding.level is Level.FAIL:
        finding = finding.but(level=Level.INCONCLUSIVE)
    reason = finding.reason + then(f"the machine was disturbed: {'; '.join(noise)}")
    return finding.but(reason=reason, disturbed=noise)


CRITERIA = (
    Criterion(
        "score",
        "score",
        SCORE,
        compare=_of_case,
        of_all_sizes=True,
        of_baseline=True,
        key_figure="score",
    ),
)
