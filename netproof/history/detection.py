"""Finds changes in series of nights: steps, drifts and single bad nights.

A series has one value for each night, a case's latency for instance. It is followed from its first
night to its last, so that what was known on a night is what was said on it: ``night`` has the
statistic of one night, and here is what becomes of it. Where exactly a change began is then found
with ruptures, which has all nights before and after it. Everything works on plain numbers and
knows nothing of stores, cases or dates. docs/history.md says how well it does.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeVar

import numpy as np
import ruptures
from numpy.typing import NDArray

from netproof.errors import NetproofError
from netproof.history import night as statistic
from netproof.history.night import Estimate, Floats

K = TypeVar("K", bound=Hashable)

Numbers = NDArray[np.int64]

LEAST_SLOPE = 20
"""Nights over which a series has to move for it to be called a drift."""


class ChangeKind(StrEnum):
    """What happened to a series."""

    STEP = "step"
    DRIFT = "drift"
    BAD_NIGHT = "bad night"


@dataclass(frozen=True)
class Change:
    """A change in a series.

    ``index``: first night of the new level; a bad night: that night. ``found``: night on which
    the p-value of this series alone first reached ``DetectionSettings.alarm``. ``before``,
    ``after``: levels, in the unit of the series. ``size``: relative, after / before - 1.
    ``p_value``: how often chance alone does as much, by all nights that there are now; of what has
    ended or was accepted, by those up to then. ``ended``: the night from which on the series is
    back, None while it is not; a bad night is over with the next one that is not alike.
    ``accepted``: the new level was accepted as intended.
    """

    kind: ChangeKind
    index: int
    found: int
    before: float
    after: float
    size: float
    p_value: float
    ended: int | None = None
    accepted: bool = False

    @property
    def open(self) -> bool:
        """Whether it still stands and alarms; a bad night never does."""
        return self.kind is not ChangeKind.BAD_NIGHT and self.ended is None and not self.accepted


@dataclass(frozen=True)
class Followed:
    """A series as it was followed night by night.

    ``changes``: by index. ``level``: the level that it has tonight, in its unit, None without
    any value. ``noise``: standard deviation of a night about it, relative, robust; None with too
    few values. ``cold``: fewer than ``cold_nights`` nights at the level. ``p_value``: tonight's,
    for the control over all series; 1.0 where nothing can be said.
    """

    changes: tuple[Change, ...]
    level: float | None
    noise: float | None
    cold: bool
    p_value: float


@dataclass(frozen=True)
class DetectionSettings:
    """How changes are found.

    ``alarm``: p-value of one series on one night from which on a change is listed.
    ``false_share``: share of false ones among the series that ``controlled`` lets pass.
    ``cold_nights``: nights at its level up to which a series is judged by median and MAD.
    ``memory``: newest nights at a level that level and noise are taken from.
    ``least_noise``: relative noise that every series is taken to have at least, so that one that
    repeats to the last digit does not alarm at the digit.
    ``bad_night``: standard deviations off the level from which on a night is set aside, unless
    the one before or after it is alike. ``alike``: by how many two nights may then differ.
    ``back``: logarithm of the odds at which a series has gone back to its old level.
    ``drift_nights``: nights now and long ago that are compared for a drift; ``least_drift``:
    relative size of the least one.
    """

    alarm: float = 2e-3
    false_share: float = 0.05
    cold_nights: int = 10
    memory: int = 180
    least_noise: float = 0.0025
    bad_night: float = 4.0
    alike: float = 3.3
    back: float = 7.0
    drift_nights: tuple[int, int] = (14, 30)
    least_drift: float = 0.02


def follow(
    values: Sequence[float | None],
    settings: DetectionSettings = DetectionSettings(),
    accepted: Collection[int] = (),
) -> Followed:
    """One series, followed from its first night to its last.

    ``values``: above 0, in any unit; None: a night without a value. ``accepted``: indices of the
    nights from which on a new level is intended: a level begins anew there. Raises NetproofError
    for a value that is not above 0.
    """
    return follow_all([values], settings, [accepted])[0]


def follow_all(
    series: Sequence[Sequence[float | None]],
    settings: DetectionSettings = DetectionSettings(),
    accepted: Sequence[Collection[int]] | None = None,
) -> list[Followed]:
    """Many series of the same nights, each as ``follow`` has it, in much less time.

    Raises NetproofError for a value that is not above 0, and for series of unlike lengths.
    """
    if not series:
        return []
    _check_lengths(series)
    logs = np.array([_logarithms(values, number) for number, values in enumerate(series)])
    followers = _Followers(logs, settings)
    for night in range(logs.shape[1]):
        for number, nights in enumerate(accepted or ()):
            if night in nights:
                followers.accept(number, night)
        followers.add(night)
    return followers.followed()


def controlled(
    p_values: Mapping[K, float], settings: DetectionSettings = DetectionSettings()
) -> frozenset[K]:
    """The series whose p-value of tonight stands among those of all series.

    By Benjamini and Hochberg (1995): on average at most ``settings.false_share`` of those that
    are let through are false ones, also where series of one night go up and down together.
    """
    ordered = sorted(p_values.items(), key=lambda item: item[1])
    passed = [
        rank
        for rank, (_, p_value) in enumerate(ordered, 1)
        if p_value <= settings.false_share * rank / len(ordered)
    ]
    return frozenset(name for name, _ in ordered[: max(passed, default=0)])


def expected_false_alarms(
    series: int, nights: int, settings: DetectionSettings = DetectionSettings()
) -> float:
    """How many false alarms so many nights of so many unchanged series bring, at most.

    On a night without any change the expected number that ``controlled`` lets through is the
    sum over ranks of what it takes for so many, at most share / (1 - share)² for independent
    series of any number (Finner and Roters 2001).
    """
    share = settings.false_share
    return nights * min(share / (1 - share) ** 2, float(series))


def pooled(series: Sequence[Sequence[float | None]]) -> list[float | None]:
    """Several series of the same nights, of one configuration, as one: 1 is their usual level.

    The weighted geometric mean of each night's values over the series' own medians; a weight is
    one over the square of a series' noise, taken from the differences of successive nights, so
    that no step enters it. What all series share of a night's noise stays in the result, and is
    part of the noise that ``follow`` finds in it. A night on which none has a value is None.
    Raises NetproofError as ``follow_all``.
    """
    if not series:
        return []
    _check_lengths(series)
    logs = np.array([_logarithms(values, number) for number, values in enumerate(series)])
    logs = logs[np.isfinite(logs).any(axis=1)]
    off = logs - np.array([_middle(row) for row in logs]).reshape(-1, 1)
    noise = [_middle(np.abs(np.diff(row[np.isfinite(row)]))) for row in logs]
    floor = DetectionSettings.least_noise
    weight = np.array([max(each * statistic.MAD_OF_NORMAL / math.sqrt(2), floor) for each in noise])
    weights = np.where(np.isfinite(off), weight.reshape(-1, 1) ** -2.0, 0.0)
    totals = weights.sum(axis=0)
    sums = (weights * np.nan_to_num(off)).sum(axis=0)
    return [
        math.exp(sum_ / total) if total > 0 else None
        for sum_, total in zip(sums.tolist(), totals.tolist(), strict=True)
    ]


def _middle(row: Floats) -> float:
    present = row[np.isfinite(row)]
    return float(np.median(present)) if len(present) else 0.0


def _check_lengths(series: Sequence[Sequence[float | None]]) -> None:
    lengths = sorted({len(values) for values in series})
    if len(lengths) > 1:
        raise NetproofError(
            f"series of {lengths[0]} and of {lengths[-1]} nights cannot be followed together:"
            " give each a value or None for every night"
        )


def _logarithms(values: Iterable[float | None], number: int) -> list[float]:
    logs = []
    for night, value in enumerate(values):
        if value is not None and not (math.isfinite(value) and value > 0):
            raise NetproofError(
                f"series {number}, night {night}: {value} has no logarithm: a value is above 0,"
                " and None where there is none"
            )
        logs.append(math.nan if value is None else math.log(value))
    return logs


@dataclass
class _Step:
    """A step that a series is in, and what to go back to where it ends.

    ``nights`` made the level before, ``known`` is its estimate, ``prior`` the noise known before
    it; ``since`` and ``long_ago`` are the series' own of that time.
    """

    index: int
    found: int
    nights: list[int]
    known: Estimate
    prior: float
    since: int
    long_ago: Floats


@dataclass
class _Past:
    """What a series has behind it: changes that are over, steps and a drift that it is in.

    ``aside``: its last night, as a bad one, until the next shows whether it is.
    """

    over: list[Change] = field(default_factory=list)
    steps: list[_Step] = field(default_factory=list)
    drift: Change | None = None
    aside: Change | None = None


class _Followers:
    """All series on their way through the nights, in arrays over series.

    ``rows`` has the nights of the present level, the newest at the right end, ``nights`` their
    indices, ``known`` the estimate of them; ``newest`` the last nights that were not set aside,
    at any level, ``before`` the estimate before each of them. ``aside``: the night that is set
    aside until the next one comes, or -1. ``old``, ``new``, ``odds``, ``back_from``: of the newest
    step that a series is in, both levels, the odds that it has gone back, and since when.
    ``since``: nights at the present level; ``long_ago``: level and noise of the first of them.
    """

    def __init__(self, logs: Floats, settings: DetectionSettings) -> None:
        count = len(logs)
        self.logs, self.settings = logs, settings
        self.rows = np.full((count, settings.memory), np.nan)
        self.nights = np.full((count, settings.memory), -1)
        self.known = Estimate.unknown(count)
        self.newest = np.full((count, statistic.LONGEST), np.nan)
        self.before = Estimate.unknown(count, statistic.LONGEST)
        self.prior = np.full(count, np.nan)
        self.bad_nights = np.zeros((count, len(statistic.FAR)))
        self.aside_off = np.zeros(count)
        self.aside = np.full(count, -1)
        self.aside_known = Estimate.unknown(count)
        self.previous = np.full(count, np.nan)
        self.p_value = np.ones(count)
        self.old, self.new, self.odds = (np.full(count, np.nan) for _ in range(3))
        self.back_from = np.full(count, -1)
        self.since = np.zeros(count, np.int64)
        self.long_ago = np.full((2, count), np.nan)
        self.past = [_Past() for _ in range(count)]

    def accept(self, number: int, night: int) -> None:
        """Begin a level anew in a series, whatever it is in."""
        past, known = self.past[number], self.known.at([number])
        standing = self._standing(number)
        if standing:
            past.over += [replace(change, accepted=True) for change in standing]
        elif known.count[0] and (value := self._first_from(number, night)) is not None:
            change = _change(ChangeKind.STEP, night, night, known.level[0], value, 1.0)
            past.over.append(replace(change, accepted=True))
        past.steps, past.drift = [], None
        if np.isfinite(known.noise[0]):
            self.prior[number] = known.noise[0]
        self._go_on(number, [])

    def add(self, night: int) -> None:
        """One more night of all series."""
        there = np.flatnonzero(np.isfinite(self.logs[:, night]))
        if not len(there):
            return
        self._sort_in(there, night)
        self.bad_nights[there] *= 1 - 1 / self.settings.memory
        self.known.put(there, self._estimated(self.rows[there], there))
        taken = there[self.aside[there] < 0]
        p_value, window = statistic.scan(self.newest[taken], self.before.at(taken))
        self.p_value[taken] = p_value
        for number in self._gone_back(there, night):
            self._end(number, int(self.back_from[number]))
        for place in np.flatnonzero(p_value <= self.settings.alarm):
            number = int(taken[place])
            if self.p_value[number] < 1.0:
                self._alarm(number, int(window[place]), night)
        self._look_back(there, night)

    def followed(self) -> list[Followed]:
        """What is known of all series after their last night."""
        found = []
        for number, past in enumerate(self.past):
            standing = self._standing(number)
            aside = [past.aside] if past.aside else []
            changes = sorted([*past.over, *standing, *aside], key=lambda change: change.index)
            known = self.known.at(number)
            unknown = not known.count
            p_values = [self.p_value[number], *(change.p_value for change in standing)]
            found.append(
                Followed(
                    tuple(changes),
                    None if unknown else math.exp(known.level),
                    None if np.isnan(known.noise) else float(known.noise),
                    bool(known.count < self.settings.cold_nights),
                    float(min(p_values)),
                )
            )
        return found

    def _sort_in(self, there: Numbers, night: int) -> None:
        """Put a night to the others, or aside where it is far off and unlike the one before."""
        settings, known, value = self.settings, self.known.at(there), self.logs[there, night]
        with np.errstate(invalid="ignore"):
            off = (value - known.level) / known.noise
            last = (self.previous[there] - known.level) / known.noise
            far = np.abs(off) > settings.bad_night
            near = np.abs(off - last) < settings.alike
            near |= far & (np.abs(last) > settings.bad_night)
            alike = (np.sign(off) == np.sign(last)) & near
        waiting = self.aside[there] >= 0
        released, bad = there[waiting & alike], there[waiting & ~alike]
        self._append(released, self.aside[released], self.aside_known.at(released))
        for number in released:
            self.past[number].aside = None
        for number in bad:
            past = self.past[number]
            past.over.append(replace(past.aside, ended=night))
            past.aside = None
        self.bad_nights[bad] += self.aside_off[bad, np.newaxis] > statistic.FAR
        self.aside[there] = -1
        set_aside = far & ~alike & (known.count >= settings.cold_nights)
        self._append(there[~set_aside], night, known.at(~set_aside))
        these = there[set_aside]
        self.aside[these], self.aside_off[these] = night, np.abs(off[set_aside])
        self.aside_known.put(these, known.at(set_aside))
        said = statistic.score(off[set_aside], known.tail[set_aside])
        p_values = statistic.two_sided(said, known.freedom[set_aside])
        for number, p_value in zip(these, p_values, strict=True):
            level = self.known.level[number]
            self.past[number].aside = _change(
                ChangeKind.BAD_NIGHT, night, night, level, self.logs[number, night], p_value
            )
        self.previous[there] = value

    def _append(self, numbers: Numbers, nights: Numbers | int, known: Estimate) -> None:
        values = self.logs[numbers, nights]
        for rows, new in (
            (self.rows, values),
            (self.nights, nights),
            (self.newest, values),
            *zip(self.before.arrays, known.arrays, strict=True),
        ):
            rows[numbers, :-1] = rows[numbers, 1:]
            rows[numbers, -1] = new
        self.since[numbers] += 1
        begun = numbers[self.since[numbers] == self.settings.drift_nights[1]]
        self.long_ago[:, begun] = self.known.level[begun], self.known.noise[begun]

    def _estimated(self, rows: Floats, numbers: Numbers) -> Estimate:
        settings = self.settings
        return statistic.estimated(
            rows,
            self.prior[numbers],
            self.bad_nights[numbers],
            settings.cold_nights,
            settings.least_noise,
        )

    def _gone_back(self, there: Numbers, night: int) -> list[int]:
        """Series that were in a step and are back at the level before it.

        By the CUSUM of the odds of both levels (Page 1954), of which a single night can be little
        more than half.
        """
        these = there[np.isfinite(self.old[there])]
        known = self.known.at(these)
        quiet = self.odds[these] <= 0
        self.new[these] = np.where(quiet, known.level, self.new[these])
        self.back_from[these] = np.where(quiet, night, self.back_from[these])
        step = (self.new[these] - self.old[these]) / known.noise
        off = (self.logs[these, night] - self.old[these]) / known.noise
        most = 0.55 * self.settings.back
        odds = np.clip(step * (step / 2 - off), -most, most)
        self.odds[these] = np.maximum(self.odds[these] + odds, 0.0)
        return these[self.odds[these] > self.settings.back].tolist()

    def _alarm(self, number: int, window: int, night: int) -> None:
        """A series has left its level: for a new one, or for one that it was at before."""
        members = self._members(number)
        around = members[-3 * statistic.LONGEST :]
        known = self.before.at((number, -window))
        begin = self._begin(number, around, (known.level, known.noise))
        begin = max(begin, members[-statistic.LONGEST :][0])
        after = np.median(self.logs[number, [n for n in members if n >= begin]])
        for place, step in enumerate(self.past[number].steps):
            if abs(after - step.known.level[0]) < abs(after - self.known.level[number]):
                del self.past[number].steps[place + 1 :]
                self._end(number, begin)
                return
        if not self._is_slope(number, night):
            self._open(number, begin, night)

    def _open(self, number: int, begin: int, night: int) -> None:
        members = self._members(number)
        nights = [n for n in members if n < begin]
        known = self._known_of(number, nights)
        self.past[number].steps.append(
            _Step(
                begin,
                night,
                nights,
                known,
                self.prior[number],
                int(self.since[number]) - (len(members) - len(nights)),
                self.long_ago[:, number].copy(),
            )
        )
        self.prior[number] = known.noise[0]
        self._go_on(number, [n for n in members if n >= begin])

    def _end(self, number: int, begin: int) -> None:
        """The newest step of a series is over from a night on: back to the level before it."""
        past, members = self.past[number], self._members(number)
        last = past.steps.pop()
        gone = [n for n in members if n < begin]
        nights = [n for n in members if n >= begin]
        past.over.append(self._over(number, last, gone, begin))
        self.prior[number] = last.prior
        self._go_on(number, [*last.nights, *nights])
        self.since[number] = last.since + len(nights)
        self.long_ago[:, number] = last.long_ago

    def _over(self, number: int, step: _Step, gone: Sequence[int], begin: int) -> Change:
        """A step that ended; one of few nights that a single one had made was a bad night."""
        off = (self.logs[number, gone] - step.known.level[0]) / step.known.noise[0]
        far = np.flatnonzero(np.abs(off) > self.settings.bad_night)
        if len(far) == 1 and len(gone) <= statistic.LONGEST:
            night = gone[far[0]]
            known, value = step.known, self.logs[number, night]
            said = statistic.score(off[far], known.tail)
            p_value = statistic.two_sided(said, known.freedom)[0]
            change = _change(ChangeKind.BAD_NIGHT, night, night, known.level[0], value, p_value)
            return replace(change, ended=min(night + 1, begin))
        return replace(self._stepped(number, step, gone), ended=begin)

    def _look_back(self, there: Numbers, night: int) -> None:
        """Hold the newest nights against those of long ago, for what is too slow to be a step."""
        now, ago = self.settings.drift_nights
        for number in there[[self.past[number].drift is not None for number in there]]:
            self._drift_on(number, night)
        these = there[np.isfinite(self.long_ago[0, there]) & (self.since[there] >= now + ago)]
        off = np.median(self.rows[these, -now:], axis=1) - self.long_ago[0, these]
        noise = np.maximum(self.long_ago[1, these], self.known.noise[these])
        p_values = self._long_off(off / noise)
        found = (p_values <= self.settings.alarm) & (
            np.abs(off) >= math.log1p(self.settings.least_drift)
        )
        for number in these[found]:
            if self.past[number].drift is None and not self._is_slope(number, night):
                members = self._members(number)
                scale = self.known.level[number], self.known.noise[number]
                self._open(number, self._begin(number, members, scale), night)

    def _long_off(self, off: Floats) -> Floats:
        """p-values of so many standard deviations between the newest nights and long ago."""
        now, ago = self.settings.drift_nights
        # The variance of a median is pi / 2 times that of a mean.
        said = off / math.sqrt(math.pi / 2 / now + 1 / ago)
        p_values = statistic.two_sided(said, np.full(off.shape, float(ago)))
        return np.minimum(p_values / statistic.LONG_AGO_SHARE, 1.0)

    def _is_slope(self, number: int, night: int) -> bool:
        """Whether a slope says better than a step how a series moved; it is then in a drift."""
        members = self._members(number)
        bends = len(members) - LEAST_SLOPE
        if bends < statistic.FEWEST:
            return False
        off = self._clipped(number, members, (self.known.level[number], self.known.noise[number]))
        place = _split(off)
        by_step = place * off[:place].var() + (len(off) - place) * off[place:].var()
        by_slope = _bent(np.array(members, float), off, bends)
        if by_slope.min() >= by_step:
            return False
        if self.past[number].drift is None:
            bend = int(np.argmin(by_slope))
            first = members[: max(bend, statistic.FEWEST)][-self.settings.drift_nights[1] :]
            before = float(np.median(self.logs[number, first]))
            after = self.known.level[number]
            drift = _change(ChangeKind.DRIFT, members[bend], night, before, after, 1.0)
            self.past[number].drift = drift
            self._drift_on(number, night)
        return True

    def _drift_on(self, number: int, night: int) -> None:
        """One more night of a drift; it stands still while the series is in a later step."""
        past, now = self.past[number], self.settings.drift_nights[0]
        drift = past.drift
        if past.steps and past.steps[-1].found > drift.found:
            return
        before = math.log(drift.before)
        off = float(np.nanmedian(self.rows[number, -now:])) - before
        if off * drift.size < 0 or abs(off) < abs(math.log1p(drift.size)) / 2:
            past.over.append(replace(drift, ended=night))
            past.drift = None
            return
        p_value = self._long_off(np.array([off / self.known.noise[number]]))[0]
        past.drift = _change(
            ChangeKind.DRIFT, drift.index, drift.found, before, before + off, float(p_value)
        )

    def _standing(self, number: int) -> list[Change]:
        """The changes that a series is in, by all nights that there are now."""
        past = self.past[number]
        standing = []
        for place, step in enumerate(past.steps):
            later = past.steps[place + 1 :]
            nights = later[0].nights if later else self._members(number)
            standing.append(self._stepped(number, step, nights))
        return standing + ([past.drift] if past.drift else [])

    def _stepped(self, number: int, step: _Step, nights: Sequence[int]) -> Change:
        """A step as these nights at its level show it."""
        known = step.known
        around = [*step.nights[-statistic.LONGEST :], *nights[: statistic.LONGEST]]
        begin = self._begin(number, around, (known.level[0], known.noise[0]))
        off = (self.logs[number, nights] - known.level[0]) / known.noise[0]
        said = statistic.score(off, known.tail).sum() / math.sqrt(len(nights))
        said /= math.sqrt(1 + len(nights) / known.count[0])
        p_value = statistic.two_sided(said, known.freedom)[0] / statistic.SINCE_SHARE
        after = float(np.median(self.logs[number, nights]))
        return _change(
            ChangeKind.STEP,
            min(begin, step.found),
            step.found,
            known.level[0],
            after,
            min(p_value, 1.0),
        )

    def _begin(self, number: int, nights: Sequence[int], scale: Sequence[float]) -> int:
        """The first night of the new level, of nights around it."""
        return nights[_split(self._clipped(number, nights, scale))]

    def _clipped(self, number: int, nights: Sequence[int], scale: Sequence[float]) -> Floats:
        """Nights by how much they are off a level, in its noise, so that none has a say alone."""
        level, noise = scale
        most = self.settings.bad_night
        return np.clip((self.logs[number, nights] - level) / noise, -most, most)

    def _members(self, number: int) -> list[int]:
        """Nights that make the present level."""
        return [night for night in self.nights[number].tolist() if night >= 0]

    def _first_from(self, number: int, night: int) -> float | None:
        later = self.logs[number, night:]
        later = later[np.isfinite(later)]
        return float(np.median(later[: self.settings.cold_nights])) if len(later) else None

    def _known_of(self, number: int, nights: Sequence[int]) -> Estimate:
        """The estimate of nights of a series, as if they made its level."""
        memory = list(nights)[-self.settings.memory :]
        rows = np.full((1, self.settings.memory), np.nan)
        rows[0, len(rows[0]) - len(memory) :] = self.logs[number, memory]
        return self._estimated(rows, np.array([number]))

    def _go_on(self, number: int, nights: Sequence[int]) -> None:
        """A series whose present level is that of these nights, with nothing against it."""
        memory = list(nights)[-self.settings.memory :]
        self.rows[number], self.nights[number] = np.nan, -1
        self.newest[number] = np.nan
        self.before.put(number, Estimate.unknown(statistic.LONGEST))
        if memory:
            self.rows[number, -len(memory) :] = self.logs[number, memory]
            self.nights[number, -len(memory) :] = memory
        newest = memory[-statistic.LONGEST :]
        for place, night in enumerate(newest, statistic.LONGEST - len(newest)):
            self.newest[number, place] = self.logs[number, night]
            earlier = self._known_of(number, [n for n in memory if n < night])
            self.before.put((number, place), earlier.at(0))
        self.known.put(number, self._known_of(number, memory).at(0))
        self.p_value[number] = 1.0
        self.since[number] = len(memory)
        self.long_ago[:, number] = np.nan
        steps = self.past[number].steps
        self.old[number] = steps[-1].known.level[0] if steps else np.nan
        self.new[number] = self.known.level[number]
        self.odds[number], self.back_from[number] = 0.0, -1


def _change(
    kind: ChangeKind, index: int, found: int, before: float, after: float, p_value: float
) -> Change:
    """A change between two levels that are given as logarithms."""
    was, now = math.exp(before), math.exp(after)
    return Change(kind, index, found, was, now, math.expm1(after - before), float(p_value))


def _split(values: Floats) -> int:
    """The place of the first value of the second of two levels, by least squares."""
    search = ruptures.KernelCPD(kernel="linear", min_size=2)
    return int(search.fit(values).predict(n_bkps=1)[0])


def _bent(nights: Floats, values: Floats, bends: int) -> Floats:
    """Squares that are left by a level up to a night and a slope from there, by that night."""
    slopes = np.maximum(nights - nights[:bends, np.newaxis], 0.0)
    slopes -= slopes.mean(axis=1, keepdims=True)
    off = values - values.mean()
    return off @ off - (slopes @ off) ** 2 / (slopes**2).sum(axis=1)
