"""The arguments of ``netproof site check`` and ``netproof site show``."""

from __future__ import annotations

from typing import Annotated

import typer

from netproof.commands.options import FullOption, JsonOption, SessionStoreOption

SiteArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[SYSTEM[:PARTITION]]",
        help="As for reframe --system; left out, the one this is a login node of.",
        show_default=False,
    ),
]


def check_site(
    system: SiteArgument = None, full: FullOption = False, as_json: JsonOption = False
) -> None:
    """Check the site configuration. Exit 0: no problems, 2: problems, or it cannot be checked."""
    from netproof.commands import site_check as command

    raise typer.Exit(command.run(system, full=full, as_json=as_json))


def show_site(
    system: SiteArgument = None,
    store: SessionStoreOption = None,
    full: FullOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show what will run and how long it should take. Exit 0: shown, 2: cannot be shown."""
    from netproof.commands import site_show as command

    raise typer.Exit(command.run(system, store=store, full=full, as_json=as_json))
