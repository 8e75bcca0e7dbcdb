"""Cases of a repeat job, and what it has measured of them so far."""

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
from netproof.verdict import case_rulings
from netproof.verdict.limits import Limits
from netproof.verdict.subject import Subject

ROUNDS_OF_PAIRS = 3
"""Ratio of interleaved rounds to the repeat launches that a site allows.

Not every round counts, and more are needed the more often a machine changes its pace.
"""

DENSE = "-dense"
"""Suffix of the subjects of IMB or OMB launches around flagged sizes, or between sizes."""


@dataclass(frozen=True)
class FurtherCase:
    """A case that may be repeated, by its first launches.

    ``limits``: of its references; ``extras``: of its partition, for the repeat job itself;
    ``peers``: cases of other configurations that it is compared with; ``baseline``: the
    configuration that their scores are relative to; ``paired``: environments on its partition that
    its launches are interleaved with; ``elsewhere``: whether it is also compared with cases that
    other jobs repeat.
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
        """The case to measure."""
        return self.subject.case

    @property
    def step(self) -> str:
        """Subject of the steps that launch its whole curve."""
        return registry.of(self.case).subject(self.case)

    def flags(self) -> tuple[Finding, ...]:
        """Return the findings to repeat around their sizes."""
        return case_rulings.flagged(case_rulings.smoothness(self.subject))

    def places(self) -> tuple[Bend, ...]:
        """Return the unflagged places to measure at closer sizes."""
        return case_rulings.places(self.subject)

    def sweeps(self) -> tuple[plan.SizeSweep, ...]:
        """Return the NetPIPE calls of one launch around flagged sizes and between sizes."""
        closer = case_rulings.closer_sizes(self.subject)
        return again.netpipe_sweeps(self.flags(), self.subject.confirm_settings(), closer)

    def dense(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Return the steps of one such launch, each with its sizes in bytes."""
        flags, closer = self.flags(), case_rulings.closer_sizes(self.subject)
        if not flags and not closer:
            return ()
        if registry.of(self.case).by_protocol:
            sweeps = self.sweeps()
            return tuple((plan.sweep_subject(self.step, one), one.sizes()) for one in sweeps)
        sizes = {*case_rulings.dense_sizes(self.subject, flags), *itertools.chain(*closer)}
        parts = registry.mpi(self.case.benchmark).parts(tuple(sorted(sizes)))
        if len(parts) == 1:
            return ((self.step + DENSE, parts[0]),)
        return tuple((f"{self.step}{DENSE}-from-{part[0]}", part) for part in parts)

    def rounds(self) -> int:
        """Return how many repeat launches are allowed."""
        return self.rounds_alone() * (ROUNDS_OF_PAIRS if self.paired else 1)

    def rounds_alone(self) -> int:
        """Return how many repeat launches are allowed without interleaving."""
        confirm = self.subject.settings.confirm
        allowed = confirm.most_launches - len(self.subject.measured.launches)
        return max(allowed, confirm.launches)

    def as_json(self) -> dict[str, Any]:
        """Return plain values for ``json``; a missing bound is None."""
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
        """Read the plain values of ``as_json``."""
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
    """Results of a case in a repeat job so far.

    ``launches``: of the whole curve; ``crashes``: attempts at them that crashed; ``again``: around
    flagged sizes, None if none was requested; ``faults``: why launches of the whole curve are not
    complete, a sentence each.
    """

    asked: FurtherCase
    launches: tuple[Launch, ...] = ()
    again: MeasuredAgain | None = None
    faults: tuple[str, ...] = ()
    crashes: tuple[Crash, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the case, its repeat launches, crashes and faults as plain values for ``json``."""
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
        """Return the case with its repeat launches."""
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
    """Read the values of ``_subject``, with the settings of the case's partition."""
    measured, named = Measured.from_json(values["measured"]), values["link"]
    link = None if named is None else Link(**named | {"transport": Transport(named["transport"])})
    return dataclasses.replace(
        Subject.of_extras(measured, extras, {key: values[key] for key in ("known", "absent")}),
        switch=values["switch"],
        link=link,
    )


def _finite(end: float) -> float | None:
    return end if abs(end) < float("inf") else None
