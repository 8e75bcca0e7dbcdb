"""Judged output files: a table, and the findings and a chart of each kind of curves."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from netproof.criteria import Finding, Level
from netproof.criteria.findings import folded
from netproof.criteria.registry import RELATIVE
from netproof.errors import grouped
from netproof.measurement.case import spread
from netproof.present.document import Block, Cell, DataTable, Headline, Part, Sentences
from netproof.present.html.content import LEVELS
from netproof.present.wording import file_name, number
from netproof.verdict import CANNOT, FAILED, INCONCLUSIVE, PASSED
from netproof.verdict.files import CurveKind, CurveVerdict, FilesVerdict

if TYPE_CHECKING:
    from netproof.present.html.charts import ChartFigure

_LISTED = (Level.FAIL, Level.INCONCLUSIVE, Level.UNDEFINED, Level.WARN)
"""Levels that get a sentence, the worst first."""
_HEAD = (
    *("configuration", "measured", "verdict", "launches", "bytes", "latency µs", "peak MB/s"),
    *("r∞ MB/s", "of line", "rank spread", "score"),
)
_RANKS = {
    **{"launches": 4, "bytes": 3, "latency µs": 1, "peak MB/s": 2, "r∞ MB/s": 3},
    **{"rank spread": 2, "score": 1},
}


_HEADLINES = {
    PASSED: ("passed", "✓", "Passed"),
    FAILED: ("failed", "✗", "Failed"),
    INCONCLUSIVE: ("inconclusive", "?", "Not judged whole"),
    CANNOT: ("absent", "∅", "Not judged"),
}


def title(judged: FilesVerdict) -> str:
    """Return the title of the page."""
    return f"Output files: {_HEADLINES[judged.status][-1].lower()}"


def parts(judged: FilesVerdict, *, drawn: bool) -> Iterator[Part]:
    """Yield the result with a line for each curve, then each kind of curves, the worst first.

    ``drawn``: with charts.
    """
    read = [(one.case.name, one.files) for one in judged.curves if len({*one.files}) > 1]
    several = [
        f"{name} was read from {len(files)} files, {files[0]} to {files[-1]}"
        for name, files in dict(read).items()
    ]
    headline = Headline(*_HEADLINES[judged.status], summary(judged))
    not_read = Sentences(judged.folded, "Not read", "inconclusive", "NOT READ ")
    listed = [table(judged.curves)] if judged.curves else []
    yield "verdict", "", [headline, not_read, *listed, Sentences([*several, *judged.notes])]
    by_kind = grouped((one.kind, one) for one in judged.curves)
    order = [*LEVELS, Level.SHOWN]
    everyone = list(dict.fromkeys(one.case.name for one in judged.curves))
    for kind, members in sorted(
        by_kind.items(), key=lambda one: min(order.index(each.level) for each in one[1])
    ):
        found = [*([_chart(kind, members, everyone)] if drawn else []), *_findings(members)]
        if found:
            yield file_name(str(kind)), str(kind), found


def _findings(members: Sequence[CurveVerdict]) -> Iterator[Block]:
    """Yield the findings of curves by their levels, the worst first, then notes."""
    for level in _LISTED:
        several = []
        for one in members:
            of_level = [finding for finding in one.findings if finding.level is level]
            several += _once(folded(of_level, one.case.curve.sizes))
        word, look = LEVELS[level]
        if several:
            yield Sentences(
                [Cell(each.where, below=[each.reason]) for each in several],
                look=look,
                mark=f"{word} ",
            )
    noted = [one for each in members for one in folded(each.noted, each.case.curve.sizes)]
    if noted:
        yield Sentences([one.why for one in noted], mark="note ")


def _once(findings: Sequence[Finding]) -> list[Finding]:
    """Return findings with those that are undefined for the same reason as one."""

    def reason(one: Finding) -> object:
        same = one.level is Level.UNDEFINED and one.size is None
        return one.why_undefined if same else id(one)

    found = []
    for first, *others in grouped((reason(one), one) for one in findings).values():
        if others:
            names = ", ".join(finding.criterion for finding in (first, *others))
            first = dataclasses.replace(first, reason=f"{names} undefined: {first.why_undefined}")
        found.append(first)
    return found


def summary(judged: FilesVerdict) -> str:
    """Return how many curves passed, and the result of the others, in a sentence."""
    counts = {level: sum(one.level is level for one in judged.curves) for level in LEVELS}
    passed = counts[Level.PASS] + counts[Level.WARN]
    words = {
        Level.WARN: "with warnings",
        Level.FAIL: "failed",
        Level.INCONCLUSIVE: "inconclusive",
        Level.UNDEFINED: "could not be judged",
    }
    said = [f"{passed} of {sum(counts.values())} curves passed"]
    said += [f"{counts[level]} {word}" for level, word in words.items() if counts[level]]
    if judged.faults:
        said.append(f"{len(judged.faults)} could not be read")
    if not judged.compared:
        said.append("nothing was compared: --against names other files, --as configurations")
    return "; ".join(said)


def _sizes(sizes: Sequence[int]) -> str:
    """Return the least and the largest size of a curve: a table that was cut shows."""
    return " to ".join(map(str, dict.fromkeys((sizes[0], sizes[-1]))))


def table(curves: Sequence[CurveVerdict]) -> DataTable:
    """Return a row for each curve: names, figures as far as any curve has them, and the level."""
    rows: list[list[str | Cell]] = []
    for one in curves:
        found, scatter = one.case.landmarks, one.rank_spread and one.rank_spread[0]
        scores = [each.value for each in one.findings if each.criterion in RELATIVE]
        word, look = LEVELS.get(one.level, ("yardstick", ""))
        rows.append(
            [
                *(one.case.name, str(one.kind), Cell(word, look), str(len(one.case.launches))),
                _sizes(one.case.curve.sizes),
                number(None if one.times_are_shares else found.latency_us, ".2f"),
                *(number(found.peak_mb_s, ".1f"), number(found.asymptotic_mb_s, ".1f")),
                number(one.share and 100 * one.share, ".1f"),
                *(number(scatter, ".1f"), number(scores[0] if scores else None, ".2f")),
            ]
        )
    return DataTable(_HEAD, rows, range(3, len(_HEAD)), ranks=_RANKS, names=2).filled()


def _chart(
    kind: CurveKind, members: Sequence[CurveVerdict], everyone: Sequence[str]
) -> ChartFigure:
    from netproof.present.html import figures

    flags: list[dict[str, Any]] = []
    for one in members:
        case = one.case
        rows = figures.points(case.curve, spread(case.launches), len(case.launches), case.name)
        flags += figures.flagged_rows(one.findings, rows)
    named = {one.case.name: (one.case.curve, one.case.launches) for one in members}
    return figures.of_curves(str(kind), named, flags, names=everyone, legend="configuration")
