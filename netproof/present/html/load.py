"""The page on a network under load: the factors in a chart and in a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt
from altair.utils.schemapi import debug_mode

from netproof.congestion.causes import LoadFindings
from netproof.congestion.factors import Impacts, Statistic
from netproof.congestion.loaded import Loaded
from netproof.present import load as shown
from netproof.present.html.charts import shown as as_shown
from netproof.present.html.curves import FigureView
from netproof.present.html.html import DataTable, file_name, render, script_json, text_table
from netproof.present.html.layers import Rows
from netproof.present.html.looks import PAGE, looking

FACTORS = "factors"
"""Name of the chart's data."""

_LINE = 22


@dataclass(frozen=True)
class LoadView:
    """One session; ``figure``: the factors of the mean, None where none is known."""

    name: str
    title: str
    conclusion: tuple[str, ...]
    factors: DataTable
    sentences: tuple[str, ...]
    figure: FigureView | None


def page(several: Sequence[tuple[Loaded, LoadFindings]], scripts: Sequence[str]) -> str:
    """Return the page on all load measurements of a report."""
    return render(
        "load.html",
        title="Under load: "
        + ", ".join(dict.fromkeys(f"{one.system}:{one.partition}" for one, _ in several)),
        scripts=scripts,
        sessions=[_view(loaded, found) for loaded, found in several],
    )


def _view(loaded: Loaded, found: LoadFindings) -> LoadView:
    title = f"{loaded.system}:{loaded.partition} {loaded.environment}"
    rows = _rows(found.impacts)
    return LoadView(
        file_name(title),
        title,
        shown.conclusion(found),
        text_table(shown.head(), shown.rows(found.impacts)),
        shown.sentences(loaded, found),
        _figure(title, rows) if rows else None,
    )


def _rows(found: Impacts) -> Rows:
    return [
        {
            "what": f"{one.victim} alongside {one.aggressor}",
            "where": str(one.place),
            "factor": factor.value,
            "low": factor.interval[0],
            "high": factor.interval[1],
        }
        for one in found.impacts
        if (factor := one.factors[Statistic.MEAN]).interval is not None
    ]


def _figure(title: str, rows: Rows) -> FigureView:
    base = alt.Chart(alt.NamedData(FACTORS))
    y = alt.Y("what:N", title=None, sort=None, axis=alt.Axis(labelLimit=300))
    offset = alt.YOffset("where:N")
    colour = alt.Color("where:N", title="where")
    scale = alt.Scale(type="log")
    x = alt.X("factor:Q", title="times as long as alone (mean)", scale=scale)
    tips = [
        alt.Tooltip("what:N", title="measured"),
        alt.Tooltip("where:N", title="where"),
        alt.Tooltip("factor:Q", title="factor", format=",.4~r"),
        alt.Tooltip("low:Q", title="from", format=",.4~r"),
        alt.Tooltip("high:Q", title="to", format=",.4~r"),
    ]
    layers = [
        base.mark_rule(strokeWidth=2).encode(
            alt.X("low:Q", scale=scale), y, x2="high:Q", yOffset=offset, color=colour, tooltip=tips
        ),
        base.mark_point(filled=True, size=70).encode(
            x, y, yOffset=offset, color=colour, tooltip=tips
        ),
    ]
    lines = len({(row["what"], row["where"]) for row in rows})
    with debug_mode(False):
        sized = alt.layer(*layers).properties(
            width="container", height=_LINE * (lines + 1), description=title
        )
        chart = looking(sized.properties(background="transparent"), PAGE)
        made = as_shown({**chart.to_dict(validate=False), "datasets": {FACTORS: rows}})
    caption = ("A line is the 95 % interval over rounds; at 1 the network shows no impact.",)
    return FigureView("Times as long as alone", script_json(made), caption, (), {}, None)
