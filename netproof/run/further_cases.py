"""What a further job launches on: the cases, and what it has measured of them so far."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from netproof.benchmarks import registry
from netproof.criteria import Bend, Finding
from netproof.measurement.case import Case
from netproof.measurement.links import Link
from netproof.measurement.transports import Transport
from netproof.session import again, measured, plan
from netproof.session.again import MeasuredAgain
from netproof.session.measured import Crash, Launch, Measured
from netproof.site.partition import ScoreBaseline
from netproof.verdict import judgement, refining
from netproof.verdict.limits import Limits
from netproof.verdict.subject import Subject

ROUNDS_OF_PAIRS = 3
"""Rounds in which launches are made next to others, over the further launches that a site allows.

Not every round counts, and it takes more of them the more often a machine changes its pace.
"""

DENSE = "-dense"
"""What the subjects of launches of IMB or OMB around flagged sizes, or between sizes, end with."""


@dataclass(frozen=True)
class FurtherCase:
    """A case that may be measured further, as its first launches have it.

    ``limits``: of its references; ``extras``: of its partition, for the further job itself;
    ``peers``: the cases of other configurations that it is compared with, where that is what
    is asked; ``baseline``: the configuration that their scores are relative to; ``paired``: the
    environments on its partition that its launches are made next to, one after the other;
    ``elsewhere``: whether it is also compared with what other jobs launch on.
    """

    subject: Subject
    limits: Mapping[str, Limits]
    extras: Mapping[str, Any]
    peers: tuple[Subject, ...] = ()
    baseline: ScoreBaseline | None = None
    paired: tuple[str, ...] = ()
    elsewhere: bool = False

    @property
    def case(self) -> Case:
        """The case."""
        return self.subject.case

    @property
    def step(self) -> str:
        """Subject of the steps that launch its whole curve."""
        return registry.of(self.case).subject(self.case)

    def flags(self) -> tuple[Finding, ...]:
        """What is to be measured again around its size."""
        return judgement.flagged(judgement.smoothness(self.subject))

    def places(self) -> tuple[Bend, ...]:
        """What is to be measured at closer sizes, though nothing is flagged there."""
        return refining.places(self.subject)

    def sweeps(self) -> tuple[plan.SizeSweep, ...]:
        """The calls of NetPIPE that make one launch around the flagged sizes, and between sizes."""
        closer = refining.closer_sizes(self.subject)
        return again.netpipe_sweeps(self.flags(), self.subject.confirm_settings(), closer)

    def dense(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """The steps of one launch around sizes, as ``sweeps``, each with its sizes in bytes."""
        flags, closer = self.flags(), refining.closer_sizes(self.subject)
        if not flags and not closer:
            return ()
        if registry.of(self.case).by_protocol:
            sweeps = self.sweeps()
            return tuple((plan.sweep_subject(self.step, one), one.sizes()) for one in sweeps)
        sizes = {*judgement.dense_sizes(self.subject, flags), *itertools.chain(*closer)}
        parts = registry.mpi(self.case.benchmark).parts(tuple(sorted(sizes)))
        if len(parts) == 1:
            return ((self.step + DENSE, parts[0]),)
        return tuple((f"{self.step}{DENSE}-from-{part[0]}", part) for part in parts)

    def rounds(self) -> int:
        """How many further launches there may be."""
        return self.rounds_alone() * (ROUNDS_OF_PAIRS if self.paired else 1)

    def rounds_alone(self) -> int:
        """How many there may be of what is not launched next to others."""
        confirm = self.subject.settings.confirm
        allowed = confirm.most_launches - len(self.subject.measured.launches)
        return max(allowed, confirm.launches)

    def as_json(self) -> dict[str, Any]:
        """Plain values for ``json``; a bound that is not there is None."""
        ends = {
            name: [_finite(limit.low), _finite(limit.high)] for name, limit in self.limits.items()
        }
        return {
            **_subject(self.subject),
            "limits": ends,
            "extras": dict(self.extras),
            "peers": [_subject(one) for one in self.peers],
            "baseline": None if self.baseline is None else dataclasses.asdict(self.baseline),
            "paired": list(self.paired),
            "elsewhere": self.elsewhere,
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> FurtherCase:
        """Of the plain values that ``as_json`` gave."""
        found = {
            name: Limits(
                -float("inf") if low is None else low, float("inf") if high is None else high
            )
            for name, (low, high) in values["limits"].items()
        }
        extras = values["extras"]
        subject = _subject_of(values, extras)
        peers = tuple(_subject_of(peer, extras) for peer in values["peers"])
        named = values["baseline"]
        baseline = None if named is None else ScoreBaseline(**named)
        paired, elsewhere = tuple(values["paired"]), values["elsewhere"]
        return cls(subject, found, extras, peers, baseline, paired, elsewhere)


@dataclass(frozen=True)
class Done:
    """What a further job has measured of a case so far.

    ``launches``: of the whole curve, ``crashes`` the attempts at them that crashed; ``again``:
    around flagged sizes, None where none was asked for; ``faults``: why launches of the whole
    curve are not complete, a sentence each.
    """

    asked: FurtherCase
    launches: tuple[Launch, ...] = ()
    again: MeasuredAgain | None = None
    faults: tuple[str, ...] = ()
    crashes: tuple[Crash, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The case, its further launches, crashes and faults, as plain values for ``json``."""
        return {
            "case": dataclasses.asdict(self.asked.case),
            "launches": [
                dataclasses.asdict(launch, dict_factory=measured.plain) for launch in self.launches
            ],
            "crashes": [
                dataclasses.asdict(crash, dict_factory=measured.plain) for crash in self.crashes
            ],
            "faults": list(self.faults),
        }

    def subject(self) -> Subject:
        """The case with its further launches."""
        subject = self.asked.subject
        if not self.launches:
            return subject
        whole = subject.measured.with_launches([*subject.measured.launches, *self.launches])
        return dataclasses.replace(subject, measured=whole)


def _subject(subject: Subject) -> dict[str, Any]:
    return {
        "measured": subject.measured.as_json(),
        "known": dict(subject.known),
        "absent": dict(subject.absent),
        "switch": subject.switch,
        "link": None if subject.link is None else dataclasses.asdict(subject.link),
    }


def _subject_of(values: Mapping[str, Any], extras: Mapping[str, Any]) -> Subject:
    """What ``_subject`` gave, with the settings of the partition of the case that is asked for."""
    measured, named = Measured.from_json(values["measured"]), values["link"]
    link = None if named is None else Link(**named | {"transport": Transport(named["transport"])})
    return dataclasses.replace(
        Subject.of_extras(measured, extras, {key: values[key] for key in ("known", "absent")}),
        switch=values["switch"],
        link=link,
    )


def _finite(end: float) -> float | None:
    return end if abs(end) < float("inf") else None
