"""Rates of false alarms, and nights until a change is found."""

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
from netproof.history.changes import Change, ChangeKind
from netproof.history.followers import follow_all

TARGET = 1e-3
"""False alarms per series and night to which every method is calibrated."""
NIGHTS_A_YEAR = 365


@dataclass(frozen=True)
class Rate:
    """False alarms, and the series-nights among which they were."""

    alarms: int
    nights: int

    def a_year(self) -> str:
        """Return false alarms per series and year with their 95 % interval (Poisson's root)."""
        factor = NIGHTS_A_YEAR / self.nights
        low, high = (max(math.sqrt(self.alarms) + side * 0.98, 0.0) ** 2 for side in (-1, 1))
        return f"{self.alarms * factor:.2f} ({low * factor:.2f} to {high * factor:.2f})"


@dataclass(frozen=True)
class Method:
    """A way to find changes.

    ``near``: thresholds near the right one; ``logarithmic``: whether the threshold is a p-value;
    ``part``: share of the series, less for slow methods.
    """

    name: str
    alarms: Alarms
    near: tuple[float, float]
    logarithmic: bool
    part: float = 1.0

    def rate(self, noise: Noise, size: Size, threshold: float, before: int, seed: int) -> Rate:
        """Count false alarms on histories without a change, after their first ``before`` nights."""
        series = max(int(size.null_series * self.part), 1)
        values = histories(noise, series, before + size.null_nights, seed, None)
        found = sum(
            night >= before for alarms in self.alarms(values, threshold) for night, _ in alarms
        )
        return Rate(found, series * size.null_nights)

    def calibrated(self, noise: Noise, size: Size) -> float:
        """Find the threshold with the rate ``TARGET`` of false alarms, by the secant method.

        If ``near`` is a single threshold, return it, whatever its rate.
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
"""Steps of a calibration, and the longest step in the threshold's own scale."""


@dataclass(frozen=True)
class Found:
    """Nights until a change was found, the alarm's included; None if never."""

    nights: tuple[int | None, ...]

    def within(self, nights: int) -> float:
        """Return the share of series in which it was found within ``nights``."""
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
    """Try a method on many series with a change, half upwards and half downwards."""
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
    """Single bad nights: reported as such, and as steps."""

    series: int
    as_such: int
    as_step: int


def bad_nights(threshold: float, noise: Noise, size: Size, off: float) -> BadNights:
    """Count how ``follow_all`` reports single bad nights, upwards and downwards.

    A step counts if the same history without the bad night has no step.
    """
    change = changed(BEFORE, 12, bad_night(min(off, 0.9)))
    values = histories(noise, size.series, len(change), 3, change)
    if off > 0.9:
        values[::2, BEFORE] *= (1 + off) / 1.9
    with_it = followed(values, threshold)
    missing = [[*row[:BEFORE], None, *row[BEFORE + 1 :]] for row in values.tolist()]
    without = [followed.changes for followed in follow_all(missing, alarm=threshold)]
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


CUSUM = Method("CUSUM with known level and noise", by_cusum, (-4.0, -2.5), False)
NETPROOF = Method("netproof", by_netproof, (1.5e-3, 4e-3), True)
PELT = Method("ruptures, PELT", by_ruptures, (-13.0, -11.0), False, 0.2)


def otava(python: str) -> Method:
    """Return Apache Otava from an environment of its own, since it needs another numpy.

    It has its default p of 0.001: calibrating takes hours.
    """
    return Method("Apache Otava, p up to 0.001", partial(by_otava, python), (1e-3, 1e-3), True, 0.1)
