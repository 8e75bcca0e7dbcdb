"""The page on tails: how often a call took how long, and when the longest were."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from netproof.experiments.tails import Tail, TailFigures
from netproof.present.html.charts import Rows, quantity, specification, tips
from netproof.present.html.html import answers_page, chart, file_name
from netproof.present.tails import answer, name_of

_BINS_A_DOUBLING = 4
_LONGEST_SHOWN = 2000
"""Calls of the second chart: the longest of each of so many equal parts of the time."""
_HEIGHT = 260


def page(several: Sequence[tuple[Tail, TailFigures]], scripts: Sequence[str]) -> str:
    """Return the page on all tails of a report."""
    answers = [
        {
            **answer(tail, found),
            "name": file_name(name_of(tail)),
            "title": name_of(tail),
            "figures": [_often(tail), _over_time(tail)],
            "by_size": None,
        }
        for tail, found in several
    ]
    return answers_page("Single calls", (name_of(tail) for tail, _ in several), answers, scripts)


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


def _often(tail: Tail) -> dict[str, Any]:
    scale = {"type": "log"}
    tooltip = tips(
        **{"from": ("from, µs", ",.3~r"), "to": ("to, µs", ",.3~r")}, calls=("calls", "")
    )
    encoding = {
        "x": quantity("from", "time of a call, µs", scale=scale),
        "x2": {"field": "to"},
        "y": quantity("foot", "calls", scale=scale),
        "y2": {"field": "calls"},
        "tooltip": tooltip,
    }
    title = "How often a call took how long"
    return _chart(title, "rect", encoding, histogram(tail.times_us))


def _over_time(tail: Tail) -> dict[str, Any]:
    encoding = {
        "x": quantity("second", "seconds since the first calls"),
        "y": quantity("time", "time of a call, µs", scale={"type": "log"}),
        "tooltip": tips(second=("second", ".1f"), time=("µs", ",.4~r")),
    }
    caption = "Each dot is the longest of the calls around it."
    mark, rows = {"type": "circle", "size": 18}, longest_over_time(tail)
    return _chart("The longest calls over time", mark, encoding, rows, caption)


def _chart(
    title: str, mark: Any, encoding: Mapping[str, Any], rows: Rows, *caption: str
) -> dict[str, Any]:
    drawn = {"data": {"name": "calls"}, "mark": mark, "encoding": encoding}
    properties = {"width": "container", "height": _HEIGHT}
    return chart(title, specification(drawn, title, {"calls": rows}, **properties), *caption)
