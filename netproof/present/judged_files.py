"""Judged output files: as sentences and a table for the terminal, and as plain values."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from netproof.criteria import Finding, Level
from netproof.criteria.findings import folded
from netproof.criteria.registry import RELATIVE
from netproof.present import documents
from netproof.present.terminal import TableColumn, fitting, print_table, say, width_of
from netproof.verdict.files import CurveVerdict, FilesVerdict

_STYLES = {
    Level.FAIL: ("FAIL", "bold red"),
    Level.INCONCLUSIVE: ("INCONCLUSIVE", "bold yellow"),
    Level.UNDEFINED: ("NOT JUDGED", "bold yellow"),
    Level.WARN: ("WARN", "yellow"),
    Level.PASS: ("pass", "green"),
}
_LISTED = (Level.WARN, Level.UNDEFINED, Level.INCONCLUSIVE, Level.FAIL)
"""Levels that get a sentence, the worst last."""
_LEAST = 4
"""Rank of columns that a narrow terminal leaves out before it gives names lines of their own."""


def print_files(judged: FilesVerdict, out: Console) -> None:
    """Print a line for each curve, then notes and findings, the worst last, and how many passed."""
    if judged.curves:
        _print_table(columns(judged.curves), out)
    several = {one.case.name: one.files for one in judged.curves if len({*one.files}) > 1}
    for name, (first, *others) in several.items():
        say(out, f"{name} was read from {len(others) + 1} files, {first} to {others[-1]}")
    for one in judged.curves:
        for finding in folded(one.noted, one.case.curve.sizes):
            say(out, f"note {finding.why}")
    for level in _LISTED:
        word, style = _STYLES[level]
        for one in judged.curves:
            found = [finding for finding in one.findings if finding.level is level]
            for finding in _once(folded(found, one.case.curve.sizes)):
                say(out, f"{word} {finding.why}", style)
    for note in judged.notes:
        say(out, note)
    for fault in judged.faults:
        say(out, f"NOT READ {fault}", "bold yellow")
    say(out, summary(judged), "bold")


def _print_table(several: Sequence[TableColumn], out: Console) -> None:
    """Print the table; where its figures do not fit, each name on a line above its figures."""
    if width_of([column for column in several if column.rank < _LEAST]) <= out.width:
        print_table(fitting(several, out.width), out)
        return
    shown = fitting(several[2:], out.width)
    print_table(shown, out, range(0))
    for place, names in enumerate(zip(*(column.cells for column in several[:2]), strict=True)):
        say(out, "  ".join(map(str, names)))
        line = Text()
        for column in shown:
            cell = column.cells[place]
            before = " " * (column.width - len(str(cell))) if column.right else ""
            line.append(before).append(cell).append("  ")
        out.print(line, soft_wrap=True)


def _once(findings: Sequence[Finding]) -> list[Finding]:
    """Return findings with those that are undefined for the same reason as one."""
    reasons: dict[object, list[Finding]] = {}
    for place, finding in enumerate(findings):
        same = finding.level is Level.UNDEFINED and finding.size is None
        reasons.setdefault(finding.why_undefined if same else place, []).append(finding)
    found = []
    for first, *others in reasons.values():
        if others:
            names = ", ".join(finding.criterion for finding in (first, *others))
            first = dataclasses.replace(first, reason=f"{names} undefined: {first.why_undefined}")
        found.append(first)
    return found


def summary(judged: FilesVerdict) -> str:
    """Return how many curves passed, and the result of the others, in a sentence."""
    counts = {level: sum(one.level is level for one in judged.curves) for level in _STYLES}
    passed = counts[Level.PASS] + counts[Level.WARN]
    words = {
        Level.WARN: "with warnings",
        Level.FAIL: "failed",
        Level.INCONCLUSIVE: "inconclusive",
        Level.UNDEFINED: "could not be judged",
    }
    said = [f"{passed} of {len(judged.curves)} curves passed"]
    said += [f"{counts[level]} {word}" for level, word in words.items() if counts[level]]
    if judged.faults:
        said.append(f"{len(judged.faults)} could not be read")
    if not judged.compared:
        said.append("nothing was compared: --against names other files, --as configurations")
    return "; ".join(said)


def document(judged: FilesVerdict) -> dict[str, Any]:
    """Return plain values for ``json``. Sizes in bytes, times in µs, bandwidths in 10⁶ bytes/s."""
    return {
        "format": documents.FORMAT,
        **documents.some(judged, "status", "faults", "notes"),
        "curves": [_curve(one) for one in judged.curves],
    }


def _curve(one: CurveVerdict) -> dict[str, Any]:
    kind = dataclasses.asdict(one.kind)
    if not one.kind.remark:
        del kind["remark"]
    return {
        "configuration": one.case.name,
        **kind,
        "files": one.files,
        "launches": len(one.case.launches),
        "level": one.level,
        "curve": documents.of_curve(one.case.curve),
        "landmarks": documents.of_landmarks(one.case.landmarks),
        "rank_spread": one.rank_spread and one.rank_spread[0],
        "findings": [_finding(finding) for finding in one.findings],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        **documents.some(finding, "criterion", "level"),
        "size_bytes": finding.size,
        "sizes_bytes": finding.sizes(),
        **documents.some(finding, "against", "value", "bound"),
        "interval": documents.of_interval(finding.interval),
        "common_sizes": documents.of_common(finding.common),
        "why": finding.why,
    }


def columns(curves: Sequence[CurveVerdict]) -> list[TableColumn]:
    """Return the columns of the table: a line for each curve."""

    def figures(
        heading: str, values: Sequence[float | None], rank: int, *, digits: int = 1
    ) -> TableColumn:
        cells = ["-" if value is None else f"{value:.{digits}f}" for value in values]
        return TableColumn(heading, cells, rank)

    def landmark(name: str) -> list[float | None]:
        return [getattr(one.case.landmarks, name) for one in curves]

    latencies = [
        None if one.times_are_shares else latency
        for one, latency in zip(curves, landmark("latency_us"), strict=True)
    ]
    shares = [None if one.share is None else 100 * one.share for one in curves]
    spreads = [one.rank_spread and one.rank_spread[0] for one in curves]
    scores = [
        next((f.value for f in one.findings if f.criterion in RELATIVE), None) for one in curves
    ]
    score = ["-" if value is None else f"{value:.2f}" for value in scores]
    scored = any(value is not None for value in scores)
    return [
        TableColumn("configuration", [one.case.name for one in curves], right=False),
        TableColumn("measured", [str(one.kind) for one in curves], right=False),
        TableColumn("launches", [str(len(one.case.launches)) for one in curves], _LEAST),
        figures("latency µs", latencies, 1, digits=2),
        figures("peak MB/s", landmark("peak_mb_s"), 2),
        figures("r∞ MB/s", landmark("asymptotic_mb_s"), 3),
        *([figures("of line", shares, 0)] if any(shares) else []),
        *([figures("rank spread", spreads, 2)] if any(spreads) else []),
        *([TableColumn("score", score, 1)] if scored else []),
        TableColumn("", [Text(*_STYLES[one.level]) for one in curves], right=False),
    ]
