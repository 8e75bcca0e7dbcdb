"""Charts of a report: one for each group of cases, and NetPIPE's for each partition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from netproof.benchmarks import registry
from netproof.comparison import compared_case
from netproof.measurement.case import Case
from netproof.measurement.units import mbit_s
from netproof.present.html import content
from netproof.present.html.charts import BANDS_AT_ONCE, ChartFigure, NotDrawn
from netproof.present.html.content import Group
from netproof.present.html.html import file_name
from netproof.site.matrix import Matrix
from netproof.verdict.verdict import Judged, Verdict

BAND = "Bands: the median over launches ± its MAD."
CROWDED_BAND = "Pick a configuration to see its band, the median over launches ± its MAD."
MARKS = (
    "Flagged sizes: a cross where one failed, a question mark where it is inconclusive, a triangle"
    " for a warning, a circle where it was flagged, but not when measured again."
)
"""In words, since PNG and PDF draw a line with signs that their font lacks in another font."""
AGAIN = "Thin lines with +: measured again around the flagged sizes, a line a launch."
ENVELOPE = "Wide grey line: the envelope, the least time of any configuration."
LINKS = (
    "Links differ here: a time is not compared with the envelope itself, but with what another"
    " configuration would take over the same link. The reason of a flagged size has both figures."
)
STORED = "Grey, with a day: measured by other sessions, on that day."
ALONE = "There is no envelope: no other configuration measured the same."


def of_time(group: Group, matrix: Matrix) -> ChartFigure:
    """Return time over size of every configuration of a group."""
    cases = (*group.members, *group.stored)
    by_label = {content.label(one): one for one in cases}
    least, unlike_links = compared_case.envelope_of_cases(by_label, matrix)
    envelope = content.envelope(least)
    rows = [row for one in cases for row in content.points(one)]
    flags = content.flags(group)
    again = content.again(group) if rows else []
    crowded = len({row["configuration"] for row in rows}) > BANDS_AT_ONCE
    sentences = [
        *([] if crowded else [BAND]),
        ENVELOPE if envelope else ALONE,
        *([LINKS] if envelope and unlike_links else []),
        *([STORED] if group.stored else []),
        *([MARKS] if flags else []),
        *([AGAIN] if again else []),
    ]
    return ChartFigure(
        name=group.name,
        title=f"{group.title}: time against message size",
        kind="time",
        rows=rows,
        flags=flags,
        sentences=tuple(sentences) if rows else (),
        hint=CROWDED_BAND if crowded else None,
        missing=tuple(content.missing(group)),
        envelope=tuple(envelope),
        again=tuple(again),
    )


def of_netpipe(verdict: Verdict, matrix: Matrix) -> dict[tuple[str, str, str], list[ChartFigure]]:
    """Return throughput and signature of each (path, direction, partition), TCP with MPI."""
    several: dict[tuple[str, str, str], list[Judged]] = {}
    for judged in verdict.cases:
        case = judged.case
        if registry.of(case).by_protocol:
            key = (case.path, case.direction, case.partition)
            several.setdefault(key, []).append(judged)
    flags = {
        judged.case.key(): marks
        for group in content.groups(verdict)
        if registry.of(group.case).by_protocol
        for judged, marks in content.flags_by_case(group)
    }
    found = {}
    for (path, direction, partition), members in several.items():
        rows = [_named(row) for judged in members for row in content.points(judged)]
        lines = {
            judged.measured.line_rate_mb_s
            for judged in members
            if judged.measured is not None and judged.measured.line_rate_mb_s is not None
        }
        where = f"{partition}, NetPIPE {content.variant(members[0].case)}"
        sentences = [] if lines else [_no_line(members[0].case)]
        here = matrix.partitions.get(partition)
        if lines and here is not None and here.line_rate_from_bytes > 0:
            sentences.append(
                f"Below {here.line_rate_from_bytes} bytes short bursts pass above the line rate,"
                " the site says: no peak is among them."
            )
        if lines:
            sentences += map(_share, members)
        marked = [_named(row) for judged in members for row in flags[judged.case.key()]]
        common = {
            "rows": rows,
            "flags": marked,
            "lines": tuple(
                {
                    "line_rate_mbit_s": mbit_s(rate),
                    "label": f"line rate {mbit_s(rate):.1f} Mbit/s ({rate:.1f} MB/s)",
                }
                for rate in sorted(lines)
            ),
        }
        sentences += [MARKS] if marked else []
        name = file_name("netpipe", path, direction, partition)
        found[path, direction, partition] = [
            ChartFigure(
                f"{name}-throughput",
                f"{where}: throughput",
                "throughput",
                sentences=tuple(sentences),
                missing=tuple(_missing(members)),
                **common,
            ),
            ChartFigure(
                f"{name}-signature",
                f"{where}: signature, throughput against time",
                "signature",
                sentences=tuple(sentences),
                missing=tuple(_missing_alongside(members)),
                **common,
            ),
        ]
    return found


def _named(row: dict[str, Any]) -> dict[str, Any]:
    """Return a point under its name among those of one partition."""
    return {**row, "configuration": f"{row['environment']} {row['protocol']}"}


def _share(judged: Judged) -> str:
    """Return a case's asymptotic bandwidth with its share of the line rate, in a sentence."""
    name = f"{judged.case.environment} {judged.case.function}"
    if judged.measured is None:
        return f"{name}: not measured whole."
    found = judged.measured.landmarks
    if found.asymptotic_mb_s is None:
        return f"{name}: no asymptotic bandwidth: {found.why('asymptotic_mb_s')}."
    text = f"{name}: asymptotic bandwidth {found.asymptotic_mb_s:.4g} MB/s"
    if found.line_rate_share is not None:
        text += f", {found.line_rate_share:.1%} of the line rate"
        interval = found.interval("line_rate_share")
        if interval is not None:
            text += f" (95 % interval {interval[0]:.1%} to {interval[1]:.1%})"
    if found.twin_share is not None:
        text += (
            f"; {found.twin_share:.1%} of what the link's healthy twin carried at the same time"
            f" ({found.twin_mb_s:.4g} MB/s)"
        )
    return f"{text}."


def _no_line(case: Case) -> str:
    if case.path == "inside":
        return "Inside a node messages cross no link, so there is no line rate."
    return "No line rate is drawn: none is known for what was measured."


def _missing(members: Sequence[Judged]) -> list[NotDrawn]:
    return [
        NotDrawn(_curve(judged), "; ".join(judged.faults) or "it left no complete curve")
        for judged in members
        if judged.measured is None
    ]


def _missing_alongside(members: Sequence[Judged]) -> list[NotDrawn]:
    """Return the same without the reasons, which are shown beside it."""
    return [
        NotDrawn(_curve(judged), "as in the throughput")
        for judged in members
        if judged.measured is None
    ]


def _curve(judged: Judged) -> str:
    return f"{judged.case.environment}, {content.function_name(judged.case)}"
