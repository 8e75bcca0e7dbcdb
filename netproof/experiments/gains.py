"""Gains and costs of a setting's values, compared with the paired default (drift cancels).

Each launch with a value runs between two with the default, in the same round. The gain at a size is
the default's time there, the geometric mean of both neighbours, over the value's time. When a
machine or network changes its pace meanwhile, both change.

A table of winners, its values times its sizes, has so many questions that with five rounds
Student's intervals are hardly ever narrow enough: there variances inform each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean, median, stdev, variance
from types import MappingProxyType

import scipy

from netproof.errors import NetproofError
from netproof.measurement.curve import Curve
from netproof.measurement.interval import Variance, in_common, moderated

SHORT_UP_TO = 64
"""Bytes up to which a message's time is latency."""
LONG_SHARE = 8
"""Share of the largest message from which on messages are long: their time is that of the bytes."""
ERROR = 0.05
"""Largest share of recommendations among sweeps of a setting without effect."""
LEAST_GAIN = 0.02
"""Least gain that is worth a setting to maintain."""
LEAST_ROUNDS = 3
LEAST_VARIANCE = 1e-12
"""Least variance of logarithms: times within a millionth are equal."""


class MessageRange(StrEnum):
    """Range of message sizes."""

    SHORT = "short"
    MEDIUM = "medium"
    LONG = "long"


@dataclass(frozen=True)
class Made:
    """A launch of a sweep: its value (None: the default), its place, and its curve.

    ``round``: from 1; ``order``: among all launches of the job; ``undisturbed``: no other load ran.
    """

    value: str | None
    round: int
    order: int
    curve: Curve
    undisturbed: bool = True


@dataclass(frozen=True)
class Gain:
    """How much faster messages of a range are, as a factor: 1.1 is a tenth faster.

    ``interval``: at the confidence for the number of questions.
    """

    factor: float
    interval: tuple[float, float]

    @property
    def sure(self) -> bool:
        """Check whether the whole interval is a gain worth having."""
        return self.interval[0] > 1 + LEAST_GAIN

    @property
    def costs(self) -> bool:
        """Check whether the whole interval is a loss that counts."""
        return self.interval[1] < 1 / (1 + LEAST_GAIN)

    @property
    def none(self) -> bool:
        """Check whether the whole interval counts as no change."""
        return self.interval[0] >= 1 / (1 + LEAST_GAIN) and self.interval[1] <= 1 + LEAST_GAIN


@dataclass(frozen=True)
class SweepRow:
    """The values of a sweep at a size in bytes, or in a range of sizes: the best of them, if any.

    ``winner``: None without a certain gain; ``as_good``: statistically tied values, each with the
    largest share by which it may be behind; ``gains``: of all values.
    """

    at: int | MessageRange
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
class SweepTable:
    """Result of a sweep: a row for each size, or for each range of sizes.

    ``by_size``: for each value, how many times as fast as the default, by size in bytes;
    ``disturbed_values``: values with too few rounds that nothing disturbed, and how many these are;
    ``drift``: time of the last default over the first, median over sizes; ``rounds``: their number;
    ``disturbed``: number of launches with other load.
    """

    rows: tuple[SweepRow, ...]
    by_size: Mapping[str, Mapping[int, float]]
    disturbed_values: Mapping[str, int]
    drift: float
    rounds: int
    disturbed: int

    @property
    def values(self) -> tuple[str, ...]:
        """Return the values in their order."""
        return tuple(self.by_size)

    def gains_of(self, value: str) -> dict[int | MessageRange, Gain]:
        """Return the gains of a value, by size or range."""
        return {row.at: row.gains[value] for row in self.rows}

    @property
    def best(self) -> SweepRow | None:
        """Return the row with the largest certain gain; None without one."""
        won = [row for row in self.rows if row.winner is not None]
        return max(won, key=lambda row: row.gains[str(row.winner)].factor, default=None)


def range_of(size: int, largest: int) -> MessageRange:
    """Return the range of a size in bytes."""
    if size <= SHORT_UP_TO:
        return MessageRange.SHORT
    return MessageRange.LONG if size * LONG_SHARE >= largest else MessageRange.MEDIUM


def tuned(made: Sequence[Made], already: str | None = None) -> SweepTable:
    """Return the result by ranges of sizes; a value must run between two defaults of its round.

    A disturbed launch, or one with a disturbed neighbour, is left out. ``already``: the value that
    all nodes have, which is the default and not recommended. Raise NetproofError where a value has
    fewer than ``LEAST_ROUNDS`` rounds left, and where a neighbour or a size is missing.
    """
    rounds = len({one.round for one in made})
    if rounds < LEAST_ROUNDS:
        raise NetproofError(
            f"{rounds} of at least {LEAST_ROUNDS} rounds: fewer tell nothing of chance"
        )
    several = logs_by_value(made)
    for value, launches in several.items():
        if len(launches) < LEAST_ROUNDS:
            raise NetproofError(
                f"{value} has {len(launches)} rounds that nothing disturbed, and it takes"
                f" {LEAST_ROUNDS}"
            )
    sizes = list(next(iter(several.values()))[0])
    ranges: dict[int | MessageRange, Sequence[int]] = {
        kind: [one for one in sizes if range_of(one, sizes[-1]) is kind] for kind in MessageRange
    }
    # A common variance without weight: each value's interval is Student's of its own.
    nothing, questions = Variance(1.0, 0.0), len(several) * len(MessageRange)
    return _table(made, several, ranges, nothing, questions, already=already)


def winners(made: Sequence[Made]) -> SweepTable:
    """Return the result by sizes; NetproofError without ``LEAST_ROUNDS`` undisturbed rounds."""
    several = logs_by_value(made)
    enough = {value: logs for value, logs in several.items() if len(logs) >= LEAST_ROUNDS}
    if not enough:
        most = max(map(len, several.values()))
        raise NetproofError(
            f"no value has more than {most} rounds that nothing disturbed, and it takes"
            f" {LEAST_ROUNDS}"
        )
    each: dict[int | MessageRange, Sequence[int]] = {
        size: [size] for size in next(iter(enough.values()))[0]
    }
    few = {value: len(logs) for value, logs in several.items() if value not in enough}
    return _table(made, enough, each, common(enough), len(enough) * len(each), few)


def _table(
    made: Sequence[Made],
    several: Mapping[str, Sequence[Mapping[int, float]]],
    groups: Mapping[int | MessageRange, Sequence[int]],
    shared: Variance,
    questions: int,
    few: Mapping[str, int] = MappingProxyType({}),
    already: str | None = None,
) -> SweepTable:
    """Return a row for each group of sizes that has any; ``shared``: their common variance."""
    rows = []
    for at, members in groups.items():
        if not members:
            continue
        # The mean: an eager limit moves few of a range's sizes, and a median misses them.
        logs = {
            value: [fmean(one[size] for size in members) for one in launches]
            for value, launches in several.items()
        }
        gains = {value: gain_with(one, shared, questions) for value, one in logs.items()}
        sure = [value for value, one in gains.items() if one.sure and value != already]
        if not sure:
            rows.append(SweepRow(at, None, {}, gains))
            continue
        best, as_good = max(sure, key=lambda value: gains[value].factor), {}
        for value, one in logs.items():
            low, high = interval_of_difference(logs[best], one)
            if low <= 0 and value not in (best, already):
                as_good[value] = max(0.0, math.exp(min(high, 700)) - 1)
        rows.append(SweepRow(at, best, as_good, gains))
    by_size = {
        value: {size: math.exp(fmean(logs[size] for logs in launches)) for size in launches[0]}
        for value, launches in several.items()
    }
    disturbed = sum(not one.undisturbed for one in made)
    rounds = len({one.round for one in made})
    return SweepTable(tuple(rows), by_size, few, drift_of(made), rounds, disturbed)


def by_its_size(value: str) -> tuple[bool, int, str]:
    """Return a key that sorts numbers by their size, before words."""
    number = value.isascii() and value.isdigit()
    return not number, int(value) if number else 0, value


def logs_by_value(made: Sequence[Made]) -> dict[str, list[dict[int, float]]]:
    """Return the logarithms of each value's gains by size, a launch each; NetproofError."""
    found: dict[str, list[dict[int, float]]] = {}
    for one in sorted(made, key=_order):
        if one.value is None:
            continue
        logs = found.setdefault(one.value, [])
        of_round = [each for each in made if each.value is None and each.round == one.round]
        before = [each for each in of_round if each.order < one.order]
        behind = [each for each in of_round if each.order > one.order]
        if not before or not behind:
            raise NetproofError(
                f"{one.value} of round {one.round} does not stand between two launches of the"
                " default"
            )
        three = (one, max(before, key=_order), min(behind, key=_order))
        if all(each.undisturbed for each in three):
            logs.append(_logs(*(each.curve for each in three)))
    if not found:
        raise NetproofError("no value was measured alongside the default")
    return {value: found[value] for value in sorted(found, key=by_its_size)}


def _order(made: Made) -> int:
    return made.order


def _logs(curve: Curve, before: Curve, behind: Curve) -> dict[int, float]:
    if not curve.sizes == before.sizes == behind.sizes:
        raise NetproofError("launches of a sweep have different sizes")
    logs = {}
    for size, *times in zip(
        curve.sizes, curve.time_us, before.time_us, behind.time_us, strict=True
    ):
        if min(times) <= 0:
            raise NetproofError(f"a time of {min(times):g} µs at {size} bytes is no reading")
        time, one, other = map(math.log, times)
        logs[size] = (one + other) / 2 - time
    return logs


def interval_of_difference(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of a difference of means with unequal variances (Welch)."""
    variances = [stdev(one) ** 2 / len(one) for one in (first, second)]
    middle, together = fmean(first) - fmean(second), sum(variances)
    if together == 0:
        return middle, middle
    freedom = together**2 / sum(
        variance**2 / (len(one) - 1)
        for variance, one in zip(variances, (first, second), strict=True)
    )
    half = float(scipy.special.stdtrit(freedom, 1 - ERROR / 2)) * math.sqrt(together)
    return middle - half, middle + half


def drift_of(made: Sequence[Made]) -> float:
    """Return how much longer the last default took than the first, as a factor."""
    defaults = sorted((one for one in made if one.value is None), key=_order)
    first, last = defaults[0].curve, defaults[-1].curve
    times = zip(first.time_us, last.time_us, strict=True)
    return median(behind / before for before, behind in times)


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
    middle, half = fmean(logs), spread.half_width(ERROR / questions, 1 / len(logs))
    return Gain(math.exp(middle), (math.exp(middle - half), math.exp(min(middle + half, 700))))


def _variance(logs: Sequence[float]) -> Variance:
    return Variance(max(variance(logs), LEAST_VARIANCE), len(logs) - 1)
