"""Charts of curves and of pairs of nodes: their rows, flags and sentences."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from netproof.benchmarks import registry
from netproof.criteria import Level
from netproof.measurement.case import Case
from netproof.measurement.curve import Curve, median_curve, spread
from netproof.measurement.units import mbit_s
from netproof.present.document import EVERY, DataTable
from netproof.present.html import content
from netproof.present.html.charts import (
    BANDS_AT_ONCE,
    MARKS,
    ChartFigure,
    Looks,
    Rows,
    curve_chart,
    present,
    tips,
)
from netproof.present.html.content import Group
from netproof.present.wording import file_name
from netproof.session.pair_rounds import PairRounds
from netproof.site.matrix import Matrix
from netproof.site.pair_settings import PairQuantity
from netproof.verdict.limits import Limits
from netproof.verdict.verdict import CaseVerdict, StoredResult

BAND = "Bands: median ± MAD over launches."
CROWDED_BAND = "Pick a configuration to see its band, median ± MAD over launches."
AGAIN = "Thin lines with +: measured again, a line a launch."
ENVELOPE = "Wide grey line: the envelope, the least time of any configuration."
REFERENCES = "Dotted band: the references."
LINKS = (
    "Links differ here: a time is not compared with the envelope itself, but with what another"
    " configuration would take over the same link. The reason of a flagged size has both figures."
)
STORED = "Grey, with a day: measured by other sessions, on that day."
ALONE = "There is no envelope: no other configuration measured the same."
SIGNS = {
    "failed": "cross: failed",
    "inconclusive": "question mark: inconclusive",
    "warning": "triangle: warning",
    "not confirmed": "circle: not confirmed when measured again",
}
"""Marks in words, since PNG and PDF draw a line with signs that their font lacks in another."""

_NOWHERE = "as given"
"""Stands for the switch, where it is not named."""
LEVEL_MARKS = {Level.FAIL: "failed", Level.INCONCLUSIVE: "inconclusive", Level.WARN: "warning"}
"""Marks of flagged sizes by the level of the finding."""


def points(
    curve: Curve,
    mad_us: Sequence[float],
    launches: int,
    name: str,
    partition: str = _NOWHERE,
    case: Case | None = None,
) -> Rows:
    """Return a row for each size of a curve: times in µs, MAD, band and rates.

    The fastest rank's time, the ranks' mean and the bandwidth are None where they are missing.
    Sizes of 0 bytes and times of 0 µs are left out: a logarithmic axis has no place for them.
    """
    protocol = None
    if case is not None and registry.of(case).by_protocol:
        protocol = case.function.upper()
    none = (None,) * len(curve.sizes)
    columns = zip(
        *(curve.sizes, curve.time_us, mad_us, curve.time_min_us or none),
        *(curve.time_avg_us or none, curve.bandwidth_mb_s or none),
        strict=True,
    )
    return [
        {
            "configuration": name,
            "partition": partition,
            "environment": name if case is None else case.environment,
            "protocol": protocol,
            "size_bytes": size,
            "time_us": time,
            "mad_us": mad,
            "low_us": time - mad,
            "high_us": time + mad,
            "time_min_us": least,
            "time_avg_us": mean,
            "bandwidth_mb_s": rate,
            "bandwidth_mbit_s": None if rate is None else mbit_s(rate),
            "launches": launches,
        }
        for size, time, mad, least, mean, rate in columns
        if size >= 1 and time > 0
    ]


def case_points(one: CaseVerdict | StoredResult) -> Rows:
    """Return the rows of a case; none where it was not measured whole."""
    if one.measured is None:
        return []
    curve, mad_us, count = one.measured.curve, one.measured.mad_us, len(one.measured.launches)
    return points(curve, mad_us, count, content.label(one), content.switch(one), one.case)


def again(group: Group) -> Rows:
    """Return a row for each size of each repeated launch of the group's cases."""
    return [
        {
            "configuration": content.configuration(judged.case),
            "partition": judged.case.partition,
            "environment": judged.case.environment,
            "size_bytes": size,
            "time_us": time,
            "launch": f"{number} of {len(judged.again.launches)}",
            "where": f"job {judged.again.jobid} on {', '.join(judged.again.nodes)}",
        }
        for judged in group.members
        if judged.again is not None
        for number, curve in enumerate(judged.again.launches, 1)
        for size, time in zip(curve.sizes, curve.time_us, strict=True)
        if size >= 1 and time > 0
    ]


def flags(judged: CaseVerdict) -> Rows:
    """Return the flagged sizes of a case, a row each with mark, sentence and position."""
    at = {row["size_bytes"]: row for row in case_points(judged)}
    if judged.again is not None and judged.again.launches:
        # Repeats may be at sizes between the curve's.
        launches = judged.again.launches
        place = (content.configuration(judged.case), judged.case.partition, judged.case)
        repeats = points(median_curve(launches), spread(launches), len(launches), *place)
        at = {row["size_bytes"]: row for row in repeats} | at
    return [
        {**at[size], "mark": mark, "criterion": finding.criterion, "why": finding.reason}
        for finding in judged.findings
        if (mark := LEVEL_MARKS.get(finding.level, finding.confirmation and "not confirmed"))
        for size in finding.sizes()
        if size in at
    ]


def missing(group: Group) -> dict[str, str]:
    """Return the configurations without a curve in the chart of a group, and why."""
    found = {}
    for judged in group.members:
        name = content.configuration(judged.case)
        if judged.measured is None:
            found[name] = _why_not(judged)
        elif not case_points(judged):
            function, curve = content.function_name(judged.case), judged.measured.curve
            found[name] = f"{function} has no time that a logarithmic axis has a place for"
            if curve.sizes == (0,):
                found[name] = (
                    f"{function} has no message sizes; a call takes {curve.time_us[0]:.3g} µs"
                )
    return found


def _why_not(judged: CaseVerdict) -> str:
    return "; ".join(judged.faults) or "it left no complete curve"


def marked(flagged: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the sentence on the marks that a chart has, if it has any."""
    several = [SIGNS[mark] for mark in SIGNS if any(row["mark"] == mark for row in flagged)]
    return [f"Flagged sizes: {', '.join(several)}."] if several else []


def over_size(
    title: str,
    rows: Rows,
    looks: Looks,
    flagged: Sequence[Mapping[str, Any]] = (),
    others: Sequence[str] = (),
    envelope: Sequence[Mapping[str, Any]] = (),
    repeats: Sequence[Mapping[str, Any]] = (),
    references: Sequence[Mapping[str, Any]] = (),
    **more: Any,
) -> ChartFigure:
    """Return time over size, with the sentences that its bands and marks take.

    ``others``: further sentences; ``envelope``, ``repeats``, ``references``: rows of further
    layers; ``more``: fields of the figure, its name if not by its title.
    """
    more = {"name": file_name(title), **more}
    title = f"{title}: time against message size"
    if not rows:
        return ChartFigure(title, None, {}, **more)
    spread = any(row["launches"] > 1 for row in rows)
    crowded = len(present(rows, "configuration")) > BANDS_AT_ONCE
    layers = {"envelope": envelope, "references": references, "measured again": repeats}
    data = _data(rows, flagged, layers)
    return ChartFigure(
        title,
        curve_chart("time", title, data, looks, bands=not crowded),
        data,
        sentences=[
            *([BAND] if spread and not crowded else []),
            *others,
            *([REFERENCES] if references else []),
            *marked(flagged),
            *([AGAIN] if repeats else []),
        ],
        hint=CROWDED_BAND if spread and crowded else "",
        table=_table(data),
        **more,
    )


def _data(
    rows: Rows,
    flagged: Sequence[Mapping[str, Any]],
    others: Mapping[str, Sequence[Mapping[str, Any]]],
) -> dict[str, Rows]:
    """Return the data of a chart by the names of its layers, those with rows."""
    flags = {mark: [row for row in flagged if row["mark"] == mark] for mark in MARKS}
    layers = {"points": rows, **others, **flags}
    return {name: list(map(dict, found)) for name, found in layers.items() if found}


def _table(data: Mapping[str, Rows], *, rates: bool = False) -> DataTable:
    """Return the chart's data as a table: a row per size, a column per configuration."""
    rows = data["points"]
    at = {(one["size_bytes"], one["configuration"]): one for one in rows}
    least = {one["size_bytes"]: one["time_us"] for one in data.get("envelope", ())}
    of_ranks = any(one["time_min_us"] is not None for one in rows)

    def cell(one: Mapping[str, Any] | None) -> str:
        if one is None:
            return "–"
        if rates:
            return _digits(one["bandwidth_mbit_s"], 4)
        time = _digits(one["time_us"], 4)
        text = f"{time} ± {_digits(one['mad_us'], 2)}" if one["launches"] > 1 else time
        if one["time_min_us"] is None:
            return text
        return f"{text} ({_digits(one['time_min_us'], 4)}, {_digits(one['time_avg_us'], 4)})"

    names, sizes = present(rows, "configuration"), sorted({size for size, _ in at})
    head = ["bytes", *(name.replace(" ", "\n", 1) for name in names)]
    cells = [[f"{size:,}", *(cell(at.get((size, name))) for name in names)] for size in sizes]
    if least:
        head.append("envelope")
        for row, size in zip(cells, sizes, strict=True):
            row.append(_digits(least[size], 4) if size in least else "–")
    caption = "Mbit/s each way" if rates else "µs, median over launches ± MAD"
    if not rates and of_ranks:
        caption += " of the slowest rank's time (the fastest rank's, the mean of the ranks)"
    return DataTable(head, cells, EVERY, caption)


def _digits(value: float, digits: int) -> str:
    """Return a number to so many digits, without an exponent for large ones."""
    return f"{float(f'{value:.{digits}g}'):.15g}"


def of_curves(
    title: str,
    several: Mapping[str, tuple[Curve, Sequence[Curve]]],
    flagged: Sequence[Mapping[str, Any]] = (),
    *,
    names: Sequence[str] = (),
    legend: str = Looks.legend,
) -> ChartFigure:
    """Return time over size of curves by their names, each with its launches.

    ``names``: of all curves in the charts of a page, else those of ``several``; ``legend``: title
    of the legend of names.
    """
    rows = [
        row
        for name, (curve, launches) in several.items()
        for row in points(curve, spread(launches), len(launches), name)
    ]
    looks = Looks((_NOWHERE,), tuple(names or several), legend=legend)
    return over_size(title, rows, looks, flagged)


def of_time(
    group: Group,
    least: Mapping[int, tuple[float, str]],
    looks: Looks,
    bounds: Mapping[tuple[str, int], Limits] = MappingProxyType({}),
    *,
    unlike_links: bool,
) -> ChartFigure:
    """Return time over size of every configuration of a group, and the envelope of all.

    ``least``: the envelope, µs and its configuration by size; ``bounds``: references in µs by
    configuration and size; ``unlike_links``: whether those of
    the envelope cross different links.
    """
    every: list[CaseVerdict | StoredResult] = [*group.members, *group.stored]
    rows = [row for one in every for row in case_points(one)]
    return over_size(
        group.title,
        rows,
        looks,
        [row for judged in group.members for row in flags(judged)],
        [ENVELOPE if least else ALONE, *([STORED] if group.stored else [])],
        [
            {"size_bytes": size, "time_us": time, "fastest": name}
            for size, (time, name) in least.items()
        ],
        again(group) if rows else [],
        _bands(bounds, rows),
        name=group.name,
        notes=(LINKS,) if least and unlike_links else (),
        missing=missing(group),
    )


def _bands(bounds: Mapping[tuple[str, int], Limits], rows: Rows) -> Rows:
    """Return the references of sizes, those that several configurations share once."""
    found: dict[tuple[object, ...], dict[str, Any]] = {}
    for (name, size), one in bounds.items() if rows else ():
        low, high = _within(one, [row["time_us"] for row in rows])
        row = {"configuration": name, "size_bytes": size, "low_us": low, "high_us": high}
        found.setdefault((size, low, high), row)
    return list(found.values())


def _within(limits: Limits, values: Sequence[float]) -> tuple[float, float]:
    """Return the ends of limits, cut where a chart of these values ends."""
    low = limits.low if limits.low > 0 else min(values)
    return low, limits.high if math.isfinite(limits.high) else max(*values, low)


def of_netpipe(
    key: tuple[str, str, str],
    members: Sequence[CaseVerdict],
    matrix: Matrix,
    looks: Looks,
    bounds: Collection[Limits] = (),
) -> list[ChartFigure]:
    """Return throughput and signature of a path, direction and partition, TCP with MPI.

    ``bounds``: references of the asymptotic bandwidth in MB/s.
    """
    path, direction, partition = key
    rates = {
        judged.measured.line_rate_mb_s
        for judged in members
        if judged.measured is not None and judged.measured.line_rate_mb_s is not None
    }
    flagged = [_by_protocol(row) for judged in members for row in flags(judged)]
    here = matrix.partitions.get(partition)
    if rates:
        notes = list(map(_share, members))
        if here is not None and here.line_rate_from_bytes > 0:
            notes.append(
                f"Below {here.line_rate_from_bytes} bytes short bursts pass above the line"
                " rate, the site says: no peak is among them."
            )
    elif path == "intra-node":
        notes = ["Inside a node messages cross no link, so there is no line rate."]
    else:
        notes = ["No line rate is drawn: none is known for what was measured."]
    lines = [
        {
            "line_rate_mbit_s": mbit_s(rate),
            "label": f"line rate {mbit_s(rate):.1f} Mbit/s ({rate:.1f} MB/s)",
        }
        for rate in sorted(rates)
    ]
    rows = [_by_protocol(row) for judged in members for row in case_points(judged)]
    references = []
    for one in sorted(bounds, key=lambda one: (one.low, one.high)) if rows else ():
        low, high = map(mbit_s, _within(one, [row["bandwidth_mb_s"] for row in rows]))
        label = f"asymptotic bandwidth {low:.4g} to {high:.4g} Mbit/s"
        references.append({"low_mbit_s": low, "high_mbit_s": high, "label": label})
    data = _data(rows, flagged, {"references": references, "line rates": lines})
    name = file_name("netpipe", path, direction, partition)
    where = f"{partition}, NetPIPE {content.variant(members[0].case)}"
    missing = {
        f"{judged.case.environment} {content.function_name(judged.case)}": _why_not(judged)
        for judged in members
        if judged.measured is None
    }
    found: list[ChartFigure] = []
    for kind, what in (
        ("throughput", "throughput"),
        ("signature", "signature, throughput against time"),
    ):
        title = f"{where}: {what}"
        chart = curve_chart(kind, title, data, looks) if rows else None
        # Both charts stand side by side, and the first has what both share.
        table = _table(data, rates=True) if rows else None
        own: dict[str, Any] = {"notes": notes, "missing": missing, "table": table}
        of: dict[str, Any] = {"data_of": f"{name}-throughput"} if found else own
        sentences = [*([REFERENCES] if references else []), *marked(flagged)]
        made = ChartFigure(title, chart, data, f"{name}-{kind}", sentences, **of)
        found.append(made)
    return found


def _by_protocol(row: dict[str, Any]) -> dict[str, Any]:
    """Return a point under its name among those of one partition."""
    return {**row, "configuration": f"{row['environment']} {row['protocol']}"}


def _share(judged: CaseVerdict) -> str:
    """Return a case's asymptotic bandwidth with its share of the line rate, in a sentence."""
    name = f"{judged.case.environment} {judged.case.function}"
    if judged.measured is None:
        return f"{name}: not measured whole."
    found = judged.measured.landmarks
    if found.asymptotic_mb_s is None:
        return f"{name}: no asymptotic bandwidth: {found.why('asymptotic_mb_s')}."
    text = f"{name}: asymptotic bandwidth {found.asymptotic_mb_s:.4g} MB/s"
    if found.line_rate_share is not None:
        text += f", {found.line_rate_share:.1%} of the line rate"
        interval = found.interval("line_rate_share")
        if interval is not None:
            text += f" (95 % interval {interval[0]:.1%} to {interval[1]:.1%})"
    if found.paired_share is not None:
        text += (
            f"; {found.paired_share:.1%} of what the link's healthy twin carried at the same time"
            f" ({found.paired_mb_s:.4g} MB/s)"
        )
    return f"{text}."


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

_CELL_PX, _LEAST, _MOST = 26, 220, 760
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
        rows = _pair_rows(several, sizes[quantity])
        cells = _cells(quantity, rows, groups) if groups else rows
        chart = _pair_map(quantity, cells, list(groups or nodes), CELLS if groups else "points")
        data = {"points": rows, **({CELLS: cells} if groups else {})}
        name = file_name("pairs", quantity, rounds.partition, rounds.environment)
        table = _pair_table(quantity, rows)
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


def _pair_map(quantity: PairQuantity, cells: Rows, names: list[str], data: str) -> dict[str, Any]:
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
    side = min(max(_CELL_PX * len(names), _LEAST), _MOST)
    return {
        **{"width": side, "height": side, "data": {"name": data}},
        "encoding": {
            "x": {"field": "node", "axis": axis, **common},
            "y": {"field": "partner", "axis": {**axis, "labelAngle": 0}, **common},
        },
        "layer": layers,
    }


def _pair_table(quantity: PairQuantity, rows: Rows) -> DataTable:
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


def _pair_rows(several: Mapping[tuple[str, str], Sequence[float]], size: int) -> Rows:
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
