"""Find changes in series of nights: steps, drifts and single bad nights.

A series has one value for each night, a case's latency for instance. Many are followed at once from
night to night, so that each night is judged by what was known then: ``night`` has the statistic of
one night, and locates the beginning of a change by all nights before and after it; consequences are
here. Everything works on plain numbers and knows nothing of stores, cases or
dates. docs/validation/history.md shows how well it does.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netproof.history import night as statistic
from netproof.history.changes import (
    AGO_NIGHTS,
    ALARM,
    ALIKE,
    BACK,
    BAD_NIGHT,
    COLD_NIGHTS,
    LEAST_DRIFT,
    MEMORY,
    NOW_NIGHTS,
    Change,
    ChangeKind,
    Followed,
    change_between,
)
from netproof.history.night import (
    LONGEST,
    Estimate,
    Floats,
    OpenStep,
    logarithms,
    unknown,
)

Numbers = NDArray[np.int64]

NO_NIGHT = -1


@dataclass
class SeriesPast:
    """A series' past: changes that are over, and steps and a drift that it is in.

    ``over``: with an accepted step without ``after`` for an intended new level without a found
    change, until a night has reached it; ``aside``: its last night, as a bad one, until the next
    shows whether it is.
    """

    over: list[Change] = field(default_factory=list)
    steps: list[OpenStep] = field(default_factory=list)
    drift: Change | None = None
    aside: Change | None = None


def columns_of(count: int) -> dict[str, np.ndarray]:
    """Return the state of series without a night, by name, a place for each series in every array.

    Rows of nights have the newest at the right end; missing values are NaN, and ``NO_NIGHT`` for
    indices. The present level: ``level_values``, logarithms of its newest nights, ``level_nights``;
    ``known``, their estimate; ``since``, their number, including those no longer there;
    ``long_ago``, level and noise of the first of them, NaN until there are enough.
    ``newest_before``: the estimates before each of its last nights. ``aside_night``: the night that
    is set aside until the next one comes, ``aside_off`` standard deviations off, with the estimate
    before it, ``aside_known``. Of a possible return from the
    newest step: ``old``, ``new``: both levels, ``old`` NaN without a step; ``odds``: logarithm of
    the odds that the series has gone back, and ``begin``: first night with odds above 0. ``prior``:
    noise of an earlier level, NaN without one; ``previous``: the value of the last night;
    ``bad_nights``: recent numbers beyond 3, 10 and 30 standard deviations; ``p_value``: tonight's.
    """
    return {
        "level_values": np.full((count, MEMORY), np.nan),
        "level_nights": np.full((count, MEMORY), NO_NIGHT),
        "known": unknown(count),
        "since": np.zeros(count, np.int64),
        "long_ago": np.full((count, 2), np.nan),
        "newest_before": unknown(count, LONGEST),
        "aside_night": np.full(count, NO_NIGHT),
        "aside_off": np.zeros(count),
        "aside_known": unknown(count),
        **{name: np.full(count, np.nan) for name in ("old", "new", "odds", "prior", "previous")},
        "begin": np.full(count, NO_NIGHT),
        "bad_nights": np.zeros((count, len(statistic.FAR))),
        "p_value": np.ones(count),
    }


class Followers:
    """All series on their way through the nights; its columns are those of ``columns_of``.

    ``logs``: series x nights, the values as logarithms; ``accepted``: of each series, the nights at
    which an intended new level begins; ``past``: each series' earlier changes.
    """

    def __init__(
        self, logs: Floats, accepted: Sequence[frozenset[int]] = (), alarm: float = ALARM
    ) -> None:
        count = len(logs)
        self.logs, self.accepted, self.alarm = logs, tuple(accepted), alarm
        self.past = [SeriesPast() for _ in range(count)]
        vars(self).update(columns_of(count))

    def columns(self) -> dict[str, np.ndarray]:
        """Return the state by name."""
        return {name: getattr(self, name) for name in columns_of(0)}

    def go_on_from(
        self, columns: Mapping[str, np.ndarray], past: Sequence[SeriesPast], places: Numbers
    ) -> None:
        """Take the state of each series with a place in ``columns`` and ``past``; -1 for none."""
        mine = np.flatnonzero(places >= 0)
        its = places[mine]
        for name, mine_all in self.columns().items():
            mine_all[mine] = columns[name][its]
        for number, place in zip(mine.tolist(), its.tolist(), strict=True):
            self.past[number] = deepcopy(past[place])

    def accept(self, number: int, night: int) -> None:
        """Begin a new level in a series, whatever its state."""
        past, known = self.past[number], self.known[[number]]
        standing = self._standing(number)
        if standing:
            past.over += [replace(change, accepted=True) for change in standing]
        elif known.count[0]:
            before = float(known.level[0])
            begun = change_between(ChangeKind.STEP, night, night, before, math.nan, 1.0)
            past.over.append(replace(begun, accepted=True))
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
        self.bad_nights[there] *= 1 - 1 / MEMORY
        self.known[there] = self._estimated(self.level_values[there], there)
        taken = there[self.aside_night[there] == NO_NIGHT]
        p_value, window = statistic.scan(
            self.level_values[taken, -LONGEST:], self.newest_before[taken]
        )
        self.p_value[taken] = p_value
        for number in self._gone_back(there, night):
            self._end(number, int(self.begin[number]))
        for place in np.flatnonzero(p_value <= self.alarm):
            number = int(taken[place])
            if self.p_value[number] < 1.0:
                self._alarm(number, int(window[place]), night)
        self._look_back(there, night)

    def followed(self) -> list[Followed]:
        """Return the result of all series after their last night."""
        found = []
        known = self.known
        of_each = zip(
            *(known.level.tolist(), known.noise.tolist(), known.count.tolist()),
            *(self.p_value.tolist(), self.past),
            strict=True,
        )
        for number, (level, noise, count, p_value, past) in enumerate(of_each):
            standing = self._standing(number)
            aside = [past.aside] if past.aside else []
            over = [done for one in past.over if (done := self._finished(number, one))]
            changes = sorted([*over, *standing, *aside], key=lambda change: change.index)
            found.append(
                Followed(
                    tuple(changes),
                    math.exp(level) if count else None,
                    None if math.isnan(noise) else noise,
                    min([p_value, *(change.p_value for change in standing)]),
                )
            )
        return found

    def _finished(self, number: int, change: Change) -> Change | None:
        """Return a change that is over; None for a begun level that no night has reached yet."""
        if not math.isnan(change.after):
            return change
        later = self.logs[number, change.index :]
        later = later[np.isfinite(later)]
        if not len(later):
            return None
        after = float(np.exp(np.median(later[:COLD_NIGHTS])))
        return replace(change, after=after, size=after / change.before - 1)

    def _sort_in(self, there: Numbers, night: int) -> None:
        """Add a night to the others, or set it aside if it is far off and unlike the one before."""
        known, value = self.known[there], self.logs[there, night]
        with np.errstate(invalid="ignore"):
            off = (value - known.level) / known.noise
            last = (self.previous[there] - known.level) / known.noise
            far = np.abs(off) > BAD_NIGHT
            near = np.abs(off - last) < ALIKE
            near |= far & (np.abs(last) > BAD_NIGHT)
            alike = (np.sign(off) == np.sign(last)) & near
        waiting = self.aside_night[there] != NO_NIGHT
        released, bad = there[waiting & alike], there[waiting & ~alike]
        self._append(released, self.aside_night[released], self.aside_known[released])
        for number in released:
            self.past[number].aside = None
        for number in bad:
            past = self.past[number]
            past.over.append(replace(past.aside, ended=night))
            past.aside = None
        self.bad_nights[bad] += self.aside_off[bad, np.newaxis] > statistic.FAR
        self.aside_night[there] = NO_NIGHT
        set_aside = far & ~alike & (known.count >= COLD_NIGHTS)
        self._append(there[~set_aside], night, known[~set_aside])
        these = there[set_aside]
        self.aside_night[these], self.aside_off[these] = night, np.abs(off[set_aside])
        self.aside_known[these] = known[set_aside]
        total = statistic.score(off[set_aside], known.tail[set_aside])
        p_values = statistic.two_sided(total, known.freedom[set_aside])
        for number, p_value in zip(these, p_values, strict=True):
            level = self.known.level[number]
            self.past[number].aside = change_between(
                ChangeKind.BAD_NIGHT, night, night, level, self.logs[number, night], p_value
            )
        self.previous[there] = value

    def _append(self, numbers: Numbers, nights: Numbers | int, known: Estimate) -> None:
        values = self.logs[numbers, nights]
        for rows, new in (
            (self.newest_before, known),
            *((self.level_values, values), (self.level_nights, nights)),
        ):
            rows[numbers, :-1] = rows[numbers, 1:]
            rows[numbers, -1] = new
        self.since[numbers] += 1
        begun = numbers[self.since[numbers] == AGO_NIGHTS]
        self.long_ago[begun, 0], self.long_ago[begun, 1] = (
            self.known.level[begun],
            self.known.noise[begun],
        )

    def _members(self, number: int) -> list[int]:
        return [night for night in self.level_nights[number].tolist() if night != NO_NIGHT]

    def _estimated(self, rows: Floats, numbers: Numbers) -> Estimate:
        return statistic.estimated(rows, self.prior[numbers], self.bad_nights[numbers])

    def _gone_back(self, there: Numbers, night: int) -> list[int]:
        """Return series that were in a step and are back at the level before it.

        By the CUSUM of the odds of both levels (Page 1954), to which a single night contributes
        little more than half.
        """
        these = there[np.isfinite(self.old[there])]
        known, old = self.known[these], self.old[these]
        quiet = self.odds[these] <= 0
        self.new[these] = np.where(quiet, known.level, self.new[these])
        self.begin[these] = np.where(quiet, night, self.begin[these])
        step = (self.new[these] - old) / known.noise
        off = (self.logs[these, night] - old) / known.noise
        most = 0.55 * BACK
        odds = np.clip(step * (step / 2 - off), -most, most)
        self.odds[these] = np.maximum(self.odds[these] + odds, 0.0)
        return these[self.odds[these] > BACK].tolist()

    def _alarm(self, number: int, window: int, night: int) -> None:
        """Handle a series that left its level: for a new one, or for an earlier one."""
        members = self._members(number)
        around = members[-3 * LONGEST :]
        known = self.newest_before[number, -window]
        begin = statistic.first_night(self.logs[number], around, known)
        begin = max(begin, members[-LONGEST:][0])
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
            OpenStep(
                night,
                nights,
                known,
                self.prior[number],
                int(self.since[number]) - (len(members) - len(nights)),
                self.long_ago[number].copy(),
            )
        )
        self.prior[number] = known.noise[0]
        self._go_on(number, [n for n in members if n >= begin])

    def _end(self, number: int, begin: int) -> None:
        """End the newest step of a series from a night on: back to the level before it."""
        past, members = self.past[number], self._members(number)
        last = past.steps.pop()
        gone = [n for n in members if n < begin]
        nights = [n for n in members if n >= begin]
        series = self.logs[number]
        past.over.append(statistic.ended_step(series, last, gone, begin))
        bad = statistic.lone_bad_nights(series, last.known, nights)
        past.over += bad
        nights = [night for night in nights if night not in {one.index for one in bad}]
        self.prior[number] = last.prior
        self._go_on(number, [*last.nights, *nights])
        self.since[number] = last.since + len(nights)
        self.long_ago[number] = last.long_ago

    def _look_back(self, there: Numbers, night: int) -> None:
        """Compare the newest nights with those of long ago, for changes too slow to be a step."""
        now, ago = NOW_NIGHTS, AGO_NIGHTS
        for number in there[[self.past[number].drift is not None for number in there]]:
            self._drift_on(number, night)
        old = np.isfinite(self.long_ago[there, 0])
        these = there[old & (self.since[there] >= now + ago)]
        off = np.median(self.level_values[these, -now:], axis=1) - self.long_ago[these, 0]
        noise = np.maximum(self.long_ago[these, 1], self.known.noise[these])
        p_values = self._long_off(off / noise)
        found = (p_values <= self.alarm) & (np.abs(off) >= math.log1p(LEAST_DRIFT))
        for number in these[found]:
            if self.past[number].drift is None and not self._is_slope(number, night):
                members = self._members(number)
                known = self.known[number]
                begin = statistic.first_night(self.logs[number], members, known)
                self._open(number, begin, night)

    def _long_off(self, off: Floats) -> Floats:
        """Return p-values of standard deviations between the newest nights and long ago."""
        now, ago = NOW_NIGHTS, AGO_NIGHTS
        # The variance of a median is pi / 2 times that of a mean.
        total = off / math.sqrt(math.pi / 2 / now + 1 / ago)
        p_values = statistic.two_sided(total, np.full(off.shape, float(ago)))
        return np.minimum(p_values / statistic.LONG_AGO_SHARE, 1.0)

    def _is_slope(self, number: int, night: int) -> bool:
        """Check whether a slope fits better than a step; the series is then in a drift."""
        members = self._members(number)
        bend = statistic.slope_begin(self.logs[number], members, self.known[number])
        if bend is None:
            return False
        if self.past[number].drift is None:
            first = members[: max(bend, statistic.FEWEST)][-AGO_NIGHTS:]
            before = float(np.median(self.logs[number, first]))
            after = self.known.level[number]
            drift = change_between(ChangeKind.DRIFT, members[bend], night, before, after, 1.0)
            self.past[number].drift = drift
            self._drift_on(number, night)
        return True

    def _drift_on(self, number: int, night: int) -> None:
        """Add a night of a drift, which pauses while the series is in a later step."""
        past, now = self.past[number], NOW_NIGHTS
        drift = past.drift
        if past.steps and past.steps[-1].found > drift.found:
            return
        before = math.log(drift.before)
        off = float(np.nanmedian(self.level_values[number, -now:])) - before
        if off * drift.size < 0 or abs(off) < abs(math.log1p(drift.size)) / 2:
            past.over.append(replace(drift, ended=night))
            past.drift = None
            return
        p_value = self._long_off(np.array([off / self.known.noise[number]]))[0]
        past.drift = change_between(
            ChangeKind.DRIFT, drift.index, drift.found, before, before + off, float(p_value)
        )

    def _standing(self, number: int) -> list[Change]:
        past = self.past[number]
        standing = []
        for place, step in enumerate(past.steps):
            later = past.steps[place + 1 :]
            nights = later[0].nights if later else self._members(number)
            series = self.logs[number]
            standing.append(statistic.step_of(series, step, nights))
        return standing + ([past.drift] if past.drift else [])

    def _known_of(self, number: int, *several: Sequence[int]) -> Estimate:
        """Return the estimates of a series as if each of ``several`` made its level."""
        rows = np.full((len(several), MEMORY), np.nan)
        for row, nights in zip(rows, several, strict=True):
            memory = list(nights)[-MEMORY:]
            row[len(row) - len(memory) :] = self.logs[number, memory]
        return self._estimated(rows, np.full(len(several), number))

    def _go_on(self, number: int, nights: Sequence[int]) -> None:
        """Continue a series at the level of these nights, without any suspicion."""
        memory = list(nights)[-MEMORY:]
        self.level_values[number], self.level_nights[number] = np.nan, NO_NIGHT
        if memory:
            self.level_values[number, -len(memory) :] = self.logs[number, memory]
            self.level_nights[number, -len(memory) :] = memory
        self.since[number], self.long_ago[number] = len(memory), np.nan
        self.newest_before[number] = unknown(LONGEST)
        newest = memory[-LONGEST:]
        first = len(memory) - len(newest)
        known = self._known_of(number, *(memory[:end] for end in range(first, len(memory) + 1)))
        self.newest_before[number, LONGEST - len(newest) :] = known[:-1]
        self.known[number] = known[-1]
        self.p_value[number] = 1.0
        steps = self.past[number].steps
        self.old[number] = steps[-1].known.level[0] if steps else np.nan
        self.new[number] = self.known.level[number]
        self.odds[number], self.begin[number] = 0.0, NO_NIGHT


def follow(
    values: Sequence[float | None], accepted: Collection[int] = (), alarm: float = ALARM
) -> Followed:
    """Follow one series from its first night to its last.

    ``values``: above 0, in any unit; None: a night without a value. ``accepted``: indices of nights
    at which an intended new level begins; ``alarm``: p-value from which on a change is listed.
    Raise NetproofError for a value that is not above 0.
    """
    return follow_all([values], [accepted], alarm)[0]


def follow_all(
    series: Sequence[Sequence[float | None]],
    accepted: Sequence[Collection[int]] | None = None,
    alarm: float = ALARM,
) -> list[Followed]:
    """Follow many series of the same nights, each as ``follow`` does, in much less time.

    Raise NetproofError for a value that is not above 0, and for series of different lengths.
    """
    return follow_on(series, accepted, alarm=alarm).followed()


def follow_on(
    series: Sequence[Sequence[float | None]],
    accepted: Sequence[Collection[int]] | None = None,
    known: Followers | None = None,
    places: Sequence[int] = (),
    alarm: float = ALARM,
) -> Followers:
    """Follow many series as ``follow`` does, continuing from a known state.

    ``places``: of each series in ``known``, -1 for none. A series whose nights or intended levels
    up to then differ is followed from its first night. Raise NetproofError as ``follow_all``.
    """
    logs = logarithms(series) if series else np.empty((0, 0))
    intended = tuple(map(frozenset, accepted or [()] * len(series)))
    followers = Followers(logs, intended, alarm)
    before, nights = np.full(len(series), -1), 0
    if known is not None and known.logs.shape[1] <= logs.shape[1]:
        before, nights = np.array(places, np.int64), known.logs.shape[1]
        there = np.flatnonzero(before >= 0)
        old, new = known.logs[before[there]], logs[there, :nights]
        same = ((old == new) | (np.isnan(old) & np.isnan(new))).all(axis=1)
        for number, whole in zip(there.tolist(), same.tolist(), strict=True):
            up_to = frozenset(night for night in intended[number] if night < nights)
            if not whole or known.accepted[before[number]] != up_to:
                before[number] = -1
        followers.go_on_from(known.columns(), known.past, before)
    restarted = before < 0
    starts = {night for several in intended for night in several}
    for night in range(0 if restarted.any() else nights, logs.shape[1]):
        among = restarted if night < nights else np.ones(len(series), bool)
        if night in starts:
            for number in np.flatnonzero(among).tolist():
                if night in intended[number]:
                    followers.accept(number, night)
        followers.add(night, among)
    return followers


def read_past(values: Mapping[str, Any]) -> SeriesPast:
    """Read a series' past from the plain values of its fields.

    Raise KeyError, TypeError or ValueError for invalid values.
    """

    def change(values: Mapping[str, Any] | None) -> Change | None:
        return None if values is None else Change(**{**values, "kind": ChangeKind(values["kind"])})

    steps = []
    for step in values["steps"]:
        (known,) = step["known"]
        known = np.array([tuple(known)], statistic.ESTIMATE).view(np.recarray)
        steps.append(OpenStep(**{**step, "known": known, "long_ago": np.array(step["long_ago"])}))
    return SeriesPast(
        [change(one) for one in values["over"]],
        steps,
        change(values["drift"]),
        change(values["aside"]),
    )
