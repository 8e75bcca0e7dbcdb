"""The command line of ``ci/nightly``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from netproof.commands import entry
from netproof.commands.nightly.command import NightPlan, run
from netproof.errors import NetproofError
from netproof.session.labels import label_of

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command(
    epilog="Exit status: 0 passed, 1 something failed or got worse, 2 it could not be judged."
    " docs/nightly.md has the rest."
)
def nightly(
    system: Annotated[
        str,
        typer.Option(envvar="RFM_SYSTEM", help="SYSTEM or SYSTEM:PARTITION, as for reframe."),
    ],
    store: Annotated[Path, typer.Option(envvar="NETPROOF_STORE", help="Folder of the store.")],
    report: Annotated[Path, typer.Option(envvar="NETPROOF_PAGES", help="Folder of the reports.")],
    junit: Annotated[
        Path | None, typer.Option(help="File for JUnit's XML.", show_default=False)
    ] = None,
    hook: Annotated[
        str,
        typer.Option(
            envvar="NETPROOF_HOOK",
            help="Shell command that gets the summary on its standard input.",
            show_default=False,
        ),
    ] = "",
    budget: Annotated[
        float | None,
        typer.Option(
            metavar="MINUTES",
            min=0,
            help="Measure what fits, what waited longest first.",
            show_default=False,
        ),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Label of the session.", show_default=False),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="All IMB functions (reframe -R).")] = False,
    least_free: Annotated[
        int, typer.Option(metavar="MB", min=0, help="What every file system has to have free.")
    ] = 200,
    patience: Annotated[
        float,
        typer.Option(
            metavar="MINUTES", min=0.1, help="How long slurmctld may be silent meanwhile."
        ),
    ] = 10,
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- OPTION...]", help="Options of reframe, after --.", show_default=False
        ),
    ] = None,
) -> None:
    """One night: measure, keep, judge, report, tell."""
    for given in label or ():
        try:
            _, value = label_of(given)
        except NetproofError:
            value = ""
        if not value or "," in given:
            raise typer.BadParameter(
                f"{given!r} is no KEY=VALUE without a comma", param_hint="--label"
            )
    raise typer.Exit(
        run(
            NightPlan(
                system=system,
                store=store.resolve(),
                reports=report.resolve(),
                junit=junit.resolve() if junit else None,
                hook=hook,
                budget_min=budget,
                labels=label or (),
                full=full,
                least_free_mb=least_free,
                patience_min=patience,
                arguments=arguments or (),
            )
        )
    )


if __name__ == "__main__":
    entry.run(app, "ci/nightly")
