"""Changes in series of nights: their constants, the statistic of one night, and the ends of levels.

``controlled`` keeps the share of false ones among many series. The statistic of a night, whether
the newest of many series left their levels, has arrays over series. Values are natural logarithms,
so that differences are relative. Rows hold nights, the newest at the right end, and NaN at the left
where a series has fewer.

The end of a level, by a step or a slope, and bad nights are of one ``series``, its values, a night
each; ``nights``: a selection, in order; ``known``: of a level. The beginning of a change is located
with ruptures, by all nights before and after it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, TypeVar

import numpy as np
import scipy
from numpy.typing import NDArray

from netproof.measurement.interval import MAD_OF_NORMAL

K = TypeVar("K", bound=Hashable)

ALARM = 2e-3
"""P-value of one series on one night from which on a change is listed."""

FALSE_SHARE = 0.05
"""Share of false ones among the series that ``controlled`` lets pass."""

COLD_NIGHTS = 10
"""Nights at its level up to which a series is judged by median and MAD."""

MEMORY = 180
"""Newest nights at a level that level and noise are taken from."""

LEAST_NOISE = 0.0025
"""Least relative noise, so that a series that repeats to the last digit does not alarm at it."""

BAD_NIGHT, ALIKE = 4.0, 3.3
"""Standard deviations off the level from which on a night is set aside, unless the one before or
after it is alike; and by how much two such nights may differ."""

BACK = 7.0
"""Logarithm of the odds at which a series has gone back to its old level."""

NOW_NIGHTS, AGO_NIGHTS = 14, 30
"""Nights now and long ago that are compared for a drift."""

LEAST_DRIFT = 0.02
"""Relative size of the least drift."""


class ChangeKind(StrEnum):
    """Kind of a change in a series."""

    STEP = "step"
    DRIFT = "drift"
    BAD_NIGHT = "bad night"


@dataclass(frozen=True)
class Change:
    """A change in a series.

    ``index``: first night of the new level, or the bad night; ``found``: night on which the p-value
    of this series alone first reached ``ALARM``; ``before``, ``after``: levels, in the unit of the
    series; ``p_value``: chance of such a change, from all nights up
    to its end; ``ended``: first night back, of a bad night the next that differs; ``accepted``: the
    new level was accepted as intended.
    """

    kind: ChangeKind
    index: int
    found: int
    before: float
    after: float
    p_value: float
    ended: int | None = None
    accepted: bool = False

    @property
    def size(self) -> float:
        """Return the relative size of the change."""
        return self.after / self.before - 1

    @property
    def open(self) -> bool:
        """Check whether it still stands and alarms; a bad night never does."""
        return self.kind is not ChangeKind.BAD_NIGHT and self.ended is None and not self.accepted


@dataclass(frozen=True)
class Followed:
    """A series as it was followed night by night.

    ``changes``: by index; ``level``: tonight's, in its unit, None without any value; ``noise``:
    relative standard deviation of a night, None with too few values; ``p_value``: tonight's, 1.0
    without a result.
    """

    changes: tuple[Change, ...]
    level: float | None
    noise: float | None
    p_value: float


def change_between(
    kind: ChangeKind, index: int, found: int, before: float, after: float, p_value: float
) -> Change:
    """Return a change between two levels that are given as logarithms."""
    return Change(kind, index, found, math.exp(before), math.exp(after), float(p_value))


def controlled(p_values: Mapping[K, float]) -> frozenset[K]:
    """Return the series whose p-value of tonight stands out among those of all series.

    By Benjamini and Hochberg (1995): on average at most ``FALSE_SHARE`` of them are false,
    even where series of one night go up and down together.
    """
    # p-values only become larger: without a small one, nothing can stand out.
    if not p_values or min(p_values.values()) > FALSE_SHARE:
        return frozenset()
    adjusted = scipy.stats.false_discovery_control(list(p_values.values()))
    names = list(p_values)
    return frozenset(names[place] for place in np.flatnonzero(adjusted <= FALSE_SHARE))


def expected_false_alarms(series: int, nights: int) -> float:
    """Return the largest expected number of false alarms for unchanged series over nights.

    ``controlled`` lets through on average the sum over ranks of the chance to reach each: for
    independent series at most share / (1 - share)² a night (Finner and Roters 2001).
    """
    return nights * min(FALSE_SHARE / (1 - FALSE_SHARE) ** 2, float(series))


Floats = NDArray[np.float64]

CLIP = 2.5
"""Standard deviations up to which a night counts in the estimate of level and noise."""

KEPT_OF_NORMAL = 0.97756
"""Variance of normal noise of variance 1 after clipping there."""

FAR = np.array([3.0, 10.0, 30.0])
"""Standard deviations from which on nights are in the tail; their shares are learned."""

TAIL_NIGHTS = 40.0
TAIL_BEFORE = 0.6 / FAR / TAIL_NIGHTS
"""Prior of the tail, with the weight of 40 nights: 0.2 of them, 0.06, 0.02."""

WINDOWS = {2: 0.01, 3: 0.45, 4: 0.37, 6: 0.04, 10: 0.02}
"""Numbers of newest nights that are compared with those before, each with its share of p."""

SINCE_SHARE, LONG_AGO_SHARE = 0.09, 0.02
"""Shares of p for all nights since a change, and for a drift."""

REST = {2: 0.75, 3: 0.5, 4: 0.5, 6: 0.6, 10: 0.7}
"""Share of a window's score that must remain without its most extreme night."""

LONGEST = max(WINDOWS)

FEWEST = 4
"""Nights that a level needs before anything is compared with it."""

LEAST_FREEDOM, PRIOR_FREEDOM = 10.0, 20.0
"""Degrees of freedom of the noise: of few nights, and of an earlier level's noise.

No night counts more than its tail allows (simulated, docs/validation/history.md).
"""

GROWN = {12: 1.6, 30: 1.3}
"""The noise of this many newest nights counts alone where it is that many times that of all."""

LEAST_SLOPE = 20
"""Nights over which a series must move to count as a drift."""

Estimates = NDArray[np.void]
"""Estimates of series before a night, by ``ESTIMATE``."""

Estimate = Mapping[str, Any] | np.void
"""One of them."""

ESTIMATE = np.dtype(
    [
        *((name, np.float64) for name in ("level", "noise", "freedom", "count")),
        ("tail", np.float64, len(FAR)),
    ]
)
"""``level``: logarithm; ``noise``: standard deviation of a night; ``freedom``: degrees of freedom
of the noise; ``count``: nights; ``tail``: share of nights beyond 3, 10 and 30 standard deviations.
"""

UNKNOWN = np.array((math.nan, math.nan, 0.0, 0.0, [1.0] * len(FAR)), ESTIMATE)
"""The estimate of a series without nights."""


def estimated(rows: Floats, prior: Floats, bad_nights: Floats) -> Estimates:
    """Return level, noise and tail of each row.

    With fewer than ``COLD_NIGHTS`` nights: median and MAD. With more: the one-step improvement on
    them, mean and standard deviation of values clipped at 2.5 of the MAD's; it wastes fewer nights,
    and a bad one moves it no further. ``prior``: noise known from an earlier level, NaN without
    one; ``bad_nights``: nights beyond 3, 10 and 30 standard deviations that are not in the row,
    since they were set aside.
    """
    counts = np.isfinite(rows).sum(axis=1)
    known = np.full(len(rows), UNKNOWN)
    for count in np.unique(counts[counts > 0]):
        these = np.flatnonzero(counts == count)
        nights = rows[these, rows.shape[1] - count :]
        centre = _medians(nights)
        off = nights - centre[:, np.newaxis]
        spread = np.maximum(MAD_OF_NORMAL * _medians(np.abs(off)), LEAST_NOISE)
        if count < COLD_NIGHTS:
            level, free = centre, (count - 1) / 2
            # A MAD of few nights is often too small.
            noise = spread * (1 + 0.8 / count)
        else:
            clipped = _clipped(off, spread)
            shift = clipped.mean(axis=1)
            level, free = centre + shift, 0.85 * (count - 1)
            square = ((clipped - shift[:, np.newaxis]) ** 2).sum(axis=1) / (count - 1)
            noise = np.sqrt(square / KEPT_OF_NORMAL)
            all_nights = noise
            for recent, grown in GROWN.items():
                if count >= 2 * recent:
                    newest = off[:, -recent:]
                    spread = MAD_OF_NORMAL * _medians(np.abs(newest))
                    clipped = _clipped(newest, np.maximum(spread, LEAST_NOISE))
                    now = np.sqrt((clipped**2).mean(axis=1) / KEPT_OF_NORMAL)
                    noise = np.where(now > grown * all_nights, np.maximum(now, noise), noise)
        given = np.isfinite(prior[these])
        weight = np.where(given, PRIOR_FREEDOM, 0.0)
        if count == 1:
            noise = np.where(given, prior[these], np.nan)
        else:
            squares = weight * np.where(given, prior[these], 0.0) ** 2 + free * noise**2
            noise = np.sqrt(squares / (weight + free))
        noise = np.maximum(noise, LEAST_NOISE)
        distance = np.abs(nights - level[:, np.newaxis]) / noise[:, np.newaxis]
        far = np.stack([(distance > bound).sum(axis=1) for bound in FAR], axis=1)
        far = far + bad_nights[these] + TAIL_NIGHTS * TAIL_BEFORE
        known["level"][these], known["noise"][these], known["count"][these] = level, noise, count
        known["freedom"][these] = weight + max(float(count), LEAST_FREEDOM)
        known["tail"][these] = far / (count + bad_nights[these, :1] + TAIL_NIGHTS)
    return known


def _medians(rows: Floats) -> Floats:
    """Return medians of rows without NaN, twice as fast as ``np.median`` on few short rows."""
    half, odd = divmod(rows.shape[1], 2)
    if odd:
        return np.partition(rows, half, axis=1)[:, half]
    parted = np.partition(rows, (half - 1, half), axis=1)
    return np.asarray((parted[:, half - 1] + parted[:, half]) / 2)


def _clipped(off: Floats, spread: Floats) -> Floats:
    bound = CLIP * spread[:, np.newaxis]
    return np.clip(off, -bound, bound)


def score(off: Floats, tail: Floats) -> Floats:
    """Return the score of nights that are ``off`` their level by that many standard deviations.

    It is the normal deviate as improbable as such a night in normal noise. The share of nights
    beyond 3, 10 and 30 standard deviations, ``tail`` in its last axis, limits it. A series that
    often has bad nights therefore needs more of them.
    """
    distance = np.abs(off)
    beyond = np.broadcast_to(tail[..., 0], distance.shape)
    for place, bound in enumerate(FAR[1:], 1):
        beyond = np.where(distance > bound, tail[..., place], beyond)
    beyond = beyond * np.minimum(1.0, FAR[-1] / np.maximum(distance, 1.0))
    return np.asarray(np.sign(off) * np.minimum(distance, -scipy.special.ndtri(beyond / 2)))


def two_sided(total: Floats, freedom: Floats) -> Floats:
    """Return the p-value of a sum in standard deviations, estimated with this freedom."""
    return np.asarray(2 * scipy.special.stdtr(np.maximum(freedom, 1.0), -np.abs(total)))


def scan(newest: Floats, before: Estimates) -> tuple[Floats, NDArray[np.int64]]:
    """Return the p-value of each series' newest nights, and how many nights made it.

    ``newest``: the newest nights, series x nights; ``before``: the estimate before each of them.
    Several windows are tried, each with a share of p (Bonferroni). A window's score is the sum of
    its nights' scores over its standard deviation, including the level's; but it is limited by its
    nights without the most extreme one.
    """
    best = np.ones(len(newest))
    window = np.zeros(len(newest), np.int64)
    for nights, share in WINDOWS.items():
        known = before[:, -nights]
        with np.errstate(invalid="ignore", divide="ignore"):
            level, noise = (known[name][:, np.newaxis] for name in ("level", "noise"))
            off = (newest[:, -nights:] - level) / noise
            scores = score(off, known["tail"][:, np.newaxis, :])
            total = scores.sum(axis=1)
            extreme = np.max(scores * np.sign(total)[:, np.newaxis], axis=1)
            rest = (np.abs(total) - extreme) / np.sqrt(nights - 1)
            deviate = np.minimum(np.abs(total) / np.sqrt(nights), rest / REST[nights])
            deviate = np.maximum(deviate, 0.0) / np.sqrt(1 + nights / known["count"])
            p_value = np.minimum(two_sided(deviate, known["freedom"]) / share, 1.0)
        p_value = np.where((known["count"] >= FEWEST) & np.isfinite(p_value), p_value, 1.0)
        window = np.where(p_value < best, nights, window)
        best = np.minimum(best, p_value)
    return best, window


@dataclass
class OpenStep:
    """A step that a series is in, and the level to return to where it ends.

    ``nights`` made the level before, ``known`` is its estimate, ``prior`` the noise known before
    it; ``since`` and ``long_ago`` are the series' own of that time.
    """

    found: int
    nights: list[int]
    known: Estimate
    prior: float
    since: int
    long_ago: Floats


def first_night(series: Floats, nights: Sequence[int], known: Estimate) -> int:
    """Return the first night of the new level, among nights around it."""
    return nights[_split(_off_clipped(series, nights, known))]


def slope_begin(series: Floats, nights: Sequence[int], known: Estimate) -> int | None:
    """Return the place from which on a slope fits better than a step.

    None where a step fits as well, or a slope would have too few nights.
    """
    bends = len(nights) - LEAST_SLOPE
    if bends < FEWEST:
        return None
    off = _off_clipped(series, nights, known)
    place = _split(off)
    by_step = place * off[:place].var() + (len(off) - place) * off[place:].var()
    # The squares left by a level up to a night and a slope from there, by that night.
    at = np.array(nights, float)
    slopes = np.maximum(at - at[:bends, np.newaxis], 0.0)
    slopes -= slopes.mean(axis=1, keepdims=True)
    off = off - off.mean()
    by_slope = off @ off - (slopes @ off) ** 2 / (slopes**2).sum(axis=1)
    return None if by_slope.min() >= by_step else int(np.argmin(by_slope))


def step_of(series: Floats, opened: OpenStep, nights: Sequence[int]) -> Change:
    """Return a step by these nights at its level."""
    known = opened.known
    begin = first_night(series, [*opened.nights[-LONGEST:], *nights[:LONGEST]], known)
    total = score(_off(series, nights, known), known["tail"]).sum() / math.sqrt(len(nights))
    total /= math.sqrt(1 + len(nights) / known["count"])
    p_value = min(float(two_sided(total, known["freedom"])) / SINCE_SHARE, 1.0)
    after = float(np.median(series[nights]))
    first = min(begin, opened.found)
    return change_between(ChangeKind.STEP, first, opened.found, known["level"], after, p_value)


def bad_night(
    series: Floats, night: int, known: Estimate, off: float, ended: int | None = None
) -> Change:
    """Return the change of one night that is so many standard deviations off its level."""
    p_value = float(two_sided(score(np.array(off), known["tail"]), known["freedom"]))
    change = change_between(
        ChangeKind.BAD_NIGHT, night, night, known["level"], series[night], p_value
    )
    return replace(change, ended=ended)


def ended_step(series: Floats, opened: OpenStep, gone: Sequence[int], begin: int) -> Change:
    """Return a step over the nights ``gone``, which ended with the night ``begin``.

    One of few nights that a single one had caused was a bad night.
    """
    off = _off(series, gone, opened.known)
    far = np.flatnonzero(np.abs(off) > BAD_NIGHT).tolist()
    if len(far) == 1 and len(gone) <= LONGEST:
        night = gone[far[0]]
        return bad_night(series, night, opened.known, off[far[0]], min(night + 1, begin))
    return replace(step_of(series, opened, gone), ended=begin)


def lone_bad_nights(series: Floats, known: Estimate, nights: Sequence[int]) -> list[Change]:
    """Return bad nights: those far off a level that the series is back at, each alone.

    When they came, too little was known of the step's own level.
    """
    off = _off(series, nights, known)
    far = np.abs(off) > BAD_NIGHT
    alone = far & ~np.append(far[1:], False) & ~np.insert(far[:-1], 0, False)
    later: list[int | None] = [*nights[1:], None]
    return [
        bad_night(series, nights[place], known, off[place], later[place])
        for place in np.flatnonzero(alone).tolist()
    ]


def _off(series: Floats, nights: Sequence[int], known: Estimate) -> Floats:
    return np.asarray((series[nights] - known["level"]) / known["noise"])


def _off_clipped(series: Floats, nights: Sequence[int], known: Estimate) -> Floats:
    """Return how far nights are off a level, in its noise, limited so that none dominates."""
    return np.clip(_off(series, nights, known), -BAD_NIGHT, BAD_NIGHT)


def _split(values: Floats) -> int:
    # Without a change there is nothing to locate, and the import takes a third of a second.
    from ruptures import KernelCPD

    search = KernelCPD(kernel="linear", min_size=2)
    return int(search.fit(values).predict(n_bkps=1)[0])
