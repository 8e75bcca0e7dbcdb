"""The chart of series over sessions: every change in its place, with date, size and confidence."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert
from altair.utils.schemapi import debug_mode

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
from netproof.present.html.charts import FILE_LINE, FILE_WIDTH, file_title, specification, tips
from netproof.present.html.looks import FILE

FORMATS = (".html", ".svg", ".png", ".pdf")

MOST_SERIES = 24
"""Most series of one file."""

HEIGHT = 150
_LABEL_PX = 13
_LABELS = 3
"""Lines over which labels of nearby changes are spread."""
_PIXELS = 2
_VEGA_LITE = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])

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
    drawn = chart(verdict, verdict.nights.series)
    convert = getattr(vl_convert, f"vegalite_to_{path.suffix[1:]}")
    options = {".html": {"bundle": True}, ".png": {"scale": _PIXELS}}.get(path.suffix, {})
    made = convert(drawn, vl_version=_VEGA_LITE, **options)
    path.write_bytes(made.encode() if isinstance(made, str) else made)


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
    days = [_moment(sessions[0]), _moment(sessions[-1])]
    x = alt.X(
        "began:T",
        scale=alt.Scale(type="utc", domain=days, nice=False, padding=8),
        axis=alt.Axis(title=None, grid=False, labelOverlap=True, labelSeparation=8, tickCount=10),
    )
    with debug_mode(False):
        panels = [_panel(verdict, one, x) for one in several]
        drawn = alt.vconcat(*panels, spacing=14).resolve_scale(x="shared")
    title = file_title(heading, lines)
    return specification(drawn, heading, {}, FILE, title=title, background="#ffffff")


def _panel(verdict: HistoryVerdict, one: Series, x: alt.X) -> alt.LayerChart:
    sessions, unit = verdict.nights.sessions, one.quantity.unit

    def values(nights: Sequence[float | None], heading: str) -> tuple[list[dict[str, Any]], Any]:
        rows = [
            {"began": _moment(stored), "value": value, "session": stored.name}
            for stored, value in zip(sessions, nights, strict=True)
            if value is not None
        ]
        return rows, tips(session=heading, value=(one.quantity.title, ",.4~r"))

    levels = [
        {
            "began": _moment(sessions[level.first]),
            "until": _moment(sessions[level.last]),
            "value": level.value,
            "low": level.low,
            "high": level.high,
        }
        for level in verdict.levels(one)
    ]
    y = alt.Y(
        "value:Q",
        scale=alt.Scale(zero=False, nice=True),
        title=f"{one.quantity.title}{', ' if unit else ''}{unit}",
    )
    layers = []
    if levels:
        spans = alt.Chart(alt.Data(values=levels))
        layers += [
            spans.mark_rect(color=FILE.faint, opacity=0.16).encode(
                x, alt.X2("until:T"), alt.Y("low:Q"), alt.Y2("high:Q")
            ),
            spans.mark_rule(color=FILE.faint, strokeWidth=1.5).encode(x, alt.X2("until:T"), y),
        ]
    rows, tooltip = values(one.values, "session")
    base = alt.Chart(alt.Data(values=rows))
    layers += [
        base.mark_line(color=FILE.series[0], strokeWidth=1.6).encode(x, y),
        base.mark_point(color=FILE.series[0], filled=True, size=26, opacity=1).encode(
            x, y, tooltip=tooltip
        ),
    ]
    unsure, tooltip = values(one.inconclusive, "inconclusive in")
    if unsure:
        # Beside the line, which goes only through points that count.
        layers.append(
            alt.Chart(alt.Data(values=unsure))
            .mark_text(text="?", fontSize=13, fontWeight="bold", color=FILE.inconclusive)
            .encode(x, y, tooltip=tooltip)
        )
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
    title = alt.TitleParams(
        f"{case.partition} {case.environment} {case.what()}: {one.quantity.title}",
        anchor="start",
        frame="group",
        fontSize=12,
        fontWeight="normal",
        color=FILE.text,
        offset=6,
    )
    return alt.layer(*layers).properties(width=FILE_WIDTH, height=HEIGHT, title=title)


def _mark(verdict: HistoryVerdict, shift: Shift, x: alt.X, line: int) -> list[alt.Chart]:
    """Return a rule where the change begins, and its label above the chart."""
    change = shift.change
    bad = change.kind is ChangeKind.BAD_NIGHT
    word = "bad night" if bad else _WORDS[shift.worse]
    colour = {"worse": FILE.failed, "better": FILE.series[2], "bad night": FILE.warning}[word]
    stored = verdict.nights.sessions[change.index]
    state = "" if bad else f", {shift.state}"
    text = (
        f"{stored.start:%Y-%m-%d} {100 * change.size:+.1f} % {word}{state}"
        f" ({confidence(change.p_value)})"
    )
    row: dict[str, Any] = {"began": _moment(stored), "text": text, "session": stored.name}
    base = alt.Chart(alt.Data(values=[row]))
    late = change.index > len(verdict.nights.sessions) / 2
    quiet = shift.state not in (SeriesState.OPEN, SeriesState.BAD_NIGHT)
    return [
        base.mark_rule(
            color=colour, strokeDash=_DASHES[word], strokeWidth=1.8, opacity=0.55 if quiet else 1
        ).encode(x, tooltip=[alt.Tooltip("text:N", title="change"), "session:N"]),
        base.mark_text(
            align="right" if late else "left",
            baseline="bottom",
            dx=4 if late else -4,
            dy=-2 - _LABEL_PX * line,
            fontSize=10.5,
            color=colour,
        ).encode(x, y=alt.value(0), text="text:N"),
    ]


def _moment(stored: Any) -> str:
    return f"{stored.start:%Y-%m-%dT%H:%M:%SZ}"
