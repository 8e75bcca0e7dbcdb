"""The arguments of ``netproof literature``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def studies(
    study: Annotated[
        str | None, typer.Argument(help="Name of a study; all if left out.", show_default=False)
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--session", help="Session report to show alongside the studies.", show_default=False
        ),
    ] = None,
) -> None:
    """Show the figures of earlier studies. Exit 0: shown, 2: cannot be shown."""
    from netproof.commands import literature as command

    raise typer.Exit(command.run(study, report))
