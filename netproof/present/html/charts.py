"""Charts: one specification of each, in the style sheet's colours, for a page and for a file."""

from __future__ import annotations

import functools
import json
import math
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from netproof.present.document import DataTable
from netproof.present.wording import visible

Rows = list[dict[str, Any]]

BANDS_AT_ONCE = 8
"""Most configurations of a chart that shows the spread of all."""

STROKE_SIZE = 400
"""Area of a legend's line, long enough to show its dash."""

FILE_WIDTH = 760
FILE_LINE = 130
"""Characters of a line below the title that fit a chart of this width."""
_ROW = 22
"""Height of a row of dots."""
_DIGITS = 5
"""Significant digits of a figure in a chart: a pixel is coarser."""
_DECADES = range(-3, 10)
"""Times in µs, to a quarter of an hour, and rates in Mbit/s."""

_NO_CHARACTERS = {code: f"\\u{code:04x}" for code in (*range(0xD800, 0xE000), 0xFFFE, 0xFFFF)}
"""Code points that are no characters, and not allowed in XML."""

TEXT, FAINT = "var(--text)", "var(--faint)"
"""Colours by their names in the style sheet; those of curves are after Okabe and Ito."""


@dataclass(frozen=True)
class Looks:
    """Looks of partitions and environments by their order, the same in every chart.

    A partition has a colour and a dash, an environment a shape: nothing is shown by colour alone.
    ``stored``: grey ones, which other sessions measured; ``legend``: title of the environments.
    """

    partitions: tuple[str, ...]
    environments: tuple[str, ...]
    stored: tuple[str, ...] = ()
    legend: str = "MPI × compiler"

    def of(self, kind: str, look: str, names: Sequence[str]) -> list[Any]:
        """Return the looks of ``partitions`` or ``environments``, by the place of each among all.

        ``look``: ``colours``, ``dashes`` or ``shapes`` of ``assets/charts.json``.
        """
        everyone, looks = getattr(self, kind), _parts()["looks"][look]
        found = [looks[everyone.index(name) % len(looks)] for name in names]
        if (kind, look) == ("partitions", "colours"):
            found = [FAINT if n in self.stored else f for n, f in zip(names, found, strict=True)]
        return found


def mapped(part: Any, change: Callable[[str], Any]) -> Any:
    """Return a part of a specification with each of its strings changed."""
    if isinstance(part, str):
        return change(part)
    if isinstance(part, dict):
        return {key: mapped(one, change) for key, one in part.items()}
    return [mapped(one, change) for one in part] if isinstance(part, list | tuple) else part


def shown(text: str) -> str:
    """Return a text with controls, and what XML cannot hold, shown by their code."""
    return visible(text).translate(_NO_CHARACTERS)


def filled(part: Any, values: Mapping[str, Any]) -> Any:
    """Return a part of a specification with a value for each ``@name`` that has one."""
    return mapped(part, lambda text: values.get(text[1:], text) if text[:1] == "@" else text)


_ASSETS = files("netproof.present.html") / "assets"


@functools.cache
def _parts() -> dict[str, Any]:
    parts: dict[str, Any] = json.loads((_ASSETS / "charts.json").read_text(encoding="utf-8"))
    return parts


MARKS: dict[str, dict[str, str]] = _parts()["marks"]
"""Flagged sizes' marks: shape, colour, and words, as files draw no line with signs they lack."""


@functools.cache
def light() -> dict[str, str]:
    """Return the colours of the style sheet's light scheme by their names: those of files."""
    scheme = (_ASSETS / "report.css").read_text(encoding="utf-8").partition("@media")[0]
    return {f"var({name})": colour for name, colour in re.findall(r"(--[\w-]+): (#\w+);", scheme)}


def present(rows: Rows, key: str) -> list[str]:
    """Return the values of a key, each once, in order."""
    return list(dict.fromkeys(row[key] for row in rows))


def ticks(values: Sequence[float]) -> list[float]:
    """Return figures to label in each decade, fewer the more decades there are.

    Those beyond an axis's ends are left out there, so the charts of a page have the same.
    """
    span = math.log10(max(values) / min(values))
    steps = (1, 1.5, 2, 3, 4, 5, 6, 8) if span <= 1 else (1, 2, 5) if span <= 4 else (1,)
    # Rounded, since 3 times 0.1 has 17 digits.
    return [_rounded(step * 10.0**decade) for decade in _DECADES for step in steps]


def curves(rows: Sequence[Mapping[str, Any]]) -> Rows:
    """Return rows as curves: the words of a curve's points once, their figures as columns."""
    found: dict[tuple[object, ...], dict[str, Any]] = {}
    for row in rows:
        words = {key: value for key, value in row.items() if isinstance(value, str)}
        figures = {key: value for key, value in row.items() if key not in words}
        empty = {**words, **{key: [] for key in figures}}
        columns = found.setdefault((*words.items(), *figures), empty)
        for key, value in figures.items():
            columns[key].append(_rounded(value))
    return list(found.values())


def _rounded(value: float) -> float:
    if isinstance(value, int):
        return value
    rounded = float(f"{value:.{_DIGITS}g}")
    return int(rounded) if rounded.is_integer() else rounded


@dataclass(frozen=True)
class ChartFigure:
    """A chart with its surroundings.

    ``chart``: its specification without data, None where nothing is to draw; ``data``: rows by
    the names of its layers; ``sentences``: at most two lines below it, ``hint``: one for a reader
    who can pick; ``notes``: beside its data; ``missing``: what is not in it, and why.
    """

    title: str
    chart: Mapping[str, Any] | None
    data: Mapping[str, Rows]
    name: str = ""
    sentences: Sequence[str] = ()
    hint: str = ""
    notes: Sequence[str] = ()
    missing: Mapping[str, str] = field(default_factory=dict)
    table: DataTable | None = None

    @property
    def rows(self) -> Rows:
        """Points of the chart, for a file of its data."""
        return self.data.get("points", [])

    def for_page(self) -> dict[str, Any]:
        """Return the specification for a page, with only the data that it names, as curves."""
        datasets = {name: curves(rows) for name, rows in self._named().items()}
        made: dict[str, Any] = mapped(self._specification(datasets=datasets), shown)
        return made

    def for_file(self) -> dict[str, Any]:
        """Return the specification for a file, with its title within."""
        sentences = [*self.sentences, *self.notes]
        if self.missing:
            sentences.append(f"Not drawn: {'; '.join(self.missing)}.")
        title = {
            **{"text": self.title, "anchor": "start", "fontSize": 15, "color": TEXT, "dy": -6},
            **{"subtitle": textwrap.wrap(" ".join(sentences), FILE_LINE)},
            **{"subtitleColor": FAINT, "subtitleFontSize": 11},
        }
        more: dict[str, Any] = {"title": title, "background": "var(--page)"}
        if (self.chart or {}).get("width") == "container":
            more["width"] = FILE_WIDTH
        made = self._specification(**more, datasets=self._named())
        coloured: dict[str, Any] = mapped(made, lambda text: shown(light().get(text, text)))
        return coloured

    def _specification(self, **more: Any) -> dict[str, Any]:
        common = {"background": "transparent", "description": self.title}
        return {**common, **(self.chart or {}), "config": _parts()["config"], **more}

    def _named(self) -> dict[str, Rows]:
        """Return the data that the chart names, with those of their fields that it names."""
        text = json.dumps(self.chart)
        words = set(re.findall(r"\w+", text))
        return {
            name: [{k: v for k, v in row.items() if v is not None and k in words} for row in rows]
            for name, rows in self.data.items()
            if f'"name": "{name}"' in text
        }


def curve_chart(
    kind: str, title: str, data: Mapping[str, Rows], looks: Looks, *, bands: bool = True
) -> dict[str, Any]:
    """Return the chart of a kind; ``bands``: of all curves, else of a picked one."""
    parts, rows = _parts(), data["points"]
    times = [row["time_us"] for row in (*rows, *data.get("measured again", ()))]
    if kind == "time":
        times += [row["high_us"] for row in rows]
        times += [row["low_us"] for row in rows if row["low_us"] > 0]
    environments, partitions = present(rows, "environment"), present(rows, "partition")
    names = present(rows, "configuration")
    # With one switch, colours can distinguish libraries.
    by, coloured, heading = "environment", environments, looks.legend
    if kind == "time" and len(partitions) > 1:
        by, coloured, heading = "partition", partitions, "switch"
    strokes = {"symbolOpacity": 1, "symbolType": "stroke", "symbolSize": STROKE_SIZE}
    values = {
        **{"title": title, "options": [None, *names], "labels": ["all of them", *names]},
        **{"legend": looks.legend, "environments": environments, "coloured": by},
        "shapes": looks.of("environments", "shapes", environments),
        **{"colour names": coloured, "colours": looks.of(f"{by}s", "colours", coloured)},
        **{"colour title": heading, "dash legend": None if by == "environment" else strokes},
        "colour legend": strokes if by == "partition" else {"symbolOpacity": 1},
        **{"bands": bands, "faded band": 0.03 if bands else 0},
        "times": ticks(times),
        **{"partitions": partitions, "dashes": looks.of("partitions", "dashes", partitions)},
    }
    x, y, dash = parts["kinds"][kind]
    if y == "rate":
        lines = [one["line_rate_mbit_s"] for one in data.get("line rates", ())]
        values["rates"] = ticks([*(row["bandwidth_mbit_s"] for row in rows), *lines])
    known = parts["channels"]
    channels = {**known, "x": known[x], "y": known[y], "dash": known[dash]}
    # The most severe mark is on top.
    flags = [
        filled(parts["flag"], {"flag": at, **{f"flag {key}": one for key, one in mark.items()}})
        for at, mark in reversed(MARKS.items())
    ]
    chart = filled(
        {**parts["chart"], "layer": [*parts["below"][y], *parts["curves"], *flags]}, channels
    )
    chart["layer"] = [layer for layer in chart["layer"] if layer["data"]["name"] in data]
    # One launch has no spread.
    unknown = set() if any(row["launches"] > 1 for row in rows) else {"mad_us"}
    for layer in chart["layer"]:
        points, encoding = data[layer["data"]["name"]], layer["encoding"]
        there = {key for row in points for key, value in row.items() if value is not None} - unknown
        if "tooltip" in encoding:
            encoding["tooltip"] = [tip for tip in encoding["tooltip"] if tip["field"] in there]
    made: dict[str, Any] = filled(chart, values)
    return made


def template(name: str, part: str = "chart", /, **values: Any) -> Any:
    """Return a chart of ``assets/charts.json``, or another part of it, with these values in it."""
    parts = _parts()[name]
    return filled(filled(parts[part], parts["channels"]), values)


def dots(
    kind: str, title: str, rows: Rows, x_title: str, values: Mapping[str, Any], **more: Any
) -> ChartFigure:
    """Return ratios as dots with their intervals, and a line at 1, on a logarithmic axis.

    ``rows``: with ``value``, ``low`` and ``high``; ``values``: of the channels of this kind of
    ``dots`` in ``assets/charts.json``; ``more``: fields of the figure.
    """
    if not rows:
        return ChartFigure(title, None, {}, **more)
    shape = filled(_parts()["dots"].get(f"shape of {kind}"), values)
    height = _ROW * max(len(rows), 3)
    chart = template("dots", height=height, x_title=x_title, filled=shape is None)
    for layer in chart["layer"][1:]:
        layer["encoding"] |= template("dots", kind, **values)
    chart["layer"][-1]["encoding"] |= {"shape": shape} if shape else {}
    return ChartFigure(title, chart, {"points": rows}, **more)
