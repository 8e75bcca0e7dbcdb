"""Arguments and options that several verbs share, and how a verb ends.

A verb imports what it does only when it is called, so that help and faulty arguments are reported
at once.
"""

from __future__ import annotations

import functools
import os
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from netproof.commands import entry
from netproof.errors import NO_REPORT, NetproofError
from netproof.verdict.exit_status import CANNOT_JUDGE
from netproof.verdict.options import EARLIER_SESSIONS, MAX_AGE_DAYS, AlongsideOptions

JsonOption = Annotated[bool, typer.Option("--json", help="Print the same as JSON.")]

WhereOption = Annotated[
    str | None, typer.Option("--system", metavar="SYSTEM:PARTITION", help="Where.")
]

EnvironmentOption = Annotated[
    str | None, typer.Option("--environment", "-p", help="Environment to use.")
]

EarlierReportOption = Annotated[
    Path | None,
    typer.Option(
        "--report",
        help="Measure nothing, and read the report of an earlier session.",
        readable=False,
    ),
]

PageOption = Annotated[
    Path | None, typer.Option("--html", metavar="FOLDER", help="Also write a page with charts.")
]

SystemOption = Annotated[
    str | None, typer.Option("--system", help="SYSTEM or SYSTEM:PARTITION, as for reframe.")
]

FullOption = Annotated[
    bool, typer.Option("--full", help="All IMB functions were to run (reframe -R).")
]

# Paths are not checked here: each command reports an unreadable one itself, and goes on with the
# others where it takes several.
SessionArgument = Annotated[
    Path | None,
    typer.Argument(
        help="Session report, or a session's name in the store; the newest report if left out.",
        readable=False,
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


AlongsideOption = Annotated[
    bool,
    typer.Option(
        "--alongside-stored",
        help="Compare with what the store has of the configurations that were not measured.",
    ),
]

MaxAgeOption = Annotated[
    float,
    typer.Option(
        "--max-age",
        min=0,
        metavar="DAYS",
        help="With --alongside-stored: age from which a stored session is marked.",
    ),
]

LeaveOutOption = Annotated[
    bool,
    typer.Option(
        "--leave-out-marked",
        help="With --alongside-stored: leave out what is too old, or was made with other versions.",
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

OutOption = Annotated[
    Path | None, typer.Option("--out", help="Folder to write; next to the session if left out.")
]

OutputsArgument = Annotated[
    list[Path], typer.Argument(help="Output of a benchmark, IMB for instance.")
]

BidirectionalOption = Annotated[
    bool, typer.Option("--bidirectional", help="NetPIPE was run with -2.")
]


def verb(cannot: str) -> Callable[[Callable[..., int]], Callable[..., None]]:
    """Make a function that returns an exit status a verb.

    A NetproofError is printed with ``cannot`` before it, and the status is 2.
    """

    def decorated(function: Callable[..., int]) -> Callable[..., None]:
        @functools.wraps(function)
        def call(*arguments: object, **named: object) -> None:
            try:
                _insist_on_reports(named)
                status = function(*arguments, **named)
            except NetproofError as error:
                status = refused(cannot, error)
            raise typer.Exit(status)

        return call

    return decorated


def _insist_on_reports(named: Mapping[str, object]) -> None:
    """Raise NetproofError for a report that is not there, before what judges it is loaded."""
    # With these, a verb first checks that its arguments fit together.
    together = named.get("by") or named.get("measure")
    names = [] if together else [named.get(key) for key in ("session", "first", "second")]
    sessions = named.get("sessions")
    for name in (*names, *(sessions if isinstance(sessions, Sequence) else ())):
        # Any other name is one in the store.
        report = isinstance(name, Path) and (named.get("store") is None or name.suffix == ".json")
        if report and not os.path.exists(name):
            raise NetproofError(f"{name}: {NO_REPORT}")


def refused(cannot: str, error: object) -> int:
    """Print why a verb cannot do what was asked; return its exit status."""
    from netproof.present import terminal

    if entry.debugging():
        traceback.print_exc()
    text = f"netproof: {cannot}{': ' if cannot else ''}{error}"
    terminal.say(terminal.console(stderr=True), text, "red")
    return CANNOT_JUDGE


def alongside(
    alongside_stored: bool, store: Path | None, max_age: float, leave_out_marked: bool
) -> AlongsideOptions | None:
    """Return which stored results to show; typer.BadParameter where options do not fit."""
    if alongside_stored:
        if store is None:
            raise typer.BadParameter("--alongside-stored takes a store: --store or NETPROOF_STORE")
        return AlongsideOptions(store, max_age, leave_out_marked)
    if leave_out_marked or max_age != MAX_AGE_DAYS:
        raise typer.BadParameter("--max-age and --leave-out-marked go with --alongside-stored")
    return None
