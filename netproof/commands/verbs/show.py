"""The arguments of ``netproof show``."""

from __future__ import annotations

import typer

from netproof.commands.options import (
    AlongsideOption,
    FullOption,
    JsonOption,
    LeaveOutOption,
    MaxAgeOption,
    SessionArgument,
    SessionStoreOption,
    SystemOption,
    alongside,
)
from netproof.verdict.options import MAX_AGE_DAYS


def show_session(
    session: SessionArgument = None,
    store: SessionStoreOption = None,
    system: SystemOption = None,
    full: FullOption = False,
    alongside_stored: AlongsideOption = False,
    max_age: MaxAgeOption = MAX_AGE_DAYS,
    leave_out_marked: LeaveOutOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show verdict, scores, landmarks and curves. Exit 0: shown, 2: cannot be shown."""
    asked = alongside(alongside_stored, store, max_age, leave_out_marked)
    from netproof.commands import show as command

    raise typer.Exit(
        command.run(
            session,
            store=store,
            system=system,
            full=full,
            as_json=as_json,
            asked=asked,
        )
    )
