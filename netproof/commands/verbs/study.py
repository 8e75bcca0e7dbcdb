"""The arguments of ``netproof study``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from netproof.commands.options import SessionArgument, SessionStoreOption


def study(
    name: Annotated[str, typer.Argument(help="Name of a study: see netproof literature.")],
    session: SessionArgument = None,
    store: SessionStoreOption = None,
    sweeps: Annotated[
        list[Path] | None,
        typer.Option(
            "--sweep",
            metavar="REPORT",
            help="Report of a sweep; the newest of each setting if left out.",
            show_default=False,
            readable=False,
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Folder to write; next to the session if left out.", show_default=False
        ),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(
            "--measure",
            metavar="SYSTEM:PARTITION",
            help="Measure what the study did first, on this partition.",
            show_default=False,
        ),
    ] = None,
    environment: Annotated[
        str | None,
        typer.Option(
            "--environment", "-p", help="With --measure: of the sweeps.", show_default=False
        ),
    ] = None,
) -> None:
    """Write a page that redoes an earlier study. Exit 0: written, 2: cannot be written."""
    if where is not None and (session is not None or sweeps):
        raise typer.BadParameter("--measure takes neither a session nor --sweep")
    if where is None and environment is not None:
        raise typer.BadParameter("--environment goes with --measure")
    from netproof.commands import study as command

    raise typer.Exit(
        command.run(
            name,
            report=session,
            store=store,
            sweeps=sweeps or (),
            folder=folder,
            where=where,
            environment=environment,
        )
    )
