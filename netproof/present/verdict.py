"""The verdict on a session: about ten lines, or all of it."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence

from rich.console import Console

from netproof.criteria import Finding, Level
from netproof.diagnosis.diagnosis import Diagnosis
from netproof.present.tables import EVERY, DataTable, print_table
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
from netproof.verdict.explain import Failure, failures, listed
from netproof.verdict.session_verdict import JudgedSession
from netproof.verdict.stored import NOTHING, Recurring
from netproof.verdict.verdict import CaseVerdict, Verdict, sentences_of_skipped

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

_FOLDERS = re.compile(r"(?<!\S)/(?:[^\s/]+/)+")
"""Folders of an absolute path, which leave no room for the reason."""

_MOST = {"FAIL": 5, "INCONCLUSIVE": 4, "WARN": 3}
"""Lines of the worst kind that was found; all others are counted."""
_STYLES = {"FAIL": "red", "INCONCLUSIVE": "yellow", "WARN": "yellow"}


def print_state(verdict: Verdict, out: Console) -> None:
    """Print the state, and what became of the cases."""
    word, style = STATES[verdict.status]
    word = "INCONCLUSIVE" if verdict.inconclusive else word
    say(out, f"{word}: {outcome(verdict)}", style)


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
    """Return a line that is no longer than ``_LINE``, without folders, cut between words."""
    if len(line) <= _LINE:
        return line
    return textwrap.shorten(_FOLDERS.sub("…/", line), _LINE, placeholder=" …")


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
    found.sort(key=lambda one: -one[1].excess)
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
    nodes = finding.node or listed(judged.nodes)
    on = f", {' '.join(filter(None, (nodes, finding.interface)))}" if nodes else ""
    return f"{where}: {what} {finding.value:.3g}{size}, limit {finding.bound:.3g}{on}"


def print_alongside(verdict: Verdict, out: Console) -> None:
    """Print stored results alongside the session: configurations, sessions, dates, marks."""
    if verdict.compared_with is None:
        return
    for together, cases, left_out in verdict.compared_with.together():
        word = "left out" if left_out else "compared with"
        say(out, f"{word}: {together}", "yellow" if cases[0].marks else "")
    if not verdict.compared_with.cases:
        where = verdict.compared_with.store
        say(out, f"compared with nothing: {where} has nothing that fits", "yellow")


def print_differences(differences: Sequence[str], out: Console) -> None:
    """Print the differences between nodes of a session; of very many, the number of the rest."""
    for difference in differences[:MOST_DIFFERENCES]:
        say(out, labelled(difference), "yellow")
    beyond = len(differences) - MOST_DIFFERENCES
    if beyond > 0:
        say(out, f"nodes differ in {beyond} more, which netproof report has", "yellow")


def print_verdict(
    verdict: Verdict,
    out: Console,
    *,
    recurring: Recurring = NOTHING,
    differences: Sequence[str] = (),
    unread: Sequence[str] = (),
) -> None:
    """Print repeated curves and all sentences on cases, nodes and session, the worst last.

    ``recurring``: the warnings that are one line, since earlier sessions had them; ``differences``:
    between jobs; ``unread``: why earlier sessions could not be read.
    """
    for judged in verdict.cases:
        table = repeated_table(judged)
        if table is not None and judged.flags():
            say(out, f"{judged.case}, measured again", "bold")
            print_table(table.columns(), out)
    print_alongside(verdict, out)

    def print_all(mark: str, sentences: Iterable[object], style: str = "") -> None:
        for sentence in sentences:
            say(out, f"{mark}{sentence}", style)

    print_all("not available: ", not_available(verdict.absences))
    print_all("", sentences_of_skipped(verdict.skipped), "yellow")
    print_all("note: ", verdict.notes)
    print_differences(differences, out)
    print_all("not compared with an earlier session: ", unread)
    found = [one for judged in verdict.cases for one in judged.findings]
    print_all("note: ", (one.why for one in found if one.forgiven))
    print_recurring(recurring, out)
    warned = [one.why for one in found if one.level is Level.WARN and not recurring.has(one)]
    print_all("WARN ", warned, "yellow")
    print_all("coverage: ", verdict.coverage)
    print_all("pairs: ", verdict.pairs)
    print_all("WARN ", verdict.node_warnings, "yellow")
    inconclusive = [why for judged in verdict.cases for why in judged.said(Level.INCONCLUSIVE)]
    print_all("INCONCLUSIVE ", [*inconclusive, *verdict.undecided], "yellow")
    print_all("FAIL ", failures(verdict), "red")
    if verdict.crashes:
        say(out, verdict.crashes)
    say(out, outcome(verdict), "bold")


def print_changed(judged: JudgedSession, out: Console) -> None:
    """Print the differences from the stored verdict, case by case."""
    changed = judged.changed
    if changed is None:
        say(out, "no verdict is stored of what was asked for, so this one is the first")
        return
    stored = changed.stored
    bounds = f"other bounds: {'; '.join(stored.differs)}" if stored.differs else "the same bounds"
    if not changed:
        say(out, f"says the same as the verdict of {stored.at}, by {bounds}", "green")
        return
    count = counted(len(changed.cases))
    say(out, f"says of {count} otherwise than the verdict of {stored.at}, by {bounds}", "yellow")
    for sentence in (
        *map(str, changed.cases),
        *(f"now: {fault}" for fault in changed.new),
        *(f"no more: {fault}" for fault in changed.gone),
    ):
        say(out, f"CHANGED {sentence}", "yellow")


def print_recurring(recurring: Recurring, out: Console) -> None:
    """Print the warnings that earlier sessions had too, in a line."""
    if recurring.warnings:
        say(out, recurring_sentence(recurring), "yellow")


def repeated_table(judged: CaseVerdict) -> DataTable | None:
    """Return the curve of a case and those of its repeats, at their sizes; None without any."""
    if judged.measured is None or judged.again is None or not judged.again.launches:
        return None
    first, *repeats = (
        dict(zip(curve.sizes, curve.time_us, strict=True))
        for curve in (judged.measured.curve, *judged.again.launches)
    )
    flagged = {finding.size for finding in judged.flags()}
    rows = [
        (
            f"{'flagged: ' if size in flagged else ''}{size:,}",
            *(f"{curve[size]:.1f}" if size in curve else "–" for curve in (first, *repeats)),
        )
        for size in sorted(set().union(*repeats))
    ]
    numbered = (f"again {number}, µs" for number in range(1, len(repeats) + 1))
    return DataTable(("bytes", "first, µs", *numbered), rows, EVERY)
