"""The verb ``nightly``; ``night`` has what it does."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from netproof.commands.options import StoreOption, verb
from netproof.errors import NetproofError


@verb("")
def nightly(
    store: StoreOption,
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SYSTEM[:PARTITION]] [-- OPTION...]",
            help="What to measure, or RFM_SYSTEM; options of reframe, after --.",
            show_default=False,
        ),
    ] = None,
    pages: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="FOLDER",
            envvar="NETPROOF_PAGES",
            help="Folder of the reports; by default nightly/ where sessions have theirs.",
        ),
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="File for JUnit's XML.")] = None,
    hook: Annotated[
        str,
        typer.Option(
            envvar="NETPROOF_HOOK",
            help="Shell command that gets the summary on its standard input.",
        ),
    ] = "",
    budget: Annotated[
        float | None,
        typer.Option(
            metavar="MINUTES", min=0, help="Measure what fits, what waited longest first."
        ),
    ] = None,
    label: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Label of the session.")
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
) -> int:
    """Measure, judge, report and notify people, for one night.

    Exit 0: passed, 1: something failed or got worse, 2: it could not be judged. docs/nightly.md has
    the rest.
    """
    further = list(arguments or ())
    named = bool(further) and not further[0].startswith("-")
    system = further.pop(0) if named else os.environ.get("RFM_SYSTEM")
    if not system:
        raise typer.BadParameter("say what to measure: SYSTEM[:PARTITION], or in RFM_SYSTEM")
    from netproof.commands.night import NightPlan, run
    from netproof.session.labels import label_of
    from netproof.verdict import judging

    for given in label or ():
        try:
            _, value = label_of(given)
        except NetproofError:
            value = ""
        if not value or "," in given:
            raise typer.BadParameter(
                f"{given!r} is no KEY=VALUE without a comma", param_hint="--label"
            )
    return run(
        NightPlan(
            system=system,
            store=store.resolve(),
            reports=(pages or judging.reports_folder() / "nightly").resolve(),
            junit=junit.resolve() if junit else None,
            hook=hook,
            budget_min=budget,
            labels=label or (),
            full=full,
            least_free_mb=least_free,
            patience_min=patience,
            arguments=further,
        )
    )
