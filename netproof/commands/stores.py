"""The verbs on a store, its references and its history: store, references and history.

``history`` is ``history show`` without its name.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from netproof.commands.options import Form, printed, session_and_system, subjects, verb
from netproof.errors import NetproofError, counted
from netproof.history.selection import NEWEST_SESSIONS, STRIDE, Quantity, Selection
from netproof.present import documents, terminal
from netproof.present.document import Cell
from netproof.site import folders
from netproof.verdict import CANNOT, FAILED, INCONCLUSIVE, PASSED

if TYPE_CHECKING:
    from netproof.history.history_verdict import HistoryVerdict
    from netproof.history.series import Acceptance
    from netproof.present.document import Block
    from netproof.session.session import Session
    from netproof.store import Store, StoredSession
    from netproof.store.ingest import Ingested
    from netproof.verdict.references import ReferenceFile


class Format(StrEnum):
    """Formats in which a session can be written."""

    CSV = "csv"
    JSON = "json"
    NETPIPE = "netpipe"


@verb()
def add(
    arguments: list[str],
    store: Path,
    full: bool = False,
) -> int:
    """Judge and store reports."""
    reports, system = subjects(arguments, most=None)
    if not reports:
        raise typer.BadParameter(f"{system} is no file here: name a session's report")
    from netproof.diagnosis.diagnosis import ingest
    from netproof.store import Store

    opened = Store.create(store)
    refused = 0
    for number, report in enumerate(reports, 1):
        try:
            with terminal.working(f"storing {report}, {number} of {len(reports)}"):
                done = ingest(opened, report, system=system, full=full)
            print_stored(done)
        except NetproofError as error:
            refused += 1
            terminal.say(f"refused {error}", "red", stderr=True)
    if refused:
        terminal.say(f"{refused} of {len(reports)} reports refused", "red", stderr=True)
    return CANNOT if refused else PASSED


def print_stored(done: Ingested) -> None:
    """Print which session was stored, and what is not known of it."""
    from netproof.present.verdict import differences

    came = "stored" if done.new else "there already"
    terminal.say(
        f"{came}: session {done.stored.name} of {done.stored.system}, {done.measured} of"
        f" {done.cases} cases measured",
    )
    if done.ahead:
        terminal.say(done.ahead, "yellow")
    if not done.new:
        return
    terminal.show([differences(done.differences)])
    if "nodes" in done.unknown:
        terminal.say(f"nodes not known: {done.unknown['nodes']}", "yellow")
    if done.not_judged:
        terminal.say(f"stored without a verdict: {done.not_judged}", "yellow")


@verb()
def export(
    store: Path,
    form: Format,
    folder: Path,
    session: str = "newest",
) -> int:
    """Write a stored session as CSV, JSON or NetPIPE files."""
    from netproof.store import Store

    Store(store)
    from netproof.present import export as exporting

    exporting.export(store, session, form, folder)
    return PASSED


@verb()
def check(store: Path) -> int:
    """Read the whole store and name what is damaged."""
    from netproof.store import Store

    opened = Store(store)
    sessions = opened.sessions()
    damaged = 0
    for number, stored in enumerate(sessions, 1):
        with terminal.working(f"reading session {number} of {len(sessions)}"):
            found = faults(opened, stored)
        damaged += bool(found)
        for fault in found:
            terminal.say(fault, "red")
    count = len(sessions)
    terminal.say(f"{counted(count, 'session')}: {count - damaged} verified, {damaged} damaged")
    return FAILED if damaged else PASSED


def faults(store: Store, stored: StoredSession) -> tuple[str, ...]:
    """Return what is damaged of a session: its files by checksum, and against each other."""
    from netproof.store import folder as store_folder
    from netproof.store import questions
    from netproof.verdict import stored as verdicts

    folder = store.path(stored)
    try:
        found = store_folder.faults(folder, store.files(stored))
    except OSError as error:
        return (f"{folder}: cannot be read: {error.strerror}",)
    except store_folder.Damaged as error:
        return (str(error),)
    if not found:
        try:
            verdicts.on_session(questions.whole(store, stored), store, stored)
        except NetproofError as error:
            return (str(error),)
    return tuple(map(str, found))


@verb("cannot derive references")
def derive(
    arguments: list[str],
    write: bool = False,
    allow_looser: bool = False,
    risk: float = 0.05,
    floor: float = 0.1,
    spread_limit: float = 0.1,
    per_size: bool = False,
) -> int:
    """Derive references and show what changes."""
    sessions, system = subjects(arguments, most=None)

    with terminal.working(f"deriving references of {len(sessions)} sessions"):
        loaded, references, name, partition = _loaded(sessions, system)
        from netproof.intake import disk
        from netproof.verdict import derive as deriving
        from netproof.verdict.references import diff, edited

        made = deriving.derived(
            loaded,
            references,
            name,
            partition,
            risk=risk,
            floor=floor,
            spread_limit=spread_limit,
            allow_looser=allow_looser,
            per_size=per_size,
        )
    path = references.path
    text = edited(references, {(one.check, one.case): one.entries for one in made if one.entries})
    changed = diff(path, references.text, text)
    if write and changed:
        disk.replace(path, text)
    styles = {"+": "green", "-": "red", "@": "cyan"}
    for line in changed:
        head = line.startswith(("---", "+++"))
        terminal.say(line, "bold" if head else styles.get(line[:1], ""))
    remarks: list[Block] = []
    for one in made:
        if one.reason:
            remarks.append(Cell(f"{one.case}: no references: {one.reason}", "warned"))
            continue
        for_good = (f"  {name}: left as it is: {why}" for name, why in one.unchanged.items())
        lines = [*(Cell(line, "warned") for line in for_good)]
        lines += [Cell(f"  {name}: {why}") for name, why in one.kept.items()]
        remarks += [f"{one.case}:", *lines] if lines else []
    whole = (
        f"{len(loaded)} sessions, {len(made)} cases, {sum(bool(one.reason) for one in made)} of"
        f" them without references; {sum(len(one.entries) for one in made)} entries change,"
        f" {sum(len(one.unchanged) for one in made)} are left as they are"
    )
    remarks.append(Cell(whole, "strong"))
    least = deriving.FEW_LAUNCHES
    if few := sum(one.launches < least for one in made if not one.reason):
        slow = (
            f"{few} cases have fewer than {least} launches in a session: one slow launch is then"
            f" the session's value, which no bound foresees; measure with -S launches={least}"
        )
        remarks.append(Cell(slow, "warned"))
    shown = os.path.relpath(path)
    done = f"{shown} is written" if write else f"nothing is written; --write changes {shown}"
    remarks.append(done if changed else f"{shown} stays as it is")
    terminal.show(remarks, terminal.console(stderr=True))
    return INCONCLUSIVE if any(one.outside for one in made) else PASSED


def _loaded(
    reports: Sequence[Path], system: str | None
) -> tuple[list[Session], ReferenceFile, str, str | None]:
    """Return sessions and references, and the names of system and partition (None: all)."""
    from netproof.session import session
    from netproof.verdict.references import ReferenceFile

    sessions: list[Session] = []
    if system is None:
        sessions = [session.load(report) for report in reports]
        from netproof.verdict.derive import system_of

        system = system_of(sessions)
    name, _, partition = system.partition(":")
    # What is wrong with the references of a system that was named is said at once.
    references = ReferenceFile(folders.of_references() / f"{name}.yaml")
    sessions = sessions or [session.load(report) for report in reports]
    return sessions, references, name, partition or None


@verb("no risks")
def risk(
    arguments: list[str],
    margin: float = 0.1,
    form: Form = Form.TEXT,
) -> int:
    """Print what buyer and seller risk by each bound."""
    sessions, system = subjects(arguments, most=None)

    with terminal.working(f"simulating acceptances by {len(sessions)} sessions"):
        loaded = _loaded(sessions, system)
        from netproof.verdict.derive import risks_of_sessions

        found, without = risks_of_sessions(*loaded, margin)
    from netproof.present.verdict import risk_blocks

    printed(
        form,
        lambda: {
            "margin": margin,
            "risks": documents.plain(found),
            "without": [{**documents.plain(case), "why": why} for case, why in without.items()],
        },
        lambda _: [("risks", "", [*risk_blocks(found, without, margin)])],
    )
    return INCONCLUSIVE if without or not found else PASSED


class HistoryVerbs(TyperGroup):
    """Run ``show`` for ``netproof history`` without the name of a command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the name of the command there that is meant."""
        named = args[:1]
        if not named or named[0] not in {*self.commands, *ctx.help_option_names}:
            args = ["show", *args]
        return super().parse_args(ctx, args)


def _selection(
    case: list[str] | None, system: str | None, environment: str | None, quantity: Quantity | None
) -> tuple[str | None, Selection]:
    """Return system and series of a command; a bad expression is a fault of its arguments."""
    name, _, partition = (system or "").partition(":")
    try:
        return name or None, Selection(tuple(case or ()), partition or None, environment, quantity)
    except NetproofError as error:
        raise typer.BadParameter(str(error), param_hint="--case") from error


@verb("cannot follow")
def show(
    store: Path,
    arguments: list[str] | None = None,
    case: list[str] | None = None,
    environment: str | None = None,
    quantity: Quantity | None = None,
    last: Annotated[
        int | None,
        typer.Option(
            min=1,
            help=f"How many sessions are looked back on; {NEWEST_SESSIONS} or up to"
            f" {STRIDE - 1} more if left out.",
            show_default=False,
        ),
    ] = None,
    since: datetime | None = None,
    label: list[str] | None = None,
    plot: Path | None = None,
    form: Form = Form.TEXT,
) -> int:
    """Show what changed, or the series of cases."""
    session, system = session_and_system(arguments, store)
    system, selection = _selection(case, system, environment, quantity)
    from netproof.store import Store

    opened = Store(store)
    from netproof.history import history_verdict
    from netproof.present.history import document, overview, series, write
    from netproof.session.session import label_of

    with terminal.working("following the series"):
        verdict = history_verdict.judge(
            opened,
            system,
            None if session is None else str(session),
            last=last,
            since=since.date() if since else None,
            labels=dict(map(label_of, label or ())),
        )
    shown = verdict if selection.everything else verdict.of(selection)
    if plot is not None:
        write(shown, plot)
    for sentence in shown.nights.unread:
        terminal.say(sentence, "yellow", stderr=True)
    if verdict.not_kept:
        sentence = f"the next history takes as long as this one: {verdict.not_kept}"
        terminal.say(sentence, "yellow", stderr=True)
    answer = overview if selection.everything else series
    plotted: list[Block] = [] if plot is None else [f"plot {plot}"]
    printed(
        form,
        lambda: document(shown, series=not selection.everything),
        lambda _: [("history", "", [*answer(shown), *plotted])],
    )
    return shown.status


@verb("not accepted")
def accept(
    store: Path,
    arguments: list[str],
    reason: str,
    name: str,
    case: list[str] | None = None,
    environment: str | None = None,
    quantity: Quantity | None = None,
) -> int:
    """Record in the store that a change is intended."""
    session, system = session_and_system(arguments, store)
    if session is None:
        raise typer.BadParameter("name the first SESSION at the new level, or newest")
    system, selection = _selection(case, system, environment, quantity)
    from netproof.store import Store

    opened = Store(store)
    from netproof.history import history_verdict, series

    with terminal.working("following the series"):
        first = series.named(opened, str(session), system)
        verdict = history_verdict.judge(opened, first.system)
        covered = verdict.of(selection)
    when = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}"
    acceptance = series.Acceptance(first.system, first.name, reason, name, when, selection)
    path = series.accept(opened, acceptance)
    after = history_verdict.judge_with(verdict, opened, acceptance)
    lines = (
        f"accepted: {acceptance}",
        f"{len(covered.nights.series)} series of {covered.system} start again with session"
        f" {first.name}; each takes {history_verdict.least_nights()} nights until a change in it"
        " can be found again",
        f"to take it back, remove {path}",
    )
    terminal.show([*lines, *_left(acceptance, covered, after)])
    return 0


def _left(
    acceptance: Acceptance, covered: HistoryVerdict, after: HistoryVerdict
) -> Iterator[Block]:
    """Yield the open changes covered: those that end, those still open ``after``, those lost."""
    from netproof.present.history import since_when

    open_after = {shift.of for event in after.events for shift in event.shifts}
    for event in covered.events:
        later = event.session > acceptance.first
        what = f"{since_when(event)}, {len(event.shifts)} changes"
        if any(shift.of in open_after for shift in event.shifts):
            yield Cell(f"stays open{', since it began later' * later}: {what}", "warned")
        elif later:
            why = f"from {acceptance.session} to it there are too few nights to compare it with"
            remedy = "If it is not meant, take this back"
            yield Cell(f"ENDS THOUGH IT BEGAN LATER: {what}: {why}. {remedy}", "failed")
        else:
            yield Cell(f"ends: {what}", "passed")
    if not covered.events:
        none = "no change of these is open now: what is found later from there on is new"
        yield Cell(none, "warned")
