"""The page on a collective's algorithms: the fastest, a small chart of each, all times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from netproof.experiments.gains import SweepTable
from netproof.experiments.sweep import Sweep
from netproof.measurement.curve import Curve
from netproof.measurement.launches import median_curve
from netproof.present.algorithms import OWN, answer, name_of
from netproof.present.html import curves, figures
from netproof.present.html.charts import PAGE, quantity, size_axis, specification, tips, word
from netproof.present.html.html import answers_page, chart, file_name
from netproof.present.tables import EVERY, DataTable, benchmark_name

_ACROSS = 3
_WIDTH, _HEIGHT = 230, 110
_TICKS = (0.01, 0.03, 0.1, 0.25, 0.5, 1, 2, 4, 10, 30, 100)
_FINE_TICKS = (0.67, 0.8, 0.9, 1, 1.1, 1.25, 1.5)


def page(several: Sequence[tuple[Sweep, SweepTable]], scripts: Sequence[str]) -> str:
    """Return the page on all sweeps of a report."""
    titles = (swept.title for swept, _ in several)
    return answers_page("Tuning", titles, [_view(*one) for one in several], scripts)


def _view(swept: Sweep, table: SweepTable) -> dict[str, Any]:
    case = swept.case
    title = f"{benchmark_name(case)} on {case.ranks} ranks, {case.partition} {case.environment}"
    names = {value: name_of(swept, value) for value in table.values}
    launches: dict[str, list[Curve]] = {OWN: [], **{name: [] for name in names.values()}}
    for turn, launch in zip(swept.turns, swept.launches, strict=True):
        name = OWN if turn.value is None else names.get(turn.value)
        if name is not None:
            launches[name].append(launch.curve)
    together = {name: (median_curve(found), found) for name, found in launches.items()}
    times = figures.of_curves(title, together, legend=swept.title)
    return {
        **answer(swept, table),
        "name": file_name(title),
        "title": title,
        "figures": [_small_charts(names, table), curves.figure(*times)],
        "by_size": DataTable(
            ("bytes", *names.values()),
            [
                (f"{row.at:,}", *(f"{row.gains[value].factor:.3f}" for value in names))
                for row in table.rows
            ],
            EVERY,
            "How many times as fast as the library's own choice, the mean over rounds",
        ),
    }


def _small_charts(names: Mapping[str, str], table: SweepTable) -> dict[str, Any]:
    """Return a small chart for each algorithm, on the same axes: its gains with intervals."""
    title = "How many times as fast as the library's own choice"
    rows = [
        {
            "algorithm": name,
            "size_bytes": row.at,
            "factor": row.gains[value].factor,
            "low": row.gains[value].interval[0],
            "high": row.gains[value].interval[1],
            "won": row.winner == value,
        }
        for value, name in names.items()
        for row in table.rows
        if row.at
    ]
    if not rows:
        # A function without a message has one gain, which the table has.
        return chart(title, None)
    # Intervals are cut beyond the outermost factors, so that the factors fill the chart.
    edge = 1.25 * max(max(row["factor"], 1 / row["factor"]) for row in rows)
    scale = {"type": "log", "domain": [1 / edge, edge], "nice": False}
    axis = {**size_axis(rows), "labelSeparation": 10}
    x_scale = {"type": "log", "base": 2, "nice": False, "padding": 8}
    labelled = [tick for tick in (_TICKS if edge >= 2 else _FINE_TICKS) if 1 / edge < tick < edge]
    x = quantity("size_bytes", scale=x_scale, axis=axis)
    y = quantity("factor", scale=scale, axis={"values": labelled, "format": "~g"})
    number = ",.4~r"
    tooltip = tips(
        algorithm="algorithm",
        size_bytes=("bytes", ","),
        factor=("factor", number),
        low=("from", number),
        high=("to", number),
    )
    blue, red = PAGE["series"][:2]
    low = {"y": quantity("low", scale=scale), "y2": {"field": "high"}}
    marks = [
        ({"type": "area", "opacity": 0.2, "color": blue}, {"x": x, **low}),
        ({"type": "rule", "strokeDash": [4, 3], "color": PAGE["faint"]}, {"y": {"datum": 1}}),
        ({"type": "line", "color": blue}, {"x": x, "y": y}),
        # Every point has a tooltip, whether it won or not.
        ({"type": "point", "opacity": 0, "size": 90}, {"x": x, "y": y, "tooltip": tooltip}),
    ]
    layers = [{"mark": {"clip": True, **mark}, "encoding": on} for mark, on in marks]
    won = {"type": "point", "clip": True, "filled": True, "opacity": 1, "size": 40, "color": red}
    layers.append({"mark": won, "encoding": layers[-1]["encoding"]})
    layers[-1]["transform"] = [{"filter": "datum.won"}]
    small = {
        "data": {"name": "gains"},
        "facet": word("algorithm", sort=list(names.values())),
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
    return chart(title, specification(small, title, {"gains": rows}), caption)
