"""The look of charts: colours, dashes, shapes, axes and legends.

On a page colours are those of its style sheet, so that they follow its light or dark scheme; a file
has the light ones. Nothing is shown by colour alone: a switch has a dash too, an MPI library a
shape, a mark a shape of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

DASHES = ([1, 0], [7, 3], [2, 2], [9, 3, 2, 3], [4, 4], [12, 4])
SHAPES = (
    *("circle", "square", "triangle-up", "diamond"),
    *("triangle-down", "cross", "triangle-left", "triangle-right"),
)


@dataclass(frozen=True)
class Ink:
    """Colours of a chart, as text that CSS understands; ``series`` for up to eight."""

    text: str
    faint: str
    grid: str
    failed: str
    inconclusive: str
    warning: str
    series: tuple[str, ...]


PAGE = Ink(
    *(f"var(--{name})" for name in ("text", "faint", "grid", "failed", "inconclusive", "warning")),
    tuple(f"var(--series-{number})" for number in range(8)),
)
FILE = Ink(
    *("#1b1f24", "#57606a", "#d8dee4", "#b3261e", "#5a3e85", "#8a5300"),
    ("#0072b2", "#d55e00", "#007a5a", "#a8508a", "#3a8fc4", "#8f6a00", "#5b4bb5", "#4d4d4d"),
)
"""After Okabe and Ito, darkened where their lines are too faint on white."""


@dataclass(frozen=True)
class Looks:
    """The session's partitions and environments, in an order that gives each its look.

    A partition has the same colour and dash in every chart, an environment the same shape.
    ``stored``: partitions that other sessions measured; they are grey. ``legend``: the legend's
    name of the environments, which other curves may replace.
    """

    partitions: tuple[str, ...]
    environments: tuple[str, ...]
    stored: tuple[str, ...] = ()
    legend: str = "MPI × compiler"

    def colours(self, names: Sequence[str], ink: Ink, *, of: str) -> alt.Scale:
        """Return the colours of those names, by the place of each among all."""
        everyone = self.partitions if of == "partition" else self.environments
        scale = _scale(names, everyone, ink.series)
        if of == "partition":
            colours = zip(names, scale.range, strict=True)
            scale.range = [ink.faint if name in self.stored else own for name, own in colours]
        return scale

    def dashes(self, names: Sequence[str]) -> alt.Scale:
        """Return the dashes of those partitions."""
        return _scale(names, self.partitions, DASHES)

    def shapes(self, names: Sequence[str]) -> alt.Scale:
        """Return the shapes of those environments."""
        return _scale(names, self.environments, SHAPES)


def _scale(names: Sequence[str], everyone: Sequence[str], looks: Sequence[Any]) -> alt.Scale:
    places = [everyone.index(name) for name in names]
    return alt.Scale(domain=list(names), range=[looks[place % len(looks)] for place in places])


def looking(chart: Any, ink: Ink) -> Any:
    """Return a chart, or several in one, with the axes and legends of all charts."""
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
