"""The page on tails: how often a call took how long, and when the longest were."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
from altair.utils.schemapi import debug_mode

from netproof.congestion.percentiles import TailFigures
from netproof.congestion.tails import Tail
from netproof.present import tails as shown
from netproof.present.html.charts import shown as as_shown
from netproof.present.html.curves import FigureView
from netproof.present.html.html import DataTable, file_name, render, script_json, text_table
from netproof.present.html.layers import Rows
from netproof.present.html.looks import PAGE, looking

CALLS, MOMENTS = "calls", "moments"
"""Names of the charts' data."""

_BINS_A_DOUBLING = 4
_LONGEST_SHOWN = 2000
"""Calls of the second chart: the longest of each of so many equal parts of the time."""
_HEIGHT = 260


@dataclass(frozen=True)
class TailView:
    """One long launch."""

    name: str
    title: str
    conclusion: str
    percentiles: DataTable
    sentences: tuple[str, ...]
    figures: tuple[FigureView, ...]


def page(several: Sequence[tuple[Tail, TailFigures]], scripts: Sequence[str]) -> str:
    """Return the page on all tails of a report."""
    return render(
        "tails.html",
        title="Single calls: " + ", ".join(dict.fromkeys(shown.name_of(one) for one, _ in several)),
        scripts=scripts,
        sessions=[_view(tail, found) for tail, found in several],
    )


def _view(tail: Tail, found: TailFigures) -> TailView:
    title = shown.name_of(tail)
    return TailView(
        file_name(title),
        title,
        shown.conclusion(tail, found),
        text_table(shown.head(), shown.rows(found)),
        shown.sentences(tail, found),
        (_often(tail), _over_time(tail)),
    )


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


def _often(tail: Tail) -> FigureView:
    rows = histogram(tail.times_us)
    scale = alt.Scale(type="log")
    chart = (
        alt.Chart(alt.NamedData(CALLS))
        .mark_rect()
        .encode(
            alt.X("from:Q", title="time of a call, µs", scale=scale),
            x2="to:Q",
            y=alt.Y("foot:Q", title="calls", scale=scale),
            y2="calls:Q",
            tooltip=[
                alt.Tooltip("from:Q", title="from, µs", format=",.3~r"),
                alt.Tooltip("to:Q", title="to, µs", format=",.3~r"),
                alt.Tooltip("calls:Q", title="calls"),
            ],
        )
    )
    return _figure("How often a call took how long", chart, {CALLS: rows}, ())


def _over_time(tail: Tail) -> FigureView:
    rows = longest_over_time(tail)
    chart = (
        alt.Chart(alt.NamedData(MOMENTS))
        .mark_circle(size=18)
        .encode(
            alt.X("second:Q", title="seconds since the first calls"),
            alt.Y("time:Q", title="time of a call, µs", scale=alt.Scale(type="log")),
            tooltip=[
                alt.Tooltip("second:Q", title="second", format=".1f"),
                alt.Tooltip("time:Q", title="µs", format=",.4~r"),
            ],
        )
    )
    caption = ("Each dot is the longest of the calls around it.",)
    return _figure("The longest calls over time", chart, {MOMENTS: rows}, caption)


def _figure(
    title: str, chart: alt.Chart, data: dict[str, Any], sentences: tuple[str, ...]
) -> FigureView:
    with debug_mode(False):
        sized = chart.properties(width="container", height=_HEIGHT, description=title)
        looked = looking(sized.properties(background="transparent"), PAGE)
        made = as_shown({**looked.to_dict(validate=False), "datasets": data})
    return FigureView(title, script_json(made), sentences, (), {}, None)
