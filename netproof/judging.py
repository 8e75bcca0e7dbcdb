"""The body of ``netproof verdict``, and what else begins with a session and its configuration."""

from __future__ import annotations

import dataclasses
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netproof import documents, provenance, session, site, tables
from netproof.beside import Asked, beside
from netproof.errors import NetproofError
from netproof.matrix import Matrix, matrix
from netproof.provenance import OfSession
from netproof.store import Store, questions
from netproof.verdict import CANNOT_JUDGE, Verdict, judge

EARLIER_SESSIONS = 10
"""How many earlier sessions a configuration is remembered for once it is gone."""


@dataclass(frozen=True)
class JudgedSession:
    """A session with the matrix that it owed and the verdict on it.

    ``unread``: why an earlier session could not be looked into, a sentence each;
    ``differences``: in what nodes or jobs differ, or why that cannot be told, a sentence each.
    """

    session: session.Session
    matrix: Matrix
    verdict: Verdict
    unread: tuple[str, ...]
    differences: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """Plain values for ``json``, as docs/operation.md has them."""
        return documents.of_verdict(
            self.session, self.matrix, self.verdict, self.unread, self.differences
        )


def run(
    name: Path | None,
    *,
    store: Path | None = None,
    system: str | None,
    full: bool,
    as_json: bool = False,
    asked: Asked | None = None,
) -> int:
    """Print the verdict on a session, in words or as JSON, and return its exit status.

    ``name`` and ``store`` as in ``find``; ``system`` None takes the session's own, or
    ``SYSTEM:PARTITION`` for what was to run on one partition; ``asked``: what of a store is to
    stand beside, None for nothing.
    """
    try:
        with tables.working("judging the session"):
            judged = judge_session(find(name, store), system=system, full=full, asked=asked)
    except NetproofError as error:
        tables.say(tables.console(stderr=True), f"netproof: cannot judge: {error}", "red")
        return CANNOT_JUDGE
    if as_json:
        documents.write(judged.document(), sys.stdout)
        return judged.verdict.status
    out = tables.console()
    tables.print_verdict(judged.verdict, out)
    tables.print_differences(judged.differences, out)
    for reason in judged.unread:
        tables.say(out, f"not compared with an earlier session: {reason}")
    tables.say(out, f"session {judged.session.path}")
    return judged.verdict.status


def find(name: Path | None, store: Path | None = None) -> session.Session:
    """The session that a command was given: a report's path, or its name in a store.

    ``name`` None takes the newest report of the folder that RFM_REPORT_FILE names. A file, or what
    ends in ``.json``, is a report; anything else is looked up in ``store``, as ``Store.find``
    does. Raises NetproofError where there is none.
    """
    if name is None:
        return session.load(session.newest(_reports()))
    if store is None or name.suffix == ".json" or os.path.isfile(name):
        return session.load(name)
    opened = Store(store)
    return questions.load(opened, opened.find(str(name)))


def judge_session(
    stored: session.Session,
    *,
    system: str | None = None,
    full: bool = False,
    asked: Asked | None = None,
) -> JudgedSession:
    """Judge a session by the configuration that RFM_CONFIG_PATH names.

    ``system``, ``full`` and ``asked`` as in ``run``. Raises NetproofError where it cannot be
    judged.
    """
    name, _, partition = (system or _system_of(stored)).partition(":")
    configuration = site.gather(site_folder())
    owed = matrix(
        configuration,
        name,
        [partition] if partition else [],
        all_functions=full,
    )
    earlier, unread = _earlier(stored, name)
    made, differences = None, ()
    try:
        made = provenance_of(stored)
        differences = made.differences
    except NetproofError as error:
        differences = (f"whether they differ cannot be told: {error}",)
    if asked is None:
        judged = judge(owed, stored, earlier)
        return JudgedSession(stored, owed, judged, tuple(unread), differences)
    # The baseline may be in the store.
    owed = dataclasses.replace(owed, baseline=matrix(configuration, name).baseline)
    if made is None:
        unread.append(f"versions cannot be compared: {differences[0]}")
    others, untold = beside(asked, stored, owed, configuration, made)
    judged = judge(owed, stored, earlier, others)
    return JudgedSession(stored, owed, judged, (*unread, *untold), differences)


def provenance_of(stored: session.Session) -> OfSession:
    """Where a session came from, by its report or by its tables in a store.

    Raises NetproofError where either cannot be read.
    """
    if stored.path.is_dir():
        return questions.provenance(*Store.holding(stored.path))
    return provenance.of_report(session.document_of(stored.path), str(stored.path))


def _earlier(stored: session.Session, system: str) -> tuple[list[session.Session], list[str]]:
    """The newest other sessions of the system in the folder of reports, and what is unreadable."""
    found, unread = [], []
    folder = os.environ.get("RFM_REPORT_FILE") or None
    if folder is None:
        return found, unread
    unread += session.left_out(Path(folder).parent)
    for path in session.reports(Path(folder).parent):
        if len(found) == EARLIER_SESSIONS:
            break
        if path.resolve() == stored.path.resolve():
            continue
        try:
            other = session.load(path)
        except NetproofError as error:
            unread.append(str(error))
            continue
        if any(result.system == system for result in other.results):
            found.append(other)
    return found, unread


def _reports() -> Path:
    return Path(_setting("RFM_REPORT_FILE")).parent


def site_folder() -> Path:
    """Folder of the site's files, which RFM_CONFIG_PATH names; NetproofError without."""
    return Path(_setting("RFM_CONFIG_PATH"))


def _setting(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise NetproofError(f"{name} is not set; run '. ci/activate'")
    return value


def _system_of(stored: session.Session) -> str:
    systems = {result.system for result in stored.results}
    if not systems:
        raise NetproofError(
            f"{stored.path}: holds no test case, so nothing ran; name with --system what was to run"
        )
    if len(systems) != 1:
        found = ", ".join(sorted(systems))
        raise NetproofError(
            f"{stored.path}: holds results of {len(systems)} systems ({found}); name one with"
            " --system"
        )
    return systems.pop()
