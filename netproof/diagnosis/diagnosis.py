"""What is wrong with each partition of a judged session: culprits, how sure, since when."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cached_property

from netproof.diagnosis.collecting import collect
from netproof.diagnosis.culprits import NO_EARLIER, Began, Culprit, Since, found
from netproof.diagnosis.evidence import (
    EvidenceSource,
)
from netproof.errors import NetproofError
from netproof.verdict.judging import JudgedSession

NOTHING_WRONG, SOMETHING_WRONG, CANNOT_TELL = 0, 1, 2
"""Exit statuses of what diagnoses."""


class DiagnosisOutcome(StrEnum):
    """What a diagnosis came to."""

    NOTHING = "nothing wrong"
    FOUND = "something found"
    UNKNOWN = "cannot be told"


@dataclass(frozen=True)
class Diagnosis:
    """A partition's culprits, the worst first, what was ruled out, and what is not known.

    ``cases``: that were measured, of which ``passed`` and ``red``; ``asked``: sources of which the
    session has anything; ``incomplete``: why it cannot be told that nothing is wrong, and
    ``to_tell``: what would tell it.
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
    to_tell: tuple[str, ...] = ()

    @property
    def outcome(self) -> DiagnosisOutcome:
        """What it came to."""
        if self.culprits:
            return DiagnosisOutcome.FOUND
        return DiagnosisOutcome.UNKNOWN if self.incomplete else DiagnosisOutcome.NOTHING


@dataclass(frozen=True)
class Earlier:
    """An earlier session, which is judged only where somebody asks for it.

    ``name`` and ``started``: which it is; ``judge``: raises NetproofError where it cannot be.
    """

    name: str
    started: datetime
    judge: Callable[[], JudgedSession]

    @cached_property
    def judged(self) -> JudgedSession | str:
        """The judged session, or why there is none."""
        try:
            return self.judge()
        except NetproofError as error:
            return str(error)


def partitions_of(judged: JudgedSession) -> tuple[str, ...]:
    """The partitions of which the session has results, in the site's order."""
    there = {result.partition for result in judged.session.results}
    return tuple(name for name in judged.matrix.partitions if name in there)


def diagnose(
    judged: JudgedSession, partition: str | None = None, earlier: Iterable[Earlier] = ()
) -> tuple[Diagnosis, ...]:
    """What is wrong with a partition, or with each that the session has results of.

    ``earlier``: sessions before it, the newest first; only so many are judged as it takes. Raises
    NetproofError for a partition that the site does not have, and where there is none.
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
    """The exit status of several: 1 where something was found, else 2 where one cannot be told."""
    outcomes = {one.outcome for one in diagnoses}
    if DiagnosisOutcome.FOUND in outcomes:
        return SOMETHING_WRONG
    return CANNOT_TELL if DiagnosisOutcome.UNKNOWN in outcomes or not outcomes else NOTHING_WRONG


def _of(judged: JudgedSession, partition: str) -> Diagnosis:
    seen = collect(judged, partition)
    culprits = found(seen)
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
        seen.to_tell,
    )


class _Dating:
    """Since when the culprits of a partition are there, told session by session."""

    def __init__(self, diagnosis: Diagnosis) -> None:
        self.diagnosis = diagnosis
        self.had: list[list[Earlier]] = [[] for _ in diagnosis.culprits]
        self.since: dict[int, Since] = {}
        self.looked = False

    @property
    def open(self) -> list[int]:
        """The places of the culprits of which it is not told yet."""
        return [n for n in range(len(self.diagnosis.culprits)) if n not in self.since]

    def look(self, session: Earlier) -> None:
        """Look into the session before those that were looked into."""
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
        """Nothing earlier can be looked into."""
        for place in self.open:
            self.since[place] = _since(self.had[place], why)

    def dated(self) -> Diagnosis:
        """The diagnosis with what was found."""
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
    """Since when, where a session does not have it: it may not have looked."""
    needed = {culprit.evidence[0].source}
    if not needed <= before.asked:
        words = ", ".join(sorted(needed - before.asked))
        return _since(had, f"session {name} has nothing of its evidence ({words})")
    why = f"session {name} did not have it"
    if not had:
        return Since(Began.THIS, why)
    return Since(Began.EARLIER, why, had[-1].name, had[-1].started, len(had) + 1)


def _since(had: Sequence[Earlier], why: str) -> Since:
    """Since when at least, where those before cannot tell."""
    if not had:
        return Since(Began.NOT_KNOWN, why)
    return Since(Began.AT_LEAST, why, had[-1].name, had[-1].started, len(had) + 1)
