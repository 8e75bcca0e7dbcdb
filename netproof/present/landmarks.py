"""A judged session in full: its matrix, landmarks and costs, then the verdict."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from rich.console import Console
from rich.text import Text

from netproof.comparison.comparison import alone
from netproof.criteria import Level
from netproof.present import cpu, tables
from netproof.present.compared import summary
from netproof.present.sparkline import columns, readable, sparkline
from netproof.present.tables import TableColumn, benchmark_name, say
from netproof.present.traffic import print_traffic, print_transports
from netproof.present.verdict import print_state, print_verdict
from netproof.site.partition import ScoreBaseline
from netproof.verdict.engine import group
from netproof.verdict.explain import Crossover, cpu_rows, crossovers
from netproof.verdict.session_verdict import JudgedSession
from netproof.verdict.verdict import CaseVerdict, StoredResult, Verdict

_MARKS = {Level.FAIL: "✗", Level.INCONCLUSIVE: "?", Level.WARN: "!", Level.PASS: " "}
_WORDS = {Level.FAIL: "FAIL", Level.INCONCLUSIVE: "INCONCLUSIVE", Level.WARN: "WARN"}
_STYLES = {
    Level.FAIL: "bold red",
    Level.INCONCLUSIVE: "bold yellow",
    Level.WARN: "yellow",
    Level.PASS: "",
}
_NOT_MEASURED = "none"

_LEAST_LINE, _LONGEST_LINE = 10, 40
"""Columns of the terminal that a curve takes."""

_LEGEND = (
    "lat: latency; MB/s: peak bandwidth, reached at B bytes; half: bytes with half of it; r∞: MB/s"
    " that the largest messages tend to, n½: bytes with half of that; line: r∞ over the line rate;"
    " 64K: MB/s at 64 KiB; curve: over message sizes, both logarithmic"
)

Group = tuple
"""Common part of compared configurations, as from ``engine.group``."""


def print_whole(judged: JudgedSession, out: Console) -> None:
    """Print the state, scores, landmarks with curves, costs, and all sentences of the verdict."""
    verdict = judged.verdict
    groups: dict[Group, list[CaseVerdict | StoredResult]] = defaultdict(list)
    for one in (
        *verdict.cases,
        *(() if verdict.compared_with is None else verdict.compared_with.cases),
    ):
        groups[group(one.case)].append(one)
    print_state(verdict, out)
    labels = judged.session.labels()
    if labels:
        stated = ", ".join(f"{key}={value}" for key, value in labels.items())
        say(out, f"labels {' '.join(stated.split())}")
    _print_matrix(groups, judged.matrix.baseline, out)
    _print_crossovers(verdict, out)
    _print_against(judged, out)
    print_traffic(verdict.traffic, out)
    print_transports(judged.session.results, out)
    if (costs := cpu.answer(cpu_rows(verdict))) is not None:
        out.print()
        tables.print_answer(costs, out)
    _print_landmarks(groups, _legend(judged), out)
    out.print()
    print_verdict(
        verdict,
        out,
        recurring=judged.recurring,
        differences=judged.beyond_nodes,
        unread=judged.unread,
    )
    say(out, f"session {judged.session.path}")


def _print_matrix(
    groups: Mapping[Group, Sequence[CaseVerdict | StoredResult]],
    baseline: ScoreBaseline | None,
    out: Console,
) -> None:
    """Print scores by function and ranks, a column per configuration, in tables that fit."""
    rows = list(groups.values())
    names = TableColumn("function", [benchmark_name(row[0].case) for row in rows], right=False)
    ranks = TableColumn("ranks", [str(row[0].case.ranks) for row in rows])
    days: dict[tuple[str, str], set[str]] = defaultdict(set)
    for one in (one for row in rows for one in row):
        of = {one.date} if isinstance(one, StoredResult) else set()
        days[one.case.partition, one.case.environment] |= of
    where = {place: [*place, *_days(of)] for place, of in days.items()}
    cells = {place: [_cell(row, *place) for row in rows] for place in where}
    whole = [names, ranks, *(TableColumn("\n".join(where[place]), cells[place]) for place in where)]
    out.print()
    if tables.width_of(whole) <= out.width:
        tables.print_table(whole, out)
    else:
        for partition in dict.fromkeys(place[0] for place in where):
            narrow = [
                TableColumn("\n".join(where[place][1:]), cells[place])
                for place in where
                if place[0] == partition
            ]
            tables.print_parts([names, ranks], narrow, partition, out)
    against = f"against {baseline}" if baseline else "undefined without a score baseline"
    say(
        out,
        f"score {against}: above 1 is faster; {_MARKS[Level.FAIL]} failed,"
        f" {_MARKS[Level.INCONCLUSIVE]} inconclusive, {_MARKS[Level.WARN]} warning, ~ of"
        " disturbed launches, - no score,"
        f" {_NOT_MEASURED}: not measured whole,"
        " blank: not available, with a day: measured by another session",
        "dim",
    )


def _print_crossovers(verdict: Verdict, out: Console) -> None:
    """Print per configuration the rank count from which functions are red, and which are not."""
    by_place: dict[str, list[Crossover]] = defaultdict(list)
    for one in crossovers(verdict):
        by_place[f"{one.case.partition} {one.case.environment}"].append(one)
    if not any(one.red for several in by_place.values() for one in several):
        return
    out.print()
    say(out, "where functions break down", "bold")
    for place, several in by_place.items():
        alike: dict[tuple[str, bool], list[str]] = defaultdict(list)
        for one in several:
            alike[one.sentence(), bool(one.red)].append(benchmark_name(one.case))
        for (sentence, red), names in alike.items():
            say(out, f"{place} {', '.join(names)}: {sentence}", "red" if red else "")


def _print_against(judged: JudgedSession, out: Console) -> None:
    """Print the comparisons of a switch that was measured alone with each stored one."""
    found = alone(judged.session, judged.verdict)
    if found is None:
        return
    out.print()
    say(out, f"{found.partition} compared with the other switches", "bold")
    for compared in found.comparisons:
        say(out, summary(compared))
    for why in found.alone:
        say(out, f"not compared: {why}", "yellow")


def _days(several: Collection[str]) -> list[str]:
    """Return a heading's line with the days of stored results, if any."""
    return [f"of {' to '.join(dict.fromkeys((min(several), max(several))))}"] if several else []


def _cell(row: Sequence[CaseVerdict | StoredResult], partition: str, environment: str) -> Text:
    where = (partition, environment)
    for one in row:
        if (one.case.partition, one.case.environment) == where:
            score = one.score()
            value = "-" if score is None else f"{score.value:.2f}"
            if score is not None and score.disturbed:
                value = f"~{value}"
            if isinstance(one, StoredResult):
                return Text(f"{value}  ", "dim")
            if one.measured is None:
                value = _NOT_MEASURED
            return Text(f"{value} {_MARKS[one.level]}", _STYLES[one.level])
    return Text("  ")


def _legend(judged: JudgedSession) -> str:
    """Return the meaning of the landmarks' headings, and which messages cannot be the peak."""
    least = {one.line_rate_from_bytes for one in judged.matrix.partitions.values()} - {0}
    if not least:
        return _LEGEND
    bytes_ = " or ".join(map(str, sorted(least)))
    return (
        f"{_LEGEND}; over a link, peaks are of {bytes_} bytes and more, since shorter bursts pass"
        " above its rate"
    )


def _print_landmarks(
    groups: Mapping[Group, Sequence[CaseVerdict | StoredResult]], legend: str, out: Console
) -> None:
    """Print a table for each function and rank count, its curves drawn to one scale."""
    every = [one for row in groups.values() for one in row]
    fixed = _landmark_columns(every)
    kept = tables.fitting(fixed, out.width - _LEAST_LINE)
    room = min(max(out.width - tables.width_of(kept), _LEAST_LINE), _LONGEST_LINE)
    lines: list[Text] = []
    scales: list[str] = []
    for row in groups.values():
        drawn, scale = _curves(row, room)
        lines += drawn
        scales.append(scale)
    kept.append(TableColumn("curve", lines, right=False))
    out.print()
    say(out, legend, "dim")
    begin = 0
    for row, scale in zip(groups.values(), scales, strict=True):
        case = row[0].case
        out.print()
        out.print(
            Text.assemble((f"{benchmark_name(case)}, {case.ranks} ranks", "bold"), (scale, "dim")),
            soft_wrap=True,
        )
        tables.print_table(kept, out, range(begin, begin + len(row)))
        begin += len(row)


def _landmark_columns(cases: Sequence[CaseVerdict | StoredResult]) -> list[TableColumn]:
    found = [None if one.measured is None else one.measured.landmarks for one in cases]

    def of(name: str, form: str, factor: float = 1) -> list[str]:
        values = [None if one is None else getattr(one, name) for one in found]
        return ["-" if value is None else format(factor * value, form) for value in values]

    def scores() -> list[str]:
        shown = []
        for one in cases:
            score = one.score()
            if score is None or score.interval is None:
                shown.append("-")
            else:
                low, high = score.interval
                shown.append(f"{score.value:.2f} ({low:.2f} to {high:.2f})")
        return shown

    limits = [None if one is None else one.eager_limit for one in found]
    twins = []
    if any(one is not None and one.paired_share is not None for one in found):
        twins = [TableColumn("paired", of("paired_share", ".0%"), rank=3)]
    return [
        TableColumn("verdict", [_word(one) for one in cases], right=False),
        TableColumn("partition", [one.case.partition for one in cases], right=False),
        TableColumn("environment", [_environment(one) for one in cases], right=False),
        TableColumn("lat µs", of("latency_us", ".1f")),
        TableColumn("MB/s", of("peak_mb_s", ".1f")),
        TableColumn("at B", of("peak_size", "d")),
        TableColumn("half B", of("half_power_size", "d"), rank=4),
        TableColumn("r∞", of("asymptotic_mb_s", ".1f"), rank=1),
        TableColumn("n½ B", of("half_performance_bytes", ".0f"), rank=4),
        TableColumn("line", of("line_rate_share", ".0%"), rank=2),
        *twins,
        TableColumn("64K", of("rate_64_kib_mb_s", ".1f"), rank=3),
        TableColumn("16K", of("rate_16_kib_mb_s", ".1f"), rank=3),
        TableColumn("4K", of("rate_4_kib_mb_s", ".1f"), rank=3),
        TableColumn("1K", of("rate_1_kib_mb_s", ".1f"), rank=3),
        TableColumn(
            "eager B", ["-" if one is None else str(one.size_below) for one in limits], rank=5
        ),
        TableColumn("score", scores(), rank=4),
    ]


def _word(one: CaseVerdict | StoredResult) -> Text:
    if isinstance(one, StoredResult):
        return Text("stored", "dim")
    return Text(_WORDS.get(one.level, one.expected or "pass"), _STYLES[one.level] or "green")


def _environment(one: CaseVerdict | StoredResult) -> Text:
    if isinstance(one, StoredResult):
        return Text(f"{one.case.environment}, {one.date}", "dim")
    return Text(one.case.environment)


def _curves(row: Sequence[CaseVerdict | StoredResult], width: int) -> tuple[list[Text], str]:
    """Return the curves of one function over all configurations, and what their heights mean."""
    ats: list[dict[int, float]] = []
    rates = all(
        one.measured is None or one.measured.curve.bandwidth_mb_s is not None for one in row
    )
    for one in row:
        curve = None if one.measured is None else one.measured.curve
        if curve is None or curve.sizes == (0,):
            ats.append({})
            continue
        values = curve.bandwidth_mb_s if rates else curve.time_us
        ats.append(dict(zip(curve.sizes, values, strict=True)))
    values = readable(value for at in ats for value in at.values())
    if not values:
        return [Text("") for _ in row], ""
    scale = (min(values), max(values))
    over = columns((size for at in ats for size in at), width)
    unit = "MB/s" if rates else "µs"
    drawn = []
    for one, at in zip(row, ats, strict=True):
        if isinstance(one, StoredResult):
            drawn.append(Text(sparkline(at, over, scale, min if rates else max), "dim"))
            continue
        line = Text(sparkline(at, over, scale, min if rates else max))
        for level in (Level.WARN, Level.FAIL):
            flagged = {found.size for found in one.findings if found.level is level} - {None}
            for number, sizes in enumerate(over):
                if flagged.intersection(sizes):
                    line.stylize(_STYLES[level], number, number + 1)
        drawn.append(line)
    return drawn, (
        f"  curve: {scale[0]:.3g} to {scale[1]:.3g} {unit} over {over[0][0]} to"
        f" {over[-1][-1]} bytes"
    )
