"""The body of ``netproof verdict``."""

from __future__ import annotations

import sys
from pathlib import Path

from netproof.errors import NetproofError
from netproof.present import documents, tables
from netproof.verdict import judging
from netproof.verdict.beside import AlongsideOptions
from netproof.verdict.usual import SESSIONS
from netproof.verdict.verdict import CANNOT_JUDGE


def run(
    name: Path | None,
    *,
    store: Path | None = None,
    system: str | None,
    full: bool,
    as_json: bool = False,
    asked: AlongsideOptions | None = None,
    fold: int = SESSIONS,
) -> int:
    """Print the verdict on a session, in words or as JSON, and return its exit status.

    ``name`` and ``store`` as ``judging.find`` takes them, the rest as ``judging.judge_session``.
    """
    try:
        with tables.working("judging the session"):
            judged = judging.judge_session(
                judging.find(name, store), system=system, full=full, asked=asked, fold=fold
            )
    except NetproofError as error:
        tables.say(tables.console(stderr=True), f"netproof: cannot judge: {error}", "red")
        return CANNOT_JUDGE
    if as_json:
        documents.write(documents.of_judged(judged), sys.stdout)
        return judged.verdict.status
    out = tables.console()
    tables.print_verdict(
        judged.verdict,
        out,
        usual=judged.usual,
        differences=judged.differences,
        unread=judged.unread,
    )
    tables.say(out, f"session {judged.session.path}")
    return judged.verdict.status
