"""The parts of a report with charts, and its pages of functions: charts with their findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from netproof.benchmarks import registry
from netproof.criteria import Level
from netproof.present.html import content
from netproof.present.html.charts import ChartFigure, Looks
from netproof.present.html.content import CaseState, Group
from netproof.present.html.html import chart, render
from netproof.present.html.material import MAIN, Report
from netproof.present.tables import EVERY, DataTable
from netproof.verdict.verdict import CaseVerdict

MAIN_NETPIPE = ("inter-node", "oneway")
"""Path and direction whose charts are on the main page; the others are on NetPIPE's."""
MAIN_FAILED = 2
"""Charts of failed functions on the main page."""

LOOKS = {
    Level.FAIL: "failed",
    Level.INCONCLUSIVE: "inconclusive",
    Level.UNDEFINED: "inconclusive",
    Level.WARN: "warned",
}
"""Styles of findings, the most severe first."""


def view(report: Report, by_page: Mapping[str, Sequence[Group]]) -> dict[str, Any]:
    """Return links to all charts of time against size, by page, and some of what failed."""
    groups = (group for several in by_page.values() for group in several)
    failed = (report.figure(group) for group in groups if group.state() is CaseState.FAILED)
    drawn = islice((one for one in failed if one.rows), MAIN_FAILED)
    return {
        "pages": [
            (content.page_title(groups[0]), name, groups) for name, groups in by_page.items()
        ],
        "failed": [figure(one, report.looks, report.files) for one in drawn],
    }


def page(report: Report, title: str, groups: Sequence[Group]) -> str:
    """Return the page of a function, or of NetPIPE."""
    pairs = None
    if registry.of(groups[0].case).by_protocol:
        pairs = [pair(report, key) for key in report.netpipe if groups[0].partition in ("", key[2])]
    return render(
        "function.html",
        title=f"{title}, {report.system}",
        scripts=report.scripts,
        back=report.partition_pages.get(groups[0].partition, MAIN),
        heading=f"{title} on {report.system}",
        groups=[
            {
                "group": group,
                "figure": figure(report.figure(group), report.looks, report.files),
                "findings": [one for judged in group.members for one in _findings(judged)],
                "again": [
                    (judged, _again(judged))
                    for judged in group.members
                    if judged.again is not None and judged.measured is not None
                ],
            }
            for group in groups
        ],
        pairs=pairs,
    )


def _findings(judged: CaseVerdict) -> list[tuple[str, str, list[str]]]:
    """Return style, configuration and reasons of a case against which there are any."""
    # The chart has the reason for a missing curve.
    faults = judged.faults if judged.measured is not None else ()
    reasons = [*faults, *content.reasons(judged, Level.FAIL)]
    reasons += [f"inconclusive: {why}" for why in content.reasons(judged, Level.INCONCLUSIVE)]
    reasons += content.reasons(judged, Level.WARN)
    look = LOOKS.get(judged.level, "warned")
    return [(look, content.configuration(judged.case), reasons)] if reasons else []


def _again(judged: CaseVerdict) -> DataTable | None:
    """Return both curves of a repeated measurement, at its sizes; None where none is complete."""
    first, *launches = (
        dict(zip(curve.sizes, curve.time_us, strict=True))
        for curve in (judged.measured.curve, *judged.again.launches)
    )
    if not launches:
        return None
    flagged = {finding.size for finding in judged.flags()}
    rows = [
        (
            f"{'flagged: ' if size in flagged else ''}{size:,}",
            *(f"{one[size]:.1f}" if size in one else "–" for one in [first, *launches]),
        )
        for size in sorted(set().union(*launches))
    ]
    numbered = (f"again {number}, µs" for number in range(1, len(launches) + 1))
    return DataTable(("bytes", "first, µs", *numbered), rows, EVERY)


def figure(
    figure: ChartFigure, looks: Looks, files: Sequence[str] = (), data_of: str = ""
) -> dict[str, Any]:
    """Return a chart as pages show it.

    ``files``: the suffixes of its other forms; ``data_of``: the chart on the page with its data.
    """
    drawn = figure.for_page(looks, data_of) if figure.rows else None
    made = chart(figure.title, drawn, *figure.sentences, *([figure.hint] if figure.hint else []))
    missing: dict[str, list[str]] = {}
    for what, why in figure.missing.items():
        missing.setdefault(why, []).append(what)
    made |= {"notes": figure.notes, "missing": missing, "name": f"chart-{figure.name}"}
    if drawn is not None:
        made["files"] = {one.upper(): f"charts/{figure.name}.{one}" for one in files}
        made["data"] = None if data_of else figure.table or _data(figure)
    return made


def _data(figure: ChartFigure) -> DataTable:
    """Return the chart's data as a table: a row per size, a column per configuration."""
    names = list(dict.fromkeys(one["configuration"] for one in figure.rows))
    at = {(one["size_bytes"], one["configuration"]): one for one in figure.rows}
    least = {one["size_bytes"]: one["time_us"] for one in figure.envelope}
    rates = figure.kind != "time"
    of_ranks = any(one["time_min_us"] is not None for one in figure.rows)

    def cell(size: int, name: str) -> str:
        one = at.get((size, name))
        if one is None:
            return "–"
        time = _digits(one["time_us"], 4)
        if rates:
            return _digits(one["bandwidth_mbit_s"], 4)
        text = f"{time} ± {_digits(one['mad_us'], 2)}" if one["launches"] > 1 else time
        if one["time_min_us"] is None:
            return text
        return f"{text} ({_digits(one['time_min_us'], 4)}, {_digits(one['time_avg_us'], 4)})"

    rows = [
        [f"{size:,}", *(cell(size, name) for name in names)]
        for size in sorted({one["size_bytes"] for one in figure.rows})
    ]
    head = ["bytes", *(name.replace(" ", "\n", 1) for name in names)]
    if least:
        head.append("envelope")
        for row, size in zip(rows, sorted({size for size, _ in at}), strict=True):
            row.append(_digits(least[size], 4) if size in least else "–")
    caption = "Mbit/s each way" if rates else "µs, median over launches ± MAD"
    if not rates and of_ranks:
        caption += " of the slowest rank's time (the fastest rank's, the mean of the ranks)"
    return DataTable(head, rows, EVERY, caption)


def _digits(value: float, digits: int) -> str:
    """Return a number to so many digits, without an exponent for large ones."""
    return f"{float(f'{value:.{digits}g}'):.15g}"


def netpipe_view(report: Report) -> list[list[dict[str, Any]]]:
    """Return inter-node throughput and signature, one way; NetPIPE's page has the others."""
    return [pair(report, key) for key in report.netpipe if key[:2] == MAIN_NETPIPE]


def pair(report: Report, key: tuple[str, str, str]) -> list[dict[str, Any]]:
    """Return NetPIPE's throughput and signature, which have the same data."""
    throughput, signature = report.pair(key)
    return [
        figure(throughput, report.looks, report.files),
        figure(signature, report.looks, report.files, f"chart-{throughput.name}"),
    ]
