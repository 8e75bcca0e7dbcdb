"""Tables for the terminal."""

from __future__ import annotations

import sys

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from netproof.benchmarks import FEATURES
from netproof.case import Case
from netproof.units import mbit_s
from netproof.verdict import Judged, Verdict

_WIDTH_OFF_TERMINAL = 132


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
    """The cases with their landmarks, what is absent, then every failure in full."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("partition", "environment", "benchmark"):
        table.add_column(heading)
    for heading in ("ranks", "latency µs", "peak MB/s", "Mbit/s", "of line rate"):
        table.add_column(heading, justify="right")
    table.add_column("verdict")
    for judged in verdict.cases:
        case = judged.case
        table.add_row(
            case.partition,
            case.environment,
            benchmark_name(case),
            str(case.ranks),
            *_figures(judged),
            Text("pass", "green") if judged.passed else Text("FAIL", "bold red"),
        )
    out.print(table)
    for absence in verdict.absences:
        out.print(
            Text(
                f"not here: {absence.partition} {absence.environment}"
                f" {FEATURES[absence.benchmark]}: {absence.reason}"
            ),
            soft_wrap=True,
        )
    for fault in verdict.faults:
        out.print(Text(f"FAIL {fault}", "red"), soft_wrap=True)
    failed = [judged for judged in verdict.cases if not judged.passed]
    for judged in failed:
        out.print(Text(f"FAIL {judged.case}: {judged.reason}", "red"), soft_wrap=True)
    passed = len(verdict.cases) - len(failed)
    out.print(Text(f"{passed} of {len(verdict.cases)} cases passed", "bold"))


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
