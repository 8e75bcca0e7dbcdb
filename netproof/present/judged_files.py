"""Judged output files: sentences and a table for the terminal, a page, and plain values."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from netproof.criteria import Finding, Level
from netproof.criteria.findings import folded
from netproof.criteria.registry import RELATIVE
from netproof.errors import grouped
from netproof.measurement.case import spread
from netproof.present.document import Block, Cell, DataTable, Headline, Part, Sentences
from netproof.present.html.content import LEVELS
from netproof.present.wording import file_name, number, size_in_words
from netproof.verdict import FAILED, INCONCLUSIVE, PASSED
from netproof.verdict.files import CurveKind, CurveVerdict, FilesVerdict

_LISTED = (Level.WARN, Level.UNDEFINED, Level.INCONCLUSIVE, Level.FAIL)
"""Levels that get a sentence, the worst last."""
_HEAD = (
    *("configuration", "measured", "launches", "sizes", "latency µs", "peak MB/s", "r∞ MB/s"),
    *("of line", "rank spread", "score", ""),
)
_RANKS = {
    **{"launches": 4, "sizes": 3, "latency µs": 1, "peak MB/s": 2, "r∞ MB/s": 3},
    **{"rank spread": 2, "score": 1},
}
_IF_ANY = [_HEAD.index(name) for name in ("of line", "rank spread", "score")]
"""Columns that are there if any curve has such a figure."""


def blocks(judged: FilesVerdict) -> Iterator[Block]:
    """Yield a line for each curve, then notes and findings, the worst last, and how many passed."""
    if judged.curves:
        yield table(judged.curves)
    read = [(one.case.name, one.files) for one in judged.curves if len({*one.files}) > 1]
    for name, files in dict(read).items():
        yield f"{name} was read from {len(files)} files, {files[0]} to {files[-1]}"
    noted = (one.why for each in judged.curves for one in folded(each.noted, each.case.curve.sizes))
    yield Sentences(list(noted), mark="note ")
    for level in _LISTED:
        found = []
        for one in judged.curves:
            of_level = [finding for finding in one.findings if finding.level is level]
            found += [each.why for each in _once(folded(of_level, one.case.curve.sizes))]
        word, look = LEVELS[level]
        yield Sentences(found, look=look, mark=f"{word} ")
    yield Sentences(judged.notes)
    yield Sentences(judged.folded, look="inconclusive", mark="NOT READ ")
    yield Cell(summary(judged), "strong")


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
    said = [f"{passed} of {len(judged.curves)} curves passed"]
    said += [f"{counts[level]} {word}" for level, word in words.items() if counts[level]]
    if judged.faults:
        said.append(f"{len(judged.faults)} could not be read")
    if not judged.compared:
        said.append("nothing was compared: --against names other files, --as configurations")
    return "; ".join(said)


def _sizes(sizes: Sequence[int]) -> str:
    """Return the least and the largest size of a curve: a table that was cut shows."""
    words = [size_in_words(size) for size in dict.fromkeys((sizes[0], sizes[-1]))]
    return " to ".join(words)


def table(curves: Sequence[CurveVerdict]) -> DataTable:
    """Return a row for each curve: names, figures as far as any curve has them, and the level."""
    rows: list[list[str | Cell]] = []
    for one in curves:
        found, scatter = one.case.landmarks, one.rank_spread and one.rank_spread[0]
        scores = [each.value for each in one.findings if each.criterion in RELATIVE]
        word, look = LEVELS[one.level]
        rows.append(
            [
                *(one.case.name, str(one.kind), str(len(one.case.launches))),
                _sizes(one.case.curve.sizes),
                number(None if one.times_are_shares else found.latency_us, ".2f"),
                *(number(found.peak_mb_s, ".1f"), number(found.asymptotic_mb_s, ".1f")),
                number(one.share and 100 * one.share, ".1f"),
                *(number(scatter, ".1f"), number(scores[0] if scores else None, ".2f")),
                Cell(word, look),
            ]
        )
    made = DataTable(_HEAD, rows, range(2, len(_HEAD) - 1), ranks=_RANKS, names=2)
    empty = {at for at in _IF_ANY if all(row[at] == "-" for row in rows)}
    return made.only([at for at in range(len(_HEAD)) if at not in empty])


_HEADLINES = {
    PASSED: ("passed", "✓", "passed"),
    FAILED: ("failed", "✗", "failed"),
    INCONCLUSIVE: ("inconclusive", "?", "not judged whole"),
}


def page(judged: FilesVerdict) -> str:
    """Return the page: the findings, and a chart of each kind."""
    from netproof.present.html.folder import page_of

    by_kind = grouped((one.kind, one) for one in judged.curves)
    look, sign, word = _HEADLINES[judged.status]
    everyone = list(dict.fromkeys(one.case.name for one in judged.curves))
    shown: list[Block] = [
        Headline(look, sign, word, summary(judged)),
        Sentences(judged.faults, "Not read"),
        Sentences(judged.notes, "Left out"),
        *([_seen(table(judged.curves))] if judged.curves else []),
    ]
    parts: list[Part] = [("verdict", "", shown)]
    # Failures first.
    order = list(LEVELS)
    for kind, members in sorted(
        by_kind.items(), key=lambda one: min(order.index(each.level) for each in one[1])
    ):
        parts.append((file_name(str(kind)), str(kind), _kind(kind, members, everyone)))
    return page_of(f"Output files: {word}", parts)


def _seen(table: DataTable) -> DataTable:
    """Return a table with the level where it is seen where figures are cut off."""
    *figures, level = range(2, len(table.head))
    return table.only([0, 1, level, *figures])


def _kind(kind: CurveKind, members: Sequence[CurveVerdict], everyone: Sequence[str]) -> list[Block]:
    from netproof.present.html import figures

    flags: list[dict[str, Any]] = []
    findings: list[Cell] = []
    for one in members:
        case = one.case
        rows = figures.points(case.curve, spread(case.launches), len(case.launches), case.name)
        flags += figures.flagged_rows(one.findings, rows)
        flagged = [finding for finding in one.findings if finding.level in _LISTED]
        for look, several in ((LEVELS[one.level][1], flagged), ("passed", one.noted)):
            if several:
                reasons = [finding.reason for finding in folded(several, case.curve.sizes)]
                findings.append(Cell(case.name, look, reasons))
    named = {one.case.name: (one.case.curve, one.case.launches) for one in members}
    drawn = figures.of_curves(str(kind), named, flags, names=everyone, legend="configuration")
    return [drawn, Sentences(findings)]
