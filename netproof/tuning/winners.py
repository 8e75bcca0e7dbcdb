"""Which value wins at each message size, next to the default at the same time.

The gain of each launch is that of ``gains``, size by size. A table asks as many questions as it has
values and sizes, and each interval is so wide that all together err as often as one would; see
``moderated``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from netproof.errors import NetproofError
from netproof.measurement.variances import Variance
from netproof.tuning.gains import (
    LEAST_ROUNDS,
    Gain,
    Made,
    alongside_the_default,
    by_its_size,
    drift_of,
    interval_of_difference,
)
from netproof.tuning.moderated import common, gain_with


@dataclass(frozen=True)
class SizeWinner:
    """A row of the table: the best value at ``size`` bytes, None where no gain is sure.

    ``as_good``: other values that cannot be told apart from it, with by how much each is behind at
    most, as a share; ``gains``: of all values.
    """

    size: int
    winner: str | None
    as_good: Mapping[str, float]
    gains: Mapping[str, Gain]

    @property
    def gain(self) -> Gain | None:
        """The winner's."""
        return None if self.winner is None else self.gains[self.winner]

    @property
    def none(self) -> bool:
        """Whether all values are for sure as fast as the default."""
        return all(gain.none for gain in self.gains.values())

    @property
    def costly(self) -> bool:
        """Whether all values are for sure slower than the default."""
        return all(gain.costs for gain in self.gains.values())


@dataclass(frozen=True)
class Winners:
    """The table of a sweep.

    ``disturbed_values``: values of which too few rounds are left to say anything, with how many;
    ``drift``, ``rounds``, ``disturbed``: as ``gains.Tuned`` has them.
    """

    rows: tuple[SizeWinner, ...]
    values: tuple[str, ...]
    disturbed_values: Mapping[str, int]
    drift: float
    rounds: int
    disturbed: int


def winners(made: Sequence[Made]) -> Winners:
    """The table of launches, of which each value has to stand between two defaults of its round.

    Raises NetproofError where no value has ``LEAST_ROUNDS`` rounds that nothing disturbed, and
    where a neighbour or a size is missing.
    """
    made = sorted(made, key=lambda one: one.order)
    values = sorted({one.value for one in made if one.value is not None}, key=by_its_size)
    if not values:
        raise NetproofError("no value was measured alongside the default")
    several = {value: alongside_the_default(value, made) for value in values}
    told = {value: logs for value, logs in several.items() if len(logs) >= LEAST_ROUNDS}
    if not told:
        most = max(map(len, several.values()))
        raise NetproofError(
            f"no value has more than {most} rounds that nothing disturbed, and it takes"
            f" {LEAST_ROUNDS}"
        )
    sizes = list(next(iter(told.values()))[0])
    questions = len(told) * len(sizes)
    shared = common(told)
    rows = []
    for size in sizes:
        logs = {value: [one[size] for one in launches] for value, launches in told.items()}
        rows.append(_row(size, logs, shared, questions))
    return Winners(
        tuple(rows),
        tuple(told),
        {value: len(logs) for value, logs in several.items() if value not in told},
        drift_of(made),
        len({one.round for one in made}),
        sum(not one.calm for one in made),
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
