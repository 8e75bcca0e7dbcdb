"""A verdict for the terminal: its cases with their landmarks, and what is to be said of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rich import box
from rich.console import Console
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from netproof.criteria import Level
from netproof.measurement.units import mbit_s
from netproof.present.tables import (
    MOST_DIFFERENCES,
    TableColumn,
    case_columns,
    fitting,
    print_table,
)
from netproof.present.terminal import say
from netproof.present.wording import not_available, outcome
from netproof.session.slurm_nodes import labelled
from netproof.verdict.explain import counts, failures
from netproof.verdict.recurring import NOTHING, Recurring
from netproof.verdict.recurring import sentence as recurring_sentence
from netproof.verdict.verdict import CaseVerdict, StoredResult, Verdict, sentences_of_skipped

_BETWEEN_CASES = 3

_WORDS = {
    Level.FAIL: ("FAIL", "bold red"),
    Level.INCONCLUSIVE: ("INCONCLUSIVE", "bold yellow"),
    Level.WARN: ("WARN", "yellow"),
}


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
    for together, cases, left_out in verdict.alongside.together():
        word = "left out" if left_out else "compared with"
        say(out, f"{word}: {together}", "yellow" if cases[0].marks else "")
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
    words = [_word(one) for one in cases]
    last = TableColumn("verdict", words, right=False)
    needed = sum(column.width + _BETWEEN_CASES for column in (*columns, last)) - _BETWEEN_CASES + 2
    if needed > out.width and out.is_terminal:
        styled = [replace(one, cells=list(map(Text, one.cells, styles))) for one in columns]
        print_table(fitting([*styled, last], out.width), out)
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    widths = [column.width for column in (*columns, last)]
    for column, wide in zip((*columns, last), widths, strict=True):
        side = "right" if column.right else "left"
        table.add_column(column.heading, justify=side, no_wrap=True, width=wide)
    width, out.width = out.width, max(out.width, needed)
    *head, end = out.render_lines(table, pad=False)
    segments = [segment for line in head for segment in (*line, Segment.line())]
    # Rich takes seconds to lay thousands of rows out.
    padded = [
        [cell.rjust(wide) if column.right else cell.ljust(wide) for cell in column.cells]
        for column, wide in zip(columns, widths[:-1], strict=True)
    ]
    between = " " * _BETWEEN_CASES
    for style, word, *cells in zip(styles, words, *padded, strict=True):
        segments += [
            Segment(f" {between.join(cells)}{between}", out.get_style(style) if style else None),
            Segment(word.plain, out.get_style(word.style)),
            Segment(" " * (widths[-1] - len(word) + 1)),
            Segment.line(),
        ]
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
