"""The body of ``netproof ingest``: takes reports in one by one and prints each result."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from netproof.errors import NetproofError
from netproof.present import tables
from netproof.store import Store
from netproof.store.ingest import Ingested
from netproof.verdict.judging import ingest

ALL_IN, REFUSED = 0, 2
"""Exit statuses of ``netproof ingest``."""


def run(
    reports: Sequence[Path], folder: Path, *, system: str | None = None, full: bool = False
) -> int:
    """Ingest ``reports`` into the store in ``folder``, made if need be, and print each outcome.

    ``system``, ``full``: what was to run, by which they are judged, as ``judging.judge_session``.
    Returns the exit status: 0 all are in; 2 some were refused and the others are in, or no store.
    """
    out, err = tables.console(), tables.console(stderr=True)
    try:
        store = Store.create(folder)
    except NetproofError as error:
        tables.say(err, f"netproof: {error}", "red")
        return REFUSED
    refused = 0
    for number, report in enumerate(reports, 1):
        try:
            with tables.working(f"ingesting {report}, {number} of {len(reports)}"):
                done = ingest(store, report, system=system, full=full)
            _print(done, out)
        except NetproofError as error:
            refused += 1
            tables.say(err, f"refused {error}", "red")
    if refused:
        tables.say(err, f"{refused} of {len(reports)} reports refused", "red")
    return REFUSED if refused else ALL_IN


def _print(done: Ingested, out: Console) -> None:
    came = "ingested" if done.new else "there already"
    tables.say(
        out,
        f"{came}: session {done.stored.name} of {done.stored.system}, {done.measured} of"
        f" {done.cases} cases measured",
    )
    if not done.new:
        return
    tables.print_differences(done.differences, out)
    if "nodes" in done.unknown:
        tables.say(out, f"nodes not known: {done.unknown['nodes']}", "yellow")
    if done.not_judged:
        tables.say(out, f"stored without a verdict: {done.not_judged}", "yellow")
