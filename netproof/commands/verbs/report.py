"""The arguments of ``netproof report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from netproof.commands.options import (
    AlongsideOption,
    FullOption,
    LeaveOutOption,
    MaxAgeOption,
    PowerOption,
    SessionArgument,
    SessionStoreOption,
    SystemOption,
    alongside,
)
from netproof.verdict.options import MAX_AGE_DAYS


def report(
    session: SessionArgument = None,
    store: SessionStoreOption = None,
    system: SystemOption = None,
    full: FullOption = False,
    alongside_stored: AlongsideOption = False,
    max_age: MaxAgeOption = MAX_AGE_DAYS,
    leave_out_marked: LeaveOutOption = False,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Folder to write; next to the session if left out.", show_default=False
        ),
    ] = None,
    formats: Annotated[
        str, typer.Option("--format", help="Any of html,png,svg,pdf,csv, with commas.")
    ] = "html",
    switch: Annotated[
        str | None,
        typer.Option(
            "--switch",
            metavar="PARTITION",
            help="Compare this one with the others on a page; default: the one measured alone.",
            show_default=False,
        ),
    ] = None,
    power: PowerOption = False,
) -> None:
    """Write pages and charts on a session. Exit 0: written, 2: cannot be written."""
    asked = alongside(alongside_stored, store, max_age, leave_out_marked)
    from netproof.commands import report as command

    raise typer.Exit(
        command.run(
            session,
            store=store,
            system=system,
            full=full,
            folder=folder,
            formats=formats,
            switch=switch,
            asked=asked,
            power=power,
        )
    )
