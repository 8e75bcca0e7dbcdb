"""The arguments of ``netproof references derive`` and ``netproof references risk``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from netproof.commands.options import JsonOption, SystemOption


def derive(
    sessions: Annotated[list[Path], typer.Argument(help="Session reports, at least three.")],
    system: SystemOption = None,
    write: Annotated[
        bool, typer.Option("--write", help="Write the file and do not just show the difference.")
    ] = False,
    allow_looser: Annotated[
        bool, typer.Option("--allow-looser", help="Let bounds that stand get wider.")
    ] = False,
    risk: Annotated[
        float | None,
        typer.Option(
            "--risk",
            help="Share of sessions of an unchanged network that may cross any of the derived"
            " bounds, 0.05 by default.",
        ),
    ] = None,
    floor: Annotated[
        float | None,
        typer.Option("--floor", help="Least tolerance, 0.1 by default; an octave for sizes."),
    ] = None,
    spread_limit: Annotated[
        float | None,
        typer.Option(
            "--spread-limit", help="Largest spread over the median that is taken, 0.1 by default."
        ),
    ] = None,
    per_size: Annotated[
        bool, typer.Option("--per-size", help="Also bound the time at every size.")
    ] = False,
) -> None:
    """Derive references and show what changes. Exit 0: derived, 2: not, or not all of them."""
    from netproof.commands import references_derive as command

    raise typer.Exit(
        command.run(
            sessions,
            system=system,
            write_file=write,
            allow_looser=allow_looser,
            risk=risk,
            floor=floor,
            spread_limit=spread_limit,
            per_size=per_size,
        )
    )


def risk(
    sessions: Annotated[list[Path], typer.Argument(help="Session reports, at least three.")],
    system: SystemOption = None,
    margin: Annotated[
        float,
        typer.Option(
            "--margin",
            min=0.001,
            max=0.9,
            help="Share by which a network is worse that must not pass.",
        ),
    ] = 0.1,
    as_json: JsonOption = False,
) -> None:
    """Print what buyer and seller risk by each bound. Exit 0: all of it, 2: not, or not all."""
    from netproof.commands import references_risk as command

    raise typer.Exit(command.run(sessions, system=system, margin=margin, as_json=as_json))
