"""Charts of a report, by Altair: the same chart for a page and for a file."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
from altair.utils.schemapi import debug_mode

from netproof.present.characters import visible
from netproof.present.html.looks import FILE, PAGE, Ink, Looks, looking

Rows = list[dict[str, Any]]

NUMBERS = (
    *("size_bytes", "time_us", "mad_us", "time_min_us", "time_avg_us"),
    *("bandwidth_mb_s", "bandwidth_mbit_s", "launches"),
)

BANDS_AT_ONCE = 8
"""Most configurations of a chart that shows the spread of all."""

STROKE_SIZE = 400
"""Area of a legend's line, long enough to show its dash."""

HEIGHT = 340
FILE_WIDTH = 760
FILE_LINE = 130
"""Characters of a line below the title that fit a chart of this width."""
_ROW = 22
"""Height of a row of dots."""

MARKS = {
    "failed": "M-1,-1L1,1M1,-1L-1,1",
    "inconclusive": "M-0.9,-0.9A0.9,0.9,0,1,1,0.45,0C0,0.3,0,0.45,0,0.9M0,1.5L0,1.7",
    "warning": "triangle-up",
    "not confirmed": "circle",
}
"""Shapes of flagged sizes; the first is a saltire, the second a question mark."""

_AGAIN_MARK = "M0,-1V1M-1,0H1"
_POINTS, _ENVELOPE, _LINES, _AGAIN = "points", "envelope", "line rates", "measured again"
"""Names of a chart's data beside its marks."""

_NO_CHARACTERS = {code: f"\\u{code:04x}" for code in (*range(0xD800, 0xE000), 0xFFFE, 0xFFFF)}
"""Code points that are no characters, and not allowed in XML."""
_BYTES = (
    "datum.value >= 1048576 ? datum.value / 1048576 + ' MiB' : "
    "datum.value >= 1024 ? datum.value / 1024 + ' KiB' : datum.value + ' B'"
)
_TIMES = (
    "datum.value >= 1e6 ? datum.value / 1e6 + ' s' : "
    "datum.value >= 1e3 ? datum.value / 1e3 + ' ms' : datum.value + ' µs'"
)


def shown(value: Any) -> Any:
    """Return a specification whose control characters are shown by their code.

    XML, and with it SVG, cannot hold them.
    """
    if isinstance(value, str):
        return visible(value).translate(_NO_CHARACTERS)
    if isinstance(value, dict):
        return {key: shown(one) for key, one in value.items()}
    return [shown(one) for one in value] if isinstance(value, list | tuple) else value


def specification(
    chart: Any,
    description: str,
    data: Mapping[str, Sequence[Any]],
    ink: Ink = PAGE,
    **properties: Any,
) -> dict[str, Any]:
    """Return the Vega-Lite specification of a chart in the look of all, with its data by name.

    Altair does not read the data; ``properties``: of the chart.
    """
    # Altair's own checks take ten times as long as all else, and tests have them on.
    with debug_mode(False):
        made = chart.properties(
            **{"background": "transparent", "description": description, **properties}
        )
        values = looking(made, ink).to_dict(validate=False)
    named = {name: list(rows) for name, rows in data.items() if rows}
    return shown({**values, "datasets": {**values.get("datasets", {}), **named}})


def file_title(title: str, lines: Sequence[str], **more: Any) -> alt.TitleParams:
    """Return the title of a chart in a file, with lines below it."""
    return alt.TitleParams(
        title,
        anchor="start",
        fontSize=15,
        color=FILE.text,
        subtitle=list(lines),
        subtitleColor=FILE.faint,
        subtitleFontSize=11,
        **more,
    )


def tips(**titles: str | tuple[str, str]) -> list[alt.Tooltip]:
    """Return tooltips of fields: title, and the format of a number."""
    return [
        alt.Tooltip(f"{field}:N", title=title)
        if isinstance(title, str)
        else alt.Tooltip(f"{field}:Q", title=title[0], format=title[1])
        for field, title in titles.items()
    ]


def present(rows: Rows, key: str) -> list[str]:
    """Return the values of a key, each once, in order."""
    return list(dict.fromkeys(row[key] for row in rows))


def log(base: int) -> alt.Scale:
    """Return a logarithmic axis."""
    return alt.Scale(type="log", base=base, nice=False, padding=8)


def size_axis(rows: Rows) -> alt.Axis:
    """Return the labels of message sizes: powers of 4, up to the largest."""
    largest = max(row["size_bytes"] for row in rows)
    labelled = [4**power for power in range(16) if 4**power <= largest]
    return alt.Axis(values=labelled, labelExpr=_BYTES, labelOverlap="greedy")


@dataclass(frozen=True)
class NotDrawn:
    """A curve that is not in a chart, and why."""

    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


@dataclass(frozen=True)
class ChartFigure:
    """A chart with its surroundings.

    ``kind``: time, throughput or signature; ``rows``: its data, a row per point; ``sentences``: for
    below it, and ``hint`` one for a reader who can pick; ``missing``: curves that are not in it;
    ``lines``: line rates with their labels; ``again``: rows of repeats, in charts of time.
    """

    name: str
    title: str
    kind: str
    rows: Rows
    flags: Rows
    sentences: tuple[str, ...] = ()
    hint: str | None = None
    missing: tuple[NotDrawn, ...] = ()
    envelope: tuple[dict[str, Any], ...] = ()
    lines: tuple[dict[str, Any], ...] = ()
    again: tuple[dict[str, Any], ...] = ()

    @property
    def crowded(self) -> bool:
        """Whether bands would hide each other, so that only that of a picked curve is shown."""
        return len(present(self.rows, "configuration")) > BANDS_AT_ONCE

    def for_page(self, looks: Looks) -> dict[str, Any]:
        """Return the Vega-Lite specification for a page, where title and caption are HTML."""
        return self._specification(looks, PAGE, width="container")

    def for_file(self, looks: Looks) -> dict[str, Any]:
        """Return the Vega-Lite specification for a file, with its title within."""
        sentences = list(self.sentences)
        if self.missing:
            names = "; ".join(dict.fromkeys(one.what for one in self.missing))
            sentences.append(f"Not drawn: {names}.")
        title = file_title(self.title, textwrap.wrap(" ".join(sentences), FILE_LINE), dy=-6)
        return self._specification(looks, FILE, width=FILE_WIDTH, title=title, background="#ffffff")

    def _specification(self, looks: Looks, ink: Ink, **properties: Any) -> dict[str, Any]:
        keys = ("configuration", "environment", *NUMBERS)
        keys += ("partition", "low_us", "high_us") if self.kind == "time" else ("protocol",)
        rows = [{key: row[key] for key in keys if row[key] is not None} for row in self.rows]
        data = {
            _POINTS: rows,
            _ENVELOPE: self.envelope,
            _LINES: self.lines,
            _AGAIN: self.again,
            **{mark: [row for row in self.flags if row["mark"] == mark] for mark in MARKS},
        }
        with debug_mode(False):
            draw = _time if self.kind == "time" else _netpipe
            chart = alt.layer(*draw(self, looks, ink)).resolve_scale(shape="shared")
        return specification(chart, self.title, data, ink, height=HEIGHT, **properties)


def _time(figure: ChartFigure, looks: Looks, ink: Ink) -> list[alt.Chart]:
    """Return time over size, both logarithmic: all configurations, the envelope below them."""
    partitions = present(figure.rows, "partition")
    environments = present(figure.rows, "environment")
    strokes = alt.Legend(symbolOpacity=1, symbolType="stroke", symbolSize=STROKE_SIZE)
    dash = alt.StrokeDash(
        "partition:N", title="switch", scale=looks.dashes(partitions), legend=strokes
    )
    # With one switch, colours can distinguish libraries.
    by, names, title, legend = "partition", partitions, "switch", strokes
    if len(looks.partitions) == 1:
        dash = alt.StrokeDash("partition:N", scale=looks.dashes(partitions), legend=None)
        # Otherwise a legend is as faint as the bands.
        by, names, title = "environment", environments, looks.legend
        legend = alt.Legend(symbolOpacity=1)
    scale = looks.colours(names, ink, of=by)
    colour = alt.Color(f"{by}:N", title=title, scale=scale, legend=legend)
    shape = alt.Shape("environment:N", title=looks.legend, scale=looks.shapes(environments))
    pick = _pick(figure.rows)
    x = _size(figure.rows)
    y = alt.Y(
        "time_us:Q",
        scale=log(10),
        axis=alt.Axis(values=_ticks(figure.rows, figure.again), labelExpr=_TIMES),
        title="time",
    )
    if figure.crowded:
        opacity = alt.when(pick, empty=False).then(alt.value(0.3)).otherwise(alt.value(0))
    else:
        opacity = _fade(pick, 0.25, 0.03)
    envelope = alt.Chart(alt.NamedData(_ENVELOPE)).mark_line(
        strokeWidth=9, opacity=0.22, color=ink.text, clip=True
    )
    band = alt.Chart(alt.NamedData(_POINTS)).mark_area()
    low, high = alt.Y("low_us:Q", scale=log(10)), alt.Y2("high_us:Q")
    return [
        *([envelope.encode(x, y)] if figure.envelope else []),
        band.encode(x, low, high, colour, alt.Detail("configuration:N"), opacity=opacity),
        *_again(figure.again, x, y, colour, pick),
        *_curves(figure, (x, y, colour, dash), shape, pick, ink, size=34),
    ]


def _netpipe(figure: ChartFigure, looks: Looks, ink: Ink) -> list[alt.Chart]:
    """Return NetPIPE's throughput, TCP and MPI, over size or time, below the line rate."""
    if figure.kind == "throughput":
        x = _size(figure.rows)
    else:
        times = alt.Axis(values=_ticks(figure.rows), labelExpr=_TIMES)
        x = alt.X("time_us:Q", scale=log(10), axis=times, title="time of a message")
    environments = present(figure.rows, "environment")
    title = looks.legend
    colour = alt.Color(
        "environment:N", title=title, scale=looks.colours(environments, ink, of="environment")
    )
    dash = alt.StrokeDash(
        "protocol:N",
        title="over",
        scale=alt.Scale(domain=["TCP", "MPI"], range=[[5, 4], [1, 0]]),
        legend=alt.Legend(symbolType="stroke", symbolSize=STROKE_SIZE),
    )
    y = alt.Y("bandwidth_mbit_s:Q", title="throughput each way, Mbit/s", scale=alt.Scale(zero=True))
    shape = alt.Shape("environment:N", title=title, scale=looks.shapes(environments))
    lines = alt.Chart(alt.NamedData(_LINES))
    rate = alt.Y("line_rate_mbit_s:Q")
    line_rates = [
        lines.mark_rule(strokeWidth=1.5, strokeDash=[10, 3], color=ink.text).encode(
            rate, tooltip=alt.Tooltip("label:N", title="line rate")
        ),
        lines.mark_text(align="left", baseline="bottom", dx=6, dy=-3, color=ink.text).encode(
            rate, x=alt.value(0), text="label:N"
        ),
    ]
    channels = (x, y, colour, dash)
    return [
        *(line_rates if figure.lines else []),
        *_curves(figure, channels, shape, _pick(figure.rows), ink, size=30),
    ]


def _size(rows: Rows) -> alt.X:
    return alt.X("size_bytes:Q", scale=log(2), axis=size_axis(rows), title="message size")


def _fade(pick: alt.Parameter, picked: float, others: float) -> Any:
    return alt.when(pick).then(alt.value(picked)).otherwise(alt.value(others))


def _pick(rows: Rows) -> alt.Parameter:
    """Return the curve that a reader picks, by a click or from a list."""
    names = present(rows, "configuration")
    every = alt.binding_select(options=[None, *names], labels=["all of them", *names], name="Show ")
    return alt.selection_point(
        name="pick", fields=["configuration"], on="click", clear="dblclick", bind=every
    )


def _curves(
    figure: ChartFigure,
    channels: tuple[Any, ...],
    shape: alt.Shape,
    pick: alt.Parameter,
    ink: Ink,
    *,
    size: int,
) -> list[alt.Chart]:
    """Return a line per configuration, a point at each size, and marks at flagged ones.

    ``channels``: x, y, colour and dash; others fade beside a pick; the most severe mark is on top.
    """
    x, y = channels[:2]
    hover = alt.selection_point(
        name="hover",
        fields=["configuration", "size_bytes"],
        on="pointerover",
        clear="pointerout",
        empty=False,
    )
    base = alt.Chart(alt.NamedData(_POINTS))
    fade = _fade(pick, 1, 0.12)
    layers = [
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
        _targets(_POINTS, _tooltip(figure.rows), x, y, pick).add_params(pick, hover),
    ]
    colours = (ink.failed, ink.inconclusive, ink.warning, ink.faint)
    for (mark, form), colour in reversed(list(zip(MARKS.items(), colours, strict=True))):
        marked = [row for row in figure.flags if row["mark"] == mark]
        if marked:
            tooltip = [*tips(mark="flagged size"), *_tooltip(marked), *tips(why="why")]
            layers.append(
                alt.Chart(alt.NamedData(mark))
                .mark_point(shape=form, size=190, strokeWidth=2.6, filled=False)
                .encode(
                    x, y, color=alt.value(colour), opacity=_fade(pick, 1, 0.08), tooltip=tooltip
                )
            )
    return layers


def _again(
    rows: Sequence[dict[str, Any]], x: alt.X, y: alt.Y, colour: alt.Color, pick: alt.Parameter
) -> list[alt.Chart]:
    """Return repeated measurements: a thin line with small marks for each launch."""
    if not rows:
        return []
    base = alt.Chart(alt.NamedData(_AGAIN))
    fade = _fade(pick, 0.9, 0.08)
    tooltip = tips(
        configuration="configuration",
        size_bytes=("message, bytes", ",d"),
        time_us=("time, µs", ",.4~r"),
        launch="measured again, launch",
        where="in",
    )
    return [
        base.mark_line(strokeWidth=0.7).encode(
            x, y, colour, alt.Detail(["configuration:N", "launch:N"]), opacity=fade
        ),
        base.mark_point(shape=_AGAIN_MARK, size=26, strokeWidth=1.1, filled=False).encode(
            x, y, colour, opacity=fade
        ),
        _targets(_AGAIN, tooltip, x, y, pick),
    ]


def _targets(
    data: str, tooltip: list[alt.Tooltip], x: alt.X, y: alt.Y, pick: alt.Parameter
) -> alt.Chart:
    """Return invisible points, large enough to be hit, with tooltips; of a pick, only its own.

    Vega-Lite's own way to the nearest point has no tooltip and cannot be clicked.
    """
    points = alt.Chart(alt.NamedData(data)).mark_point(filled=True, opacity=0, cursor="pointer")
    detail = alt.Detail("configuration:N")
    return points.encode(x, y, detail, size=_fade(pick, 200, 0), tooltip=tooltip)


def _tooltip(rows: Rows) -> list[alt.Tooltip]:
    """Return a point's tooltip, as far as the rows have its values."""
    fields: dict[str, str | tuple[str, str]] = {
        "configuration": "configuration",
        "size_bytes": ("message, bytes", ",d"),
        "time_us": ("time, µs", ",.4~r"),
        "mad_us": ("MAD over launches, µs", ",.3~r"),
        "launches": ("launches", "d"),
    }
    if any(row["time_min_us"] is not None for row in rows):
        fields["time_min_us"] = ("of the fastest rank, µs", ",.4~r")
        fields["time_avg_us"] = ("mean of the ranks, µs", ",.4~r")
    if any(row["bandwidth_mb_s"] is not None for row in rows):
        fields["bandwidth_mb_s"] = ("MB/s", ",.4~r")
        fields["bandwidth_mbit_s"] = ("Mbit/s", ",.4~r")
    return tips(**fields)


def _ticks(rows: Rows, again: Sequence[dict[str, Any]] = ()) -> list[float]:
    """Return times in µs to label: of each decade all, 1, 2 and 5, or 1, by their number."""
    times = [row["time_us"] for row in again]
    least = min([row["low_us"] or row["time_us"] for row in rows] + times)
    most = max([row["high_us"] for row in rows] + times)
    decades = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
    span = math.log10(most / least)
    steps = (1, 1.5, 2, 3, 4, 5, 6, 8) if span <= 1 else (1, 2, 5) if span <= 4 else (1,)
    # Rounded, since 3 times 0.1 has 17 digits.
    return [round(step * 10.0**decade, 9) for decade in decades for step in steps]


def dots(
    name: str,
    title: str,
    rows: Rows,
    x_title: str,
    tooltip: list[alt.Tooltip],
    y: alt.Y,
    colour: alt.Color,
    *others: Any,
) -> dict[str, Any]:
    """Return ratios as dots with their intervals, and a line at 1, on a logarithmic axis.

    ``rows``: with ``value``, ``low`` and ``high``; ``others``: further channels of dots and lines,
    of which a shape is the dots' alone.
    """
    with debug_mode(False):
        scale = alt.Scale(type="log", base=2, nice=False, padding=12)
        x = alt.X("value:Q", title=x_title, scale=scale)
        shaped = any(isinstance(one, alt.Shape) for one in others)
        placed = [one for one in others if not isinstance(one, alt.Shape)]
        base = alt.Chart(alt.NamedData(name))
        chart = alt.layer(
            alt.Chart(alt.Data(values=[{"value": 1}]))
            .mark_rule(color=PAGE.faint, strokeDash=[4, 3])
            .encode(x),
            base.mark_rule(strokeWidth=2).encode(
                alt.X("low:Q", scale=scale), alt.X2("high:Q"), y, colour, *placed, tooltip=tooltip
            ),
            base.mark_point(filled=not shaped, size=80, strokeWidth=2.4).encode(
                x, y, colour, *others, tooltip=tooltip
            ),
        )
    height = _ROW * max(len(rows), 3)
    return specification(chart, title, {name: rows}, width="container", height=height)
