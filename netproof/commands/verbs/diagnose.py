"""The arguments of ``netproof diagnose``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from netproof.commands.options import JsonOption, SystemOption
from netproof.verdict.options import EARLIER_SESSIONS


def diagnose(
    partition: Annotated[
        str | None,
        typer.Argument(help="Only this partition; all that were measured if left out."),
    ] = None,
    session: Annotated[
        Path | None,
        typer.Option(
            "--session",
            metavar="NAME|PATH",
            help="Session report, or a session's name in the store; else the newest report.",
            show_default=False,
            readable=False,
        ),
    ] = None,
    store: Annotated[
        Path | None,
        typer.Option(
            "--store",
            envvar="NETPROOF_STORE",
            help="Folder of the store, for a session's name and for since when.",
            show_default=False,
            readable=False,
        ),
    ] = None,
    back: Annotated[
        int,
        typer.Option(
            "--back",
            min=0,
            metavar="N",
            help="Look into up to N earlier sessions for since when.",
        ),
    ] = EARLIER_SESSIONS,
    measure: Annotated[
        bool,
        typer.Option("--measure", help="First measure all nodes of the partition in pairs."),
    ] = False,
    system: SystemOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what is wrong, where, since when. Exit 0: nothing, 1: something, 2: unknown."""
    if measure and session is not None:
        raise typer.BadParameter("--measure makes a session of its own: leave --session out")
    if measure and partition is None:
        raise typer.BadParameter("--measure takes a PARTITION")
    from netproof.commands import diagnose as command

    raise typer.Exit(
        command.run(
            partition,
            session=session,
            store=store,
            back=back,
            measure=measure,
            system=system,
            as_json=as_json,
        )
    )
