"""The page on existing output files: the findings, and a chart of each kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from netproof.criteria import Level
from netproof.criteria.findings import folded
from netproof.present.html import curves, plain_curves
from netproof.present.html.curves import FigureView, SaidOfCase
from netproof.present.html.html import DataTable, file_name, render
from netproof.present.judged_files import columns, summary
from netproof.verdict.exit_status import CANNOT_JUDGE, FAILED, PASSED
from netproof.verdict.files import CurveKind, CurveVerdict, FilesVerdict

_WORDS = {
    PASSED: ("passed", "✓", "passed"),
    FAILED: ("failed", "✗", "failed"),
    CANNOT_JUDGE: ("inconclusive", "?", "not judged whole"),
}
_LOOKS = {
    Level.FAIL: "failed",
    Level.INCONCLUSIVE: "inconclusive",
    Level.UNDEFINED: "inconclusive",
    Level.WARN: "warned",
}
_MARKS = {Level.FAIL: "failed", Level.INCONCLUSIVE: "inconclusive", Level.WARN: "warning"}


@dataclass(frozen=True)
class KindView:
    """Curves of one kind: their chart, and the findings."""

    name: str
    title: str
    figure: FigureView
    said: tuple[SaidOfCase, ...]


def page(judged: FilesVerdict, scripts: Sequence[str], *, compared: bool) -> str:
    """Return the page; ``compared``: whether configurations were named."""
    by_kind: dict[CurveKind, list[CurveVerdict]] = {}
    for one in judged.curves:
        by_kind.setdefault(one.kind, []).append(one)
    look, sign, word = _WORDS[judged.status]
    everyone = list(dict.fromkeys(one.configuration for one in judged.curves))
    return render(
        "files.html",
        title=f"Output files: {word}",
        scripts=scripts,
        look=look,
        sign=sign,
        word=word,
        sentence=summary(judged, compared=compared),
        table=_table(judged),
        faults=judged.faults,
        notes=judged.notes,
        # Failures first.
        kinds=[
            _kind(kind, members, everyone)
            for kind, members in sorted(by_kind.items(), key=lambda one: _badness(one[1]))
        ],
    )


def _badness(members: Sequence[CurveVerdict]) -> int:
    """Return the place of the most severe level in the order of severity, 0 for the worst."""
    order = (*_LOOKS, Level.PASS)
    return min(order.index(one.level) for one in members)


def _table(judged: FilesVerdict) -> DataTable | None:
    if not judged.curves:
        return None
    several = columns(judged.curves)
    cells = zip(*([str(cell) for cell in column.cells] for column in several), strict=True)
    return DataTable(
        tuple(column.heading for column in several),
        tuple(cells),
        tuple(column.right for column in several),
    )


def _kind(kind: CurveKind, members: Sequence[CurveVerdict], everyone: Sequence[str]) -> KindView:
    flags = []
    for one in members:
        at = {
            row["size_bytes"]: row
            for row in plain_curves.rows(one.configuration, one.curve, one.launches)
        }
        flags += [
            {
                **at[finding.size],
                "mark": _MARKS[finding.level],
                "criterion": finding.criterion,
                "why": finding.reason,
            }
            for finding in one.findings
            if finding.level in _MARKS and finding.size in at
        ]
    several = {one.configuration: (one.curve, one.launches) for one in members}
    chart = plain_curves.figure(str(kind), several, flags)
    return KindView(
        file_name(str(kind)),
        str(kind),
        curves.figure(chart, plain_curves.looks(everyone, "configuration"), ()),
        tuple(
            SaidOfCase(one.configuration, _LOOKS[one.level], reasons)
            for one in members
            if (reasons := _reasons(one))
        ),
    )


def _reasons(one: CurveVerdict) -> tuple[str, ...]:
    flagged = [finding for finding in one.findings if finding.level in _LOOKS]
    return tuple(finding.reason for finding in folded(flagged))
