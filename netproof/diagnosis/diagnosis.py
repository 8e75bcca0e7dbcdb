"""Diagnose each partition of a judged session: culprits, confidence, and when they began."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache, cached_property, partial
from pathlib import Path

from netproof.diagnosis import checked
from netproof.diagnosis.causes import find_culprits
from netproof.diagnosis.evidence import (
    NO_EARLIER,
    Began,
    Culprit,
    EvidenceSource,
    PartitionView,
    Since,
)
from netproof.diagnosis.gathering import gather
from netproof.errors import NetproofError
from netproof.session import session
from netproof.verdict import session_verdict
from netproof.verdict.session_verdict import JudgedSession

NOTHING_WRONG, SOMETHING_WRONG, INCONCLUSIVE = 0, 1, 3
"""Exit statuses of a diagnosis."""


class DiagnosisOutcome(StrEnum):
    """Outcome of a diagnosis."""

    NOTHING = "nothing wrong"
    FOUND = "something found"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class Diagnosis:
    """A partition's culprits, worst first, what was ruled out, and what is not known.

    ``cases``, ``passed``, ``red``: counts of cases measured, passed and failed, and ``unmeasured``
    of those failed and not measured; ``asked``: sources that have evidence; ``incomplete``: why the
    partition cannot be declared healthy; ``next_steps``: what would settle it.
    """

    partition: str
    culprits: tuple[Culprit, ...]
    cases: int
    passed: int
    red: int
    asked: frozenset[EvidenceSource]
    ruled_out: tuple[str, ...]
    not_known: tuple[str, ...]
    incomplete: tuple[str, ...]
    next_steps: tuple[str, ...] = ()
    unmeasured: int = 0

    @property
    def outcome(self) -> DiagnosisOutcome:
        """Outcome by the culprits found and the evidence missing."""
        if self.culprits:
            return DiagnosisOutcome.FOUND
        return DiagnosisOutcome.INCONCLUSIVE if self.incomplete else DiagnosisOutcome.NOTHING


@dataclass(frozen=True)
class Earlier:
    """An earlier session; ``judge``, on request, raises NetproofError if it cannot be judged."""

    name: str
    started: datetime
    judge: Callable[[], JudgedSession]

    @cached_property
    def judged(self) -> JudgedSession | str:
        """The judged session, or why it cannot be judged."""
        try:
            return self.judge()
        except NetproofError as error:
            return str(error)


def partitions_of(judged: JudgedSession) -> tuple[str, ...]:
    """Return the partitions with results in the session, in the site's order."""
    there = {result.partition for result in judged.session.results}
    return tuple(name for name in judged.matrix.partitions if name in there)


def diagnose(
    judged: JudgedSession, partition: str | None = None, earlier: Iterable[Earlier] = ()
) -> tuple[Diagnosis, ...]:
    """Diagnose a partition, or each one with results in the session.

    ``earlier``: sessions before it, newest first, judged only as far as needed. Raises
    NetproofError for a partition unknown to the site, and for a session without results.
    """
    known = tuple(judged.matrix.partitions)
    if partition is not None and partition not in known:
        raise NetproofError(f"there is no partition {partition!r}; there are {', '.join(known)}")
    names = partitions_of(judged) if partition is None else (partition,)
    if not names:
        raise NetproofError(
            f"{judged.session.path}: has results of none of the partitions {', '.join(known)}"
        )
    sessions = _read(earlier)
    found = []
    for name in names:
        one = _of(judged, name)
        before = cache(partial(_before, partition=name))
        dated = []
        for culprit in one.culprits:
            # What a copy reads, the others have.
            sessions, again = itertools.tee(sessions)
            dated.append(replace(culprit, since=_since(culprit, again, before)))
        found.append(replace(one, culprits=tuple(dated)))
    return tuple(found)


def status(diagnoses: Sequence[Diagnosis]) -> int:
    """Return the exit status of several: 1 if any found a fault, else 3 if any is inconclusive."""
    outcomes = {one.outcome for one in diagnoses}
    if DiagnosisOutcome.FOUND in outcomes:
        return SOMETHING_WRONG
    return NOTHING_WRONG if outcomes == {DiagnosisOutcome.NOTHING} else INCONCLUSIVE


def _of(judged: JudgedSession, partition: str) -> Diagnosis:
    view = PartitionView(judged, partition)
    view.evidence = gather(view)
    return Diagnosis(
        partition,
        find_culprits(view),
        len(view.measured),
        len(view.passed),
        len(view.red),
        view.asked(),
        tuple(checked.ruled_out(view)),
        tuple(checked.not_known(view)),
        tuple(checked.incomplete(view)),
        tuple(checked.next_steps(view)),
        sum(not one.measured for one in view.red),
    )


def _read(sessions: Iterable[Earlier]) -> Iterator[Earlier | str]:
    """Yield earlier sessions, and at the end why the next one cannot be read."""
    try:
        yield from sessions
    except NetproofError as error:
        yield str(error)


def _before(earlier: Earlier, partition: str) -> Diagnosis | str | None:
    judged = earlier.judged
    if isinstance(judged, str):
        return f"session {earlier.name} cannot be judged: {judged}"
    return _of(judged, partition) if partition in partitions_of(judged) else None


def _since(
    culprit: Culprit,
    sessions: Iterable[Earlier | str],
    before: Callable[[Earlier], Diagnosis | str | None],
) -> Since:
    """Date a culprit by earlier sessions, the newest first; ``before`` diagnoses one of them."""
    had: list[Earlier] = []
    nothing = ""
    for one in sessions:
        found = one if isinstance(one, str) else before(one)
        if found is None:
            nothing = "no earlier session measured this partition"
        elif isinstance(found, str):
            return _at_least(had, found)
        elif any(culprit.same(other) for other in found.culprits):
            had.append(one)
        elif (source := culprit.evidence[0].source) not in found.asked:
            return _at_least(had, f"session {one.name} has nothing of its evidence ({source})")
        elif had:
            return replace(
                _at_least(had, f"session {one.name} did not have it"), began=Began.EARLIER
            )
        else:
            return Since(Began.THIS, f"session {one.name} did not have it")
    if had:
        return _at_least(had, "no earlier one was looked at")
    return Since(Began.NOT_KNOWN, nothing) if nothing else NO_EARLIER


def _at_least(had: Sequence[Earlier], why: str) -> Since:
    if not had:
        return Since(Began.NOT_KNOWN, why)
    return Since(Began.AT_LEAST, why, had[-1].name, had[-1].started, len(had) + 1)


def sessions_before(
    judged: JudgedSession, store: Path | None = None, most: int = 10
) -> Iterator[Earlier]:
    """Return up to ``most`` earlier sessions of the system, newest first, opened only on request.

    They come from ``store``, or from the reports beside the session's own. Raises NetproofError.
    """
    return itertools.islice(_of_store(judged, store) if store else _of_folder(judged), most)


def _of_store(judged: JudgedSession, folder: Path) -> Iterator[Earlier]:
    from netproof.store import Store, questions

    store, system = Store(folder), judged.matrix.cases[0].system
    began = _began(judged)
    for stored in reversed(store.sessions(system)):
        if began is None or stored.start < began:
            read = partial(questions.load, store, stored)
            yield Earlier(stored.name, stored.start, _judging(read, system))


def _began(judged: JudgedSession) -> datetime | None:
    """Return when a session began, UTC, to the second as in a store's names; None if unknown."""
    path = judged.session.path
    if path.is_dir():
        from netproof.store import Store

        return Store.holding(path)[1].start
    seconds = judged.session.info.get("time_start_unix")
    if not isinstance(seconds, int | float):
        return None
    return datetime.fromtimestamp(int(seconds), UTC).replace(tzinfo=None)


def _of_folder(judged: JudgedSession) -> Iterator[Earlier]:
    """Yield the reports of the same system that were written earlier."""
    path, system = judged.session.path, judged.matrix.cases[0].system
    if path.is_dir():
        return
    own = path.stat().st_mtime
    for other in session.reports(path.parent):
        written = other.stat().st_mtime
        if other.resolve() == path.resolve() or written > own:
            continue
        when = datetime.fromtimestamp(written, UTC).replace(tzinfo=None)
        try:
            read = session.load(other)
        except NetproofError as error:
            yield Earlier(other.name, when, partial(_refuse, str(error)))
            continue
        if any(result.system == system for result in read.results):
            yield Earlier(other.name, when, _judging(lambda read=read: read, system))


def _judging(read: Callable[[], session.Session], system: str) -> Callable[[], JudgedSession]:
    return lambda: session_verdict.judge_session(read(), system=system, fold=0)


def _refuse(why: str) -> JudgedSession:
    raise NetproofError(why)
