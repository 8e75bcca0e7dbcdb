"""Two sides that were compared, in words, as tables for the terminal and as plain values."""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from typing import Any

from rich.console import Console
from rich.text import Text

from netproof.comparison.comparison import ComparedCase, ComparedSide, Comparison, Outcome
from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.present import documents, tables
from netproof.present.sparkline import columns, sparkline
from netproof.present.tables import TableColumn, benchmark_name, say
from netproof.session import provenance
from netproof.verdict import judging

MARKS = {
    Outcome.FASTER: "▲",
    Outcome.SLOWER: "▼",
    Outcome.ALIKE: "=",
    Outcome.UNDECIDED: "?",
    Outcome.UNDEFINED: "-",
}


STYLES = {Outcome.FASTER: "green", Outcome.SLOWER: "red"}


_MOST_OF_NODES = 12
"""So many differences of nodes are printed; another driver has dozens of settings of its own."""


_LEAST_LINE, _LONGEST_LINE = 8, 40
_DRAWN_RATIOS = (2.0, 10.0)
"""The scale of drawn ratios ends between these: noise stays flat, and the rest beside outliers."""


def print_comparison(compared: Comparison, out: Console) -> None:
    """What came out overall, the ratios case by case, what is better where, what is missing."""
    first, second = compared.first, compared.second
    for side in (first, second):
        say(out, f"{side.name}: {whence(side)}")
    for difference in differences(compared):
        say(out, f"configuration: {difference}")
    for sentence in nodes_told(compared):
        say(out, sentence)
    out.print()
    say(out, summary(compared), "bold")
    _print_ratios(compared, out)
    out.print()
    _print_sentences(compared, out)
    print_uncompared(compared, out)


def nodes(compared: Comparison) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """In what the nodes of both sides were found to differ, by name to the values in each.

    Raises NetproofError where a side does not know what its nodes were.
    """
    found = []
    for side in (compared.first, compared.second):
        of_sessions = [judging.provenance_of(one) for one in (side.session, *side.also)]
        here = [
            one
            for of_session in of_sessions
            for one in of_session.nodes
            if side.partition in (None, one.partition)
            and side.environment in (None, one.environment)
        ]
        if not here:
            reasons = [why for known in of_sessions for why in known.unknown.values()]
            why = "; ".join(dict.fromkeys(reasons)) or "no job of it said"
            raise NetproofError(f"what the nodes of {side.name} were is not known: {why}")
        found.append(here)
    return provenance.between(*found)


def nodes_told(compared: Comparison) -> list[str]:
    """In what nodes differ, so that it shows whether anything but what is compared changed."""
    try:
        found = nodes(compared)
    except NetproofError as error:
        return [f"nodes: {error}"]
    told = [
        f"nodes: {what} {', '.join(first)} and {', '.join(second)}"
        for what, (first, second) in list(found.items())[:_MOST_OF_NODES]
    ]
    if len(found) > _MOST_OF_NODES:
        told.append(f"nodes: and {len(found) - _MOST_OF_NODES} more, which --json has")
    return told


def differences(compared: Comparison) -> list[str]:
    """What the site's file says of both sides and not alike."""
    return [
        f"{one.what} {_plain(one.first)} and {_plain(one.second)}"
        + ("" if one.cases == len(compared.cases) else f" ({one.cases} cases)")
        for one in compared.differences
    ]


def summary(compared: Comparison) -> str:
    """What came out overall, in a sentence or two."""
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
    beside = f"; {missing} more are not in both" if missing else ""
    where = "".join(
        f". {name}: in most cases {', '.join(map(_span, mostly))}"
        for benchmark, name in (("netpipe", "NetPIPE"), ("imb", "IMB"))
        if (mostly := compared.mostly(benchmark))
    )
    return (
        f"{second} against {first}, {len(compared.cases)} cases: {', '.join(counts)}{over}{beside}"
        f"{where}{_latencies(compared)}"
    )


def _latencies(compared: Comparison) -> str:
    """Of two partitions, what the second adds to the latency of NetPIPE between two nodes."""
    first, second = compared.first, compared.second
    if first.partition == second.partition:
        return ""
    told: dict[str, list[str]] = defaultdict(list)
    for one in compared.cases:
        case = one.first.case
        if (case.benchmark, case.path, case.direction) != ("netpipe", "between", "oneway"):
            continue
        sentence = one.latency(first.name, second.name)
        if sentence is not None:
            place = _place(compared, case)
            told[benchmark_name(case)].append(f"{place}: {sentence}" if place else sentence)
    return "".join(
        f". Latency of {name}: {'; '.join(sentences)}" for name, sentences in told.items()
    )


def _span(mostly: tuple[int, int, bool]) -> str:
    least, largest, faster = mostly
    return f"{'faster' if faster else 'slower'} from {least} to {largest} bytes"


def document(compared: Comparison) -> dict[str, Any]:
    """Plain values for ``json``; sizes in bytes, times in µs, bandwidths in MB/s."""
    first, second = compared.first, compared.second
    on_nodes, unknown = None, None
    try:
        on_nodes = nodes(compared)
    except NetproofError as error:
        unknown = str(error)
    return {
        "format": documents.FORMAT,
        "first": _side(first),
        "second": _side(second),
        "summary": summary(compared),
        "geometric_mean": compared.mean(),
        "differences": [
            {
                "what": difference.what,
                "first": difference.first,
                "second": difference.second,
                "cases": difference.cases,
            }
            for difference in compared.differences
        ],
        "nodes": None
        if on_nodes is None
        else [
            {"what": what, "first": list(one), "second": list(other)}
            for what, (one, other) in on_nodes.items()
        ],
        "nodes_not_known": unknown,
        "cases": [
            {
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
                        "faster": one.faster,
                        "size_bytes": one.size,
                        "ratio": one.ratio,
                    }
                    for one in case.ranges
                ],
                "landmarks": {
                    name: dataclasses.asdict(one) for name, one in case.landmarks.items()
                },
                "disturbed": list(case.disturbed),
                "sentence": case.sentence(),
            }
            for case in compared.cases
        ],
        "not_compared": [
            {**documents.of_case(one.case), "measured_by": one.measured_by, "why": one.why}
            for one in compared.uncompared
        ],
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


def whence(side: ComparedSide) -> str:
    """Where a side's figures come from: configuration, session, labels, start."""
    system = side.session.results[0].system
    where = " ".join(
        part
        for part in (
            f"{system}:{side.partition}" if side.partition else system,
            side.environment,
        )
        if part
    )
    labels = "".join(f", {key}={value}" for key, value in side.session.labels().items())
    started = side.session.info.get("time_start", "undated")
    return f"{where} of {side.session.path}, {started}{labels}"


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(_plain, value))
    return "not said" if value is None else str(value)


def _place(compared: Comparison, case: Case) -> str:
    """The part of the configuration that both sides have in common."""
    parts = (
        None if compared.first.partition else case.partition,
        None if compared.first.environment else case.environment,
    )
    return " ".join(part for part in parts if part)


def named(compared: Comparison, case: Case) -> str:
    """A case by what both sides have in common."""
    return f"{_place(compared, case)} {case.what()}".strip()


def _print_ratios(compared: Comparison, out: Console) -> None:
    """A table of ratios for each configuration that both sides have in common."""
    places: dict[str, list[ComparedCase]] = defaultdict(list)
    for case in compared.cases:
        places[_place(compared, case.first.case)].append(case)
    ordered = [case for cases in places.values() for case in cases]
    kept = tables.fitting(_ratio_columns(ordered), out.width - _LEAST_LINE)
    room = min(max(out.width - tables.width_of(kept), _LEAST_LINE), _LONGEST_LINE)
    logs = [abs(math.log(ratio)) for case in ordered for ratio in case.ratios.values()]
    least, largest = _DRAWN_RATIOS
    most = min(max(math.exp(max(logs, default=0)), least), largest)
    kept.append(
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
    for place, cases in places.items():
        out.print()
        if place:
            say(out, place, "bold")
        tables.print_table(kept, out, range(begin, begin + len(cases)))
        begin += len(cases)
    first, second = compared.first.name, compared.second.name
    out.print()
    say(
        out,
        f"ratio: {second} is so many times as fast as {first}, with its 95 % interval over the"
        " launches; lat, MB/s, r∞, 64K…1K: latency, peak, asymptotic bandwidth, and rates at so"
        f" many bytes, above 1 {second} is better, faint where the interval has 1 in it; added:"
        f" what {second} adds to the latency; over sizes: the ratio from 1/{most:.3g} to"
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
    ]


def _function(case: Case) -> str:
    return benchmark_name(case) if case.benchmark == "netpipe" else case.what()


def _furthest_from_1(ratios: list[float]) -> float:
    return max(ratios, key=lambda ratio: abs(math.log(ratio)))


def _print_sentences(compared: Comparison, out: Console) -> None:
    """What is better where: the slower ones first, the worst on top, then the faster ones."""
    told = [
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
    for case in sorted(told, key=rank):
        say(
            out,
            f"{MARKS[case.outcome]} {named(compared, case.first.case)}: {case.sentence()}",
            STYLES.get(case.outcome, ""),
        )


def print_uncompared(compared: Comparison, out: Console) -> None:
    """Cases that are not in both, with the reason; those that share it together."""
    alike: dict[tuple[str | None, str], list[Case]] = defaultdict(list)
    for one in compared.uncompared:
        alike[one.measured_by, one.why].append(one.case)
    for (measured_by, why), cases in alike.items():
        word = "not measured by either" if measured_by is None else f"only {measured_by} has"
        by_place: dict[str, list[str]] = defaultdict(list)
        for case in cases:
            by_place[_place(compared, case)].append(case.what())
        named = "; ".join(
            f"{place} {', '.join(whats)}".strip() for place, whats in by_place.items()
        )
        say(out, f"{word} {named}: {why}", "yellow")
