"""Follow many series at once from night to night.

Each night is judged by what was known then: ``night`` has the statistic of one night, its
consequences are here. ``level_ends`` then locates the beginning of a change by all nights before
and after it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from netproof.history import level_ends
from netproof.history import night as statistic
from netproof.history.changes import Change, ChangeKind, DetectionSettings, Followed, change_between
from netproof.history.columns import (
    NO_NIGHT,
    LevelColumns,
    NewestColumns,
    Numbers,
)
from netproof.history.night import Estimate, Floats
from netproof.history.past import (
    NO_PAST,
    BegunLevel,
    FollowedState,
    OpenStep,
    SeriesPast,
)

_ARRAYS = (
    *("level.nights", "level.since", "level.long_ago", "newest.values"),
    *("aside_night", "aside_off", "old", "new", "odds", "begin"),
    *("prior", "previous", "bad_nights", "p_value"),
)
_ESTIMATES = ("level.known", "newest.before", "aside_known")
"""State of each series in ``Followers``, except the values of its level and its past."""


class Followers:
    """All series on their way through the nights, in columns.

    ``level``: the nights of the present level; ``newest``: the last nights at any level;
    ``aside_night``: the night that is set aside until the next one comes, ``aside_off`` standard
    deviations off, with the estimate before it, ``aside_known``. Of a possible return from the
    newest step: ``old``, ``new``: both levels, ``old`` NaN without a step; ``odds``: logarithm of
    the odds that the series has gone back, and ``begin``: first night with odds above 0.
    ``prior``: noise of an earlier level, NaN without one; ``bad_nights``: recent numbers beyond 3,
    10 and 30 standard deviations; ``previous``: the value of the last night; ``p_value``:
    tonight's; ``past``: each series' earlier changes.
    """

    def __init__(self, logs: Floats, settings: DetectionSettings) -> None:
        count = len(logs)
        self.logs, self.settings = logs, settings
        self.level = LevelColumns.unknown(count, settings.memory)
        self.newest = NewestColumns.unknown(count)
        self.aside_night, self.aside_off = np.full(count, NO_NIGHT), np.zeros(count)
        self.aside_known = Estimate.unknown(count)
        self.old, self.new, self.odds = (np.full(count, np.nan) for _ in range(3))
        self.begin = np.full(count, NO_NIGHT)
        self.prior, self.previous = np.full(count, np.nan), np.full(count, np.nan)
        self.bad_nights = np.zeros((count, len(statistic.FAR)))
        self.p_value = np.ones(count)
        self.past = [SeriesPast() for _ in range(count)]

    def accept(self, number: int, night: int) -> None:
        """Begin a new level in a series, whatever its state."""
        past, known = self.past[number], self.level.known.at([number])
        standing = self._standing(number)
        if standing:
            past.over += [replace(change, accepted=True) for change in standing]
        elif known.count[0]:
            past.over.append(BegunLevel(night, float(known.level[0])))
        past.steps, past.drift = [], None
        if np.isfinite(known.noise[0]):
            self.prior[number] = known.noise[0]
        self._go_on(number, [])

    def add(self, night: int, among: NDArray[np.bool_]) -> None:
        """Add a night of the series that ``among`` marks."""
        there = np.flatnonzero(np.isfinite(self.logs[:, night]) & among)
        if not len(there):
            return
        self._sort_in(there, night)
        self.bad_nights[there] *= 1 - 1 / self.settings.memory
        self.level.known.put(there, self._estimated(self.level.values[there], there))
        taken = there[self.aside_night[there] == NO_NIGHT]
        p_value, window = statistic.scan(self.newest.values[taken], self.newest.before.at(taken))
        self.p_value[taken] = p_value
        for number in self._gone_back(there, night):
            self._end(number, int(self.begin[number]))
        for place in np.flatnonzero(p_value <= self.settings.alarm):
            number = int(taken[place])
            if self.p_value[number] < 1.0:
                self._alarm(number, int(window[place]), night)
        self._look_back(there, night)

    def followed(self) -> list[Followed]:
        """Return the result of all series after their last night."""
        found = []
        known = self.level.known
        of_each = zip(
            *(known.level.tolist(), known.noise.tolist(), known.count.tolist()),
            *(self.p_value.tolist(), self.past),
            strict=True,
        )
        for number, (level, noise, count, p_value, past) in enumerate(of_each):
            standing = self._standing(number)
            aside = [past.aside] if past.aside else []
            over = [change for one in past.over if (change := self._finished(number, one))]
            changes = sorted([*over, *standing, *aside], key=lambda change: change.index)
            found.append(
                Followed(
                    tuple(changes),
                    math.exp(level) if count else None,
                    None if math.isnan(noise) else noise,
                    count < self.settings.cold_nights,
                    min([p_value, *(change.p_value for change in standing)]),
                )
            )
        return found

    def _finished(self, number: int, one: Change | BegunLevel) -> Change | None:
        """Return a change that is over; None for a begun level that no night has reached yet."""
        if isinstance(one, Change):
            return one
        value = self._first_from(number, one.index)
        if value is None:
            return None
        change = change_between(ChangeKind.STEP, one.index, one.index, one.level, value, 1.0)
        return replace(change, accepted=True)

    def state(self, accepted: tuple[frozenset[int], ...]) -> FollowedState:
        """Return the state of the series, to continue from."""
        arrays = {name: attrgetter(name)(self) for name in _ARRAYS}
        for name in _ESTIMATES:
            for number, array in enumerate(attrgetter(name)(self).arrays):
                arrays[f"{name}.{number}"] = array
        past = {number: one for number, one in enumerate(self.past) if one != NO_PAST}
        return FollowedState(self.logs, accepted, arrays, past)

    def go_on_from(self, state: FollowedState, places: Numbers) -> None:
        """Take the state of each series with a place in ``state``."""
        mine = np.flatnonzero(places >= 0)
        its = places[mine]
        for name in _ARRAYS:
            array, found = attrgetter(name)(self), state.arrays[name]
            if name == "level.long_ago":
                # The first axis is levels and noises, the second the series.
                array[:, mine] = found[:, its]
            else:
                array[mine] = found[its]
        for name in _ESTIMATES:
            for number, array in enumerate(attrgetter(name)(self).arrays):
                array[mine] = state.arrays[f"{name}.{number}"][its]
        # The values of a level are those of its nights.
        nights = self.level.nights[mine]
        values = np.take_along_axis(self.logs[mine], np.maximum(nights, 0), axis=1)
        self.level.values[mine] = np.where(nights != NO_NIGHT, values, np.nan)
        for number, place in zip(mine.tolist(), its.tolist(), strict=True):
            if place in state.past:
                self.past[number] = deepcopy(state.past[place])

    def _sort_in(self, there: Numbers, night: int) -> None:
        """Add a night to the others, or set it aside if it is far off and unlike the one before."""
        settings, known, value = self.settings, self.level.known.at(there), self.logs[there, night]
        with np.errstate(invalid="ignore"):
            off = (value - known.level) / known.noise
            last = (self.previous[there] - known.level) / known.noise
            far = np.abs(off) > settings.bad_night
            near = np.abs(off - last) < settings.alike
            near |= far & (np.abs(last) > settings.bad_night)
            alike = (np.sign(off) == np.sign(last)) & near
        waiting = self.aside_night[there] != NO_NIGHT
        released, bad = there[waiting & alike], there[waiting & ~alike]
        self._append(released, self.aside_night[released], self.aside_known.at(released))
        for number in released:
            self.past[number].aside = None
        for number in bad:
            past = self.past[number]
            past.over.append(replace(past.aside, ended=night))
            past.aside = None
        self.bad_nights[bad] += self.aside_off[bad, np.newaxis] > statistic.FAR
        self.aside_night[there] = NO_NIGHT
        set_aside = far & ~alike & (known.count >= settings.cold_nights)
        self._append(there[~set_aside], night, known.at(~set_aside))
        these = there[set_aside]
        self.aside_night[these], self.aside_off[these] = night, np.abs(off[set_aside])
        self.aside_known.put(these, known.at(set_aside))
        said = statistic.score(off[set_aside], known.tail[set_aside])
        p_values = statistic.two_sided(said, known.freedom[set_aside])
        for number, p_value in zip(these, p_values, strict=True):
            level = self.level.known.level[number]
            self.past[number].aside = change_between(
                ChangeKind.BAD_NIGHT, night, night, level, self.logs[number, night], p_value
            )
        self.previous[there] = value

    def _append(self, numbers: Numbers, nights: Numbers | int, known: Estimate) -> None:
        values = self.logs[numbers, nights]
        self.newest.append(numbers, values, known)
        self.level.append(numbers, nights, values, self.settings.drift_nights[1])

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
        """Return series that were in a step and are back at the level before it.

        By the CUSUM of the odds of both levels (Page 1954), to which a single night contributes
        little more than half.
        """
        these = there[np.isfinite(self.old[there])]
        known, old = self.level.known.at(these), self.old[these]
        quiet = self.odds[these] <= 0
        self.new[these] = np.where(quiet, known.level, self.new[these])
        self.begin[these] = np.where(quiet, night, self.begin[these])
        step = (self.new[these] - old) / known.noise
        off = (self.logs[these, night] - old) / known.noise
        most = 0.55 * self.settings.back
        odds = np.clip(step * (step / 2 - off), -most, most)
        self.odds[these] = np.maximum(self.odds[these] + odds, 0.0)
        return these[self.odds[these] > self.settings.back].tolist()

    def _alarm(self, number: int, window: int, night: int) -> None:
        """Handle a series that left its level: for a new one, or for an earlier one."""
        members = self.level.members(number)
        around = members[-3 * statistic.LONGEST :]
        known = self.newest.before.at((number, -window))
        begin = self._begin(number, around, (known.level, known.noise))
        begin = max(begin, members[-statistic.LONGEST :][0])
        after = np.median(self.logs[number, [n for n in members if n >= begin]])
        for place, step in enumerate(self.past[number].steps):
            if abs(after - step.known.level[0]) < abs(after - self.level.known.level[number]):
                del self.past[number].steps[place + 1 :]
                self._end(number, begin)
                return
        if not self._is_slope(number, night):
            self._open(number, begin, night)

    def _open(self, number: int, begin: int, night: int) -> None:
        members = self.level.members(number)
        nights = [n for n in members if n < begin]
        known = self._known_of(number, nights)
        self.past[number].steps.append(
            OpenStep(
                begin,
                night,
                nights,
                known,
                self.prior[number],
                int(self.level.since[number]) - (len(members) - len(nights)),
                self.level.long_ago[:, number].copy(),
            )
        )
        self.prior[number] = known.noise[0]
        self._go_on(number, [n for n in members if n >= begin])

    def _end(self, number: int, begin: int) -> None:
        """End the newest step of a series from a night on: back to the level before it."""
        past, members = self.past[number], self.level.members(number)
        last = past.steps.pop()
        gone = [n for n in members if n < begin]
        nights = [n for n in members if n >= begin]
        series, bad_night = self.logs[number], self.settings.bad_night
        past.over.append(level_ends.ended_step(series, last, gone, begin, bad_night))
        bad = level_ends.lone_bad_nights(series, last.known, nights, bad_night)
        past.over += bad
        nights = [night for night in nights if night not in {one.index for one in bad}]
        self.prior[number] = last.prior
        self._go_on(number, [*last.nights, *nights])
        self.level.since[number] = last.since + len(nights)
        self.level.long_ago[:, number] = last.long_ago

    def _look_back(self, there: Numbers, night: int) -> None:
        """Compare the newest nights with those of long ago, for changes too slow to be a step."""
        now, ago = self.settings.drift_nights
        for number in there[[self.past[number].drift is not None for number in there]]:
            self._drift_on(number, night)
        old = np.isfinite(self.level.long_ago[0, there])
        these = there[old & (self.level.since[there] >= now + ago)]
        off = np.median(self.level.values[these, -now:], axis=1) - self.level.long_ago[0, these]
        noise = np.maximum(self.level.long_ago[1, these], self.level.known.noise[these])
        p_values = self._long_off(off / noise)
        found = (p_values <= self.settings.alarm) & (
            np.abs(off) >= math.log1p(self.settings.least_drift)
        )
        for number in these[found]:
            if self.past[number].drift is None and not self._is_slope(number, night):
                members = self.level.members(number)
                scale = self.level.scale(number)
                self._open(number, self._begin(number, members, scale), night)

    def _long_off(self, off: Floats) -> Floats:
        """Return p-values of standard deviations between the newest nights and long ago."""
        now, ago = self.settings.drift_nights
        # The variance of a median is pi / 2 times that of a mean.
        said = off / math.sqrt(math.pi / 2 / now + 1 / ago)
        p_values = statistic.two_sided(said, np.full(off.shape, float(ago)))
        return np.minimum(p_values / statistic.LONG_AGO_SHARE, 1.0)

    def _is_slope(self, number: int, night: int) -> bool:
        """Check whether a slope fits better than a step; the series is then in a drift."""
        members, scale = self.level.members(number), self.level.scale(number)
        bend = level_ends.slope_begin(self.logs[number], members, scale, self.settings.bad_night)
        if bend is None:
            return False
        if self.past[number].drift is None:
            first = members[: max(bend, statistic.FEWEST)][-self.settings.drift_nights[1] :]
            before = float(np.median(self.logs[number, first]))
            after = self.level.known.level[number]
            drift = change_between(ChangeKind.DRIFT, members[bend], night, before, after, 1.0)
            self.past[number].drift = drift
            self._drift_on(number, night)
        return True

    def _drift_on(self, number: int, night: int) -> None:
        """Add a night of a drift, which pauses while the series is in a later step."""
        past, now = self.past[number], self.settings.drift_nights[0]
        drift = past.drift
        if past.steps and past.steps[-1].found > drift.found:
            return
        before = math.log(drift.before)
        off = float(np.nanmedian(self.level.values[number, -now:])) - before
        if off * drift.size < 0 or abs(off) < abs(math.log1p(drift.size)) / 2:
            past.over.append(replace(drift, ended=night))
            past.drift = None
            return
        p_value = self._long_off(np.array([off / self.level.known.noise[number]]))[0]
        past.drift = change_between(
            ChangeKind.DRIFT, drift.index, drift.found, before, before + off, float(p_value)
        )

    def _standing(self, number: int) -> list[Change]:
        """Return the changes that a series is in, by all nights so far."""
        past = self.past[number]
        standing = []
        for place, step in enumerate(past.steps):
            later = past.steps[place + 1 :]
            nights = later[0].nights if later else self.level.members(number)
            series = self.logs[number]
            standing.append(level_ends.step_of(series, step, nights, self.settings.bad_night))
        return standing + ([past.drift] if past.drift else [])

    def _begin(self, number: int, nights: Sequence[int], scale: Sequence[float]) -> int:
        """Return the first night of the new level, among nights around it."""
        return level_ends.first_night(self.logs[number], nights, scale, self.settings.bad_night)

    def _first_from(self, number: int, night: int) -> float | None:
        later = self.logs[number, night:]
        later = later[np.isfinite(later)]
        return float(np.median(later[: self.settings.cold_nights])) if len(later) else None

    def _known_of(self, number: int, *several: Sequence[int]) -> Estimate:
        """Return the estimates of a series as if each of ``several`` made its level."""
        rows = np.full((len(several), self.settings.memory), np.nan)
        for row, nights in zip(rows, several, strict=True):
            memory = list(nights)[-self.settings.memory :]
            row[len(row) - len(memory) :] = self.logs[number, memory]
        return self._estimated(rows, np.full(len(several), number))

    def _go_on(self, number: int, nights: Sequence[int]) -> None:
        """Continue a series at the level of these nights, without any suspicion."""
        memory = list(nights)[-self.settings.memory :]
        self.level.begin(number, memory, self.logs[number, memory])
        self.newest.forget(number)
        newest = memory[-statistic.LONGEST :]
        first = len(memory) - len(newest)
        known = self._known_of(number, *(memory[:end] for end in range(first, len(memory) + 1)))
        for one, night in enumerate(newest):
            place = statistic.LONGEST - len(newest) + one
            self.newest.values[number, place] = self.logs[number, night]
            self.newest.before.put((number, place), known.at(one))
        self.level.known.put(number, known.at(-1))
        self.p_value[number] = 1.0
        steps = self.past[number].steps
        self.old[number] = steps[-1].known.level[0] if steps else np.nan
        self.new[number] = self.level.known.level[number]
        self.odds[number], self.begin[number] = 0.0, NO_NIGHT
