"""Pages of a report: the main one in a reader's order, and one for each function."""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import islice
from operator import itemgetter
from pathlib import Path

from netproof.benchmarks import registry
from netproof.comparison.comparison import Against, Outcome
from netproof.criteria import Level
from netproof.diagnosis import diagnosis
from netproof.diagnosis.diagnosis import Diagnosis
from netproof.diagnosis.evidence import NO_EARLIER
from netproof.errors import grouped
from netproof.present import compared, studies, terminal
from netproof.present.diagnosis import headline, rows
from netproof.present.document import Block, Cell, DataTable, Links, Part, Sentences
from netproof.present.export import csv_cell
from netproof.present.html import content
from netproof.present.html.charts import MARKS, ChartFigure
from netproof.present.html.content import CaseState, Group, configuration
from netproof.present.html.folder import draw, page_of, replacing, write_assets
from netproof.present.html.report import (
    CSV,
    HTML,
    MAIN,
    STUDIES,
    Report,
    key_figures,
    node_blocks,
    provenance_blocks,
    stated,
    tested,
)
from netproof.present.session import cpu_blocks, scores
from netproof.present.verdict import power_blocks, remarks, repeated_table, state
from netproof.present.wording import counted, file_name
from netproof.session.measured import MeasuredAgain
from netproof.verdict import PASSED, session_verdict
from netproof.verdict.verdict import (
    CaseVerdict,
    CpuRows,
    Crossover,
    StoredResults,
    Verdict,
    breakdown,
    cpu_rows,
    crossovers,
    red_cases,
)

MAIN_NETPIPE = ("inter-node", "oneway")
"""Path and direction whose charts are on the main page; the others are on NetPIPE's."""
MAIN_FAILED = 2
"""Charts of failed functions on the main page."""
_SHOWN = (Level.FAIL, Level.INCONCLUSIVE, Level.WARN)
"""Levels that have reasons on a page."""


def write(report: Report, folder: Path) -> None:
    """Write a report into a folder, replacing an earlier one: all of it or nothing.

    Raises NetproofError where the folder holds other things than a report, and OSError where it
    cannot be written.
    """
    with replacing(folder) as new:
        if HTML in report.formats:
            with terminal.working("writing the pages"):
                write_assets(new / "assets", folder / "assets")
                for name, page in pages(report):
                    (new / name).write_text(page, encoding="utf-8")
        if not report.files:
            return
        charts = new / "charts"
        charts.mkdir()
        for figure in terminal.tracked(list(report.all_figures()), "drawing the charts"):
            for suffix in report.files if figure.rows else ():
                path = charts / f"{figure.name}.{suffix}"
                if suffix == CSV:
                    _write_csv(figure, path)
                else:
                    draw(figure.for_file(), path)


def _write_csv(figure: ChartFigure, path: Path) -> None:
    """Write the chart's points, with the flags at each, and the envelope as further columns.

    Repeated measurements are in a file of their own.
    """
    place = itemgetter("configuration", "size_bytes")
    flagged = grouped((place(one), one) for mark in MARKS for one in figure.data.get(mark, ()))
    least = {one["size_bytes"]: one["time_us"] for one in figure.data.get("envelope", ())}
    rows = []
    for one in figure.rows:
        flags = "; ".join(f"{f['criterion']} {f['mark']}" for f in flagged.get(place(one), ()))
        rows.append({**one, "envelope_us": least.get(one["size_bytes"]), "flags": flags})
    again = figure.data.get("measured again", [])
    for to, several in ((path, rows), (path.with_stem(f"{path.stem}-again"), again)):
        if several:
            with to.open("w", encoding="utf-8", newline="") as stream:
                writer = csv.DictWriter(stream, several[0])
                writer.writeheader()
                for row in several:
                    writer.writerow({key: csv_cell(value) for key, value in row.items()})


def pages(report: Report) -> Iterator[tuple[str, str]]:
    """Yield every page of a report: its file and its text."""
    by_page = grouped((one.page, one) for one in report.groups)
    costs, system = cpu_rows(report.judged.verdict), report.system
    yield MAIN, _main(report, by_page, costs)
    for partition, name in report.partition_pages.items():
        own = {page: one for page, one in by_page.items() if one[0].partition == partition}
        of_partition = tuple(row for row in costs[0] if row[0].partition == partition)
        parts = list(_results(report, own, (of_partition, {}), partition))
        heading = f"{partition} on {system}"
        yield name, page_of(partition, parts, heading=heading, back=MAIN, files=report.files)
    if report.partition_pages:
        title = "Compared with earlier studies"
        parts = [("studies", title, list(studies.report_blocks(report)))]
        yield STUDIES, page_of(title, parts, heading=f"{system} and earlier studies", back=MAIN)
    for name, groups in by_page.items():
        yield name, _function(report, groups)
    if report.against is not None:
        yield report.against_page, _switch(report, report.against)


def _main(report: Report, by_page: Mapping[str, Sequence[Group]], costs: CpuRows) -> str:
    """Return the main page; of very many cases, with a link to each partition's page."""
    judged = report.judged.verdict
    parts: list[Part] = [("verdict", Cell("Verdict", "unseen"), list(_verdict(report)))]
    if report.against is not None:
        name, *_ = report.against
        text = "Better or worse, where it breaks down, and plots of that"
        link = Cell(f"{name} against the others", link=report.against_page)
        parts.append(("switch", f"Switch {name}", [link, f"{text}."]))
    if judged.compared_with is not None:
        parts.append(("compared_with", "Compared with", _compared_with(judged.compared_with)))
    if not report.partition_pages:
        parts += _results(report, by_page, costs)
        of_studies = list(studies.report_blocks(report))
        parts.append(("studies", "Compared with earlier studies", of_studies))
    repeat = list(provenance_blocks(report))
    parts.append(("provenance", "Provenance, and how to repeat it", repeat))
    info, labels = report.judged.session.info, report.judged.session.labels()

    def time_of_day(key: str) -> str:
        try:
            return f"{datetime.strptime(stated(info, key), '%Y%m%dT%H%M%S%z'):%Y-%m-%d %H:%M:%S %z}"
        except ValueError:
            return stated(info, key)

    start, end = map(time_of_day, ("time_start", "time_end"))
    when = f"Measured from {start} to {end}, started on {stated(info, 'hostname')}"
    if labels:
        when += f"; labelled {', '.join(f'{key}={value}' for key, value in labels.items())}"
    return page_of(
        f"{report.system}: {state(judged).word.lower()}",
        parts,
        heading=f"Cluster interconnect of {report.system}",
        when=when,
        files=report.files,
    )


def _results(
    report: Report, by_page: Mapping[str, Sequence[Group]], costs: CpuRows, partition: str = ""
) -> Iterator[Part]:
    """Yield the parts on what was measured, of one partition, or of all where it is empty."""
    groups = [group for several in by_page.values() for group in several]
    if partition and (figures := key_figures(report, partition)) is not None:
        yield "figures", "Key figures", [figures]
    if of_nodes := list(node_blocks(report, partition)):
        yield "nodes", "Nodes", of_nodes
    rows = [group.every for group in groups]
    yield "matrix", "Matrix", list(scores(rows, report.judged.matrix.baseline, report.links))
    failed = (report.figure(group) for group in groups if group.state() is CaseState.FAILED)
    drawn: list[ChartFigure] = list(islice((one for one in failed if one.rows), MAIN_FAILED))
    lines = []
    for name, several in by_page.items():
        states = [
            Cell(f"{one.state().sign} {one.short}", one.state().look, link=one.link)
            for one in several
        ]
        lines.append((Cell(several[0].page_title, link=name), Cell("", "inline", states)))
    curves: list[Block] = [
        "Time against message size of all configurations, with the envelope, the flagged sizes and"
        " the spread over launches, for each function and count of ranks:",
        DataTable(("function", "charts, each with the worst outcome of a case"), lines),
    ]
    if drawn:
        curves += [Cell("Charts of what failed", "heading"), drawn]
    yield "curves", "Curves", curves
    if not partition:
        # A partition's own page of NetPIPE has these.
        pairs = [report.pair(key) for key in report.netpipe if key[:2] == MAIN_NETPIPE]
        text = "NetPIPE between nodes was not expected, so there is nothing to show."
        more = "Intra-node and bidirectional curves are on NetPIPE's page"
        link = Cell(more, link="netpipe.html#throughput")
        above = ["Two ranks on two nodes, one way.", link] if pairs else [text]
        yield "netpipe", "NetPIPE", [*above, *pairs]
    if costs[0]:
        yield "cpu", "What it costs the CPU", list(cpu_blocks(costs))[1:]


def _compared_with(found: StoredResults) -> list[Block]:
    """Return the configurations that other sessions measured, with their marks."""
    lines = []
    for _, cases, left_out in found.together():
        one = cases[0]
        marks = [*(["left out"] if left_out else []), *one.marks]
        marked = Cell("; ".join(marks), "warned") if marks else "none"
        when, name = f"{one.date}, {one.age}", configuration(one.case)
        lines.append((name, when, one.session, str(len(cases)), marked))
    if not lines:
        return [f"{found.store} has nothing to compare with."]
    return [
        "This session did not measure these configurations. Each comes from the newest session of"
        f" {found.store} in which it passed. They take part in envelope, score baseline and scores,"
        " and are not judged.",
        DataTable(("configuration", "measured on", "session", "cases", "marks"), lines),
    ]


def _verdict(report: Report) -> Iterator[Block]:
    """Yield the verdict, cases with their reasons, what did not run, and remarks."""
    judged, verdict = report.judged, report.judged.verdict
    states = {id(one): content.state_of(one) for one in verdict.cases}
    diagnoses = diagnosis.diagnose(judged) if diagnosis.partitions_of(judged) else ()
    yield state(verdict)
    yield _chips(verdict, Counter(states.values()))
    found = [(one.culprits, one.next_steps) for one in diagnoses]
    if verdict.status != PASSED and (step := diagnosis.next_step(verdict, found)):
        yield f"Next: {step}."
    yield Cell("What was tested", "heading")
    yield tested(report)
    if report.partition_pages:
        yield "Each partition has a page of its own, and so do its functions."
        yield Cell("Compared with earlier studies", link=STUDIES)
    elif (figures := key_figures(report)) is not None:
        yield Cell("Key figures", "heading")
        yield figures
    for one in diagnoses:
        yield from _diagnosis(one)
    count = len(verdict.faults)
    faults = f"Faults beyond single cases: {count}"
    yield Sentences(verdict.faults, faults, "failed", name="faults")

    def entries(
        title: str,
        look: str,
        reasons: Callable[[CaseVerdict], Sequence[str]],
        only: CaseState | None = None,
    ) -> Sentences:
        """Return cases by their reasons, those of one together; ``look``: its anchor too."""
        found: dict[tuple[str, ...], list[Cell]] = defaultdict(list)
        for one in verdict.cases:
            if only in (None, states[id(one)]) and (why := tuple(reasons(one))):
                name = f"{configuration(one.case)}: {content.named(one.case)}"
                found[why].append(Cell(name, link=report.links[one.case.key()]))
        lines = [
            Cell(cases[0].text, look, why, link=cases[0].link)
            if len(cases) == 1
            else Cell(counted(len(cases)), look, why, more=cases)
            for why, cases in found.items()
        ]
        title = f"{title}: {counted(sum(map(len, found.values())))}"
        return Sentences(lines, title, look, name=look, folded=only is None)

    fail, unsure, warn = (partial(content.reasons, level=level) for level in _SHOWN)
    failed = entries(
        "What failed", "failed", lambda one: [*one.faults, *fail(one)], CaseState.FAILED
    )
    yield failed if failed.sentences else "No case that ran failed."
    yield entries("What is inconclusive", "inconclusive", unsure, CaseState.INCONCLUSIVE)
    yield from _not_run(verdict, states)
    yield entries("Warnings", "warned", warn)
    known = "Flagged but not confirmed, or known"
    yield entries(known, "shown", lambda one: [f.reason for f in one.findings if f.forgiven])
    notes = [f"{block.mark}{one}" for block in remarks(judged)[::-1] for one in block.sentences]
    yield Sentences(notes, "Notes", name="notes")
    if report.power:
        yield from power_blocks(session_verdict.power_of(judged), report.links)


def _chips(verdict: Verdict, count: Mapping[CaseState, int]) -> list[Cell]:
    """Return links to what a reader has to look at besides the result."""
    faults, warnings = len(verdict.faults), len(verdict.node_warnings)
    of_cases = (
        (CaseState.FAILED, "failed", "failed"),
        (CaseState.INCONCLUSIVE, "inconclusive", "inconclusive"),
        (CaseState.ABSENT, "did not run", "not-run"),
        (CaseState.WARNED, "with a warning", "warned"),
    )
    every = [
        (faults, f"✗ {counted(faults, 'fault')}", "failed", "faults"),
        *((count[s], f"{s.sign} {count[s]} {word}", s.look, name) for s, word, name in of_cases),
        (warnings, f"▲ {counted(warnings, 'node warning')}", "warned", "notes"),
    ]
    return [Cell(text, look, link=f"#{name}") for several, text, look, name in every if several]


def _diagnosis(one: Diagnosis) -> Iterator[Block]:
    """Yield culprits with labelled findings; since when only where earlier sessions were read."""
    yield Cell(headline(one), "heading")
    for culprit in one.culprits:
        yield Cell(culprit.headline, "strong")
        found: dict[str, list[str]] = {}
        last = ""
        for label, sentence in rows(culprit):
            last = label or last
            if last != "since" or culprit.since is not NO_EARLIER:
                found.setdefault(last, []).append(sentence)
        yield found
    for what, sentences in {"Ruled out": one.ruled_out, "Not known": one.not_known}.items():
        yield Sentences(sentences, f"{what}: {len(sentences)}", folded=True)


def _not_run(verdict: Verdict, states: Mapping[int, CaseState]) -> Iterator[Block]:
    """Yield the cases that did not run, by configuration and reason."""
    absent = [one for one in verdict.cases if states[id(one)] is CaseState.ABSENT]
    whys = [(one.case, "; ".join(one.faults)) for one in absent]
    for case, reason in verdict.skipped:
        word = "deferred" if reason.planned else "could not be measured"
        whys.append((case, f"{word}: {reason.why}"))
    if not whys:
        yield "All expected cases ran."
        return
    rows = []
    alike = grouped(((configuration(case), why), case) for case, why in whys)
    for (name, why), found in alike.items():
        more = [Cell(content.named(case)) for case in found]
        rows.append((name, str(len(found)), Cell(why, more=more)))
    yield Cell(f"What did not run: {counted(len(whys))}", "heading", name="not-run")
    yield DataTable(("configuration", "cases", "why"), rows, (1,))


def _function(report: Report, groups: Sequence[Group]) -> str:
    """Return the page of a function, or of NetPIPE."""
    partition, heading = groups[0].partition, groups[0].page_title
    parts: list[Part] = []
    for group in groups:
        worst = group.state()
        headed = Cell(f"{worst.sign} {group.title}", worst.look, title=worst.word)
        shown: list[Block] = [report.figure(group)]
        shown.append(Sentences([line for one in group.members for line in _findings(one)]))
        for one in group.members:
            if one.again is not None:
                shown += _again(one, one.again)
        parts.append((group.name, headed, shown))
    if registry.of(groups[0].case).by_protocol:
        pairs = [report.pair(key) for key in report.netpipe if partition in ("", key[2])]
        parts.append(("throughput", "Throughput and signature, TCP and MPI", pairs))
    back, named = report.partition_pages.get(partition, MAIN), f"{heading} on {report.system}"
    title = f"{heading}, {report.system}"
    return page_of(title, parts, heading=named, back=back, files=report.files)


def _again(judged: CaseVerdict, again: MeasuredAgain) -> Iterator[Block]:
    """Yield what was measured again, opened on request."""
    table = repeated_table(judged)
    where = f"{configuration(judged.case)}: measured again"
    where += f" in job {again.jobid} on {', '.join(again.nodes)}"
    if table is None:
        yield Sentences([*again.faults, "No launch of it was complete."], where, folded=True)
        return
    yield Sentences(again.faults, where, folded=True)
    yield DataTable(table.head, table.rows, table.numbers, fold=where)


def _findings(judged: CaseVerdict) -> list[Cell]:
    """Return the reasons of a case against which there are any."""
    # The chart has the reason for a missing curve.
    reasons = list(judged.faults if judged.measured is not None else ())
    for level in _SHOWN:
        mark = "inconclusive: " * (level is Level.INCONCLUSIVE)
        reasons += [f"{mark}{why}" for why in content.reasons(judged, level)]
    look = "warned" if judged.passed else content.LEVELS[judged.level][1]
    return [Cell(configuration(judged.case), look, reasons)] if reasons else []


def _switch(report: Report, against: Against) -> str:
    """Return the page for a buyer: one switch against the others, breakdowns, ratios, plots."""
    alongside = report.judged.verdict.compared_with
    name, comparisons, apart = against
    functions = [one for one in crossovers(report.judged.verdict) if one[0].case.partition == name]
    shown: list[Block] = list(map(compared.outcome, comparisons))
    shown.append(Sentences([f"Not compared: {why}" for why in apart]))
    if alongside is not None:
        sessions = "Which sessions the others come from"
        shown.append(Cell(sessions, "faint", link=f"{MAIN}#compared_with"))
        marked = [
            words
            for words, cases, left_out in alongside.together()
            if cases[0].marks and not left_out
        ]
        shown.append(Sentences(marked, "Compare these with care", "warned"))
    parts: list[Part] = [
        ("summary", "", shown),
        ("breakdown", "Where it breaks down", _breakdown(functions, report.links)),
    ]
    for one in comparisons:
        title = f"{one.second.name} against {one.first.name}"
        of_sides = [*compared.differences(one), *compared.node_diffs(one)]
        differ = "They differ in the site's file, or in what the nodes were found to have"
        blocks = [Sentences(of_sides, differ), *compared.details(one)]
        parts.append((file_name(title), title, blocks))
    # Plots are of where the switch is red, or slower than another one.
    keys = {one.case.key() for cases in functions for one in red_cases(cases)}
    keys |= {
        one.second.case.key()
        for each in comparisons
        for one in each.cases
        if one.outcome is Outcome.SLOWER or any(not part.faster for part in one.ranges)
    }
    plotted = [
        report.figure(group)
        for group in report.groups
        if any(one.case.key() in keys and one.measured is not None for one in group.members)
    ]
    drawn = [one for one in plotted if one.rows]
    none = "There are none: it is nowhere red, and nowhere slower."
    parts.append(("plots", "Plots of where it is red or slower", [drawn or none]))
    return page_of(
        f"{name} against the others, {report.system}",
        parts,
        heading=f"{name} compared with the other switches",
        back=MAIN,
        files=report.files,
    )


def _breakdown(functions: Sequence[Crossover], links: Links) -> list[Block]:
    """Return at which rank counts and sizes each function is red."""
    environments = list(dict.fromkeys(cases[0].case.environment for cases in functions))
    found: dict[str, dict[str, Cell]] = defaultdict(dict)
    for cases in functions:
        first, sentence = cases[0].case, breakdown(cases)
        name = content.function_name(first)
        if registry.of(first).by_protocol:
            name = f"{name} {content.variant(first)}"
        unsure = any(one.level is Level.INCONCLUSIVE for one in cases)
        look = "inconclusive" if unsure else "" if all(one.ran for one in cases) else "absent"
        cell = Cell(sentence, look)
        if red := red_cases(cases):
            least = red[0].case
            cell = Cell(f"{least.ranks} ranks", "failed", [sentence], link=links[least.key()])
        found[name][first.environment] = cell
    missing = Cell("–", title="not in the configuration")
    return [
        "The rank counts at which a function is red, and at which message sizes; the least of them"
        " is where it breaks down.",
        DataTable(
            ("function", *environments),
            [
                (name, *(cells.get(one, missing) for one in environments))
                for name, cells in found.items()
            ],
        ),
    ]
