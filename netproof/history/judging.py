"""Judge a store's sessions: what changed, what alarms, and what else changed that day."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from statistics import median
from typing import Any

from netproof.errors import NetproofError
from netproof.history import accepted, series
from netproof.history import values as stored_values
from netproof.history.accepted import Acceptance
from netproof.history.changes import FALSE_SHARE, Change, ChangeKind, Followed, controlled
from netproof.history.culprits import Archive, Culprits
from netproof.history.followers import Followers, follow_on
from netproof.history.history_verdict import Event, HistoryVerdict, SeriesState, Shift
from netproof.history.selection import Quantity
from netproof.history.series import Nights, Series
from netproof.history.values import NightValues
from netproof.site.partition import ScoreBaseline
from netproof.store import Store
from netproof.store.tables import KEY

Key = tuple[Any, ...]

AROUND = 10
"""Nights on either side of a change that show whether it is the baseline's."""

SAME_NIGHT = 2
"""Nights within which changes of one configuration are one event.

Where nothing differs at it, as many sessions before and after it are searched.
"""


def judge(
    store: Store,
    system: str | None = None,
    session: str | None = None,
    *,
    last: int | None = None,
    since: date | None = None,
    labels: Mapping[str, str] | None = None,
) -> HistoryVerdict:
    """Follow every series of a system up to and with a session, and judge the changes.

    The sessions are those that ``series.chosen`` returns for ``system`` to ``labels``. Raise
    NetproofError without sessions, where the last one is named and cannot be read or none can, and
    where an acceptance cannot.
    """
    system, sessions = series.chosen(store, system, session, last=last, since=since, labels=labels)
    acceptances = accepted.load(store, system)
    known = stored_values.load(store, system)
    nights, values = series.read(store, system, sessions, known)
    if session not in (None, "newest") and nights.sessions[-1] != sessions[-1]:
        raise NetproofError("; ".join(nights.unread))
    verdict, new, state = _judged(store, nights, values, acceptances, known)
    if (last, since, labels or None) == (None, None, None) and sessions[-1] == store.newest(system):
        before = known.state and known.state.accepted
        if (new.series, new.marks, state.accepted) != (known.series, known.marks, before):
            try:
                stored_values.put(store, system, new, state)
            except NetproofError as error:
                verdict = dataclasses.replace(verdict, not_kept=str(error))
    return verdict


def judge_with(verdict: HistoryVerdict, store: Store, acceptance: Acceptance) -> HistoryVerdict:
    """Judge the same nights of ``store`` with one more acceptance."""
    known = stored_values.load(store, verdict.system)
    acceptances = (*verdict.acceptances, acceptance)
    return _judged(store, verdict.nights, known, acceptances, known)[0]


def _judged(
    store: Store,
    nights: Nights,
    values: NightValues,
    acceptances: tuple[Acceptance, ...],
    known: NightValues,
) -> tuple[HistoryVerdict, NightValues, Followers]:
    """Judge the nights; return the verdict, and values and state to store."""
    every = [*nights.series, *nights.pools]
    keys = [
        *((tuple(getattr(one.case, name) for name in KEY), one.quantity) for one in nights.series),
        *((one.where, one.quantity) for one in nights.pools),
    ]
    before, places = known.going_on([stored.name for stored in nights.sessions], keys)
    intended = [accepted.nights(acceptances, nights.sessions, one) for one in every]
    state = follow_on([one.values for one in every], intended, before, places)
    by_series = dict(zip(every, state.followed(), strict=True))
    shifts = tuple(_shifts(nights, by_series))
    verdict = HistoryVerdict(
        nights,
        by_series,
        shifts,
        tuple(_events(Archive(store), nights, by_series, shifts)),
        tuple(_bad_nights(nights, shifts)),
        acceptances,
    )
    return verdict, dataclasses.replace(values, series=tuple(keys), state=state), state


def _shifts(nights: Nights, followed: Mapping[Series, Followed]) -> Iterator[Shift]:
    out = controlled({one: found.p_value for one, found in followed.items()})
    odd = _odd(followed)
    means = {one.case.key(): one for one in nights.series if one.quantity is Quantity.MEAN}
    for one, found in followed.items():
        for change in found.changes:
            if change.kind is ChangeKind.BAD_NIGHT:
                state = SeriesState.BAD_NIGHT if one in odd[change.index] else SeriesState.ODD_NIGHT
            elif change.accepted:
                state = SeriesState.ACCEPTED
            elif change.ended is not None:
                state = SeriesState.ENDED
            elif one not in out or all(
                other.p_value > FALSE_SHARE for other in found.changes if other.open
            ):
                state = SeriesState.SUSPECTED
            elif _of_baseline(nights.baseline, means, one, change):
                state = SeriesState.BASELINE
            else:
                state = SeriesState.OPEN
            yield Shift(one, change, state)


def _odd(followed: Mapping[Series, Followed]) -> dict[int, frozenset[Series]]:
    """Return by night the series whose bad night stands out among all."""
    on: dict[int, dict[Series, float]] = defaultdict(lambda: dict.fromkeys(followed, 1.0))
    for one, found in followed.items():
        for change in found.changes:
            if change.kind is ChangeKind.BAD_NIGHT:
                on[change.index][one] = change.p_value
    return {night: controlled(p_values) for night, p_values in on.items()}


def _of_baseline(
    baseline: ScoreBaseline | None, means: Mapping[Key, Series], one: Series, change: Change
) -> bool:
    """Check whether a score moved with the baseline's times, and not with its own cases'.

    ``means``: the series of mean times, by the key of their case.
    """
    if baseline is None or one.quantity is not Quantity.SCORE:
        return False
    own, of_baseline = [], []
    for case in one.cases:
        counterpart = dataclasses.replace(case, **dataclasses.asdict(baseline))
        moved, its = (_moved(means, it.key(), change.index) for it in (case, counterpart))
        if moved is not None and its is not None:
            own.append(moved)
            of_baseline.append(its)
    return bool(own) and abs(median(of_baseline)) > abs(median(own))


def _moved(means: Mapping[Key, Series], case: Key, night: int) -> float | None:
    values = means[case].values if case in means else ()
    before = [value for value in values[max(night - AROUND, 0) : night] if value]
    after = [value for value in values[night : night + AROUND] if value]
    return math.log(median(after) / median(before)) if before and after else None


def _events(
    archive: Archive,
    nights: Nights,
    followed: Mapping[Series, Followed],
    shifts: Sequence[Shift],
) -> list[Event]:
    by_place: dict[tuple[str, str], list[Shift]] = defaultdict(list)
    for shift in shifts:
        if shift.state is SeriesState.OPEN:
            by_place[shift.of.where].append(shift)
    found = []
    for place, several in by_place.items():
        drifting, left = _drifting(followed, several)
        if drifting:
            night = sorted(shift.change.index for shift in drifting)[len(drifting) // 2]
            found.append(_event(archive, nights, place, night, drifting, drift=True))
        while left:
            # The night that most of them are dated to; the first of several.
            counts = Counter(shift.change.index for shift in left)
            night = min(counts, key=lambda index: (-counts[index], index))
            near = [one for one in left if abs(one.change.index - night) <= SAME_NIGHT]
            left = [one for one in left if one not in near]
            found.append(_event(archive, nights, place, night, near, drift=False))
    return sorted(found, key=lambda event: event.shifts[0].weight)


def _drifting(
    followed: Mapping[Series, Followed], shifts: Sequence[Shift]
) -> tuple[list[Shift], list[Shift]]:
    """Return a configuration's drifting series, each as one shift; and the shifts of others.

    A drift is found as a drift, as a stair of steps in one direction, or as both. A stair alone is
    a drift only where another series has one.
    """
    kinds = {shift.change.kind for shift in shifts}
    drifting, steps = [], []
    for one, group in itertools.groupby(shifts, key=lambda shift: shift.of):
        several = list(group)
        directions, level = {shift.worse for shift in several}, followed[one].level
        slow = any(shift.change.kind is ChangeKind.DRIFT for shift in several)
        stair = ChangeKind.DRIFT in kinds and len(several) > 1
        if len(directions) > 1 or level is None or not (slow or stair):
            steps += several
            continue
        changes = sorted((shift.change for shift in several), key=lambda change: change.index)
        whole = dataclasses.replace(
            changes[0],
            kind=ChangeKind.DRIFT,
            after=level,
            size=level / changes[0].before - 1,
            p_value=min(change.p_value for change in changes),
        )
        drifting.append(Shift(one, whole, SeriesState.OPEN))
    return drifting, steps


def _event(
    archive: Archive,
    nights: Nights,
    place: tuple[str, str],
    night: int,
    shifts: list[Shift],
    *,
    drift: bool,
) -> Event:
    cases = list(dict.fromkeys(case for shift in shifts for case in shift.of.cases))
    measured = [
        index
        for index in range(len(nights.sessions))
        if any(shift.of.values[index] is not None for shift in shifts)
    ]
    earlier = [index for index in measured if index < night]

    def between(before: int, after: int) -> Culprits:
        was, now = nights.sessions[before], nights.sessions[after]
        try:
            return archive.culprits(was, now, cases)
        except NetproofError as error:
            return Culprits(was, now, (), {f"what else changed ({error})": str(error)})

    # A drift has no day: the differences are those between before it and now.
    culprits = between(earlier[-1], measured[-1] if drift else night)
    alongside = []
    if not drift and not any(difference.own for difference in culprits.differences):
        at = len(earlier)
        around = measured[max(at - SAME_NIGHT - 1, 0) : at + SAME_NIGHT + 1]
        alongside = [
            found
            for before, after in itertools.pairwise(around)
            if after != night and (found := between(before, after)).differences
        ]
    return Event(
        *place,
        nights.sessions[night],
        tuple(sorted(shifts, key=lambda shift: shift.weight)),
        culprits,
        tuple(alongside),
    )


def _bad_nights(nights: Nights, shifts: Sequence[Shift]) -> list[Event]:
    """Return the nights that stand out, and whatever was off tonight, still unexplained."""
    tonight = len(nights.sessions) - 1
    on: dict[tuple[int, tuple[str, str]], list[Shift]] = defaultdict(list)
    for shift in shifts:
        night = shift.change.index
        if shift.state is SeriesState.BAD_NIGHT or (
            shift.state is SeriesState.ODD_NIGHT and night == tonight
        ):
            on[night, shift.of.where].append(shift)
    return [
        Event(*place, nights.sessions[night], tuple(sorted(several, key=lambda one: one.weight)))
        for (night, place), several in sorted(
            on.items(), key=lambda item: (-item[0][0], item[0][1])
        )
    ]
