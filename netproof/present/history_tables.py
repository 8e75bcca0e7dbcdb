"""The history on a terminal: changes, in tables and lines of characters."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.text import Text

from netproof.history import history_verdict
from netproof.history.changes import ChangeKind
from netproof.history.history_verdict import (
    Event,
    HistoryVerdict,
    Odd,
    SeriesState,
    Shift,
    confidence,
)
from netproof.history.series import Pool, Series
from netproof.measurement.case import Case
from netproof.present import tables
from netproof.present.sparkline import columns, readable, sparkline
from netproof.present.tables import TableColumn, say
from netproof.store import StoredSession

SERIES_OF_EVENT = 6
"""Single series of an event in its table; ``--json`` has all of them."""

BAD_NIGHTS_LISTED = 5
"""Latest bad nights that are listed."""

CASES_BY_SESSION = 4
"""Most cases that are shown session by session."""

INCONCLUSIVE_LISTED = 5
"""Latest inconclusive cases that are listed; ``--json`` has all of them."""

_LEAST_LINE, _LONGEST_LINE = 10, 60

_WORSE, _BETTER, _ODD, _INCONCLUSIVE = "▼", "▲", "✗", "?"

_STYLES = {_WORSE: "bold red", _BETTER: "green", _ODD: "yellow", _INCONCLUSIVE: "yellow"}

_LEGEND = (
    f"{_WORSE} worse, {_BETTER} better, {_ODD} one bad night; size: of the new level against the"
    " old one; confidence: that it is not chance, of this series alone"
)


def print_overview(verdict: HistoryVerdict, out: Console) -> None:
    """Print open events, the worst first; bad nights; counts of everything else."""
    say(out, _span(verdict))
    if verdict.too_few:
        say(out, verdict.too_few, "yellow")
        _print_crashes(verdict, out)
        _print_counted(verdict, out)
        _print_notes(verdict, out)
        return
    worse = [event for event in verdict.events if event.worse]
    if worse:
        places = {(event.partition, event.environment) for event in worse}
        count = sum(shift.worse for event in worse for shift in event.single)
        say(
            out,
            f"WORSE: {len(worse)} change{'s' if len(worse) > 1 else ''} in {len(places)}"
            f" configuration{'s' if len(places) > 1 else ''}, {count} series",
            "bold red",
        )
    else:
        say(out, "nothing is worse", "bold green")
    for event in verdict.events:
        out.print()
        _print_event(event, out)
    if verdict.events:
        out.print()
        say(out, _LEGEND, "dim")
    if any(not event.worse for event in verdict.events):
        say(out, f"for the better: {history_verdict.ACCEPT_BETTER} (netproof history accept)")
    _print_bad_nights(verdict.bad_nights, out)
    _print_inconclusive(verdict, out, [verdict.session])
    _print_crashes(verdict, out)
    _print_counted(verdict, out)
    _print_counts(verdict, out)
    _print_notes(verdict, out)


def _span(verdict: HistoryVerdict) -> str:
    sessions = verdict.nights.sessions
    return (
        f"history of {verdict.system}: {len(sessions)} session{'s' if len(sessions) > 1 else ''}"
        f" from {_date(sessions[0])} to {_date(sessions[-1])}"
    )


def _date(stored: StoredSession) -> str:
    return f"{stored.start:%Y-%m-%d %H:%M}"


def since_when(event: Event) -> str:
    """Return where an event is, since when, and between which sessions."""
    return (
        f"{event.partition} {event.environment} since {_date(event.session)}"
        f" (session {event.session.name})"
    )


def _print_event(event: Event, out: Console) -> None:
    mark = _WORSE if event.worse else _BETTER
    say(out, f"{mark} {since_when(event)}", _STYLES[mark])
    shown = [*event.pooled, *event.single[:SERIES_OF_EVENT]]
    _print_shifts(shown, out)
    beyond = len(event.single) - SERIES_OF_EVENT
    if beyond > 0:
        say(out, f"  and {beyond} more series")
    for sentence in event.changed():
        say(out, f"  {sentence}")


def _print_shifts(shifts: Sequence[Shift], out: Console) -> None:
    marks = [_mark(shift) for shift in shifts]
    tables.print_table(
        [
            TableColumn("", [Text(f"  {mark}", _STYLES[mark]) for mark in marks], right=False),
            TableColumn("series", [shift.what for shift in shifts], right=False),
            TableColumn("before", [_level(shift.of, shift.change.before) for shift in shifts]),
            TableColumn("after", [_level(shift.of, shift.change.after) for shift in shifts]),
            TableColumn("", [_unit(shift.of) for shift in shifts], right=False),
            TableColumn("size", [f"{100 * shift.change.size:+.1f} %" for shift in shifts]),
            TableColumn("confidence", [confidence(shift.change.p_value) for shift in shifts]),
            TableColumn("", [_kind(shift) for shift in shifts], right=False),
        ],
        out,
    )


def _mark(shift: Shift) -> str:
    if shift.change.kind is ChangeKind.BAD_NIGHT:
        return _ODD
    return _WORSE if shift.worse else _BETTER


def _level(of: Series | Pool, value: float) -> str:
    # What is pooled is relative to the level of each series.
    return "-" if isinstance(of, Pool) else f"{value:.4g}"


def _unit(of: Series | Pool) -> str:
    return "" if isinstance(of, Pool) else of.quantity.unit


def _kind(shift: Shift) -> str:
    return "drift" if shift.change.kind is ChangeKind.DRIFT else ""


def _print_bad_nights(bad_nights: Sequence[Odd], out: Console) -> None:
    if not bad_nights:
        return
    out.print()
    say(out, "single bad nights", "bold")
    for odd in bad_nights[:BAD_NIGHTS_LISTED]:
        say(out, f"{_ODD} {odd.sentence()}", _STYLES[_ODD])
    beyond = len(bad_nights) - BAD_NIGHTS_LISTED
    if beyond > 0:
        say(out, f"  and {beyond} before")


def _print_inconclusive(
    verdict: HistoryVerdict, out: Console, sessions: Sequence[StoredSession]
) -> None:
    """Print the values of these sessions that count in no series, and why; of others the count."""
    every = verdict.nights.inconclusive
    if not every:
        return
    here = [one for one in every if one.session in sessions]
    out.print()
    count = len({one.session for one in every})
    often = "once" if len(every) == 1 else f"{len(every)} times"
    say(
        out,
        f"a case was inconclusive {often}, in {count} of"
        f" {len(verdict.nights.sessions)} sessions: what was measured then counts in no series",
        _STYLES[_INCONCLUSIVE],
    )
    for one in here[::-1][:INCONCLUSIVE_LISTED]:
        say(out, f"{_INCONCLUSIVE} {_date(one.session)} {one.sentence()}", _STYLES[_INCONCLUSIVE])
    beyond = len(here) - INCONCLUSIVE_LISTED
    if beyond > 0:
        say(out, f"  and {beyond} more")


def _print_crashes(verdict: HistoryVerdict, out: Console) -> None:
    """Print how many launches crashed, for each configuration that had a crash."""
    several = [one for one in verdict.nights.crashes if any(one.crashed)]
    if several:
        out.print()
        say(out, "launches that crashed", "bold")
    for one in several:
        say(out, one.sentence(), "yellow")


def _print_counted(verdict: HistoryVerdict, out: Console) -> None:
    """Print the sessions with network errors or carrier changes, for each node with any."""
    several = [one for one in verdict.nights.counted if one.amiss]
    if several:
        out.print()
        say(out, "what nodes' networks counted", "bold")
    for one in several:
        say(out, one.sentence(), "yellow")


def _print_counts(verdict: HistoryVerdict, out: Console) -> None:
    counts = Counter(shift.state for shift in verdict.shifts)
    out.print()
    say(out, f"{verdict.control()}.")
    parts = [
        f"{counts[state]} {words}"
        for state, words in (
            (SeriesState.SUSPECTED, "suspected, no more than chance brings among so many series"),
            (SeriesState.BASELINE, "of scores that moved with the score baseline"),
            (SeriesState.ENDED, "ended, whether they ever stood out or not"),
            (SeriesState.ACCEPTED, "accepted"),
        )
        if counts[state]
    ]
    if parts:
        say(out, f"Not open, of all changes found: {'; '.join(parts)}.")


def _print_notes(verdict: HistoryVerdict, out: Console) -> None:
    nights = verdict.nights
    if nights.baseline is None:
        say(out, "No scores are followed: no session names a score baseline.", "yellow")
    if nights.left:
        say(out, f"{nights.left} series are followed no longer: no recent session measured them.")
    if nights.other_sizes:
        say(
            out,
            f"{nights.other_sizes} values are left out, of other message sizes than the newest of"
            " their case.",
            "yellow",
        )
    for acceptance in verdict.acceptances:
        say(out, f"accepted: {acceptance}")


def print_series(verdict: HistoryVerdict, out: Console) -> None:
    """Print the series of some cases: a line each, the changes, and session by session."""
    say(out, _span(verdict))
    by_case: dict[Case, list[Series]] = defaultdict(list)
    for one in verdict.nights.series:
        by_case[one.case].append(one)
    if verdict.too_few:
        say(out, verdict.too_few, "yellow")
    _print_lines(verdict, by_case, out)
    if any(shift for shift in verdict.shifts):
        _print_changes(verdict, out)
    for event in verdict.events:
        out.print()
        say(out, since_when(event), _STYLES[_WORSE if event.worse else _BETTER])
        for sentence in event.changed():
            say(out, f"  {sentence}")
    _print_inconclusive(verdict, out, verdict.nights.sessions)
    if len(by_case) > CASES_BY_SESSION:
        out.print()
        say(
            out,
            f"{len(by_case)} cases: session by session are shown up to {CASES_BY_SESSION}; say"
            " more of the case to see them",
        )
        return
    for case, several in by_case.items():
        out.print()
        say(out, f"{case.partition} {case.environment} {case.what()}", "bold")
        _print_sessions(verdict, several, out)


def _print_lines(
    verdict: HistoryVerdict, by_case: Mapping[Case, Sequence[Series]], out: Console
) -> None:
    every = [one for several in by_case.values() for one in several]
    found = [verdict.followed[one] for one in every]
    shown = [
        TableColumn("series", [one.quantity.title for one in every], right=False),
        TableColumn("level", ["-" if f.level is None else f"{f.level:.4g}" for f in found]),
        TableColumn("", [one.quantity.unit for one in every], right=False),
        TableColumn("noise", ["-" if f.noise is None else f"{100 * f.noise:.1f} %" for f in found]),
        TableColumn("nights", [str(sum(v is not None for v in one.values)) for one in every]),
    ]
    room = min(max(out.width - tables.width_of(shown), _LEAST_LINE), _LONGEST_LINE)
    lines = [_line(one, room) for one in every]
    shown.append(TableColumn("from first to last", lines, right=False))
    begin = 0
    for case, several in by_case.items():
        out.print()
        say(out, f"{case.partition} {case.environment} {case.what()}", "bold")
        tables.print_table(shown, out, range(begin, begin + len(several)))
        begin += len(several)


def _line(one: Series, room: int) -> str:
    at = {night: value for night, value in enumerate(one.values) if value is not None}
    values = readable(at.values())
    if not values:
        return ""
    worst = max if one.quantity.rising_is_worse else min
    nights = range(len(one.values))
    return sparkline(at, columns(nights, room), (min(values), max(values)), worst)


def _print_changes(verdict: HistoryVerdict, out: Console) -> None:
    shown = sorted(verdict.shifts, key=lambda shift: -shift.change.index)
    marks = [_mark(shift) for shift in shown]
    out.print()
    tables.print_table(
        [
            TableColumn("", [Text(mark, _STYLES[mark]) for mark in marks], right=False),
            TableColumn(
                "since",
                [_date(verdict.nights.sessions[shift.change.index]) for shift in shown],
                right=False,
            ),
            TableColumn("where", [" ".join(shift.of.where) for shift in shown], right=False),
            TableColumn("series", [shift.what for shift in shown], right=False),
            TableColumn("size", [f"{100 * shift.change.size:+.1f} %" for shift in shown]),
            TableColumn("confidence", [confidence(shift.change.p_value) for shift in shown]),
            TableColumn("", [_state(verdict, shift) for shift in shown], right=False),
        ],
        out,
    )
    say(out, _LEGEND, "dim")


def _state(verdict: HistoryVerdict, shift: Shift) -> str:
    drift = "drift, " if shift.change.kind is ChangeKind.DRIFT else ""
    if shift.state is SeriesState.ENDED:
        return f"{drift}{shift.state} {_date(verdict.nights.sessions[shift.change.ended])}"
    return f"{drift}{shift.state}"


def _print_sessions(verdict: HistoryVerdict, several: Sequence[Series], out: Console) -> None:
    """Print a row for each session of the case, with a mark where a level begins, or ``?``."""
    marks: dict[tuple[Series | Pool, int], str] = {
        (shift.of, shift.change.index): _mark(shift) for shift in verdict.shifts
    }
    nights = [
        night
        for night in range(len(verdict.nights.sessions))
        if any(
            line[night] is not None for one in several for line in (one.values, one.inconclusive)
        )
    ]
    shown = [verdict.nights.sessions[night] for night in nights]
    cells = []
    for one in several:
        column = []
        for night in nights:
            value, mark = one.values[night], marks.get((one, night), " ")
            if value is None and one.inconclusive[night] is not None:
                value, mark = one.inconclusive[night], _INCONCLUSIVE
            text = "-" if value is None else f"{value:.4g}"
            column.append(Text(f"{text} {mark}", _STYLES.get(mark, "")))
        heading = f"{one.quantity.title}\n{one.quantity.unit}".rstrip("\n")
        cells.append(TableColumn(heading.replace(" at ", "\nat "), column))
    tables.print_table(
        [
            TableColumn("session", [stored.name for stored in shown], right=False),
            TableColumn("began, UTC", [_date(stored) for stored in shown], right=False),
            *cells,
        ],
        out,
    )
