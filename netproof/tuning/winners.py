"""The winning value at each message size, compared with the default at the same time.

The gain of each launch is as in ``gains``, size by size. Each interval is so wide that all
questions of a table, its values times its sizes, together err as often as one would. With five
rounds the variance of one value at one size is so uncertain that Student's intervals for a whole
table are hardly ever narrow enough: variances inform each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from netproof.errors import NetproofError
from netproof.measurement.variances import Variance, in_common, moderated
from netproof.tuning.gains import (
    ERROR,
    LEAST_ROUNDS,
    Gain,
    Made,
    alongside_the_default,
    by_its_size,
    drift_of,
    interval_of_difference,
)

LEAST_VARIANCE = 1e-12
"""Least variance of logarithms: times within a millionth are equal."""


@dataclass(frozen=True)
class SizeWinner:
    """A row of the table: the best value at ``size`` bytes, None without a certain gain.

    ``as_good``: statistically tied values, each with the largest share by which it may be behind;
    ``gains``: of all values.
    """

    size: int
    winner: str | None
    as_good: Mapping[str, float]
    gains: Mapping[str, Gain]

    @property
    def gain(self) -> Gain | None:
        """Return the winner's gain."""
        return None if self.winner is None else self.gains[self.winner]

    @property
    def none(self) -> bool:
        """Check whether all values are certainly as fast as the default."""
        return all(gain.none for gain in self.gains.values())

    @property
    def costly(self) -> bool:
        """Check whether all values are certainly slower than the default."""
        return all(gain.costs for gain in self.gains.values())


@dataclass(frozen=True)
class Winners:
    """The table of a sweep.

    ``disturbed_values``: values with too few rounds left, and their number of rounds; ``drift``,
    ``rounds``, ``disturbed``: as in ``gains.Tuned``.
    """

    rows: tuple[SizeWinner, ...]
    values: tuple[str, ...]
    disturbed_values: Mapping[str, int]
    drift: float
    rounds: int
    disturbed: int


def winners(made: Sequence[Made]) -> Winners:
    """Return the table of a sweep; each value must run between two defaults of its round.

    Raise NetproofError where no value has ``LEAST_ROUNDS`` undisturbed rounds, and where a
    neighbour or a size is missing.
    """
    made = sorted(made, key=lambda one: one.order)
    values = sorted({one.value for one in made if one.value is not None}, key=by_its_size)
    if not values:
        raise NetproofError("no value was measured alongside the default")
    several = {value: alongside_the_default(value, made) for value in values}
    enough = {value: logs for value, logs in several.items() if len(logs) >= LEAST_ROUNDS}
    if not enough:
        most = max(map(len, several.values()))
        raise NetproofError(
            f"no value has more than {most} rounds that nothing disturbed, and it takes"
            f" {LEAST_ROUNDS}"
        )
    sizes = list(next(iter(enough.values()))[0])
    questions = len(enough) * len(sizes)
    shared = common(enough)
    rows = []
    for size in sizes:
        logs = {value: [one[size] for one in launches] for value, launches in enough.items()}
        rows.append(_row(size, logs, shared, questions))
    return Winners(
        tuple(rows),
        tuple(enough),
        {value: len(logs) for value, logs in several.items() if value not in enough},
        drift_of(made),
        len({one.round for one in made}),
        sum(not one.undisturbed for one in made),
    )


def _row(
    size: int, logs: Mapping[str, Sequence[float]], shared: Variance, questions: int
) -> SizeWinner:
    gains = {value: gain_with(several, shared, questions) for value, several in logs.items()}
    sure = [value for value, gain in gains.items() if gain.sure]
    if not sure:
        return SizeWinner(size, None, {}, gains)
    best = max(sure, key=lambda value: gains[value].factor)
    as_good = {}
    for value, several in logs.items():
        low, high = interval_of_difference(logs[best], several)
        if value != best and low <= 0:
            as_good[value] = max(0.0, math.exp(min(high, 700)) - 1)
    return SizeWinner(size, best, as_good, gains)


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
