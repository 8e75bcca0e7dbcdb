"""Histories with known answers, methods that find changes in them, and how well they do.

A history has noise, normal or recorded, and a change that begins on a known night. Every method is
calibrated on histories without a change to one false alarm in 1,000 series-nights.
"""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import ruptures
from numpy.typing import NDArray

from netproof.history.changes import Change, ChangeKind
from netproof.history.followers import follow_all
from netproof.history.series import pooled
from netproof.measurement.interval import MAD_OF_NORMAL

Floats = NDArray[np.float64]
RECORDED = Path(__file__).resolve().parents[2] / "tests/data/history/noise.json"
NOISE = 0.02
"""Relative noise of a night."""
BEFORE = 180
"""Nights before a change by default."""
AFTER = 30
"""Nights within which a change has to be found."""
SHARED = 0.5
"""Share of the variance that the series of a pool share, if any."""
SEED = 20061


@dataclass(frozen=True)
class Size:
    """Size of the simulation: series without a change and their nights, series with one."""

    null_series: int
    null_nights: int
    series: int


FULL = Size(400, 300, 1000)
SMOKE = Size(100, 100, 200)


@dataclass(frozen=True)
class Noise:
    """Source of the noise: its name, series per pool, and whether nights are shared."""

    name: str
    pool: int = 1
    shared: bool = False

    def drawn(self, series: int, nights: int, seed: int) -> Floats:
        """Draw deviations of logarithms: series x pool x nights."""
        random = np.random.default_rng([SEED, seed, self.pool, self.shared])
        shape = (series, self.pool, nights)
        if self.name == "normal":
            own = random.normal(size=shape)
            if self.shared:
                common = random.normal(size=(series, 1, nights))
                own = math.sqrt(SHARED) * common + math.sqrt(1 - SHARED) * own
            return NOISE * own
        rows = recorded()
        which = np.stack([random.permutation(len(rows))[: self.pool] for _ in range(series)])
        # Nights are drawn independently: recorded sessions were minutes apart, so their order
        # says nothing on nights. The series of a pool share them.
        sessions = random.integers(
            rows.shape[1], size=(series, 1 if self.shared else self.pool, nights)
        )
        return NOISE * rows[which[:, :, np.newaxis], sessions]


@cache
def recorded() -> Floats:
    """Return recorded deviations, series x sessions, in standard deviations of each series."""
    document = json.loads(RECORDED.read_text())
    off = np.array(list(document["deviations"].values()))
    spread = MAD_OF_NORMAL * np.median(np.abs(off), axis=1)
    return off / spread[:, np.newaxis]


def histories(noise: Noise, series: int, nights: int, seed: int, change: Floats | None) -> Floats:
    """Return values, series x nights, with the relative ``change`` in all series of a pool.

    In every other series it goes down.
    """
    logs = noise.drawn(series, nights, seed)
    if change is not None:
        side = np.where(np.arange(series) % 2, -1.0, 1.0)[:, np.newaxis, np.newaxis]
        logs = logs + np.log1p(side * change)
    values = np.exp(logs)
    if noise.pool == 1:
        return values[:, 0]
    return np.array([pooled(several.tolist()) for several in values])


def changed(before: int, after: int, shape: Callable[[Floats], Floats]) -> Floats:
    """Return a relative change: 0 for ``before`` nights, then ``shape``."""
    return np.concatenate([np.zeros(before), shape(np.arange(float(after)))])


def step(size: float) -> Callable[[Floats], Floats]:
    """Return the shape of a step by a relative size."""
    return lambda nights: np.full(len(nights), size)


def drift(size: float, over: int) -> Callable[[Floats], Floats]:
    """Return the shape of a drift to a relative size within ``over`` nights, which then stays."""
    return lambda nights: size * np.minimum((nights + 1) / over, 1.0)


def bad_night(size: float) -> Callable[[Floats], Floats]:
    """Return the shape of one bad night."""
    return lambda nights: np.where(nights == 0, size, 0.0)


NORMAL, REAL = Noise("normal"), Noise("recorded")


Alarms = Callable[[Floats, float], list[list[tuple[int, int]]]]
"""From histories and a threshold to each one's alarms: night, and 1 for up or -1 for down."""


def by_netproof(values: Floats, threshold: float) -> list[list[tuple[int, int]]]:
    """Return alarms of ``follow_all``; the threshold is the p-value of the alarm."""
    return [
        [
            (change.found, _side(change))
            for change in changes
            if change.kind is not ChangeKind.BAD_NIGHT
        ]
        for changes in followed(values, threshold)
    ]


def followed(values: Floats, threshold: float) -> list[tuple[Change, ...]]:
    """Return the changes that netproof finds in each series."""
    return [followed.changes for followed in follow_all(values.tolist(), alarm=threshold)]


def _side(change: Change) -> int:
    return 1 if change.size > 0 else -1


def by_cusum(values: Floats, threshold: float) -> list[list[tuple[int, int]]]:
    """Run Page's two-sided CUSUM tuned to a step of 5 %, given the true level and noise.

    It restarts after an alarm; the threshold is its negative, so that less is stricter.
    """
    off = np.log(values) / NOISE
    slack = 0.05 / NOISE / 2
    sums = np.zeros((2, len(values)))
    alarms: list[list[tuple[int, int]]] = [[] for _ in values]
    for night in range(values.shape[1]):
        for place, side in enumerate((1, -1)):
            sums[place] = np.maximum(sums[place] + side * off[:, night] - slack, 0.0)
        for number in np.flatnonzero(sums.max(axis=0) > -threshold):
            alarms[number].append((night, 1 if sums[0, number] > sums[1, number] else -1))
            sums[:, number] = 0.0
    return alarms


NEW = 7
"""Nights within which a change has to begin to count as tonight's."""
SEEN = 90
"""Nights shown to a library."""


def by_ruptures(values: Floats, threshold: float) -> list[list[tuple[int, int]]]:
    """Run PELT on the newest nights, every night; the threshold is the negative penalty."""
    search = ruptures.KernelCPD(kernel="linear", min_size=2, jump=1)
    found = []
    for row in np.log(values) / NOISE:
        alarms: list[tuple[int, int]] = []
        for night in range(SEEN, len(row)):
            seen = row[night + 1 - SEEN : night + 1]
            places = search.fit(seen).predict(pen=-threshold)[:-1]
            if places and places[-1] > SEEN - NEW and (not alarms or night - alarms[-1][0] >= NEW):
                rises = seen[places[-1] :].mean() > seen[: places[-1]].mean()
                alarms.append((night, 1 if rises else -1))
        found.append(alarms)
    return found


OTAVA = """
asked = json.load(sys.stdin)
new, seen, found = asked["new"], asked["seen"], []
for row in asked["rows"]:
    alarms = []
    for night in range(seen, len(row)):
        points, _ = compute_change_points(
            row[night + 1 - seen : night + 1], window_len=30, max_pvalue=asked["p"]
        )
        begun = [point for point in points if point.index > seen - new]
        if begun and (not alarms or night - alarms[-1][0] >= new):
            stats = begun[-1].stats
            alarms.append((night, 1 if stats.mean_2 > stats.mean_1 else -1))
    found.append(alarms)
print(json.dumps(found))
"""


def by_otava(python: str, values: Floats, threshold: float) -> list[list[tuple[int, int]]]:
    """Run Apache Otava on the newest nights, every night; the threshold is its p-value."""
    asked = {"rows": values.tolist(), "p": threshold, "new": NEW, "seen": SEEN}
    run = subprocess.run(
        [python, "-c", OTAVA], input=json.dumps(asked), capture_output=True, text=True, check=True
    )
    return [[(night, side) for night, side in alarms] for alarms in json.loads(run.stdout)]


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
