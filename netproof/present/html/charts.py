"""Charts of a report, by Altair: the same chart for a page and for a file."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any

import altair as alt
from altair.utils.schemapi import debug_mode

from netproof.present.characters import visible
from netproof.present.html import layers
from netproof.present.html.layers import AGAIN, ENVELOPE, LINES, MARKS, POINTS, TIMES, Rows
from netproof.present.html.looks import FILE, PAGE, Ink, Looks, looking

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
"""Most configurations of a chart that shows the spread of all."""

STROKE_SIZE = 400
"""Area of a legend's line, long enough to show its dash."""

HEIGHT = 340
FILE_WIDTH = 760
FILE_LINE = 130
"""Characters of a line below the title that fit a chart of this width."""

_NO_CHARACTERS = {code: f"\\u{code:04x}" for code in (*range(0xD800, 0xE000), 0xFFFE, 0xFFFF)}
"""Code points that are no characters, and not allowed in XML."""


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

    ``kind``: time, throughput or signature; ``rows``: its data, a row per point, as content returns
    them; ``sentences``: for below it, and ``hint`` one for a reader who can pick; ``missing``:
    curves that are not in it; ``lines``: line rates with their labels; ``again``: rows of repeated
    measurements, in charts of time.
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
        return len(layers.present(self.rows, "configuration")) > BANDS_AT_ONCE

    def chart(self, looks: Looks, ink: Ink) -> alt.LayerChart:
        """Return the chart, as wide as its place on a page."""
        draw = {"time": _time, "throughput": _throughput, "signature": _signature}[self.kind]
        return _configured(draw(self, looks, ink), ink, self.title)

    def for_page(self, looks: Looks) -> dict[str, Any]:
        """Return the Vega-Lite specification for a page, where title and caption are HTML."""
        # Altair's own checks take ten times as long as all else, and tests have them on.
        with debug_mode(False):
            made = self._with_data(self.chart(looks, PAGE).properties(width="container"))
        return shown(made)

    def for_file(self, looks: Looks) -> dict[str, Any]:
        """Return the Vega-Lite specification for a file, with its title within."""
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
        """Return a page's lines below the chart; of missing curves only the names."""
        sentences = list(self.sentences)
        if self.missing:
            names = "; ".join(dict.fromkeys(one.what for one in self.missing))
            sentences.append(f"Not drawn: {names}.")
        return textwrap.wrap(" ".join(sentences), FILE_LINE)

    def _with_data(self, chart: alt.LayerChart) -> dict[str, Any]:
        """Return the specification, with its data unread by Altair."""
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
    """Return a specification whose control characters are shown by their code.

    XML, and with it SVG, cannot hold them.
    """
    if isinstance(value, str):
        return visible(value).translate(_NO_CHARACTERS)
    if isinstance(value, dict):
        return {key: shown(one) for key, one in value.items()}
    return [shown(one) for one in value] if isinstance(value, list | tuple) else value


def _time(figure: ChartFigure, looks: Looks, ink: Ink) -> alt.LayerChart:
    """Return time over size, both logarithmic: all configurations, the envelope below them."""
    partitions = layers.present(figure.rows, "partition")
    environments = layers.present(figure.rows, "environment")
    strokes = alt.Legend(symbolOpacity=1, symbolType="stroke", symbolSize=STROKE_SIZE)
    # With one switch, colours can distinguish libraries.
    by, names, title = "partition", partitions, "switch"
    if len(looks.partitions) == 1:
        by, names, title = "environment", environments, looks.legend
    colour = alt.Color(
        f"{by}:N",
        title=title,
        scale=looks.colours(names, ink, of=by),
        # Otherwise a legend is as faint as the bands.
        legend=strokes if by == "partition" else alt.Legend(symbolOpacity=1),
    )
    dash = alt.StrokeDash(
        "partition:N", title="switch", scale=looks.dashes(partitions), legend=strokes
    )
    if by != "partition":
        dash = alt.StrokeDash("partition:N", scale=looks.dashes(partitions), legend=None)
    pick, hover = layers.pick(figure.rows), layers.hover()
    x = alt.X(
        "size_bytes:Q",
        scale=layers.log(2),
        axis=layers.size_axis(figure.rows),
        title="message size",
    )
    y = alt.Y(
        "time_us:Q",
        scale=layers.log(10),
        axis=alt.Axis(values=layers.ticks(figure.rows, figure.again), labelExpr=TIMES),
        title="time",
    )
    drawn = []
    if figure.envelope:
        drawn.append(
            alt.Chart(alt.NamedData(ENVELOPE))
            .mark_line(strokeWidth=9, opacity=0.22, color=ink.text, clip=True)
            .encode(x, y)
        )
    shape = alt.Shape("environment:N", title=looks.legend, scale=looks.shapes(environments))
    drawn += [
        alt.Chart(alt.NamedData(POINTS))
        .mark_area()
        .encode(
            x,
            alt.Y("low_us:Q", scale=layers.log(10)),
            alt.Y2("high_us:Q"),
            colour,
            alt.Detail("configuration:N"),
            opacity=_band_opacity(figure, pick),
        ),
        *layers.again_layers(figure.again, x, y, colour, pick),
        *layers.curve_layers((x, y, colour, dash), shape, pick, hover, size=34),
        layers.targets(POINTS, layers.tooltip(figure.rows), x, y, pick).add_params(pick, hover),
        *layers.flag_layers(figure.flags, x, y, pick, ink),
    ]
    return alt.layer(*drawn)


def _band_opacity(figure: ChartFigure, pick: alt.Parameter) -> Any:
    if figure.crowded:
        picked = alt.when(pick, empty=False)
        return picked.then(alt.value(0.3)).otherwise(alt.value(0))
    return alt.when(pick).then(alt.value(0.25)).otherwise(alt.value(0.03))


def _throughput(figure: ChartFigure, looks: Looks, ink: Ink) -> alt.LayerChart:
    """Return NetPIPE's throughput over message size, TCP and MPI, below the line rate."""
    x = alt.X(
        "size_bytes:Q",
        scale=layers.log(2),
        axis=layers.size_axis(figure.rows),
        title="message size",
    )
    return _netpipe(figure, looks, ink, x)


def _signature(figure: ChartFigure, looks: Looks, ink: Ink) -> alt.LayerChart:
    """Return NetPIPE's signature graph: throughput over the time of the message."""
    x = alt.X(
        "time_us:Q",
        scale=layers.log(10),
        axis=alt.Axis(values=layers.ticks(figure.rows), labelExpr=TIMES),
        title="time of a message",
    )
    return _netpipe(figure, looks, ink, x)


def _netpipe(figure: ChartFigure, looks: Looks, ink: Ink, x: alt.X) -> alt.LayerChart:
    environments = layers.present(figure.rows, "environment")
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
    pick, hover = layers.pick(figure.rows), layers.hover()
    shape = alt.Shape("environment:N", title=title, scale=looks.shapes(environments))
    drawn = [
        *layers.curve_layers((x, y, colour, dash), shape, pick, hover, size=30),
        layers.targets(POINTS, layers.tooltip(figure.rows), x, y, pick).add_params(pick, hover),
    ]
    if figure.lines:
        lines = alt.Chart(alt.NamedData(LINES))
        drawn = [
            lines.mark_rule(strokeWidth=1.5, strokeDash=[10, 3], color=ink.text).encode(
                alt.Y("line_rate_mbit_s:Q"), tooltip=alt.Tooltip("label:N", title="line rate")
            ),
            lines.mark_text(align="left", baseline="bottom", dx=6, dy=-3, color=ink.text).encode(
                alt.Y("line_rate_mbit_s:Q"), x=alt.value(0), text="label:N"
            ),
            *drawn,
        ]
    return alt.layer(*drawn, *layers.flag_layers(figure.flags, x, y, pick, ink))


def _configured(chart: alt.LayerChart, ink: Ink, title: str) -> alt.LayerChart:
    """Return a chart with the look and description that all have in common."""
    sized = chart.resolve_scale(shape="shared").properties(height=HEIGHT, description=title)
    return looking(sized.properties(background="transparent"), ink)
