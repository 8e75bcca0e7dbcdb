"""The arguments of ``netproof export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from netproof.commands.options import StoreOption
from netproof.present.formats import Format


def export_session(
    store: StoreOption,
    form: Annotated[Format, typer.Option("--format", help="What to write.")],
    folder: Annotated[Path, typer.Option("--to", help="A new or empty folder.")],
    session: Annotated[
        str, typer.Argument(help="Name of the session, how it begins, or newest.")
    ] = "newest",
) -> None:
    """Write a stored session as CSV, JSON or NetPIPE files. Exit 0: written, 2: cannot be."""
    from netproof.present import export as command

    raise typer.Exit(command.run(store, session, form, folder))
