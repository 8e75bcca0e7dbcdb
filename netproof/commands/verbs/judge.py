"""The arguments of ``netproof judge``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from netproof.commands.options import JsonOption
from netproof.measurement.transports import Transport


def judge(
    files: Annotated[list[Path], typer.Argument(help="Output of a benchmark, IMB for instance.")],
    pattern: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="PATTERN",
            help="What a path says of its configuration: '{system}-{mpi}/{benchmark}'.",
            show_default=False,
        ),
    ] = None,
    names: Annotated[
        Path | None,
        typer.Option(
            "--names",
            help="CSV with a column file, and columns that name its configuration.",
            show_default=False,
            readable=False,
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline", help="Configuration that scores are relative to.", show_default=False
        ),
    ] = None,
    link: Annotated[
        str | None,
        typer.Option("--link", metavar="RATE", help="Link of a node: 100G.", show_default=False),
    ] = None,
    mtu: Annotated[
        int | None,
        typer.Option(
            "--mtu",
            min=100,
            help="With --link: bytes; InfiniBand 4096, else 1500.",
            show_default=False,
        ),
    ] = None,
    transport: Annotated[
        Transport, typer.Option("--transport", help="With --link: what carries MPI.")
    ] = Transport.TCP,
    bidirectional: Annotated[
        bool, typer.Option("--bidirectional", help="NetPIPE was run with -2.")
    ] = False,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--report", metavar="FOLDER", help="Also write a page with charts.", show_default=False
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Judge output files from any harness. Exit 0: passed, 1: failed, 2: cannot be judged."""
    from netproof.commands import judge as command

    raise typer.Exit(
        command.run(
            files,
            pattern=pattern,
            names=names,
            bidirectional=bidirectional,
            link=link,
            mtu=mtu,
            transport=transport,
            baseline=baseline,
            folder=folder,
            as_json=as_json,
        )
    )
