"""Diagnose each partition of a judged session: culprits, confidence, and when they began."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cached_property

from netproof.diagnosis.collecting import collect
from netproof.diagnosis.culprits import NO_EARLIER, Began, Culprit, Since, find_culprits
from netproof.diagnosis.evidence import EvidenceSource
from netproof.errors import NetproofError
from netproof.verdict.judging import JudgedSession

NOTHING_WRONG, SOMETHING_WRONG, INCONCLUSIVE = 0, 1, 2
"""Exit statuses of a diagnosis."""


class DiagnosisOutcome(StrEnum):
    """Outcome of a diagnosis."""

    NOTHING = "nothing wrong"
    FOUND = "something found"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class Diagnosis:
    """A partition's culprits, worst first, what was ruled out, and what is not known.

    ``cases``, ``passed``, ``red``: counts of cases measured, passed and failed; ``asked``: sources
    that have evidence; ``incomplete``: why the partition cannot be declared healthy;
    ``next_steps``: what would settle it.
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

    @property
    def outcome(self) -> DiagnosisOutcome:
        """Outcome by the culprits found and the evidence missing."""
        if self.culprits:
            return DiagnosisOutcome.FOUND
        return DiagnosisOutcome.INCONCLUSIVE if self.incomplete else DiagnosisOutcome.NOTHING


@dataclass(frozen=True)
class Earlier:
    """An earlier session, judged only on request.

    ``name`` and ``started`` identify it; ``judge`` raises NetproofError if it cannot be judged.
    """

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
    dating = [_Dating(_of(judged, name)) for name in names]
    sessions = iter(earlier)
    while any(one.open for one in dating):
        try:
            session = next(sessions, None)
        except NetproofError as error:
            for one in dating:
                one.end(str(error))
            break
        if session is None:
            break
        for one in dating:
            one.look(session)
    return tuple(one.dated() for one in dating)


def status(diagnoses: Sequence[Diagnosis]) -> int:
    """Return the exit status of several: 1 if any found a fault, else 2 if any is inconclusive."""
    outcomes = {one.outcome for one in diagnoses}
    if DiagnosisOutcome.FOUND in outcomes:
        return SOMETHING_WRONG
    return (
        INCONCLUSIVE if DiagnosisOutcome.INCONCLUSIVE in outcomes or not outcomes else NOTHING_WRONG
    )


def _of(judged: JudgedSession, partition: str) -> Diagnosis:
    seen = collect(judged, partition)
    culprits = find_culprits(seen)
    return Diagnosis(
        partition,
        culprits,
        len(seen.measured),
        len(seen.passed),
        len(seen.red),
        seen.asked,
        seen.ruled_out,
        seen.not_known,
        seen.incomplete,
        seen.next_steps,
    )


class _Dating:
    """Dating of a partition's culprits, session by session."""

    def __init__(self, diagnosis: Diagnosis) -> None:
        self.diagnosis = diagnosis
        self.had: list[list[Earlier]] = [[] for _ in diagnosis.culprits]
        self.since: dict[int, Since] = {}
        self.looked = False

    @property
    def open(self) -> list[int]:
        """Indexes of the culprits that are not yet dated."""
        return [n for n in range(len(self.diagnosis.culprits)) if n not in self.since]

    def look(self, session: Earlier) -> None:
        """Look for the undated culprits in the next earlier session."""
        if not self.open:
            return
        self.looked = True
        judged = session.judged
        if isinstance(judged, str):
            self.end(f"session {session.name} cannot be judged: {judged}")
            return
        if self.diagnosis.partition not in partitions_of(judged):
            # It says nothing of the partition.
            return
        before = _of(judged, self.diagnosis.partition)
        for place in self.open:
            culprit = self.diagnosis.culprits[place]
            if any(culprit.same(other) for other in before.culprits):
                self.had[place].append(session)
            else:
                self.since[place] = _lacking(culprit, self.had[place], before, session.name)

    def end(self, why: str) -> None:
        """Date the rest as far as known, since no earlier session can be read."""
        for place in self.open:
            self.since[place] = _since(self.had[place], why)

    def dated(self) -> Diagnosis:
        """Return the diagnosis with its culprits dated."""
        for place in self.open:
            if self.had[place]:
                self.since[place] = _since(self.had[place], "no earlier one was looked at")
            elif self.looked:
                why = "no earlier session measured this partition"
                self.since[place] = Since(Began.NOT_KNOWN, why)
            else:
                self.since[place] = NO_EARLIER
        culprits = (
            dataclasses.replace(culprit, since=self.since[place])
            for place, culprit in enumerate(self.diagnosis.culprits)
        )
        return dataclasses.replace(self.diagnosis, culprits=tuple(culprits))


def _lacking(culprit: Culprit, had: Sequence[Earlier], before: Diagnosis, name: str) -> Since:
    """Date a culprit that a session lacks, perhaps for want of its evidence."""
    needed = {culprit.evidence[0].source}
    if not needed <= before.asked:
        words = ", ".join(sorted(needed - before.asked))
        return _since(had, f"session {name} has nothing of its evidence ({words})")
    why = f"session {name} did not have it"
    if not had:
        return Since(Began.THIS, why)
    return Since(Began.EARLIER, why, had[-1].name, had[-1].started, len(had) + 1)


def _since(had: Sequence[Earlier], why: str) -> Since:
    """Date a culprit at the latest, where earlier sessions do not show it."""
    if not had:
        return Since(Began.NOT_KNOWN, why)
    return Since(Began.AT_LEAST, why, had[-1].name, had[-1].started, len(had) + 1)
