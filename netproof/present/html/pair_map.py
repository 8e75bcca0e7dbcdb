"""Heat maps of rounds of pairs: node by node, or leaf by leaf, in the order of Slurm's topology."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from netproof.present.document import DataTable
from netproof.present.html.charts import ChartFigure, Rows, tips
from netproof.present.html.html import file_name
from netproof.session.pair_rounds import PairRounds
from netproof.site.pair_settings import PairQuantity

CELLS = "cells"
"""Name of the data of groups of nodes."""

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


def of_rounds(rounds: PairRounds) -> list[ChartFigure]:
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
    made = []
    for quantity, several in values.items():
        if not several:
            continue
        title = f"{where}, rounds of pairs: {_WORDS[quantity]} of each pair of {of_what}"
        rows = _rows(several, sizes[quantity])
        cells = _cells(quantity, rows, groups) if groups else rows
        chart = _chart(quantity, cells, list(groups or nodes), CELLS if groups else "points")
        data = {"points": rows, **({CELLS: cells} if groups else {})}
        name = file_name("pairs", quantity, rounds.partition, rounds.environment)
        table = _table(quantity, rows)
        made.append(ChartFigure(title, chart, data, name, sentences, table=table))
    return made


def _cells(quantity: PairQuantity, rows: Rows, groups: Mapping[str, Sequence[str]]) -> Rows:
    """Return of each two groups the median and the slowest pair."""
    group = {node: name for name, nodes in groups.items() for node in nodes}
    pairs: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        pairs[group[row["node"]], group[row["partner"]]].append(row)
    found = []
    for (one, other), several in pairs.items():
        slowest = _slowest(quantity, several)[0]
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


def _slowest(quantity: PairQuantity, rows: Rows) -> Rows:
    late = quantity is PairQuantity.LATENCY
    return sorted(rows, key=lambda row: row["value"], reverse=late)


def _chart(quantity: PairQuantity, cells: Rows, names: list[str], data: str) -> dict[str, Any]:
    """Return the chart, square; ``names``: of nodes or groups, in order; ``data``: of the cells."""
    unit, number, late = _UNITS[quantity], ",.4~r", quantity is PairQuantity.LATENCY
    axis = {"labels": len(names) <= NAMED_UP_TO, "ticks": False, "title": None, "labelAngle": -90}
    common = {"type": "nominal", "sort": names, "scale": {"paddingInner": 0.04}}
    middle = statistics.median(row["value"] for row in cells)
    # Slow is dark, for latency and rate; with some room, so that noise is not.
    low, high = min(row["value"] for row in cells), max(row["value"] for row in cells)
    domain = (
        [low, max(high, middle / (1 - ROOM))] if late else [min(low, middle * (1 - ROOM)), high]
    )
    tooltip = tips(node="node", partner="with", value=(unit, number), launches=("launches", "d"))
    if "slowest" in cells[0]:
        tooltip = tips(
            node="node",
            partner="with",
            value=(f"median {unit}", number),
            pairs=("pairs", "d"),
            slowest="slowest pair",
            slowest_value=(f"its {unit}", number),
        )
    scale = {"scheme": "viridis", "reverse": late, "domain": domain}
    colour = {"field": "value", "type": "quantitative", "title": unit, "scale": scale}
    layers = [{"mark": "rect", "encoding": {"color": colour, "tooltip": tooltip}}]
    if len(names) <= NUMBERED_UP_TO:
        dark = f"datum.value {'>' if late else '<'} {middle * (1.1 if late else 0.9)}"
        text = {"field": "value", "type": "quantitative", "format": ",.3~r"}
        ink = {"condition": {"test": dark, "value": "#ffffff"}, "value": "#000000"}
        mark = {"type": "text", "fontSize": 10}
        layers.append({"mark": mark, "encoding": {"text": text, "color": ink}})
    side = min(max(_CELL * len(names), _LEAST), _MOST)
    return {
        **{"width": side, "height": side, "data": {"name": data}},
        "encoding": {
            "x": {"field": "node", "axis": axis, **common},
            "y": {"field": "partner", "axis": {**axis, "labelAngle": 0}, **common},
        },
        "layer": layers,
    }


def _table(quantity: PairQuantity, rows: Rows) -> DataTable:
    """Return the pairs, the slowest first."""
    slow = _slowest(quantity, [row for row in rows if row["first"]])
    listed = tuple(
        (row["configuration"], f"{row['value']:.4g}", str(row["launches"])) for row in slow[:LISTED]
    )
    caption = "the slowest first"
    if len(slow) > LISTED:
        caption = f"the {LISTED} slowest of {len(slow)} pairs"
    return DataTable(("pair", _UNITS[quantity], "launches"), listed, (1, 2), caption)


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


def _rows(several: Mapping[tuple[str, str], Sequence[float]], size: int) -> Rows:
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
