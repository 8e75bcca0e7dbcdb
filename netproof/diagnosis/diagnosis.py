"""Diagnose each partition of a judged session: culprits, confidence, and when they began."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
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
    found = [_of(judged, name) for name in names]
    dates = iter(_dates([(one.partition, each) for one in found for each in one.culprits], earlier))
    return tuple(
        replace(one, culprits=tuple(replace(each, since=next(dates)) for each in one.culprits))
        for one in found
    )


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


def _dates(culprits: Sequence[tuple[str, Culprit]], earlier: Iterable[Earlier]) -> list[Since]:
    """Date culprits, each with its partition, by as few earlier sessions as possible."""
    dates: dict[int, Since] = {}
    had: list[list[Earlier]] = [[] for _ in culprits]
    stopped, looked = "", False
    for one, judged in _judged(earlier) if culprits else ():
        looked = True
        if one is None or isinstance(judged, str):
            stopped = str(judged)
            break
        measured = set(partitions_of(judged)) & {name for name, _ in culprits}
        before = {name: _of(judged, name) for name in measured}
        for place, (name, culprit) in enumerate(culprits):
            if place in dates or name not in before:
                continue
            source = culprit.evidence[0].source
            if any(culprit.same(other) for other in before[name].culprits):
                had[place].append(one)
            elif source not in before[name].asked:
                why = f"session {one.name} has nothing of its evidence ({source})"
                dates[place] = _at_least(had[place], why)
            elif had[place]:
                since = _at_least(had[place], f"session {one.name} did not have it")
                dates[place] = replace(since, began=Began.EARLIER)
            else:
                dates[place] = Since(Began.THIS, f"session {one.name} did not have it")
        if len(dates) == len(culprits):
            break
    for place, several in enumerate(had):
        none = "no earlier one was looked at"
        none = none if several else "no earlier session measured this partition"
        dates.setdefault(place, _at_least(several, stopped or none) if looked else NO_EARLIER)
    return [dates[place] for place in range(len(culprits))]


def _judged(
    earlier: Iterable[Earlier],
) -> Iterator[tuple[Earlier | None, JudgedSession | str]]:
    """Yield earlier sessions, or at the end why the next one cannot be read or judged."""
    try:
        for one in earlier:
            try:
                judged = one.judge()
            except NetproofError as error:
                yield one, f"session {one.name} cannot be judged: {error}"
                return
            yield one, judged
    except NetproofError as error:
        yield None, str(error)


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
            yield Earlier(stored.name, stored.start, partial(_judge, read, system))


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
        except NetproofError:
            again = partial(session.load, other)
            yield Earlier(other.name, when, partial(_judge, again, system))
            continue
        if any(result.system == system for result in read.results):
            judge = partial(session_verdict.judge_session, read, system=system, fold=0)
            yield Earlier(other.name, when, judge)


def _judge(read: Callable[[], session.Session], system: str) -> JudgedSession:
    return session_verdict.judge_session(read(), system=system, fold=0)
