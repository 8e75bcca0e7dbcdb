"""The charts of a report, by Altair: the same chart for a page and for a file.

On a page colours are those of its style sheet, so that they follow its light or dark scheme; a
file has the light ones. Nothing is told by colour alone: a switch has a dash too, an MPI library
a shape, a mark a shape of its own.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
from altair.utils.schemapi import debug_mode

from netproof.present.tables import visible

Rows = list[dict[str, Any]]

LIBRARY = "MPI × compiler"

DASHES = ([1, 0], [7, 3], [2, 2], [9, 3, 2, 3], [4, 4], [12, 4])
SHAPES = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "triangle-down",
    "cross",
    "triangle-left",
    "triangle-right",
)
MARKS = {
    "failed": "M-1,-1L1,1M1,-1L-1,1",
    "inconclusive": "M-0.9,-0.9A0.9,0.9,0,1,1,0.45,0C0,0.3,0,0.45,0,0.9M0,1.5L0,1.7",
    "warning": "triangle-up",
    "not confirmed": "circle",
}
"""The shapes of flagged sizes; the first is a saltire, the second a question mark."""

AGAIN_MARK = "M0,-1V1M-1,0H1"

POINTS, ENVELOPE, LINES, AGAIN = "points", "envelope", "line rates", "measured again"
"""Names of a chart's data beside its marks."""

NUMBERS = (
    "size_bytes",
    "time_us",
    "mad_us",
    "time_min_us",
    "time_avg_us",
    "bandwidth_mb_s",
    "bandwidth_mbit_s",
    "launches",
)

BANDS_AT_ONCE = 8
"""Up to how many configurations a chart shows the spread of all."""

STROKE_SIZE = 400
"""Area of a legend's line, long enough to show its dash."""

HEIGHT = 340
FILE_WIDTH = 760
FILE_LINE = 130
"""Characters of a line below the title that fit a chart of this width."""

_NO_CHARACTERS = {code: f"\\u{code:04x}" for code in (*range(0xD800, 0xE000), 0xFFFE, 0xFFFF)}
"""What is no character, and in no XML either."""

_BYTES = (
    "datum.value >= 1048576 ? datum.value / 1048576 + ' MiB' : "
    "datum.value >= 1024 ? datum.value / 1024 + ' KiB' : datum.value + ' B'"
)
_TIMES = (
    "datum.value >= 1e6 ? datum.value / 1e6 + ' s' : "
    "datum.value >= 1e3 ? datum.value / 1e3 + ' ms' : datum.value + ' µs'"
)


@dataclass(frozen=True)
class Ink:
    """The colours of a chart, as text that CSS understands; ``series`` for up to eight."""

    text: str
    faint: str
    grid: str
    failed: str
    inconclusive: str
    warning: str
    series: tuple[str, ...]


PAGE = Ink(
    "var(--text)",
    "var(--faint)",
    "var(--grid)",
    "var(--failed)",
    "var(--inconclusive)",
    "var(--warning)",
    tuple(f"var(--series-{number})" for number in range(8)),
)
FILE = Ink(
    "#1b1f24",
    "#57606a",
    "#d8dee4",
    "#b3261e",
    "#5a3e85",
    "#8a5300",
    (
        "#0072b2",
        "#d55e00",
        "#007a5a",
        "#a8508a",
        "#3a8fc4",
        "#8f6a00",
        "#5b4bb5",
        "#4d4d4d",
    ),
)
"""After Okabe and Ito, darkened where lines of theirs are too faint on white."""


@dataclass(frozen=True)
class Looks:
    """The session's partitions and environments, in an order that gives each its look.

    A partition has the same colour and dash in every chart, an environment the same shape.
    ``stored``: those of the partitions that other sessions measured; they are grey.
    """

    partitions: tuple[str, ...]
    environments: tuple[str, ...]
    stored: tuple[str, ...] = ()

    def colours(self, names: Sequence[str], ink: Ink, *, of: str) -> alt.Scale:
        """Colours of those names, by the place that each has among all."""
        scale = _scale(names, self._all(of), ink.series)
        if of == "partition":
            colours = zip(names, scale.range, strict=True)
            scale.range = [ink.faint if name in self.stored else own for name, own in colours]
        return scale

    def dashes(self, names: Sequence[str]) -> alt.Scale:
        """Dashes of those partitions."""
        return _scale(names, self.partitions, DASHES)

    def shapes(self, names: Sequence[str]) -> alt.Scale:
        """Shapes of those environments."""
        return _scale(names, self.environments, SHAPES)

    def _all(self, of: str) -> tuple[str, ...]:
        return self.partitions if of == "partition" else self.environments


def _scale(names: Sequence[str], everyone: Sequence[str], looks: Sequence[Any]) -> alt.Scale:
    places = [everyone.index(name) for name in names]
    return alt.Scale(domain=list(names), range=[looks[place % len(looks)] for place in places])


@dataclass(frozen=True)
class ChartFigure:
    """A chart with what stands around it.

    ``kind``: time, throughput or signature; ``rows``: its data, a row a point, as content has
    them; ``told``: sentences for below it, and ``hint`` one for a reader who can pick; ``missing``:
    what is not in it, each followed by a colon and why; ``lines``: line rates with their labels;
    ``again``: rows of what was measured again, in charts of time.
    """

    name: str
    title: str
    kind: str
    rows: Rows
    flags: Rows
    told: tuple[str, ...] = ()
    hint: str | None = None
    missing: tuple[str, ...] = ()
    envelope: tuple[dict[str, Any], ...] = ()
    lines: tuple[dict[str, Any], ...] = ()
    again: tuple[dict[str, Any], ...] = ()

    @property
    def crowded(self) -> bool:
        """Whether bands would hide each other, so that only that of a picked curve is shown."""
        return len(_present(self.rows, "configuration")) > BANDS_AT_ONCE

    def chart(self, looks: Looks, ink: Ink) -> alt.LayerChart:
        """The chart, as wide as its place on a page."""
        draw = {"time": _time, "throughput": _throughput, "signature": _signature}[self.kind]
        return _configured(draw(self, looks, ink), ink, self.title)

    def for_page(self, looks: Looks) -> dict[str, Any]:
        """The Vega-Lite specification for a page, where title and caption are HTML."""
        # Altair's own checks take ten times as long as all else, and tests have them on.
        with debug_mode(False):
            made = self._with_data(self.chart(looks, PAGE).properties(width="container"))
        return shown(made)

    def for_file(self, looks: Looks) -> dict[str, Any]:
        """The Vega-Lite specification for a file, with its title within."""
        with debug_mode(False):
            title = alt.TitleParams(
                self.title,
                anchor="start",
                fontSize=15,
                dy=-6,
                color=FILE.text,
                subtitle=self._below_title(),
                subtitleColor=FILE.faint,
                subtitleFontSize=11,
            )
            chart = self.chart(looks, FILE)
            made = self._with_data(
                chart.properties(width=FILE_WIDTH, title=title, background="#ffffff")
            )
        return shown(made)

    def _below_title(self) -> list[str]:
        """What a page says below the chart, in lines; of what is missing only the names."""
        told = list(self.told)
        if self.missing:
            names = "; ".join(dict.fromkeys(why.partition(": ")[0] for why in self.missing))
            told.append(f"Not drawn: {names}.")
        return textwrap.wrap(" ".join(told), FILE_LINE)

    def _with_data(self, chart: alt.LayerChart) -> dict[str, Any]:
        """The specification, with its data unread by Altair."""
        keys = ("configuration", "environment", *NUMBERS)
        keys += ("partition", "low_us", "high_us") if self.kind == "time" else ("protocol",)
        rows = [{key: row[key] for key in keys if row[key] is not None} for row in self.rows]
        marked = {mark: [row for row in self.flags if row["mark"] == mark] for mark in MARKS}
        datasets = {
            POINTS: rows,
            ENVELOPE: list(self.envelope),
            LINES: list(self.lines),
            AGAIN: list(self.again),
            **marked,
        }
        return {
            **chart.to_dict(validate=False),
            "datasets": {k: v for k, v in datasets.items() if v},
        }


def shown(value: Any) -> Any:
    """A specification in which control characters are seen as what they are.

    XML, and with it an SVG, has no way to hold them.
    """
    if isinstance(value, str):
        return visible(value).translate(_NO_CHARACTERS)
    if isinstance(value, dict):
        return {key: shown(one) for key, one in value.items()}
    return [shown(one) for one in value] if isinstance(value, list | tuple) else value


def _time(figure: ChartFigure, looks: Looks, ink: Ink) -> alt.LayerChart:
    """Time over size, both logarithmic: all configurations, the envelope below them."""
    partitions = _present(figure.rows, "partition")
    environments = _present(figure.rows, "environment")
    strokes = alt.Legend(symbolOpacity=1, symbolType="stroke", symbolSize=STROKE_SIZE)
    # With one switch alone, colours are free to tell libraries apart.
    by, names, title = "partition", partitions, "switch"
    if len(looks.partitions) == 1:
        by, names, title = "environment", environments, LIBRARY
    colour = alt.Color(
        f"{by}:N",
        title=title,
        scale=looks.colours(names, ink, of=by),
        # Else a legend is as faint as the bands.
        legend=strokes if by == "partition" else alt.Legend(symbolOpacity=1),
    )
    dash = alt.StrokeDash(
        "partition:N", title="switch", scale=looks.dashes(partitions), legend=strokes
    )
    if by != "partition":
        dash = alt.StrokeDash("partition:N", scale=looks.dashes(partitions), legend=None)
    pick, hover = _pick(figure.rows), _hover()
    x = alt.X("size_bytes:Q", scale=_log(2), axis=_size_axis(figure.rows), title="message size")
    y = alt.Y(
        "time_us:Q",
        scale=_log(10),
        axis=alt.Axis(values=_ticks(figure.rows, figure.again), labelExpr=_TIMES),
        title="time",
    )
    layers = []
    if figure.envelope:
        layers.append(
            alt.Chart(alt.NamedData(ENVELOPE))
            .mark_line(strokeWidth=9, opacity=0.22, color=ink.text, clip=True)
            .encode(x, y)
        )
    shape = alt.Shape("environment:N", title=LIBRARY, scale=looks.shapes(environments))
    layers += [
        alt.Chart(alt.NamedData(POINTS))
        .mark_area()
        .encode(
            x,
            alt.Y("low_us:Q", scale=_log(10)),
            alt.Y2("high_us:Q"),
            colour,
            alt.Detail("configuration:N"),
            opacity=_band_opacity(figure, pick),
        ),
        *_again_layers(figure, x, y, colour, pick),
        *_curve_layers((x, y, colour, dash), shape, pick, hover, size=34),
        _targets(POINTS, _tooltip(figure.rows), x, y, pick).add_params(pick, hover),
        *_flag_layers(figure.flags, x, y, pick, ink),
    ]
    return alt.layer(*layers)


def _curve_layers(
    channels: tuple[Any, ...],
    shape: alt.Shape,
    pick: alt.Parameter,
    hover: alt.Parameter,
    *,
    size: int,
) -> list[alt.Chart]:
    """A line for each configuration and a point at each size; others fade beside a pick.

    ``channels``: x, y, colour and dash.
    """
    base = alt.Chart(alt.NamedData(POINTS))
    fade = alt.when(pick).then(alt.value(1)).otherwise(alt.value(0.12))
    return [
        base.mark_line(strokeWidth=1.8).encode(
            *channels,
            alt.Detail("configuration:N"),
            # Over time, points would else be joined in the order of their times.
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


def _again_layers(
    figure: ChartFigure, x: alt.X, y: alt.Y, colour: alt.Color, pick: alt.Parameter
) -> list[alt.Chart]:
    """What was measured again: a thin line with small marks for each launch."""
    if not figure.again:
        return []
    base = alt.Chart(alt.NamedData(AGAIN))
    fade = alt.when(pick).then(alt.value(0.9)).otherwise(alt.value(0.08))
    told = [
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
        _targets(AGAIN, told, x, y, pick),
    ]


def _band_opacity(figure: ChartFigure, pick: alt.Parameter) -> Any:
    if figure.crowded:
        picked = alt.when(pick, empty=False)
        return picked.then(alt.value(0.3)).otherwise(alt.value(0))
    return alt.when(pick).then(alt.value(0.25)).otherwise(alt.value(0.03))


def _throughput(figure: ChartFigure, looks: Looks, ink: Ink) -> alt.LayerChart:
    """NetPIPE's throughput over message size, TCP and MPI, below the line rate."""
    x = alt.X("size_bytes:Q", scale=_log(2), axis=_size_axis(figure.rows), title="message size")
    return _netpipe(figure, looks, ink, x)


def _signature(figure: ChartFigure, looks: Looks, ink: Ink) -> alt.LayerChart:
    """NetPIPE's signature graph: throughput over the time that the message took."""
    x = alt.X(
        "time_us:Q",
        scale=_log(10),
        axis=alt.Axis(values=_ticks(figure.rows), labelExpr=_TIMES),
        title="time of a message",
    )
    return _netpipe(figure, looks, ink, x)


def _netpipe(figure: ChartFigure, looks: Looks, ink: Ink, x: alt.X) -> alt.LayerChart:
    environments = _present(figure.rows, "environment")
    title = LIBRARY
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
    pick, hover = _pick(figure.rows), _hover()
    shape = alt.Shape("environment:N", title=title, scale=looks.shapes(environments))
    layers = [
        *_curve_layers((x, y, colour, dash), shape, pick, hover, size=30),
        _targets(POINTS, _tooltip(figure.rows), x, y, pick).add_params(pick, hover),
    ]
    if figure.lines:
        lines = alt.Chart(alt.NamedData(LINES))
        layers = [
            lines.mark_rule(strokeWidth=1.5, strokeDash=[10, 3], color=ink.text).encode(
                alt.Y("line_rate_mbit_s:Q"), tooltip=alt.Tooltip("label:N", title="line rate")
            ),
            lines.mark_text(align="left", baseline="bottom", dx=6, dy=-3, color=ink.text).encode(
                alt.Y("line_rate_mbit_s:Q"), x=alt.value(0), text="label:N"
            ),
            *layers,
        ]
    return alt.layer(*layers, *_flag_layers(figure.flags, x, y, pick, ink))


def _targets(
    data: str, told: list[alt.Tooltip], x: alt.X, y: alt.Y, pick: alt.Parameter
) -> alt.Chart:
    """Unseen points that are large enough to be hit, which tell the values; of a pick, its own.

    Vega-Lite's own way to the nearest point tells no text of it and cannot be clicked.
    """
    return (
        alt.Chart(alt.NamedData(data))
        .mark_point(filled=True, opacity=0, cursor="pointer")
        .encode(
            x,
            y,
            alt.Detail("configuration:N"),
            size=alt.when(pick).then(alt.value(200)).otherwise(alt.value(0)),
            tooltip=told,
        )
    )


def _flag_layers(rows: Rows, x: alt.X, y: alt.Y, pick: alt.Parameter, ink: Ink) -> list[alt.Chart]:
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
                        *_tooltip(marked),
                        alt.Tooltip("why:N", title="why"),
                    ],
                )
            )
    return layers


def _pick(rows: Rows) -> alt.Parameter:
    names = _present(rows, "configuration")
    return alt.selection_point(
        name="pick",
        fields=["configuration"],
        on="click",
        clear="dblclick",
        bind=alt.binding_select(
            options=[None, *names], labels=["all of them", *names], name="Show "
        ),
    )


def _hover() -> alt.Parameter:
    return alt.selection_point(
        name="hover",
        fields=["configuration", "size_bytes"],
        on="pointerover",
        clear="pointerout",
        empty=False,
    )


def _tooltip(rows: Rows) -> list[alt.Tooltip]:
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


def _present(rows: Rows, key: str) -> list[str]:
    return list(dict.fromkeys(row[key] for row in rows))


def _ticks(rows: Rows, again: Sequence[dict[str, Any]] = ()) -> list[float]:
    """Times in µs to label: of each decade all, 1, 2 and 5, or 1, by how many there are."""
    times = [row["time_us"] for row in again]
    least = min([row["low_us"] or row["time_us"] for row in rows] + times)
    most = max([row["high_us"] for row in rows] + times)
    decades = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
    span = math.log10(most / least)
    steps = (1, 1.5, 2, 3, 4, 5, 6, 8) if span <= 1 else (1, 2, 5) if span <= 4 else (1,)
    # Rounded, since 3 times 0.1 is labelled with all its digits.
    return [round(step * 10.0**decade, 9) for decade in decades for step in steps]


def _log(base: int) -> alt.Scale:
    return alt.Scale(type="log", base=base, nice=False, padding=8)


def _size_axis(rows: Rows) -> alt.Axis:
    largest = max(row["size_bytes"] for row in rows)
    ticks = [4**power for power in range(16) if 4**power <= largest]
    return alt.Axis(values=ticks, labelExpr=_BYTES, labelOverlap="greedy")


def _configured(chart: alt.LayerChart, ink: Ink, title: str) -> alt.LayerChart:
    """Look and description that all charts have in common."""
    sized = chart.resolve_scale(shape="shared").properties(height=HEIGHT, description=title)
    return looking(sized.properties(background="transparent"), ink)


def looking(chart: Any, ink: Ink) -> Any:
    """A chart, or several in one, with axes and legends as all charts have them."""
    words = {"labelColor": ink.text, "titleColor": ink.text, "labelFontSize": 11}
    return (
        chart.configure_view(stroke=ink.grid)
        .configure_axis(
            **words,
            titleFontSize=12,
            titleFontWeight="normal",
            domainColor=ink.faint,
            tickColor=ink.faint,
            gridColor=ink.grid,
        )
        .configure_legend(
            **words,
            orient="bottom",
            direction="horizontal",
            columns=4,
            titleFontSize=11,
            titleFontWeight="normal",
            symbolFillColor=ink.text,
            symbolStrokeColor=ink.text,
            labelLimit=260,
            symbolSize=90,
            columnPadding=14,
        )
    )
