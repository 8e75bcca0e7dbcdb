"""The page on existing output files: the findings, and a chart of each kind."""

from __future__ import annotations

from collections.abc import Sequence

from netproof.criteria import Level
from netproof.criteria.findings import folded
from netproof.measurement.curve import spread
from netproof.present.document import Block, Cell, DataTable, Headline, Part, Sentences
from netproof.present.html import figures
from netproof.present.html.charts import Rows
from netproof.present.html.content import LOOKS
from netproof.present.html.folder import page_of
from netproof.present.judged_files import columns, summary
from netproof.present.wording import file_name
from netproof.verdict import FAILED, INCONCLUSIVE, PASSED
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
    shown: list[Block] = [
        Headline(look, sign, word, summary(judged)),
        Sentences(judged.faults, "Not read"),
        Sentences(judged.notes, "Left out"),
        *([_table(judged.curves)] if judged.curves else []),
    ]
    parts: list[Part] = [("verdict", "", shown)]
    # Failures first.
    for kind, members in sorted(
        by_kind.items(), key=lambda one: min(_ORDER.index(each.level) for each in one[1])
    ):
        parts.append((file_name(str(kind)), str(kind), _kind(kind, members, everyone)))
    return page_of(f"Output files: {word}", parts)


def _table(curves: Sequence[CurveVerdict]) -> DataTable:
    # The level is seen where figures are cut off.
    *several, level = columns(curves)
    several.insert(2, level)
    rows = list(zip(*(map(str, column.cells) for column in several), strict=True))
    numbers = [place for place, column in enumerate(several) if column.right]
    return DataTable([column.heading for column in several], rows, numbers)


def _kind(kind: CurveKind, members: Sequence[CurveVerdict], everyone: Sequence[str]) -> list[Block]:
    flags: Rows = []
    findings: list[Cell] = []
    for one in members:
        case = one.case
        rows = figures.points(case.curve, spread(case.launches), len(case.launches), case.name)
        flags += figures.flagged_rows(one.findings, rows)
        flagged = [finding for finding in one.findings if finding.level in LOOKS]
        for look, several in ((LOOKS.get(one.level), flagged), ("passed", one.noted)):
            if several:
                reasons = [finding.reason for finding in folded(several, case.curve.sizes)]
                findings.append(Cell(case.name, look or "", reasons))
    named = {one.case.name: (one.case.curve, one.case.launches) for one in members}
    drawn = figures.of_curves(str(kind), named, flags, names=everyone, legend="configuration")
    return [drawn, Sentences(findings)]
