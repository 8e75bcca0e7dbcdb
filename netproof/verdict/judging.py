"""A session, its configuration and references found, and judged."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from netproof.criteria import Level
from netproof.errors import NetproofError
from netproof.session import provenance, session
from netproof.session.provenance import OfSession
from netproof.site import site
from netproof.site.matrix import Matrix, matrix
from netproof.store import Store, questions
from netproof.verdict import anew
from netproof.verdict.beside import AlongsideOptions, beside
from netproof.verdict.usual import NOTHING, SESSIONS, Usual, usual
from netproof.verdict.verdict import Verdict, judge

EARLIER_SESSIONS = 10
"""How many earlier sessions a configuration is remembered for once it is gone."""


@dataclass(frozen=True)
class JudgedSession:
    """A session with the matrix that it owed and the verdict on it.

    ``unread``: why an earlier session could not be looked into, a sentence each;
    ``differences``: in what nodes or jobs differ, or why that cannot be told, a sentence each;
    ``usual``: the warnings that the sessions before it had too.
    """

    session: session.Session
    matrix: Matrix
    verdict: Verdict
    unread: tuple[str, ...]
    differences: tuple[str, ...] = ()
    usual: Usual = NOTHING


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
    return questions.opened(opened, opened.find(str(name)))


def judge_session(
    stored: session.Session,
    *,
    system: str | None = None,
    full: bool = False,
    asked: AlongsideOptions | None = None,
    fold: int = SESSIONS,
) -> JudgedSession:
    """Judge a session by the configuration and references of now.

    RFM_CONFIG_PATH and RFM_REFERENCE_PREFIX name their folders.

    ``system`` None takes the session's own, or ``SYSTEM:PARTITION`` for what was to run on one
    partition; ``full``: with the tests of ``checks/full``; ``asked``: what of a store is to stand
    beside, None for nothing; ``fold``: how many earlier sessions have to have had a warning for it
    to be folded. Raises NetproofError where it cannot be judged.
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
    untold: Sequence[str] = ()
    others = None
    if asked is not None:
        # The baseline may be in the store.
        owed = dataclasses.replace(owed, baseline=matrix(configuration, name).baseline)
        if made is None:
            untold = [f"versions cannot be compared: {differences[0]}"]
        others, not_found = beside(asked, stored, owed, configuration, made)
        untold = [*untold, *not_found]
    references = anew.of_file(Path(_setting("RFM_REFERENCE_PREFIX")), name)
    judged = judge(owed, stored, earlier, others, references)
    had = NOTHING
    # A session that cannot be read is not known to have warned, so that nothing is folded then.
    if fold and any(one.said(Level.WARN) for one in judged.cases):
        try:
            before = _before(stored, name, [] if unread else earlier)
            had = usual(judged.cases, owed, before, fold)
        except NetproofError as error:
            unread.append(str(error))
    return JudgedSession(stored, owed, judged, (*unread, *untold), differences, had)


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


def _before(
    stored: session.Session, system: str, earlier: Sequence[session.Session]
) -> list[session.Session]:
    """The sessions of the system that began before this one, the newest first.

    Those of ``earlier``, which are reports; of a session in a store, those that the store has.
    Raises NetproofError where one of them cannot be read.
    """
    if stored.path.is_dir():
        store, this = Store.holding(stored.path)
        before = [one for one in store.sessions(system) if one.start < this.start]
        return [questions.load(store, one) for one in reversed(before[-EARLIER_SESSIONS:])]
    began = stored.info.get("time_start_unix")
    if began is None:
        return []
    return [one for one in earlier if one.info.get("time_start_unix", began) < began]


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
