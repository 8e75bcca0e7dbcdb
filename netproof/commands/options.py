"""Arguments and options that several verbs share, and how a verb ends.

A verb imports what it does only when it is called, so that help and faulty arguments are reported
at once.
"""

from __future__ import annotations

import functools
import os
import re
import traceback
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from netproof.commands import entry
from netproof.errors import NO_REPORT, NetproofError
from netproof.verdict import CANNOT, EARLIER_SESSIONS, MAX_AGE_DAYS, StoredOptions

Form = StrEnum("Form", ["TEXT", "JSON"])
VerdictForm = StrEnum("VerdictForm", ["TEXT", "JSON", "JUNIT"])
"""Forms of what a verb prints."""


FormatOption = Annotated[Form, typer.Option("--format", help="What is printed.")]

EnvironmentOption = Annotated[
    str | None, typer.Option("--environment", "-p", help="Environment to use.")
]

PageOption = Annotated[
    Path | None,
    typer.Option("--to", metavar="FOLDER", help="Also write a page with charts into this folder."),
]

FullOption = Annotated[
    bool, typer.Option("--full", help="All IMB functions were to run (reframe -R).")
]

SessionArguments = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SESSION|SYSTEM[:PARTITION]",
        help="Session report, or a session's name in the store; the newest report if left out."
        " SYSTEM:PARTITION: only its cases are expected.",
        show_default=False,
    ),
]

SessionStoreOption = Annotated[
    Path | None,
    typer.Option(
        "--store",
        envvar="NETPROOF_STORE",
        help="Folder of the store, for a session's name.",
        readable=False,
    ),
]


WithStoredOption = Annotated[
    bool,
    typer.Option(
        "--with-stored",
        help="Compare with what the store has of the configurations that were not measured.",
    ),
]

MaxAgeOption = Annotated[
    float,
    typer.Option(
        "--max-age",
        min=0,
        metavar="DAYS",
        help="With --with-stored: age from which a stored session is marked.",
    ),
]

LeaveOutOption = Annotated[
    bool,
    typer.Option(
        "--leave-out-marked",
        help="With --with-stored: leave out what is too old, or was made with other versions.",
    ),
]

PowerOption = Annotated[
    bool,
    typer.Option(
        "--power", help="Show the smallest change of each case that would have failed it."
    ),
]

FoldOption = Annotated[
    int,
    typer.Option(
        "--fold",
        min=0,
        max=EARLIER_SESSIONS,
        metavar="N",
        help="Warnings that each of the last N sessions had, 3 at least, are one line; 0: none is.",
    ),
]


StoreOption = Annotated[
    Path,
    typer.Option("--store", envvar="NETPROOF_STORE", help="Folder of the store.", readable=False),
]

ToOption = Annotated[
    Path | None,
    typer.Option(
        "--to",
        metavar="FOLDER",
        help="Folder to write; next to the report if left out, else here.",
    ),
]

EXAMPLES = "examples"
"""Attribute of a verb: command lines without the program, for help."""

_SYSTEM = re.compile(r"[A-Za-z_][\w-]*(:[\w-]+)?")


def subjects(
    arguments: Sequence[str] | None, store: Path | None = None, *, most: int | None = 1
) -> tuple[list[Path], str | None]:
    """Return the sessions among the arguments of a verb, and the ``SYSTEM[:PARTITION]`` or None.

    A name is a system unless it is a file's, a session's folder's, or ``newest``; sessions in a
    store begin with a digit. Raises typer.BadParameter for a second system and for more than
    ``most`` sessions, and NetproofError, before anything is loaded, for a report that is missing.
    """
    given = list(arguments or ())
    systems = [one for one in given if _is_system(one)]
    sessions = [one for one in given if one not in systems]
    if len(systems) > 1:
        raise typer.BadParameter(
            f"{' and '.join(systems)} are two systems: name one; a report is named by its file"
        )
    if most is not None and len(sessions) > most:
        raise typer.BadParameter(f"{' and '.join(sessions)}: name one session")
    named = [Path(name) for name in sessions]
    insist_on_reports(named, store)
    return named, systems[0] if systems else None


def insist_on_reports(sessions: Sequence[Path], store: Path | None) -> None:
    """Raise NetproofError for a report that is missing, before anything is loaded."""
    for name in sessions:
        # Any other name is one in the store.
        report = store is None or name.suffix == ".json"
        if report and not os.path.exists(name):
            raise NetproofError(f"{name}: {NO_REPORT}")


def _is_system(argument: str) -> bool:
    if argument == "newest" or not _SYSTEM.fullmatch(argument) or os.path.isfile(argument):
        return False
    if not os.path.isdir(argument):
        return True
    from netproof.session.records import HEADER

    return not os.path.isfile(os.path.join(argument, HEADER))


def insist_on_site(*names: str) -> None:
    """Raise NetproofError where the shell has no site, before what reads one is loaded."""
    for name in names or ("RFM_CONFIG_PATH",):
        if not os.environ.get(name):
            raise NetproofError(f"{name} is not set; source the site's activate")


def insist_on_newest() -> None:
    """Raise NetproofError where there is no newest report, before what judges one is loaded."""
    insist_on_site("RFM_REPORT_FILE")
    folder = Path(os.environ["RFM_REPORT_FILE"]).parent
    if not folder.is_dir() or not any(folder.iterdir()):
        raise NetproofError(
            f"{folder}: there is no report of a session; name one, or run 'netproof run'"
        )


def session_and_system(
    arguments: Sequence[str] | None, store: Path | None = None
) -> tuple[Path | None, str | None]:
    """Return the same where there is one session at most: it, or None."""
    sessions, system = subjects(arguments, store)
    return (sessions[0] if sessions else None), system


def verb(cannot: str, *examples: str) -> Callable[[Callable[..., int]], Callable[..., None]]:
    """Make a function that returns an exit status a verb.

    A NetproofError is printed with ``cannot`` before it, and the status is 2. ``examples``: command
    lines without the program, for help.
    """

    def decorated(function: Callable[..., int]) -> Callable[..., None]:
        @functools.wraps(function)
        def call(*arguments: object, **named: object) -> None:
            try:
                status = function(*arguments, **named)
            except NetproofError as error:
                status = refused(cannot, error)
            raise typer.Exit(status)

        setattr(call, EXAMPLES, examples)
        return call

    return decorated


def refused(cannot: str, error: object) -> int:
    """Print why a verb cannot do what was asked; return its exit status."""
    from netproof.present import terminal

    if entry.debugging():
        traceback.print_exc()
    text = f"netproof: {cannot}{': ' if cannot else ''}{error}"
    terminal.say(terminal.console(stderr=True), text, "red")
    return CANNOT


def alongside(
    with_stored: bool, store: Path | None, max_age: float, leave_out_marked: bool
) -> StoredOptions | None:
    """Return which stored results to show; typer.BadParameter where options do not fit."""
    if with_stored:
        if store is None:
            raise typer.BadParameter("--with-stored takes a store: --store or NETPROOF_STORE")
        return StoredOptions(store, max_age, leave_out_marked)
    if leave_out_marked or max_age != MAX_AGE_DAYS:
        raise typer.BadParameter("--max-age and --leave-out-marked go with --with-stored")
    return None
