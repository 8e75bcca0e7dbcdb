"""Pages of a report: the main one in a reader's order, and one for each function."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from itertools import chain
from operator import itemgetter
from pathlib import Path

from netproof.benchmarks import registry
from netproof.comparison.comparison import Against, Outcome
from netproof.errors import NetproofError, grouped
from netproof.present import compared, studies, terminal
from netproof.present.document import Block, Cell, Part, Sentences
from netproof.present.export import csv_cell
from netproof.present.html import content
from netproof.present.html.charts import MARKS, ChartFigure
from netproof.present.html.content import CaseState, Group
from netproof.present.html.folder import draw, page_of, replacing, write_assets
from netproof.present.html.report import (
    CSV,
    HTML,
    MAIN,
    STUDIES,
    Report,
    provenance_blocks,
    stated,
)
from netproof.present.session import against_blocks, beside, breakdowns, details, verdict_blocks
from netproof.present.verdict import (
    compared_with,
    objections,
    power_blocks,
    repeat_blocks,
    sensitivity,
    state,
)
from netproof.present.wording import counted, file_name
from netproof.verdict import session_verdict
from netproof.verdict.verdict import Verdict, crossovers, red_cases

_STUDIES = "Compared with earlier studies"


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
                writer.writerows({key: csv_cell(row[key]) for key in row} for row in several)


def pages(report: Report) -> Iterator[tuple[str, str]]:
    """Yield every page of a report: its file and its text."""
    system, files = report.system, report.files
    yield MAIN, _main(report)
    for name, file in report.partition_pages.items():
        parts = [*details(report, name, drawn=True)]
        yield file, page_of(name, parts, heading=f"{name} on {system}", back=MAIN, files=files)
    part = "studies", _STUDIES, [*studies.report_blocks(report)]
    yield STUDIES, page_of(_STUDIES, [part], heading=f"{system} and earlier studies", back=MAIN)
    for name, groups in grouped((one.page, one) for one in report.groups).items():
        yield name, _function(report, groups)
    if report.against is not None:
        yield report.against_page, _switch(report, report.against)


def _main(report: Report) -> str:
    """Return the main page; of very many cases, with a link to each partition's page."""
    judged, result = report.judged, state(report.judged.verdict)
    verdict: list[Block] = [result, _chips(judged.verdict)]
    # References that cannot be read are a fault, which the verdict has.
    with suppress(NetproofError):
        if (found := session_verdict.sensitivity_of(judged)).cases:
            verdict.append(sensitivity(found))
    if report.partition_pages:
        verdict.append("Each partition has a page of its own, and so do its functions.")
    verdict += verdict_blocks(report)
    if report.power:
        verdict += power_blocks(session_verdict.power_of(judged), report.links)
    parts: list[Part] = [("verdict", Cell("Verdict", "unseen"), verdict), *beside(report)]
    if report.against is not None:
        text = "Better or worse, where it breaks down, and plots of that"
        name, title, shown = parts[-1]
        parts[-1] = name, title, [*shown, Cell(text, link=report.against_page)]
    if not report.partition_pages:
        parts += details(report, drawn=True)
    repeat = [*provenance_blocks(report)]
    repeat.append(Cell(_STUDIES, link=STUDIES))
    parts.append(("provenance", "Provenance, and how to repeat it", repeat))
    info, labels = judged.session.info, judged.session.labels()

    def time_of_day(key: str) -> str:
        try:
            return f"{datetime.strptime(stated(info, key), '%Y%m%dT%H%M%S%z'):%Y-%m-%d %H:%M:%S %z}"
        except ValueError:
            return stated(info, key)

    when = f"Measured from {time_of_day('time_start')} to {time_of_day('time_end')}, started on"
    when += f" {stated(info, 'hostname')}"
    if labels:
        when += f"; labelled {', '.join(f'{key}={value}' for key, value in labels.items())}"
    title, heading = f"{report.system}: {result.word.lower()}", "Cluster interconnect of"
    return page_of(
        title, parts, heading=f"{heading} {report.system}", when=when, files=report.files
    )


def _chips(verdict: Verdict) -> list[Cell]:
    """Return links to what a reader has to look at besides the result."""
    count = Counter(map(content.state_of, verdict.cases))
    faults, warnings = len(verdict.faults), len(verdict.node_warnings)
    of_cases = (
        (CaseState.FAILED, "failed", "failed"),
        (CaseState.INCONCLUSIVE, "inconclusive", "inconclusive"),
        (CaseState.ABSENT, "did not run", "failed"),
        (CaseState.WARNED, "with a warning", "warned"),
    )
    every = [
        (faults, f"✗ {counted(faults, 'fault')}", "failed", "failed"),
        *((count[s], f"{s.sign} {count[s]} {word}", s.look, name) for s, word, name in of_cases),
        (warnings, f"▲ {counted(warnings, 'node warning')}", "warned", "notes"),
    ]
    return [Cell(text, look, link=f"#{name}") for several, text, look, name in every if several]


def _function(report: Report, groups: Sequence[Group]) -> str:
    """Return the page of a function, or of NetPIPE."""
    partition, heading = groups[0].partition, groups[0].page_title
    parts: list[Part] = []
    for group in groups:
        worst = group.state()
        headed = Cell(f"{worst.sign} {group.title}", worst.look, title=worst.word)
        # The chart has the reason for a missing curve.
        there = tuple(one for one in group.members if one.measured is not None)
        verdict = replace(report.judged.verdict, cases=there, faults=(), failed_tests=())
        said = [replace(one, name="") for one in objections(verdict)]
        again = chain.from_iterable(map(repeat_blocks, group.members))
        parts.append((group.name, headed, [report.figure(group), *said, *again]))
    if registry.of(groups[0].case).by_protocol:
        pairs = [report.pair(key) for key in report.netpipe if partition in ("", key[2])]
        parts.append(("throughput", "Throughput and signature, TCP and MPI", pairs))
    back, named = report.partition_pages.get(partition, MAIN), f"{heading} on {report.system}"
    title = f"{heading}, {report.system}"
    return page_of(title, parts, heading=named, back=back, files=report.files)


def _switch(report: Report, against: Against) -> str:
    """Return the page for a buyer: one switch against the others, breakdowns, ratios, plots."""
    verdict = report.judged.verdict
    name, comparisons, _ = against
    functions = [one for one in crossovers(verdict) if one[0].case.partition == name]
    shown = against_blocks(report)
    if verdict.compared_with is not None:
        shown.append(compared_with(verdict))
    parts: list[Part] = [
        ("summary", "", shown),
        ("breakdown", "Where it breaks down", breakdowns(functions)),
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
