"""Heat maps of rounds of pairs: node by node, or leaf by leaf, in the order of Slurm's topology."""

from __future__ import annotations

import statistics
import textwrap
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import altair as alt
from altair.utils.schemapi import debug_mode

from netproof.present.html.charts import (
    FILE_LINE,
    NotDrawn,
    Rows,
    file_title,
    specification,
    tips,
)
from netproof.present.html.html import file_name
from netproof.present.html.looks import FILE, PAGE, Ink, Looks
from netproof.present.tables import DataTable
from netproof.session.pair_rounds import PairRounds
from netproof.site.pair_settings import PairQuantity

PAIRS = "pairs"
"""Name of the chart's data."""

NUMBERED_UP_TO = 16
"""Most nodes with a figure in each cell."""

NAMED_UP_TO = 64
"""Most nodes with names at the edges."""

DRAWN_UP_TO = 200
"""Most nodes with cells of their own, and most groups of more of them: cells of four pixels."""

LISTED = 200
"""Slowest pairs in the table below the chart."""

ROOM = 0.3
"""Least share slower than the middle at which the colour is darkest."""

OTHERS = "no switch"
"""The group of nodes that Slurm's topology does not have."""

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
    they are drawn; ``groups``: those of more nodes than are drawn, in order, by name. It has the
    members of ``ChartFigure`` that pages and files use.
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
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @cached_property
    def cells(self) -> Rows:
        """What is drawn: the rows, or of each two groups the median and the slowest pair."""
        if not self.groups:
            return self.rows
        group = {node: name for name, nodes in self.groups.items() for node in nodes}
        pairs: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        for row in self.rows:
            pairs[group[row["node"]], group[row["partner"]]].append(row)
        found = []
        for (one, other), several in pairs.items():
            slowest = self._slowest(several)[0]
            found.append(
                {
                    "node": one,
                    "partner": other,
                    "value": statistics.median(row["value"] for row in several),
                    "pairs": len({row["configuration"] for row in several}),
                    "slowest": slowest["configuration"],
                    "slowest_value": slowest["value"],
                }
            )
        return found

    def _slowest(self, rows: Rows) -> Rows:
        late = self.quantity is PairQuantity.LATENCY
        return sorted(rows, key=lambda row: row["value"], reverse=late)

    def chart(self) -> alt.LayerChart:
        """Return the chart, square."""
        unit, drawn_nodes = _UNITS[self.quantity], list(self.groups or self.nodes)
        count = len(drawn_nodes)
        labels = alt.Axis(labels=count <= NAMED_UP_TO, ticks=False, title=None, labelAngle=-90)
        x = alt.X("node:N", sort=drawn_nodes, axis=labels, scale=alt.Scale(paddingInner=0.04))
        y = alt.Y(
            "partner:N",
            sort=drawn_nodes,
            axis=alt.Axis(labels=count <= NAMED_UP_TO, ticks=False, title=None),
            scale=alt.Scale(paddingInner=0.04),
        )
        base = alt.Chart(alt.NamedData(PAIRS))
        # Slow is dark, for latency and rate.
        scale = alt.Scale(
            scheme="viridis", reverse=self.quantity is PairQuantity.LATENCY, domain=self.domain()
        )
        number = ",.4~r"
        if self.groups:
            tooltip = tips(
                node="node",
                partner="with",
                value=(f"median {unit}", number),
                pairs=("pairs", "d"),
                slowest="slowest pair",
                slowest_value=(f"its {unit}", number),
            )
        else:
            tooltip = tips(
                node="node", partner="with", value=(unit, number), launches=("launches", "d")
            )
        drawn = [
            base.mark_rect().encode(x, y, alt.Color("value:Q", title=unit, scale=scale), tooltip)
        ]
        if count <= NUMBERED_UP_TO:
            middle = statistics.median(row["value"] for row in self.cells)
            dark = "<" if self.quantity is PairQuantity.RATE else ">"
            colour = alt.condition(
                f"datum.value {dark} {middle * (0.9 if dark == '<' else 1.1)}",
                alt.value("#ffffff"),
                alt.value("#000000"),
            )
            text = alt.Text("value:Q", format=",.3~r")
            drawn.append(base.mark_text(fontSize=10).encode(x, y, text, color=colour))
        side = min(max(_CELL * count, _LEAST), _MOST)
        return alt.layer(*drawn).properties(width=side, height=side)

    def domain(self) -> list[float]:
        """Return the range of colours: all figures, and some room, so that noise is not dark."""
        values = [row["value"] for row in self.cells]
        middle = statistics.median(values)
        if self.quantity is PairQuantity.RATE:
            return [min(*values, middle * (1 - ROOM)), max(values)]
        return [min(values), max(*values, middle / (1 - ROOM))]

    def for_page(self, looks: Looks) -> dict[str, Any]:
        """Return the Vega-Lite specification for a page; no look of a session is in it."""
        return self._specification(PAGE)

    def for_file(self, looks: Looks) -> dict[str, Any]:
        """Return the Vega-Lite specification for a file, with its title within."""
        title = file_title(self.title, textwrap.wrap(" ".join(self.sentences), FILE_LINE))
        return self._specification(FILE, title=title, background="#ffffff")

    def _specification(self, ink: Ink, **properties: Any) -> dict[str, Any]:
        with debug_mode(False):
            drawn = self.chart()
        return specification(drawn, self.title, {PAIRS: self.cells}, ink, **properties)

    def table(self) -> DataTable:
        """Return the pairs, the slowest first."""
        slow = self._slowest([row for row in self.rows if row["first"]])
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
    groups, of_what = grouped(rounds, nodes) if len(nodes) > DRAWN_UP_TO else ({}, "nodes")
    sentences = ["Dark is slow. Empty: the pair was not measured among others."]
    if groups:
        sentences = [
            f"A cell has the median of all pairs between two {of_what}, and names the slowest.",
            "Dark is slow. Empty: none of its pairs was measured among others.",
        ]
    elif rounds.leaves:
        sentences.append("Nodes stand leaf switch by leaf switch.")
    where = f"{rounds.partition} {rounds.environment}"
    return tuple(
        PairMap(
            file_name("pairs", quantity, rounds.partition, rounds.environment),
            f"{where}, rounds of pairs: {_WORDS[quantity]} of each pair of {of_what}",
            quantity,
            nodes,
            _rows(several, sizes[quantity]),
            tuple(sentences),
            groups=groups,
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


def grouped(rounds: PairRounds, nodes: Sequence[str]) -> tuple[dict[str, tuple[str, ...]], str]:
    """Return at most ``DRAWN_UP_TO`` groups of the ordered ``nodes`` by name, and what they are.

    They are leaf switches, or the lowest switches above them that are few enough; without a
    topology, nodes that follow one another.
    """
    above = {node: leaf for leaf, members in rounds.leaves.items() for node in members}
    of_what = "leaf switches"
    if above and _too_many(above, nodes):
        of_what = "switches above leaves"
        above = {node: rounds.parents.get(leaf, leaf) for node, leaf in above.items()}
    if not above or _too_many(above, nodes):
        of_what, size = "groups of nodes", -(-len(nodes) // DRAWN_UP_TO)
        blocks = [nodes[at : at + size] for at in range(0, len(nodes), size)]
        above = {node: f"{block[0]} to {block[-1]}" for block in blocks for node in block}
    groups: dict[str, list[str]] = defaultdict(list)
    for node in nodes:
        groups[above.get(node, OTHERS)].append(node)
    return {name: tuple(members) for name, members in groups.items()}, of_what


def _too_many(above: Mapping[str, str], nodes: Sequence[str]) -> bool:
    return len({above.get(node, OTHERS) for node in nodes}) > DRAWN_UP_TO


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
