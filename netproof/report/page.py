"""The pages of a report: the verdict, the matrix, the curves, NetPIPE, the studies, provenance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from rich.table import Table

from netproof import literature
from netproof.benchmarks import FEATURES
from netproof.case import Case
from netproof.criteria import Level
from netproof.judging import JudgedSession
from netproof.literature import Study
from netproof.provenance import NodeInJob, OfSession
from netproof.report import content
from netproof.report.charts import Figure, Looks
from netproof.report.content import Group, State, state_of
from netproof.report.html import Markup, element, joined, row, script_json, table
from netproof.verdict import Judged

MAIN = "index.html"
MAIN_NETPIPE = ("between", "oneway")
"""Path and direction whose charts stand on the main page; the others are on NetPIPE's."""
MAIN_FAILED = 2
"""How many charts of failed functions the main page shows."""

CASES_SHOWN = 40
"""How many cases a list shows before the others are to be opened."""

_POLICY = (
    "default-src 'none'; script-src 'self' file: 'unsafe-eval'; "
    "style-src 'self' file: 'unsafe-inline'; img-src 'self' file: data:"
)
"""Nothing may be fetched but what lies beside the page; Vega compiles its expressions."""

_CLASSES = {
    State.PASSED: "passed",
    State.EXPECTED: "passed",
    State.UNCONFIRMED: "passed",
    State.WARNED: "warned",
    State.ABSENT: "absent",
    State.FAILED: "failed",
}


@dataclass(frozen=True)
class Report:
    """All that the pages show.

    ``figures``: by group's name; ``netpipe``: by path, direction and partition; ``studies``, and
    why they are not there; ``provenance``, and why it is not; ``scripts``: files of ``assets`` to
    load; ``files``: the suffixes that every chart has a file of; ``command``: what made the
    report; ``rerun``: the session's own command.
    """

    judged: JudgedSession
    groups: tuple[Group, ...]
    looks: Looks
    figures: Mapping[str, Figure]
    netpipe: Mapping[tuple[str, str, str], Sequence[Figure]]
    studies: tuple[Study, ...]
    provenance: OfSession | None
    scripts: tuple[str, ...]
    files: tuple[str, ...] = ()
    command: str = ""
    not_there: Mapping[str, str] = field(default_factory=dict)

    @property
    def system(self) -> str:
        """The system that was judged."""
        return self.judged.matrix.cases[0].system

    def pages(self) -> dict[str, str]:
        """Every page by its file."""
        by_page = content.pages(self.groups)
        made = {MAIN: _document(self, f"{self.system}: {_word(self)}", _main(self, by_page))}
        for name, groups in by_page.items():
            title = groups[0].function if groups[0].case.benchmark != "netpipe" else "NetPIPE"
            made[name] = _document(self, f"{title}, {self.system}", _curves(self, title, groups))
        return made

    def all_figures(self) -> list[Figure]:
        """Every figure once."""
        return [*self.figures.values(), *(one for pair in self.netpipe.values() for one in pair)]


def _document(report: Report, title: str, body: Markup) -> str:
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", title),
        element("link", rel="icon", href="data:,"),
        element("link", rel="stylesheet", href="assets/report.css"),
    )
    scripts = [element("script", src=f"assets/{name}") for name in report.scripts]
    page = element("html", head, element("body", body, scripts), lang="en")
    return f"<!DOCTYPE html>\n{page}\n"


def _word(report: Report) -> str:
    return "passed" if report.judged.verdict.status == 0 else "failed"


def _main(report: Report, by_page: Mapping[str, Sequence[Group]]) -> Markup:
    parts = [
        ("verdict", "Verdict", _verdict(report)),
        ("matrix", "Matrix", _matrix(report, by_page)),
        ("curves", "Curves", _curves_list(report, by_page)),
        ("netpipe", "NetPIPE", _netpipe_main(report)),
        ("studies", "Beside earlier studies", _studies(report)),
        ("provenance", "Provenance, and how to repeat it", _provenance(report)),
    ]
    info = report.judged.session.info
    return joined(
        element("header", element("h1", f"Cluster interconnect of {report.system}"), _when(info)),
        element("nav", [element("a", title, href=f"#{name}") for name, title, _ in parts]),
        element(
            "main",
            [
                element(
                    "section", element("h2", title) if name != "verdict" else None, made, id=name
                )
                for name, title, made in parts
            ],
        ),
    )


def _when(info: Mapping[str, Any]) -> Markup:
    start, end = (_time(_stated(info, key)) for key in ("time_start", "time_end"))
    told = f"Measured from {start} to {end}, started on {_stated(info, 'hostname')}"
    return element("p", told, class_="faint")


def _time(stated: str) -> str:
    """ReFrame's time of day as people read it; anything else as it is."""
    try:
        return f"{datetime.strptime(stated, '%Y%m%dT%H%M%S%z'):%Y-%m-%d %H:%M:%S %z}"
    except ValueError:
        return stated


def _stated(info: Mapping[str, Any], key: str) -> str:
    value = info.get(key)
    return f"(the session does not state {key})" if value in (None, "") else str(value)


# Verdict


def _verdict(report: Report) -> Markup:
    verdict = report.judged.verdict
    passed = verdict.status == 0
    warned = passed and any(state_of(one) is State.WARNED for one in verdict.cases)
    state = State.FAILED if not passed else State.WARNED if warned else State.PASSED
    by_state: dict[State, list[Judged]] = {}
    for one in verdict.cases:
        by_state.setdefault(state_of(one), []).append(one)
    links = {id(one): group.link for group in report.groups for one in group.members}
    return joined(
        element(
            "p",
            element("strong", f"{state.sign} {'Passed' if passed else 'Failed'}"),
            element("span", f"{content.sentence(verdict)}."),
            class_=f"verdict {_CLASSES[state]}",
        ),
        _faults(verdict.faults),
        _failures(by_state.get(State.FAILED, []), links),
        _not_run(by_state.get(State.ABSENT, [])),
        _warnings(verdict.cases, links),
        _unconfirmed(verdict.cases, links),
        _notes(report),
    )


def _faults(faults: Sequence[str]) -> Markup | None:
    if not faults:
        return None
    return joined(
        element("h3", "Faults beyond single cases"),
        element("ul", [element("li", fault, class_="failed") for fault in faults], class_="cases"),
    )


def _failures(several: Sequence[Judged], links: Mapping[int, str]) -> Markup:
    if not several:
        return element("p", "No case that ran failed.")
    return joined(
        element("h3", f"What failed: {_cases(len(several))}"),
        _case_list(
            [(one, [*one.faults, *_reasons(one, Level.FAIL)]) for one in several],
            links,
            "failed",
        ),
    )


def _case_list(
    several: Sequence[tuple[Judged, Sequence[str]]], links: Mapping[int, str], class_: str
) -> Markup:
    """Cases with their reasons; of very many, those after the first are to be opened."""
    made = [
        element(
            "li",
            element("a", _case_name(one.case), href=links[id(one)]),
            element("ul", [element("li", why) for why in reasons]),
            class_=class_,
        )
        for one, reasons in several
    ]
    first, others = made[:CASES_SHOWN], made[CASES_SHOWN:]
    return joined(
        element("ul", first, class_="cases"),
        element(
            "details",
            element("summary", f"and {len(others)} more"),
            element("ul", others, class_="cases"),
        )
        if others
        else None,
    )


def _cases(count: int) -> str:
    return "1 case" if count == 1 else f"{count} cases"


def _case_name(case: Case) -> str:
    return f"{content.configuration(case)}: {content.function_name(case)}, {content.variant(case)}"


def _reasons(judged: Judged, level: Level) -> list[str]:
    return [content.reason(ruling) for ruling in judged.rulings if ruling.level is level]


def _not_run(several: Sequence[Judged]) -> Markup:
    if not several:
        return element("p", "Every case that was owed ran.")
    by_place: dict[tuple[str, str], list[Judged]] = {}
    for one in several:
        by_place.setdefault((content.configuration(one.case), "; ".join(one.faults)), []).append(
            one
        )
    rows = [
        row(
            where,
            str(len(cases)),
            element(
                "td",
                why,
                element(
                    "details",
                    element("summary", "which"),
                    element(
                        "ul",
                        [
                            element(
                                "li",
                                f"{content.function_name(one.case)}, {content.variant(one.case)}",
                            )
                            for one in cases
                        ],
                    ),
                ),
            ),
        )
        for (where, why), cases in by_place.items()
    ]
    return joined(
        element("h3", f"What did not run: {_cases(len(several))}"),
        table([row("configuration", "cases", "why", head=True)], rows),
    )


def _warnings(cases: Sequence[Judged], links: Mapping[int, str]) -> Markup | None:
    several = [(one, _reasons(one, Level.WARN)) for one in cases if one.said(Level.WARN)]
    if not several:
        return None
    return element(
        "details",
        element("summary", f"Warnings: {_cases(len(several))}"),
        _case_list(several, links, "warned"),
        open=True if len(several) <= 4 else None,
    )


def _unconfirmed(cases: Sequence[Judged], links: Mapping[int, str]) -> Markup | None:
    several = []
    for one in cases:
        shown = [
            content.reason(ruling)
            for ruling in one.rulings
            if ruling.level is Level.SHOWN
            and (ruling.confirmation is not None or "; known: " in ruling.why)
        ]
        if shown:
            several.append((one, shown))
    if not several:
        return None
    return element(
        "details",
        element("summary", f"Flagged, but not confirmed, or known of: {_cases(len(several))}"),
        _case_list(several, links, "shown"),
    )


def _notes(report: Report) -> Markup | None:
    verdict = report.judged.verdict
    told = [
        *(
            f"Not here: {one.partition} {one.environment}"
            f" {FEATURES.get(one.benchmark, one.benchmark)}: {one.reason}"
            for one in verdict.absences
        ),
        *(f"Note: {note}" for note in verdict.notes),
        *(f"Not compared with an earlier session: {reason}" for reason in report.judged.unread),
    ]
    if not told:
        return None
    return joined(
        element("h3", "What has to be said besides"),
        element("ul", [element("li", one) for one in told]),
    )


# Matrix


def _matrix(report: Report, by_page: Mapping[str, Sequence[Group]]) -> Markup:
    baseline = report.judged.matrix.baseline
    explained = (
        "Score: geometric mean over message sizes of the baseline's time over the time here, so"
        f" above 1 is faster than the baseline {baseline}; below it, the 95 % interval over"
        " launches."
        if baseline is not None
        else "There are no scores: the baseline's partition is no part of what was asked for."
    )
    legend = ", ".join(f"{state.sign} {state.word}" for state in State if state is not State.PASSED)
    functions: dict[str, list[Group]] = {}
    for groups in by_page.values():
        for group in groups:
            functions.setdefault(group.function, []).append(group)
    return joined(
        element("p", explained),
        element("p", f"Signs: {legend}. Each cell leads to its curves.", class_="faint"),
        element(
            "div",
            [_function_matrix(report, name, groups) for name, groups in functions.items()],
            class_="matrices",
        ),
    )


def _function_matrix(report: Report, function: str, groups: Sequence[Group]) -> Markup:
    cells = {
        (one.case.environment, one.case.partition, group.name): (one, group)
        for group in groups
        for one in group.members
    }
    partitions = [name for name in report.looks.partitions if any(key[1] == name for key in cells)]
    environments = [
        name for name in report.looks.environments if any(key[0] == name for key in cells)
    ]
    head = element(
        "tr",
        element("th", "switch", scope="col"),
        element("th", "path" if groups[0].case.benchmark == "netpipe" else "ranks", scope="col"),
        [element("th", name, scope="col") for name in environments],
    )
    # Paper and telephones are narrow, and there are more switches and ranks than libraries.
    rows = []
    for partition in partitions:
        there = [
            group
            for group in groups
            if any(one.case.partition == partition for one in group.members)
        ]
        rows += [
            element(
                "tr",
                element("th", partition, scope="rowgroup", rowspan=len(there))
                if group is there[0]
                else None,
                element("th", element("a", group.variant, href=group.link), scope="row"),
                [
                    _cell(*cells.get((environment, partition, group.name), (None, None)))
                    for environment in environments
                ],
            )
            for group in there
        ]
    return element(
        "section",
        element("h3", function),
        table([head], rows, caption=_sizes_compared(groups), class_="matrix"),
    )


def _cell(judged: Judged | None, group: Group | None) -> Markup:
    if judged is None or group is None:
        return element("td", "–", class_="no-case", title="not in the configuration")
    state, score = state_of(judged), judged.score()
    sign = element("span", f"{state.sign} ", class_="sign") if state is not State.PASSED else None
    below: object = None
    title = state.word
    if score is not None and score.value is not None:
        shown = f"{score.value:.2f}"
        if score.interval is not None:
            below = element("small", f"{score.interval[0]:.2f}–{score.interval[1]:.2f}")
        else:
            below = element("small", "no interval")
        title = f"{state.word}; {score.why}"
    elif judged.measured is None:
        shown = state.word if state is State.ABSENT else "no curve"
        title = "; ".join(judged.faults) or title
    elif judged.measured.curve.sizes == (0,):
        shown = f"{judged.measured.curve.time_us[0]:.3g} µs"
        below = element("small", "no sizes")
    else:
        shown = "no score"
    link = element("a", sign, shown, href=group.link)
    return element("td", link, below, class_=_CLASSES[state], title=title)


def _sizes_compared(groups: Sequence[Group]) -> str:
    found: dict[str, list[str]] = {}
    for group in groups:
        for one in group.members:
            score = one.score()
            if score is not None and score.common is not None:
                names = found.setdefault(f"Scores {score.common}", [])
                if one.case.partition not in names:
                    names.append(one.case.partition)
    if len(found) == 1:
        return f"{next(iter(found))}."
    return " ".join(f"{told} ({', '.join(names)})." for told, names in found.items())


# Curves


def _curves_list(report: Report, by_page: Mapping[str, Sequence[Group]]) -> Markup:
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
                        class_=_CLASSES[group.state()],
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
        if group.state() is State.FAILED and report.figures[group.name].rows
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
            "div", [_figure(report, report.figures[one.name]) for one in shown], class_="charts"
        ),
    )


def _short(group: Group) -> str:
    return group.title.removeprefix("NetPIPE ") if group.page == "netpipe.html" else group.variant


def _curves(report: Report, title: str, groups: Sequence[Group]) -> Markup:
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
            class_=_CLASSES[state],
        ),
        _figure(report, report.figures[group.name]),
        _said_of(group),
        [_again(one) for one in group.members],
        id=group.name,
    )


def _said_of(group: Group) -> Markup | None:
    several = []
    for one in group.members:
        # Why there is no curve stands with the chart.
        faults = one.faults if one.measured is not None else ()
        reasons = [*faults, *_reasons(one, Level.FAIL), *_reasons(one, Level.WARN)]
        if reasons:
            class_ = "warned" if one.passed else "failed"
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


def _figure(report: Report, figure: Figure) -> Markup:
    told = [element("p", " ".join(figure.told)) if figure.told else None]
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
        script_json(figure.for_page(report.looks)),
        element("figcaption", told, _downloads(report, figure)),
        _data(figure),
    )


def _downloads(report: Report, figure: Figure) -> Markup | None:
    if not report.files:
        return None
    links = [
        [element("a", suffix.upper(), href=f"charts/{figure.name}.{suffix}"), " "]
        for suffix in report.files
    ]
    return element("p", "This chart as ", links)


def _data(figure: Figure) -> Markup:
    """The chart's data as a table: a row a size, a column a configuration."""
    names = list(dict.fromkeys(one["configuration"] for one in figure.rows))
    at = {(one["size_bytes"], one["configuration"]): one for one in figure.rows}
    least = {one["size_bytes"]: one["time_us"] for one in figure.envelope}
    rates = figure.kind != "time"

    def cell(size: int, name: str) -> str:
        one = at.get((size, name))
        if one is None:
            return "–"
        time = f"{one['time_us']:.4g}"
        if rates:
            return f"{one['bandwidth_mbit_s']:.4g} in {time}"
        return f"{time} ± {one['mad_us']:.2g}"

    rows = [
        row(
            f"{size:,}",
            *(cell(size, name) for name in names),
            *([f"{least[size]:.4g}" if size in least else "–"] if least else []),
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
    return element(
        "details", element("summary", "The data as a table"), table([head], rows, caption=caption)
    )


# NetPIPE


def _netpipe_main(report: Report) -> Markup:
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
        [element("div", [_figure(report, one) for one in pair], class_="charts") for pair in shown],
    )


def _netpipe_all(report: Report) -> Markup:
    return element(
        "section",
        element("h2", "Throughput and signature, TCP and MPI"),
        [
            element("div", [_figure(report, one) for one in pair], class_="charts")
            for pair in report.netpipe.values()
        ],
        id="throughput",
    )


# Studies


def _studies(report: Report) -> Markup:
    why = report.not_there.get("studies")
    if why is not None:
        return element("p", f"The studies' tables are not here: {why}")
    beside = literature.Beside(report.judged.session)
    parts = [
        element(
            "p",
            "This session's landmarks in the columns of each study; the study's own"
            " figures are one click away.",
        )
    ]
    for study in report.studies:
        here = literature.tables_beside(study, beside)
        reasons = beside.reasons()
        parts.append(
            element(
                "section",
                element("h3", study.title),
                [_of_rich(one) for one in here]
                or element("p", "This study has figures of its own kind, none of a session's."),
                element(
                    "details",
                    element("summary", f"Why {len(reasons)} figures are absent"),
                    element("ul", [element("li", reason) for reason in reasons]),
                )
                if reasons
                else None,
                element(
                    "details",
                    element("summary", "What the study has"),
                    element("p", study.source, class_="faint"),
                    [_of_rich(one) for one in literature.study_tables(study)],
                    element("ul", [element("li", one) for one in literature.study_notes(study)]),
                ),
            )
        )
    return joined(parts)


def _of_rich(made: Table) -> Markup:
    """A table for the terminal as one of a page."""
    columns = made.columns
    cells = zip(*(list(column.cells) for column in columns), strict=True)
    right = ["n" if column.justify == "right" else None for column in columns]
    head = element(
        "tr",
        [
            element("th", str(column.header), scope="col", class_=class_)
            for column, class_ in zip(columns, right, strict=True)
        ],
    )
    rows = [
        element(
            "tr",
            [
                element(
                    "td" if place else "th",
                    str(one),
                    class_=right[place],
                    scope=None if place else "row",
                )
                for place, one in enumerate(several)
            ],
        )
        for several in cells
    ]
    return table([head], rows, caption=made.caption)


# Provenance


def _provenance(report: Report) -> Markup:
    session, found = report.judged.session, report.provenance
    info = session.info
    revision = None
    parts: list[Markup | None] = []
    if found is None:
        parts.append(element("p", f"It cannot be told: {report.not_there['provenance']}"))
    elif found.software is not None:
        revision = found.software.git_revision
    command = info.get("cmdline")
    lines = [
        *([f"git checkout {revision}"] if revision else []),
        "ci/setup",
        ". ci/activate",
        command or "",
    ]
    told = []
    if not revision:
        told.append("The revision is not known: check out the one that was used yourself.")
    if found is not None and found.software is not None and found.software.git_changed:
        told.append("The checkout held changes that are in no revision.")
    if not command:
        told.append("The session does not state its command.")
    repeat = [
        element("h3", "To repeat the run"),
        element("pre", "\n".join(line for line in lines if line)),
        [element("p", sentence) for sentence in told],
        element("p", "This report again: ", element("code", report.command)),
    ]
    facts = _facts(
        {
            "session": str(session.path),
            "ReFrame": _stated(info, "version"),
            "run in": _stated(info, "workdir"),
            "by": _stated(info, "user"),
        }
    )
    if found is not None:
        parts += [_software(found), _differences(found), _nodes(found.nodes), _unknown(found)]
    return joined(repeat, element("h3", "The session"), facts, _settings(report), parts)


def _facts(several: Mapping[str, object]) -> Markup:
    return element(
        "dl",
        [[element("dt", name), element("dd", value)] for name, value in several.items()],
        class_="facts",
    )


def _settings(report: Report) -> Markup:
    """What the configuration says of each partition."""
    rows = [
        row(
            name,
            one.switch,
            one.nic,
            one.driver,
            f"{one.link_mbit_s:g}",
            str(one.mtu),
            ", ".join(map(str, one.rank_counts)),
            str(one.ranks_per_node),
        )
        for name, one in report.judged.matrix.partitions.items()
    ]
    head = row(
        "partition", "switch", "NIC", "driver", "Mbit/s", "MTU", "ranks", "ranks a node", head=True
    )
    return joined(element("h3", "The partitions, as configured"), table([head], rows))


def _software(found: OfSession) -> Markup | None:
    one = found.software
    if one is None:
        return None
    facts = {
        "netproof": one.netproof,
        "ReFrame": one.reframe,
        "Slurm": one.slurm or f"not known: {one.absent.get('slurm', 'no reason is given')}",
        "revision": one.git_revision
        or f"not known: {one.absent.get('git_revision', 'no reason is given')}",
    }
    files = [row(file.path, file.kind, file.sha256) for file in one.files]
    return joined(
        element("h3", "Software and files"),
        _facts(facts),
        element(
            "details",
            element("summary", f"Configuration and references: {len(files)} files"),
            table([row("file", "kind", "SHA-256", head=True)], files),
        ),
    )


def _differences(found: OfSession) -> Markup | None:
    if not found.nodes:
        return None
    if not found.differences:
        return element("p", "All nodes of a partition are alike in all that was recorded.")
    return joined(
        element("h3", "In what nodes or jobs differ"),
        element("ul", [element("li", one) for one in found.differences]),
    )


def _nodes(nodes: Sequence[NodeInJob]) -> Markup | None:
    """Each node of a partition once; where jobs found it changed, the differences say so."""
    if not nodes:
        return None
    once = {(one.partition, one.node.node): one for one in nodes}
    head = row(
        "node",
        "partition",
        "CPU",
        "kernel",
        "NIC",
        "driver",
        "firmware",
        "Mbit/s",
        "MTU",
        head=True,
    )
    rows, more = [], []
    for found in once.values():
        one = found.node
        stated = (one.cpu, one.kernel, one.nic, one.driver, one.firmware, one.link_mbit_s, one.mtu)
        rows.append(row(one.node, found.partition, *("–" if v is None else str(v) for v in stated)))
        several = {
            "offloads": one.offloads,
            "coalescing": one.coalescing,
            "sysctls": one.sysctls,
            "programs": one.programs,
        }
        more.append(
            element(
                "details",
                element("summary", f"{one.node}: offloads, coalescing, sysctls, programs"),
                _facts(
                    {
                        f"{group} {key}": value
                        for group, values in several.items()
                        for key, value in values.items()
                    }
                ),
            )
        )
    return joined(element("h3", "Nodes"), table([head], rows), more)


def _unknown(found: OfSession) -> Markup | None:
    if not found.unknown:
        return None
    return element(
        "details",
        element("summary", f"What is not known: {len(found.unknown)}"),
        _facts(found.unknown),
        open=True if len(found.unknown) <= 4 else None,
    )
