"""The third and fourth part of a report, and its other pages: charts with what was said of them."""

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
from netproof.verdict.judged import Judged

MAIN_NETPIPE = ("between", "oneway")
"""Path and direction whose charts stand on the main page; the others are on NetPIPE's."""
MAIN_FAILED = 2
"""How many charts of failed functions the main page shows."""


@dataclass(frozen=True)
class FigureView:
    """A chart with what is told of it and its data.

    ``specification``: of the chart, as JSON, None where there is no curve; ``missing``: what is not
    drawn, and why; ``files``: other forms of it, by what they are called.
    """

    title: str
    specification: Markup | None
    sentences: tuple[str, ...]
    missing: tuple[str, ...]
    files: Mapping[str, str]
    data: DataTable | None


@dataclass(frozen=True)
class ChartLink:
    """The way to a chart, with the worst that became of a case in it."""

    name: str
    link: str
    look: str
    sign: str
    word: str


@dataclass(frozen=True)
class PageLink:
    """The way to a page of charts, and to each of them."""

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
    """What is against a case of a chart."""

    configuration: str
    look: str
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class AgainView:
    """What was measured again of a case, at its sizes; ``data``: None where nothing is complete."""

    configuration: str
    where: str
    faults: tuple[str, ...]
    data: DataTable | None


@dataclass(frozen=True)
class GroupView:
    """A chart of a function's page, with all that is to be said of its cases."""

    name: str
    title: str
    look: str
    sign: str
    word: str
    figure: FigureView
    said: tuple[SaidOfCase, ...]
    again: tuple[AgainView, ...]


def view(report: Report, by_page: Mapping[str, Sequence[Group]]) -> CurvesView:
    """All that the main page shows of curves."""
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
    """The page of a function, or of NetPIPE."""
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
    # Why there is no curve stands with the chart.
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
    """Both curves of what was measured again, at its sizes."""
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
    """A chart as pages show it; ``files``: the suffixes of what else there is of it."""
    drawn = bool(figure.rows)
    return FigureView(
        title=figure.title,
        specification=script_json(figure.for_page(looks)) if drawn else None,
        sentences=(*figure.told, *([figure.hint] if figure.hint else [])),
        missing=tuple(map(str, figure.missing)),
        files={one.upper(): f"charts/{figure.name}.{one}" for one in files} if drawn else {},
        data=_data(figure) if drawn else None,
    )


def _data(figure: ChartFigure) -> DataTable:
    """The chart's data as a table: a row a size, a column a configuration."""
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
    """A number to so many digits, and never with an exponent for being large."""
    return f"{float(f'{value:.{digits}g}'):.15g}"


def netpipe_view(report: Report) -> list[tuple[FigureView, ...]]:
    """Throughput and signature between nodes, one way; the others are on NetPIPE's page."""
    return [_pair(report, pair) for key, pair in report.netpipe.items() if key[:2] == MAIN_NETPIPE]


def _pair(report: Report, pair: Sequence[ChartFigure]) -> tuple[FigureView, ...]:
    return tuple(figure(one, report.looks, report.files) for one in pair)
