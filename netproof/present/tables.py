"""Tables for the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from rich import box
from rich.console import Console
from rich.progress import track
from rich.table import Table
from rich.text import Text

from netproof.benchmarks import registry
from netproof.criteria import Level
from netproof.measurement.case import Case
from netproof.measurement.curve import Curve
from netproof.measurement.units import mbit_s
from netproof.present.characters import visible
from netproof.present.wording import not_available, outcome
from netproof.session.slurm_nodes import labelled
from netproof.verdict.explain import Failure, counts, failures
from netproof.verdict.recurring import NOTHING, Recurring
from netproof.verdict.recurring import sentence as recurring_sentence
from netproof.verdict.verdict import Borrowed, Judged, Verdict, sentences_of_skipped

MOST_DIFFERENCES = 10
"""Differences between nodes that are printed; the store and the report have all of them."""

_WIDTH_OFF_TERMINAL = 140
_BETWEEN_COLUMNS = 2
_BETWEEN_CASES = 3

T = TypeVar("T")


def console(*, stderr: bool = False) -> Console:
    """Return a console as wide as the terminal, or without one wide enough for the tables."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _WIDTH_OFF_TERMINAL
    # Text in brackets, or between colons, is not markup: a card's name for instance.
    return Console(
        file=stream, width=width, highlight=False, soft_wrap=False, markup=False, emoji=False
    )


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
        lines = [line for cell in (self.heading, *self.cells) for line in str(cell).split("\n")]
        return max(map(len, lines))


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
        cells = (column.cells[row] for column in columns)
        table.add_row(*(_cell(cell) for cell in cells))
    width, out.width = out.width, max(out.width, width_of(columns))
    out.print(table, crop=False, no_wrap=True)
    out.width = width


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
        say(
            out, f"compared with nothing: {verdict.alongside.store} has nothing that fits", "yellow"
        )


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
    usual: Recurring = NOTHING,
    differences: Sequence[str] = (),
    unread: Sequence[str] = (),
) -> None:
    """Print the cases with their landmarks, then all findings, the worst last.

    After notes come warnings, then what is inconclusive, then the failures, the worst of them last,
    and the count. ``usual``: the warnings that are one line, since earlier sessions had them;
    ``differences``: between jobs; ``unread``: why earlier sessions could not be read.
    """
    _print_cases(verdict, out)
    print_alongside(verdict, out)
    print_absences(verdict, out)
    print_differences(differences, out)
    print_unread(unread, out)
    _print_flags(verdict, usual, out)
    print_nodes(verdict, out)
    for judged in verdict.cases:
        for reason in judged.said(Level.INCONCLUSIVE):
            say(out, f"INCONCLUSIVE {reason}", "yellow")
    for reason in verdict.undecided:
        say(out, f"INCONCLUSIVE {reason}", "yellow")
    print_failures(failures(verdict), out)
    if verdict.crashes:
        say(out, verdict.crashes)
    say(out, outcome(counts(verdict)), "bold")


def print_usual(usual: Recurring, out: Console) -> None:
    """Print the warnings that earlier sessions had too, in a line."""
    if usual.warnings:
        say(out, recurring_sentence(usual), "yellow")


def print_failures(several: Sequence[Failure], out: Console) -> None:
    """Print a line for each, with both curves of repeated measurements.

    The curves of a case follow its last line.
    """
    last = {id(one.judged): number for number, one in enumerate(several) if one.judged}
    for number, one in enumerate(several):
        say(out, f"FAIL {one}", "red")
        if one.judged is not None and last[id(one.judged)] == number:
            _print_both_curves(one.judged, out)


def _print_cases(verdict: Verdict, out: Console) -> None:
    """Print a line for each case; on a narrow terminal, with what fits beside the verdict.

    Stored results follow, greyed, with their day for a verdict.
    """
    cases: list[Judged | Borrowed] = list(verdict.cases)
    cases += [] if verdict.alongside is None else verdict.alongside.cases
    figures = list(zip(*map(_figures, cases), strict=True))
    scores = [one.score() for one in cases]

    def greyed(cells: Iterable[str]) -> list[Text]:
        styles = ["dim" if isinstance(one, Borrowed) else "" for one in cases]
        return [Text(cell, style) for cell, style in zip(cells, styles, strict=True)]

    columns = [
        TableColumn("partition", greyed(one.case.partition for one in cases), right=False),
        TableColumn("environment", greyed(one.case.environment for one in cases), right=False),
        TableColumn("benchmark", greyed(benchmark_name(one.case) for one in cases), right=False),
        TableColumn("ranks", greyed(str(one.case.ranks) for one in cases)),
        TableColumn("latency µs", greyed(figures[0]), rank=2),
        TableColumn("peak MB/s", greyed(figures[1]), rank=2),
        TableColumn("Mbit/s", greyed(figures[2]), rank=4),
        TableColumn("of line rate", greyed(figures[3]), rank=3),
        TableColumn(
            "score", greyed("-" if one is None else f"{one.value:.2f}" for one in scores), rank=1
        ),
        TableColumn("verdict", [_word(one) for one in cases], right=False),
    ]
    needed = sum(column.width + _BETWEEN_CASES for column in columns) - _BETWEEN_CASES + 2
    if needed > out.width and out.is_terminal:
        print_table(fitting(columns, out.width), out)
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column.heading, justify="right" if column.right else "left", no_wrap=True)
    for row in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*(_cell(cell) for cell in row))
    width, out.width = out.width, max(out.width, needed)
    out.print(table)
    out.width = width


def _print_flags(verdict: Verdict, usual: Recurring, out: Console) -> None:
    """Print flags that did not fail, notes first, with both curves of repeated measurements."""
    for judged in verdict.cases:
        for ruling in judged.rulings:
            if ruling.forgiven:
                say(out, f"note: {ruling.why}")
        if {ruling.level for ruling in judged.flags()} <= {Level.SHOWN}:
            _print_both_curves(judged, out)
    print_usual(usual, out)
    for judged in verdict.cases:
        for ruling in judged.rulings:
            if ruling.level is Level.WARN and not usual.has(ruling):
                say(out, f"WARN {ruling.why}", "yellow")
        # The curves of a failure come with it.
        levels = {ruling.level for ruling in judged.flags()}
        if not levels <= {Level.SHOWN} and Level.FAIL not in levels:
            _print_both_curves(judged, out)


def _print_both_curves(judged: Judged, out: Console) -> None:
    if (curves := judged.repeated()) is not None:
        out.print(_both_curves(judged, *curves))


def _both_curves(judged: Judged, curve: Curve, repeats: Sequence[Curve]) -> Table:
    """Return the flagged sizes and those around them: as first measured, and as repeated."""
    first = dict(zip(curve.sizes, curve.time_us, strict=True))
    launches = [dict(zip(one.sizes, one.time_us, strict=True)) for one in repeats]
    flagged = [ruling.finding.size for ruling in judged.flags()]
    sizes = sorted(
        size
        for size in set(first).union(*launches)
        if any(flag / 2 <= size <= 2 * flag for flag in flagged)
    )
    table = Table(box=None, pad_edge=False, title_justify="left", padding=(0, 2, 0, 0))
    table.add_column("  bytes", justify="right")
    table.add_column("first µs", justify="right")
    for number in range(1, len(launches) + 1):
        table.add_column(f"again {number} µs", justify="right")
    for size in sizes:
        mark = "*" if size in flagged else " "
        table.add_row(
            f"{mark} {size}",
            *("-" if size not in one else f"{one[size]:.1f}" for one in [first, *launches]),
        )
    return table


def _word(judged: Judged | Borrowed) -> Text:
    if isinstance(judged, Borrowed):
        return Text(f"of {judged.date}", "dim")
    if judged.level is Level.FAIL:
        return Text("FAIL", "bold red")
    if judged.level is Level.INCONCLUSIVE:
        return Text("INCONCLUSIVE", "bold yellow")
    if judged.level is Level.WARN:
        return Text("WARN", "yellow")
    return Text(judged.expected or "pass", "green")


def say(out: Console, sentence: str, style: str = "") -> None:
    """Print a sentence on a line of its own, which the terminal may wrap.

    Output of a job may be part of it, so control characters are shown by their code.
    """
    out.print(Text(visible(sentence), style), soft_wrap=True)


def _figures(judged: Judged | Borrowed) -> tuple[str, str, str, str]:
    found = judged.landmarks
    if found is None:
        return "-", "-", "-", "-"
    latency, peak, share = found.latency_us, found.peak_mb_s, found.line_rate_share
    return (
        "-" if latency is None else f"{latency:.1f}",
        "-" if peak is None else f"{peak:.1f}",
        "-" if peak is None else f"{mbit_s(peak):.0f}",
        "-" if share is None else f"{100 * share:.1f} %",
    )
