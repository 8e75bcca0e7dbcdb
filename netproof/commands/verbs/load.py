"""The arguments of ``netproof load``."""

from __future__ import annotations

from typing import Annotated

import typer

from netproof.commands.options import (
    EarlierReportOption,
    EnvironmentOption,
    JsonOption,
    PageOption,
    WhereOption,
)


def load(
    where: WhereOption = None,
    environment: EnvironmentOption = None,
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
    report: EarlierReportOption = None,
    html: PageOption = None,
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
