"""Find changes in series of nights: steps, drifts and single bad nights.

Many series, one value a night each, are followed at once from night to night, so that each night is
judged by what was known then. ``changes`` has the statistic of one night, and locates the beginning
of a change; consequences are here. Everything works on plain numbers and knows nothing of stores,
cases or dates. docs/validation/history.md shows how well it does.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netproof.history import changes as statistic
from netproof.history.changes import Change, ChangeKind, Estimates, Floats, Followed, OpenStep

Numbers = NDArray[np.int64]

NO_NIGHT = -1

STATE = np.dtype(
    [
        ("level_values", np.float64, statistic.MEMORY),
        ("level_nights", np.int64, statistic.MEMORY),
        ("known", statistic.ESTIMATE),
        ("since", np.int64),
        ("long_ago", np.float64, 2),
        ("newest_before", statistic.ESTIMATE, statistic.LONGEST),
        ("aside_night", np.int64),
        ("aside_off", np.float64),
        ("aside_known", statistic.ESTIMATE),
        *((name, np.float64) for name in ("old", "new", "odds", "prior", "previous")),
        ("begin", np.int64),
        ("bad_nights", np.float64, len(statistic.FAR)),
        ("p_value", np.float64),
    ]
)
"""The state of a series; missing values are NaN, and ``NO_NIGHT`` for indices.

The present level: ``level_values``, logarithms of its newest nights, ``level_nights``, the newest
at the right end; ``known``, their estimate; ``since``, their number, including those no longer
there; ``long_ago``, level and noise of the first of them. ``newest_before``: the estimates before
each of its last nights. ``aside_night``: the night that is set aside until the next one comes,
``aside_off`` standard deviations off, with the estimate before it, ``aside_known``. Of a possible
return from the newest step: ``old``, ``new``: both levels; ``odds``: logarithm of the odds that the
series has gone back, and ``begin``: first night with odds above 0. ``prior``: noise of an earlier
level; ``previous``: the value of the last night; ``bad_nights``: recent numbers beyond ``FAR``;
``p_value``: tonight's.
"""

_NOT_A_NUMBER = ("level_values", "long_ago", "old", "new", "odds", "prior", "previous")


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


class Followers:
    """All series on their way through the nights.

    ``logs``: series x nights, the values as logarithms; ``accepted``: of each series, the nights at
    which an intended new level begins; ``now``, ``past``: of each, its ``STATE`` and its past.
    """

    def __init__(
        self, logs: Floats, accepted: Sequence[frozenset[int]] = (), alarm: float = statistic.ALARM
    ) -> None:
        self.logs, self.accepted, self.alarm = logs, tuple(accepted), alarm
        self.past = [SeriesPast() for _ in logs]
        self.now = np.zeros(len(logs), STATE)
        for name in _NOT_A_NUMBER:
            self.now[name] = np.nan
        for name in ("level_nights", "aside_night", "begin"):
            self.now[name] = NO_NIGHT
        for name in ("known", "newest_before", "aside_known"):
            self.now[name] = statistic.UNKNOWN
        self.now["p_value"] = 1.0

    def accept(self, number: int, night: int) -> None:
        """Begin a new level in a series, whatever its state."""
        past, now = self.past[number], self.now[number]
        standing = self._standing(number)
        if standing:
            past.over += [replace(change, accepted=True) for change in standing]
        elif now["known"]["count"]:
            before = float(now["known"]["level"])
            begun = statistic.change_between(ChangeKind.STEP, night, night, before, math.nan, 1.0)
            past.over.append(replace(begun, accepted=True))
        past.steps, past.drift = [], None
        if np.isfinite(now["known"]["noise"]):
            now["prior"] = now["known"]["noise"]
        self._go_on(number, [])

    def add(self, night: int, among: NDArray[np.bool_]) -> None:
        """Add a night of the series that ``among`` marks."""
        there, now = np.flatnonzero(np.isfinite(self.logs[:, night]) & among), self.now
        if not len(there):
            return
        self._sort_in(there, night)
        now["bad_nights"][there] *= 1 - 1 / statistic.MEMORY
        now["known"][there] = self._estimated(now["level_values"][there], there)
        taken = there[now["aside_night"][there] == NO_NIGHT]
        p_value, window = statistic.scan(
            now["level_values"][taken, -statistic.LONGEST :], now["newest_before"][taken]
        )
        now["p_value"][taken] = p_value
        for number in self._gone_back(there, night):
            self._end(number, int(now["begin"][number]))
        for place in np.flatnonzero(p_value <= self.alarm).tolist():
            number = int(taken[place])
            if now["p_value"][number] < 1.0:
                self._alarm(number, int(window[place]), night)
        self._look_back(there, night)

    def followed(self) -> list[Followed]:
        """Return the result of all series after their last night."""
        found = []
        for number, (past, now) in enumerate(zip(self.past, self.now, strict=True)):
            standing = self._standing(number)
            changes = [done for one in past.over if (done := self._finished(number, one))]
            changes += [*standing, *([past.aside] if past.aside else [])]
            level, noise, _, count, _ = now["known"].tolist()
            found.append(
                Followed(
                    tuple(sorted(changes, key=lambda change: change.index)),
                    math.exp(level) if count else None,
                    None if math.isnan(noise) else noise,
                    min([float(now["p_value"]), *(change.p_value for change in standing)]),
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
        return replace(change, after=float(np.exp(np.median(later[: statistic.COLD_NIGHTS]))))

    def _sort_in(self, there: Numbers, night: int) -> None:
        """Add a night to the others, or set it aside if it is far off and unlike the one before."""
        now, value = self.now, self.logs[there, night]
        known = now["known"][there]
        with np.errstate(invalid="ignore"):
            off, last = (
                (values - known["level"]) / known["noise"]
                for values in (value, now["previous"][there])
            )
            far = np.abs(off) > statistic.BAD_NIGHT
            near = np.abs(off - last) < statistic.ALIKE
            near |= far & (np.abs(last) > statistic.BAD_NIGHT)
            alike = (np.sign(off) == np.sign(last)) & near
        waiting = now["aside_night"][there] != NO_NIGHT
        released, bad = there[waiting & alike], there[waiting & ~alike]
        self._append(released, now["aside_night"][released], now["aside_known"][released])
        now["bad_nights"][bad] += now["aside_off"][bad, np.newaxis] > statistic.FAR
        for past, number in ((self.past[one], one) for one in there.tolist()):
            if past.aside is not None and number in bad:
                past.over.append(replace(past.aside, ended=night))
            past.aside = None
        now["aside_night"][there] = NO_NIGHT
        set_aside = far & ~alike & (known["count"] >= statistic.COLD_NIGHTS)
        self._append(there[~set_aside], night, known[~set_aside])
        these = there[set_aside]
        now["aside_night"][these], now["aside_off"][these] = night, np.abs(off[set_aside])
        now["aside_known"][these] = known[set_aside]
        # A second bad night alike is in its level, and listed until the next one shows a step.
        listed = set_aside | (waiting & alike)
        for number, deviations in zip(there[listed].tolist(), off[listed].tolist(), strict=True):
            self.past[number].aside = statistic.bad_night(
                self.logs[number], night, now["known"][number], deviations
            )
        now["previous"][there] = value

    def _append(self, numbers: Numbers, nights: Numbers | int, known: Estimates) -> None:
        now = self.now
        for name, new in (
            ("newest_before", known),
            ("level_values", self.logs[numbers, nights]),
            ("level_nights", nights),
        ):
            now[name][numbers, :-1] = now[name][numbers, 1:]
            now[name][numbers, -1] = new
        now["since"][numbers] += 1
        begun = numbers[now["since"][numbers] == statistic.AGO_NIGHTS]
        for place, name in enumerate(("level", "noise")):
            now["long_ago"][begun, place] = now["known"][name][begun]

    def _members(self, number: int) -> list[int]:
        return [night for night in self.now["level_nights"][number].tolist() if night != NO_NIGHT]

    def _estimated(self, rows: Floats, numbers: Numbers) -> Estimates:
        return statistic.estimated(
            rows, self.now["prior"][numbers], self.now["bad_nights"][numbers]
        )

    def _gone_back(self, there: Numbers, night: int) -> list[int]:
        """Return series that were in a step and are back at the level before it.

        By the CUSUM of the odds of both levels (Page 1954), to which a single night contributes
        little more than half.
        """
        these = there[np.isfinite(self.now["old"][there])]
        now = self.now[these]
        known, old = now["known"], now["old"]
        quiet = now["odds"] <= 0
        now["new"] = np.where(quiet, known["level"], now["new"])
        now["begin"] = np.where(quiet, night, now["begin"])
        step = (now["new"] - old) / known["noise"]
        off = (self.logs[these, night] - old) / known["noise"]
        most = 0.55 * statistic.BACK
        now["odds"] = np.maximum(now["odds"] + np.clip(step * (step / 2 - off), -most, most), 0.0)
        self.now[these] = now
        back: list[int] = these[now["odds"] > statistic.BACK].tolist()
        return back

    def _alarm(self, number: int, window: int, night: int) -> None:
        """Handle a series that left its level: for a new one, or for an earlier one."""
        members, now = self._members(number), self.now[number]
        known = now["newest_before"][-window]
        begin = statistic.first_night(self.logs[number], members[-3 * statistic.LONGEST :], known)
        begin = max(begin, members[-statistic.LONGEST :][0])
        after = np.median(self.logs[number, [n for n in members if n >= begin]])
        for place, step in enumerate(self.past[number].steps):
            if abs(after - step.known["level"]) < abs(after - now["known"]["level"]):
                del self.past[number].steps[place + 1 :]
                self._end(number, begin)
                return
        if not self._is_slope(number, night):
            self._open(number, begin, night)

    def _open(self, number: int, begin: int, night: int) -> None:
        members, now = self._members(number), self.now[number]
        nights = [n for n in members if n < begin]
        known = self._known_of(number, nights)[0]
        since = int(now["since"]) - (len(members) - len(nights))
        self.past[number].steps.append(
            OpenStep(night, nights, known, float(now["prior"]), since, now["long_ago"].copy())
        )
        now["prior"] = known["noise"]
        self._go_on(number, [n for n in members if n >= begin])

    def _end(self, number: int, begin: int) -> None:
        """End the newest step of a series from a night on: back to the level before it."""
        past, members, series = self.past[number], self._members(number), self.logs[number]
        last = past.steps.pop()
        nights = [n for n in members if n >= begin]
        bad = statistic.lone_bad_nights(series, last.known, nights)
        gone = [n for n in members if n < begin]
        past.over += [statistic.ended_step(series, last, gone, begin), *bad]
        nights = [night for night in nights if night not in {one.index for one in bad}]
        self.now["prior"][number] = last.prior
        self._go_on(number, [*last.nights, *nights])
        self.now["since"][number] = last.since + len(nights)
        self.now["long_ago"][number] = last.long_ago

    def _look_back(self, there: Numbers, night: int) -> None:
        """Compare the newest nights with those of long ago, for changes too slow to be a step."""
        for number in there.tolist():
            if (drift := self.past[number].drift) is not None:
                self._drift_on(number, drift, night)
        old = np.isfinite(self.now["long_ago"][there, 0])
        these = there[
            old & (self.now["since"][there] >= statistic.NOW_NIGHTS + statistic.AGO_NIGHTS)
        ]
        level, noise = self.now["long_ago"][these].T
        off = np.median(self.now["level_values"][these, -statistic.NOW_NIGHTS :], axis=1) - level
        p_values = _long_off(off / np.maximum(noise, self.now["known"]["noise"][these]))
        found = (p_values <= self.alarm) & (np.abs(off) >= math.log1p(statistic.LEAST_DRIFT))
        for number in these[found].tolist():
            if self.past[number].drift is None and not self._is_slope(number, night):
                members, known = self._members(number), self.now["known"][number]
                begin = statistic.first_night(self.logs[number], members, known)
                self._open(number, begin, night)

    def _is_slope(self, number: int, night: int) -> bool:
        """Check whether a slope fits better than a step; the series is then in a drift."""
        members, known = self._members(number), self.now["known"][number]
        bend = statistic.slope_begin(self.logs[number], members, known)
        if bend is None:
            return False
        if self.past[number].drift is None:
            first = members[: max(bend, statistic.FEWEST)][-statistic.AGO_NIGHTS :]
            before = float(np.median(self.logs[number, first]))
            drift = statistic.change_between(
                ChangeKind.DRIFT, members[bend], night, before, known["level"], 1.0
            )
            self._drift_on(number, drift, night)
        return True

    def _drift_on(self, number: int, drift: Change, night: int) -> None:
        """Add a night of a drift, which pauses while the series is in a later step."""
        past, now = self.past[number], self.now[number]
        past.drift = drift
        if past.steps and past.steps[-1].found > drift.found:
            return
        before = math.log(drift.before)
        off = float(np.nanmedian(now["level_values"][-statistic.NOW_NIGHTS :])) - before
        if off * drift.size < 0 or abs(off) < abs(math.log1p(drift.size)) / 2:
            past.over.append(replace(drift, ended=night))
            past.drift = None
            return
        p_value = float(_long_off(np.array(off / now["known"]["noise"])))
        past.drift = statistic.change_between(
            ChangeKind.DRIFT, drift.index, drift.found, before, before + off, p_value
        )

    def _standing(self, number: int) -> list[Change]:
        past, series = self.past[number], self.logs[number]
        if not past.steps:
            return [past.drift] if past.drift else []
        nights = [*(step.nights for step in past.steps[1:]), self._members(number)]
        standing = [
            statistic.step_of(series, step, later)
            for step, later in zip(past.steps, nights, strict=True)
        ]
        return standing + ([past.drift] if past.drift else [])

    def _known_of(self, number: int, *several: Sequence[int]) -> Estimates:
        """Return the estimates of a series as if each of ``several`` made its level."""
        rows = np.full((len(several), statistic.MEMORY), np.nan)
        for row, nights in zip(rows, several, strict=True):
            memory = list(nights)[-statistic.MEMORY :]
            row[len(row) - len(memory) :] = self.logs[number, memory]
        return self._estimated(rows, np.full(len(several), number))

    def _go_on(self, number: int, nights: Sequence[int]) -> None:
        """Continue a series at the level of these nights, without any suspicion."""
        now, memory = self.now[number], list(nights)[-statistic.MEMORY :]
        now["level_values"], now["level_nights"] = np.nan, NO_NIGHT
        if memory:
            now["level_values"][-len(memory) :] = self.logs[number, memory]
            now["level_nights"][-len(memory) :] = memory
        first = max(len(memory) - statistic.LONGEST, 0)
        known = self._known_of(number, *(memory[:end] for end in range(first, len(memory) + 1)))
        now["newest_before"] = statistic.UNKNOWN
        now["newest_before"][statistic.LONGEST - (len(memory) - first) :] = known[:-1]
        steps = self.past[number].steps
        now["known"], now["new"] = known[-1], known[-1]["level"]
        now["old"] = steps[-1].known["level"] if steps else np.nan
        now["since"], now["long_ago"] = len(memory), np.nan
        now["odds"], now["begin"], now["p_value"] = 0.0, NO_NIGHT, 1.0
        if now["aside_night"] == NO_NIGHT:
            self.past[number].aside = None


def _long_off(off: Floats) -> Floats:
    """Return p-values of standard deviations between the newest nights and long ago."""
    # The variance of a median is pi / 2 times that of a mean.
    total = off / math.sqrt(math.pi / 2 / statistic.NOW_NIGHTS + 1 / statistic.AGO_NIGHTS)
    p_values = statistic.two_sided(total, np.full(off.shape, float(statistic.AGO_NIGHTS)))
    return np.minimum(p_values / statistic.LONG_AGO_SHARE, 1.0)


def follow_all(
    series: Sequence[Sequence[float | None]],
    accepted: Sequence[Collection[int]] | None = None,
    alarm: float = statistic.ALARM,
) -> list[Followed]:
    """Follow many series of the same nights from the first to the last, as ``follow_on`` does."""
    return follow_on(series, accepted, alarm=alarm).followed()


def follow_on(
    series: Sequence[Sequence[float | None]],
    accepted: Sequence[Collection[int]] | None = None,
    known: Followers | None = None,
    places: Sequence[int] = (),
    alarm: float = statistic.ALARM,
) -> Followers:
    """Follow many series of the same nights, continuing from a known state.

    ``series``: values above 0, in any unit, None for a night without one; ``accepted``: of each,
    the nights at which an intended new level begins; ``places``: of each in ``known``, -1 for none;
    ``alarm``: p-value from which on a change is listed. A series whose nights or intended levels up
    to then differ is followed from its first night.
    """
    logs = np.log(np.array(series, dtype=float)) if series else np.empty((0, 0))
    intended = tuple(map(frozenset, accepted or [()] * len(series)))
    followers = Followers(logs, intended, alarm)
    restarted, nights = np.ones(len(series), bool), 0
    if known is not None and known.logs.shape[1] <= logs.shape[1]:
        nights = known.logs.shape[1]
        old, new = known.logs[list(places)], logs[:, :nights]
        same = ((old == new) | (np.isnan(old) & np.isnan(new))).all(axis=1)
        for number in np.flatnonzero(same & (np.array(places) >= 0)).tolist():
            place, past = places[number], known.past[places[number]]
            if known.accepted[place] == {one for one in intended[number] if one < nights}:
                restarted[number] = False
                followers.now[number] = known.now[place]
                followers.past[number] = replace(past, over=[*past.over], steps=[*past.steps])
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

    def change(values: Mapping[str, Any]) -> Change:
        return Change(**{**values, "kind": ChangeKind(values["kind"])})

    steps = []
    for step in values["steps"]:
        known = np.array(tuple(step["known"]), statistic.ESTIMATE)[()]
        steps.append(OpenStep(**{**step, "known": known, "long_ago": np.array(step["long_ago"])}))
    drift, aside = (values[name] and change(values[name]) for name in ("drift", "aside"))
    return SeriesPast([change(one) for one in values["over"]], steps, drift, aside)
