"""The arguments of ``netproof history`` and its verbs."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperGroup

from netproof.commands.options import JsonOption, StoreOption
from netproof.errors import NetproofError
from netproof.history.selection import NEWEST_SESSIONS, STRIDE, Quantity, Selection


class HistoryVerbs(TyperGroup):
    """Run ``show`` for ``netproof history`` without the name of a command."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:
        """Put the name of the command there that is meant."""
        named = args[:1]
        if not named or named[0] not in {*self.commands, *ctx.help_option_names}:
            args = ["show", *args]
        return super().parse_args(ctx, args)


CasesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="CASE",
        help="Regular expressions, all to be found in PARTITION ENVIRONMENT BENCHMARK ….",
        show_default=False,
    ),
]
PartitionOption = Annotated[
    str | None, typer.Option("--partition", help="Only this partition.", show_default=False)
]
EnvironmentOption = Annotated[
    str | None, typer.Option("--environment", help="Only this environment.", show_default=False)
]
QuantityOption = Annotated[
    Quantity | None,
    typer.Option("--quantity", help="Only this landmark, or the score.", show_default=False),
]
HistorySystemOption = Annotated[
    str | None,
    typer.Option("--system", help="System, where the store has several.", show_default=False),
]


def _selection(
    case: list[str] | None,
    partition: str | None,
    environment: str | None,
    quantity: Quantity | None,
) -> Selection:
    """Return the series of a command; a bad expression is a fault of its arguments."""
    try:
        return Selection(tuple(case or ()), partition, environment, quantity)
    except NetproofError as error:
        raise typer.BadParameter(str(error), param_hint="CASE") from error


def history_show(
    store: StoreOption,
    case: CasesArgument = None,
    partition: PartitionOption = None,
    environment: EnvironmentOption = None,
    quantity: QuantityOption = None,
    system: HistorySystemOption = None,
    session: Annotated[
        str | None,
        typer.Option("--session", help="Up to this one; the newest if left out."),
    ] = None,
    last: Annotated[
        int | None,
        typer.Option(
            "--last",
            min=1,
            help=f"How many sessions are looked back on; {NEWEST_SESSIONS} or up to"
            f" {STRIDE - 1} more if left out.",
            show_default=False,
        ),
    ] = None,
    since: Annotated[
        datetime | None,
        typer.Option("--since", formats=["%Y-%m-%d"], help="None before this day.", metavar="DATE"),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option("--label", metavar="KEY=VALUE", help="Only sessions with this label."),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", help="Draw the series in a file: .html, .svg, .png or .pdf."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what changed, or the series of cases. Exit 0: nothing worse, 1: worse, 2: cannot be."""
    from netproof.commands import history as command

    selection = _selection(case, partition, environment, quantity)
    raise typer.Exit(
        command.run(
            selection,
            store,
            system=system,
            session=session,
            last=last,
            since=since.date() if since else None,
            labels=label or (),
            plot=plot,
            as_json=as_json,
        )
    )


def history_accept(
    store: StoreOption,
    session: Annotated[
        str, typer.Option("--session", help="The first one at the new level, or newest.")
    ],
    reason: Annotated[str, typer.Option("--reason", help="Why the change is intended.")],
    name: Annotated[str, typer.Option("--name", help="Who says so.")],
    case: CasesArgument = None,
    partition: PartitionOption = None,
    environment: EnvironmentOption = None,
    quantity: QuantityOption = None,
    system: HistorySystemOption = None,
) -> None:
    """Record in the store that a change is intended. Exit 0: recorded, 2: cannot be recorded."""
    from netproof.commands import history as command

    selection = _selection(case, partition, environment, quantity)
    raise typer.Exit(
        command.accept(selection, store, system=system, session=session, reason=reason, name=name)
    )
