"""The chart of one function's scores: how many times as fast as the baseline others are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
from altair.utils.schemapi import debug_mode

from netproof.present.html import content
from netproof.present.html.charts import STROKE_SIZE, shown
from netproof.present.html.content import Group
from netproof.present.html.curves import FigureView
from netproof.present.html.html import DataTable, script_json
from netproof.present.html.layers import MARKS, present
from netproof.present.html.looks import PAGE, Ink, Looks, looking

SCORES = "scores"
"""Name of the chart's data."""

SMOOTH, RED = "no size is red", "red at some size"
"""Meanings of a configuration's mark: a score alone hides what a few sizes do."""

ROW = 22
"""Height of a row."""


def of_groups(function: str, groups: Sequence[Group], looks: Looks) -> FigureView:
    """Return the scores of a function at each count of ranks; empty without scores.

    A score is the geometric mean over the sizes of the baseline's time over the configuration's,
    with its 95 % interval; after the GigE synthetic-benchmark report.
    """
    rows, missing = [], []
    against = ""
    for group in groups:
        for judged in group.members:
            name = f"{content.configuration(judged.case)}, {group.variant}"
            found = judged.score()
            if found is None:
                missing.append(f"{name}: no score")
                continue
            against = found.against or against
            low, high = found.interval or (found.value, found.value)
            rows.append(
                {
                    "configuration": name,
                    "environment": judged.case.environment,
                    "score": found.value,
                    "low": low,
                    "high": high,
                    "state": RED if judged.failed else SMOOTH,
                }
            )
    title = f"{function}: times as fast as {against or 'the score baseline'}"
    if not rows:
        return FigureView(title, None, (), tuple(missing), {}, None)
    return FigureView(
        title,
        script_json(_specification(rows, title, looks)),
        ("The geometric mean over all common sizes, and its 95 % interval over launches.",),
        tuple(missing),
        {},
        _table(rows),
    )


def _specification(rows: Sequence[dict[str, Any]], title: str, looks: Looks) -> dict[str, Any]:
    with debug_mode(False):
        made = _chart(rows, title, looks, PAGE).properties(width="container")
        return shown({**made.to_dict(validate=False), "datasets": {SCORES: list(rows)}})


def _chart(rows: Sequence[dict[str, Any]], title: str, looks: Looks, ink: Ink) -> alt.LayerChart:
    names = [row["configuration"] for row in rows]
    environments = present(list(rows), "environment")
    y = alt.Y("configuration:N", sort=names, title=None, axis=alt.Axis(labelLimit=320))
    scale = alt.Scale(type="log", base=2, nice=False, padding=12)
    x = alt.X("score:Q", title="times as fast as the baseline", scale=scale)
    colour = alt.Color(
        "environment:N",
        title=looks.legend,
        scale=looks.colours(environments, ink, of="environment"),
        legend=alt.Legend(symbolType="stroke", symbolSize=STROKE_SIZE),
    )
    shapes = alt.Scale(domain=[SMOOTH, RED], range=["circle", MARKS["failed"]])
    shape = alt.Shape("state:N", title="criteria", scale=shapes)
    tips = [
        alt.Tooltip("configuration:N", title="configuration"),
        alt.Tooltip("score:Q", title="score", format=",.3~r"),
        alt.Tooltip("low:Q", title="from", format=",.3~r"),
        alt.Tooltip("high:Q", title="to", format=",.3~r"),
        alt.Tooltip("state:N", title="criteria"),
    ]
    base = alt.Chart(alt.NamedData(SCORES))
    drawn = [
        alt.Chart(alt.Data(values=[{"score": 1}]))
        .mark_rule(color=ink.faint, strokeDash=[4, 3])
        .encode(x),
        base.mark_rule(strokeWidth=2).encode(
            alt.X("low:Q", scale=scale), alt.X2("high:Q"), y, colour
        ),
        base.mark_point(filled=False, size=90, strokeWidth=2.4).encode(x, y, colour, shape, tips),
    ]
    sized = alt.layer(*drawn).properties(height=max(ROW * len(rows), 3 * ROW), description=title)
    return looking(sized.properties(background="transparent"), ink)


def _table(rows: Sequence[dict[str, Any]]) -> DataTable:
    return DataTable(
        ("configuration", "score", "95 % interval", "criteria"),
        tuple(
            (
                row["configuration"],
                f"{row['score']:.3g}",
                f"{row['low']:.3g} to {row['high']:.3g}",
                row["state"],
            )
            for row in rows
        ),
        (False, True, True, False),
    )
