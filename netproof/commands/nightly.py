"""The verbs ``run`` and ``nightly``, which measure what a verdict is on; ``night`` has a night."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import typer

from netproof.commands.options import insist_on_site, verb
from netproof.errors import NetproofError


def _measured(arguments: Sequence[str] | None) -> tuple[str | None, list[str]]:
    """Return the system to measure, and the options of ReFrame."""
    further = list(arguments or ())
    named = bool(further) and not further[0].startswith("-")
    return (further.pop(0) if named else os.environ.get("RFM_SYSTEM")), further


@verb("no verdict")
def run(
    arguments: list[str] | None = None,
    store: Path | None = None,
    full: bool = False,
) -> int:
    """Run all checks by ReFrame, store the session where there is a store, print the verdict."""
    system, further = _measured(arguments)
    insist_on_site()
    from netproof.commands.reframe import run_reframe
    from netproof.site import folders, site
    from netproof.site.matrix import matrix

    name, _, partition = (system or "").partition(":")
    if partition:
        # An unknown one is refused before anything is measured.
        matrix(site.gather(folders.of_site()), name, [partition])
    report = folders.of_reports() / f"run-{datetime.now(UTC):%Y%m%dT%H%M%S}.json"
    options = [*(["--system", system] if system else []), *(["-R"] if full else []), *further]
    run_reframe(["-c", str(folders.of_checks()), *options], "measuring", report)
    from netproof.commands import stores
    from netproof.present import terminal
    from netproof.present.verdict import print_brief
    from netproof.store import Store
    from netproof.verdict import session_verdict

    if store is not None:
        stores.print_stored(
            session_verdict.ingest(Store.create(store), report, system=system, full=full)
        )
    judged = session_verdict.judge_session(
        session_verdict.find(report), system=system, full=full, store=store
    )
    print_brief(judged, (), terminal.console())
    return judged.verdict.status


@verb()
def nightly(
    store: Path,
    arguments: list[str] | None = None,
    pages: Path | None = None,
    junit: Path | None = None,
    hook: str = "",
    budget: float | None = None,
    label: list[str] | None = None,
    full: bool = False,
    least_free: int = 200,
    patience: float = 10,
) -> int:
    """Measure, judge, report and notify people, for one night.

    docs/nightly.md has the rest.
    """
    system, further = _measured(arguments)
    if not system:
        raise typer.BadParameter("say what to measure: SYSTEM[:PARTITION], or in RFM_SYSTEM")
    insist_on_site()
    from netproof.commands import night
    from netproof.session.session import label_of
    from netproof.site import folders

    for given in label or ():
        try:
            _, value = label_of(given)
        except NetproofError:
            value = ""
        if not value or "," in given:
            raise typer.BadParameter(
                f"{given!r} is no KEY=VALUE without a comma", param_hint="--label"
            )
    return night.run(
        night.Night(
            system=system,
            store=store.resolve(),
            reports=(pages or folders.of_reports() / "nightly").resolve(),
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
