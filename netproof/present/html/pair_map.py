"""Heat maps of rounds of pairs: node by node, in the order of Slurm's topology."""

from __future__ import annotations

import statistics
import textwrap
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
from altair.utils.schemapi import debug_mode

from netproof.localization.observations import PairQuantity
from netproof.present.html.charts import FILE_LINE, NotDrawn, Rows, shown
from netproof.present.html.html import file_name
from netproof.present.html.looks import FILE, PAGE, Ink, Looks, looking
from netproof.present.tables import DataTable
from netproof.session.pair_rounds import PairRounds

PAIRS = "pairs"
"""Name of the chart's data."""

NUMBERED_UP_TO = 16
"""Most nodes with a figure in each cell."""

NAMED_UP_TO = 64
"""Most nodes with names at the edges."""

LISTED = 200
"""Slowest pairs in the table below the chart."""

ROOM = 0.3
"""Least share slower than the middle at which the colour is darkest."""

_CELL, _LEAST, _MOST = 26, 220, 760
_UNITS = {PairQuantity.RATE: "MB/s", PairQuantity.LATENCY: "µs"}
_WORDS = {
    PairQuantity.RATE: "rate of the largest message",
    PairQuantity.LATENCY: "time of the smallest message",
}


@dataclass(frozen=True)
class PairMap:
    """Medians over launches of each pair of nodes, while others measured.

    ``rows``: two for each pair, one for each side of the diagonal; ``nodes``: in the order in which
    they are drawn. It has the members of ``ChartFigure`` that pages and files use.
    """

    name: str
    title: str
    quantity: PairQuantity
    nodes: tuple[str, ...]
    rows: Rows
    sentences: tuple[str, ...]
    hint: str | None = None
    missing: tuple[NotDrawn, ...] = ()
    flags: tuple[dict[str, Any], ...] = ()
    envelope: tuple[dict[str, Any], ...] = ()
    again: tuple[dict[str, Any], ...] = ()

    def chart(self, ink: Ink) -> alt.LayerChart:
        """Return the chart, square."""
        unit, count = _UNITS[self.quantity], len(self.nodes)
        labels = alt.Axis(labels=count <= NAMED_UP_TO, ticks=False, title=None, labelAngle=-90)
        x = alt.X("node:N", sort=list(self.nodes), axis=labels, scale=alt.Scale(paddingInner=0.04))
        y = alt.Y(
            "partner:N",
            sort=list(self.nodes),
            axis=alt.Axis(labels=count <= NAMED_UP_TO, ticks=False, title=None),
            scale=alt.Scale(paddingInner=0.04),
        )
        base = alt.Chart(alt.NamedData(PAIRS))
        # Slow is dark, for latency and rate.
        scale = alt.Scale(
            scheme="viridis", reverse=self.quantity is PairQuantity.LATENCY, domain=self.domain()
        )
        tips = [
            alt.Tooltip("node:N", title="node"),
            alt.Tooltip("partner:N", title="with"),
            alt.Tooltip("value:Q", title=unit, format=",.4~r"),
            alt.Tooltip("launches:Q", title="launches"),
        ]
        drawn = [base.mark_rect().encode(x, y, alt.Color("value:Q", title=unit, scale=scale), tips)]
        if count <= NUMBERED_UP_TO:
            middle = statistics.median(row["value"] for row in self.rows)
            dark = "<" if self.quantity is PairQuantity.RATE else ">"
            colour = alt.condition(
                f"datum.value {dark} {middle * (0.9 if dark == '<' else 1.1)}",
                alt.value("#ffffff"),
                alt.value("#000000"),
            )
            text = alt.Text("value:Q", format=",.3~r")
            drawn.append(base.mark_text(fontSize=10).encode(x, y, text, color=colour))
        side = min(max(_CELL * count, _LEAST), _MOST)
        sized = alt.layer(*drawn).properties(width=side, height=side, description=self.title)
        return looking(sized.properties(background="transparent"), ink)

    def domain(self) -> list[float]:
        """Return the range of colours: all figures, and some room, so that noise is not dark."""
        values = [row["value"] for row in self.rows]
        middle = statistics.median(values)
        if self.quantity is PairQuantity.RATE:
            return [min(*values, middle * (1 - ROOM)), max(values)]
        return [min(values), max(*values, middle / (1 - ROOM))]

    def for_page(self, looks: Looks) -> dict[str, Any]:
        """Return the Vega-Lite specification for a page; no look of a session is in it."""
        with debug_mode(False):
            return self._with_data(self.chart(PAGE))

    def for_file(self, looks: Looks) -> dict[str, Any]:
        """Return the Vega-Lite specification for a file, with its title within."""
        with debug_mode(False):
            title = alt.TitleParams(
                self.title,
                anchor="start",
                fontSize=15,
                color=FILE.text,
                subtitle=textwrap.wrap(" ".join(self.sentences), FILE_LINE),
                subtitleColor=FILE.faint,
                subtitleFontSize=11,
            )
            return self._with_data(self.chart(FILE).properties(title=title, background="#ffffff"))

    def _with_data(self, chart: alt.LayerChart) -> dict[str, Any]:
        made = {**chart.to_dict(validate=False), "datasets": {PAIRS: self.rows}}
        return shown(made)

    def table(self) -> DataTable:
        """Return the pairs, the slowest first."""
        once = [row for row in self.rows if row["first"]]
        slow = sorted(
            once, key=lambda row: row["value"], reverse=self.quantity is PairQuantity.LATENCY
        )
        rows = tuple(
            (row["configuration"], f"{row['value']:.4g}", str(row["launches"]))
            for row in slow[:LISTED]
        )
        caption = "the slowest first"
        if len(slow) > LISTED:
            caption = f"the {LISTED} slowest of {len(slow)} pairs"
        head = ("pair", _UNITS[self.quantity], "launches")
        return DataTable(head, rows, (1, 2), caption)


def of_rounds(rounds: PairRounds) -> tuple[PairMap, ...]:
    """Return a map of the rate and one of the latency; none if no pair measured among others."""
    values: dict[PairQuantity, dict[tuple[str, str], list[float]]] = {
        quantity: defaultdict(list) for quantity in _UNITS
    }
    sizes: dict[PairQuantity, int] = {}
    for launch in rounds.launches:
        for pair in () if launch.alone or launch.both_ways else launch.pairs:
            one, other = sorted(pair.nodes)
            values[PairQuantity.RATE][one, other].append(pair.rate_mb_s)
            values[PairQuantity.LATENCY][one, other].append(pair.time_us)
            sizes[PairQuantity.RATE], sizes[PairQuantity.LATENCY] = (
                pair.curve.sizes[-1],
                pair.curve.sizes[0],
            )
    nodes = ordered(rounds)
    sentences = ["Dark is slow. Empty: the pair was not measured among others."]
    if rounds.leaves:
        sentences.append("Nodes stand leaf switch by leaf switch.")
    where = f"{rounds.partition} {rounds.environment}"
    return tuple(
        PairMap(
            file_name("pairs", quantity, rounds.partition, rounds.environment),
            f"{where}, rounds of pairs: {_WORDS[quantity]} of each pair of nodes",
            quantity,
            nodes,
            _rows(several, sizes[quantity]),
            tuple(sentences),
        )
        for quantity, several in values.items()
        if several
    )


def ordered(rounds: PairRounds) -> tuple[str, ...]:
    """Return the nodes in the topology's order, by leaf switch; else as in the job."""

    def above(leaf: str) -> list[str]:
        line = [leaf]
        while (up := rounds.parents.get(line[-1])) is not None and up not in line:
            line.append(up)
        return line[::-1]

    leaves = sorted(rounds.leaves, key=above)
    own = set(rounds.nodes)
    placed = [node for leaf in leaves for node in rounds.leaves[leaf] if node in own]
    return tuple(dict.fromkeys([*placed, *rounds.nodes]))


def _rows(several: dict[tuple[str, str], Sequence[float]], size: int) -> Rows:
    found = []
    for (one, other), values in several.items():
        common = {
            "configuration": f"{one} – {other}",
            "size_bytes": size,
            "value": statistics.median(values),
            "launches": len(values),
        }
        found.append({**common, "node": one, "partner": other, "first": True})
        found.append({**common, "node": other, "partner": one, "first": False})
    return found
