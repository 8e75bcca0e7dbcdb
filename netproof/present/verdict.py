"""The verdict on a session: about ten lines, or all of it."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console
from rich.text import Text

from netproof.criteria import Finding, Level
from netproof.diagnosis.diagnosis import Diagnosis
from netproof.measurement.units import mbit_s
from netproof.present.tables import (
    EVERY,
    DataTable,
    TableColumn,
    case_columns,
    fitting,
    print_by_heading,
    print_table,
    width_of,
)
from netproof.present.terminal import say
from netproof.present.wording import (
    counted,
    not_available,
    outcome,
    recurring_sentence,
    size_in_words,
)
from netproof.session.slurm_nodes import labelled
from netproof.verdict.exit_status import FAILED, INCONCLUSIVE, PASSED
from netproof.verdict.explain import Failure, counts, excess, failures, listed
from netproof.verdict.session_verdict import JudgedSession
from netproof.verdict.stored import NOTHING, Recurring
from netproof.verdict.verdict import CaseVerdict, StoredResult, Verdict, sentences_of_skipped

MOST_DIFFERENCES = 10
"""Differences between nodes that are printed; the store and the report have all of them."""

STATES = {
    PASSED: ("PASSED", "bold green"),
    FAILED: ("FAILED", "bold red"),
    INCONCLUSIVE: ("NOT JUDGED WHOLE", "bold yellow"),
}
"""Word and style of a verdict, by its exit status, unless it is inconclusive."""

_PARTITIONS = 4
"""Most partitions whose nodes are counted one by one."""

_LINE = 120
"""Most characters of a line on one failure."""

_MOST = {"FAIL": 5, "INCONCLUSIVE": 4, "WARN": 3}
"""Lines of the worst kind that there is; all others are counted."""
_STYLES = {"FAIL": "red", "INCONCLUSIVE": "yellow", "WARN": "yellow"}


def print_state(verdict: Verdict, out: Console) -> None:
    """Print the state, and what became of the cases."""
    word, style = STATES[verdict.status]
    word = "INCONCLUSIVE" if verdict.inconclusive else word
    say(out, f"{word}: {outcome(counts(verdict))}", style)


def print_brief(judged: JudgedSession, diagnoses: Sequence[Diagnosis], out: Console) -> None:
    """Print the state, culprits, what failed or is inconclusive, the worst first, and what to do.

    ``diagnoses``: of partitions in which something failed or is inconclusive.
    """
    verdict = judged.verdict
    print_state(verdict, out)
    measured = [one for one in verdict.coverage if one.measured]
    nodes = ", ".join(f"{len(one.measured)} of {one.partition}" for one in measured)
    if len(measured) > _PARTITIONS:
        nodes = f"{sum(len(one.measured) for one in measured)} of {len(measured)} partitions"
    say(out, f"{_cut(f'nodes: {nodes}; ') if nodes else ''}session {judged.session.path}")
    culprits = [culprit for one in diagnoses for culprit in one.culprits]
    for culprit in culprits[:2]:
        say(out, _cut(f"culprit: {culprit.headline}"), "bold")
    failed = failures(verdict)[::-1]
    lines = {
        "FAIL": [_failure(one, verdict) for one in failed[: _MOST["FAIL"]]],
        "INCONCLUSIVE": [*_found(verdict, Level.INCONCLUSIVE), *verdict.undecided],
        "WARN": [*_found(verdict, Level.WARN, judged.recurring), *verdict.node_warnings],
    }
    rest = {"FAIL": len(failed)}
    worst = next((word for word, several in lines.items() if several), "")
    for word, several in lines.items():
        # What is worse leaves the milder ones to be counted.
        shown = several[: _MOST[word]] if word == worst else []
        for line in shown:
            say(out, _cut(f"{word} {line}"), _STYLES[word])
        rest[word] = rest.get(word, len(several)) - len(shown)
    print_recurring(judged.recurring, out)
    if judged.stored is not None and judged.stored.differs:
        say(out, _cut(f"note: {judged.stored.sentence()}"), "yellow")
    print_alongside(verdict, out)
    remarks = [
        (range(rest["FAIL"]), "more failure", "more failures"),
        (range(rest["INCONCLUSIVE"]), "inconclusive finding", "inconclusive findings"),
        (range(rest["WARN"]), "warning", "warnings"),
        (culprits[2:], "more culprit", "more culprits"),
        (verdict.notes, "note", "notes"),
        (judged.beyond_nodes, "difference between nodes", "differences between nodes"),
        (not_available(verdict.absences), "benchmark not available", "benchmarks not available"),
        (judged.unread, "earlier session not compared", "earlier sessions not compared"),
    ]
    besides = [counted(len(found), one, several) for found, one, several in remarks if found]
    if besides:
        say(out, f"besides: {', '.join(besides)}", "dim")
    steps = [one.advice for one in culprits[:1]]
    steps += [step for one in diagnoses for step in one.next_steps]
    if steps:
        say(out, _cut(f"next: {steps[0]}"))
    where = "" if verdict.status == PASSED else "; netproof diagnose says where and since when"
    say(out, f"--all prints each case, reason and note{where}")


def _cut(line: str) -> str:
    """Return a line that is no longer than ``_LINE``, cut between words unless one is long."""
    return textwrap.shorten(line, _LINE, placeholder=" …") if len(line) > _LINE else line


def _failure(failure: Failure, verdict: Verdict) -> str:
    """Return a failure in a line: case, figure, limit and place of a single finding."""
    if len(failure.cases) == 1:
        for judged in verdict.cases:
            if judged.case == failure.cases[0]:
                for finding in judged.findings:
                    if finding.level is Level.FAIL and finding.reason == failure.why:
                        return _finding(judged, finding)
    sentence = str(failure)
    many = f"{len(failure.cases)} cases: {failure.why}"
    return many if len(failure.cases) > 1 and len(sentence) > _LINE else sentence


def _found(verdict: Verdict, level: Level, recurring: Recurring = NOTHING) -> list[str]:
    """Return a line for each finding of a level that earlier sessions had not, the worst first."""
    found = [
        (judged, finding)
        for judged in verdict.cases
        for finding in judged.findings
        if finding.level is level and not recurring.has(finding)
    ]
    found.sort(key=lambda one: -excess(one[1]))
    return [_finding(*one) for one in found]


def _finding(judged: CaseVerdict, finding: Finding) -> str:
    case = judged.case
    where = f"{case.partition} {case.environment} {case.what()}"
    if finding.value is None or finding.bound is None:
        return f"{where}: {finding.reason}"
    what = finding.variable or finding.criterion
    size = "" if finding.size is None else f" at {size_in_words(finding.size)}"
    if finding.level is Level.INCONCLUSIVE and finding.interval is not None:
        size = " ({:.3g} to {:.3g}){}".format(*finding.interval, size)
    launches = judged.measured.launches if judged.measured else ()
    nodes = finding.node or listed(launches[0].nodes() if launches else ())
    on = f", {' '.join(filter(None, (nodes, finding.interface)))}" if nodes else ""
    return f"{where}: {what} {finding.value:.3g}{size}, limit {finding.bound:.3g}{on}"


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

    ``recurring``: the warnings that are one line, since earlier sessions had them; ``differences``:
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
    """Print a line for each case; where not all fits, below its configuration, by columns that do.

    Stored results follow, greyed, with their day for a verdict.
    """
    cases: list[CaseVerdict | StoredResult] = list(verdict.cases)
    cases += [] if verdict.alongside is None else verdict.alongside.cases
    scores = ["-" if (one := case.score()) is None else f"{one.value:.2f}" for case in cases]
    heads = (("latency µs", 1), ("peak MB/s", 2), ("peak Mbit/s", 4), ("r∞ of line", 3))
    figures = list(zip(heads, zip(*map(_figures, cases), strict=True), strict=True))
    columns = case_columns(one.case for one in cases)
    columns += [
        TableColumn(head, cells, rank) for (head, rank), cells in (*figures, (("score", 1), scores))
    ]
    stored = [isinstance(one, StoredResult) for one in cases]
    if any(stored):
        for at, column in enumerate(columns):
            cells = zip(column.cells, stored, strict=True)
            dimmed = [Text(cell, "dim") if grey else cell for cell, grey in cells]
            columns[at] = replace(column, cells=dimmed)
    columns.append(TableColumn("verdict", [_word(one) for one in cases], right=False))
    if width_of(columns) <= out.width or not out.is_terminal:
        print_table(columns, out)
        return
    where = [f"{one.case.partition} {one.case.environment}" for one in cases]
    places = Counter(where)
    # A stable sort, since stored results of a configuration follow others.
    rank = {place: number for number, place in enumerate(places)}
    order = sorted(range(len(cases)), key=lambda at: rank[where[at]])
    below = [replace(one, cells=[one.cells[at] for at in order]) for one in columns[2:]]
    print_by_heading(fitting(below, out.width), places, out)


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
    heads = ("bytes", "first µs", *(f"again {number} µs" for number in range(1, len(curves))))
    rows = [
        (
            f"{'*' if size in flagged else ' '} {size}",
            *(f"{curve[size]:.1f}" if size in curve else "-" for curve in curves),
        )
        for size in sorted(set().union(*curves))
        if any(flag / 2 <= size <= 2 * flag for flag in flagged)
    ]
    if rows:
        print_table(DataTable(heads, rows, EVERY).columns(), out)


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
