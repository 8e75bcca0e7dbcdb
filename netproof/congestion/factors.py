"""Congestion impact factors: a victim's time alongside an aggressor over its time alone.

As GPCNeT (Chunduri et al., SC19) defines them, for the mean, the median and the 99th percentile of
a victim's times. A round's factor compares two consecutive launches on the same nodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean, median

from netproof.congestion.loaded import Loaded, VictimRun
from netproof.congestion.planning import Aggressor, Victim, VictimPlace
from netproof.measurement.interval import Interval, Side, of_pseudomedian, pseudomedian, side
from netproof.site.load_settings import LoadSettings

LEAST_ROUNDS = 3
"""Least rounds that allow an estimate of chance."""

PERCENTILE = 99

LEAST_OF_PERCENTILE = 100
"""Least number of times whose 99th percentile is not the largest."""


class Statistic(StrEnum):
    """Statistic of a victim's times."""

    MEAN = "mean"
    MEDIAN = "median"
    TAIL = "99th percentile"


@dataclass(frozen=True)
class BoundedFactor:
    """How many times as bad a figure is under load, with a 95 % interval over rounds.

    ``most``: its bound, None without one, and ``side``: of the interval. Where the factor is not
    known, all but the bound are None, with the reason in ``why``.
    """

    value: float | None
    interval: Interval | None
    most: float | None
    side: Side | None
    why: str = ""

    @property
    def undecided(self) -> bool:
        """Check whether it has a bound, and is inconclusive."""
        return self.most is not None and self.side in (None, Side.ASTRIDE)


@dataclass(frozen=True)
class Factor(BoundedFactor):
    """Factor of a victim's times; ``alone_us``, ``beside_us``: medians over rounds."""

    alone_us: float | None = None
    beside_us: float | None = None


@dataclass(frozen=True)
class Impact:
    """The effect of one aggressor on one victim at one place.

    ``rounds``: those that count; ``refused``: reasons for the others, a sentence each; ``waited``:
    share of a launch's time in which something on the victim's nodes waited for a CPU, alone and
    alongside, medians over rounds, None where it is not known.
    """

    place: VictimPlace
    victim: Victim
    aggressor: Aggressor
    factors: Mapping[Statistic, Factor]
    rounds: int
    refused: tuple[str, ...]
    waited: tuple[float, float] | None


@dataclass(frozen=True)
class Impacts:
    """Effects in a job, in the order of places, victims and aggressors."""

    impacts: tuple[Impact, ...]

    def beyond(self) -> bool:
        """Check whether a factor exceeds its bound."""
        return any(one.side is Side.BEYOND for one in self._factors())

    def undecided(self) -> bool:
        """Check whether a factor is inconclusive, or too few rounds are left for any."""
        few = any(one.rounds < LEAST_ROUNDS for one in self.impacts)
        return few or any(one.undecided for one in self._factors())

    def _factors(self) -> list[Factor]:
        return [factor for one in self.impacts for factor in one.factors.values()]


def percentile(times: Sequence[float]) -> float | None:
    """Return the 99th by nearest rank; None for fewer than 100 times, where it is the largest."""
    if len(times) < LEAST_OF_PERCENTILE:
        return None
    return sorted(times)[math.ceil(PERCENTILE / 100 * len(times)) - 1]


_OF: Mapping[Statistic, Callable[[Sequence[float]], float | None]] = {
    Statistic.MEAN: fmean,
    Statistic.MEDIAN: median,
    Statistic.TAIL: percentile,
}


def impacts(loaded: Loaded) -> Impacts:
    """Return the effects in a job, by the settings of its partition."""
    runs: dict[tuple[VictimPlace, Victim, Aggressor], dict[int, dict[bool, VictimRun]]] = {}
    for run in loaded.runs:
        turn = run.turn
        of_round = runs.setdefault((turn.place, turn.victim, turn.aggressor), {})
        of_round.setdefault(turn.round, {})[turn.beside] = run
    partition = loaded.where
    settings = partition.load_settings()
    found = []
    for key in sorted(runs, key=_in_order):
        whole, refused = [], []
        for number, both in sorted(runs[key].items()):
            missing = "" if len(both) == 2 else "one of its two launches is not there"
            refusals = (missing, *(one.refused(partition) for one in both.values()))
            why = next(filter(None, refusals), "")
            if why:
                refused.append(f"round {number}: {why}")
            else:
                whole.append((both[False], both[True]))
        factors = {one: _factor(one, whole, settings) for one in Statistic}
        found.append(Impact(*key, factors, len(whole), tuple(refused), _waited(whole)))
    return Impacts(tuple(found))


def _in_order(key: tuple[VictimPlace, Victim, Aggressor]) -> tuple[int, ...]:
    return tuple(list(type(one)).index(one) for one in key)


def _factor(
    statistic: Statistic, rounds: Sequence[tuple[VictimRun, VictimRun]], settings: LoadSettings
) -> Factor:
    bounds = {Statistic.MEAN: settings.most, Statistic.TAIL: settings.most_99th}
    most = bounds.get(statistic)

    if len(rounds) < LEAST_ROUNDS:
        few = f"{len(rounds)} rounds count, and it takes {LEAST_ROUNDS}"
        return Factor(None, None, most, None, few)
    figures = [tuple(_OF[statistic](one.times_us) for one in both) for both in rounds]
    if any(None in both for both in figures):
        fewest = min(len(one.times_us) for both in rounds for one in both)
        few = (
            f"a launch has {fewest} repetitions, and a {PERCENTILE}th percentile takes"
            f" {LEAST_OF_PERCENTILE}"
        )
        return Factor(None, None, most, None, few)
    ratios = [alongside / alone for alone, alongside in figures]
    interval = of_pseudomedian(ratios)
    return Factor(
        pseudomedian(ratios),
        interval,
        most,
        None if most is None else side(interval, 0, most),
        alone_us=median(alone for alone, _ in figures),
        beside_us=median(alongside for _, alongside in figures),
    )


def _waited(rounds: Sequence[tuple[VictimRun, VictimRun]]) -> tuple[float, float] | None:
    shares = [(alone.waited_share, alongside.waited_share) for alone, alongside in rounds]
    if not shares or any(None in both for both in shares):
        return None
    return median(alone for alone, _ in shares), median(alongside for _, alongside in shares)
