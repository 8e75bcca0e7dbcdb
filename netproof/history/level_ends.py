"""The end of a level in one series, by a step or a slope, and its bad nights.

``series``: its values, natural logarithms, a night each; ``nights``: a selection, in order;
``scale``: a level and its noise. The beginning of a change is located with ruptures, by all nights
before and after it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from netproof.history import night as statistic
from netproof.history.changes import BAD_NIGHT, Change, ChangeKind, change_between
from netproof.history.night import Estimate, Floats

LEAST_SLOPE = 20
"""Nights over which a series must move to count as a drift."""


@dataclass
class OpenStep:
    """A step that a series is in, and the level to return to where it ends.

    ``nights`` made the level before, ``known`` is its estimate, an array of one, ``prior`` the
    noise known before it; ``since`` and ``long_ago`` are the series' own of that time.
    """

    found: int
    nights: list[int]
    known: Estimate
    prior: float
    since: int
    long_ago: Floats


def first_night(series: Floats, nights: Sequence[int], scale: Sequence[float]) -> int:
    """Return the first night of the new level, among nights around it."""
    return nights[_split(_clipped(series, nights, scale))]


def slope_begin(series: Floats, nights: Sequence[int], scale: Sequence[float]) -> int | None:
    """Return the place from which on a slope fits better than a step.

    None where a step fits as well, or a slope would have too few nights.
    """
    bends = len(nights) - LEAST_SLOPE
    if bends < statistic.FEWEST:
        return None
    off = _clipped(series, nights, scale)
    place = _split(off)
    by_step = place * off[:place].var() + (len(off) - place) * off[place:].var()
    by_slope = _bent(np.array(nights, float), off, bends)
    return None if by_slope.min() >= by_step else int(np.argmin(by_slope))


def step_of(series: Floats, opened: OpenStep, nights: Sequence[int]) -> Change:
    """Return a step by these nights at its level."""
    known = opened.known
    around = [*opened.nights[-statistic.LONGEST :], *nights[: statistic.LONGEST]]
    begin = first_night(series, around, (known.level[0], known.noise[0]))
    off = (series[nights] - known.level[0]) / known.noise[0]
    total = statistic.score(off, known.tail).sum() / math.sqrt(len(nights))
    total /= math.sqrt(1 + len(nights) / known.count[0])
    p_value = statistic.two_sided(total, known.freedom)[0] / statistic.SINCE_SHARE
    after = float(np.median(series[nights]))
    return change_between(
        ChangeKind.STEP,
        min(begin, opened.found),
        opened.found,
        known.level[0],
        after,
        min(p_value, 1.0),
    )


def ended_step(series: Floats, opened: OpenStep, gone: Sequence[int], begin: int) -> Change:
    """Return a step over the nights ``gone``, which ended with the night ``begin``.

    One of few nights that a single one had caused was a bad night.
    """
    known = opened.known
    off = (series[gone] - known.level[0]) / known.noise[0]
    far = np.flatnonzero(np.abs(off) > BAD_NIGHT)
    if len(far) == 1 and len(gone) <= statistic.LONGEST:
        night = gone[far[0]]
        total = statistic.score(off[far], known.tail)
        p_value = statistic.two_sided(total, known.freedom)[0]
        change = change_between(
            ChangeKind.BAD_NIGHT, night, night, known.level[0], series[night], p_value
        )
        return replace(change, ended=min(night + 1, begin))
    return replace(step_of(series, opened, gone), ended=begin)


def lone_bad_nights(series: Floats, known: Estimate, nights: Sequence[int]) -> list[Change]:
    """Return bad nights: those far off a level that the series is back at, each alone.

    When they came, too little was known of the step's own level.
    """
    off = (series[nights] - known.level[0]) / known.noise[0]
    far = np.abs(off) > BAD_NIGHT
    alone = far & ~np.append(far[1:], False) & ~np.insert(far[:-1], 0, False)
    total = statistic.score(off[alone], known.tail)
    p_values = statistic.two_sided(total, known.freedom)
    found = []
    for place, p_value in zip(np.flatnonzero(alone), p_values, strict=True):
        night = nights[place]
        change = change_between(
            ChangeKind.BAD_NIGHT, night, night, known.level[0], series[night], p_value
        )
        later = nights[place + 1] if place + 1 < len(nights) else None
        found.append(replace(change, ended=later))
    return found


def _clipped(series: Floats, nights: Sequence[int], scale: Sequence[float]) -> Floats:
    """Return how far nights are off a level, in its noise, limited so that none dominates."""
    level, noise = scale
    return np.clip((series[nights] - level) / noise, -BAD_NIGHT, BAD_NIGHT)


def _split(values: Floats) -> int:
    """Return the place of the first value of the second of two levels, by least squares."""
    # Without a change there is nothing to locate, and the import takes a third of a second.
    from ruptures import KernelCPD

    search = KernelCPD(kernel="linear", min_size=2)
    return int(search.fit(values).predict(n_bkps=1)[0])


def _bent(nights: Floats, values: Floats, bends: int) -> Floats:
    """Return the squares left by a level up to a night and a slope from there, by that night."""
    slopes = np.maximum(nights - nights[:bends, np.newaxis], 0.0)
    slopes -= slopes.mean(axis=1, keepdims=True)
    off = values - values.mean()
    return off @ off - (slopes @ off) ** 2 / (slopes**2).sum(axis=1)
