"""Charts of a report: the same chart for a page and for a file.

Charts of curves are filled into those of ``assets/charts.json``; others have their own.
"""

from __future__ import annotations

import functools
import json
import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from netproof.present.characters import visible
from netproof.present.tables import DataTable

Rows = list[dict[str, Any]]

BANDS_AT_ONCE = 8
"""Most configurations of a chart that shows the spread of all."""

STROKE_SIZE = 400
"""Area of a legend's line, long enough to show its dash."""

VEGA_LITE = "6.4"
"""Version of Vega-Lite that draws pages and files."""

FILE_WIDTH = 760
FILE_LINE = 130
"""Characters of a line below the title that fit a chart of this width."""
_ROW = 22
"""Height of a row of dots."""
_DIGITS = 5
"""Significant digits of a figure in a chart: a pixel is coarser."""

MARKS = {
    "failed": "M-1,-1L1,1M1,-1L-1,1",
    "inconclusive": "M-0.9,-0.9A0.9,0.9,0,1,1,0.45,0C0,0.3,0,0.45,0,0.9M0,1.5L0,1.7",
    "warning": "triangle-up",
    "not confirmed": "circle",
}
"""Shapes of flagged sizes; the first is a saltire, the second a question mark."""

_KINDS = {"time": ("size", "time"), "throughput": ("size", "rate"), "signature": ("time", "rate")}
"""Charts of curves: what is on their axes."""

_NO_CHARACTERS = {code: f"\\u{code:04x}" for code in (*range(0xD800, 0xE000), 0xFFFE, 0xFFFF)}
"""Code points that are no characters, and not allowed in XML."""

DASHES = ([1, 0], [7, 3], [2, 2], [9, 3, 2, 3], [4, 4], [12, 4])
SHAPES = (
    *("circle", "square", "triangle-up", "diamond"),
    *("triangle-down", "cross", "triangle-left", "triangle-right"),
)
_SIGNIFICANT = ("text", "faint", "grid", "failed", "inconclusive", "warning")
PAGE: dict[str, Any] = {
    **{name: f"var(--{name})" for name in _SIGNIFICANT},
    "not confirmed": "var(--faint)",
    "series": [f"var(--series-{number})" for number in range(8)],
}
"""Colours of a page's style sheet, so that charts follow its light or dark scheme."""
FILE: dict[str, Any] = {
    **{"text": "#1b1f24", "faint": "#57606a", "grid": "#d8dee4", "paper": "#ffffff"},
    **{"failed": "#b3261e", "inconclusive": "#5a3e85", "warning": "#8a5300"},
    "not confirmed": "#57606a",
    "series": [
        *("#0072b2", "#d55e00", "#007a5a", "#a8508a"),
        *("#3a8fc4", "#8f6a00", "#5b4bb5", "#4d4d4d"),
    ],
}
"""After Okabe and Ito, darkened where their lines are too faint on white."""


@dataclass(frozen=True)
class Looks:
    """The session's partitions and environments, in an order that gives each its look.

    A partition has the same colour and dash in every chart, an environment the same shape: nothing
    is shown by colour alone. ``stored``: partitions that other sessions measured; they are grey.
    ``legend``: the legend's name of the environments, which other curves may replace.
    """

    partitions: tuple[str, ...]
    environments: tuple[str, ...]
    stored: tuple[str, ...] = ()
    legend: str = "MPI × compiler"

    def colours(self, names: Sequence[str], ink: Mapping[str, Any], *, of: str) -> list[str]:
        """Return the colours of those names, by the place of each among all."""
        everyone = self.partitions if of == "partition" else self.environments
        colours = zip(names, _looks(names, everyone, ink["series"]), strict=True)
        grey = self.stored if of == "partition" else ()
        return [ink["faint"] if name in grey else own for name, own in colours]

    def dashes(self, names: Sequence[str]) -> list[list[int]]:
        """Return the dashes of those partitions."""
        return _looks(names, self.partitions, DASHES)

    def shapes(self, names: Sequence[str]) -> list[str]:
        """Return the shapes of those environments."""
        return _looks(names, self.environments, SHAPES)


def _looks(names: Sequence[str], everyone: Sequence[str], looks: Sequence[Any]) -> list[Any]:
    return [looks[everyone.index(name) % len(looks)] for name in names]


def shown(value: Any) -> Any:
    """Return a specification whose control characters are shown by their code.

    XML, and with it SVG, cannot hold them.
    """
    if isinstance(value, str):
        return visible(value).translate(_NO_CHARACTERS)
    if isinstance(value, dict):
        return {key: shown(one) for key, one in value.items()}
    return [shown(one) for one in value] if isinstance(value, list | tuple) else value


def filled(part: Any, values: Mapping[str, Any]) -> Any:
    """Return a part of a specification with a value for each ``@name`` that has one."""
    if isinstance(part, str):
        return values.get(part[1:], part) if part.startswith("@") else part
    if isinstance(part, dict):
        return {key: filled(one, values) for key, one in part.items()}
    return [filled(one, values) for one in part] if isinstance(part, list) else part


@functools.cache
def _read(colours: str) -> dict[str, Any]:
    text = (files("netproof.present.html") / "assets" / "charts.json").read_text(encoding="utf-8")
    return filled(json.loads(text), PAGE if colours == "page" else FILE)


@functools.cache
def templates(colours: str = "page") -> dict[str, Any]:
    """Return the specification of each chart of curves; ``@name`` stands for what differs.

    ``colours``: those of a ``page`` or of a ``file``. A layer is only for charts that have its
    data, and a tooltip's line only for data with its field.
    """
    parts, made = _read(colours), {}
    ink = PAGE if colours == "page" else FILE
    for kind, (x, y) in _KINDS.items():
        channels = {**parts["channels"], "x": parts["channels"][x], "y": parts["channels"][y]}
        channels["dash"] = channels["switch dash" if kind == "time" else "protocol dash"]
        # The most severe mark is on top.
        flags = [
            filled(parts["flag"], {"flag": mark, "flag shape": form, "flag colour": ink[mark]})
            for mark, form in reversed(MARKS.items())
        ]
        layers = filled([*parts["below"][y], *parts["curves"], *flags], channels)
        made[kind] = {**parts["chart"], "config": parts["config"], "layer": layers}
    return made


def specification(
    chart: Mapping[str, Any],
    description: str,
    data: Mapping[str, Sequence[Any]],
    colours: str = "page",
    **properties: Any,
) -> dict[str, Any]:
    """Return the Vega-Lite specification of a chart in the look of all, with its data by name."""
    named = {name: list(rows) for name, rows in data.items() if rows}
    made = {"background": "transparent", "description": description, **chart, **properties}
    return shown({**made, "config": _read(colours)["config"], "datasets": named})


def quantity(field: str, title: str | None = None, **more: Any) -> dict[str, Any]:
    """Return a channel of figures; ``more``: of Vega-Lite's."""
    return {"field": field, "type": "quantitative", "title": title, **more}


def word(field: str, title: str | None = None, **more: Any) -> dict[str, Any]:
    """Return a channel of words; ``more``: of Vega-Lite's."""
    return {"field": field, "type": "nominal", "title": title, **more}


def file_title(title: str, lines: Sequence[str], **more: Any) -> dict[str, Any]:
    """Return the title of a chart in a file, with lines below it."""
    return {
        **{"text": title, "anchor": "start", "fontSize": 15, "color": FILE["text"]},
        **{"subtitle": list(lines), "subtitleColor": FILE["faint"], "subtitleFontSize": 11},
        **more,
    }


def tips(**titles: str | tuple[str, str]) -> list[dict[str, str]]:
    """Return tooltips of fields: title, and the format of a number."""
    return [
        word(field, title) if isinstance(title, str) else quantity(field, title[0], format=title[1])
        for field, title in titles.items()
    ]


def present(rows: Rows, key: str) -> list[str]:
    """Return the values of a key, each once, in order."""
    return list(dict.fromkeys(row[key] for row in rows))


def labelled_sizes(rows: Rows) -> list[int]:
    """Return the message sizes to label: powers of 4, up to the largest."""
    largest = max(row["size_bytes"] for row in rows)
    return [4**power for power in range(16) if 4**power <= largest]


def size_axis(rows: Rows) -> dict[str, Any]:
    """Return the axis of message sizes."""
    return filled(_read("page")["channels"]["size"]["axis"], {"sizes": labelled_sizes(rows)})


def ticks(values: Sequence[float]) -> list[float]:
    """Return figures to label: of each decade all, 1, 2 and 5, or 1, by the number of decades."""
    least, most = min(values), max(values)
    decades = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
    span = math.log10(most / least)
    steps = (1, 1.5, 2, 3, 4, 5, 6, 8) if span <= 1 else (1, 2, 5) if span <= 4 else (1,)
    # Rounded, since 3 times 0.1 has 17 digits.
    return [round(step * 10.0**decade, 9) for decade in decades for step in steps]


def curves(rows: Sequence[Mapping[str, Any]]) -> Rows:
    """Return rows as curves: the words of a curve's points once, their figures as columns."""
    found: dict[tuple, dict[str, Any]] = {}
    for row in rows:
        words = tuple((key, value) for key, value in row.items() if isinstance(value, str))
        columns = found.setdefault(words, {})
        for key, value in row.items():
            if not isinstance(value, str):
                columns.setdefault(key, []).append(_rounded(value))
    return [{**dict(words), **columns} for words, columns in found.items()]


def _rounded(value: float) -> float:
    if isinstance(value, int):
        return value
    rounded = float(f"{value:.{_DIGITS}g}")
    return int(rounded) if rounded.is_integer() else rounded


@dataclass(frozen=True)
class ChartFigure:
    """A chart with its surroundings.

    ``kind``: time, throughput, signature, or pairs; ``rows``: its data, a row per point;
    ``sentences``: for below it, at most two lines, and ``hint`` one for a reader who can pick;
    ``notes``: beside its data; ``missing``: curves that are not in it, and why; ``lines``: line
    rates with their labels; ``again``: rows of repeats, in charts of time; ``drawn``: the
    specification of a chart that is not of curves, with its ``table``.
    """

    name: str
    title: str
    kind: str
    rows: Rows
    flags: Rows = field(default_factory=list)
    sentences: tuple[str, ...] = ()
    hint: str | None = None
    notes: tuple[str, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)
    envelope: Rows = field(default_factory=list)
    lines: Rows = field(default_factory=list)
    again: Rows = field(default_factory=list)
    drawn: dict[str, Any] | None = None
    table: DataTable | None = None

    @property
    def crowded(self) -> bool:
        """Whether bands would hide each other, so that only that of a picked curve is shown."""
        return len(present(self.rows, "configuration")) > BANDS_AT_ONCE

    def for_page(self, looks: Looks, data_of: str = "") -> dict[str, Any]:
        """Return what a page's script fills into the chart of this kind, or the chart itself.

        ``data_of``: the name of a chart on the page that has the same data.
        """
        if self.drawn is not None:
            return {"specification": {**self.drawn, "config": _read("page")["config"]}}
        data = {name: curves(rows) for name, rows in self._data().items()}
        more = {"dataOf": data_of} if data_of else {"data": data}
        return shown({"kind": self.kind, "values": self._values(looks, PAGE), **more})

    def for_file(self, looks: Looks) -> dict[str, Any]:
        """Return the Vega-Lite specification for a file, with its title within."""
        sentences = [*self.sentences, *self.notes]
        if self.missing:
            sentences.append(f"Not drawn: {'; '.join(self.missing)}.")
        lines = textwrap.wrap(" ".join(sentences), FILE_LINE)
        more = {"title": file_title(self.title, lines, dy=-6), "background": FILE["paper"]}
        if self.drawn is not None:
            return shown({**self.drawn, "config": _read("file")["config"], **more})
        data, template = self._data(), templates("file")[self.kind]
        layers = [layer for layer in template["layer"] if layer["data"]["name"] in data]
        made = filled({**template, "layer": layers}, self._values(looks, FILE))
        return shown({**made, **more, "width": FILE_WIDTH, "datasets": data})

    def _data(self) -> dict[str, Rows]:
        """Return the rows of the chart by the names of its layers, as far as there are any."""
        unread = {"low_us", "high_us", *(["partition"] if self.kind != "time" else ["protocol"])}
        # One launch has no spread.
        unread |= {"mad_us"} if all(row["launches"] < 2 for row in self.rows) else set()
        data = {
            **{"points": self.rows, "envelope": self.envelope, "line rates": self.lines},
            "measured again": self.again,
            **{mark: [row for row in self.flags if row["mark"] == mark] for mark in MARKS},
        }
        return {
            name: [
                {key: one for key, one in row.items() if one is not None and key not in unread}
                for row in rows
            ]
            for name, rows in data.items()
            if rows
        }

    def _values(self, looks: Looks, ink: Mapping[str, Any]) -> dict[str, Any]:
        """Return what differs between charts of one kind, by its name in the template."""
        of_time = self.kind == "time"
        environments = present(self.rows, "environment")
        names = present(self.rows, "configuration")
        partitions = present(self.rows, "partition")
        # With one switch, colours can distinguish libraries.
        by, coloured, title = "environment", environments, looks.legend
        if of_time and len(partitions) > 1:
            by, coloured, title = "partition", partitions, "switch"
        times = [row["time_us"] for row in (*self.rows, *self.again)]
        strokes = {"symbolOpacity": 1, "symbolType": "stroke", "symbolSize": STROKE_SIZE}
        values = {
            **{"title": self.title, "options": [None, *names], "labels": ["all of them", *names]},
            **{"legend": looks.legend, "environments": environments},
            **{"shapes": looks.shapes(environments), "coloured": by, "colour title": title},
            **{"colour names": coloured, "colours": looks.colours(coloured, ink, of=by)},
            "colour legend": strokes if by == "partition" else {"symbolOpacity": 1},
            "sizes": labelled_sizes(self.rows),
        }
        if not of_time:
            rates = [row["bandwidth_mbit_s"] for row in self.rows]
            rates += [one["line_rate_mbit_s"] for one in self.lines]
            return {**values, "times": ticks(times), "rates": ticks(rates)}
        times += [row["low_us"] for row in self.rows if row["low_us"] > 0]
        return {
            **values,
            "times": ticks([*times, *(row["high_us"] for row in self.rows)]),
            **{"bands": not self.crowded, "faded band": 0 if self.crowded else 0.03},
            **{"partitions": partitions, "dashes": looks.dashes(partitions)},
            "dash legend": None if by == "environment" else strokes,
        }


def dots(
    title: str,
    rows: Rows,
    x_title: str,
    tooltip: list[dict[str, Any]],
    channels: Mapping[str, Any],
    shape: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return ratios as dots with their intervals, and a line at 1, on a logarithmic axis.

    ``rows``: with ``value``, ``low`` and ``high``; ``channels``: of dots and lines.
    """
    scale = {"type": "log", "base": 2, "nice": False, "padding": 12}
    x, channels = quantity("value", x_title, scale=scale), {**channels, "tooltip": tooltip}
    point = {"type": "point", "filled": shape is None, "size": 80, "strokeWidth": 2.4}
    layers = [
        {
            "data": {"values": [{"value": 1}]},
            "mark": {"type": "rule", "color": PAGE["faint"], "strokeDash": [4, 3]},
            "encoding": {"x": x},
        },
        {
            "data": {"name": "dots"},
            "mark": {"type": "rule", "strokeWidth": 2},
            "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}, **channels},
        },
        {
            "data": {"name": "dots"},
            "mark": point,
            "encoding": {"x": x, **channels, **({"shape": shape} if shape else {})},
        },
    ]
    height = _ROW * max(len(rows), 3)
    properties = {"width": "container", "height": height}
    return specification({"layer": layers}, title, {"dots": rows}, **properties)
