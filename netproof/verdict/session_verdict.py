"""Find a session with its configuration and references, and judge it."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from netproof.criteria import Level
from netproof.errors import NetproofError
from netproof.intake import loading
from netproof.session import provenance, records, session
from netproof.session.provenance import OfSession
from netproof.site import folders, site
from netproof.site.matrix import Matrix, matrix
from netproof.verdict import power, rejudge, stored
from netproof.verdict.engine import Key
from netproof.verdict.judge import judge, unsettled_of
from netproof.verdict.options import SESSIONS, StoredOptions
from netproof.verdict.rejudge import ChangedCase, StoredBounds
from netproof.verdict.stored import (
    NOTHING,
    Recurring,
    StoredVerdict,
    earlier_reports,
    recurring,
    sessions_before,
)
from netproof.verdict.stored_results import alongside
from netproof.verdict.verdict import Verdict

if TYPE_CHECKING:
    from netproof.store import Store
    from netproof.store.ingest import Ingested


@dataclass(frozen=True)
class WhenJudged:
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

    stored: WhenJudged
    cases: tuple[ChangedCase, ...]
    gone: tuple[str, ...]
    new: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.cases or self.gone or self.new)


@dataclass(frozen=True)
class JudgedSession:
    """A session with its expected matrix and its verdict.

    ``unread``: why an earlier session could not be read, a sentence each; ``differences``: between
    nodes or jobs, or why they are not known, a sentence each; ``beyond_nodes``: differences that
    the verdict on nodes does not have; ``recurring``: warnings that the sessions before it had too;
    ``stored``: when and by what it was judged, None where it was judged just now; ``changed``:
    differences from the stored verdict, None where it was not compared with one.
    """

    session: session.Session
    matrix: Matrix
    verdict: Verdict
    unread: tuple[str, ...]
    differences: tuple[str, ...] = ()
    recurring: Recurring = NOTHING
    beyond_nodes: tuple[str, ...] = ()
    stored: WhenJudged | None = None
    changed: ChangedVerdict | None = None

    @cached_property
    def provenance(self) -> OfSession | None:
        """Provenance of the session, read on request; None where it cannot be read."""
        return _provenance(self.session)[0]


def find(name: Path | None, store: Path | None = None, *, lazily: bool = False) -> session.Session:
    """Load the session that a command was given: a report, a session's folder, a name in a store.

    ``name`` None takes the newest one of the folder that RFM_REPORT_FILE names. A file, or a name
    that ends in ``.json``, is a report; a folder with a session's header is that session; anything
    else is looked up in ``store``, as in ``Store.find``, and with ``lazily`` read when its results
    are asked for. Raises NetproofError where no session is found.
    """
    if name is None:
        return session.load(session.newest(folders.of_reports()))
    own = os.path.isfile(name) or os.path.isfile(name / records.HEADER)
    if store is None or name.suffix == ".json" or own:
        return session.load(name)
    from netproof.store import Store, questions

    opened = Store(store)
    return (questions.LazySession if lazily else questions.load)(opened, opened.find(str(name)))


def judge_session(
    read: session.Session,
    *,
    system: str | None = None,
    full: bool = False,
    asked: StoredOptions | None = None,
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
    found, fault = _stored_verdict(read, store) if asked is None else (None, "")
    if found is not None and system is None and not full:
        own, full = found[0], found[0].full
        system = f"{own.system}:{own.partition}" if own.partition else own.system
    name, partition, configuration, expected = _to_judge(read, system, full)
    if found is None or (found[0].system, found[0].partition, found[0].full) != (
        name,
        partition,
        full,
    ):
        judged = _judged(read, name, expected, configuration, asked, fold)
        if not fault:
            return judged
        note = f"judged now, since the stored verdict is not read: {fault}"
        verdict = dataclasses.replace(judged.verdict, notes=(*judged.verdict.notes, note))
        return dataclasses.replace(judged, verdict=verdict)
    then, bounds = found[0], found[0].bounds
    when = WhenJudged(
        f"{then.at[:10]} {then.at[11:16]} UTC",
        bounds.netproof[0],
        then.bounds_that_differ(expected, folders.of_references()),
    )
    before = found[1]
    if again:
        judged = _judged(read, name, expected, configuration, asked, fold)
        now = judged.verdict
        changed = ChangedVerdict(
            when,
            rejudge.changed(before, now),
            tuple(one for one in before.faults if one not in now.faults),
            tuple(one for one in now.faults if one not in before.faults),
        )
        return dataclasses.replace(judged, changed=changed)
    if when.differs:
        before = dataclasses.replace(before, notes=(*before.notes, when.sentence()))
    unread: Sequence[str] = then.unread
    earlier: list[session.Session] = []
    if _warns(before) and fold and not read.path.is_dir():
        earlier, unread = earlier_reports(read, then.system)
    had, errors = _recurring(read, before, expected, bounds, earlier, unread, fold)
    return JudgedSession(
        session=read,
        matrix=dataclasses.replace(expected, baseline=then.baseline),
        verdict=before,
        unread=(*unread, *errors),
        differences=then.differences,
        recurring=had,
        beyond_nodes=then.beyond_nodes,
        stored=when,
    )


def _to_judge(
    read: session.Session, system: str | None, full: bool
) -> tuple[str, str, dict[str, Any], Matrix]:
    """Return names of system and partition, the site's configuration and the expected matrix."""
    name, _, partition = (system or _system_of(read)).partition(":")
    configuration = site.gather(folders.of_site())
    expected = matrix(configuration, name, [partition] if partition else [], all_functions=full)
    return name, partition, configuration, expected


def power_of(judged: JudgedSession) -> list[power.CasePower]:
    """Return the smallest change that would have failed each case, by today's references.

    Raises NetproofError where the references cannot be read.
    """
    entries = references_of(judged.matrix)
    return list(power.Examined(judged.session, judged.matrix, entries).powers())


def references_of(expected: Matrix) -> rejudge.Entries:
    """Read today's references of a matrix' system; NetproofError where that fails."""
    return rejudge.of_file(folders.of_references(), expected.cases[0].system)


def ingest(
    store: Store, report: Path, *, system: str | None = None, full: bool = False
) -> Ingested:
    """Put a session's report into the store, with its verdict; a second time changes nothing.

    ``system``, ``full``: as in ``judge_session``. A session that cannot be judged, without its
    site's configuration for instance, is stored without a verdict and judged when it is read.
    Raises NetproofError, with the store unchanged, where the report is damaged, is still being
    written, or differs from the stored one of this session.
    """
    from netproof.store import ingest as storing

    def verdict(read: session.Session, sha256: str) -> bytes:
        name, partition, configuration, expected = _to_judge(read, system, full)
        # Warnings are folded when it is read, since that depends on other sessions.
        judged = _judged(read, name, expected, configuration, None, fold=0)
        return stored.document(
            judged.verdict,
            expected,
            folders.of_references(),
            partition=partition,
            full=full,
            report_sha256=sha256,
            unread=judged.unread,
            differences=judged.differences,
            beyond_nodes=judged.beyond_nodes,
        )

    return storing.ingest(store, report, _why_unsettled, verdict)


def _why_unsettled(read: session.Session) -> dict[Key, tuple[str, ...]]:
    """Return why the figures of cases are not usable, by case; nothing where not known.

    A session may have settings of another netproof: its figures are stored all the same.
    """
    try:
        return {key: () if usable else why for key, (why, usable) in unsettled_of(read).items()}
    except NetproofError:
        return {}


def _stored_verdict(
    read: session.Session, store: Path | None
) -> tuple[tuple[StoredVerdict, Verdict] | None, str]:
    """Return the stored verdict on a session, or None; and why one is not read.

    A damaged one is an error for a session in a store; for a report it is a reason to judge now.
    """
    if read.path.is_dir():
        from netproof.store import Store

        return stored.on_session(read, *Store.holding(read.path)), ""
    if store is None:
        return None, ""
    from netproof.store import Store
    from netproof.store import ingest as ingesting
    from netproof.store.folder import MARKER

    if not os.path.exists(store / MARKER):
        return None, ""
    try:
        place = ingesting.place(read)
    except NetproofError:
        # No store has such a session.
        return None, ""
    try:
        opened = Store(store)
        alike = opened.path(place).exists() and (
            hashlib.sha256(loading.read_bytes(read.path)).hexdigest()
            == ingesting.report_sha256(opened, place)
        )
        return (stored.on_session(read, opened, place) if alike else None), ""
    except (NetproofError, OSError) as error:
        return None, str(error)


def _judged(
    read: session.Session,
    name: str,
    expected: Matrix,
    configuration: dict[str, Any],
    asked: StoredOptions | None,
    fold: int,
) -> JudgedSession:
    """Judge a session by today's matrix of the system ``name``."""
    references = folders.of_references()
    earlier, unread = earlier_reports(read, name)
    made, why = _provenance(read)
    unknown: Sequence[str] = ()
    others = None
    if asked is not None:
        # The baseline may be in the store.
        expected = dataclasses.replace(expected, baseline=matrix(configuration, name).baseline)
        if made is None:
            unknown = [f"versions cannot be compared: {why}"]
        others, not_found = alongside(asked, read, expected, configuration, made)
        unknown = [*unknown, *not_found]
    entries = rejudge.of_file(references, name)
    verdict = judge(expected, read, earlier, others, entries, made)
    # A verdict also fails where the nodes cannot be compared.
    if why and why not in verdict.faults:
        verdict = dataclasses.replace(verdict, faults=(*verdict.faults, why))
    bounds = StoredBounds.of(expected, references) if fold and _warns(verdict) else None
    had, errors = _recurring(read, verdict, expected, bounds, earlier, unread, fold)
    return JudgedSession(
        read,
        expected,
        verdict,
        (*unread, *errors, *unknown),
        (why,) if made is None else made.differences,
        had,
        () if made is None else made.beyond_nodes(),
    )


def _provenance(read: session.Session) -> tuple[OfSession | None, str]:
    """Return a session's provenance, None where it cannot be read, and then why."""
    try:
        return provenance_of(read), ""
    except NetproofError as error:
        return None, f"whether nodes differ is not known: {error}"


def _warns(verdict: Verdict) -> bool:
    return any(one.said(Level.WARN) for one in verdict.cases)


def _recurring(
    read: session.Session,
    verdict: Verdict,
    expected: Matrix,
    bounds: StoredBounds | None,
    earlier: Sequence[session.Session],
    unread: Sequence[str],
    fold: int,
) -> tuple[Recurring, list[str]]:
    """Return warnings that the sessions before it had too, and why they are not known."""
    if not fold or bounds is None or not _warns(verdict):
        return NOTHING, []
    # A session that cannot be read is not known to have warned, so that nothing is folded then.
    try:
        before = sessions_before(read, bounds, [] if unread else earlier)
        return recurring(verdict.cases, expected, before, fold), []
    except NetproofError as error:
        return NOTHING, [str(error)]


def provenance_of(read: session.Session) -> OfSession:
    """Read a session's provenance from its report, or from a store.

    Raises NetproofError where either cannot be read.
    """
    if read.path.is_dir():
        from netproof.store import Store, questions

        return questions.provenance(*Store.holding(read.path))
    document = read.document or session.document_of(read.path)
    return provenance.of_report(document, str(read.path))


def _system_of(read: session.Session) -> str:
    systems = {result.system for result in read.results}
    if not systems:
        raise NetproofError(
            f"{read.path}: holds no test case, so nothing ran; name what was to run:"
            " SYSTEM[:PARTITION]"
        )
    if len(systems) != 1:
        found = ", ".join(sorted(systems))
        raise NetproofError(
            f"{read.path}: holds results of {len(systems)} systems ({found}); name one: SYSTEM"
        )
    return systems.pop()
