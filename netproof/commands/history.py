"""The bodies of ``netproof history``: changes, the series of some cases, and accepting."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path

from rich.console import Console

from netproof.errors import NetproofError
from netproof.history import accepted, history_verdict, judging, series
from netproof.history.accepted import Acceptance
from netproof.history.history_verdict import HistoryVerdict
from netproof.history.selection import Selection
from netproof.present import documents, tables
from netproof.present.history import document, print_overview, print_series, since_when
from netproof.present.tables import say
from netproof.session.session import label_of
from netproof.store import Store
from netproof.verdict.exit_status import CANNOT_JUDGE, PASSED


def run(
    selection: Selection,
    store: Path,
    *,
    system: str | None,
    session: str | None,
    last: int | None,
    since: date | None,
    labels: Sequence[str],
    plot: Path | None,
    as_json: bool,
) -> int:
    """Show changes, or the series of some cases, and return the exit status.

    0: nothing is worse, or too few sessions to judge; 1: an open change for the worse among those
    shown; 2: it cannot be judged. ``labels``: each ``KEY=VALUE``; ``plot``: a file to draw the
    series of ``selection`` in; the rest as ``judging.judge`` takes it.
    """
    try:
        with tables.working("following the series"):
            verdict = judging.judge(
                Store(store),
                system,
                session,
                last=last,
                since=since,
                labels=dict(map(label_of, labels)),
            )
        shown = verdict if selection.everything else verdict.of(selection)
        if plot is not None:
            _plot(shown, plot)
    except NetproofError as error:
        return _refused("cannot follow", str(error))
    except OSError as error:
        return _refused("cannot draw", f"{error.filename}: cannot be written: {error.strerror}")
    for sentence in shown.nights.unread:
        say(tables.console(stderr=True), sentence, "yellow")
    if verdict.not_kept:
        sentence = f"the next history takes as long as this one: {verdict.not_kept}"
        say(tables.console(stderr=True), sentence, "yellow")
    if as_json:
        documents.write(document(shown, series=not selection.everything), sys.stdout)
        return shown.status
    out = tables.console()
    if selection.everything:
        print_overview(shown, out)
    else:
        print_series(shown, out)
    if plot is not None:
        say(out, f"plot {plot}")
    return shown.status


def accept(
    selection: Selection,
    store: Path,
    *,
    system: str | None,
    session: str,
    reason: str,
    name: str,
) -> int:
    """Record that changes from a session on are intended: exit 0 recorded, 2 not possible."""
    out = tables.console()
    try:
        opened = Store(store)
        with tables.working("following the series"):
            first = series.named(opened, session, system)
            verdict = judging.judge(opened, first.system)
            covered = verdict.of(selection)
        acceptance = Acceptance(
            first.system,
            first.name,
            reason,
            name,
            datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S"),
            selection,
        )
        path = accepted.put(opened, acceptance)
    except NetproofError as error:
        return _refused("not accepted", str(error))
    say(out, f"accepted: {acceptance}")
    count = len(covered.nights.series)
    least = history_verdict.least_nights()
    say(
        out,
        f"{count} series of {covered.system} start again with session {first.name}; each takes"
        f" {least} nights until a change in it can be found again",
    )
    say(out, f"to take it back, remove {path}")
    after = judging.judge_with(verdict, opened, acceptance)
    _print_left(acceptance, covered, after, out)
    return PASSED


def _print_left(
    acceptance: Acceptance, covered: HistoryVerdict, after: HistoryVerdict, out: Console
) -> None:
    """Print the open changes covered: those that end, those still open ``after``, those lost."""
    open_after = {shift.of for event in after.events for shift in event.shifts}
    for event in covered.events:
        later = event.session > acceptance.first
        what = f"{since_when(event)}, {len(event.shifts)} changes"
        if any(shift.of in open_after for shift in event.shifts):
            say(out, f"stays open{', since it began later' * later}: {what}", "yellow")
        elif later:
            say(
                out,
                f"ENDS THOUGH IT BEGAN LATER: {what}: from {acceptance.session} to it there are too"
                " few nights to compare it with. If it is not meant, take this back",
                "bold red",
            )
        else:
            say(out, f"ends: {what}", "green")
    if not covered.events:
        say(
            out,
            "no change of these is open now: what is found later from there on is new",
            "yellow",
        )


def _plot(verdict: HistoryVerdict, path: Path) -> None:
    # Loading Altair takes a third of any command's start.
    from netproof.present.html import history

    history.write(verdict, path)


def _refused(what: str, reason: str) -> int:
    say(tables.console(stderr=True), f"netproof: {what}: {reason}", "red")
    return CANNOT_JUDGE
