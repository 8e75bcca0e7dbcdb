"""A judged session in full: its scores, counters, CPU costs and landmarks, then the verdict."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice

from rich.text import Text

from netproof.benchmarks import registry
from netproof.criteria import Level
from netproof.criteria.findings import figure, over_common
from netproof.diagnosis.diagnosis import Diagnosis, diagnose, next_step, partitions_of
from netproof.errors import grouped
from netproof.measurement.disturbance import NodeCost
from netproof.measurement.landmarks import peaks_in_words
from netproof.present import compared, diagnosis
from netproof.present.document import EVERY, Block, Cell, DataTable, Links, Part, Sentences
from netproof.present.html.content import LEVELS, CaseState, configuration, state_of, switch
from netproof.present.html.report import MOST_NODES, TWIN, Report, key_figures, node_blocks, tested
from netproof.present.terminal import STYLES
from netproof.present.verdict import compared_with, outcome, repeat_blocks, sentences, state
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
from netproof.verdict import PASSED
from netproof.verdict.engine import group
from netproof.verdict.traffic import InterfaceTotals
from netproof.verdict.verdict import (
    CaseVerdict,
    CpuRows,
    Crossover,
    StoredResult,
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
    links, every = links or {}, [one for row in rows for one in row]
    environments = dict.fromkeys(one.case.environment for one in every)
    lines: dict[str, list[list[str | Cell]]] = defaultdict(list)
    for row in rows:
        case = row[0].case
        function = Cell(benchmark_name(case), link=links.get(case.key(), ""))
        for name, several in grouped((switch(one), one) for one in row).items():
            cells = {one.case.environment: _score_cell(one, links) for one in several}
            scored = [cells.get(one, "") for one in environments]
            lines[name].append([function, str(case.ranks), *scored])
    yield DataTable(
        ("function", "ranks", *environments),
        [line for several in lines.values() for line in several],
        EVERY[1:],
        _sizes_compared(every),
        groups={name: len(several) for name, several in lines.items()},
        heads=2,
    )


def _score_cell(one: CaseVerdict, links: Links) -> Cell:
    """Return a case's state and score, with the score's interval below it."""
    score, measured, text, below = one.score(), one.measured, "no score", []
    if score is not None:
        text = f"{'~' if score.disturbed else ''}{score.value:.2f}"
        below = ["no interval", *(["disturbed"] if score.disturbed else [])]
        if score.interval is not None:
            below[0] = f"{score.interval[0]:.2f}–{score.interval[1]:.2f}"
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


def _sizes_compared(every: Row) -> str:
    """Return over which sizes the functions' scores are."""
    scored = ((one, one.score()) for one in every if not isinstance(one, StoredResult))
    alike = grouped(
        (
            f"Scores {over_common(score.common)}",
            f"{one.case.partition} {registry.of(one.case).label}",
        )
        for one, score in scored
        if score is not None and score.common
    )
    if len(alike) == 1:
        return f"{next(iter(alike))}."
    several = {sizes: ", ".join(dict.fromkeys(names)) for sizes, names in alike.items()}
    return " ".join(f"{sizes} ({names})." for sizes, names in several.items())


NOT_KNOWN = "not known"


def traffic_blocks(
    traffic: Sequence[InterfaceTotals], results: Sequence[CheckResult], partition: str = ""
) -> Iterator[Block]:
    """Yield a row for each interface that was counted, and what MPI libraries say of transports.

    They are of one partition, or of all where it is empty.
    """
    traffic = [one for one in traffic if partition in ("", one.partition)]
    shown = traffic
    if len({(one.partition, one.node) for one in traffic}) > MOST_NODES:
        shown = [one for one in traffic if {*one.faults} != {0}]
    rows = []
    for one in shown:
        moved = (one.counted["tx_bytes"], one.counted["rx_bytes"])
        rows.append(
            (
                *(one.partition, one.node, f"{one.interface}{'' if one.rail else ' (other)'}"),
                *(number(of and of / 1e6, ",.1f", none=NOT_KNOWN) for of in moved),
                *(number(count, ",", none=NOT_KNOWN) for count in one.faults),
                sent_again(one) if one.rail else "",
            )
        )
    head = ["partition", "node", "interface", "sent MB", "received MB"]
    head += ["errors", "dropped", "carrier changes", "sent again"]
    if traffic:
        yield Cell("What the nodes' interfaces counted", "heading")
        yield DataTable(head, rows, EVERY[3:], heads=3)
    if left := len(traffic) - len(rows):
        yield Cell(f"{left} more interfaces without errors, drops and carrier changes", "faint")
    for place, found in grouped(
        (f"{one.partition} {one.environment}", one.transport)
        for one in results
        if partition in ("", one.partition) and one.transport is not None
    ).items():
        # The first of its jobs that reports it speaks for the others.
        said = next((one for one in found if not isinstance(one, str)), found[0])
        lines = [f"{NOT_KNOWN}: {said}"] if isinstance(said, str) else provenance.telling(said)
        yield Sentences(lines, f"{place}: its MPI library on its transport", "faint", folded=True)


def sent_again(totals: InterfaceTotals) -> str:
    """Return the retransmitted segments of the node, and their share."""
    again = totals.again
    if again.count is None:
        return NOT_KNOWN
    return f"{again.count:,} ({100 * again.value:.2g} %)"


CPU_LEGEND = (
    "Of the node that it cost most, less starting and ending: cores: CPU seconds per second; user:"
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
    # Of a shorter time, CPU seconds in ticks of 10 ms make cores that the node does not have.
    long = cost.seconds is None or cost.seconds >= LEAST_SECONDS
    irq = user = None
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
    rows = [
        (*case_cells(case), cost.node, *cpu_figures(cost, of_tcp).values())
        for case, cost, of_tcp in known
    ]
    if rows:
        head = (*CASE, "node", *cpu_figures(known[0][1]))
        yield DataTable(head, rows, (3, *range(5, len(head))), ranks=_RANKS)
        unknown = [f"not known of {counted(count, 'case')}: {why}" for why, count in others.items()]
        yield Sentences([*unknown, CPU_LEGEND])


_LEGEND = (
    "lat: latency; MB/s: peak bandwidth, reached at B bytes; half: bytes with half of it; r∞: MB/s"
    " that the largest messages tend to, n½: bytes with half of that; line: r∞ over the line rate;"
    " paired: r∞ over the twin's; 64K: MB/s at 64 KiB; curve: over"
    f" message sizes, both logarithmic; {TWIN}"
)


def verdict_blocks(report: Report) -> Iterator[Block]:
    """Yield what to do, what was tested, key figures, the diagnosis, and all sentences."""
    judged, verdict = report.judged, report.judged.verdict
    diagnoses = [*map(_beside_reasons, diagnose(judged))] if partitions_of(judged) else []
    found = [(one.culprits, one.next_steps) for one in diagnoses]
    if verdict.status != PASSED and (step := next_step(verdict, found)):
        yield f"Next: {step}."
    yield Cell("What was tested", "heading")
    yield tested(report)
    if (figures := key_figures(report)) is not None:
        yield Cell("Key figures", "heading")
        yield figures
    if diagnoses:
        yield Cell("Diagnosis", "heading")
        yield from chain.from_iterable(map(diagnosis.blocks, diagnoses))
    yield from sentences(judged, report.links)


def _beside_reasons(one: Diagnosis) -> Diagnosis:
    """Return a diagnosis whose advice points at no other answer for the reasons."""
    several = tuple(replace(each, advice=each.advice_here) for each in one.culprits)
    return replace(one, culprits=several)


def beside(report: Report) -> Iterator[Part]:
    """Yield stored results, and how one switch compares with the others, where there are any."""
    verdict = report.judged.verdict
    if verdict.compared_with is not None:
        yield "compared_with", "Compared with", [STORED, compared_with(verdict)]
    if report.against is not None:
        title = f"{report.against[0]} compared with the other switches"
        yield "switch", title, against_blocks(report)


def details(report: Report, partition: str = "", *, drawn: bool = False) -> Iterator[Part]:
    """Yield the parts on what was measured, of one partition, or of all where it is empty.

    ``drawn``: with charts.
    """
    session, verdict, matrix = report.judged.session, report.judged.verdict, report.judged.matrix
    if partition:
        verdict = replace(verdict, cases=tuple(verdict.by_partition.get(partition, ())))
    every = (*verdict.cases, *verdict.stored_cases)
    rows = list(grouped((group(one.case), one) for one in every).values())
    if partition and (figures := key_figures(report, partition)) is not None:
        yield "figures", "Key figures", [figures]
    interfaces = traffic_blocks(verdict.traffic, session.results, partition)
    if of_nodes := [*node_blocks(report, partition), *interfaces]:
        yield "nodes", "Nodes", of_nodes
    charts = [CHARTS] if drawn else []
    yield "matrix", "Matrix", [*charts, *scores(rows, matrix.baseline, report.links)]
    groups = [one for one in report.groups if drawn and partition in ("", one.partition)]
    failed = (report.figure(one) for one in groups if one.state() is CaseState.FAILED)
    if figures_of := list(islice((one for one in failed if one.rows), MAIN_FAILED)):
        yield "curves", "Charts of what failed", [figures_of]
    # A partition's own page of NetPIPE has these.
    if drawn and not partition:
        yield "netpipe", "NetPIPE", _netpipe(report)
    functions = crossovers(verdict)
    if any(map(red_cases, functions)):
        yield "breakdown", "Where functions break down", breakdowns(functions)
    legend = _LEGEND + peaks_in_words(
        one.line_rate_from_bytes for one in matrix.partitions.values()
    )
    measured = ([one for one in row if one.measured is not None] for row in rows)
    yield "landmarks", "Landmarks", [Cell(legend, "faint"), _landmarks([*filter(None, measured)])]
    if of_cpu := list(cpu_blocks(cpu_rows(verdict))):
        yield "cpu", "What it costs the CPU", of_cpu


MAIN_NETPIPE = ("inter-node", "oneway")
"""Path and direction whose charts are on the main page; the others are on NetPIPE's."""
MAIN_FAILED = 2
"""Charts of failed functions on the main page."""
CHARTS = (
    "Functions and scores lead to charts: time against message size of all configurations, with"
    " the envelope, the flagged sizes and the spread over launches."
)


def _netpipe(report: Report) -> Sequence[Block]:
    pairs: list[Block] = [report.pair(key) for key in report.netpipe if key[:2] == MAIN_NETPIPE]
    if not pairs:
        return ["NetPIPE between nodes was not expected, so there is nothing to show."]
    more = "Intra-node and bidirectional curves are on NetPIPE's page"
    return ["Two ranks on two nodes, one way.", Cell(more, link="netpipe.html#throughput"), *pairs]


STORED = (
    "This session did not measure these configurations. Each comes from the newest session of the"
    " store in which it passed. They take part in envelope, score baseline and scores, and are not"
    " judged."
)


def whole(report: Report) -> Iterator[Part]:
    """Yield all of the answer on a session as a terminal shows it: what failed stands last."""
    judged = report.judged
    stated = ", ".join(f"{key}={value}" for key, value in judged.session.labels().items())
    labels = Sentences([f"labels {' '.join(stated.split())}"] if stated else [])
    yield "state", "", [state(judged.verdict), labels]
    yield from beside(report)
    yield from details(report)
    again = chain.from_iterable(map(repeat_blocks, judged.verdict.cases))
    last = Cell(outcome(judged.verdict), "strong"), f"session {judged.session.path}"
    yield "verdict", "Verdict", [*again, *verdict_blocks(report), *last]


def breakdowns(functions: Sequence[Crossover]) -> list[Block]:
    """Return at which rank counts functions of a configuration are red, and which are not."""
    alike = grouped(
        ((configuration(one[0].case), breakdown(one), bool(red_cases(one))), one[0].case)
        for one in functions
    )
    lines = [
        Cell(f"{place} {', '.join(map(benchmark_name, several))}: {how}", "failed" * red)
        for (place, how, red), several in alike.items()
    ]
    what = (
        "The rank counts at which a function is red, and at which message sizes; the least of them"
    )
    return [f"{what} is where it breaks down.", Sentences(lines)]


def against_blocks(report: Report) -> list[Block]:
    """Return how one switch compares with each other one."""
    _, comparisons, apart = report.against or ("", (), ())
    several: list[Block] = list(map(compared.outcome, comparisons))
    return [*several, Sentences([f"Not compared: {why}" for why in apart], look="warned")]


def _landmarks(rows: Sequence[Row]) -> DataTable:
    """Return a line for each measured case, by function and rank count, its curves to one scale."""
    every = [one for row in rows for one in row]
    groups = {}
    for row in rows:
        case, (by_size, scale, unit) = row[0].case, _drawn(row)
        heading = case.what()
        if scale is not None:
            sizes = set().union(*by_size)
            heading += f"  curve: {scale[0]:.3g} to {scale[1]:.3g} {unit}"
            heading += f" over {min(sizes)} to {max(sizes)} bytes"
        groups[heading] = len(row)
    return DataTable(
        ("verdict", "partition", "environment", *_COLUMNS, "score"),
        [(*_named(one), *_figures(one)) for one in every],
        range(3, 3 + len(_COLUMNS)),
        ranks={**{name: rank for name, (_, _, rank) in _COLUMNS.items()}, "score": 4},
        groups=groups,
        drawn=("curve", lambda room: [line for row in rows for line in _curves(row, room)]),
    ).filled()


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


def _figures(one: CaseVerdict) -> Iterator[str]:
    """Yield a case's landmarks, then its score."""
    for name, form, _ in _COLUMNS.values():
        value = getattr(one.landmarks, name, None)
        yield number(getattr(value, "size_below", value), form)
    if (score := one.score()) is None or score.interval is None:
        yield "-"
    else:
        low, high = score.interval
        yield f"{score.value:.2f} ({low:.2f} to {high:.2f})"


def _named(one: CaseVerdict) -> tuple[Cell, str, str | Cell]:
    """Return a case's verdict, partition and environment."""
    case, (word, look) = one.case, LEVELS[one.level]
    if isinstance(one, StoredResult):
        environment = Cell(f"{case.environment}, {one.date}", "stored")
        return Cell("stored", "stored"), case.partition, environment
    word = one.expected or word if one.level is Level.PASS else word
    return Cell(word, look), case.partition, case.environment


def _drawn(row: Row) -> tuple[list[dict[int, float]], tuple[float, float] | None, str]:
    """Return what is drawn of each case by size; least and largest value, None without; unit."""
    found = [one.measured.curve for one in row if one.measured is not None]
    rates = all(curve.bandwidth_mb_s is not None for curve in found)
    by_size: list[dict[int, float]] = []
    for curve in found:
        values = (curve.bandwidth_mb_s if rates else None) or curve.time_us
        by_size.append(dict(zip(curve.sizes, values, strict=True)) if any(curve.sizes) else {})
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
