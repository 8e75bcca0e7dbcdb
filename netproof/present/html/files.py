"""The page on existing output files: the findings, and a chart of each kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from netproof.criteria import Level
from netproof.criteria.findings import folded
from netproof.measurement.curve import spread
from netproof.present.html import figures
from netproof.present.html.content import LOOKS
from netproof.present.html.html import file_name, render
from netproof.present.judged_files import columns, summary
from netproof.present.tables import DataTable
from netproof.verdict.exit_status import FAILED, INCONCLUSIVE, PASSED
from netproof.verdict.files import CurveKind, CurveVerdict, FilesVerdict

_WORDS = {
    PASSED: ("passed", "✓", "passed"),
    FAILED: ("failed", "✗", "failed"),
    INCONCLUSIVE: ("inconclusive", "?", "not judged whole"),
}
_ORDER = (*LOOKS, Level.PASS)


def page(judged: FilesVerdict) -> str:
    """Return the page."""
    by_kind: dict[CurveKind, list[CurveVerdict]] = {}
    for one in judged.curves:
        by_kind.setdefault(one.kind, []).append(one)
    look, sign, word = _WORDS[judged.status]
    everyone = list(dict.fromkeys(one.case.name for one in judged.curves))
    return render(
        "files.html",
        title=f"Output files: {word}",
        look=look,
        sign=sign,
        word=word,
        sentence=summary(judged),
        table=_table(judged.curves) if judged.curves else None,
        faults=judged.faults,
        notes=judged.notes,
        # Failures first.
        kinds=[
            _kind(kind, members, everyone)
            for kind, members in sorted(
                by_kind.items(), key=lambda one: min(_ORDER.index(each.level) for each in one[1])
            )
        ],
    )


def _table(curves: Sequence[CurveVerdict]) -> DataTable:
    # The level is seen where figures are cut off.
    *several, level = columns(curves)
    several.insert(2, level)
    rows = list(zip(*(map(str, column.cells) for column in several), strict=True))
    numbers = [place for place, column in enumerate(several) if column.right]
    return DataTable([column.heading for column in several], rows, numbers)


def _kind(
    kind: CurveKind, members: Sequence[CurveVerdict], everyone: Sequence[str]
) -> dict[str, Any]:
    flags, findings = [], []
    for one in members:
        rows = figures.points(
            one.case.curve, spread(one.case.launches), len(one.case.launches), one.case.name
        )
        at = {row["size_bytes"]: row for row in rows}
        flags += [
            {
                **at[size],
                "mark": figures.LEVEL_MARKS[finding.level],
                "criterion": finding.criterion,
                "why": finding.reason,
            }
            for finding in one.findings
            if finding.level in figures.LEVEL_MARKS
            for size in finding.sizes()
            if size in at
        ]
        flagged = [finding for finding in one.findings if finding.level in LOOKS]
        for look, several in ((LOOKS.get(one.level), flagged), ("passed", one.noted)):
            if several:
                reasons = [finding.reason for finding in folded(several, one.case.curve.sizes)]
                findings.append((look, one.case.name, reasons))
    several = {one.case.name: (one.case.curve, one.case.launches) for one in members}
    drawn = figures.of_curves(str(kind), several, flags, names=everyone, legend="configuration")
    return {
        "name": file_name(str(kind)),
        "title": str(kind),
        "figure": drawn,
        "findings": findings,
    }
