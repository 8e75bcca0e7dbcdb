"""How often a method alarms for nothing, and how soon it finds what is there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ci.history_benchmark.histories import (
    BEFORE,
    Floats,
    Noise,
    Size,
    bad_night,
    changed,
    histories,
)
from ci.history_benchmark.methods import (
    Alarms,
    by_cusum,
    by_netproof,
    by_otava,
    by_ruptures,
    followed,
)
from netproof.history.changes import Change, ChangeKind, DetectionSettings
from netproof.history.detection import follow_all

TARGET = 1e-3
"""False alarms a series and night that every method is brought to."""
NIGHTS_A_YEAR = 365


@dataclass(frozen=True)
class Rate:
    """False alarms among so many series-nights."""

    alarms: int
    nights: int

    def a_year(self) -> str:
        """False alarms a series and year, with their 95 % interval (of a Poisson's root)."""
        factor = NIGHTS_A_YEAR / self.nights
        low, high = (max(math.sqrt(self.alarms) + side * 0.98, 0.0) ** 2 for side in (-1, 1))
        return f"{self.alarms * factor:.2f} ({low * factor:.2f} to {high * factor:.2f})"


@dataclass(frozen=True)
class Method:
    """A way to find changes: thresholds near the right one, and what share of series it is given.

    ``logarithmic``: whether the threshold is one of p. ``part``: slow methods get fewer series.
    """

    name: str
    alarms: Alarms
    near: tuple[float, float]
    logarithmic: bool
    part: float = 1.0

    def rate(self, noise: Noise, size: Size, threshold: float, before: int, seed: int) -> Rate:
        """False alarms on histories without a change, after so many nights of them."""
        series = max(int(size.null_series * self.part), 1)
        values = histories(noise, series, before + size.null_nights, seed, None)
        found = sum(
            night >= before for alarms in self.alarms(values, threshold) for night, _ in alarms
        )
        return Rate(found, series * size.null_nights)

    def calibrated(self, noise: Noise, size: Size) -> float:
        """The threshold at which false alarms come at the rate of ``TARGET``, by the secant.

        Where ``near`` is one threshold it is that, whatever its rate.
        """
        if self.near[0] == self.near[1]:
            return self.near[0]
        scale = np.log if self.logarithmic else float
        back = math.exp if self.logarithmic else float
        points = []
        for threshold in self.near:
            rate = self.rate(noise, size, threshold, BEFORE, seed=1)
            points.append((scale(threshold), math.log(max(rate.alarms, 0.5) / rate.nights)))
        for _ in range(ROUNDS):
            points.sort(key=lambda point: abs(point[1] - math.log(TARGET)))
            (x, y), (other_x, other_y) = points[0], points[1]
            if x == other_x or y == other_y:
                break
            new = x + (math.log(TARGET) - y) * (x - other_x) / (y - other_y)
            new = min(max(new, x - STRIDE), x + STRIDE)
            rate = self.rate(noise, size, back(new), BEFORE, seed=1)
            points.append((new, math.log(max(rate.alarms, 0.5) / rate.nights)))
        return back(min(points, key=lambda point: abs(point[1] - math.log(TARGET)))[0])


ROUNDS, STRIDE = 2, 3.0
"""Steps of a calibration, and how far one goes at most, in the threshold's own scale."""


@dataclass(frozen=True)
class Found:
    """When a change was found: nights until the alarm, that night included; none: never."""

    nights: tuple[int | None, ...]

    def within(self, nights: int) -> float:
        """Share of the series in which it was found within so many nights."""
        return sum(n is not None and n <= nights for n in self.nights) / len(self.nights)

    @property
    def median(self) -> str:
        """Median nights until it was found."""
        ordered = sorted(math.inf if n is None else n for n in self.nights)
        middle = ordered[len(ordered) // 2]
        return "not found" if math.isinf(middle) else str(middle)


def found(
    method: Method,
    threshold: float,
    noise: Noise,
    size: Size,
    change: Floats,
) -> Found:
    """How a method finds a change in many series, half of them with it upwards, half downwards."""
    begin = int(np.flatnonzero(change)[0])
    series = max(int(size.series * method.part), 2)
    values = histories(noise, series, len(change), 2, change)
    nights: list[int | None] = []
    for number, alarms in enumerate(method.alarms(values, threshold)):
        side = -1 if number % 2 else 1
        right = [night for night, up in alarms if night >= begin and up == side]
        nights.append(min(right) - begin + 1 if right else None)
    return Found(tuple(nights))


@dataclass(frozen=True)
class BadNights:
    """What became of single bad nights: reported as such, and as steps."""

    series: int
    as_such: int
    as_step: int


def bad_nights(threshold: float, noise: Noise, size: Size, off: float) -> BadNights:
    """How ``follow_all`` takes single bad nights, upwards and downwards.

    A step is laid to the bad night where there is none in the same history without that night.
    """
    change = changed(BEFORE, 12, bad_night(min(off, 0.9)))
    values = histories(noise, size.series, len(change), 3, change)
    if off > 0.9:
        values[::2, BEFORE] *= (1 + off) / 1.9
    with_it = followed(values, threshold)
    missing = [[*row[:BEFORE], None, *row[BEFORE + 1 :]] for row in values.tolist()]
    settings = DetectionSettings(alarm=threshold)
    without = [followed.changes for followed in follow_all(missing, settings)]
    return BadNights(
        len(values),
        sum(
            any(c.kind is ChangeKind.BAD_NIGHT and c.index == BEFORE for c in row)
            for row in with_it
        ),
        sum(_alarmed(a) and not _alarmed(b) for a, b in zip(with_it, without, strict=True)),
    )


def _alarmed(changes: Sequence[Change]) -> bool:
    return any(
        change.kind is not ChangeKind.BAD_NIGHT and change.found >= BEFORE for change in changes
    )


CUSUM = Method("CUSUM that is told level and noise", by_cusum, (-4.0, -2.5), False)
NETPROOF = Method("netproof", by_netproof, (1.5e-3, 4e-3), True)
PELT = Method("ruptures, PELT", by_ruptures, (-13.0, -11.0), False, 0.2)


def otava(python: str) -> Method:
    """Apache Otava, of an environment of its own: it wants another numpy than netproof.

    As it comes, with p up to 0.001: to calibrate it takes hours.
    """
    return Method("Apache Otava, p up to 0.001", partial(by_otava, python), (1e-3, 1e-3), True, 0.1)
