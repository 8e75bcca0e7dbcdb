"""Tables for the terminal."""

from __future__ import annotations

import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from rich import box
from rich.console import Console
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from netproof.benchmarks import registry
from netproof.criteria import Level
from netproof.measurement.case import Case
from netproof.measurement.units import mbit_s
from netproof.present.characters import visible
from netproof.present.terminal import console, say
from netproof.present.wording import not_available, outcome
from netproof.session.slurm_nodes import labelled
from netproof.verdict.explain import counts, failures
from netproof.verdict.recurring import NOTHING, Recurring
from netproof.verdict.recurring import sentence as recurring_sentence
from netproof.verdict.verdict import CaseVerdict, StoredResult, Verdict, sentences_of_skipped

MOST_DIFFERENCES = 10
"""Differences between nodes that are printed; the store and the report have all of them."""

_BETWEEN_COLUMNS = 2
_BETWEEN_CASES = 3

T = TypeVar("T")


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show on the terminal what is being done, until it is done; do nothing without a terminal."""
    err = console(stderr=True)
    if not err.is_terminal:
        yield
        return
    with err.status(Text(what)):
        yield


def tracked(items: Sequence[T], what: str) -> Iterable[T]:
    """Return the items, with a progress bar on the terminal, if there is one."""
    from rich.progress import track

    err = console(stderr=True)
    if not err.is_terminal:
        return items
    return track(items, what, console=err, transient=True)


@dataclass(frozen=True)
class TableColumn:
    """A column of a table that has to fit: its heading, and its cells as plain text or styled.

    ``rank``: if columns do not fit together the one with the highest goes first; 0 stays.
    """

    heading: str
    cells: Sequence[str | Text]
    rank: int = 0
    right: bool = True

    @property
    def width(self) -> int:
        """Columns of the terminal for its widest line."""
        return max(
            len(line) for cell in (self.heading, *self.cells) for line in str(cell).split("\n")
        )


EVERY = range(sys.maxsize)
"""All columns of a table."""


@dataclass(frozen=True)
class DataTable:
    """A table of text, by rows; the first cell heads its row.

    ``numbers``: the columns that hold numbers, from 0; ``caption``: below it, or empty.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Container[int] = ()
    caption: str = ""

    def columns(self) -> list[TableColumn]:
        """Return the same by columns."""
        cells = zip(*self.rows, strict=True)
        return [
            TableColumn(title, column, right=place in self.numbers)
            for place, (title, column) in enumerate(zip(self.head, cells, strict=True))
        ]


def width_of(columns: Sequence[TableColumn]) -> int:
    """Return how many columns of the terminal a table of these takes."""
    return sum(column.width + _BETWEEN_COLUMNS for column in columns)


def fitting(columns: Sequence[TableColumn], width: int) -> list[TableColumn]:
    """Return the columns that fit together into ``width``, but all that have to stay."""
    shown = list(columns)
    while width_of(shown) > width and any(column.rank for column in shown):
        shown.remove(max(reversed(shown), key=lambda column: column.rank))
    return shown


def print_table(columns: Sequence[TableColumn], out: Console, rows: range | None = None) -> None:
    """Print the columns, or these of their rows, as wide as all rows need.

    On a narrower terminal lines wrap, and nothing is cut.
    """
    table = Table(box=None, pad_edge=False, padding=(0, _BETWEEN_COLUMNS, 0, 0))
    for column in columns:
        table.add_column(
            Text(column.heading, "bold"),
            justify="right" if column.right else "left",
            no_wrap=True,
            min_width=column.width,
        )
    for row in range(len(columns[0].cells)) if rows is None else rows:
        table.add_row(*(_cell(column.cells[row]) for column in columns))
    width, out.width = out.width, max(out.width, width_of(columns))
    out.print(table, crop=False, no_wrap=True)
    out.width = width


def print_by_heading(
    columns: Sequence[TableColumn], counts: Mapping[str, int], out: Console
) -> None:
    """Print consecutive rows below headings, ``counts`` of them each, as wide as all need."""
    begin = 0
    for heading, count in counts.items():
        out.print()
        if heading:
            say(out, heading, "bold")
        print_table(columns, out, range(begin, begin + count))
        begin += count


def print_parts(
    alongside: Sequence[TableColumn],
    columns: Sequence[TableColumn],
    title: str | None,
    out: Console,
) -> None:
    """Print the columns in as many tables as they take, those of ``alongside`` in each."""
    left = out.width - width_of(alongside)
    while columns:
        taken = 1
        while taken < len(columns) and width_of(columns[: taken + 1]) <= left:
            taken += 1
        if title:
            say(out, title, "bold")
        print_table([*alongside, *columns[:taken]], out)
        out.print()
        columns = columns[taken:]


def print_answer(title: str, answer: Mapping[str, Any], out: Console) -> None:
    """Print the answer of an experiment: conclusion, settings, table and remarks."""
    say(out, title, "bold")
    for sentence in answer["conclusion"]:
        say(out, sentence, answer["style"])
    for name, how in answer["settings"].items():
        say(out, f"{name}: {how}")
    if answer["table"] is not None:
        print_table(answer["table"].columns(), out)
    for sentence in answer["remarks"]:
        say(out, sentence)


def case_columns(cases: Iterable[Case]) -> list[TableColumn]:
    """Return partition, environment, benchmark and ranks of cases."""
    named = [(one.partition, one.environment, benchmark_name(one), str(one.ranks)) for one in cases]
    head = ("partition", "environment", "benchmark", "ranks")
    return DataTable(head, named, (3,)).columns()


def _cell(cell: str | Text) -> Text:
    return Text(visible(cell)) if isinstance(cell, str) else cell


def benchmark_name(case: Case) -> str:
    """Return a case without its configuration: ``NetPIPE TCP between oneway``."""
    return registry.of(case).words(case)


def print_absences(verdict: Verdict, out: Console) -> None:
    """Print declared absences, skipped cases, and what the criteria could not decide."""
    for sentence in not_available(verdict.absences):
        say(out, f"not available: {sentence}")
    for sentence in sentences_of_skipped(verdict.left):
        say(out, sentence, "yellow")
    for note in verdict.notes:
        say(out, f"note: {note}")


def print_alongside(verdict: Verdict, out: Console) -> None:
    """Print stored results alongside the session: configurations, sessions, dates, marks."""
    if verdict.alongside is None:
        return
    for together in verdict.alongside.together():
        word = "left out" if together.left_out else "compared with"
        say(out, f"{word}: {together}", "yellow" if together.cases[0].marks else "")
    if not verdict.alongside.cases:
        where = verdict.alongside.store
        say(out, f"compared with nothing: {where} has nothing that fits", "yellow")


def print_differences(differences: Sequence[str], out: Console) -> None:
    """Print the differences between nodes of a session; of very many, the number of the rest."""
    for difference in differences[:MOST_DIFFERENCES]:
        say(out, labelled(difference), "yellow")
    beyond = len(differences) - MOST_DIFFERENCES
    if beyond > 0:
        say(out, f"nodes differ in {beyond} more, which netproof report has", "yellow")


def print_nodes(verdict: Verdict, out: Console) -> None:
    """Print the coverage of each partition, and warnings on its nodes; failures come elsewhere."""
    for one in verdict.coverage:
        say(out, f"coverage: {one}")
    for one in verdict.pairs:
        say(out, f"pairs: {one}")
    for sentence in verdict.node_warnings:
        say(out, f"WARN {sentence}", "yellow")


def print_unread(unread: Sequence[str], out: Console) -> None:
    """Print why earlier sessions could not be read."""
    for reason in unread:
        say(out, f"not compared with an earlier session: {reason}")


def print_verdict(
    verdict: Verdict,
    out: Console,
    *,
    recurring: Recurring = NOTHING,
    differences: Sequence[str] = (),
    unread: Sequence[str] = (),
) -> None:
    """Print the cases with their landmarks, then notes, warnings, inconclusive and failed ones.

    ``usual``: the warnings that are one line, since earlier sessions had them; ``differences``:
    between jobs; ``unread``: why earlier sessions could not be read.
    """
    _print_cases(verdict, out)
    print_alongside(verdict, out)
    print_absences(verdict, out)
    print_differences(differences, out)
    print_unread(unread, out)
    _print_flags(verdict, recurring, out)
    print_nodes(verdict, out)
    inconclusive = [why for judged in verdict.cases for why in judged.said(Level.INCONCLUSIVE)]
    for reason in (*inconclusive, *verdict.undecided):
        say(out, f"INCONCLUSIVE {reason}", "yellow")
    several = failures(verdict)
    last = {id(one.judged): number for number, one in enumerate(several) if one.judged}
    for number, one in enumerate(several):
        say(out, f"FAIL {one}", "red")
        # The curves of a case follow its last line.
        if one.judged is not None and last[id(one.judged)] == number:
            _print_both_curves(one.judged, out)
    if verdict.crashes:
        say(out, verdict.crashes)
    say(out, outcome(counts(verdict)), "bold")


def print_recurring(recurring: Recurring, out: Console) -> None:
    """Print the warnings that earlier sessions had too, in a line."""
    if recurring.warnings:
        say(out, recurring_sentence(recurring), "yellow")


def _print_cases(verdict: Verdict, out: Console) -> None:
    """Print a line for each case; on a narrow terminal, with what fits beside the verdict.

    Stored results follow, greyed, with their day for a verdict.
    """
    cases: list[CaseVerdict | StoredResult] = list(verdict.cases)
    cases += [] if verdict.alongside is None else verdict.alongside.cases
    scores = ["-" if (one := case.score()) is None else f"{one.value:.2f}" for case in cases]
    heads = (("latency µs", 2), ("peak MB/s", 2), ("Mbit/s", 4), ("of line rate", 3), ("score", 1))
    figures = (*zip(*map(_figures, cases), strict=True), scores)
    columns = case_columns(one.case for one in cases)
    columns += [
        TableColumn(heading, cells, rank)
        for (heading, rank), cells in zip(heads, figures, strict=True)
    ]
    styles = ["dim" if isinstance(one, StoredResult) else "" for one in cases]
    columns = [replace(column, cells=list(map(Text, column.cells, styles))) for column in columns]
    columns.append(TableColumn("verdict", [_word(one) for one in cases], right=False))
    needed = sum(column.width + _BETWEEN_CASES for column in columns) - _BETWEEN_CASES + 2
    if needed > out.width and out.is_terminal:
        print_table(fitting(columns, out.width), out)
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    widths = [column.width for column in columns]
    for column, wide in zip(columns, widths, strict=True):
        side = "right" if column.right else "left"
        table.add_column(column.heading, justify=side, no_wrap=True, width=wide)
    width, out.width = out.width, max(out.width, needed)
    *head, end = out.render_lines(table, pad=False)
    segments = [segment for line in head for segment in (*line, Segment.line())]
    # Rich takes seconds to lay thousands of rows out.
    for cells in zip(*(column.cells for column in columns), strict=True):
        between = " "
        for column, wide, cell in zip(columns, widths, cells, strict=True):
            room = " " * (wide - len(cell))
            left, right = (room, "") if column.right else ("", room)
            style = out.get_style(cell.style) if cell.style else None
            segments += [Segment(between + left), Segment(cell.plain, style), Segment(right)]
            between = " " * _BETWEEN_CASES
        segments += [Segment(" "), Segment.line()]
    out.print(Segments([*segments, *end, Segment.line()]))
    out.width = width


def _print_flags(verdict: Verdict, recurring: Recurring, out: Console) -> None:
    """Print flags that did not fail, notes first, with both curves of repeated measurements."""
    for judged in verdict.cases:
        for finding in judged.findings:
            if finding.forgiven:
                say(out, f"note: {finding.why}")
        if {finding.level for finding in judged.flags()} <= {Level.SHOWN}:
            _print_both_curves(judged, out)
    print_recurring(recurring, out)
    for judged in verdict.cases:
        for finding in judged.findings:
            if finding.level is Level.WARN and not recurring.has(finding):
                say(out, f"WARN {finding.why}", "yellow")
        # The curves of a failure come with it.
        levels = {finding.level for finding in judged.flags()}
        if not levels <= {Level.SHOWN} and Level.FAIL not in levels:
            _print_both_curves(judged, out)


def _print_both_curves(judged: CaseVerdict, out: Console) -> None:
    """Print the flagged sizes and those around them: as first measured, and as repeated."""
    repeated = judged.repeated()
    if repeated is None:
        return
    first, repeats = repeated
    curves = [dict(zip(one.sizes, one.time_us, strict=True)) for one in (first, *repeats)]
    flagged = [finding.size for finding in judged.flags()]
    again = (f"again {number} µs" for number in range(1, len(curves)))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("  bytes", "first µs", *again):
        table.add_column(heading, justify="right")
    for size in sorted(set().union(*curves)):
        if any(flag / 2 <= size <= 2 * flag for flag in flagged):
            mark = "*" if size in flagged else " "
            times = (f"{curve[size]:.1f}" if size in curve else "-" for curve in curves)
            table.add_row(f"{mark} {size}", *times)
    out.print(table)


_WORDS = {
    Level.FAIL: ("FAIL", "bold red"),
    Level.INCONCLUSIVE: ("INCONCLUSIVE", "bold yellow"),
    Level.WARN: ("WARN", "yellow"),
}


def _word(judged: CaseVerdict | StoredResult) -> Text:
    if isinstance(judged, StoredResult):
        return Text(f"of {judged.date}", "dim")
    return Text(*_WORDS.get(judged.level, (judged.expected or "pass", "green")))


def _figures(judged: CaseVerdict | StoredResult) -> tuple[str, str, str, str]:
    """Return latency, peak in MB/s and Mbit/s, and its share of the line rate."""
    found = judged.landmarks
    if found is None:
        return "-", "-", "-", "-"
    peak, share = found.peak_mb_s, found.line_rate_share
    return (
        "-" if found.latency_us is None else f"{found.latency_us:.1f}",
        *(("-", "-") if peak is None else (f"{peak:.1f}", f"{mbit_s(peak):.0f}")),
        "-" if share is None else f"{100 * share:.1f} %",
    )
