"""The arguments of ``netproof tune``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from netproof.commands.options import EnvironmentOption, JsonOption, PageOption, WhereOption


def tune(
    parameter: Annotated[
        str | None,
        typer.Argument(
            help="What to turn: socket-buffer, eager-limit, rails, mtu, coalescing, algorithm, or"
            " an environment variable.",
            show_default=False,
        ),
    ] = None,
    where: WhereOption = None,
    environment: EnvironmentOption = None,
    protocol: Annotated[
        str | None,
        typer.Option(
            "--protocol",
            metavar="tcp|mpi",
            help="Over what NetPIPE measures; tcp unless given.",
            show_default=False,
        ),
    ] = None,
    path: Annotated[
        str | None,
        typer.Option(
            "--path",
            metavar="between|inside",
            help="Between two nodes, unless given, or inside one.",
            show_default=False,
        ),
    ] = None,
    function: Annotated[
        str | None,
        typer.Option(
            "--function",
            help="Of algorithm: the collective of IMB, Allreduce for instance.",
            show_default=False,
        ),
    ] = None,
    ranks: Annotated[
        int | None,
        typer.Option(
            "--ranks",
            help="Of algorithm: one rank count of the partition instead of all.",
            show_default=False,
        ),
    ] = None,
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
    html: PageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Turn one setting, measure each value alongside the default, say which is best."""
    if (parameter is not None) + (report is not None) + restore != 1:
        raise typer.BadParameter("give PARAMETER to measure, --report to read, or --restore")
    if where is None and report is None:
        raise typer.BadParameter("say where: --system SYSTEM:PARTITION")
    if parameter is not None and environment is None:
        raise typer.BadParameter("say with what: --environment")
    of_algorithm = parameter == "algorithm"
    if of_algorithm and function is None:
        raise typer.BadParameter("say of what: --function Allreduce, for instance")
    if of_algorithm and (protocol is not None or path is not None):
        raise typer.BadParameter(
            "algorithms are swept with IMB: --protocol and --path are NetPIPE's"
        )
    if not of_algorithm and (function is not None or ranks is not None):
        raise typer.BadParameter("--function and --ranks are those of the parameter algorithm")
    from netproof.commands import tune as command

    if restore:
        raise typer.Exit(command.restore(where))
    given = None if values is None else values.split(",")
    if of_algorithm:
        from netproof.commands import tune_algorithm

        raise typer.Exit(
            tune_algorithm.run(
                function,
                where=where,
                environment=environment,
                ranks=ranks,
                values=given,
                rounds=rounds,
                folder=html,
                as_json=as_json,
            )
        )
    raise typer.Exit(
        command.run(
            parameter,
            where=where,
            environment=environment,
            protocol=protocol or "tcp",
            path=path or "between",
            values=given,
            rounds=rounds,
            report=report,
            folder=html,
            as_json=as_json,
        )
    )
