"""Gains and costs of a setting's values, compared with the paired default (drift cancels).

Each launch with a value runs between two with the default, in the same round. The gain at a size is
the default's time there, the geometric mean of both neighbours, over the value's time. When a
machine or network changes its pace meanwhile, both change.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean, median, stdev

import scipy

from netproof.errors import NetproofError
from netproof.measurement.curve import Curve

SHORT_UP_TO = 64
"""Bytes up to which a message's time is latency."""

LONG_SHARE = 8
"""Share of the largest message from which on messages are long: their time is that of the bytes."""

ERROR = 0.05
"""Largest share of recommendations among sweeps of a setting without effect."""

LEAST_GAIN = 0.02
"""Least gain that is worth a setting to maintain."""

LEAST_ROUNDS = 3


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
class ValueGains:
    """Gains and costs of one value, by range; ``by_size``: the factor at each size in bytes."""

    value: str
    ranges: Mapping[MessageRange, Gain]
    by_size: Mapping[int, float]


@dataclass(frozen=True)
class Recommendation:
    """A value that is worth setting, for which messages, and the others that are as good.

    ``costs``: ranges in which it costs; ``as_good``: statistically tied values, each with the
    largest share by which it may be behind.
    """

    value: str
    best_in: MessageRange
    gain: Gain
    costs: Mapping[MessageRange, Gain]
    as_good: Mapping[str, float]


@dataclass(frozen=True)
class Tuned:
    """Result of a sweep.

    ``drift``: time of the last default over the first, median over sizes; ``rounds``: their number;
    ``disturbed``: number of launches with other load.
    """

    gains: tuple[ValueGains, ...]
    recommended: Recommendation | None
    drift: float
    rounds: int
    disturbed: int


def range_of(size: int, largest: int) -> MessageRange:
    """Return the range of a size in bytes."""
    if size <= SHORT_UP_TO:
        return MessageRange.SHORT
    return MessageRange.LONG if size * LONG_SHARE >= largest else MessageRange.MEDIUM


def tuned(made: Sequence[Made], already: str | None = None) -> Tuned:
    """Return the result of a sweep; each value must run between two defaults of its round.

    A disturbed launch, or one with a disturbed neighbour, is left out. ``already``: the value that
    all nodes have, which is the default and not recommended. Raise NetproofError where a value has
    fewer than ``LEAST_ROUNDS`` rounds left, and where a neighbour or a size is missing.
    """
    made = sorted(made, key=lambda one: one.order)
    rounds = {one.round for one in made}
    if len(rounds) < LEAST_ROUNDS:
        raise NetproofError(
            f"{len(rounds)} of at least {LEAST_ROUNDS} rounds: fewer tell nothing of chance"
        )
    values = sorted({one.value for one in made if one.value is not None}, key=by_its_size)
    if not values:
        raise NetproofError("no value was measured alongside the default")
    several = {value: alongside_the_default(value, made) for value in values}
    for value, launches in several.items():
        if len(launches) < LEAST_ROUNDS:
            raise NetproofError(
                f"{value} has {len(launches)} rounds that nothing disturbed, and it takes"
                f" {LEAST_ROUNDS}"
            )
    questions = len(values) * len(MessageRange)
    gains = []
    shares: dict[str, dict[MessageRange, list[float]]] = {}
    for value, launches in several.items():
        sizes = list(launches[0])
        shares[value] = {
            kind: [
                # The mean: an eager limit moves few of a range's sizes, and a median misses them.
                fmean(one[size] for size in sizes if range_of(size, sizes[-1]) is kind)
                for one in launches
            ]
            for kind in MessageRange
            if any(range_of(size, sizes[-1]) is kind for size in sizes)
        }
        gains.append(
            ValueGains(
                value,
                {kind: _gain(logs, questions) for kind, logs in shares[value].items()},
                {size: math.exp(fmean(one[size] for one in launches)) for size in sizes},
            )
        )
    disturbed = sum(not one.undisturbed for one in made)
    recommended = _recommended([one for one in gains if one.value != already], shares)
    return Tuned(tuple(gains), recommended, drift_of(made), len(rounds), disturbed)


def by_its_size(value: str) -> tuple[bool, int, str]:
    """Return a key that sorts numbers by their size, before words."""
    number = value.isascii() and value.isdigit()
    return not number, int(value) if number else 0, value


def alongside_the_default(value: str, made: Sequence[Made]) -> list[dict[int, float]]:
    """Return the logarithm of the gain by size in bytes, for each launch with a value."""
    found = []
    defaults = sorted((one for one in made if one.value is None), key=lambda one: one.order)
    for one in (one for one in made if one.value == value):
        of_round = [each for each in defaults if each.round == one.round]
        before = [each for each in of_round if each.order < one.order]
        behind = [each for each in of_round if each.order > one.order]
        if not before or not behind:
            raise NetproofError(
                f"{value} of round {one.round} does not stand between two launches of the default"
            )
        both = before[-1], behind[0]
        if one.undisturbed and all(each.undisturbed for each in both):
            found.append(_logs(one.curve, *(each.curve for each in both)))
    return found


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


def _gain(logs: Sequence[float], questions: int) -> Gain:
    """Return Student's interval, so wide that all questions together err as often as one would."""
    middle = fmean(logs)
    error = stdev(logs) / math.sqrt(len(logs))
    half = float(scipy.special.stdtrit(len(logs) - 1, 1 - ERROR / questions / 2)) * error
    return Gain(math.exp(middle), (math.exp(middle - half), math.exp(min(middle + half, 700))))


def _recommended(
    gains: Sequence[ValueGains], shares: Mapping[str, Mapping[MessageRange, Sequence[float]]]
) -> Recommendation | None:
    """Return the value with the largest certain gain; None without one."""
    sure = [
        (gain.factor, one, kind) for one in gains for kind, gain in one.ranges.items() if gain.sure
    ]
    if not sure:
        return None
    _, best, kind = max(sure, key=lambda found: found[0])
    costs = {other: gain for other, gain in best.ranges.items() if gain.costs}
    as_good = {}
    for one in gains:
        if one.value == best.value:
            continue
        ahead = interval_of_difference(shares[best.value][kind], shares[one.value][kind])
        if ahead[0] <= 0:
            as_good[one.value] = max(0.0, math.exp(min(ahead[1], 700)) - 1)
    return Recommendation(best.value, kind, best.ranges[kind], costs, as_good)


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
    defaults = sorted((one for one in made if one.value is None), key=lambda one: one.order)
    first, last = defaults[0].curve, defaults[-1].curve
    times = zip(first.time_us, last.time_us, strict=True)
    return median(behind / before for before, behind in times)
