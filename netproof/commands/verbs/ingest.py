"""The arguments of ``netproof ingest``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from netproof.commands.options import FullOption, StoreOption, SystemOption


def ingest(
    reports: Annotated[list[Path], typer.Argument(help="Session reports.", readable=False)],
    store: StoreOption,
    system: SystemOption = None,
    full: FullOption = False,
) -> None:
    """Judge and store reports. Exit 0: all are stored, 2: some are refused, or no store exists."""
    from netproof.commands import ingest as command

    raise typer.Exit(command.run(reports, store, system=system, full=full))
