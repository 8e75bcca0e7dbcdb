"""Charts of a report, and of other curves: their rows, flags, and the sentences below them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from netproof.benchmarks import registry
from netproof.comparison.compared_case import envelope_of_cases
from netproof.criteria import Level
from netproof.measurement.case import Case
from netproof.measurement.curve import Curve
from netproof.measurement.launches import median_curve, spread
from netproof.measurement.units import mbit_s
from netproof.present.html import content
from netproof.present.html.charts import BANDS_AT_ONCE, ChartFigure, NotDrawn, Rows
from netproof.present.html.content import Group
from netproof.present.html.html import file_name
from netproof.present.html.looks import Looks
from netproof.site.matrix import Matrix
from netproof.verdict.verdict import CaseVerdict, StoredResult, Verdict

BAND = "Bands: the median over launches ± its MAD."
CROWDED_BAND = "Pick a configuration to see its band, the median over launches ± its MAD."
FLAGGED = (
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

_NOWHERE = "as given"
"""Stands for the switch, where it is not named."""
LEVEL_MARKS = {Level.FAIL: "failed", Level.INCONCLUSIVE: "inconclusive", Level.WARN: "warning"}
"""Marks of flagged sizes by the level of the finding."""


def points(
    curve: Curve,
    mad_us: Sequence[float],
    launches: int,
    name: str,
    partition: str = _NOWHERE,
    case: Case | None = None,
) -> Rows:
    """Return a row for each size of a curve: times in µs, MAD, band and rates.

    The fastest rank's time, the ranks' mean and the bandwidth are None where they are missing.
    Sizes of 0 bytes and times of 0 µs are left out: a logarithmic axis has no place for them.
    """
    by_protocol = case is not None and registry.of(case).by_protocol
    none = (None,) * len(curve.sizes)
    columns = zip(
        *(curve.sizes, curve.time_us, mad_us, curve.time_min_us or none),
        *(curve.time_avg_us or none, curve.bandwidth_mb_s or none),
        strict=True,
    )
    return [
        {
            "configuration": name,
            "partition": partition,
            "environment": name if case is None else case.environment,
            "protocol": case.function.upper() if by_protocol else None,
            "size_bytes": size,
            "time_us": time,
            "mad_us": mad,
            "low_us": time - mad,
            "high_us": time + mad,
            "time_min_us": least,
            "time_avg_us": mean,
            "bandwidth_mb_s": rate,
            "bandwidth_mbit_s": None if rate is None else mbit_s(rate),
            "launches": launches,
        }
        for size, time, mad, least, mean, rate in columns
        if size >= 1 and time > 0
    ]


def case_points(one: CaseVerdict | StoredResult) -> Rows:
    """Return the rows of a case; none where it was not measured whole."""
    if one.measured is None:
        return []
    curve, mad_us, count = one.measured.curve, one.measured.mad_us, len(one.measured.launches)
    return points(curve, mad_us, count, content.label(one), content.switch(one), one.case)


def again(group: Group) -> Rows:
    """Return a row for each size of each repeated launch of the group's cases."""
    return [
        {
            "configuration": content.configuration(judged.case),
            "partition": judged.case.partition,
            "environment": judged.case.environment,
            "size_bytes": size,
            "time_us": time,
            "launch": f"{number} of {len(judged.again.launches)}",
            "where": f"job {judged.again.jobid} on {', '.join(judged.again.nodes)}",
        }
        for judged in group.members
        if judged.again is not None
        for number, curve in enumerate(judged.again.launches, 1)
        for size, time in zip(curve.sizes, curve.time_us, strict=True)
        if size >= 1 and time > 0
    ]


def flags(judged: CaseVerdict) -> Rows:
    """Return the flagged sizes of a case, a row each with mark, sentence and position."""
    at = {row["size_bytes"]: row for row in case_points(judged)}
    if judged.again is not None and judged.again.launches:
        # Repeats may be at sizes between the curve's.
        launches = judged.again.launches
        place = (content.configuration(judged.case), judged.case.partition, judged.case)
        repeats = points(median_curve(launches), spread(launches), len(launches), *place)
        at = {row["size_bytes"]: row for row in repeats} | at
    return [
        {**at[size], "mark": mark, "criterion": finding.criterion, "why": finding.reason}
        for finding in judged.findings
        if (mark := LEVEL_MARKS.get(finding.level, finding.confirmation and "not confirmed"))
        for size in finding.sizes()
        if size in at
    ]


def missing(group: Group) -> list[NotDrawn]:
    """Return the configurations without a curve in the chart of a group, and why."""
    found = []
    for judged in group.members:
        if judged.measured is None:
            why = "; ".join(judged.faults) or "it left no complete curve"
            found.append(NotDrawn(content.configuration(judged.case), why))
        elif not case_points(judged):
            name, curve = content.function_name(judged.case), judged.measured.curve
            why = f"{name} has no time that a logarithmic axis has a place for"
            if curve.sizes == (0,):
                why = f"{name} has no message sizes; a call takes {curve.time_us[0]:.3g} µs"
            found.append(NotDrawn(content.configuration(judged.case), why))
    return found


def over_size(
    title: str, rows: Rows, flagged: Rows = (), others: Sequence[str] = (), **more: Any
) -> ChartFigure:
    """Return time over size, with the sentences that its bands and marks take.

    ``others``: further sentences; ``more``: fields of the figure, its name if not by its title.
    """
    crowded = len({row["configuration"] for row in rows}) > BANDS_AT_ONCE
    sentences = [
        *([] if crowded else [BAND]),
        *others,
        *([FLAGGED] if flagged else []),
        *([AGAIN] if more.get("again") else []),
    ]
    return ChartFigure(
        name=more.pop("name", file_name(title)),
        title=f"{title}: time against message size",
        kind="time",
        rows=rows,
        flags=list(flagged),
        sentences=tuple(sentences) if rows else (),
        hint=CROWDED_BAND if crowded else None,
        **more,
    )


def of_curves(
    title: str,
    several: Mapping[str, tuple[Curve, Sequence[Curve]]],
    flagged: Rows = (),
    *,
    names: Sequence[str] = (),
    legend: str = Looks.legend,
) -> tuple[ChartFigure, Looks]:
    """Return time over size of curves by their names, each with its launches, and their look.

    ``names``: of all curves in the charts of a page, else those of ``several``; ``legend``: title
    of the legend of names.
    """
    rows = [
        row
        for name, (curve, launches) in several.items()
        for row in points(curve, spread(launches), len(launches), name)
    ]
    looks = Looks((_NOWHERE,), tuple(names or several), legend=legend)
    return over_size(title, rows, flagged), looks


def of_time(group: Group, matrix: Matrix) -> ChartFigure:
    """Return time over size of every configuration of a group."""
    cases = (*group.members, *group.stored)
    by_label = {content.label(one): one for one in cases}
    least, unlike_links = envelope_of_cases(by_label, matrix)
    envelope: Rows = []
    if least is not None:
        curve, fastest = least.curve, least.fastest
        columns = zip(curve.sizes, curve.time_us, fastest, strict=True)
        envelope = [
            {"size_bytes": size, "time_us": time, "fastest": name} for size, time, name in columns
        ]
    rows = [row for one in cases for row in case_points(one)]
    flagged = [row for judged in group.members for row in flags(judged)]
    sentences = [
        ENVELOPE if envelope else ALONE,
        *([LINKS] if envelope and unlike_links else []),
        *([STORED] if group.stored else []),
    ]
    return over_size(
        group.title,
        rows,
        flagged,
        sentences,
        name=group.name,
        missing=tuple(missing(group)),
        envelope=tuple(envelope),
        again=tuple(again(group)) if rows else (),
    )


def of_netpipe(verdict: Verdict, matrix: Matrix) -> dict[tuple[str, str, str], list[ChartFigure]]:
    """Return throughput and signature of each (path, direction, partition), TCP with MPI."""
    several: dict[tuple[str, str, str], list[CaseVerdict]] = {}
    for judged in verdict.cases:
        case = judged.case
        if registry.of(case).by_protocol:
            key = (case.path, case.direction, case.partition)
            several.setdefault(key, []).append(judged)
    found = {}
    for (path, direction, partition), members in several.items():
        lines = {
            judged.measured.line_rate_mb_s
            for judged in members
            if judged.measured is not None and judged.measured.line_rate_mb_s is not None
        }
        where = f"{partition}, NetPIPE {content.variant(members[0].case)}"
        marked = [_by_protocol(row) for judged in members for row in flags(judged)]
        sentences = []
        here = matrix.partitions.get(partition)
        if not lines and path == "inside":
            sentences.append("Inside a node messages cross no link, so there is no line rate.")
        elif not lines:
            sentences.append("No line rate is drawn: none is known for what was measured.")
        else:
            if here is not None and here.line_rate_from_bytes > 0:
                sentences.append(
                    f"Below {here.line_rate_from_bytes} bytes short bursts pass above the line"
                    " rate, the site says: no peak is among them."
                )
            sentences += map(_share, members)
        sentences += [FLAGGED] if marked else []
        absent = {
            f"{judged.case.environment}, {content.function_name(judged.case)}": judged.faults
            for judged in members
            if judged.measured is None
        }
        name = file_name("netpipe", path, direction, partition)
        found[path, direction, partition] = [
            ChartFigure(
                name=f"{name}-{kind}",
                title=f"{where}: {title}",
                kind=kind,
                rows=[_by_protocol(row) for judged in members for row in case_points(judged)],
                flags=marked,
                sentences=tuple(sentences),
                missing=tuple(
                    # The reasons are shown once, since both charts stand side by side.
                    NotDrawn(
                        curve,
                        ("; ".join(faults) or "it left no complete curve")
                        if kind == "throughput"
                        else "as in the throughput",
                    )
                    for curve, faults in absent.items()
                ),
                lines=tuple(
                    {
                        "line_rate_mbit_s": mbit_s(rate),
                        "label": f"line rate {mbit_s(rate):.1f} Mbit/s ({rate:.1f} MB/s)",
                    }
                    for rate in sorted(lines)
                ),
            )
            for kind, title in (
                ("throughput", "throughput"),
                ("signature", "signature, throughput against time"),
            )
        ]
    return found


def _by_protocol(row: dict[str, Any]) -> dict[str, Any]:
    """Return a point under its name among those of one partition."""
    return {**row, "configuration": f"{row['environment']} {row['protocol']}"}


def _share(judged: CaseVerdict) -> str:
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
