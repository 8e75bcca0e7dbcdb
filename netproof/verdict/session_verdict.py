"""Find a session with its configuration and references, and judge it."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netproof.criteria import Finding, Level
from netproof.criteria.registry import BY_FINDING
from netproof.errors import NetproofError
from netproof.intake import disk
from netproof.measurement.case import Case
from netproof.session import records, session
from netproof.session.session import Session
from netproof.site import folders
from netproof.site.matrix import Matrix, matrix, of_site
from netproof.store.folder import MARKER, Store
from netproof.verdict import EARLIER_SESSIONS, SESSIONS, confirmations, power, stored
from netproof.verdict.engine import Key, by_place, companion_keys
from netproof.verdict.judge import judge, last_results, subject
from netproof.verdict.references import Entries, entries_of
from netproof.verdict.stored import StoredVerdict
from netproof.verdict.stored_results import alongside
from netproof.verdict.verdict import CaseVerdict, StoredResults, Verdict

LEAST = 3
"""Fewest sessions that make a warning recurring."""
NEAR = 2.0
"""Sizes within this factor are the same: a finding can move by a step of the grid."""

Recurring = tuple[int, tuple[tuple[Case, Finding], ...]]
"""Warnings of a session that the sessions before it had too, each with its case.

The number is of sessions that had them, the least of any.
"""

NOTHING: Recurring = (0, ())

Warnings = Mapping[Key, Sequence[Finding]]
"""Warnings along the curves of a session's cases, by their keys."""

Earlier = Session | Warnings
"""An earlier session to be rejudged, or the warnings of its stored verdict."""


@dataclass(frozen=True)
class ChangedCase:
    """A case on which two verdicts differ; None for the faults beyond cases.

    ``was``, ``now``: its levels, None where a verdict does not have it; ``gone``, ``new``:
    objections of the earlier one alone, and of the later one alone, a sentence each.
    """

    case: Case | None
    was: Level | None
    now: Level | None
    gone: tuple[str, ...]
    new: tuple[str, ...]

    def __str__(self) -> str:
        reasons = [*(f"now: {why}" for why in self.new), *(f"no more: {why}" for why in self.gone)]
        if self.case is not None:
            levels = f"{self.was or 'not judged'}, now {self.now or 'not judged'}"
            reasons = [f"{self.case}: {levels}", *reasons]
        return "; ".join(reasons)


@dataclass(frozen=True)
class JudgedSession:
    """A session with its expected matrix and its verdict.

    ``recurring``: warnings that the sessions before it had too; ``stored``: the stored verdict,
    None without one; ``differs``: differences of today's bounds from its own, a few words each;
    ``changed``: what is judged otherwise just now, None where the verdict is the stored one, or
    none is stored.
    """

    session: Session
    matrix: Matrix
    verdict: Verdict
    recurring: Recurring = NOTHING
    stored: StoredVerdict | None = None
    differs: tuple[str, ...] = ()
    changed: tuple[ChangedCase, ...] | None = None

    @property
    def outdated(self) -> str:
        """Sentence that today's bounds are not those of the stored verdict; empty without any."""
        if self.stored is None or not self.differs or self.changed is not None:
            return ""
        return (
            f"judged {self.stored.judged}, and today's bounds differ: {'; '.join(self.differs)};"
            " 'netproof verdict --again' judges by them"
        )


def find(name: Path | None, store: Path | None = None, *, lazily: bool = False) -> Session:
    """Load the session that a command was given: a report, a session's folder, a name in a store.

    ``name`` None takes the newest one of the folder that RFM_REPORT_FILE names. A file, a name
    with a slash, or one that ends in ``.json``, is a report; a folder with a session's header is
    that session; anything else is looked up in ``store``, as in ``Store.find``, and with
    ``lazily`` read when its results are asked for. Raises NetproofError where no session is found.
    """
    if name is None:
        return session.load(session.newest(folders.of_reports()))
    path = os.path.exists(name) or os.sep in str(name)
    own = (path and not os.path.isdir(name)) or os.path.isfile(name / records.HEADER)
    if store is None or name.suffix == ".json" or own:
        return session.load(name)
    from netproof.store import questions

    try:
        opened = Store(store)
        stored = opened.find(str(name))
    except NetproofError:
        if os.path.isdir(name):
            return session.load(name)
        raise
    return (questions.LazySession if lazily else questions.load)(opened, stored)


def judge_session(
    read: Session,
    *,
    system: str | None = None,
    full: bool = False,
    asked: StoredResults | None = None,
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
    read.insist_on_a_run()
    found, fault = _stored_verdict(read, store) if asked is None else (None, "")
    if found is not None and system is None and not full:
        own, full = found[0], found[0].full
        system = f"{own.system}:{own.partition}" if own.partition else own.system
    name, partition, configuration, expected = of_site(
        system or read.system("name one: SYSTEM"), full=full
    )
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
    then, before = found
    differs = then.bounds_that_differ(expected, folders.of_references())
    if again:
        judged = _judged(read, name, expected, configuration, asked, fold)
        changed = _changed(before, judged.verdict)
        return dataclasses.replace(judged, stored=then, differs=differs, changed=changed)
    unread: Sequence[str] = before.unread
    earlier: list[Session] = []
    if before.warns and fold and not read.path.is_dir():
        earlier, unread = _earlier_reports(read, then.system)
    had, errors = _recurring(read, before, expected, earlier, unread, fold)
    before = dataclasses.replace(before, unread=(*unread, *errors))
    expected = dataclasses.replace(expected, baseline=then.baseline)
    found_again = JudgedSession(read, expected, before, had, then, differs)
    if not differs:
        return found_again
    before = dataclasses.replace(before, notes=(*before.notes, found_again.outdated))
    return dataclasses.replace(found_again, verdict=before)


def power_of(judged: JudgedSession) -> list[power.CasePower]:
    """Return the smallest change that would have failed each case, by today's references.

    Raises NetproofError where the references cannot be read.
    """
    examined, cases = _examined(judged)
    return [found for one in cases if (found := examined.power(one)) is not None]


def sensitivity_of(judged: JudgedSession) -> power.Sensitivity:
    """Return how many passed cases a stated change would have failed, as ``power_of``."""
    examined, cases = _examined(judged)
    return examined.sensitivity(cases)


def _examined(judged: JudgedSession) -> tuple[power.Examined, list[Case]]:
    """Return a session whose cases can be changed, and those of its partitions."""
    entries = references_of(judged.matrix)
    examined = power.Examined(judged.session, judged.matrix, entries)
    return examined, [one for one in examined.cases if one.partition in judged.matrix.partitions]


def references_of(expected: Matrix) -> Entries:
    """Read today's references of a matrix' system; NetproofError where that fails."""
    return entries_of(folders.of_references(), expected.cases[0].system)


def _stored_verdict(
    read: Session, store: Path | None
) -> tuple[tuple[StoredVerdict, Verdict] | None, str]:
    """Return the stored verdict on a session, or None; and why one is not read.

    A damaged one is an error for a session in a store; for a report it is a reason to judge now.
    """
    if read.path.is_dir():
        return stored.on_session(read, *Store.holding(read.path)), ""
    if store is None:
        return None, ""
    from netproof.store import ingest as ingesting

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
            hashlib.sha256(disk.read_bytes(read.path)).hexdigest()
            == ingesting.report_sha256(opened, place)
        )
        return (stored.on_session(read, opened, place) if alike else None), ""
    except (NetproofError, OSError) as error:
        return None, str(error)


def _judged(
    read: Session,
    name: str,
    expected: Matrix,
    configuration: dict[str, Any],
    asked: StoredResults | None,
    fold: int,
) -> JudgedSession:
    references = folders.of_references()
    earlier, unread = _earlier_reports(read, name)
    unknown: Sequence[str] = ()
    others = None
    if asked is not None:
        # The baseline may be in the store.
        expected = dataclasses.replace(expected, baseline=matrix(configuration, name).baseline)
        others, unknown = alongside(asked, read, expected, configuration)
    entries = entries_of(references, name)
    verdict = judge(expected, read, earlier, others, entries, read.provenance)
    had, errors = _recurring(read, verdict, expected, earlier, unread, fold)
    verdict = dataclasses.replace(verdict, unread=(*unread, *errors, *unknown))
    return JudgedSession(read, expected, verdict, had)


def _recurring(
    read: Session,
    verdict: Verdict,
    expected: Matrix,
    earlier: Sequence[Session],
    unread: Sequence[str],
    fold: int,
) -> tuple[Recurring, list[str]]:
    """Return warnings that the sessions before it had too, and why they are not known.

    Those are from ``earlier``, which are reports, or from the store of a stored session. A stored
    verdict has the warnings of its day; a session without one is rejudged.
    """
    if not fold or not verdict.warns:
        return NOTHING, []
    # A session that cannot be read is not known to have warned, so that nothing is folded then.
    before: list[Earlier] = [] if unread else [*earlier]
    try:
        if read.path.is_dir():
            from netproof.store import questions

            store, this = Store.holding(read.path)
            older = [one for one in store.sessions(this.system) if one.start < this.start]
            before = []
            for one in reversed(older[-EARLIER_SESSIONS:]):
                past = stored.read(store, one)
                before.append(past.warnings() if past else questions.load(store, one))
        return recurring(verdict.cases, expected, before, fold), []
    except NetproofError as error:
        return NOTHING, [str(error)]


def _changed(then: Verdict, now: Verdict) -> tuple[ChangedCase, ...]:
    """Return the cases on which two verdicts on one session differ, in order, and faults beyond.

    Only failures, warnings and inconclusive results count.
    """
    before = {one.case.key(): one for one in then.cases}
    after = {one.case.key(): one for one in now.cases}
    cases = {one.case.key(): one.case for one in (*now.cases, *then.cases)}
    several = [(case, before.get(key), after.get(key)) for key, case in cases.items()]
    found = [
        ChangedCase(
            case,
            one.level if one else None,
            other.level if other else None,
            *_apart(_objections(one), _objections(other)),
        )
        for case, one, other in several
    ]
    found.append(ChangedCase(None, None, None, *_apart(then.faults, now.faults)))
    return tuple(one for one in found if one.was is not one.now or one.gone or one.new)


def _apart(were: Sequence[str], are: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what is gone, and what is new."""
    gone = tuple(why for why in were if why not in are)
    return gone, tuple(why for why in are if why not in were)


def _objections(judged: CaseVerdict | None) -> tuple[str, ...]:
    if judged is None:
        return ()
    reported = (Level.FAIL, Level.INCONCLUSIVE, Level.WARN)
    return (
        *judged.faults,
        *([judged.expected] if judged.expected else []),
        *(finding.why for finding in judged.findings if finding.level in reported),
    )


def _earlier_reports(read: Session, system: str) -> tuple[list[Session], list[str]]:
    """Return the system's newest sessions before this one among the reports, and reading errors."""
    found: list[Session] = []
    folder = os.environ.get("RFM_REPORT_FILE") or None
    began = read.info.get("time_start_unix")
    if folder is None or began is None:
        return found, []
    unread = [*session.left_out(Path(folder).parent)]
    for path in session.reports(Path(folder).parent):
        if len(found) == EARLIER_SESSIONS:
            break
        if path.resolve() == read.path.resolve():
            continue
        try:
            other = session.load(path)
        except NetproofError as error:
            unread.append(str(error))
            continue
        before = other.info.get("time_start_unix", began) < began
        if before and any(result.system == system for result in other.results):
            found.append(other)
    return found, unread


def recurring(
    cases: Sequence[CaseVerdict], matrix: Matrix, earlier: Sequence[Earlier], most: int = SESSIONS
) -> Recurring:
    """Return the warnings that each of the earlier sessions which ran the case had too.

    ``earlier``: of the same system, the newest first; the ``most`` newest are read, and only if
    something warns. A session without the case does not count. One in which the case was not
    complete, or the criterion could not judge, did not warn.
    """
    warned = [
        (judged, finding)
        for judged in cases
        for finding in judged.findings
        if finding.level is Level.WARN
    ]
    if not warned:
        return NOTHING
    keys = {judged.case.key() for judged, _ in warned}
    before = [
        _warnings(one, matrix, keys) if isinstance(one, Session) else one for one in earlier[:most]
    ]
    found, fewest = [], most
    for judged, finding in warned:
        having = [several[key] for several in before if (key := judged.case.key()) in several]
        if len(having) < LEAST:
            continue
        if all(any(_same(finding, other) for other in several) for several in having):
            found.append((judged.case, finding))
            fewest = min(fewest, len(having))
    return (fewest, tuple(found)) if found else NOTHING


def _warnings(session: Session, matrix: Matrix, keys: set[Key]) -> Warnings:
    ran = by_place(last_results(session))
    cases = (one.case for key, one in ran.items() if key in keys and one.case is not None)
    needed = keys.union(*(companion_keys(case, ran) for case in cases))
    subjects = [subject(ran[key], matrix) for key in needed if key in ran and ran[key].measured]
    findings = confirmations.findings_along(subjects)
    return {
        key: [finding for finding in findings.get(key, ()) if finding.level is Level.WARN]
        for key in keys
        if key in ran
    }


def _same(mine: Finding, its: Finding) -> bool:
    if mine.criterion != its.criterion:
        return False
    of = BY_FINDING.get(mine.criterion)
    if of is not None and of.of_peaks:
        return True
    if mine.size is None or its.size is None:
        return mine.size == its.size
    return max(mine.size, its.size) <= NEAR * min(mine.size, its.size)
