"""The arguments of ``netproof gpcnet``."""

from __future__ import annotations

from typing import Annotated

import typer

from netproof.commands.options import (
    EarlierReportOption,
    EnvironmentOption,
    JsonOption,
    WhereOption,
)


def gpcnet(
    where: WhereOption = None,
    environment: EnvironmentOption = None,
    rounds: Annotated[
        int, typer.Option("--rounds", min=3, help="How often to run it, some minutes each.")
    ] = 3,
    nodes: Annotated[
        int, typer.Option("--nodes", min=0, help="Use so many nodes, 10 at least; 0 for all.")
    ] = 0,
    report: EarlierReportOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run GPCNeT on all nodes of a partition, say what its congestors cost its tests."""
    if (where is None) is (report is None):
        raise typer.BadParameter("give --system SYSTEM:PARTITION to measure, or --report to read")
    if where is not None and environment is None:
        raise typer.BadParameter("say with what: --environment")
    if 0 < nodes < 10:
        raise typer.BadParameter("--nodes: give 10 at least, or 0 for all")
    from netproof.commands import gpcnet as command

    raise typer.Exit(
        command.run(
            where=where,
            environment=environment,
            rounds=rounds,
            nodes=nodes,
            report=report,
            as_json=as_json,
        )
    )
