"""The arguments of ``netproof load``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from netproof.commands.options import JsonOption


def load(
    where: Annotated[
        str | None,
        typer.Option("--system", metavar="SYSTEM:PARTITION", help="Where.", show_default=False),
    ] = None,
    environment: Annotated[
        str | None,
        typer.Option("--environment", "-p", help="Environment to use.", show_default=False),
    ] = None,
    victims: Annotated[
        str,
        typer.Option(
            "--victims", metavar="A,B,...", help="What to measure: latency, bandwidth, allreduce."
        ),
    ] = "all",
    aggressors: Annotated[
        str,
        typer.Option(
            "--aggressors",
            metavar="A,B,...",
            help="What congests: incast, all-to-all, broadcast, one-to-one.",
        ),
    ] = "all",
    nodes: Annotated[
        int, typer.Option("--nodes", min=0, help="Use so many nodes, 4 at least; 0 for all.")
    ] = 0,
    rounds: Annotated[
        int, typer.Option("--rounds", min=3, help="How often each is measured alone and alongside.")
    ] = 6,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            help="Measure nothing, and read the report of an earlier session.",
            show_default=False,
            readable=False,
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html", metavar="FOLDER", help="Also write a page with charts.", show_default=False
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure two nodes alone and alongside others that congest, say what that costs."""
    if (where is None) is (report is None):
        raise typer.BadParameter("give --system SYSTEM:PARTITION to measure, or --report to read")
    if where is not None and environment is None:
        raise typer.BadParameter("say with what: --environment")
    if 0 < nodes < 4:
        raise typer.BadParameter("--nodes: give 4 at least, or 0 for all")
    from netproof.commands import load as command

    raise typer.Exit(
        command.run(
            where=where,
            environment=environment,
            victims=victims,
            aggressors=aggressors,
            nodes=nodes,
            rounds=rounds,
            report=report,
            folder=html,
            as_json=as_json,
        )
    )
