"""Arguments and options that several verbs share, and which fit together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from netproof.verdict.options import EARLIER_SESSIONS, MAX_AGE_DAYS, AlongsideOptions

JsonOption = Annotated[bool, typer.Option("--json", help="Print the same as JSON.")]

WhereOption = Annotated[
    str | None,
    typer.Option("--system", metavar="SYSTEM:PARTITION", help="Where.", show_default=False),
]

EnvironmentOption = Annotated[
    str | None,
    typer.Option("--environment", "-p", help="Environment to use.", show_default=False),
]

EarlierReportOption = Annotated[
    Path | None,
    typer.Option(
        "--report",
        help="Measure nothing, and read the report of an earlier session.",
        show_default=False,
        readable=False,
    ),
]

PageOption = Annotated[
    Path | None,
    typer.Option(
        "--html", metavar="FOLDER", help="Also write a page with charts.", show_default=False
    ),
]

SystemOption = Annotated[
    str | None,
    typer.Option(
        "--system", help="SYSTEM or SYSTEM:PARTITION, as for reframe.", show_default=False
    ),
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
        show_default=False,
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
