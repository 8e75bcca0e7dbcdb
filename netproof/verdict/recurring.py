"""Warnings that every recent session of the system had too.

A warning that comes with every session hides a new one. It recurs if the same criterion warned of
the same case at the same size in each of the last sessions that ran the case, ``LEAST`` at least.
An earlier session is rejudged from its curves by today's settings, unless a verdict by these is
stored.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from netproof.criteria import Finding, Level
from netproof.criteria.registry import BY_FINDING
from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.session import session
from netproof.session.session import Session
from netproof.site.matrix import Matrix
from netproof.verdict import stored
from netproof.verdict.engine import companion_keys
from netproof.verdict.judge import findings_along, subject
from netproof.verdict.options import EARLIER_SESSIONS, SESSIONS
from netproof.verdict.verdict import CaseVerdict

LEAST = 3
"""Fewest sessions that make a warning recurring."""
NEAR = 2.0
"""Sizes within this factor are the same: a finding can move by a step of the grid."""


@dataclass(frozen=True)
class RecurringWarning:
    """A warning that earlier sessions had too."""

    judged: CaseVerdict
    finding: Finding


@dataclass(frozen=True)
class Recurring:
    """Recurring warnings of a session; ``sessions``: how many had them, the least of any."""

    sessions: int
    warnings: tuple[RecurringWarning, ...]

    def has(self, finding: Finding) -> bool:
        """Check whether the finding is one of them."""
        return any(one.finding is finding for one in self.warnings)


NOTHING = Recurring(0, ())

Warnings = Mapping[tuple, Sequence[Finding]]
"""Warnings along the curves of a session's cases, by their keys."""

Earlier = Session | Warnings
"""An earlier session to be rejudged, or the warnings of its stored verdict."""


def earlier_reports(read: Session, system: str) -> tuple[list[Session], list[str]]:
    """Return the system's newest other sessions in the folder of reports, and reading errors."""
    found, unread = [], []
    folder = os.environ.get("RFM_REPORT_FILE") or None
    if folder is None:
        return found, unread
    unread += session.left_out(Path(folder).parent)
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
        if any(result.system == system for result in other.results):
            found.append(other)
    return found, unread


def sessions_before(
    read: Session, bounds: stored.StoredBounds, earlier: Sequence[Session]
) -> list[Earlier]:
    """Return the sessions of the system that began before this one, the newest first.

    They are from ``earlier``, which are reports, or from the store of a stored session. A stored
    verdict is returned if its cases were judged by ``bounds``; else the session, to be rejudged.
    Raise NetproofError where one cannot be read.
    """
    if read.path.is_dir():
        from netproof.store import Store, questions

        store, this = Store.holding(read.path)
        before = [one for one in store.sessions(this.system) if one.start < this.start]
        found: list[Earlier] = []
        for one in reversed(before[-EARLIER_SESSIONS:]):
            past = stored.read(store, one)
            alike = past is not None and past.bounds.judge_cases_as(bounds)
            found.append(past.warnings() if alike else questions.load(store, one))
        return found
    began = read.info.get("time_start_unix")
    if began is None:
        return []
    return [one for one in earlier if one.info.get("time_start_unix", began) < began]


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
    alongside = {key for judged, _ in warned for key in companion_keys(judged.case)}
    before = [
        _warnings(one, matrix, keys, keys | alongside) if isinstance(one, Session) else one
        for one in earlier[:most]
    ]
    found, fewest = [], most
    for judged, finding in warned:
        having = [several[key] for several in before if (key := judged.case.key()) in several]
        if len(having) < LEAST:
            continue
        if all(any(_same(finding, other) for other in several) for several in having):
            found.append(RecurringWarning(judged, finding))
            fewest = min(fewest, len(having))
    return Recurring(fewest, tuple(found)) if found else NOTHING


def _warnings(session: Session, matrix: Matrix, keys: set[tuple], needed: set[tuple]) -> Warnings:
    """Return the warnings along the curves of the session's cases, by their keys."""
    # The last run of each case counts.
    ran = {r.case.key(): r for r in session.results if r.case is not None}
    subjects = [subject(ran[key], matrix) for key in needed if key in ran and ran[key].measured]
    findings = findings_along(subjects, session)
    return {
        key: [finding for finding in findings.get(key, ()) if finding.level is Level.WARN]
        for key in keys
        if key in ran
    }


def _same(mine: Finding, its: Finding) -> bool:
    if mine.criterion != its.criterion:
        return False
    of = BY_FINDING.get(mine.criterion)
    if of is not None and mine.criterion in of.of_peaks:
        return True
    if mine.size is None or its.size is None:
        return mine.size == its.size
    low, high = sorted((mine.size, its.size))
    return high <= NEAR * low


def sentence(found: Recurring) -> str:
    """Return one line: how many warnings, of which criteria, where, and their values."""
    together: dict[tuple[str, str], list[RecurringWarning]] = {}
    for one in found.warnings:
        key = (one.finding.criterion, one.judged.case.what())
        together.setdefault(key, []).append(one)
    count = len(found.warnings)
    parts = [
        f"{criterion}, {_places([one.judged.case for one in several])}, {what}"
        f" ({_values([one.finding for one in several])})"
        for (criterion, what), several in together.items()
    ]
    return (
        f"{count} {'warning' if count == 1 else 'warnings'} as in the last {found.sessions}"
        f" sessions: {'; '.join(parts)}"
    )


def _places(cases: Sequence[Case]) -> str:
    """Return partitions and environments: each once if all are combined, else each pair."""
    partitions = list(dict.fromkeys(case.partition for case in cases))
    environments = list(dict.fromkeys(case.environment for case in cases))
    pairs = dict.fromkeys(f"{case.partition} {case.environment}" for case in cases)
    if len(pairs) == len(partitions) * len(environments):
        return f"{_and(partitions)}, {_and(environments)}"
    return _and(list(pairs))


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _values(findings: Sequence[Finding]) -> str:
    """Return the least and largest value, and the bound if all have one."""
    values = sorted(one.value for one in findings if one.value is not None)
    bounds = {one.bound for one in findings}
    if not values:
        return "undefined"
    low, high = f"{values[0]:.3g}", f"{values[-1]:.3g}"
    bound = bounds.pop() if len(bounds) == 1 else None
    asked = "" if bound is None else f", the bound is {bound:g}"
    return f"{low if low == high else f'{low} to {high}'}{asked}"
