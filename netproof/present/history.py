"""The history: in tables and lines of characters, and as plain values for ``json``."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from netproof.history import history_verdict
from netproof.history.changes import ChangeKind
from netproof.history.culprits import Culprits
from netproof.history.history_verdict import (
    Event,
    HistoryVerdict,
    SeriesState,
    Shift,
    confidence,
)
from netproof.history.series import Series, counted_in_words, crashes_in_words
from netproof.measurement.case import Case
from netproof.present import documents, tables
from netproof.present.sparkline import columns, readable, sparkline
from netproof.present.tables import TableColumn
from netproof.present.terminal import say
from netproof.present.wording import counted
from netproof.store import StoredSession

SERIES_OF_EVENT = 6
"""Single series of an event in its table; ``--format json`` has all of them."""

LISTED = 5
"""Latest bad nights, and latest inconclusive cases, that are listed; ``--format json`` has all."""

CASES_BY_SESSION = 4
"""Most cases that are shown session by session."""

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
        _print_crashes_and_counters(verdict, out)
        _print_notes(verdict, out)
        return
    worse = [event for event in verdict.events if event.worse]
    if worse:
        places = {(event.partition, event.environment) for event in worse}
        count = sum(shift.worse for event in worse for shift in event.single)
        say(
            out,
            f"WORSE: {counted(len(worse), 'change')} in {counted(len(places), 'configuration')},"
            f" {count} series",
            "bold red",
        )
    else:
        say(out, "nothing is worse", "bold green")
    for event in verdict.events:
        out.print()
        mark = _WORSE if event.worse else _BETTER
        say(out, f"{mark} {since_when(event)}", _STYLES[mark])
        _print_shifts([*event.pooled, *event.single[:SERIES_OF_EVENT]], out)
        _print_rest(len(event.single) - SERIES_OF_EVENT, "more series", out)
        for sentence in event.changed():
            say(out, f"  {sentence}")
    if verdict.events:
        out.print()
        say(out, _LEGEND, "dim")
    if any(not event.worse for event in verdict.events):
        say(out, f"for the better: {history_verdict.ACCEPT_BETTER} (netproof history accept)")
    if verdict.bad_nights:
        out.print()
        say(out, "single bad nights", "bold")
    for odd in verdict.bad_nights[:LISTED]:
        say(out, f"{_ODD} {odd.sentence()}", _STYLES[_ODD])
    _print_rest(len(verdict.bad_nights) - LISTED, "before", out)
    _print_inconclusive(verdict, out, [verdict.session])
    _print_crashes_and_counters(verdict, out)
    _print_counts(verdict, out)
    _print_notes(verdict, out)


def _print_rest(count: int, what: str, out: Console) -> None:
    if count > 0:
        say(out, f"  and {count} {what}")


def _span(verdict: HistoryVerdict) -> str:
    sessions = verdict.nights.sessions
    return (
        f"history of {verdict.system}: {counted(len(sessions), 'session')}"
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


def _print_shifts(shifts: Sequence[Shift], out: Console) -> None:
    def level(shift: Shift, value: float) -> str:
        # What is pooled is relative to the level of each series.
        return "-" if shift.of.pooled else f"{value:.4g}"

    marks = [_mark(shift) for shift in shifts]
    units = ["" if one.of.pooled else one.of.quantity.unit for one in shifts]
    tables.print_table(
        [
            TableColumn("", [Text(f"  {mark}", _STYLES[mark]) for mark in marks], right=False),
            TableColumn("series", [one.what for one in shifts], right=False),
            TableColumn("before", [level(one, one.change.before) for one in shifts]),
            TableColumn("after", [level(one, one.change.after) for one in shifts]),
            TableColumn("", units, right=False),
            *_sizes(shifts),
            TableColumn("", ["drift" if _drifts(one) else "" for one in shifts], right=False),
        ],
        out,
    )


def _sizes(shifts: Sequence[Shift]) -> list[TableColumn]:
    return [
        TableColumn("size", [f"{100 * one.change.size:+.1f} %" for one in shifts]),
        TableColumn("confidence", [confidence(one.change.p_value) for one in shifts]),
    ]


def _drifts(shift: Shift) -> bool:
    return shift.change.kind is ChangeKind.DRIFT


def _mark(shift: Shift) -> str:
    if shift.change.kind is ChangeKind.BAD_NIGHT:
        return _ODD
    return _WORSE if shift.worse else _BETTER


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
    for one in here[::-1][:LISTED]:
        say(out, f"{_INCONCLUSIVE} {_date(one.session)} {one.sentence()}", _STYLES[_INCONCLUSIVE])
    _print_rest(len(here) - LISTED, "more", out)


def _print_crashes_and_counters(verdict: HistoryVerdict, out: Console) -> None:
    """Print crashed launches of configurations, and sessions with network errors of nodes."""
    for heading, several in (
        (
            "launches that crashed",
            [crashes_in_words(one) for one in verdict.nights.crashes if any(one["crashed"])],
        ),
        (
            "what nodes' networks counted",
            list(filter(None, map(counted_in_words, verdict.nights.counted))),
        ),
    ):
        if several:
            out.print()
            say(out, heading, "bold")
        for sentence in several:
            say(out, sentence, "yellow")


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
    if nights.no_longer_followed:
        say(
            out,
            f"{nights.no_longer_followed} series are followed no longer: no recent session measured"
            " them.",
        )
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
    if verdict.shifts:
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
        say(out, _title(case), "bold")
        _print_sessions(verdict, several, out)


def _title(case: Case) -> str:
    return f"{case.partition} {case.environment} {case.what()}"


def _print_lines(
    verdict: HistoryVerdict, by_case: Mapping[Case, Sequence[Series]], out: Console
) -> None:
    every = [one for several in by_case.values() for one in several]
    found = [verdict.followed[one] for one in every]
    shown = [
        TableColumn("series", [one.quantity.label for one in every], right=False),
        TableColumn("level", ["-" if f.level is None else f"{f.level:.4g}" for f in found]),
        TableColumn("", [one.quantity.unit for one in every], right=False),
        TableColumn("noise", ["-" if f.noise is None else f"{100 * f.noise:.1f} %" for f in found]),
        TableColumn("nights", [str(sum(v is not None for v in one.values)) for one in every]),
    ]
    room = min(max(out.width - tables.width_of(shown), _LEAST_LINE), _LONGEST_LINE)
    lines = [_line(one, room) for one in every]
    shown.append(TableColumn("from first to last", lines, right=False))
    tables.print_by_heading(
        shown, {_title(case): len(several) for case, several in by_case.items()}, out
    )


def _line(one: Series, room: int) -> str:
    at = {night: value for night, value in enumerate(one.values) if value is not None}
    values = readable(at.values())
    if not values:
        return ""
    worst = max if one.quantity.rising_is_worse else min
    nights = range(len(one.values))
    return sparkline(at, columns(nights, room), (min(values), max(values)), worst)


def _print_changes(verdict: HistoryVerdict, out: Console) -> None:
    sessions = verdict.nights.sessions
    shown = sorted(verdict.shifts, key=lambda shift: -shift.change.index)
    marks = [_mark(shift) for shift in shown]
    states = []
    for shift in shown:
        ended = ""
        if shift.state is SeriesState.ENDED:
            ended = f" {_date(sessions[shift.change.ended])}"
        states.append(f"{'drift, ' if _drifts(shift) else ''}{shift.state}{ended}")
    since = [_date(sessions[shift.change.index]) for shift in shown]
    out.print()
    tables.print_table(
        [
            TableColumn("", [Text(mark, _STYLES[mark]) for mark in marks], right=False),
            TableColumn("since", since, right=False),
            TableColumn("where", [" ".join(shift.of.where) for shift in shown], right=False),
            TableColumn("series", [shift.what for shift in shown], right=False),
            *_sizes(shown),
            TableColumn("", states, right=False),
        ],
        out,
    )
    say(out, _LEGEND, "dim")


def _print_sessions(verdict: HistoryVerdict, several: Sequence[Series], out: Console) -> None:
    """Print a row for each session of the case, with a mark where a level begins, or ``?``."""
    marks: dict[tuple[Series, int], str] = {
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
    table = [
        TableColumn("session", [stored.name for stored in shown], right=False),
        TableColumn("began, UTC", list(map(_date, shown)), right=False),
    ]
    for one in several:
        cells = []
        for night in nights:
            value, mark = one.values[night], marks.get((one, night), " ")
            if value is None and one.inconclusive[night] is not None:
                value, mark = one.inconclusive[night], _INCONCLUSIVE
            text = "-" if value is None else f"{value:.4g}"
            cells.append(Text(f"{text} {mark}", _STYLES.get(mark, "")))
        heading = f"{one.quantity.label}\n{one.quantity.unit}".rstrip("\n")
        table.append(TableColumn(heading.replace(" at ", "\nat "), cells))
    tables.print_table(table, out)


def document(verdict: HistoryVerdict, *, series: bool) -> dict[str, Any]:
    """Return plain values, as docs/reference/json.md describes; ``series``: all values."""
    nights = verdict.nights
    judged = "not judged" if verdict.too_few else "not worse"
    return {
        "format": documents.FORMAT,
        "system": verdict.system,
        "unread": nights.unread,
        "sessions": [
            {"session": stored.name, "started": stored.start.isoformat()}
            for stored in nights.sessions
        ],
        "verdict": "worse" if verdict.status == history_verdict.WORSE else judged,
        **documents.some(verdict, "too_few", "tested"),
        "followed": len(verdict.followed),
        "false_alarms_a_month": verdict.false_alarms_a_month,
        "baseline": nights.baseline and documents.some(nights.baseline, "partition", "environment"),
        **documents.some(nights, "no_longer_followed", "other_sizes", "crashes", "counted"),
        "inconclusive": [
            {"session": one.session.name, "case": documents.of_case(one.case), "why": one.why}
            for one in nights.inconclusive
        ],
        "events": [
            {
                **documents.some(event, "partition", "environment", "worse"),
                "session": event.session.name,
                "before_session": event.culprits.before.name,
                "sentence": event.sentence(),
                "changes": [_shift(verdict, shift) for shift in event.shifts],
                "culprits": _culprits(event.culprits),
                "around": [_culprits(culprits) for culprits in event.around],
            }
            for event in verdict.events
        ],
        "bad_nights": [
            {
                **documents.some(odd, "partition", "environment"),
                "session": odd.session.name,
                "sentence": odd.sentence(),
                "changes": [_shift(verdict, shift) for shift in odd.shifts],
            }
            for odd in verdict.bad_nights
        ],
        "changes": [_shift(verdict, shift) for shift in verdict.shifts],
        "accepted": [
            {
                **documents.some(one, "session", "reason", "name", "at"),
                "covers": {
                    "expressions": one.covers.cases,
                    **documents.some(one.covers, "partition", "environment", "quantity"),
                },
            }
            for one in verdict.acceptances
        ],
        "series": [_series(verdict, one) for one in nights.series] if series else None,
    }


def _culprits(culprits: Culprits) -> dict[str, Any]:
    return {
        "from_session": culprits.before.name,
        "to_session": culprits.after.name,
        "differences": [
            {
                **documents.some(one, "what", "before", "after", "nodes"),
                "of_configuration": one.own,
            }
            for one in culprits.differences
        ],
        "unknown": culprits.unknown,
    }


def _shift(verdict: HistoryVerdict, shift: Shift) -> dict[str, Any]:
    change, sessions = shift.change, verdict.nights.sessions
    pooled = shift.of.pooled
    return {
        "partition": shift.of.where[0],
        "environment": shift.of.where[1],
        "case": None if pooled else documents.of_case(shift.of.case),
        "pooled": len(shift.of.cases) if pooled else None,
        "quantity": shift.of.quantity,
        "kind": change.kind,
        "state": shift.state,
        "worse": shift.worse,
        "session": sessions[change.index].name,
        "found": sessions[change.found].name,
        "ended": None if change.ended is None else sessions[change.ended].name,
        **documents.some(change, "before", "after", "size", "p_value"),
    }


def _series(verdict: HistoryVerdict, one: Series) -> dict[str, Any]:
    found = verdict.followed[one]
    return {
        "case": documents.of_case(one.case),
        **documents.some(one, "quantity", "values", "inconclusive"),
        **documents.some(found, "level", "noise"),
    }
