"""The verdict on a history: shifts, events, odd nights and levels of series, with reasons."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, cached_property

from netproof.errors import NetproofError
from netproof.history.accepted import Acceptance
from netproof.history.changes import Change, ChangeKind, Followed, expected_false_alarms
from netproof.history.culprits import NODE_MAPS, Culprits
from netproof.history.followers import follow
from netproof.history.selection import Selection
from netproof.history.series import Nights, Series
from netproof.store import StoredSession

NOTHING_WORSE, WORSE, NOT_READ = 0, 1, 3
"""Exit statuses; the last: nothing is worse, and a session cannot be read."""


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
            chance = all(shift.state is SeriesState.ODD_NIGHT for shift in self.shifts)
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


@dataclass(frozen=True)
class SeriesLevel:
    """A series' level from a ``first`` to a ``last`` night.

    ``low``, ``high``: limits for an expected night, ``BAND_DEVIATIONS`` standard deviations.
    """

    first: int
    last: int
    value: float
    low: float
    high: float


@cache
def least_nights() -> int:
    """Return the nights that a series needs before a change can show, by the detection."""
    return next(
        nights
        for nights in itertools.count(2)
        for before in range(1, nights)
        if follow([1.0] * before + [2.0] * (nights - before)).p_value < 1
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
        count = len(self.nights.sessions)
        sessions = f"{count} session{'s' if count > 1 else ''} of {self.system}"
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
        """Return 1 for an open change for the worse, 3 for an unreadable session, else 0."""
        if any(event.worse for event in self.events):
            return WORSE
        return NOT_READ if self.nights.unread else NOTHING_WORSE

    def levels(self, one: Series) -> tuple[SeriesLevel, ...]:
        """Return the levels that a series went through, one after the other."""
        found = self.followed[one]
        if found.level is None or found.noise is None:
            return ()
        steps = [change for change in found.changes if change.kind is not ChangeKind.BAD_NIGHT]
        # Each entry begins a level; the last one of a night counts.
        begins = {0: steps[0].before if steps else found.level}
        for change in steps:
            begins[change.index] = change.after
            if change.ended is not None:
                begins[change.ended] = found.level if change is steps[-1] else change.before
        width = math.exp(BAND_DEVIATIONS * found.noise)
        order = [*sorted(begins), len(self.nights.sessions)]
        return tuple(
            SeriesLevel(first, later - 1, level, level / width, level * width)
            for first, later in itertools.pairwise(order)
            for level in [begins[first]]
        )

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
        inconclusive = tuple(one for one in self.nights.inconclusive if one.case in cases)
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
        if kind not in NODE_MAPS or counts[kind] == 1:
            yield name
        elif name == next(one for one in unknown if one.startswith(f"{kind} ")):
            yield f"{counts[kind]} {kind}"


def _parts_of(events: Iterable[Event], these: Collection[Series]) -> tuple[Event, ...]:
    parts = (
        dataclasses.replace(one, shifts=tuple(it for it in one.shifts if it.of in these))
        for one in events
    )
    return tuple(one for one in parts if one.shifts)
