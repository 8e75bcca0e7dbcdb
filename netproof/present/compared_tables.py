"""A comparison of two sides, as tables and lines of the terminal."""

from __future__ import annotations

import math
from collections import defaultdict

from rich.console import Console
from rich.text import Text

from netproof.benchmarks import registry
from netproof.comparison.comparison import ComparedCase, Comparison, Outcome
from netproof.measurement.case import Case
from netproof.present import tables
from netproof.present.compared import MARKS, differences, named, node_diffs, place, summary, whence
from netproof.present.sparkline import columns, sparkline
from netproof.present.tables import TableColumn, benchmark_name, say

STYLES = {Outcome.FASTER: "green", Outcome.SLOWER: "red"}

_LEAST_LINE, _LONGEST_LINE = 8, 40
_DRAWN_RATIOS = (2.0, 10.0)
"""Limits of the upper end of a drawn scale: noise stays flat, outliers leave the rest visible."""


def print_comparison(compared: Comparison, out: Console) -> None:
    """Print the overall result, the ratios by case, what is better or worse, what is missing."""
    first, second = compared.first, compared.second
    for side in (first, second):
        say(out, f"{side.name}: {whence(side)}")
    for difference in differences(compared):
        say(out, f"configuration: {difference}")
    for sentence in node_diffs(compared):
        say(out, sentence)
    out.print()
    say(out, summary(compared), "bold")
    _print_ratios(compared, out)
    out.print()
    _print_sentences(compared, out)
    print_uncompared(compared, out)


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
    table.append(
        TableColumn(
            "over sizes",
            [
                sparkline(
                    case.ratios, columns(case.ratios, room), (1 / most, most), _furthest_from_1
                )
                for case in ordered
            ],
            right=False,
        )
    )
    begin = 0
    for where, cases in places.items():
        out.print()
        if where:
            say(out, where, "bold")
        tables.print_table(table, out, range(begin, begin + len(cases)))
        begin += len(cases)
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
    say(
        out,
        "; ".join(f"{MARKS[outcome]} {outcome.value}" for outcome in Outcome),
        "dim",
    )


def _ratio_columns(cases: list[ComparedCase]) -> list[TableColumn]:
    def landmark(name: str) -> list[Text]:
        cells = []
        for one in (case.landmarks[name] for case in cases):
            undecided = one.interval is not None and one.interval[0] <= 1 <= one.interval[1]
            value = "-" if one.ratio is None else f"{one.ratio:.2f}"
            cells.append(Text(value, "dim" if undecided else ""))
        return cells

    def added() -> list[str]:
        shown = []
        for latency in (case.landmarks["latency_us"] for case in cases):
            if latency.difference is None:
                shown.append("-")
            elif latency.difference_interval is None:
                shown.append(f"{latency.difference:+.1f}")
            else:
                low, high = latency.difference_interval
                shown.append(f"{latency.difference:+.1f} ({low:+.1f} to {high:+.1f})")
        return shown

    costs = [case.cpu_s_per_gb.ratio for case in cases]
    cpu = []
    if any(one is not None for one in costs):
        cells_of_costs = ["-" if one is None else f"{one:.2f}" for one in costs]
        cpu = [TableColumn("CPU/GB", cells_of_costs, rank=1)]
    intervals = [case.score.interval for case in cases]
    outcomes = [case.outcome for case in cases]
    return [
        TableColumn("", [Text(MARKS[one], STYLES.get(one, "")) for one in outcomes], right=False),
        TableColumn("function", [_function(case.first.case) for case in cases], right=False),
        TableColumn(
            "ratio",
            [
                Text("-" if one.score.value is None else f"{one.score.value:.2f}", "bold")
                for one in cases
            ],
        ),
        TableColumn(
            "95 %",
            ["-" if one is None else f"{one[0]:.2f}–{one[1]:.2f}" for one in intervals],
        ),
        TableColumn("lat", landmark("latency_us")),
        TableColumn("added µs, 95 %", added(), rank=1),
        TableColumn("MB/s", landmark("peak_mb_s")),
        TableColumn("r∞", landmark("asymptotic_mb_s"), rank=1),
        TableColumn("64K", landmark("rate_64_kib_mb_s"), rank=2),
        TableColumn("16K", landmark("rate_16_kib_mb_s"), rank=2),
        TableColumn("4K", landmark("rate_4_kib_mb_s"), rank=2),
        TableColumn("1K", landmark("rate_1_kib_mb_s"), rank=2),
        *cpu,
    ]


def _function(case: Case) -> str:
    return benchmark_name(case) if registry.of(case).by_protocol else case.what()


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
        faster = case.outcome is Outcome.FASTER
        return order.index(case.outcome), -ratio if faster else ratio

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
        named = "; ".join(
            f"{where} {', '.join(whats)}".strip() for where, whats in by_place.items()
        )
        say(out, f"{word} {named}: {why}", "yellow")
