"""The arguments of ``netproof verdict``."""

from __future__ import annotations

from typing import Annotated

import typer

from netproof.commands.options import (
    AlongsideOption,
    FoldOption,
    FullOption,
    JsonOption,
    LeaveOutOption,
    MaxAgeOption,
    PowerOption,
    SessionArgument,
    SessionStoreOption,
    SystemOption,
    alongside,
)
from netproof.verdict.options import MAX_AGE_DAYS, SESSIONS


def verdict(
    session: SessionArgument = None,
    store: SessionStoreOption = None,
    system: SystemOption = None,
    full: FullOption = False,
    alongside_stored: AlongsideOption = False,
    max_age: MaxAgeOption = MAX_AGE_DAYS,
    leave_out_marked: LeaveOutOption = False,
    fold: FoldOption = SESSIONS,
    again: Annotated[
        bool,
        typer.Option(
            "--again", help="Judge by today's bounds, and report what differs from what is kept."
        ),
    ] = False,
    power: PowerOption = False,
    as_json: JsonOption = False,
) -> None:
    """Print the verdict on a session. Exit 0: passed, 1: failed, 2: cannot be judged."""
    asked = alongside(alongside_stored, store, max_age, leave_out_marked)
    if again and asked is not None:
        raise typer.BadParameter("--again and --alongside-stored do not go together")
    from netproof.commands import verdict as command

    raise typer.Exit(
        command.run(
            session,
            store=store,
            system=system,
            full=full,
            as_json=as_json,
            asked=asked,
            fold=fold,
            again=again,
            power=power,
        )
    )
