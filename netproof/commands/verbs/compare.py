"""The arguments of ``netproof compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from netproof.commands.options import JsonOption, SessionStoreOption


def compare_sessions(
    first: Annotated[
        Path | None,
        typer.Argument(
            help="Session report, or a session's name in the store.",
            show_default=False,
            readable=False,
        ),
    ] = None,
    second: Annotated[
        Path | None,
        typer.Argument(
            help="Another one; the same if left out.", show_default=False, readable=False
        ),
    ] = None,
    store: SessionStoreOption = None,
    label: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--label",
            metavar="A B",
            help="KEY=VALUE of each side: the store's newest session with that label.",
            show_default=False,
        ),
    ] = None,
    partition: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--partition", metavar="A B", help="Partition of each side.", show_default=False
        ),
    ] = None,
    environment: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--environment", metavar="A B", help="Environment of each side.", show_default=False
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            help="All values of one dimension compared with the first: partition, environment, or"
            " label=KEY over the store.",
            show_default=False,
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option("--out", help="Folder to write a page on it into, too.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare sessions, partitions or environments. Exit 0: shown, 2: cannot be compared."""
    if by is not None:
        if second is not None or label is not None:
            raise typer.BadParameter("takes one session, and no --label", param_hint="--by")
        from netproof.commands import dimension as command

        raise typer.Exit(
            command.run(
                by,
                first,
                store=store,
                partitions=partition,
                environments=environment,
                as_json=as_json,
                folder=folder,
            )
        )
    from netproof.commands import compare as command

    raise typer.Exit(
        command.run(
            first,
            second,
            store=store,
            labels=label,
            partitions=partition,
            environments=environment,
            as_json=as_json,
            folder=folder,
        )
    )
