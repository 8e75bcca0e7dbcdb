"""The arguments of ``netproof store check``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def check_store(
    store: Annotated[
        Path,
        typer.Argument(
            envvar="NETPROOF_STORE", help="Folder of the store.", metavar="STORE", readable=False
        ),
    ],
) -> None:
    """Read the whole store and name what is damaged. Exit 0: nothing is, 2: something is."""
    from netproof.commands import store_check as command

    raise typer.Exit(command.run(store))
