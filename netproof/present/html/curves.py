"""The third and fourth part of a report, and its other pages: charts with what was said of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from netproof.criteria import Level
from netproof.present.html import content
from netproof.present.html.charts import ChartFigure, Looks
from netproof.present.html.content import CaseState, Group
from netproof.present.html.html import Markup, element, joined, row, script_json, table
from netproof.present.html.material import MAIN, Report
from netproof.verdict.verdict import Judged

MAIN_NETPIPE = ("between", "oneway")
"""Path and direction whose charts stand on the main page; the others are on NetPIPE's."""
MAIN_FAILED = 2
"""How many charts of failed functions the main page shows."""


def part(report: Report, by_page: Mapping[str, Sequence[Group]]) -> Markup:
    """Links to all charts of time against size, and those of functions that failed."""
    rows = [
        row(
            element("a", "NetPIPE" if name == "netpipe.html" else groups[0].function, href=name),
            joined(
                [
                    element(
                        "span",
                        element("span", f"{group.state().sign} ", class_="sign"),
                        element("a", _short(group), href=group.link),
                        "   ",
                        class_=group.state().look,
                        title=group.state().word,
                    )
                    for group in groups
                ]
            ),
        )
        for name, groups in by_page.items()
    ]
    failed = [
        group
        for group in report.groups
        if group.state() is CaseState.FAILED and report.figures[group.name].rows
    ]
    shown = failed[:MAIN_FAILED]
    return joined(
        element(
            "p",
            "Time against message size of all configurations, with the envelope, the flagged sizes"
            " and the spread over launches, for each function and count of ranks:",
        ),
        table([row("function", "charts, and the worst that became of a case", head=True)], rows),
        element("h3", "Of those that failed") if shown else None,
        element(
            "div",
            [figure(report.figures[one.name], report.looks, report.files) for one in shown],
            class_="charts",
        ),
    )


def _short(group: Group) -> str:
    return group.title.removeprefix("NetPIPE ") if group.page == "netpipe.html" else group.variant


def page(report: Report, title: str, groups: Sequence[Group]) -> Markup:
    """The page of a function, or of NetPIPE."""
    netpipe = groups[0].case.benchmark == "netpipe"
    return joined(
        element("header", element("nav", element("a", "← the whole report", href=MAIN))),
        element(
            "main",
            element("h1", f"{title} on {report.system}"),
            [_group(report, group) for group in groups],
            _netpipe_all(report) if netpipe else None,
        ),
    )


def _group(report: Report, group: Group) -> Markup:
    state = group.state()
    return element(
        "section",
        element(
            "h2",
            element("span", f"{state.sign} ", class_="sign", title=state.word),
            group.title,
            class_=state.look,
        ),
        figure(report.figures[group.name], report.looks, report.files),
        _said_of(group),
        [_again(one) for one in group.members],
        id=group.name,
    )


def _said_of(group: Group) -> Markup | None:
    several = []
    for one in group.members:
        # Why there is no curve stands with the chart.
        faults = one.faults if one.measured is not None else ()
        reasons = [*faults, *content.reasons(one, Level.FAIL)]
        reasons += [f"inconclusive: {why}" for why in content.reasons(one, Level.INCONCLUSIVE)]
        reasons += content.reasons(one, Level.WARN)
        if reasons:
            class_ = {Level.FAIL: "failed", Level.INCONCLUSIVE: "inconclusive"}.get(
                one.level, "warned"
            )
            several.append(
                element(
                    "li",
                    element("b", content.configuration(one.case)),
                    element("ul", [element("li", why) for why in reasons]),
                    class_=class_,
                )
            )
    return element("ul", several, class_="cases") if several else None


def _again(judged: Judged) -> Markup | None:
    """Both curves of what was measured again, at its sizes."""
    if judged.again is None or judged.measured is None:
        return None
    curve = judged.measured.curve
    first = dict(zip(curve.sizes, curve.time_us, strict=True))
    launches = [dict(zip(one.sizes, one.time_us, strict=True)) for one in judged.again.launches]
    flagged = {ruling.finding.size for ruling in judged.flags()}
    sizes = sorted(set().union(*launches)) if launches else []
    rows = [
        row(
            f"{'flagged: ' if size in flagged else ''}{size:,}",
            *(f"{one[size]:.1f}" if size in one else "–" for one in [first, *launches]),
            numbers_from=0,
        )
        for size in sizes
    ]
    head = row(
        "bytes",
        "first, µs",
        *(f"again {number}, µs" for number in range(1, len(launches) + 1)),
        head=True,
        numbers_from=0,
    )
    where = f"job {judged.again.jobid} on {', '.join(judged.again.nodes)}"
    return element(
        "details",
        element("summary", f"{content.configuration(judged.case)}: measured again in {where}"),
        [element("p", fault) for fault in judged.again.faults],
        table([head], rows) if rows else element("p", "No launch of it was complete."),
    )


def figure(figure: ChartFigure, looks: Looks, files: Sequence[str]) -> Markup:
    """A chart with what is told of it and its data; ``files``: what else there is of it."""
    sentences = [*figure.told, *([figure.hint] if figure.hint else [])]
    told = [element("p", " ".join(sentences)) if sentences else None]
    if figure.missing:
        told.append(element("p", "Not drawn:"))
        told.append(element("ul", [element("li", why) for why in figure.missing]))
    if not figure.rows:
        empty = element("p", "There is no curve to draw.")
        return element("figure", element("h3", figure.title), empty, element("figcaption", told))
    return element(
        "figure",
        element("h3", figure.title),
        element(
            "div",
            element(
                "p",
                "The scripts in the folder “assets” draw the chart here; its data is below.",
                class_="faint",
            ),
            class_="chart",
        ),
        script_json(figure.for_page(looks)),
        element("figcaption", told, _downloads(figure, files)),
        _data(figure),
    )


def _downloads(figure: ChartFigure, files: Sequence[str]) -> Markup | None:
    if not files:
        return None
    links = [
        [element("a", suffix.upper(), href=f"charts/{figure.name}.{suffix}"), " "]
        for suffix in files
    ]
    return element("p", "This chart as ", links)


def _data(figure: ChartFigure) -> Markup:
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
        row(
            f"{size:,}",
            *(cell(size, name) for name in names),
            *([_digits(least[size], 4) if size in least else "–"] if least else []),
            numbers_from=0,
        )
        for size in sorted({one["size_bytes"] for one in figure.rows})
    ]
    head = row(
        "bytes",
        *(name.replace(" ", "\n", 1) for name in names),
        *(["envelope"] if least else []),
        head=True,
        numbers_from=0,
    )
    caption = "Mbit/s each way in µs" if rates else "µs, median over launches ± MAD"
    if not rates and any(one["time_min_us"] is not None for one in figure.rows):
        caption += " of the slowest rank's time (the fastest rank's, the mean of the ranks)"
    return element(
        "details", element("summary", "The data as a table"), table([head], rows, caption=caption)
    )


def _digits(value: float, digits: int) -> str:
    """A number to so many digits, and never with an exponent for being large."""
    return f"{float(f'{value:.{digits}g}'):.15g}"


def netpipe_part(report: Report) -> Markup:
    """Throughput and signature between nodes, one way."""
    shown = [pair for key, pair in report.netpipe.items() if key[:2] == MAIN_NETPIPE]
    if not shown:
        return element("p", "No NetPIPE was to run between nodes, so there is nothing to show.")
    return joined(
        element(
            "p",
            "Two ranks on two nodes, one way. ",
            element("a", "Inside a node, and both ways at once", href="netpipe.html#throughput"),
            ", are on NetPIPE's page.",
        ),
        [
            element(
                "div", [figure(one, report.looks, report.files) for one in pair], class_="charts"
            )
            for pair in shown
        ],
    )


def _netpipe_all(report: Report) -> Markup:
    return element(
        "section",
        element("h2", "Throughput and signature, TCP and MPI"),
        [
            element(
                "div", [figure(one, report.looks, report.files) for one in pair], class_="charts"
            )
            for pair in report.netpipe.values()
        ],
        id="throughput",
    )
