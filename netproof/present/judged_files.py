"""Judged output files: as sentences and a table for the terminal, and as plain values."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from netproof.criteria import Finding, Level
from netproof.criteria.findings import folded
from netproof.present import documents
from netproof.present.tables import TableColumn, fitting, print_table, say
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


def print_files(judged: FilesVerdict, out: Console, *, compared: bool) -> None:
    """Print a line for each curve, then the findings, the worst last, and how many passed."""
    if judged.curves:
        print_table(fitting(columns(judged.curves), out.width), out)
    for level in _LISTED:
        word, style = _STYLES[level]
        for one in judged.curves:
            for finding in folded([found for found in one.findings if found.level is level]):
                say(out, f"{word} {finding.why}", style)
    for note in judged.notes:
        say(out, note)
    for fault in judged.faults:
        say(out, f"NOT READ {fault}", "bold yellow")
    say(out, summary(judged, compared=compared), "bold")


def summary(judged: FilesVerdict, *, compared: bool) -> str:
    """Return how many curves passed, and the result of the others, in a sentence."""
    counts = {level: sum(one.level is level for one in judged.curves) for level in _STYLES}
    passed = counts[Level.PASS] + counts[Level.WARN]
    said = [f"{passed} of {len(judged.curves)} curves passed"]
    said += [
        f"{counts[level]} {word}"
        for level, word in (
            (Level.WARN, "with warnings"),
            (Level.FAIL, "failed"),
            (Level.INCONCLUSIVE, "inconclusive"),
            (Level.UNDEFINED, "could not be judged"),
        )
        if counts[level]
    ]
    if judged.faults:
        said.append(f"{len(judged.faults)} could not be read")
    if not compared:
        said.append("configurations were not compared: --as or --names says what is one")
    return "; ".join(said)


def document(judged: FilesVerdict) -> dict[str, Any]:
    """Return plain values for ``json``. Sizes in bytes, times in µs, bandwidths in 10⁶ bytes/s."""
    return {
        "format": documents.FORMAT,
        "status": judged.status,
        "faults": list(judged.faults),
        "notes": list(judged.notes),
        "curves": [_curve(one) for one in judged.curves],
    }


def _curve(one: CurveVerdict) -> dict[str, Any]:
    kind = dataclasses.asdict(one.kind)
    return {
        "configuration": one.configuration,
        **{key: value for key, value in kind.items() if key != "remark" or value},
        "files": list(one.files),
        "launches": len(one.launches),
        "level": one.level,
        "curve": documents.of_curve(one.curve),
        "landmarks": {
            **dataclasses.asdict(one.landmarks),
            "undefined": dict(one.landmarks.undefined),
            "intervals": {name: [low, high] for name, low, high in one.landmarks.intervals},
        },
        "findings": [_finding(finding) for finding in one.findings],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "criterion": finding.criterion,
        "level": finding.level,
        "size_bytes": finding.size,
        "value": finding.value,
        "bound": finding.bound,
        "interval": documents.of_interval(finding.interval),
        "common_sizes": documents.of_common(finding.common),
        "why": finding.why,
    }


def columns(curves: Sequence[CurveVerdict]) -> list[TableColumn]:
    """Return the columns of the table: a line for each curve."""

    def figures(name: str, scale: float = 1.0, form: str = ".1f") -> list[str]:
        values = [getattr(one.landmarks, name) for one in curves]
        return ["-" if value is None else f"{scale * value:{form}}" for value in values]

    scores = [
        next((f.value for f in one.findings if f.criterion == "score"), None) for one in curves
    ]
    found = [
        TableColumn("configuration", [one.configuration for one in curves], right=False),
        TableColumn("measured", [str(one.kind) for one in curves], right=False),
        TableColumn("launches", [str(len(one.launches)) for one in curves], 4),
        TableColumn("latency µs", figures("latency_us", form=".2f"), 1),
        TableColumn("peak MB/s", figures("peak_mb_s"), 2),
        TableColumn("r∞ MB/s", figures("asymptotic_mb_s"), 3),
        TableColumn("of line", figures("line_rate_share", 100, ".1f"), 3),
    ]
    if any(score is not None for score in scores):
        found.append(TableColumn("score", ["-" if v is None else f"{v:.2f}" for v in scores], 1))
    words = [Text(*_STYLES[one.level]) for one in curves]
    return [*found, TableColumn("", words, right=False)]
