"""Tables for the terminal."""

from __future__ import annotations

import sys

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from netproof.benchmarks import FEATURES
from netproof.case import Case
from netproof.criteria import Level
from netproof.units import mbit_s
from netproof.verdict import Judged, Verdict

_WIDTH_OFF_TERMINAL = 140


def console(*, stderr: bool = False) -> Console:
    """A console as wide as the terminal, or wide enough for the tables where there is none."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _WIDTH_OFF_TERMINAL
    return Console(file=stream, width=width, highlight=False, soft_wrap=False)


def benchmark_name(case: Case) -> str:
    """What was measured, without the configuration: ``NetPIPE TCP between oneway``."""
    if case.benchmark == "netpipe":
        return f"NetPIPE {case.function.upper()} {case.path} {case.direction}"
    return f"IMB {case.function}"


def print_verdict(verdict: Verdict, out: Console) -> None:
    """The cases with their landmarks, what is absent, then every failure and flag in full."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("partition", "environment", "benchmark"):
        table.add_column(heading, no_wrap=True)
    for heading in ("ranks", "latency µs", "peak MB/s", "Mbit/s", "of line rate", "score"):
        table.add_column(heading, justify="right")
    table.add_column("verdict")
    for judged in verdict.cases:
        case, score = judged.case, judged.score()
        table.add_row(
            case.partition,
            case.environment,
            benchmark_name(case),
            str(case.ranks),
            *_figures(judged),
            "-" if score is None else f"{score.value:.2f}",
            _word(judged),
        )
    out.print(table)
    for absence in verdict.absences:
        _say(
            out,
            f"not here: {absence.partition} {absence.environment}"
            f" {FEATURES[absence.benchmark]}: {absence.reason}",
        )
    for note in verdict.notes:
        _say(out, f"note: {note}")
    _print_flags(verdict, out)
    for fault in verdict.faults:
        _say(out, f"FAIL {fault}", "red")
    for judged in verdict.cases:
        for reason in judged.faults:
            _say(out, f"FAIL {judged.case}: {reason}", "red")
        for reason in judged.said(Level.FAIL):
            _say(out, f"FAIL {reason}", "red")
    passed = sum(judged.passed for judged in verdict.cases)
    warned = sum(judged.passed and bool(judged.said(Level.WARN)) for judged in verdict.cases)
    orange = f", {warned} of them with a warning" if warned else ""
    _say(out, f"{passed} of {len(verdict.cases)} cases passed{orange}", "bold")


def _print_flags(verdict: Verdict, out: Console) -> None:
    """What was flagged and did not fail, and both curves of all that was measured again."""
    for judged in verdict.cases:
        for ruling in judged.rulings:
            if ruling.level is Level.WARN:
                _say(out, f"WARN {ruling.why}", "yellow")
            elif ruling.level is Level.SHOWN and (
                ruling.confirmation is not None or "; known: " in ruling.why
            ):
                _say(out, f"note: {ruling.why}")
        if judged.flags() and judged.measured is not None and judged.again is not None:
            out.print(_both_curves(judged))


def _both_curves(judged: Judged) -> Table:
    """The flagged sizes and those around them: as first measured, and as measured again."""
    first = dict(zip(judged.measured.curve.sizes, judged.measured.curve.time_us, strict=True))
    launches = [
        dict(zip(curve.sizes, curve.time_us, strict=True)) for curve in judged.again.launches
    ]
    flagged = [ruling.finding.size for ruling in judged.flags()]
    sizes = sorted(
        size
        for size in set(first).union(*launches)
        if any(flag / 2 <= size <= 2 * flag for flag in flagged)
    )
    table = Table(box=None, pad_edge=False, title_justify="left", padding=(0, 2, 0, 0))
    table.add_column("  bytes", justify="right")
    table.add_column("first µs", justify="right")
    for number in range(1, len(launches) + 1):
        table.add_column(f"again {number} µs", justify="right")
    for size in sizes:
        mark = "*" if size in flagged else " "
        table.add_row(
            f"{mark} {size}",
            *("-" if size not in curve else f"{curve[size]:.1f}" for curve in [first, *launches]),
        )
    return table


def _word(judged: Judged) -> Text:
    if not judged.passed:
        return Text("FAIL", "bold red")
    if judged.said(Level.WARN):
        return Text("WARN", "yellow")
    return Text(judged.expected or "pass", "green")


def _say(out: Console, sentence: str, style: str = "") -> None:
    out.print(Text(sentence, style), soft_wrap=True)


def _figures(judged: Judged) -> tuple[str, str, str, str]:
    measured = judged.result.measured if judged.result else None
    if not measured:
        return "-", "-", "-", "-"
    landmarks = measured["landmarks"]
    latency, peak, share = (
        landmarks[name] for name in ("latency_us", "peak_mb_s", "line_rate_share")
    )
    return (
        "-" if latency is None else f"{latency:.1f}",
        "-" if peak is None else f"{peak:.1f}",
        "-" if peak is None else f"{mbit_s(peak):.0f}",
        "-" if share is None else f"{100 * share:.1f} %",
    )
