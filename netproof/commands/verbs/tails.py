"""The arguments of ``netproof tails``."""

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


def tails(
    where: WhereOption = None,
    environment: EnvironmentOption = None,
    seconds: Annotated[
        float, typer.Option("--seconds", min=1, help="For how long, as near as can be foreseen.")
    ] = 60,
    size: Annotated[
        int, typer.Option("--bytes", metavar="N", min=1, help="Size of the messages.")
    ] = 8,
    report: EarlierReportOption = None,
    html: PageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Time every call of a long PingPong between two nodes, name its pauses and when they were."""
    if (where is None) is (report is None):
        raise typer.BadParameter("give --system SYSTEM:PARTITION to measure, or --report to read")
    if where is not None and environment is None:
        raise typer.BadParameter("say with what: --environment")
    from netproof.commands import tails as command

    raise typer.Exit(
        command.run(
            where=where,
            environment=environment,
            seconds=seconds,
            size=size,
            report=report,
            folder=html,
            as_json=as_json,
        )
    )
