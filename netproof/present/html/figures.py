"""Charts of curves and of pairs of nodes: their rows, flags and sentences."""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from netproof.benchmarks import registry
from netproof.criteria import Finding, Level
from netproof.criteria.findings import figure
from netproof.errors import grouped
from netproof.measurement.case import Case, Curve, mbit_s, median_curve, spread
from netproof.pairs.model import Topology
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
    template,
)
from netproof.present.html.content import Group
from netproof.present.wording import file_name
from netproof.session.pair_rounds import PairRounds
from netproof.site.matrix import Matrix
from netproof.site.partition import PairQuantity
from netproof.verdict.limits import Limits
from netproof.verdict.verdict import CaseVerdict

CAPTIONS = template("captions", "sentences")
"""Sentences below charts."""

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
    """Return a row for each size of a curve: times in µs, MAD, band and rates, None where missing.

    Sizes of 0 bytes and times of 0 µs have no place on a logarithmic axis, and are left out.
    """
    by_protocol = case is not None and registry.of(case).by_protocol
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
            "protocol": case.function.upper() if case and by_protocol else None,
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


def case_points(one: CaseVerdict) -> Rows:
    """Return the rows of a case; none where it was not measured whole."""
    if one.measured is None:
        return []
    curve, mad_us, count = one.measured.curve, one.measured.mad_us, len(one.measured.launches)
    return points(curve, mad_us, count, content.label(one), content.switch(one), one.case)


def _again(judged: CaseVerdict, launches: Sequence[Curve]) -> Rows:
    """Return the rows of the median of a case's repeated launches."""
    place = (content.configuration(judged.case), judged.case.partition, judged.case)
    return points(median_curve(launches), spread(launches), len(launches), *place)


def again(group: Group) -> Rows:
    """Return a row for each size of each repeated launch of the group's cases."""
    names = ("configuration", "partition", "environment", "size_bytes", "time_us")
    return [
        {
            **{name: row[name] for name in names},
            "launch": f"{number} of {len(judged.curves_again)}",
            "where": f"job {measured.jobid} on {', '.join(measured.nodes())}",
        }
        for judged in group.members
        for measured in [judged.measured]
        if measured is not None
        for number, curve in enumerate(judged.curves_again, 1)
        for row in _again(judged, [curve])
    ]


def flags(judged: CaseVerdict) -> Rows:
    """Return the flagged sizes of a case, a row each with mark, sentence and position."""
    rows = case_points(judged)
    if judged.curves_again:
        # Repeats may be at sizes between the curve's.
        rows = [*_again(judged, judged.curves_again), *rows]
    return flagged_rows(judged.findings, rows)


def flagged_rows(findings: Sequence[Finding], rows: Rows) -> Rows:
    """Return the rows of flagged sizes, each with mark, criterion and sentence."""
    at = {row["size_bytes"]: row for row in rows}
    return [
        {**at[size], "mark": mark, "criterion": finding.criterion, "why": finding.reason}
        for finding in findings
        if (mark := LEVEL_MARKS.get(finding.level, finding.repeated and "not confirmed"))
        for size in finding.sizes()
        if size in at
    ]


def missing(group: Group) -> dict[str, str]:
    """Return the configurations without a curve in the chart of a group, and why."""
    found = {}
    for judged in group.members:
        why, function = _why_not(judged), content.function_name(judged.case)
        if judged.measured is not None and judged.measured.curve.sizes == (0,):
            time_us = judged.measured.curve.time_us[0]
            why = f"{function} has no message sizes; a call takes {figure(time_us)} µs"
        elif judged.measured is not None and not case_points(judged):
            why = f"{function} has no time that a logarithmic axis has a place for"
        if why:
            found[content.configuration(judged.case)] = why
    return found


def _why_not(judged: CaseVerdict) -> str:
    """Return why a case has no curve; empty where it has one."""
    return "" if judged.complete else "; ".join(judged.faults) or "it left no complete curve"


def over_size(
    title: str,
    rows: Rows,
    looks: Looks,
    flagged: Rows | None = None,
    sentences: Sequence[str] = (),
    layers: Mapping[str, Rows] = MappingProxyType({}),
    **more: Any,
) -> ChartFigure:
    """Return time over size, as ``_drawn``."""
    more = {"name": file_name(title), **more}
    title = f"{title}: time against message size"
    made = _drawn("time", title, rows, looks, flagged or [], sentences, layers, **more)
    return replace(made, table=_table(made.data)) if rows else made


def _drawn(
    kind: str,
    title: str,
    rows: Rows,
    looks: Looks,
    flagged: Rows,
    sentences: Sequence[str],
    layers: Mapping[str, Rows],
    **more: Any,
) -> ChartFigure:
    """Return a chart of a kind, with the sentences that its bands and marks take.

    ``layers``: rows of ``envelope``, ``references``, ``measured again``, ``line rates``;
    ``more``: of the figure.
    """
    if not rows:
        return ChartFigure(title, None, {}, **more)
    crowded = len(present(rows, "configuration")) > BANDS_AT_ONCE
    spread = kind == "time" and any(row["launches"] > 1 for row in rows)
    marked = {mark: [row for row in flagged if row["mark"] == mark] for mark in MARKS}
    layers = {"points": rows, **layers, **marked}
    data = {name: found for name, found in layers.items() if found}
    marks = ", ".join(mark["words"] for at, mark in MARKS.items() if at in data)
    said = [
        CAPTIONS["band"] if spread and not crowded else "",
        *sentences,
        CAPTIONS["references"] if "references" in data else "",
        f"Flagged sizes: {marks}." if marks else "",
        CAPTIONS["again"] if "measured again" in data else "",
    ]
    return ChartFigure(
        title,
        curve_chart(kind, title, data, looks, bands=not crowded),
        data,
        sentences=[one for one in said if one],
        hint=CAPTIONS["crowded band"] if spread and crowded else "",
        **more,
    )


def _table(data: Mapping[str, Rows], *, rates: bool = False) -> DataTable:
    """Return the chart's data as a table: a row per size, a column per configuration."""
    rows = data["points"]
    at = {(one["size_bytes"], one["configuration"]): one for one in rows}
    least = {one["size_bytes"]: one["time_us"] for one in data.get("envelope", ())}

    def cell(one: Mapping[str, Any] | None) -> str:
        if one is None:
            return "–"
        if rates:
            return _digits(one["bandwidth_mbit_s"])
        text = _digits(one["time_us"])
        if one["launches"] > 1:
            text += f" ± {_digits(one['mad_us'], 2)}"
        if one["time_min_us"] is not None:
            text += f" ({_digits(one['time_min_us'])}, {_digits(one['time_avg_us'])})"
        return text

    names, sizes = present(rows, "configuration"), sorted({size for size, _ in at})
    head = ["bytes", *(name.replace(" ", "\n", 1) for name in names)]
    cells = [[f"{size:,}", *(cell(at.get((size, name))) for name in names)] for size in sizes]
    if least:
        head.append("envelope")
        for row, size in zip(cells, sizes, strict=True):
            row.append(_digits(least[size]) if size in least else "–")
    caption = "Mbit/s each way" if rates else "µs, median over launches ± MAD"
    if not rates and any(one["time_min_us"] is not None for one in rows):
        caption += " of the slowest rank's time (the fastest rank's, the mean of the ranks)"
    return DataTable(head, cells, EVERY, caption)


def _digits(value: float, digits: int = 4) -> str:
    """Return a number to so many digits, without an exponent for large ones."""
    return f"{float(f'{value:.{digits}g}'):.15g}"


def of_curves(
    title: str,
    several: Mapping[str, tuple[Curve, Sequence[Curve]]],
    flagged: Rows | None = None,
    *,
    names: Sequence[str] = (),
    legend: str = Looks.legend,
) -> ChartFigure:
    """Return time over size of curves by their names, each with its launches.

    ``names``: of all curves on the page, else those of ``several``; ``legend``: their title.
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
    bounds: Mapping[tuple[str, int], Limits],
    *,
    unlike_links: bool,
) -> ChartFigure:
    """Return time over size of every configuration of a group, and the envelope of all.

    ``least``: the envelope, µs and its configuration by size, ``unlike_links``: across links that
    differ; ``bounds``: references in µs by configuration and size.
    """
    rows = [row for one in group.every for row in case_points(one)]
    references: dict[tuple[object, ...], dict[str, Any]] = {}
    for (name, size), one in bounds.items() if rows else ():
        # What several configurations share is drawn once.
        low, high = _within(one, [row["time_us"] for row in rows])
        row = {"configuration": name, "size_bytes": size, "low_us": low, "high_us": high}
        references.setdefault((size, low, high), row)
    envelope = [
        {"size_bytes": size, "time_us": time, "fastest": name}
        for size, (time, name) in least.items()
    ]
    others = {"envelope": envelope, "references": list(references.values())}
    captions = ["envelope" if least else "alone", *(["stored"] if group.stored else [])]
    return over_size(
        group.title,
        rows,
        looks,
        [row for judged in group.members for row in flags(judged)],
        [CAPTIONS[name] for name in captions],
        {**others, "measured again": again(group)},
        name=group.name,
        notes=(CAPTIONS["links"],) if least and unlike_links else (),
        missing=missing(group),
    )


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
    """Return throughput and signature, TCP with MPI; ``bounds``: of the asymptotic MB/s."""
    path, direction, partition = key
    rates = sorted({one.measured.line_rate_mb_s or 0 for one in members if one.measured} - {0})
    lines: Rows = [
        {
            "line_rate_mbit_s": mbit_s(rate),
            "label": f"line rate {mbit_s(rate):.1f} Mbit/s ({rate:.1f} MB/s)",
        }
        for rate in rates
    ]
    if rates:
        here, end = matrix.partitions.get(partition), "the site says: no peak is among them."
        notes = list(map(_share, members))
        if here is not None and (least := here.line_rate_from_bytes):
            notes.append(f"Below {least} bytes short bursts pass above the line rate, {end}")
    elif path == "intra-node":
        notes = ["Inside a node messages cross no link, so there is no line rate."]
    else:
        notes = ["No line rate is drawn: none is known for what was measured."]
    rows = [_by_protocol(row) for judged in members for row in case_points(judged)]
    flagged = [_by_protocol(row) for judged in members for row in flags(judged)]
    references: Rows = []
    for one in sorted(bounds, key=lambda one: (one.low, one.high)) if rows else ():
        low, high = map(mbit_s, _within(one, [row["bandwidth_mb_s"] for row in rows]))
        label = f"asymptotic bandwidth {low:.4g} to {high:.4g} Mbit/s"
        references.append({"low_mbit_s": low, "high_mbit_s": high, "label": label})
    layers = {"references": references, "line rates": lines}
    missing = {
        f"{judged.case.environment} {content.function_name(judged.case)}": why
        for judged in members
        if (why := _why_not(judged))
    }
    found = []
    for kind, what in (("throughput", ""), ("signature", ", throughput against time")):
        title = f"{partition}, NetPIPE {path} {direction}: {kind}{what}"
        name = file_name("netpipe", path, direction, partition, kind)
        found.append(_drawn(kind, title, rows, looks, flagged, (), layers, name=name))
    # Both charts stand side by side, and the first has what both share.
    throughput, signature = found
    table = _table(throughput.data, rates=True) if rows else None
    return [replace(throughput, notes=notes, missing=missing, table=table), signature]


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
        if interval := found.intervals.get("line_rate_share"):
            text += f" (95 % interval {interval[0]:.1%} to {interval[1]:.1%})"
    if found.paired_share is not None:
        text += f"; {found.paired_share:.1%} of what the link's healthy twin carried at the same"
        text += f" time ({found.paired_mb_s:.4g} MB/s)"
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
_QUANTITIES = {
    PairQuantity.RATE: ("MB/s", "rate of the largest message"),
    PairQuantity.LATENCY: ("µs", "time of the smallest message"),
}


def of_rounds(rounds: PairRounds) -> list[ChartFigure]:
    """Return a map of the rate and one of the latency; none if no pair measured among others."""
    among = (one for one in rounds.launches if not (one.alone or one.both_ways))
    curves = grouped(
        (tuple(sorted(pair)), (curve, rate))
        for one in among
        for pair, curve, rate in zip(one.pairs, one.curves, one.rates_mb_s, strict=True)
    )
    nodes = ordered(rounds)
    groups, of_what = node_groups(rounds, nodes) if len(nodes) > DRAWN_UP_TO else ({}, "nodes")
    sentences = ["Dark is slow. Empty: the pair was not measured among others."]
    if groups:
        sentences = [
            f"A cell has the median of all pairs between two {of_what}, and names the slowest.",
            "Dark is slow. Empty: none of its pairs was measured among others.",
        ]
    elif rounds.leaves:
        sentences.append("Nodes stand leaf switch by leaf switch.")
    made = []
    for kind, (unit, what) in _QUANTITIES.items() if curves else ():
        late = kind is PairQuantity.LATENCY
        rows: Rows = []
        for pair, several in curves.items():
            values = [curve.time_us[0] if late else rate for curve, rate in several]
            common = {
                "configuration": " – ".join(pair),
                "size_bytes": several[0][0].sizes[0 if late else -1],
                "value": statistics.median(values),
                "launches": len(values),
            }
            for one, other in (pair, pair[::-1]):
                rows.append({**common, "node": one, "partner": other, "first": one == pair[0]})
        rows.sort(key=lambda row: row["value"], reverse=late)
        data = {"points": rows, **({CELLS: _cells(rows, groups)} if groups else {})}
        listed = [
            (row["configuration"], f"{row['value']:.4g}", str(row["launches"]))
            for row in rows
            if row["first"]
        ]
        many = f"the {LISTED} slowest of {len(listed)} pairs"
        caption = many if len(listed) > LISTED else "the slowest first"
        where = f"{rounds.partition} {rounds.environment}, rounds of pairs"
        made.append(
            ChartFigure(
                f"{where}: {what} of each pair of {of_what}",
                _pair_map(data, list(groups or nodes), unit, late=late),
                data,
                file_name("pairs", kind, rounds.partition, rounds.environment),
                sentences,
                table=DataTable(("pair", unit, "launches"), listed[:LISTED], (1, 2), caption),
            )
        )
    return made


def _cells(rows: Rows, groups: Mapping[str, Sequence[str]]) -> Rows:
    """Return of each two groups the median and the slowest pair; ``rows``: the slowest first."""
    group = {node: name for name, nodes in groups.items() for node in nodes}
    pairs = grouped(((group[row["node"]], group[row["partner"]]), row) for row in rows)
    return [
        {
            "node": one,
            "partner": other,
            "value": statistics.median(row["value"] for row in several),
            "pairs": len({row["configuration"] for row in several}),
            "slowest": several[0]["configuration"],
            "slowest_value": several[0]["value"],
        }
        for (one, other), several in pairs.items()
    ]


def _pair_map(
    data: Mapping[str, Rows], names: list[str], unit: str, *, late: bool
) -> dict[str, Any]:
    """Return the chart, square; ``names``: of nodes or groups in order; ``late``: high is slow."""
    kind = CELLS if CELLS in data else "points"
    values = [row["value"] for row in data[kind]]
    low, high, middle = min(values), max(values), statistics.median(values)
    # Slow is dark, for latency and rate; with some room, so that noise is not.
    if late:
        high = max(high, middle / (1 - ROOM))
    else:
        low = min(low, middle * (1 - ROOM))
    units = {"unit": unit, "median": f"median {unit}", "its": f"its {unit}"}
    made: dict[str, Any] = template(
        "pairs",
        side=min(max(_CELL_PX * len(names), _LEAST), _MOST),
        labels=len(names) <= NAMED_UP_TO,
        tooltip=template("pairs", f"tips of {kind}", **units),
        dark=f"datum.value {'>' if late else '<'} {middle * (1.1 if late else 0.9)}",
        **{"data": kind, "nodes": names, "unit": unit, "late": late, "domain": [low, high]},
    )
    if len(names) > NUMBERED_UP_TO:
        made["layer"].pop()
    return made


def ordered(rounds: PairRounds) -> tuple[str, ...]:
    """Return the nodes in the topology's order, by leaf switch; else as in the job."""
    topology = Topology(rounds.leaves, rounds.parents)
    leaves = sorted(rounds.leaves, key=lambda leaf: topology.above(leaf)[::-1])
    own = set(rounds.nodes)
    placed = [node for leaf in leaves for node in rounds.leaves[leaf] if node in own]
    return tuple(dict.fromkeys([*placed, *rounds.nodes]))


def node_groups(rounds: PairRounds, nodes: Sequence[str]) -> tuple[dict[str, list[str]], str]:
    """Return at most ``DRAWN_UP_TO`` groups of the ordered ``nodes`` by name, and what they are.

    They are leaf switches; without a topology, or where these are too many, nodes that follow one
    another in its order.
    """
    above, of_what = Topology(rounds.leaves).leaf_of, "leaf switches"
    if not above or len({above.get(node, OTHERS) for node in nodes}) > DRAWN_UP_TO:
        of_what, size = "groups of nodes", -(-len(nodes) // DRAWN_UP_TO)
        blocks = [nodes[at : at + size] for at in range(0, len(nodes), size)]
        above = {node: f"{block[0]} to {block[-1]}" for block in blocks for node in block}
    return grouped((above.get(node, OTHERS), node) for node in nodes), of_what
