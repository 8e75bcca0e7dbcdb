"""A comparison of two sides, in words, on the terminal, and as plain values for ``json``."""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from netproof.benchmarks import registry
from netproof.comparison import comparison
from netproof.comparison.compared_case import ComparedCase, Outcome
from netproof.comparison.comparison import ComparedSide, Comparison
from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.present import documents, tables
from netproof.present.sparkline import columns, sparkline
from netproof.present.tables import TableColumn, benchmark_name
from netproof.present.terminal import say

STYLES = {Outcome.FASTER: "green", Outcome.SLOWER: "red"}

_LEAST_LINE, _LONGEST_LINE = 8, 40
_DRAWN_RATIOS = (2.0, 10.0)
"""Limits of the upper end of a drawn scale: noise stays flat, outliers leave the rest visible."""


MARKS = {
    Outcome.FASTER: "▲",
    Outcome.SLOWER: "▼",
    Outcome.ALIKE: "=",
    Outcome.UNDECIDED: "?",
    Outcome.UNDEFINED: "-",
}

_NOT_COMPARED = "none"

_MOST_OF_NODES = 12
"""Differences of nodes that are printed; another driver has dozens of settings of its own."""


def node_diffs(compared: Comparison) -> list[str]:
    """Return the differences of nodes, which show whether anything else changed."""
    try:
        found = comparison.differing(compared)
    except NetproofError as error:
        return [f"nodes: {error}"]
    sentences = [
        f"nodes: {what} {', '.join(first)} and {', '.join(second)}"
        for what, (first, second) in list(found.items())[:_MOST_OF_NODES]
    ]
    if len(found) > _MOST_OF_NODES:
        sentences.append(f"nodes: and {len(found) - _MOST_OF_NODES} more, which --format json has")
    return sentences


def differences(compared: Comparison) -> list[str]:
    """Return the differences between both sides in the site's file."""
    return [
        f"{one.what} {_plain(one.first)} and {_plain(one.second)}"
        + ("" if one.cases == len(compared.cases) else f" ({one.cases} cases)")
        for one in compared.differences
    ]


def summary(compared: Comparison) -> str:
    """Return the overall result, in a sentence or two."""
    first, second = compared.first.name, compared.second.name
    counts = [
        f"{word} in {compared.count(outcome)}"
        for outcome, word in (
            (Outcome.FASTER, "faster"),
            (Outcome.SLOWER, "slower"),
            (Outcome.ALIKE, "no difference overall"),
            (Outcome.UNDECIDED, "no interval, of one launch,"),
            (Outcome.UNDEFINED, "no ratio"),
        )
        if compared.count(outcome)
    ]
    mean = compared.mean()
    over = "" if mean is None else f"; {mean:.3g} times as fast by the geometric mean"
    missing = len(compared.uncompared)
    others = f"; {missing} more are not in both" if missing else ""
    where = "".join(
        f". {name}: in most cases {', '.join(map(_span, mostly))}"
        for name, mostly in ((one.label, compared.mostly(one.name)) for one in registry.BENCHMARKS)
        if mostly
    )
    return (
        f"{second} against {first}, {len(compared.cases)} cases: {', '.join(counts)}{over}{others}"
        f"{where}{_latencies(compared)}"
    )


def _latencies(compared: Comparison) -> str:
    """Return what the second partition adds to NetPIPE's latency between two nodes."""
    first, second = compared.first, compared.second
    if first.partition == second.partition:
        return ""
    by_benchmark: dict[str, list[str]] = defaultdict(list)
    for one in compared.cases:
        case = one.first.case
        by_protocol = registry.of(case).by_protocol
        if not by_protocol or (case.path, case.direction) != ("inter-node", "oneway"):
            continue
        sentence = one.latency(first.name, second.name)
        if sentence is not None:
            where = place(compared, case)
            by_benchmark[benchmark_name(case)].append(f"{where}: {sentence}" if where else sentence)
    return "".join(
        f". Latency of {name}: {'; '.join(sentences)}" for name, sentences in by_benchmark.items()
    )


def _span(mostly: tuple[int, int, bool]) -> str:
    least, largest, faster = mostly
    return f"{'faster' if faster else 'slower'} from {least} to {largest} bytes"


def whence(side: ComparedSide) -> str:
    """Return the origin of a side's figures: configuration, session, labels, start."""
    system = side.session.results[0].system
    where = f"{system}:{side.partition}" if side.partition else system
    if side.environment:
        where += f" {side.environment}"
    labels = "".join(f", {key}={value}" for key, value in side.session.labels().items())
    started = side.session.info.get("time_start", "undated")
    return f"{where} of {side.session.path}, {started}{labels}"


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(_plain, value))
    return "not said" if value is None else str(value)


def place(compared: Comparison, case: Case) -> str:
    """Return the part of the configuration that both sides have in common."""
    parts = (
        None if compared.first.partition else case.partition,
        None if compared.first.environment else case.environment,
    )
    return " ".join(part for part in parts if part)


def named(compared: Comparison, case: Case) -> str:
    """Return a case by what both sides have in common."""
    return f"{place(compared, case)} {case.what()}".strip()


def print_comparisons(
    several: Sequence[Comparison], failed: Mapping[str, str], out: Console
) -> None:
    """Print origin and differences of each side, then ratios, summary and what is missing.

    ``several``: comparisons with one first side; a single one is shown in detail. ``failed``: the
    sides that could not be compared, with the reason.
    """
    for side in (several[0].first, *(one.second for one in several)):
        say(out, f"{side.name}: {whence(side)}")
    for one in several:
        of = f" of {one.second.name}" if len(several) > 1 else ""
        for difference in differences(one):
            say(out, f"configuration{of}: {difference}")
        for sentence in node_diffs(one):
            say(out, f"{of.strip()}, {sentence}" if of else sentence)
    for name, reason in failed.items():
        say(out, f"{name} is not compared: {reason}", "yellow")
    out.print()
    if len(several) > 1:
        _print_ratios_of_sides(several, out)
    for one in several:
        say(out, summary(one), "bold")
        if len(several) == 1:
            _print_ratios(one, out)
            out.print()
            _print_sentences(one, out)
        print_uncompared(one, out)


def _print_ratios_of_sides(several: Sequence[Comparison], out: Console) -> None:
    """Print a row for each case, a column for each side, in as many tables as they take."""
    cells: dict[str, dict[str, Text]] = {}
    for one in several:
        column = cells.setdefault(one.second.name, {})
        for case in one.cases:
            value = "-" if case.score.value is None else f"{case.score.value:.2f}"
            text = Text(f"{value} {MARKS[case.outcome]}", STYLES.get(case.outcome, ""))
            column[named(one, case.first.case)] = text
    rows = list(dict.fromkeys(row for column in cells.values() for row in column))
    columns = [
        TableColumn(name, [column.get(row, Text(_NOT_COMPARED)) for row in rows])
        for name, column in cells.items()
    ]
    tables.print_parts([TableColumn("", rows, right=False)], columns, None, out)
    marks = "; ".join(f"{mark} {outcome.value}" for outcome, mark in MARKS.items())
    first = several[0].first.name
    say(out, f"how many times as fast as {first}; {marks}; {_NOT_COMPARED}: not in both", "dim")


def _print_ratios(compared: Comparison, out: Console) -> None:
    """Print a table of ratios for each configuration that both sides have in common."""
    places: dict[str, list[ComparedCase]] = defaultdict(list)
    for case in compared.cases:
        places[place(compared, case.first.case)].append(case)
    ordered = [case for cases in places.values() for case in cases]
    table = tables.fitting(_ratio_columns(ordered), out.width - _LEAST_LINE)
    room = min(max(out.width - tables.width_of(table), _LEAST_LINE), _LONGEST_LINE)
    logs = [abs(math.log(ratio)) for case in ordered for ratio in case.ratios.values()]
    least, largest = _DRAWN_RATIOS
    most = min(max(math.exp(max(logs, default=0)), least), largest)
    scale = (1 / most, most)
    lines = [
        sparkline(case.ratios, columns(case.ratios, room), scale, _furthest_from_1)
        for case in ordered
    ]
    table.append(TableColumn("over sizes", lines, right=False))
    tables.print_by_heading(table, {where: len(cases) for where, cases in places.items()}, out)
    first, second = compared.first.name, compared.second.name
    out.print()
    say(
        out,
        f"ratio: the time of {first} over that of {second}, with its 95 % interval over the"
        " launches; lat, MB/s, r∞, 64K…1K: latency, peak, asymptotic bandwidth, and rates at so"
        f" many bytes, above 1 {second} is better, faint where the interval has 1 in it; added:"
        f" what {second} adds to the latency; CPU/GB: of CPU seconds for 10⁹ bytes, above 1"
        f" {second} takes fewer; over sizes: the ratio from 1/{most:.3g} to"
        f" {most:.3g}, ▅ and above is faster",
        "dim",
    )
    say(out, "; ".join(f"{MARKS[outcome]} {outcome.value}" for outcome in Outcome), "dim")


_LANDMARKS = {
    "MB/s": ("peak_mb_s", 0),
    "r∞": ("asymptotic_mb_s", 1),
    "64K": ("rate_64_kib_mb_s", 2),
    "16K": ("rate_16_kib_mb_s", 2),
    "4K": ("rate_4_kib_mb_s", 2),
    "1K": ("rate_1_kib_mb_s", 2),
}
"""Columns of landmarks' ratios, with their ranks where columns do not fit."""


def _ratio_columns(cases: list[ComparedCase]) -> list[TableColumn]:
    def ratio(value: float | None) -> str:
        return "-" if value is None else f"{value:.2f}"

    def landmark(heading: str, name: str, rank: int = 0) -> TableColumn:
        cells = []
        for one in (case.landmarks[name] for case in cases):
            undecided = one.interval is not None and one.interval[0] <= 1 <= one.interval[1]
            cells.append(Text(ratio(one.ratio), "dim" if undecided else ""))
        return TableColumn(heading, cells, rank)

    added = []
    for latency in (case.landmarks["latency_us"] for case in cases):
        text = "-" if latency.difference is None else f"{latency.difference:+.1f}"
        if latency.difference is not None and latency.difference_interval is not None:
            low, high = latency.difference_interval
            text += f" ({low:+.1f} to {high:+.1f})"
        added.append(text)
    names = [
        benchmark_name(case) if registry.of(case).by_protocol else case.what()
        for case in (one.first.case for one in cases)
    ]
    marks = [Text(MARKS[one.outcome], STYLES.get(one.outcome, "")) for one in cases]
    intervals = [one.score.interval for one in cases]
    costs = [one.cpu_s_per_gb.ratio for one in cases]
    known = any(one is not None for one in costs)
    return [
        TableColumn("", marks, right=False),
        TableColumn("function", names, right=False),
        TableColumn("ratio", [Text(ratio(one.score.value), "bold") for one in cases]),
        TableColumn(
            "95 %", ["-" if one is None else f"{one[0]:.2f}–{one[1]:.2f}" for one in intervals]
        ),
        landmark("lat", "latency_us"),
        TableColumn("added µs, 95 %", added, rank=1),
        *(landmark(heading, *one) for heading, one in _LANDMARKS.items()),
        *([TableColumn("CPU/GB", list(map(ratio, costs)), rank=1)] if known else []),
    ]


def _furthest_from_1(ratios: list[float]) -> float:
    return max(ratios, key=lambda ratio: abs(math.log(ratio)))


def _print_sentences(compared: Comparison, out: Console) -> None:
    """Print what is slower, the worst on top, and then what is faster."""
    shown = [
        case
        for case in compared.cases
        if case.outcome in (Outcome.FASTER, Outcome.SLOWER, Outcome.UNDEFINED) or case.ranges
    ]
    order = [Outcome.SLOWER, Outcome.FASTER, Outcome.ALIKE, Outcome.UNDECIDED, Outcome.UNDEFINED]

    def rank(case: ComparedCase) -> tuple[int, float]:
        ratio = case.score.value or 1
        return order.index(case.outcome), -ratio if case.outcome is Outcome.FASTER else ratio

    say(out, f"{compared.second.name} against {compared.first.name} is", "bold")
    for case in sorted(shown, key=rank):
        say(
            out,
            f"{MARKS[case.outcome]} {named(compared, case.first.case)}: {case.sentence()}",
            STYLES.get(case.outcome, ""),
        )


def print_uncompared(compared: Comparison, out: Console) -> None:
    """Print the cases that are not in both, grouped by reason."""
    alike: dict[tuple[str | None, str], list[Case]] = defaultdict(list)
    for one in compared.uncompared:
        alike[one.measured_by, one.why].append(one.case)
    for (measured_by, why), cases in alike.items():
        word = "not measured by either" if measured_by is None else f"only {measured_by} has"
        by_place: dict[str, list[str]] = defaultdict(list)
        for case in cases:
            by_place[place(compared, case)].append(case.what())
        which = "; ".join(
            f"{where} {', '.join(whats)}".strip() for where, whats in by_place.items()
        )
        say(out, f"{word} {which}: {why}", "yellow")


def document(compared: Comparison) -> dict[str, Any]:
    """Return plain values for ``json``; sizes in bytes, times in µs, bandwidths in MB/s."""
    first, second = compared.first, compared.second
    on_nodes, unknown = None, None
    try:
        on_nodes = comparison.differing(compared)
    except NetproofError as error:
        unknown = str(error)
    return {
        "format": documents.FORMAT,
        "first": _side(first),
        "second": _side(second),
        "summary": summary(compared),
        "geometric_mean": compared.mean(),
        "differences": [dataclasses.asdict(one) for one in compared.differences],
        "nodes": None
        if on_nodes is None
        else [
            {"what": what, "first": one, "second": other} for what, (one, other) in on_nodes.items()
        ],
        "nodes_not_known": unknown,
        "cases": [_case(one) for one in compared.cases],
        "not_compared": [
            {**documents.of_case(one.case), "measured_by": one.measured_by, "why": one.why}
            for one in compared.uncompared
        ],
    }


def _case(case: ComparedCase) -> dict[str, Any]:
    return {
        "first": documents.of_case(case.first.case),
        "second": documents.of_case(case.second.case),
        "outcome": case.outcome,
        "ratio": case.score.value,
        "interval": case.score.interval,
        "common": documents.of_common(case.score.common),
        "sizes_bytes": list(case.ratios),
        "ratios": list(case.ratios.values()),
        "ranges": [
            {
                "least_bytes": one.least,
                "largest_bytes": one.largest,
                "size_bytes": one.size,
                **documents.some(one, "faster", "ratio"),
            }
            for one in case.ranges
        ],
        "landmarks": {name: dataclasses.asdict(one) for name, one in case.landmarks.items()},
        "cpu_s_per_gb": documents.some(case.cpu_s_per_gb, "first", "second", "ratio"),
        "disturbed": case.disturbed,
        "sentence": case.sentence(),
    }


def _side(side: ComparedSide) -> dict[str, Any]:
    return {
        "name": side.name,
        "session": str(side.session.path),
        "started": side.session.info.get("time_start"),
        "labels": side.session.labels(),
        "system": side.session.results[0].system,
        "partition": side.partition,
        "environment": side.environment,
    }
