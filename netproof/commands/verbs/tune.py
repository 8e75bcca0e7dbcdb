"""The arguments of ``netproof tune``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from netproof.commands.options import JsonOption


def tune(
    parameter: Annotated[
        str | None,
        typer.Argument(
            help="What to turn: socket-buffer, eager-limit, mtu, coalescing, or an environment"
            " variable.",
            show_default=False,
        ),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option("--system", metavar="SYSTEM:PARTITION", help="Where.", show_default=False),
    ] = None,
    environment: Annotated[
        str | None,
        typer.Option("--environment", "-p", help="Environment to use.", show_default=False),
    ] = None,
    protocol: Annotated[
        str, typer.Option("--protocol", metavar="tcp|mpi", help="Over what NetPIPE measures.")
    ] = "tcp",
    path: Annotated[
        str,
        typer.Option("--path", metavar="between|inside", help="Between two nodes or inside one."),
    ] = "between",
    values: Annotated[
        str | None,
        typer.Option(
            "--values", metavar="A,B,...", help="Instead of its own values.", show_default=False
        ),
    ] = None,
    rounds: Annotated[
        int, typer.Option("--rounds", min=3, help="How often each value is launched.")
    ] = 5,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            help="Measure nothing, and read the report of an earlier sweep.",
            show_default=False,
            readable=False,
        ),
    ] = None,
    restore: Annotated[
        bool,
        typer.Option(
            "--restore", help="Only restore what a sweep that was killed left changed on nodes."
        ),
    ] = False,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html", metavar="FOLDER", help="Also write a page with charts.", show_default=False
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Turn one setting, measure each value alongside the default, say which is best."""
    if (parameter is not None) + (report is not None) + restore != 1:
        raise typer.BadParameter("give PARAMETER to measure, --report to read, or --restore")
    if where is None and report is None:
        raise typer.BadParameter("say where: --system SYSTEM:PARTITION")
    if parameter is not None and environment is None:
        raise typer.BadParameter("say with what: --environment")
    from netproof.commands import tune as command

    if restore:
        raise typer.Exit(command.restore(where))

    raise typer.Exit(
        command.run(
            parameter,
            where=where,
            environment=environment,
            protocol=protocol,
            path=path,
            values=None if values is None else values.split(","),
            rounds=rounds,
            report=report,
            folder=html,
            as_json=as_json,
        )
    )
