"""The history: tables and lines of characters, a chart of series, and plain values for ``json``."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from netproof.errors import NetproofError, grouped
from netproof.history import history_verdict
from netproof.history.changes import ChangeKind
from netproof.history.history_verdict import Event, HistoryVerdict, SeriesState, Shift
from netproof.history.series import Series, counted_in_words, crashes_in_words
from netproof.measurement.case import Case
from netproof.present.document import EVERY, Block, Cell, DataTable, Sentences
from netproof.present.documents import plain, some
from netproof.present.html.charts import FILE_LINE, ChartFigure, shown, template
from netproof.present.wording import columns, counted, first, number, readable, sparkline
from netproof.store import StoredSession

SERIES_OF_EVENT = 6
"""Single series of an event in its table; ``--format json`` has all of them."""

LISTED = 5
"""Latest bad nights, and latest inconclusive cases, that are listed; ``--format json`` has all."""

CASES_BY_SESSION = 4
"""Most cases that are shown session by session."""

_WORSE, _BETTER, _ODD, _INCONCLUSIVE = "▼", "▲", "✗", "?"
_LOOKS = {_WORSE: "failed", _BETTER: "passed", _ODD: "warned", _INCONCLUSIVE: "inconclusive"}
_LEGEND = (
    f"{_WORSE} worse, {_BETTER} better, {_ODD} one bad night; size: of the new level against the"
    " old one; confidence: that it is not chance, of this series alone"
)


def overview(verdict: HistoryVerdict) -> Iterator[Block]:
    """Yield open events, the worst first; bad nights; counts of everything else."""
    yield _span(verdict)
    if verdict.too_few:
        yield Cell(verdict.too_few, "warned")
        yield from _crashes_and_counters(verdict)
        yield _notes(verdict)
        return
    worse = [event for event in verdict.events if event.worse]
    places = {(event.partition, event.environment) for event in worse}
    count = sum(shift.worse for event in worse for shift in event.single)
    changes = f"{counted(len(worse), 'change')} in {counted(len(places), 'configuration')}"
    result = Cell(f"WORSE: {changes}, {count} series", "failed")
    yield result if worse else Cell("no lasting change for the worse", "passed")
    for event in verdict.events:
        several = [*event.pooled, *event.single[:SERIES_OF_EVENT]]
        more = first(event.single, SERIES_OF_EVENT, "  and {} more series")[SERIES_OF_EVENT:]
        yield from _event(event, _changes(verdict, several, levels=True), *map(str, more))
    if verdict.events:
        yield Cell(_LEGEND, "faint")
    if len(worse) < len(verdict.events):
        yield f"for the better: {history_verdict.ACCEPT_BETTER} (netproof history accept)"
    nights = [Cell(f"{_ODD} {one.sentence()}", _LOOKS[_ODD]) for one in verdict.bad_nights]
    yield Sentences(first(nights, LISTED, "  and {} before"), "single bad nights")
    yield from _inconclusive(verdict, [verdict.session])
    yield from _crashes_and_counters(verdict)
    yield from _counts(verdict)
    yield _notes(verdict)


def _event(event: Event, *shown: Block) -> Iterator[Block]:
    """Yield where it is and since when, ``shown``, and what changed with it."""
    mark = _WORSE if event.worse else _BETTER
    yield ""
    yield Cell(f"{mark} {since_when(event)}", _LOOKS[mark])
    yield from shown
    yield Sentences([f"  {one}" for one in event.changed()])


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


def _changes(verdict: HistoryVerdict, shifts: Sequence[Shift], *, levels: bool) -> DataTable:
    """Return a row for each change: its levels, or else since when, where, and its state."""
    rows, sessions = [], verdict.nights.sessions
    for one in shifts:
        change, mark, states = one.change, _sign(one), []
        if change.kind is ChangeKind.DRIFT:
            states.append("drift")
        if not levels:
            cells = (_date(sessions[change.index]), " ".join(one.of.where), "")
            ended = one.state is SeriesState.ENDED and change.ended is not None
            states.append(
                f"{one.state} {_date(sessions[change.ended or 0])}" if ended else one.state
            )
        elif one.of.pooled:
            # What is pooled is relative to the level of each series.
            cells = ("-", "-", "")
        else:
            cells = (f"{change.before:.4g}", f"{change.after:.4g}", one.of.quantity.unit)
        size, sure = f"{100 * change.size:+.1f} %", history_verdict.confidence(change.p_value)
        rows.append(
            (Cell(f"  {mark}", _LOOKS[mark]), one.what, *cells, size, sure, ", ".join(states))
        )
    head = ("before", "after", "") if levels else ("since", "where", "")
    return DataTable(("", "series", *head, "size", "confidence", ""), rows, (2, 3, 5, 6))


def _sign(shift: Shift) -> str:
    if shift.change.kind is ChangeKind.BAD_NIGHT:
        return _ODD
    return _WORSE if shift.worse else _BETTER


def _inconclusive(verdict: HistoryVerdict, sessions: Sequence[StoredSession]) -> Iterator[Block]:
    """Yield the values of these sessions that count in no series, and why; of others the count."""
    every = verdict.nights.inconclusive
    if not every:
        return
    here = [
        f"{_INCONCLUSIVE} {_date(session)} {_title(case)}: inconclusive: {'; '.join(why)}"
        for (session, case), why in [*every.items()][::-1]
        if session in sessions
    ]
    often = "once" if len(every) == 1 else f"{len(every)} times"
    where = f"{len({session for session, _ in every})} of {len(verdict.nights.sessions)} sessions"
    yield ""
    yield Cell(
        f"a case was inconclusive {often}, in {where}: what was measured then counts in no series",
        "inconclusive",
    )
    yield Sentences(first(here, LISTED, "  and {} more"), look="inconclusive")


def _crashes_and_counters(verdict: HistoryVerdict) -> Iterator[Block]:
    """Yield crashed launches of configurations, and sessions with network errors of nodes."""
    nights = verdict.nights
    crashes = [crashes_in_words(one) for one in nights.crashes if any(one["crashed"])]
    yield Sentences(crashes, "launches that crashed", "warned")
    counts = list(filter(None, map(counted_in_words, nights.counted)))
    yield Sentences(counts, "what nodes' networks counted", "warned")


def _counts(verdict: HistoryVerdict) -> Iterator[Block]:
    counts = Counter(shift.state for shift in verdict.shifts)
    words = {
        SeriesState.SUSPECTED: "suspected, no more than chance brings among so many series",
        SeriesState.BASELINE: "of scores that moved with the score baseline",
        SeriesState.ENDED: "ended, whether they ever stood out or not",
        SeriesState.ACCEPTED: "accepted",
    }
    parts = [f"{counts[state]} {said}" for state, said in words.items() if counts[state]]
    yield ""
    yield f"{verdict.control()}."
    yield f"Not open, of all changes found: {'; '.join(parts)}." if parts else Sentences([])


def _notes(verdict: HistoryVerdict) -> Sentences:
    nights, found = verdict.nights, []
    if nights.known.baseline is None:
        found.append(Cell("No scores are followed: no session names a score baseline.", "warned"))
    if many := nights.no_longer_followed:
        found.append(
            Cell(f"{many} series are followed no longer: no recent session measured them.")
        )
    if many := nights.other_sizes:
        why = "of other message sizes than the newest of their case"
        found.append(Cell(f"{many} values are left out, {why}.", "warned"))
    return Sentences([*found, *(Cell(f"accepted: {one}") for one in verdict.acceptances)])


def series(verdict: HistoryVerdict) -> Iterator[Block]:
    """Yield the series of some cases: a line each, the changes, and session by session."""
    sessions = verdict.nights.sessions
    by_case = grouped((one.case, one) for one in verdict.nights.series)
    yield _span(verdict)
    if verdict.too_few:
        yield Cell(verdict.too_few, "warned")
    yield _lines(verdict, by_case)
    if verdict.shifts:
        shown = sorted(verdict.shifts, key=lambda shift: -shift.change.index)
        yield ""
        yield _changes(verdict, shown, levels=False)
        yield Cell(_LEGEND, "faint")
    for event in verdict.events:
        yield from _event(event)
    yield from _inconclusive(verdict, sessions)
    if len(by_case) > CASES_BY_SESSION:
        yield ""
        most = f"session by session are shown up to {CASES_BY_SESSION}"
        yield f"{len(by_case)} cases: {most}; say more of the case to see them"
        return
    for case, several in by_case.items():
        yield Cell(_title(case), "heading")
        yield _by_session(verdict, several)


def _title(case: Case) -> str:
    return f"{case.partition} {case.environment} {case.what()}"


def _lines(verdict: HistoryVerdict, by_case: Mapping[Case, Sequence[Series]]) -> DataTable:
    every = [one for several in by_case.values() for one in several]
    rows = []
    for one in every:
        found, nights = verdict.followed[one], len(one.values) - one.values.count(None)
        noise = number(found.noise and 100 * found.noise, ".1f", " %")
        named = (one.quantity.label, number(found.level, ".4g"), one.quantity.unit)
        rows.append((*named, noise, str(nights)))
    return DataTable(
        ("series", "level", "", "noise", "nights"),
        rows,
        (1, 3, 4),
        groups={_title(case): len(several) for case, several in by_case.items()},
        drawn=("from first to last", lambda room: [_line(one, room) for one in every]),
    )


def _line(one: Series, room: int) -> str:
    at = {night: value for night, value in enumerate(one.values) if value is not None}
    values = readable(at.values())
    if not values:
        return ""
    worst = max if one.quantity.rising_is_worse else min
    nights = range(len(one.values))
    return sparkline(at, columns(nights, room), (min(values), max(values)), worst)


def _by_session(verdict: HistoryVerdict, several: Sequence[Series]) -> DataTable:
    """Return a row for each session of the case, with a mark where a level begins, or ``?``."""
    marks = {(shift.of, shift.change.index): _sign(shift) for shift in verdict.shifts}
    rows = []
    for night, stored in enumerate(verdict.nights.sessions):
        cells: list[str | Cell] = []
        for one in several:
            value, mark = one.values[night], marks.get((one, night), " ")
            if value is None and one.inconclusive[night] is not None:
                value, mark = one.inconclusive[night], _INCONCLUSIVE
            cells.append(Cell(f"{number(value, '.4g')} {mark}", _LOOKS.get(mark, "")))
        if any(str(cell) != "-  " for cell in cells):
            rows.append((stored.name, _date(stored), *cells))
    heads = (f"{one.quantity.label}\n{one.quantity.unit}".rstrip("\n") for one in several)
    head = ("session", "began, UTC", *(title.replace(" at ", "\nat ") for title in heads))
    return DataTable(head, rows, EVERY[2:])


def document(verdict: HistoryVerdict, *, series: bool) -> dict[str, Any]:
    """Return plain values, as docs/reference/json.md describes; ``series``: all values."""
    nights = verdict.nights
    judged = "not judged" if verdict.too_few else "not worse"

    def event_document(found: Event) -> dict[str, Any]:
        changes = [_shift(verdict, shift) for shift in found.shifts]
        keys = ("partition", "environment", "sentence", "session=session.name")
        return some(found, *keys) | {"changes": changes}

    return {
        "sessions": plain(nights.sessions),
        "verdict": "worse" if verdict.status == history_verdict.WORSE else judged,
        **some(verdict, "system", "too_few", "tested", "false_alarms_a_month"),
        "followed": len(verdict.followed),
        "baseline": plain(nights.known.baseline),
        **some(nights, "unread", "no_longer_followed", "other_sizes", "crashes", "counted"),
        "inconclusive": [
            {"case": plain(case), "why": plain(why), "session": session.name}
            for (session, case), why in nights.inconclusive.items()
        ],
        "events": [
            {
                **event_document(event),
                "worse": event.worse,
                "before_session": event.culprits and event.culprits.before.name,
                **some(event, "culprits", "around"),
            }
            for event in verdict.events
        ],
        "bad_nights": [event_document(odd) for odd in verdict.bad_nights],
        "changes": [_shift(verdict, shift) for shift in verdict.shifts],
        "accepted": plain(verdict.acceptances),
        "series": [
            some(one, "case", "quantity", "values", "inconclusive")
            | some(verdict.followed[one], "level", "noise")
            for one in nights.series
        ]
        if series
        else None,
    }


def _shift(verdict: HistoryVerdict, shift: Shift) -> dict[str, Any]:
    change, sessions, of = shift.change, verdict.nights.sessions, shift.of
    return {
        "partition": of.where[0],
        "environment": of.where[1],
        "case": None if of.pooled else plain(of.case),
        "pooled": len(of.cases) if of.pooled else None,
        **some(shift, "state", "worse", "quantity=of.quantity", "kind=change.kind"),
        "session": sessions[change.index].name,
        "found": sessions[change.found].name,
        "ended": None if change.ended is None else sessions[change.ended].name,
        **some(change, "before", "after", "size", "p_value"),
    }


FORMATS = (".html", ".svg", ".png", ".pdf")

MOST_SERIES = 24
"""Most series of one file."""

_LABEL_PX = 13
_LABELS = 3
"""Lines over which labels of nearby changes are spread."""


def write(verdict: HistoryVerdict, path: Path) -> None:
    """Draw every series of a verdict, one below the other, in a file of one of ``FORMATS``.

    An HTML file has all that it needs within. Raises NetproofError for another format, and for more
    than ``MOST_SERIES``; OSError where it cannot be written.
    """
    if path.suffix not in FORMATS:
        raise NetproofError(f"{path}: unknown format; choose {', '.join(FORMATS)}")
    count = len(verdict.nights.series)
    if count > MOST_SERIES:
        raise NetproofError(
            f"{path}: {count} series are too many for one plot, {MOST_SERIES} fit; say more of the"
            " cases, or name one with --quantity"
        )

    from netproof.present.html.folder import draw

    draw(chart(verdict, verdict.nights.series), path)


def chart(verdict: HistoryVerdict, several: Sequence[Series]) -> dict[str, Any]:
    """Return the series one below the other over the same days, as wide as a file's chart."""
    unsure = " ?: inconclusive, counts for nothing." if verdict.nights.inconclusive else ""
    sentences = [
        f"{verdict.system}, {len(verdict.nights.sessions)} sessions. Grey: the level, and"
        f" ± {history_verdict.BAND_DEVIATIONS:.0f} standard deviations of a night.{unsure}"
    ]
    sentences += [
        f"{event.partition} {event.environment} since {event.session.start:%Y-%m-%d}:"
        f" {event.changed()[0]}"
        for event in verdict.events
    ]
    lines = [line for sentence in sentences for line in textwrap.wrap(sentence, FILE_LINE)]
    panels = [_panel(verdict, one) for one in several]
    drawn = {"vconcat": panels, "spacing": 14, "resolve": {"scale": {"x": "shared"}}}
    made = ChartFigure("What was measured, session by session", drawn, {}).for_file()
    # Each event has a line of its own.
    made["title"]["subtitle"] = [shown(line) for line in lines]
    return made


def _panel(verdict: HistoryVerdict, one: Series) -> Any:
    sessions, label, unit = verdict.nights.sessions, one.quantity.label, one.quantity.unit
    began = list(map(_moment, sessions))

    def points(values: Sequence[float | None]) -> list[dict[str, Any]]:
        return [
            {"began": moment, "value": value, "session": stored.name}
            for moment, stored, value in zip(began, sessions, values, strict=True)
            if value is not None
        ]

    panel = template(
        *("panel", "chart"),
        title=f"{_title(one.case)}: {label}",
        label=f"{label}, {unit}" if unit else label,
        # Every panel spans all sessions; a domain of the scale makes Vega-Lite warn of each layer.
        ends=[{"began": began[0]}, {"began": began[-1]}],
        levels=[
            {"began": began[first], "until": began[last], "value": value, "low": low, "high": high}
            for first, last, value, low, high in verdict.levels(one)
        ],
        measured=points(one.values),
        # Beside the line, which goes only through points that count.
        inconclusive=points(one.inconclusive),
        quantity=label,
    )
    panel["layer"] = [layer for layer in panel["layer"] if layer["data"]["values"]]
    shifts = [s for s in verdict.shifts if s.of is one and s.state is not SeriesState.ODD_NIGHT]
    for place, shift in enumerate(sorted(shifts, key=lambda shift: shift.change.index)):
        panel["layer"] += _change_layers(verdict, shift, place % _LABELS)
    return panel


def _change_layers(verdict: HistoryVerdict, shift: Shift, line: int) -> Any:
    """Return a rule where the change begins, and its label above the chart."""
    change, sessions = shift.change, verdict.nights.sessions
    stored, late = sessions[change.index], change.index > len(sessions) / 2
    word, state = "worse" if shift.worse else "better", f", {shift.state}"
    if change.kind is ChangeKind.BAD_NIGHT:
        word, state = "bad night", ""
    text = (
        f"{stored.start:%Y-%m-%d} {100 * change.size:+.1f} % {word}{state}"
        f" ({history_verdict.confidence(change.p_value)})"
    )
    return template(
        *("panel", "change"),
        rows=[{"began": _moment(stored), "text": text, "session": stored.name}],
        **template("panel", "changes")[word],
        opacity=1 if shift.state in (SeriesState.OPEN, SeriesState.BAD_NIGHT) else 0.55,
        **{"align": "right" if late else "left", "dx": 4 if late else -4},
        dy=-2 - _LABEL_PX * line,
    )


def _moment(stored: StoredSession) -> str:
    return f"{stored.start:%Y-%m-%dT%H:%M:%SZ}"
