"""The verbs on a store: ``store add``, ``store export`` and ``store check``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from netproof.commands.options import subjects, verb
from netproof.errors import NetproofError, counted
from netproof.verdict import CANNOT, FAILED, PASSED

if TYPE_CHECKING:
    from netproof.store import Store, StoredSession
    from netproof.store.ingest import Ingested


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
        raise typer.BadParameter("name a session's report")
    from netproof.diagnosis.diagnosis import ingest
    from netproof.present import terminal
    from netproof.store import Store

    err = terminal.console(stderr=True)
    opened = Store.create(store)
    refused = 0
    for number, report in enumerate(reports, 1):
        try:
            with terminal.working(f"storing {report}, {number} of {len(reports)}"):
                done = ingest(opened, report, system=system, full=full)
            print_stored(done)
        except NetproofError as error:
            refused += 1
            terminal.say(err, f"refused {error}", "red")
    if refused:
        terminal.say(err, f"{refused} of {len(reports)} reports refused", "red")
    return CANNOT if refused else PASSED


def print_stored(done: Ingested) -> None:
    """Print which session was stored, and what is not known of it."""
    from netproof.present import terminal
    from netproof.present.document import show
    from netproof.present.verdict import differences

    out = terminal.console()
    came = "stored" if done.new else "there already"
    terminal.say(
        out,
        f"{came}: session {done.stored.name} of {done.stored.system}, {done.measured} of"
        f" {done.cases} cases measured",
    )
    if not done.new:
        return
    show([differences(done.differences)], out)
    if "nodes" in done.unknown:
        terminal.say(out, f"nodes not known: {done.unknown['nodes']}", "yellow")
    if done.not_judged:
        terminal.say(out, f"stored without a verdict: {done.not_judged}", "yellow")


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
    from netproof.present import terminal
    from netproof.store import Store

    out, opened = terminal.console(), Store(store)
    sessions = opened.sessions()
    damaged = 0
    for number, stored in enumerate(sessions, 1):
        with terminal.working(f"reading session {number} of {len(sessions)}"):
            found = faults(opened, stored)
        damaged += bool(found)
        for fault in found:
            terminal.say(out, fault, "red")
    count = len(sessions)
    said = f"{counted(count, 'session')}: {count - damaged} verified, {damaged} damaged"
    terminal.say(out, said)
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
