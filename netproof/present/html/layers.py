"""Layers of charts: curves, repeated measurements, flags, and targets for the pointer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import altair as alt

from netproof.present.html.looks import Ink

Rows = list[dict[str, Any]]

MARKS = {
    "failed": "M-1,-1L1,1M1,-1L-1,1",
    "inconclusive": "M-0.9,-0.9A0.9,0.9,0,1,1,0.45,0C0,0.3,0,0.45,0,0.9M0,1.5L0,1.7",
    "warning": "triangle-up",
    "not confirmed": "circle",
}
"""Shapes of flagged sizes; the first is a saltire, the second a question mark."""

AGAIN_MARK = "M0,-1V1M-1,0H1"

POINTS, ENVELOPE, LINES, AGAIN = "points", "envelope", "line rates", "measured again"
"""Names of a chart's data beside its marks."""

_BYTES = (
    "datum.value >= 1048576 ? datum.value / 1048576 + ' MiB' : "
    "datum.value >= 1024 ? datum.value / 1024 + ' KiB' : datum.value + ' B'"
)
TIMES = (
    "datum.value >= 1e6 ? datum.value / 1e6 + ' s' : "
    "datum.value >= 1e3 ? datum.value / 1e3 + ' ms' : datum.value + ' µs'"
)


def curve_layers(
    channels: tuple[Any, ...],
    shape: alt.Shape,
    pick: alt.Parameter,
    hover: alt.Parameter,
    *,
    size: int,
) -> list[alt.Chart]:
    """Return a line per configuration and a point at each size; others fade beside a pick.

    ``channels``: x, y, colour and dash.
    """
    base = alt.Chart(alt.NamedData(POINTS))
    fade = alt.when(pick).then(alt.value(1)).otherwise(alt.value(0.12))
    return [
        base.mark_line(strokeWidth=1.8).encode(
            *channels,
            alt.Detail("configuration:N"),
            # Over time, points would otherwise be joined in the order of their times.
            alt.Order("size_bytes:Q"),
            opacity=fade,
        ),
        base.mark_point(filled=True, opacity=1).encode(
            *channels[:3],
            shape,
            size=alt.when(hover).then(alt.value(150)).otherwise(alt.value(size)),
            opacity=fade,
        ),
    ]


def again_layers(
    rows: Sequence[dict[str, Any]], x: alt.X, y: alt.Y, colour: alt.Color, pick: alt.Parameter
) -> list[alt.Chart]:
    """Return repeated measurements: a thin line with small marks for each launch."""
    if not rows:
        return []
    base = alt.Chart(alt.NamedData(AGAIN))
    fade = alt.when(pick).then(alt.value(0.9)).otherwise(alt.value(0.08))
    tips = [
        alt.Tooltip("configuration:N", title="configuration"),
        alt.Tooltip("size_bytes:Q", title="message, bytes", format=",d"),
        alt.Tooltip("time_us:Q", title="time, µs", format=",.4~r"),
        alt.Tooltip("launch:N", title="measured again, launch"),
        alt.Tooltip("where:N", title="in"),
    ]
    return [
        base.mark_line(strokeWidth=0.7).encode(
            x, y, colour, alt.Detail(["configuration:N", "launch:N"]), opacity=fade
        ),
        base.mark_point(shape=AGAIN_MARK, size=26, strokeWidth=1.1, filled=False).encode(
            x, y, colour, opacity=fade
        ),
        targets(AGAIN, tips, x, y, pick),
    ]


def targets(
    data: str, tips: list[alt.Tooltip], x: alt.X, y: alt.Y, pick: alt.Parameter
) -> alt.Chart:
    """Return invisible points, large enough to be hit, with tooltips; of a pick, only its own.

    Vega-Lite's own way to the nearest point has no tooltip and cannot be clicked.
    """
    return (
        alt.Chart(alt.NamedData(data))
        .mark_point(filled=True, opacity=0, cursor="pointer")
        .encode(
            x,
            y,
            alt.Detail("configuration:N"),
            size=alt.when(pick).then(alt.value(200)).otherwise(alt.value(0)),
            tooltip=tips,
        )
    )


def flag_layers(rows: Rows, x: alt.X, y: alt.Y, pick: alt.Parameter, ink: Ink) -> list[alt.Chart]:
    """Return a mark at each flagged size, the most severe on top."""
    colours = {
        "failed": ink.failed,
        "inconclusive": ink.inconclusive,
        "warning": ink.warning,
        "not confirmed": ink.faint,
    }
    layers = []
    for mark, shape in reversed(MARKS.items()):
        marked = [row for row in rows if row["mark"] == mark]
        if marked:
            layers.append(
                alt.Chart(alt.NamedData(mark))
                .mark_point(shape=shape, size=190, strokeWidth=2.6, filled=False)
                .encode(
                    x,
                    y,
                    color=alt.value(colours[mark]),
                    opacity=alt.when(pick).then(alt.value(1)).otherwise(alt.value(0.08)),
                    tooltip=[
                        alt.Tooltip("mark:N", title="flagged size"),
                        *tooltip(marked),
                        alt.Tooltip("why:N", title="why"),
                    ],
                )
            )
    return layers


def pick(rows: Rows) -> alt.Parameter:
    """Return the curve that a reader picks, by a click or from a list."""
    names = present(rows, "configuration")
    return alt.selection_point(
        name="pick",
        fields=["configuration"],
        on="click",
        clear="dblclick",
        bind=alt.binding_select(
            options=[None, *names], labels=["all of them", *names], name="Show "
        ),
    )


def hover() -> alt.Parameter:
    """Return the point under the mouse."""
    return alt.selection_point(
        name="hover",
        fields=["configuration", "size_bytes"],
        on="pointerover",
        clear="pointerout",
        empty=False,
    )


def tooltip(rows: Rows) -> list[alt.Tooltip]:
    """Return a point's tooltip, as far as the rows have its values."""
    shown = [
        alt.Tooltip("configuration:N", title="configuration"),
        alt.Tooltip("size_bytes:Q", title="message, bytes", format=",d"),
        alt.Tooltip("time_us:Q", title="time, µs", format=",.4~r"),
        alt.Tooltip("mad_us:Q", title="MAD over launches, µs", format=",.3~r"),
        alt.Tooltip("launches:Q", title="launches", format="d"),
    ]
    if any(row["time_min_us"] is not None for row in rows):
        shown += [
            alt.Tooltip("time_min_us:Q", title="of the fastest rank, µs", format=",.4~r"),
            alt.Tooltip("time_avg_us:Q", title="mean of the ranks, µs", format=",.4~r"),
        ]
    if any(row["bandwidth_mb_s"] is not None for row in rows):
        shown += [
            alt.Tooltip("bandwidth_mb_s:Q", title="MB/s", format=",.4~r"),
            alt.Tooltip("bandwidth_mbit_s:Q", title="Mbit/s", format=",.4~r"),
        ]
    return shown


def present(rows: Rows, key: str) -> list[str]:
    """Return the values of a key, each once, in order."""
    return list(dict.fromkeys(row[key] for row in rows))


def ticks(rows: Rows, again: Sequence[dict[str, Any]] = ()) -> list[float]:
    """Return times in µs to label: of each decade all, 1, 2 and 5, or 1, by their number."""
    times = [row["time_us"] for row in again]
    least = min([row["low_us"] or row["time_us"] for row in rows] + times)
    most = max([row["high_us"] for row in rows] + times)
    decades = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
    span = math.log10(most / least)
    steps = (1, 1.5, 2, 3, 4, 5, 6, 8) if span <= 1 else (1, 2, 5) if span <= 4 else (1,)
    # Rounded, since 3 times 0.1 has 17 digits.
    return [round(step * 10.0**decade, 9) for decade in decades for step in steps]


def log(base: int) -> alt.Scale:
    """Return a logarithmic axis."""
    return alt.Scale(type="log", base=base, nice=False, padding=8)


def size_axis(rows: Rows) -> alt.Axis:
    """Return the labels of message sizes: powers of 4, up to the largest."""
    largest = max(row["size_bytes"] for row in rows)
    ticks = [4**power for power in range(16) if 4**power <= largest]
    return alt.Axis(values=ticks, labelExpr=_BYTES, labelOverlap="greedy")
