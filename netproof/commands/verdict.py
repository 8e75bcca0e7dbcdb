"""The body of ``netproof verdict``."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console

from netproof.errors import NetproofError
from netproof.present import documents, tables
from netproof.present.power import of_case, print_power
from netproof.verdict import judging
from netproof.verdict.exit_status import CANNOT_JUDGE
from netproof.verdict.judging import JudgedSession
from netproof.verdict.options import SESSIONS, AlongsideOptions


def run(
    name: Path | None,
    *,
    store: Path | None = None,
    system: str | None,
    full: bool,
    as_json: bool = False,
    asked: AlongsideOptions | None = None,
    fold: int = SESSIONS,
    again: bool = False,
    power: bool = False,
) -> int:
    """Print the verdict on a session, in words or as JSON, and return its exit status.

    ``name`` and ``store`` as ``judging.find`` takes them, the rest as ``judging.judge_session``.
    With ``again`` it adds the differences from the stored verdict, and with ``power`` the change of
    each case that would have failed.
    """
    try:
        with tables.working("judging the session"):
            judged = judging.judge_session(
                judging.find(name, store, lazily=not (as_json or power)),
                system=system,
                full=full,
                asked=asked,
                fold=fold,
                store=store,
                again=again,
            )
        powers = []
        if power:
            with tables.working("changing each case until it fails"):
                powers = judging.power_of(judged)
    except NetproofError as error:
        tables.say(tables.console(stderr=True), f"netproof: cannot judge: {error}", "red")
        return CANNOT_JUDGE
    if as_json:
        document = documents.of_judged(judged)
        if power:
            several = [{**documents.of_case(one.case), **of_case(one)} for one in powers]
            document = {**document, "power": several}
        documents.write(document, sys.stdout)
        return judged.verdict.status
    out = tables.console()
    tables.print_verdict(
        judged.verdict,
        out,
        usual=judged.usual,
        differences=judged.beyond_nodes,
        unread=judged.unread,
    )
    tables.say(out, f"session {judged.session.path}")
    if again:
        _print_changed(judged, out)
    if power:
        print_power(powers, out)
    return judged.verdict.status


def _print_changed(judged: JudgedSession, out: Console) -> None:
    """Print the differences from the stored verdict, case by case."""
    changed = judged.changed
    if changed is None:
        tables.say(out, "no verdict is stored of what was asked for, so this one is the first")
        return
    kept = changed.kept
    bounds = f"other bounds: {'; '.join(kept.differs)}" if kept.differs else "the same bounds"
    if not changed:
        tables.say(out, f"says the same as the verdict of {kept.at}, by {bounds}", "green")
        return
    count = len(changed.cases)
    tables.say(
        out,
        f"says of {count} {'case' if count == 1 else 'cases'} otherwise than the verdict of"
        f" {kept.at}, by {bounds}",
        "yellow",
    )
    for one in changed.cases:
        tables.say(out, f"CHANGED {one}", "yellow")
    for fault in changed.new:
        tables.say(out, f"CHANGED now: {fault}", "yellow")
    for fault in changed.gone:
        tables.say(out, f"CHANGED no more: {fault}", "yellow")
