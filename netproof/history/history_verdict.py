"""The verdict on a store's sessions: what changed and alarms, and what else changed that day."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from functools import cache, cached_property
from statistics import median
from typing import Any

from netproof.errors import NetproofError, counted, grouped
from netproof.history import series
from netproof.history import values as stored_values
from netproof.history.changes import (
    FALSE_SHARE,
    Change,
    ChangeKind,
    Followed,
    controlled,
    expected_false_alarms,
)
from netproof.history.culprits import Archive, Culprits
from netproof.history.followers import follow_all, follow_on
from netproof.history.selection import Quantity, Selection
from netproof.history.series import Acceptance, Nights, Series
from netproof.history.values import NightValues
from netproof.session.node_facts import GROUPS
from netproof.site.partition import ScoreBaseline
from netproof.store import Store, StoredSession
from netproof.store.tables import KEY

NOTHING_WORSE, WORSE, INCONCLUSIVE = 0, 1, 3
"""Exit statuses; the last: nothing is worse, and nothing or not every session could be judged."""


NIGHTS_A_MONTH = 30

MOST_SHIFTS = 4
"""Changes of an event that a sentence names; the worst are first."""

MOST_DIFFERENCES = 8
"""Other changes that a sentence names; ``--format json`` has all of them."""

ACCEPT_BETTER = "accept it, so that losing it again shows"

BAND_DEVIATIONS = 2.0
"""Half the width of a level's band, in standard deviations of a night."""

_SUREST = 1e-6


class SeriesState(StrEnum):
    """State of a change."""

    OPEN = "open"
    """It stands, and stands out among all series: for the worse, it alarms."""
    SUSPECTED = "suspected"
    """It stands, but chance brings as much among so many series."""
    BASELINE = "of the baseline"
    """A score that moved because its baseline did."""
    ENDED = "ended"
    ACCEPTED = "accepted"
    BAD_NIGHT = "bad night"
    """One night alone was off, and stands out among all series."""
    ODD_NIGHT = "odd night"
    """One night alone was off, as chance brings it among so many series."""


@dataclass(frozen=True)
class Shift:
    """One change of one series or pool, ``of``, with its state and direction."""

    of: Series
    change: Change
    state: SeriesState

    @property
    def worse(self) -> bool:
        """Check whether the level went the wrong way."""
        return (self.change.size > 0) == self.of.quantity.rising_is_worse

    @property
    def what(self) -> str:
        """Return the name of what changed, without the configuration."""
        if self.of.pooled:
            return f"{self.of.quantity.label}, {len(self.of.cases)} cases pooled"
        return f"{self.of.case.what()}, {self.of.quantity.label}"

    def __str__(self) -> str:
        values = ""
        if not self.of.pooled:
            unit = f" {self.of.quantity.unit}".rstrip()
            values = f" from {self.change.before:.4g} to {self.change.after:.4g}{unit},"
        drift = " by drifting" if self.change.kind is ChangeKind.DRIFT else ""
        return (
            f"{self.what}{values} {100 * self.change.size:+.1f} %{drift} (confidence"
            f" {confidence(self.change.p_value)})"
        )

    @property
    def weight(self) -> tuple[bool, bool, float]:
        """Return a sort key: the worse, the pooled, the larger first."""
        return not self.worse, not self.of.pooled, -abs(math.log1p(self.change.size))


@dataclass(frozen=True)
class Event:
    """Changes of one configuration that began together, or a night on which it alone was off.

    ``session``: the first at the new level, or that of the bad night; ``shifts``: in order of
    their ``weight``; ``culprits``: other changes since the last session before it that measured
    them, None of a bad night; ``around``: where the configuration has none, changes between the
    sessions around.
    """

    partition: str
    environment: str
    session: StoredSession
    shifts: tuple[Shift, ...]
    culprits: Culprits | None = None
    around: tuple[Culprits, ...] = ()

    @property
    def worse(self) -> bool:
        """Check whether any change is for the worse."""
        return self.shifts[0].worse

    def sentence(self) -> str:
        """Return since when, the largest changes first, and what else changed."""
        shifts = _listed(map(str, self.shifts), MOST_SHIFTS)
        where = f"{self.partition} {self.environment}"
        when = f"{self.session.start:%Y-%m-%d %H:%M} (session {self.session.name}): {shifts}"
        if self.culprits is None:
            chance = all(shift.state is not SeriesState.BAD_NIGHT for shift in self.shifts)
            as_much = "; among so many series chance brings as much" if chance else ""
            return f"{where} had a bad night on {when}{as_much}"
        word = "worse" if self.worse else "better"
        return f"{where} is {word} since {when}. {' '.join(self.changed())}"

    def changed(self) -> tuple[str, ...]:
        """Return what else changed, also around it, and what is not known, a sentence each."""
        culprits = self.culprits
        if culprits is None:
            return ()
        when = f"since the session before, {culprits.before.start:%Y-%m-%d %H:%M}"
        if culprits.after != self.session:
            when += f", until {culprits.after.start:%Y-%m-%d %H:%M}"
        sentences = [f"Nothing that is recorded changed {when}."]
        if culprits.differences:
            sentences = [f"Changed {when}: {_listed(map(str, culprits.differences))}."]
        sentences += [
            f"Changed from {one.before.start:%Y-%m-%d %H:%M} to {one.after.start:%Y-%m-%d %H:%M}:"
            f" {_listed(map(str, one.differences))}."
            for one in self.around
        ]
        if culprits.unknown:
            sentences.append(f"Not known: {', '.join(_kinds(culprits.unknown))}.")
        return tuple(sentences)

    @property
    def pooled(self) -> tuple[Shift, ...]:
        """Return the shifts of several series together."""
        return tuple(shift for shift in self.shifts if shift.of.pooled)

    @property
    def single(self) -> tuple[Shift, ...]:
        """Return the shifts of one series each."""
        return tuple(shift for shift in self.shifts if not shift.of.pooled)


@cache
def least_nights() -> int:
    """Return the nights that a series needs before a change can show, by the detection."""
    return next(
        nights
        for nights in itertools.count(2)
        for one in follow_all([[1.0] * at + [2.0] * (nights - at) for at in range(1, nights)])
        if one.p_value < 1
    )


@dataclass(frozen=True)
class HistoryVerdict:
    """The verdict on a system's history, up to and with the last of its sessions.

    ``followed``: each series and pool; ``shifts``: every change, whatever its state; ``events``:
    the open ones, the worse and larger first; ``bad_nights``: those that stand out, and whatever
    was off tonight, the latest first; ``acceptances``: all of the system's; ``not_kept``: why the
    state was not stored.
    """

    nights: Nights
    followed: Mapping[Series, Followed]
    shifts: tuple[Shift, ...]
    events: tuple[Event, ...]
    bad_nights: tuple[Event, ...]
    acceptances: tuple[Acceptance, ...]
    not_kept: str = ""

    @property
    def system(self) -> str:
        """Return the system."""
        return self.nights.system

    @property
    def session(self) -> StoredSession:
        """Return the last session."""
        return self.nights.sessions[-1]

    @cached_property
    def tested(self) -> int:
        """Return the number of series and pools with enough nights to be tested."""
        least = least_nights()
        return sum(len(one.values) - one.values.count(None) >= least for one in self.followed)

    @property
    def too_few(self) -> str | None:
        """Return why nothing could be judged, None where something was."""
        if self.tested:
            return None
        sessions = f"{counted(len(self.nights.sessions), 'session')} of {self.system}"
        if not self.followed:
            return (
                f"{sessions}: no case was measured whole by undisturbed launches in them, so there"
                " is nothing to follow"
            )
        return f"{sessions}: too few to judge, {least_nights()} needed that measured the same case"

    @property
    def false_alarms_a_month(self) -> float:
        """Return the expected number of false alarms in as many unchanged series."""
        return expected_false_alarms(self.tested, NIGHTS_A_MONTH)

    def sentences(self) -> tuple[str, ...]:
        """Return the message, the most important first, a line each."""
        if self.too_few:
            return (self.too_few, *self.nights.unread)
        sessions = self.nights.sessions
        quiet = (
            f"no change shows over {len(sessions)} sessions since {sessions[0].start:%Y-%m-%d}; a"
            " step of tonight can show tomorrow"
        )
        return (
            *(event.sentence() for event in self.events if event.worse),
            *(f"{one.sentence()}; {ACCEPT_BETTER}" for one in self.events if not one.worse),
            *(odd.sentence() for odd in self.bad_nights if odd.session == self.session),
            *([] if self.events else [quiet]),
            *self.nights.unread,
        )

    def control(self) -> str:
        """Return the sentence on how many series were tested, and the expected false alarms."""
        return (
            f"{self.tested} of {len(self.followed)} series tested, those that are pooled included;"
            f" if nothing changes, {self.false_alarms_a_month:.2g} false alarms a month are to be"
            f" expected of all of them together"
        )

    @property
    def status(self) -> int:
        """Return 1 for an open change for the worse, 3 if not all could be judged, else 0."""
        if any(event.worse for event in self.events):
            return WORSE
        return INCONCLUSIVE if self.nights.unread or self.too_few else NOTHING_WORSE

    def levels(self, one: Series) -> Iterator[tuple[int, int, float, float, float]]:
        """Yield first and last night, value, and band's ends of each level of a series in turn.

        The band is where nights are expected: ``BAND_DEVIATIONS`` standard deviations around it.
        """
        found = self.followed[one]
        if found.level is None or found.noise is None:
            return
        steps = [change for change in found.changes if change.kind is not ChangeKind.BAD_NIGHT]
        # Each entry begins a level; the last one of a night counts.
        begins = {0: steps[0].before if steps else found.level}
        for change in steps:
            begins[change.index] = change.after
            if change.ended is not None:
                begins[change.ended] = found.level if change is steps[-1] else change.before
        width = math.exp(BAND_DEVIATIONS * found.noise)
        for first, later in itertools.pairwise([*sorted(begins), len(self.nights.sessions)]):
            level = begins[first]
            yield first, later - 1, level, level / width, level * width

    def of(self, selection: Selection) -> HistoryVerdict:
        """Return the verdict on some series alone; what stands out is as judged among all.

        Raise NetproofError for a selection without series.
        """
        series, pools = (
            tuple(filter(selection.covers, several))
            for several in (self.nights.series, self.nights.pools)
        )
        if not series:
            raise NetproofError(
                f"no series of {self.system} fits: {selection}; 'netproof history --case .' lists"
                " what is followed"
            )
        cases = {one.case for one in series}
        every = self.nights.inconclusive
        inconclusive = {key: why for key, why in every.items() if key[1] in cases}
        these = {*series, *pools}
        return dataclasses.replace(
            self,
            nights=dataclasses.replace(
                self.nights, series=series, pools=pools, inconclusive=inconclusive
            ),
            shifts=tuple(shift for shift in self.shifts if shift.of in these),
            events=_parts_of(self.events, these),
            bad_nights=_parts_of(self.bad_nights, these),
        )


def confidence(p_value: float) -> str:
    """Return one minus a p-value in percent, with enough digits to differ from 100."""
    if p_value < _SUREST:
        return f"above {100 * (1 - _SUREST):.4f} %"
    digits = max(math.ceil(-math.log10(p_value)) - 2, 0)
    return f"{100 * (1 - p_value):.{digits}f} %"


def _listed(items: Iterable[str], most: int = MOST_DIFFERENCES) -> str:
    several = list(items)
    beyond = len(several) - most
    return "; ".join(several[:most]) + (f"; and {beyond} more" if beyond > 0 else "")


def _kinds(unknown: Mapping[str, str]) -> Iterator[str]:
    """Yield what is not known, without reasons; of several sysctls or offloads the number."""
    counts = Counter(name.partition(" ")[0] for name in unknown)
    for name in unknown:
        kind = name.partition(" ")[0]
        if kind not in GROUPS or counts[kind] == 1:
            yield name
        elif name == next(one for one in unknown if one.startswith(f"{kind} ")):
            yield f"{counts[kind]} {kind}"


def _parts_of(events: Iterable[Event], these: Collection[Series]) -> tuple[Event, ...]:
    parts = (
        dataclasses.replace(one, shifts=tuple(it for it in one.shifts if it.of in these))
        for one in events
    )
    return tuple(one for one in parts if one.shifts)


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
    acceptances = series.acceptances(store, system)
    known = stored_values.load(store, system)
    nights = series.read(store, system, sessions, known)
    if session not in (None, "newest") and nights.sessions[-1] != sessions[-1]:
        raise NetproofError("; ".join(nights.unread))
    verdict, new = _judged(store, nights, acceptances, known)
    if (last, since, labels or None) == (None, None, None) and sessions[-1] == store.newest(system):
        intended = [one.state and one.state.accepted for one in (new, known)]
        if (new.series, new.marks, intended[0]) != (known.series, known.marks, intended[1]):
            try:
                stored_values.put(store, system, new)
            except NetproofError as error:
                verdict = dataclasses.replace(verdict, not_kept=str(error))
    return verdict


def judge_with(verdict: HistoryVerdict, store: Store, acceptance: Acceptance) -> HistoryVerdict:
    """Judge the same nights of ``store`` with one more acceptance."""
    known = stored_values.load(store, verdict.system)
    acceptances = (*verdict.acceptances, acceptance)
    return _judged(store, verdict.nights, acceptances, known)[0]


def _judged(
    store: Store,
    nights: Nights,
    acceptances: tuple[Acceptance, ...],
    known: NightValues,
) -> tuple[HistoryVerdict, NightValues]:
    """Judge the nights; return the verdict, and values with the state, to store."""
    every = [*nights.series, *nights.pools]
    keys = [
        *((tuple(getattr(one.case, name) for name in KEY), one.quantity) for one in nights.series),
        *((one.where, one.quantity) for one in nights.pools),
    ]
    before, places = known.going_on([stored.name for stored in nights.sessions], keys)
    intended = [series.accepted_nights(acceptances, nights.sessions, one) for one in every]
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
    return verdict, dataclasses.replace(nights.known, series=tuple(keys), state=state)


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
            elif _of_baseline(nights.known.baseline, means, one, change):
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
    by_place = grouped((one.of.where, one) for one in shifts if one.state is SeriesState.OPEN)
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
    stepped = {one.of.where for one in shifts if one.state is SeriesState.OPEN}
    on: dict[tuple[int, tuple[str, str]], list[Shift]] = defaultdict(list)
    for shift in shifts:
        night, state, place = shift.change.index, shift.state, shift.of.where
        if state is SeriesState.SUSPECTED and night == tonight - 1 and place not in stepped:
            # A step of two nights that does not stand out: the second bad one in a row.
            on[tonight, place].append(shift)
        elif state is SeriesState.BAD_NIGHT or (
            state is SeriesState.ODD_NIGHT and night == tonight
        ):
            on[night, place].append(shift)
    return [
        Event(*place, nights.sessions[night], tuple(sorted(several, key=lambda one: one.weight)))
        for (night, place), several in sorted(
            on.items(), key=lambda item: (-item[0][0], item[0][1])
        )
    ]
