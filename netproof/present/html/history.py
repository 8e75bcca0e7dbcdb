"""The chart of series over sessions: every change in its place, with date, size and confidence."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from netproof.errors import NetproofError
from netproof.history.changes import ChangeKind
from netproof.history.history_verdict import (
    BAND_DEVIATIONS,
    HistoryVerdict,
    SeriesState,
    Shift,
    confidence,
)
from netproof.history.series import Series
from netproof.present.html.charts import (
    FAINT,
    FILE_LINE,
    FILE_WIDTH,
    SERIES,
    TEXT,
    ChartFigure,
    quantity,
    shown,
    tips,
)
from netproof.present.html.folder import draw

FORMATS = (".html", ".svg", ".png", ".pdf")

MOST_SERIES = 24
"""Most series of one file."""

HEIGHT = 150
_LABEL_PX = 13
_LABELS = 3
"""Lines over which labels of nearby changes are spread."""
_WORDS = {True: "worse", False: "better"}
_DASHES = {"worse": [1, 0], "better": [7, 3], "bad night": [2, 2]}


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
    draw(chart(verdict, verdict.nights.series), path)


def chart(verdict: HistoryVerdict, several: Sequence[Series]) -> dict[str, Any]:
    """Return the series one below the other over the same days, as wide as a file's chart."""
    sessions = verdict.nights.sessions
    sentences = [
        f"{verdict.system}, {len(sessions)} sessions. Grey: the level, and"
        f" ± {BAND_DEVIATIONS:.0f} standard deviations of a night."
        + (" ?: inconclusive, counts for nothing." if verdict.nights.inconclusive else ""),
        *(
            f"{event.partition} {event.environment} since {event.session.start:%Y-%m-%d}:"
            f" {event.changed()[0]}"
            for event in verdict.events
        ),
    ]
    heading = "What was measured, session by session"
    lines = [line for sentence in sentences for line in textwrap.wrap(sentence, FILE_LINE)]
    x = {
        "field": "began",
        "type": "temporal",
        "scale": {"type": "utc", "nice": False, "padding": 8},
        "axis": {
            **{"title": None, "grid": False, "tickCount": 10},
            **{"labelOverlap": True, "labelSeparation": 8},
        },
    }
    drawn = {
        "vconcat": [_panel(verdict, one, x) for one in several],
        "spacing": 14,
        "resolve": {"scale": {"x": "shared"}},
    }
    made = ChartFigure(heading, drawn, {}).for_file()
    # Each event has a line of its own.
    made["title"]["subtitle"] = [shown(line) for line in lines]
    return made


def _layer(rows: Sequence[Any], mark: Mapping[str, Any], **channels: Any) -> dict[str, Any]:
    return {"data": {"values": list(rows)}, "mark": mark, "encoding": channels}


def _panel(verdict: HistoryVerdict, one: Series, x: dict[str, Any]) -> dict[str, Any]:
    sessions, unit = verdict.nights.sessions, one.quantity.unit

    def values(nights: Sequence[float | None], heading: str) -> tuple[list[dict[str, Any]], Any]:
        rows = [
            {"began": _moment(stored), "value": value, "session": stored.name}
            for stored, value in zip(sessions, nights, strict=True)
            if value is not None
        ]
        return rows, tips(session=heading, value=(one.quantity.label, ",.4~r"))

    levels = [
        {
            "began": _moment(sessions[first]),
            "until": _moment(sessions[last]),
            "value": value,
            "low": low,
            "high": high,
        }
        for first, last, value, low, high in verdict.levels(one)
    ]
    heading = f"{one.quantity.label}{', ' if unit else ''}{unit}"
    y = quantity("value", heading, scale={"zero": False, "nice": True})
    # Every panel spans all sessions; a domain of the scale makes Vega-Lite warn of each layer.
    ends = [{"began": _moment(stored)} for stored in (sessions[0], sessions[-1])]
    layers = [_layer(ends, {"type": "point", "opacity": 0}, x=x)]
    if levels:
        band = {"type": "rect", "color": FAINT, "opacity": 0.16}
        rule = {"type": "rule", "color": FAINT, "strokeWidth": 1.5}
        until, low = {"field": "until"}, {**y, "field": "low"}
        layers += [
            _layer(levels, band, x=x, x2=until, y=low, y2={"field": "high"}),
            _layer(levels, rule, x=x, x2=until, y=y),
        ]
    rows, tooltip = values(one.values, "session")
    blue = SERIES[0]
    point = {"type": "point", "color": blue, "filled": True, "size": 26, "opacity": 1}
    layers += [
        _layer(rows, {"type": "line", "color": blue, "strokeWidth": 1.6}, x=x, y=y),
        _layer(rows, point, x=x, y=y, tooltip=tooltip),
    ]
    unsure, tooltip = values(one.inconclusive, "inconclusive in")
    if unsure:
        # Beside the line, which goes only through points that count.
        mark = {"type": "text", "text": "?", "fontSize": 13, "fontWeight": "bold"}
        mark["color"] = "var(--inconclusive)"
        layers.append(_layer(unsure, mark, x=x, y=y, tooltip=tooltip))
    shifts = sorted(
        (
            shift
            for shift in verdict.shifts
            if shift.of is one and shift.state is not SeriesState.ODD_NIGHT
        ),
        key=lambda shift: shift.change.index,
    )
    for number, shift in enumerate(shifts):
        layers += _mark(verdict, shift, x, number % _LABELS)
    case = one.case
    title = {
        "text": f"{case.partition} {case.environment} {case.what()}: {one.quantity.label}",
        **{"anchor": "start", "frame": "group", "fontSize": 12, "fontWeight": "normal"},
        **{"color": TEXT, "offset": 6},
    }
    return {"layer": layers, "width": FILE_WIDTH, "height": HEIGHT, "title": title}


def _mark(
    verdict: HistoryVerdict, shift: Shift, x: Mapping[str, Any], line: int
) -> list[dict[str, Any]]:
    """Return a rule where the change begins, and its label above the chart."""
    change = shift.change
    bad = change.kind is ChangeKind.BAD_NIGHT
    word = "bad night" if bad else _WORDS[shift.worse]
    colours = {"worse": "var(--failed)", "better": SERIES[2], "bad night": "var(--warning)"}
    stored = verdict.nights.sessions[change.index]
    state = "" if bad else f", {shift.state}"
    text = (
        f"{stored.start:%Y-%m-%d} {100 * change.size:+.1f} % {word}{state}"
        f" ({confidence(change.p_value)})"
    )
    row: dict[str, Any] = {"began": _moment(stored), "text": text, "session": stored.name}
    late = change.index > len(verdict.nights.sessions) / 2
    quiet = shift.state not in (SeriesState.OPEN, SeriesState.BAD_NIGHT)
    rule: dict[str, Any] = {"type": "rule", "color": colours[word], "strokeDash": _DASHES[word]}
    rule |= {"strokeWidth": 1.8, "opacity": 0.55 if quiet else 1}
    label: dict[str, Any] = {"type": "text", "color": colours[word], "fontSize": 10.5}
    label["baseline"] = "bottom"
    label |= {"align": "right" if late else "left", "dx": 4 if late else -4}
    label["dy"] = -2 - _LABEL_PX * line
    tooltip = tips(text="change", session="session")
    text_channel = {"field": "text", "type": "nominal"}
    return [
        _layer([row], rule, x=x, tooltip=tooltip),
        _layer([row], label, x=x, y={"value": 0}, text=text_channel),
    ]


def _moment(stored: Any) -> str:
    return f"{stored.start:%Y-%m-%dT%H:%M:%SZ}"
