"""Measure how well changes in nightly series are found, on histories with known answers.

A history has noise, normal or recorded, and a change that begins on a known night. The alarm's
threshold is first brought to one false alarm in 1,000 series-nights. docs/validation/history.md has
the results.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import operator
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ci.evaluation.plants import TABLES
from ci.evaluation.table import show
from netproof.history.changes import ChangeKind, controlled, expected_false_alarms
from netproof.history.followers import follow_all
from netproof.history.series import pooled
from netproof.measurement.interval import MAD_OF_NORMAL

Floats = NDArray[np.float64]
RECORDED = Path(__file__).resolve().parents[2] / "tests/data/history/noise.json"
NOISE = 0.02
"""Relative noise of a night."""
BEFORE, AFTER = 180, 30
"""Nights before a change by default, and nights within which it has to be found."""
SHARED = 0.5
"""Share of the variance that the series of a pool share, if any."""
SEED = 20061
TARGET = 1e-3
"""False alarms per series and night to which the threshold is brought."""
NEAR = (1.5e-3, 4e-3)
"""Thresholds near the right one."""
ROUNDS, STRIDE = 2, 3.0
"""Steps of a calibration, and the longest step of the threshold's logarithm."""
NIGHTS_A_YEAR = 365


@dataclass(frozen=True)
class Size:
    """Size of the simulation: series without a change and their nights, series with one."""

    null_series: int
    null_nights: int
    series: int


FULL, SMOKE = Size(400, 300, 1000), Size(100, 100, 200)


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


NORMAL, REAL = Noise("normal"), Noise("recorded")


@cache
def recorded() -> Floats:
    """Return recorded deviations, series x sessions, in standard deviations of each series."""
    off = np.array(list(json.loads(RECORDED.read_text())["deviations"].values()))
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


def changed(before: int, after: int, size: float, over: int = 1) -> Floats:
    """Return a relative change: none at first, then a drift ``over`` some nights that stays."""
    return np.concatenate(
        [np.zeros(before), size * np.minimum(np.arange(1, after + 1) / over, 1.0)]
    )


def alarms(values: Floats, threshold: float) -> list[list[tuple[int, bool]]]:
    """Return each series' alarms of a new level: the night, and whether it rose.

    ``threshold``: p-value of an alarm.
    """
    return [
        [
            (one.found, one.size > 0)
            for one in series.changes
            if one.kind is not ChangeKind.BAD_NIGHT
        ]
        for series in follow_all(values.tolist(), alarm=threshold)
    ]


def a_year(count: int, nights: int) -> str:
    """Return alarms per series and year with their 95 % interval (Poisson's root)."""
    factor = NIGHTS_A_YEAR / nights
    low, high = (max(math.sqrt(count) + side * 0.98, 0.0) ** 2 for side in (-1, 1))
    return f"{count * factor:.2f} ({low * factor:.2f} to {high * factor:.2f})"


def false_alarms(
    noise: Noise, size: Size, threshold: float, before: int, seed: int
) -> tuple[int, int]:
    """Return alarms without a change after ``before`` nights, and their series-nights."""
    values = histories(noise, size.null_series, before + size.null_nights, seed, None)
    found = sum(night >= before for row in alarms(values, threshold) for night, _ in row)
    return found, size.null_series * size.null_nights


def calibrated(noise: Noise, size: Size) -> float:
    """Find the threshold with the rate ``TARGET`` of false alarms, by the secant method."""

    def point(logarithm: float) -> tuple[float, float]:
        count, nights = false_alarms(noise, size, math.exp(logarithm), BEFORE, seed=1)
        return logarithm, math.log(max(count, 0.5) / nights / TARGET)

    points = [point(math.log(threshold)) for threshold in NEAR]
    for _ in range(ROUNDS):
        points.sort(key=lambda one: abs(one[1]))
        (x, y), (other_x, other_y) = points[:2]
        if x == other_x or y == other_y:
            break
        new = x - y * (x - other_x) / (y - other_y)
        points.append(point(min(max(new, x - STRIDE), x + STRIDE)))
    return math.exp(min(points, key=lambda one: abs(one[1]))[0])


def found(threshold: float, noise: Noise, size: Size, change: Floats) -> list[float]:
    """Try many series with a change, half upwards and half downwards.

    Return the nights until each was found, the alarm's included, in order; infinite if never.
    """
    begin = int(np.flatnonzero(change)[0])
    values = histories(noise, max(size.series, 2), len(change), 2, change)
    nights = []
    for number, row in enumerate(alarms(values, threshold)):
        right = [night for night, up in row if night >= begin and up is (number % 2 == 0)]
        nights.append(min(right) - begin + 1 if right else math.inf)
    return sorted(nights)


def within(nights: list[float], most: int) -> float:
    """Return the share of series in which a change was found within so many nights."""
    return sum(one <= most for one in nights) / len(nights)


Cells = Callable[[float], tuple[str, ...]]
"""From the threshold of a row's noise to the row's cells."""
Row = tuple[str, tuple[str, ...], Noise, Cells]
"""The table, the first cells, the noise, and what computes the others."""
WITHIN = (3, 4, 7)
HEADS: dict[str, list[str]] = TABLES["evaluations"]["histories"]
"""Heads of the tables."""


def _by_change(noise: Noise, size: Size, change: Floats, threshold: float) -> tuple[str, ...]:
    nights = found(threshold, noise, size, change)
    middle = nights[len(nights) // 2]
    median = "not found" if math.isinf(middle) else str(middle)
    return (*(f"{within(nights, most):.1%}" for most in WITHIN), median)


def _with_alarms(
    noise: Noise, size: Size, before: int, off: float, seed: int, threshold: float
) -> tuple[str, ...]:
    """Return false alarms per year, and how a step is found after ``before`` nights."""
    rate = a_year(*false_alarms(noise, size, threshold, before, seed))
    return rate, *_by_change(noise, size, changed(before, AFTER, off), threshold)


def _by_bad_night(noise: Noise, size: Size, off: float, threshold: float) -> tuple[str, ...]:
    """Count single bad nights, upwards and downwards, reported as such and as a step.

    A step counts if the same history without the bad night has no step.
    """
    change = changed(BEFORE, 12, min(off, 0.9))
    change[BEFORE + 1 :] = 0
    values = histories(noise, size.series, len(change), 3, change)
    if off > 0.9:
        values[::2, BEFORE] *= (1 + off) / 1.9
    missing = [[*row[:BEFORE], None, *row[BEFORE + 1 :]] for row in values.tolist()]
    bad = ChangeKind.BAD_NIGHT
    series, others = (
        [of.changes for of in follow_all(rows, alarm=threshold)]
        for rows in (values.tolist(), missing)
    )
    as_such = sum(any(one.kind is bad and one.index == BEFORE for one in of) for of in series)
    step, still = (
        [any(one.kind is not bad and one.found >= BEFORE for one in of) for of in several]
        for several in (series, others)
    )
    as_step = sum(a and not b for a, b in zip(step, still, strict=True))
    return tuple(f"{count} of {size.series}" for count in (as_such, as_step))


def _noisier(size: Size, threshold: float) -> tuple[str, ...]:
    """Return false alarms in the 60 nights after the noise doubled."""
    values = histories(NORMAL, size.series, BEFORE + 60, 6, None)
    values[:, BEFORE:] **= 2
    nights = [night - BEFORE for row in alarms(values, threshold) for night, _ in row]
    return tuple(
        a_year(sum(low <= night < low + 30 for night in nights), 30 * size.series)
        for low in (0, 30)
    )


def _over_all(noise: Noise, size: Size, _: float) -> tuple[str, ...]:
    """Return false alarms that ``controlled`` lets through on many unchanged series."""
    nights, series = 30, size.null_series
    values = histories(noise, series, 90 + nights, 7, None).tolist()
    let_through: list[frozenset[int]] = [frozenset()]
    p_values = []
    for night in range(90, 90 + nights):
        tonight = [one.p_value for one in follow_all([row[: night + 1] for row in values])]
        p_values += tonight
        let_through.append(controlled(dict(enumerate(tonight))))
    new = sum(len(after - before) for before, after in pairwise(let_through))
    shares = (f"{np.mean(np.array(p_values) <= p):.1e}" for p in (1e-2, 1e-3, 1e-4))
    return str(new), f"{expected_false_alarms(series, nights):.1f}", *shares


def rows(size: Size) -> list[Row]:
    """Return all rows of all tables."""
    made: list[Row] = []
    for noise, before in (*((NORMAL, nights) for nights in (BEFORE, 90, 40, 20)), (REAL, BEFORE)):
        cells: Cells = partial(_with_alarms, noise, size, before, 0.05, 4)
        made.append(("nights", (noise.name, str(before)), noise, cells))
    for name, shared, words in (
        ("normal", False, "normal, each its own"),
        ("normal", True, "normal, half of it shared"),
        ("recorded", True, "recorded, of the same nights"),
    ):
        for pool in (2, 4, 8):
            noise = Noise(name, pool, shared)
            cells = partial(_with_alarms, noise, size, BEFORE, 0.05, 4)
            # Pooled normal noise stays normal, with the same threshold.
            made.append(("pools", (str(pool), words), NORMAL if name == "normal" else noise, cells))
    changes = [(f"step of {off:.1%}", (AFTER, off)) for off in (0.02, 0.05, 0.10, 0.20)]
    changes += [(f"drift of {off:.1%} over 60 nights", (120, off, 60)) for off in (0.05, 0.10)]
    for noise in (NORMAL, REAL):
        for name, shape in changes:
            cells = partial(_by_change, noise, size, changed(BEFORE, *shape))
            made.append(("changes", (name, noise.name), noise, cells))
        for off in (0.10, 0.20, 0.50, 1.00):
            cells = partial(_by_bad_night, noise, size, off)
            made.append(("bad nights", (f"{off:.1%}", noise.name), noise, cells))
        cells = partial(_over_all, noise, size)
        made.append(("control", (noise.name, str(size.null_series)), NORMAL, cells))
    for before in (5, 9):
        few = replace(size, null_nights=10 - before, null_series=20 * size.null_series)
        for off in (0.10, 0.20, 0.50):
            cells = partial(_with_alarms, NORMAL, few, before, off, 5)
            made.append(("cold", (f"step of {off:.1%}", str(before)), NORMAL, cells))
    return [*made, ("noisier", ("from 2 % to 4 %",), NORMAL, partial(_noisier, size))]


def run(options: argparse.Namespace) -> bool:
    """Print the tables."""
    size = SMOKE if options.smoke else FULL
    made = rows(size)
    noises = list(dict.fromkeys(noise for _, _, noise, _ in made))
    with multiprocessing.Pool(os.cpu_count()) as processes:
        calibrating = processes.map(partial(calibrated, size=size), noises, chunksize=1)
        thresholds = dict(zip(noises, calibrating, strict=True))
        for noise, threshold in thresholds.items():
            print(f"{noise}: threshold {threshold:.3g}", file=sys.stderr)
        tasks = [(cells, thresholds[noise]) for _, _, noise, cells in made]
        done = processes.starmap(operator.call, tasks, chunksize=1)
    for name, head in HEADS.items():
        pairs = zip(made, done, strict=True)
        show(head, [(*one[1], *cells) for one, cells in pairs if one[0] == name])
    return True
