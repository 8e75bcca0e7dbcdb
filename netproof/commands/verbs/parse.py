"""The arguments of ``netproof parse``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def parse(
    files: Annotated[list[Path], typer.Argument(help="Output of a benchmark, IMB for instance.")],
    bidirectional: Annotated[
        bool, typer.Option("--bidirectional", help="NetPIPE was run with -2.")
    ] = False,
) -> None:
    """Print the contents of benchmark outputs as JSON. Exit 0: all read, 2: a file is faulty."""
    from netproof.commands import parse as command

    raise typer.Exit(
        command.run(files, bidirectional=bidirectional, out=sys.stdout, err=sys.stderr)
    )
