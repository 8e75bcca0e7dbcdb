"""Pages on experiments: the answers that the terminal prints, with charts."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from netproof.experiments.gains import SweepTable
from netproof.experiments.load import Loaded, LoadFindings, Statistic
from netproof.experiments.sweep import Sweep
from netproof.experiments.tails import Tail, TailFigures
from netproof.measurement.curve import Curve, median_curve
from netproof.present.document import Part
from netproof.present.html import figures
from netproof.present.html.charts import (
    FAINT,
    SERIES,
    ChartFigure,
    Rows,
    dots,
    quantity,
    size_axis,
    tips,
    word,
)
from netproof.present.html.html import file_name, page_of
from netproof.present.sweeps import default_of, name_of

_NUMBER = ",.4~r"
_ACROSS = 3
_WIDTH, _HEIGHT = 230, 110
_TICKS = (0.01, 0.03, 0.1, 0.25, 0.5, 1, 2, 4, 10, 30, 100)
_FINE_TICKS = (0.67, 0.8, 0.9, 1, 1.1, 1.25, 1.5)
_BINS_A_DOUBLING = 4
_LONGEST_SHOWN = 2000
"""Calls of the chart over time: the longest of each of so many equal parts of it."""


def page(several: Sequence[tuple[Any, Any]], presenter: ModuleType) -> str:
    """Return the page on all experiments of a report; ``presenter``: the module of their answer."""
    parts: list[Part] = []
    for measured, found in several:
        title, answer = presenter.answer(measured, found)
        parts.append((file_name(title), title, [*answer, *charts(measured, found)]))
    more = f" and {len(parts) - 1} more" if len(parts) > 1 else ""
    return page_of(f"{presenter.KIND}: {parts[0][1]}{more}", parts)


@functools.singledispatch
def charts(measured: Any, found: Any) -> list[ChartFigure]:
    """Return the charts of an experiment."""
    raise NotImplementedError(type(measured))


@charts.register
def _of_load(loaded: Loaded, found: LoadFindings) -> list[ChartFigure]:
    rows = [
        {
            "what": f"{one.victim} alongside {one.aggressor}",
            "where": str(one.place),
            "value": factor.value,
            "low": factor.interval[0],
            "high": factor.interval[1],
        }
        for one in found.impacts
        if (factor := one.factors[Statistic.MEAN]).interval is not None
    ]
    tooltip = tips(
        what="measured",
        where="where",
        value=("factor", _NUMBER),
        low=("from", _NUMBER),
        high=("to", _NUMBER),
    )
    channels = {
        "y": word("what", sort=None, axis={"labelLimit": 300}),
        "yOffset": word("where"),
        "color": word("where", "where"),
    }
    caption = "A line is the 95 % interval over rounds; at 1 the network shows no impact."
    title, x_title = "Times as long as alone", "times as long as alone (mean)"
    drawn = dots(title, rows, x_title, tooltip, channels, sentences=[caption])
    return [drawn] if rows else []


@charts.register
def _of_tail(tail: Tail, found: TailFigures) -> list[ChartFigure]:
    scale = {"type": "log"}
    how_often = {
        "x": quantity("from", "time of a call, µs", scale=scale),
        "x2": {"field": "to"},
        "y": quantity("foot", "calls", scale=scale),
        "y2": {"field": "calls"},
        "tooltip": tips(
            **{"from": ("from, µs", ",.3~r"), "to": ("to, µs", ",.3~r")}, calls=("calls", "")
        ),
    }
    over_time = {
        "x": quantity("second", "seconds since the first calls"),
        "y": quantity("time", "time of a call, µs", scale=scale),
        "tooltip": tips(second=("second", ".1f"), time=("µs", _NUMBER)),
    }
    caption = "Each dot is the longest of the calls around it."
    return [
        _plain("How often a call took how long", "rect", how_often, histogram(tail.times_us)),
        _plain(
            "The longest calls over time",
            {"type": "circle", "size": 18},
            over_time,
            longest_over_time(tail),
            caption,
        ),
    ]


def _plain(
    title: str, mark: Any, encoding: Mapping[str, Any], rows: Rows, *caption: str
) -> ChartFigure:
    size = {"width": "container", "height": 260}
    drawn = {"data": {"name": "points"}, "mark": mark, "encoding": encoding, **size}
    return ChartFigure(title, drawn, {"points": rows}, sentences=caption)


def histogram(times_us: Sequence[float]) -> Rows:
    """Return calls by time, in bins of equal logarithmic width, each with both ends in µs."""
    bins = Counter(math.floor(_BINS_A_DOUBLING * math.log2(time)) for time in times_us)
    return [
        {
            "from": 2 ** (place / _BINS_A_DOUBLING),
            "to": 2 ** ((place + 1) / _BINS_A_DOUBLING),
            "calls": calls,
            # A bar on a logarithmic axis has to begin somewhere.
            "foot": 0.5,
        }
        for place, calls in sorted(bins.items())
    ]


def longest_over_time(tail: Tail) -> Rows:
    """Return the longest call of each part of the time: seconds since the first, and µs."""
    times, began = tail.times_us, tail.watched[0][0]
    size = math.ceil(len(times) / _LONGEST_SHOWN)
    found = []
    for place in range(0, len(times), size):
        at = max(range(place, min(place + size, len(times))), key=times.__getitem__)
        found.append({"second": tail.moment(at) - began, "time": times[at]})
    return found


@charts.register
def _of_sweep(sweep: Sweep, table: SweepTable) -> list[ChartFigure]:
    names: dict[str | None, str] = {None: default_of(sweep)}
    names |= {one: name_of(sweep, one) for one in table.values}
    launches: dict[str, list[Curve]] = {name: [] for name in names.values()}
    for turn, launch in zip(sweep.turns, sweep.launches, strict=True):
        if turn.value in names:
            launches[names[turn.value]].append(launch.curve)
    together = {name: (median_curve(found), found) for name, found in launches.items()}
    case = sweep.case
    title = f"{sweep.title}, {case.partition} {case.environment}"
    times = figures.of_curves(title, together, legend=sweep.title)
    return [_small_charts(sweep, table), times] if sweep.library else [times]


def _small_charts(sweep: Sweep, table: SweepTable) -> ChartFigure:
    """Return a small chart for each algorithm, on the same axes: its gains with intervals."""
    title = "How many times as fast as the library's own choice"
    names = [name_of(sweep, value) for value in table.values]
    rows: Rows = [
        {
            "algorithm": name,
            "size_bytes": row.at,
            "factor": row.gains[value].factor,
            "low": row.gains[value].interval[0],
            "high": row.gains[value].interval[1],
            "won": row.winner == value,
        }
        for value, name in zip(table.values, names, strict=True)
        for row in table.rows
        if row.at
    ]
    if not rows:
        # A function without a message has one gain, which the table has.
        return ChartFigure(title, None, {})
    # Intervals are cut beyond the outermost factors, so that the factors fill the chart.
    edge = 1.25 * max(max(row["factor"], 1 / row["factor"]) for row in rows)
    scale = {"type": "log", "domain": [1 / edge, edge], "nice": False}
    axis = {**size_axis(rows), "labelSeparation": 10}
    x_scale = {"type": "log", "base": 2, "nice": False, "padding": 8}
    labelled = [tick for tick in (_TICKS if edge >= 2 else _FINE_TICKS) if 1 / edge < tick < edge]
    x = quantity("size_bytes", scale=x_scale, axis=axis)
    y = quantity("factor", scale=scale, axis={"values": labelled, "format": "~g"})
    tooltip = tips(
        algorithm="algorithm",
        size_bytes=("bytes", ","),
        factor=("factor", _NUMBER),
        low=("from", _NUMBER),
        high=("to", _NUMBER),
    )
    blue, red = SERIES[:2]
    low = {"y": quantity("low", scale=scale), "y2": {"field": "high"}}
    marks: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"type": "area", "opacity": 0.2, "color": blue}, {"x": x, **low}),
        ({"type": "rule", "strokeDash": [4, 3], "color": FAINT}, {"y": {"datum": 1}}),
        ({"type": "line", "color": blue}, {"x": x, "y": y}),
        # Every point has a tooltip, whether it won or not.
        ({"type": "point", "opacity": 0, "size": 90}, {"x": x, "y": y, "tooltip": tooltip}),
    ]
    layers: list[dict[str, Any]] = [
        {"mark": {"clip": True, **mark}, "encoding": on} for mark, on in marks
    ]
    won = {"type": "point", "clip": True, "filled": True, "opacity": 1, "size": 40, "color": red}
    layers.append({"mark": won, "encoding": layers[-1]["encoding"]})
    layers[-1]["transform"] = [{"filter": "datum.won"}]
    small = {
        "data": {"name": "points"},
        "facet": word("algorithm", sort=names),
        "columns": _ACROSS,
        "spec": {"width": _WIDTH, "height": _HEIGHT, "layer": layers},
        # Otherwise a last row that is not full has axes without a chart.
        "resolve": {"axis": {"x": "independent", "y": "independent"}},
    }
    caption = (
        "Above 1 an algorithm is faster than the library's own choice at the same time. The band"
        " is the interval that holds for all sizes and algorithms together; a dot is a size at"
        " which the algorithm is the fastest for sure."
    )
    return ChartFigure(title, small, {"points": rows}, sentences=[caption])
