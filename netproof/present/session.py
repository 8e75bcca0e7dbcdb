"""A judged session in full: its scores, counters, CPU costs and landmarks, then the verdict."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from rich.text import Text

from netproof.benchmarks import registry
from netproof.comparison.comparison import alone
from netproof.criteria import Level
from netproof.criteria.findings import figure
from netproof.errors import grouped
from netproof.measurement.disturbance import NodeCost
from netproof.present.compared import summary
from netproof.present.document import EVERY, Block, Cell, DataTable, Links, Sentences
from netproof.present.html.content import LEVELS, CaseState, configuration, state_of, switch
from netproof.present.terminal import STYLES
from netproof.present.verdict import sentences, state
from netproof.present.wording import (
    CASE,
    benchmark_name,
    case_cells,
    columns,
    counted,
    number,
    readable,
    sparkline,
)
from netproof.session import provenance
from netproof.session.session import CheckResult
from netproof.site.partition import ScoreBaseline
from netproof.verdict.engine import group
from netproof.verdict.session_verdict import JudgedSession
from netproof.verdict.traffic import InterfaceTotals
from netproof.verdict.verdict import (
    CaseVerdict,
    CpuRows,
    StoredResult,
    Verdict,
    breakdown,
    cpu_rows,
    crossovers,
    red_cases,
)

Row = Sequence[CaseVerdict]
"""Cases that measured the same in every configuration."""


def scores(
    rows: Sequence[Row],
    baseline: ScoreBaseline | None,
    links: Links | None = None,
) -> Iterator[Block]:
    """Yield what a score is, and a table: a row for each switch and function, a column a library.

    ``links``: to cases' charts, by the cases' keys.
    """
    against = f"against {baseline}" if baseline else "undefined without a score baseline"
    signs = ", ".join(f"{one.sign} {one.word}" for one in CaseState if one is not CaseState.PASSED)
    yield Cell(
        f"Score {against}: the geometric mean over message sizes of its time over the time here;"
        f" above 1 is faster, ~ of disturbed launches. Signs: {signs}. none: not measured whole;"
        " blank: not available; grey, with a day: measured by another session, not judged.",
        "faint",
    )
    environments = list(dict.fromkeys(one.case.environment for row in rows for one in row))
    lines: dict[str, list[list[str | Cell]]] = defaultdict(list)
    for row in rows:
        case = row[0].case
        function = Cell(benchmark_name(case), link=(links or {}).get(case.key(), ""))
        for name, several in grouped((switch(one), one) for one in row).items():
            cells = {one.case.environment: one for one in several}
            scored = (_score_cell(cells.get(one), links or {}) for one in environments)
            lines[name].append([function, str(case.ranks), *scored])
    yield DataTable(
        ("function", "ranks", *environments),
        [line for several in lines.values() for line in several],
        EVERY[1:],
        _sizes_compared(rows),
        groups={name: len(several) for name, several in lines.items()},
        heads=2,
    )


def _score_cell(one: CaseVerdict | None, links: Links) -> str | Cell:
    """Return a case's state and score, with the score's interval below it."""
    if one is None:
        return ""
    score, measured = one.score(), one.measured
    text, below = "no score", []
    if score is not None:
        text, interval = f"{score.value:.2f}", "no interval"
        if score.interval is not None:
            interval = f"{score.interval[0]:.2f}–{score.interval[1]:.2f}"
        below = [interval, *(["disturbed"] if score.disturbed else [])]
        text = f"~{text}" if score.disturbed else text
    elif measured is None:
        text = "none"
    elif measured.curve.sizes == (0,):
        # Of a function without sizes, the time of a call.
        text, below = f"{figure(measured.curve.time_us[0])} µs", ["no sizes"]
    if isinstance(one, StoredResult):
        why = "; ".join([f"not judged: of session {one.session}, {one.date}", *one.marks])
        return Cell(text, "stored", below, why)
    state = state_of(one)
    why = "; ".join(one.faults if measured is None and one.faults else [state.word])
    signed = text if state is CaseState.PASSED else f"{state.sign} {text}"
    return Cell(signed, state.look, below, why, links.get(one.case.key(), ""))


def _sizes_compared(rows: Sequence[Row]) -> str:
    """Return over which sizes the functions' scores are."""
    found: dict[str, dict[str, None]] = {}
    for one in (one for row in rows for one in row if not isinstance(one, StoredResult)):
        score = one.score()
        if score is not None and score.common is not None:
            where = f"{one.case.partition} {registry.of(one.case).label}"
            found.setdefault(f"Scores {score.common}", {})[where] = None
    if len(found) == 1:
        return f"{next(iter(found))}."
    return " ".join(f"{sizes} ({', '.join(names)})." for sizes, names in found.items())


NOT_KNOWN = "not known"

MOST_NODES = 32
"""Nodes up to which all interfaces are shown; beyond, only those with faults in their counters."""


def traffic_blocks(
    traffic: Sequence[InterfaceTotals], results: Sequence[CheckResult]
) -> Iterator[Block]:
    """Yield a row for each interface that was counted, and what MPI libraries say of transports."""
    rows = list(traffic)
    if len({(one.partition, one.node) for one in rows}) > MOST_NODES:
        rows = [one for one in rows if {*one.faults} != {0}]
    if traffic:
        yield Cell("what the nodes' interfaces counted", "heading")
    head = ["partition", "node", "interface", "sent MB", "received MB"]
    head += ["errors", "dropped", "carrier changes", "sent again"]
    cells = [
        (
            *(one.partition, one.node, f"{one.interface}{'' if one.rail else ' (other)'}"),
            *(
                number(moved and moved / 1e6, ",.1f", none=NOT_KNOWN)
                for moved in (one.counted["tx_bytes"], one.counted["rx_bytes"])
            ),
            *(number(count, ",", none=NOT_KNOWN) for count in one.faults),
            sent_again(one) if one.rail else "",
        )
        for one in rows
    ]
    yield DataTable(head, cells, EVERY[3:])
    if left := len(traffic) - len(rows):
        yield Cell(f"{left} more interfaces without errors, drops and carrier changes", "faint")
    by_place = grouped((f"{one.partition} {one.environment}", one) for one in results)
    for place, found in by_place.items():
        several = [one.transport for one in found if one.transport is not None]
        if not several:
            continue
        # The first of its jobs that reports it speaks for the others.
        one = next((one for one in several if not isinstance(one, str)), several[0])
        lines = (f"{NOT_KNOWN}: {one}",) if isinstance(one, str) else provenance.telling(one)
        yield Sentences(lines, f"{place}: its MPI library on its transport", "faint")


def sent_again(totals: InterfaceTotals) -> str:
    """Return the retransmitted segments of the node, and their share."""
    again = totals.again
    if again.count is None:
        return NOT_KNOWN
    return f"{again.count:,} ({100 * again.value:.2g} %)"


CPU_LEGEND = (
    "Of the node that it cost most, less starting and ending: cores: CPU seconds a second; user:"
    " share of these outside the kernel; irq: cores that the node's machine took for interrupts"
    " meanwhile, * where several of its nodes are one machine; asleep: share of the time in which"
    " a rank neither ran nor could have run, 0 % is polling or working without a pause; s/GB and"
    " µs/msg: CPU time for 10⁹ bytes and for a message that the node sent or received; of TCP: s/GB"
    " over that of TCP between the same ranks."
)

LEAST_SECONDS = 0.2
"""Seconds of a case's launches below which figures a second are not shown."""

_RANKS = {"node": 3, "user": 2, "irq": 2, "µs/msg": 1}
"""Columns that are dropped first where not all fit, the highest rank first."""


def cpu_figures(cost: NodeCost, of_tcp: float | None = None) -> dict[str, str]:
    """Return the figures of a cost, by the heading of their column."""
    irq = user = None
    # Of a shorter time, CPU seconds in ticks of 10 ms make cores that the node does not have.
    long = cost.seconds is None or cost.seconds >= LEAST_SECONDS
    if cost.interrupts_s is not None and cost.seconds and long:
        irq = cost.interrupts_s / cost.seconds
    if cost.user_s is not None and cost.system_s is not None:
        user = cost.user_s / ((cost.user_s + cost.system_s) or 1)
    return {
        "cores": number(cost.cores if long else None, ".2f"),
        "user": number(user, ".0%"),
        "irq": number(irq, ".2f", "*" if cost.sharing > 1 else ""),
        "asleep": number(cost.asleep_share, ".0%"),
        "s/GB": number(cost.s_per_gb, ".3g"),
        "µs/msg": number(cost.us_per_message, ".3g"),
        "of TCP": number(of_tcp, ".2f", " times"),
    }


def cpu_blocks(costs: CpuRows) -> Iterator[Block]:
    """Yield a row for each case whose cost is known, and why others have none; nothing without."""
    known, others = costs
    if not known:
        return
    head = (*CASE, "node", *cpu_figures(known[0][1]))
    rows = [
        (*case_cells(case), cost.node, *cpu_figures(cost, of_tcp).values())
        for case, cost, of_tcp in known
    ]
    yield Cell("what it costs the CPU", "heading")
    yield DataTable(head, rows, (3, *range(5, len(head))), ranks=_RANKS)
    unknown = [f"not known of {counted(count, 'case')}: {why}" for why, count in others.items()]
    yield Sentences([*unknown, CPU_LEGEND])


_LEGEND = (
    "lat: latency; MB/s: peak bandwidth, reached at B bytes; half: bytes with half of it; r∞: MB/s"
    " that the largest messages tend to, n½: bytes with half of that; line: r∞ over the line rate;"
    " 64K: MB/s at 64 KiB; curve: over message sizes, both logarithmic"
)


def whole(judged: JudgedSession) -> Iterator[Block]:
    """Yield the state, scores, landmarks with curves, costs, and all sentences of the verdict."""
    verdict = judged.verdict
    every: Row = [*verdict.cases, *verdict.stored_cases]
    rows = list(grouped((group(one.case), one) for one in every).values())
    stated = ", ".join(f"{key}={value}" for key, value in judged.session.labels().items())
    yield state(verdict)
    yield Sentences([f"labels {' '.join(stated.split())}"] if stated else [])
    yield from scores(rows, judged.matrix.baseline)
    yield from _crossovers(verdict)
    yield from _against(judged)
    yield from traffic_blocks(verdict.traffic, judged.session.results)
    yield from cpu_blocks(cpu_rows(verdict))
    legend = _LEGEND
    least = {one.line_rate_from_bytes for one in judged.matrix.partitions.values()} - {0}
    if least:
        bytes_ = " or ".join(map(str, sorted(least)))
        legend += f"; over a link, peaks are of {bytes_} bytes and more, since shorter bursts"
        legend += " pass above its rate"
    yield from ("", Cell(legend, "faint"), _landmarks(rows), "")
    yield from sentences(judged)
    yield f"session {judged.session.path}"


def _crossovers(verdict: Verdict) -> Iterator[Block]:
    """Yield per configuration the rank count from which functions are red, and which are not."""
    alike = grouped(
        ((configuration(one[0].case), breakdown(one), bool(red_cases(one))), one[0].case)
        for one in crossovers(verdict)
    )
    if any(red for _, _, red in alike):
        lines = [
            Cell(
                f"{place} {', '.join(map(benchmark_name, several))}: {sentence}",
                "failed" if red else "",
            )
            for (place, sentence, red), several in alike.items()
        ]
        yield Sentences(lines, "where functions break down")


def _against(judged: JudgedSession) -> Iterator[Block]:
    """Yield the comparisons of a switch that was measured alone with each stored one."""
    found = alone(judged.session, judged.verdict)
    if found is not None:
        partition, comparisons, apart = found
        lines = list(map(Cell, map(summary, comparisons)))
        lines += [Cell(f"not compared: {why}", "warned") for why in apart]
        yield Sentences(lines, f"{partition} compared with the other switches")


def _landmarks(rows: Sequence[Row]) -> DataTable:
    """Return a line for each case, by function and rank count, its curves drawn to one scale."""
    every = [one for row in rows for one in row]
    shares = (one.measured and one.measured.landmarks.paired_share for one in every)
    paired = any(share is not None for share in shares)
    columns = {name: one for name, one in _COLUMNS.items() if paired or name != "paired"}
    groups = {}
    for row in rows:
        case, (by_size, scale, unit) = row[0].case, _drawn(row)
        heading = f"{benchmark_name(case)}, {case.ranks} ranks"
        if scale is not None:
            sizes = set().union(*by_size)
            heading += f"  curve: {scale[0]:.3g} to {scale[1]:.3g} {unit}"
            heading += f" over {min(sizes)} to {max(sizes)} bytes"
        groups[heading] = len(row)
    return DataTable(
        ("verdict", "partition", "environment", *columns, "score"),
        [(*_named(one), *_figures(one, columns)) for one in every],
        EVERY[3:],
        ranks={**{name: rank for name, (_, _, rank) in columns.items()}, "score": 4},
        groups=groups,
        drawn=("curve", lambda room: [line for row in rows for line in _curves(row, room)]),
    )


_COLUMNS = {
    "lat µs": ("latency_us", ".1f", 0),
    "MB/s": ("peak_mb_s", ".1f", 0),
    "at B": ("peak_size", "d", 0),
    "half B": ("half_power_size", "d", 4),
    "r∞": ("asymptotic_mb_s", ".1f", 1),
    "n½ B": ("half_performance_bytes", ".0f", 4),
    "line": ("line_rate_share", ".0%", 2),
    "paired": ("paired_share", ".0%", 3),
    **{f"{kib}K": (f"rate_{kib}_kib_mb_s", ".1f", 3) for kib in (64, 16, 4, 1)},
    "eager B": ("eager_limit", "", 5),
}
"""Columns of landmarks, their formats, and their ranks where not all fit."""


def _figures(one: CaseVerdict, columns: Mapping[str, tuple[str, str, int]]) -> Iterator[str]:
    """Yield a case's landmarks, then its score."""
    for name, form, _ in columns.values():
        value = None if one.measured is None else getattr(one.measured.landmarks, name)
        if value is not None and name == "eager_limit":
            value = value.size_below
        yield number(value, form)
    score = one.score()
    if score is None or score.interval is None:
        yield "-"
    else:
        yield f"{score.value:.2f} ({score.interval[0]:.2f} to {score.interval[1]:.2f})"


def _named(one: CaseVerdict) -> tuple[Cell, str, Cell]:
    """Return a case's verdict, partition and environment."""
    case = one.case
    if isinstance(one, StoredResult):
        environment = Cell(f"{case.environment}, {one.date}", "stored")
        return Cell("stored", "stored"), case.partition, environment
    word, look = LEVELS[one.level]
    if one.level is Level.PASS:
        word = one.expected or word
    return Cell(word, look), case.partition, Cell(case.environment)


def _drawn(row: Row) -> tuple[list[dict[int, float]], tuple[float, float] | None, str]:
    """Return what is drawn of each case by size; least and largest value, None without; unit."""
    found = [one.measured.curve for one in row if one.measured is not None]
    rates = all(curve.bandwidth_mb_s is not None for curve in found)
    by_size: list[dict[int, float]] = []
    for one in row:
        curve = None if one.measured is None else one.measured.curve
        if curve is None or curve.sizes == (0,):
            by_size.append({})
            continue
        values = (curve.bandwidth_mb_s if rates else None) or curve.time_us
        by_size.append(dict(zip(curve.sizes, values, strict=True)))
    drawn = readable(value for at in by_size for value in at.values())
    return by_size, (min(drawn), max(drawn)) if drawn else None, "MB/s" if rates else "µs"


def _curves(row: Row, room: int) -> list[Text]:
    """Return the curves of one function over all configurations, flagged sizes in their colours."""
    by_size, scale, unit = _drawn(row)
    if scale is None:
        return [Text("")] * len(row)
    over = columns((size for at in by_size for size in at), room)
    drawn = []
    for one, at in zip(row, by_size, strict=True):
        line = Text(sparkline(at, over, scale, max if unit == "µs" else min))
        drawn.append(line)
        if isinstance(one, StoredResult):
            line.style = "dim"
            continue
        for level in (Level.WARN, Level.FAIL):
            flagged = {found.size for found in one.findings if found.level is level} - {None}
            for place, sizes in enumerate(over):
                if flagged.intersection(sizes):
                    line.stylize(STYLES[LEVELS[level][1]], place, place + 1)
    return drawn
