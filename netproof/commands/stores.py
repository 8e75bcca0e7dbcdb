"""The verbs on a store: ``store add``, ``store export`` and ``store check``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from netproof.commands.options import FullOption, StoreOption, subjects, verb
from netproof.errors import NetproofError
from netproof.present.formats import Format

if TYPE_CHECKING:
    from rich.console import Console

    from netproof.store import Store, StoredSession
    from netproof.store.ingest import Ingested


@verb("")
def add(
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="SESSION... [SYSTEM[:PARTITION]]",
            help="Session reports; what of the system is expected of them.",
        ),
    ],
    store: StoreOption,
    full: FullOption = False,
) -> int:
    """Judge and store reports. Exit 0: all are stored, 2: some are refused, or no store exists."""
    reports, system = subjects(arguments, most=None)
    if not reports:
        raise typer.BadParameter("name a session's report")
    from netproof.present import tables
    from netproof.store import Store
    from netproof.verdict import judging

    out, err = tables.console(), tables.console(stderr=True)
    opened = Store.create(store)
    refused = 0
    for number, report in enumerate(reports, 1):
        try:
            with tables.working(f"storing {report}, {number} of {len(reports)}"):
                done = judging.ingest(opened, report, system=system, full=full)
            _print_stored(done, out)
        except NetproofError as error:
            refused += 1
            tables.say(err, f"refused {error}", "red")
    if refused:
        tables.say(err, f"{refused} of {len(reports)} reports refused", "red")
    return 2 if refused else 0


def _print_stored(done: Ingested, out: Console) -> None:
    from netproof.present import tables

    came = "stored" if done.new else "there already"
    tables.say(
        out,
        f"{came}: session {done.stored.name} of {done.stored.system}, {done.measured} of"
        f" {done.cases} cases measured",
    )
    if not done.new:
        return
    tables.print_differences(done.differences, out)
    if "nodes" in done.unknown:
        tables.say(out, f"nodes not known: {done.unknown['nodes']}", "yellow")
    if done.not_judged:
        tables.say(out, f"stored without a verdict: {done.not_judged}", "yellow")


@verb("")
def export(
    store: StoreOption,
    form: Annotated[Format, typer.Option("--format", help="What to write.")],
    folder: Annotated[Path, typer.Option("--to", help="A new or empty folder.")],
    session: Annotated[
        str, typer.Argument(help="Name of the session, how it begins, or newest.")
    ] = "newest",
) -> int:
    """Write a stored session as CSV, JSON or NetPIPE files. Exit 0: written, 2: cannot be."""
    from netproof.present.export import run

    return run(store, session, form, folder)


@verb("")
def check(store: StoreOption) -> int:
    """Read the whole store and name what is damaged. Exit 0: nothing is, 2: something is."""
    from netproof.present import tables
    from netproof.store import Store

    out, opened = tables.console(), Store(store)
    sessions = opened.sessions()
    damaged = 0
    for number, stored in enumerate(sessions, 1):
        with tables.working(f"reading session {number} of {len(sessions)}"):
            found = faults(opened, stored)
        damaged += bool(found)
        for fault in found:
            tables.say(out, fault, "red")
    count = len(sessions)
    tables.say(out, f"{count} sessions: {count - damaged} verified, {damaged} damaged")
    return 2 if damaged else 0


def faults(store: Store, stored: StoredSession) -> tuple[str, ...]:
    """Return what is damaged of a session: its files by checksum, and against each other."""
    from netproof.store import checksums, questions
    from netproof.store.folder import VERDICT
    from netproof.verdict import stored as verdicts

    folder = store.path(stored)
    try:
        found = checksums.faults(folder, store.files(stored))
    except OSError as error:
        return (f"{folder}: cannot be read: {error.strerror}",)
    except checksums.Damaged as error:
        return (str(error),)
    if not found:
        try:
            session = questions.whole(store, stored)
            if (judged := verdicts.on_session(session, store, stored)) is not None:
                verdicts.insist_on_session(judged[1], session, folder / VERDICT)
        except NetproofError as error:
            return (str(error),)
    return tuple(map(str, found))
