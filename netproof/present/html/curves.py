"""Third and fourth part of a report, and its other pages: charts with their findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from netproof.benchmarks import registry
from netproof.criteria import Level
from netproof.present.html import content
from netproof.present.html.charts import ChartFigure
from netproof.present.html.content import CaseState, Group
from netproof.present.html.html import DataTable, Markup, number_table, render, script_json
from netproof.present.html.looks import Looks
from netproof.present.html.material import MAIN, Report
from netproof.verdict.verdict import Judged

MAIN_NETPIPE = ("between", "oneway")
"""Path and direction whose charts are on the main page; the others are on NetPIPE's."""
MAIN_FAILED = 2
"""Charts of failed functions on the main page."""


@dataclass(frozen=True)
class FigureView:
    """A chart with its sentences and its data.

    ``specification``: of the chart, as JSON, None without a curve; ``missing``: curves not drawn,
    and why; ``files``: other forms of it, by their names.
    """

    title: str
    specification: Markup | None
    sentences: tuple[str, ...]
    missing: tuple[str, ...]
    files: Mapping[str, str]
    data: DataTable | None


@dataclass(frozen=True)
class ChartLink:
    """Link to a chart, with the worst state of a case in it."""

    name: str
    link: str
    look: str
    sign: str
    word: str


@dataclass(frozen=True)
class PageLink:
    """Link to a page of charts, and to each of them."""

    title: str
    link: str
    charts: tuple[ChartLink, ...]


@dataclass(frozen=True)
class CurvesView:
    """Links to all charts of time against size, and those of functions that ``failed``."""

    pages: tuple[PageLink, ...]
    failed: tuple[FigureView, ...]


@dataclass(frozen=True)
class SaidOfCase:
    """Findings against a case of a chart."""

    configuration: str
    look: str
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class AgainView:
    """Repeated measurements of a case at its sizes; ``data``: None where none is complete."""

    configuration: str
    where: str
    faults: tuple[str, ...]
    data: DataTable | None


@dataclass(frozen=True)
class GroupView:
    """A chart of a function's page, with all findings on its cases."""

    name: str
    title: str
    look: str
    sign: str
    word: str
    figure: FigureView
    said: tuple[SaidOfCase, ...]
    again: tuple[AgainView, ...]


def view(report: Report, by_page: Mapping[str, Sequence[Group]]) -> CurvesView:
    """Return all that the main page shows of curves."""
    failed = [
        group
        for group in report.groups
        if group.state() is CaseState.FAILED and report.figures[group.name].rows
    ]
    return CurvesView(
        tuple(
            PageLink(content.page_title(groups[0]), name, tuple(map(_chart_link, groups)))
            for name, groups in by_page.items()
        ),
        tuple(
            figure(report.figures[one.name], report.looks, report.files)
            for one in failed[:MAIN_FAILED]
        ),
    )


def _chart_link(group: Group) -> ChartLink:
    state = group.state()
    return ChartLink(group.short, group.link, state.look, state.sign, state.word)


def page(report: Report, title: str, groups: Sequence[Group]) -> str:
    """Return the page of a function, or of NetPIPE."""
    netpipe = registry.of(groups[0].case).by_protocol
    return render(
        "function.html",
        title=f"{title}, {report.system}",
        scripts=report.scripts,
        main=MAIN,
        heading=f"{title} on {report.system}",
        groups=[_group(report, group) for group in groups],
        pairs=[_pair(report, pair) for pair in report.netpipe.values()] if netpipe else None,
    )


def _group(report: Report, group: Group) -> GroupView:
    state = group.state()
    again = (_again(one) for one in group.members)
    said = (_said_of(one) for one in group.members)
    return GroupView(
        name=group.name,
        title=group.title,
        look=state.look,
        sign=state.sign,
        word=state.word,
        figure=figure(report.figures[group.name], report.looks, report.files),
        said=tuple(one for one in said if one is not None),
        again=tuple(one for one in again if one is not None),
    )


def _said_of(judged: Judged) -> SaidOfCase | None:
    # The chart has the reason for a missing curve.
    faults = judged.faults if judged.measured is not None else ()
    reasons = [*faults, *content.reasons(judged, Level.FAIL)]
    reasons += [f"inconclusive: {why}" for why in content.reasons(judged, Level.INCONCLUSIVE)]
    reasons += content.reasons(judged, Level.WARN)
    if not reasons:
        return None
    looks = {Level.FAIL: "failed", Level.INCONCLUSIVE: "inconclusive"}
    look = looks.get(judged.level, "warned")
    return SaidOfCase(content.configuration(judged.case), look, tuple(reasons))


def _again(judged: Judged) -> AgainView | None:
    """Return both curves of a repeated measurement, at its sizes."""
    if judged.again is None or judged.measured is None:
        return None
    curve = judged.measured.curve
    first = dict(zip(curve.sizes, curve.time_us, strict=True))
    launches = [dict(zip(one.sizes, one.time_us, strict=True)) for one in judged.again.launches]
    flagged = {ruling.finding.size for ruling in judged.flags()}
    sizes = sorted(set().union(*launches)) if launches else []
    rows = [
        (
            f"{'flagged: ' if size in flagged else ''}{size:,}",
            *(f"{one[size]:.1f}" if size in one else "–" for one in [first, *launches]),
        )
        for size in sizes
    ]
    numbered = (f"again {number}, µs" for number in range(1, len(launches) + 1))
    return AgainView(
        configuration=content.configuration(judged.case),
        where=f"job {judged.again.jobid} on {', '.join(judged.again.nodes)}",
        faults=judged.again.faults,
        data=number_table(("bytes", "first, µs", *numbered), rows) if rows else None,
    )


def figure(figure: ChartFigure, looks: Looks, files: Sequence[str]) -> FigureView:
    """Return a chart as pages show it; ``files``: the suffixes of its other forms."""
    drawn = bool(figure.rows)
    return FigureView(
        title=figure.title,
        specification=script_json(figure.for_page(looks)) if drawn else None,
        sentences=(*figure.sentences, *([figure.hint] if figure.hint else [])),
        missing=tuple(map(str, figure.missing)),
        files={one.upper(): f"charts/{figure.name}.{one}" for one in files} if drawn else {},
        data=_data(figure) if drawn else None,
    )


def _data(figure: ChartFigure) -> DataTable:
    """Return the chart's data as a table: a row per size, a column per configuration."""
    names = list(dict.fromkeys(one["configuration"] for one in figure.rows))
    at = {(one["size_bytes"], one["configuration"]): one for one in figure.rows}
    least = {one["size_bytes"]: one["time_us"] for one in figure.envelope}
    rates = figure.kind != "time"

    def cell(size: int, name: str) -> str:
        one = at.get((size, name))
        if one is None:
            return "–"
        time = _digits(one["time_us"], 4)
        if rates:
            return f"{_digits(one['bandwidth_mbit_s'], 4)} in {time}"
        of_ranks = ""
        if one["time_min_us"] is not None:
            of_ranks = f" ({_digits(one['time_min_us'], 4)}, {_digits(one['time_avg_us'], 4)})"
        return f"{time} ± {_digits(one['mad_us'], 2)}{of_ranks}"

    rows = [
        (
            f"{size:,}",
            *(cell(size, name) for name in names),
            *([_digits(least[size], 4) if size in least else "–"] if least else []),
        )
        for size in sorted({one["size_bytes"] for one in figure.rows})
    ]
    head = (
        "bytes",
        *(name.replace(" ", "\n", 1) for name in names),
        *(["envelope"] if least else []),
    )
    caption = "Mbit/s each way in µs" if rates else "µs, median over launches ± MAD"
    if not rates and any(one["time_min_us"] is not None for one in figure.rows):
        caption += " of the slowest rank's time (the fastest rank's, the mean of the ranks)"
    return number_table(head, rows, caption)


def _digits(value: float, digits: int) -> str:
    """Return a number to so many digits, without an exponent for large ones."""
    return f"{float(f'{value:.{digits}g}'):.15g}"


def netpipe_view(report: Report) -> list[tuple[FigureView, ...]]:
    """Return inter-node throughput and signature, one way; NetPIPE's page has the others."""
    return [_pair(report, pair) for key, pair in report.netpipe.items() if key[:2] == MAIN_NETPIPE]


def _pair(report: Report, pair: Sequence[ChartFigure]) -> tuple[FigureView, ...]:
    return tuple(figure(one, report.looks, report.files) for one in pair)
