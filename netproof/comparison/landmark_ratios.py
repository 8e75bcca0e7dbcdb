"""Ratios and differences of two cases' landmarks, with their intervals.

Intervals are the score's bootstrap over launches: launches of both sides are resampled with
replacement, and the landmark is that of their median curve. r∞ and the share of the line rate are
known per launch: theirs is the interval of the ratio of medians (``interval.of_ratio``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from netproof.criteria import ScoreSettings, percentile_interval, resampled_medians
from netproof.errors import NetproofError
from netproof.measurement import twin
from netproof.measurement.interval import Interval, of_ratio
from netproof.measurement.landmark_table import LANDMARKS, RATES, Better
from netproof.measurement.landmarks import ASYMPTOTIC, landmarks
from netproof.measurement.readings import LandmarkSettings
from netproof.session.measured import Measured

_OWN = [one for one in LANDMARKS.values() if one.name not in twin.NAMES]
COMPARED = sorted(_OWN, key=lambda one: one.better is Better.NEITHER)
"""Landmarks of one case; those with a better end, and so with a ratio, come first."""


@dataclass(frozen=True)
class LandmarkRatio:
    """A landmark of both sides; with ``ratio`` above 1 the second side's is better.

    ``difference``: second minus first, in the landmark's unit. Values are None where a side has no
    such landmark, or it has no better end; intervals also where a side has one launch.
    """

    first: float | None
    second: float | None
    ratio: float | None = None
    interval: Interval | None = None
    difference: float | None = None
    difference_interval: Interval | None = None


def landmark_ratios(
    first: Measured,
    second: Measured,
    peaks_from: tuple[int, int],
    settings: ScoreSettings,
) -> dict[str, LandmarkRatio]:
    """Return every landmark of two cases by name, with ratio and difference where comparable.

    ``peaks_from``: the least size in bytes that can be the peak, for each side. Times in µs, rates
    in MB/s, sizes in bytes. Raise NetproofError where launches of a case differ in their sizes.
    """
    resampled: tuple[Mapping[str, np.ndarray], ...] = ({}, {})
    if min(len(first.launches), len(second.launches)) > 1:
        random = np.random.default_rng(settings.random_seed)
        resampled = tuple(
            _resampled(one, peak_from, settings, random)
            for one, peak_from in zip((first, second), peaks_from, strict=True)
        )
    found = {}
    for landmark in COMPARED:
        name, smaller = landmark.name, landmark.better is Better.SMALLER
        one, other = getattr(first.landmarks, name), getattr(second.landmarks, name)
        if landmark.better is Better.NEITHER or not (one and other):
            found[name] = LandmarkRatio(one, other)
            continue
        interval = difference_interval = None
        if name in ASYMPTOTIC:
            interval = _of_asymptotic(first, second, name)
        elif name in resampled[0] and name in resampled[1]:
            ones, others = resampled[0][name], resampled[1][name]
            interval = percentile_interval(ones / others if smaller else others / ones, settings)
            difference_interval = percentile_interval(others - ones, settings)
        ratio = one / other if smaller else other / one
        found[name] = LandmarkRatio(one, other, ratio, interval, other - one, difference_interval)
    return found


def _of_asymptotic(first: Measured, second: Measured, name: str) -> Interval | None:
    """Return the interval of the ratio of two r∞, or of two shares of the line rate, over launches.

    None where a launch has no line, for a single launch, and where the ratio has no upper end.
    """
    sides = []
    for measured in (first, second):
        own = [
            landmarks(launch.curve, measured.line_rate_mb_s).asymptotic_mb_s
            for launch in measured.launches
        ]
        if any(value is None for value in own):
            return None
        per = measured.line_rate_mb_s if name == "line_rate_share" else 1.0
        sides.append([value / per for value in own])
    found = of_ratio(sides[1], sides[0])
    return found if found and found[1] < math.inf else None


def _resampled(
    measured: Measured, peak_from: int, settings: ScoreSettings, random: np.random.Generator
) -> dict[str, np.ndarray]:
    """Return the case's landmarks above 0 in bootstrap samples of its launches."""
    curve, launches = measured.curve, measured.launches
    for launch in launches:
        if launch.curve.sizes != curve.sizes:
            raise NetproofError(
                f"{measured.case}: launch {launch.number} has other sizes than its median curve;"
                " the report was changed"
            )
    short = [
        number
        for number, (size, time) in enumerate(zip(curve.sizes, curve.time_us, strict=True))
        if (1 <= size < LandmarkSettings.latency_below or curve.sizes == (0,)) and time > 0
    ]
    times = np.array([launch.curve.time_us for launch in launches])[:, short]
    rates = np.array([launch.curve.bandwidth_mb_s or () for launch in launches])
    medians = resampled_medians(np.hstack([times, rates]), settings, random)
    found = {}
    if short:
        found["latency_us"] = np.median(medians[:, : len(short)], axis=1)
    if curve.bandwidth_mb_s is not None:
        at = {size: medians[:, len(short) + number] for number, size in enumerate(curve.sizes)}
        found |= {name: at[size] for name, size in RATES.items() if size in at}
        candidates = [values for size, values in at.items() if size >= peak_from]
        if candidates:
            found["peak_mb_s"] = np.max(candidates, axis=0)
    return {name: values for name, values in found.items() if values.min() > 0}
