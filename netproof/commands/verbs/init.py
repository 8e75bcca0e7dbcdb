"""The arguments of ``netproof init``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def init(
    system: Annotated[str, typer.Option("--system", help="Name of your system.")],
    folder: Annotated[
        Path, typer.Argument(help="Folder to write to; made if need be.", readable=False)
    ] = Path("."),
) -> None:
    """Write the first files of a new site. Exit 0: written, 2: cannot be written."""
    from netproof.commands import init as command

    raise typer.Exit(command.run(folder, system))
