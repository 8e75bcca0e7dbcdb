"""Find a session with its configuration and references, and judge it."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netproof.criteria import Level
from netproof.errors import NetproofError
from netproof.intake import loading
from netproof.session import provenance, records, session
from netproof.session.provenance import OfSession
from netproof.site import site
from netproof.site.matrix import Matrix, matrix
from netproof.verdict import anew, kept, kept_changes, power
from netproof.verdict.alongside import alongside
from netproof.verdict.earlier_sessions import earlier_reports, sessions_before
from netproof.verdict.judged import Verdict
from netproof.verdict.kept import Kept
from netproof.verdict.kept_changes import ChangedCase
from netproof.verdict.options import SESSIONS, AlongsideOptions
from netproof.verdict.usual import NOTHING, Usual, usual
from netproof.verdict.verdict import judge


@dataclass(frozen=True)
class JudgedSession:
    """A session with its expected matrix and its verdict.

    ``unread``: why an earlier session could not be read, a sentence each; ``differences``: between
    nodes or jobs, or why they are not known, a sentence each; ``beyond_nodes``: differences that
    the verdict on nodes does not have; ``usual``: warnings that the sessions before it had too;
    ``provenance``: None where it cannot be read; ``kept``: when and by what it was judged, None
    where it was judged just now; ``changed``: differences from the stored verdict, None where it
    was not compared with one.
    """

    session: session.Session
    matrix: Matrix
    verdict: Verdict
    unread: tuple[str, ...]
    differences: tuple[str, ...] = ()
    usual: Usual = NOTHING
    beyond_nodes: tuple[str, ...] = ()
    provenance: OfSession | None = None
    kept: KeptVerdict | None = None
    changed: ChangedVerdict | None = None


@dataclass(frozen=True)
class KeptVerdict:
    """When a stored verdict was judged, UTC, by which netproof, and what has changed since.

    ``differs``: differences of today's bounds, a few words each.
    """

    at: str
    netproof: str
    differs: tuple[str, ...]

    def sentence(self) -> str:
        """Return the sentence that today's bounds differ."""
        return (
            f"judged {self.at}, and today's bounds differ: {'; '.join(self.differs)};"
            " 'netproof verdict --again' judges by them"
        )


@dataclass(frozen=True)
class ChangedVerdict:
    """Differences of today's verdict from the stored one.

    ``gone``, ``new``: faults beyond cases that only the stored one or only today's has.
    """

    kept: KeptVerdict
    cases: tuple[ChangedCase, ...]
    gone: tuple[str, ...]
    new: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.cases or self.gone or self.new)


def find(name: Path | None, store: Path | None = None) -> session.Session:
    """Load the session that a command was given: a report, a session's folder, a name in a store.

    ``name`` None takes the newest one of the folder that RFM_REPORT_FILE names. A file, or a name
    that ends in ``.json``, is a report; a folder with a session's header is that session; anything
    else is looked up in ``store``, as in ``Store.find``. Raises NetproofError where no session is
    found.
    """
    if name is None:
        return session.load(session.newest(reports_folder()))
    own = os.path.isfile(name) or os.path.isfile(name / records.HEADER)
    if store is None or name.suffix == ".json" or own:
        return session.load(name)
    from netproof.store import Store, questions

    opened = Store(store)
    return questions.opened(opened, opened.find(str(name)))


def judge_session(
    stored: session.Session,
    *,
    system: str | None = None,
    full: bool = False,
    asked: AlongsideOptions | None = None,
    fold: int = SESSIONS,
    store: Path | None = None,
    again: bool = False,
) -> JudgedSession:
    """Return the verdict on a session: the stored one, or else judge it now.

    It is judged by today's configuration and references, whose folders RFM_CONFIG_PATH and
    RFM_REFERENCE_PREFIX name. It is also judged now for another ``system`` or ``full``, or with
    ``asked``. Where today's bounds are not those of a stored verdict, a note says so.

    ``system``: None takes the session's own, or that of the stored verdict; or ``SYSTEM:PARTITION``
    for the cases of one partition; ``full``: with the tests of ``checks/full``; ``asked``: stored
    results to compare with, None for none; ``fold``: how many earlier sessions need to have had a
    warning for it to be folded; ``store``: where the session of a report may be; ``again``: judge
    now in any case, and report differences from the stored verdict. Raises NetproofError where it
    cannot be judged, and where its stored verdict is damaged.
    """
    found, fault = _kept(stored, store) if asked is None else (None, "")
    if found is not None and system is None and not full:
        bounds = found[0].bounds
        system, full = _asked(found[0].system, bounds.partition), bounds.full
    name, _, partition = (system or _system_of(stored)).partition(":")
    if found is not None and not found[0].is_of(name, partition, full):
        found = None
    configuration = site.gather(site_folder())
    expected = matrix(configuration, name, [partition] if partition else [], all_functions=full)
    folder = Path(_setting("RFM_REFERENCE_PREFIX"))
    when = None if found is None else _when(found[0], expected, folder)
    if found is not None and not again:
        return _as_kept(stored, *found, when, expected, fold)
    judged = _judged(stored, name, expected, configuration, folder, asked, fold)
    if fault:
        verdict = judged.verdict
        notes = (*verdict.notes, f"judged now, since the verdict that is kept is not read: {fault}")
        judged = dataclasses.replace(judged, verdict=dataclasses.replace(verdict, notes=notes))
    if found is None:
        return judged
    then, now = found[1], judged.verdict
    changed = ChangedVerdict(
        when,
        kept_changes.changed(then, now),
        tuple(one for one in then.faults if one not in now.faults),
        tuple(one for one in now.faults if one not in then.faults),
    )
    return dataclasses.replace(judged, changed=changed)


def power_of(judged: JudgedSession) -> list[power.CasePower]:
    """Return the smallest change that would have failed each case, by today's references.

    Raises NetproofError where the references cannot be read.
    """
    entries = references_of(judged.matrix)
    return list(power.Examined(judged.session, judged.matrix, entries).powers())


def references_of(expected: Matrix) -> anew.Entries:
    """Read today's references of a matrix' system; NetproofError where that fails."""
    return anew.of_file(Path(_setting("RFM_REFERENCE_PREFIX")), expected.cases[0].system)


def to_keep(
    stored: session.Session, report_sha256: str, *, system: str | None = None, full: bool = False
) -> bytes:
    """Return the verdict on a session in its stored form; ``system`` and ``full`` as above.

    Raises NetproofError where it cannot be judged.
    """
    name, _, partition = (system or _system_of(stored)).partition(":")
    configuration = site.gather(site_folder())
    expected = matrix(configuration, name, [partition] if partition else [], all_functions=full)
    folder = Path(_setting("RFM_REFERENCE_PREFIX"))
    # Warnings are folded when it is read, since that depends on other sessions.
    judged = _judged(stored, name, expected, configuration, folder, None, fold=0)
    return kept.made(
        judged.verdict,
        expected,
        folder,
        partition=partition,
        full=full,
        unread=judged.unread,
        report_sha256=report_sha256,
    )


def _asked(system: str, partition: str) -> str:
    return f"{system}:{partition}" if partition else system


def _kept(stored: session.Session, store: Path | None) -> tuple[tuple[Kept, Verdict] | None, str]:
    """Return the stored verdict on a session, or None; and why one is not read.

    A damaged one is an error for a session in a store; for a report it is a reason to judge now.
    """
    if stored.path.is_dir():
        from netproof.store import Store

        return kept.of_session(stored, *Store.holding(stored.path)), ""
    if store is None:
        return None, ""
    from netproof.store import Store, rows
    from netproof.store.folder import MARKER
    from netproof.store.ingest import report_sha256

    if not os.path.exists(store / MARKER):
        return None, ""
    try:
        place = rows.place(stored)
    except NetproofError:
        # No store has such a session.
        return None, ""
    try:
        opened = Store(store)
        if not opened.path(place).exists():
            return None, ""
        content = loading.read_bytes(stored.path)
        if hashlib.sha256(content).hexdigest() != report_sha256(opened, place):
            return None, ""
        return kept.of_session(stored, opened, place), ""
    except (NetproofError, OSError) as error:
        return None, str(error)


def _when(found: Kept, expected: Matrix, references: Path) -> KeptVerdict:
    at = f"{found.at[:10]} {found.at[11:16]} UTC"
    return KeptVerdict(at, found.bounds.netproof, found.differences(expected, references))


def _as_kept(
    stored: session.Session,
    found: Kept,
    verdict: Verdict,
    when: KeptVerdict,
    today: Matrix,
    fold: int,
) -> JudgedSession:
    """Return a stored verdict, with warnings folded that the sessions before it had too."""
    if when.differs:
        verdict = dataclasses.replace(verdict, notes=(*verdict.notes, when.sentence()))
    expected = found.bounds.matrix
    unread, earlier = list(found.unread), []
    warned = any(one.said(Level.WARN) for one in verdict.cases)
    if warned and fold and not stored.path.is_dir():
        earlier, unread = earlier_reports(stored, found.system)
    had, errors = _usual(stored, verdict, expected, today, earlier, unread, fold)
    origin = _origin(stored)
    verdict = _with(verdict, origin)
    return JudgedSession(
        stored,
        expected,
        verdict,
        (*unread, *errors),
        origin.differences,
        had,
        origin.beyond_nodes,
        origin.made,
        kept=when,
    )


def _judged(
    stored: session.Session,
    name: str,
    expected: Matrix,
    configuration: dict[str, Any],
    references: Path,
    asked: AlongsideOptions | None,
    fold: int,
) -> JudgedSession:
    """Judge a session by today's matrix of the system ``name``."""
    earlier, unread = earlier_reports(stored, name)
    origin = _origin(stored)
    unknown: Sequence[str] = ()
    others = None
    if asked is not None:
        # The baseline may be in the store.
        expected = dataclasses.replace(expected, baseline=matrix(configuration, name).baseline)
        if origin.made is None:
            unknown = [f"versions cannot be compared: {origin.unknown[0]}"]
        others, not_found = alongside(asked, stored, expected, configuration, origin.made)
        unknown = [*unknown, *not_found]
    entries = anew.of_file(references, name)
    verdict = _with(judge(expected, stored, earlier, others, entries, origin.made), origin)
    had, errors = _usual(stored, verdict, expected, expected, earlier, unread, fold)
    return JudgedSession(
        stored,
        expected,
        verdict,
        (*unread, *errors, *unknown),
        origin.differences,
        had,
        origin.beyond_nodes,
        origin.made,
    )


@dataclass(frozen=True)
class _Origin:
    """Provenance of a session, with the differences as in ``JudgedSession``.

    ``made``: None where it cannot be read; ``unknown``: then the reason, a sentence.
    """

    made: OfSession | None
    differences: tuple[str, ...]
    beyond_nodes: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def _origin(stored: session.Session) -> _Origin:
    try:
        made = provenance_of(stored)
        return _Origin(made, made.differences, made.beyond_nodes())
    except NetproofError as error:
        unknown = (f"whether nodes differ is not known: {error}",)
        return _Origin(None, unknown, unknown=unknown)


def _with(verdict: Verdict, origin: _Origin) -> Verdict:
    """Return a verdict that also fails where the nodes cannot be compared."""
    unknown = tuple(one for one in origin.unknown if one not in verdict.faults)
    return dataclasses.replace(verdict, faults=(*verdict.faults, *unknown))


def _usual(
    stored: session.Session,
    verdict: Verdict,
    expected: Matrix,
    today: Matrix,
    earlier: Sequence[session.Session],
    unread: Sequence[str],
    fold: int,
) -> tuple[Usual, list[str]]:
    """Return warnings that the sessions before it had too, and why they are not known."""
    if not fold or not any(one.said(Level.WARN) for one in verdict.cases):
        return NOTHING, []
    # A session that cannot be read is not known to have warned, so that nothing is folded then.
    try:
        before = sessions_before(stored, expected, today, [] if unread else earlier)
        return usual(verdict.cases, expected, before, fold), []
    except NetproofError as error:
        return NOTHING, [str(error)]


def provenance_of(stored: session.Session) -> OfSession:
    """Read a session's provenance from its report or from its tables in a store.

    Raises NetproofError where either cannot be read.
    """
    if stored.path.is_dir():
        from netproof.store import Store, questions

        return questions.provenance(*Store.holding(stored.path))
    document = stored.document or session.document_of(stored.path)
    return provenance.of_report(document, str(stored.path))


def reports_folder() -> Path:
    """Return the folder of reports, from RFM_REPORT_FILE; NetproofError where not set."""
    return Path(_setting("RFM_REPORT_FILE")).parent


def site_folder() -> Path:
    """Return the folder of the site's files, RFM_CONFIG_PATH; NetproofError where not set."""
    return Path(_setting("RFM_CONFIG_PATH"))


def _setting(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise NetproofError(f"{name} is not set; source the site's activate")
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
