"""Planned runs under conditions of the machine, and their results."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from pathlib import Path

from ci.campaigns import keeping, records
from netproof.criteria import Level

LEAST_HEALTHY, LEAST_QUIET, LEAST_SICK = 30, 10, 20
"""Aim: healthy runs without a red one, quiet runs among them, and sick runs."""
MOST_INCONCLUSIVE = 0.1
"""Aim: largest share of quiet runs that may be inconclusive."""


class Condition(StrEnum):
    """Condition of the machine or the switch during a run."""

    QUIET = "quiet"
    ONE_CPU = "one-cpu"
    BURSTS = "bursts"
    COMPILER = "compiler"
    SICK = "sick"


SAID = {
    Condition.QUIET: "quiet",
    Condition.ONE_CPU: "one CPU taken throughout",
    Condition.BURSTS: "all CPUs taken in bursts",
    Condition.COMPILER: "a compiler alongside",
    Condition.SICK: "sick switch, quiet",
}
COUNTS = {
    Condition.QUIET: 10,
    Condition.ONE_CPU: 7,
    Condition.BURSTS: 7,
    Condition.COMPILER: 6,
    Condition.SICK: 20,
}


class Outcome(StrEnum):
    """Result of a run; NOT_JUDGED without netproof's verdict on the whole session."""

    GREEN = "green"
    INCONCLUSIVE = "inconclusive"
    RED = "red"
    NOT_JUDGED = records.NOT_JUDGED


@dataclass(frozen=True)
class Settings:
    """Settings of all runs of a campaign.

    ``whole``: all launches and both switches, as ``ci/quickstart`` without ``--smoke``;
    ``burst_s`` and ``pause_s``: means; the others as in ``campaigns.Settings``.
    """

    seed: int
    whole: bool
    burst_s: float
    pause_s: float
    quiet_share: float
    quiet_s: float
    quiet_limit_s: float
    run_limit_s: float


@dataclass(frozen=True)
class Run:
    """One planned run: its number from 1, and the seed of its load program."""

    number: int
    condition: Condition
    seed: int

    @property
    def sick(self) -> bool:
        """Whether the run has to be red."""
        return self.condition is Condition.SICK

    @property
    def folder(self) -> str:
        """Name of its folder in the campaign's."""
        return f"{self.number:03}-{self.condition}"


@dataclass(frozen=True)
class FlaggedCase:
    """A case that failed or is inconclusive: its name, its criteria, and their sentences."""

    name: str
    level: Level
    criteria: tuple[str, ...]
    sentences: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name}: {'; '.join(self.sentences) or self.level}"


@dataclass(frozen=True)
class Judged:
    """Result of a run, with a ``reason`` if it was not judged.

    ``faults`` and ``undecided``: failures and inconclusive findings outside cases.
    """

    outcome: Outcome
    reason: str = ""
    cases: tuple[FlaggedCase, ...] = ()
    faults: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()

    @property
    def by_criterion(self) -> tuple[str, ...]:
        """Criteria by which cases failed."""
        failed = (case.criteria for case in self.cases if case.level is Level.FAIL)
        return tuple(sorted(set(chain.from_iterable(failed))))


@dataclass(frozen=True)
class Machine:
    """The machine around a run.

    ``before`` and ``after``: load averages over 1, 5 and 15 minutes; ``waited_s``: wait for a quiet
    machine; ``others``: share of all CPUs used then; ``pressure_s``: seconds of the run in which a
    task waited for a CPU, None if the kernel has none; ``load_cpu_s``: CPU seconds of the load
    program; ``cpu``: the single CPU that it took.
    """

    before: tuple[float, ...]
    after: tuple[float, ...]
    waited_s: float
    others: float
    pressure_s: float | None
    load_cpu_s: float
    cpu: int | None


@dataclass(frozen=True)
class Launches:
    """Number of a run's launches, failed ones, their seconds, and the seeds of its jobs.

    Each job draws the order of its launches from its own seed, which it records.
    """

    made: int
    failed: int
    seconds: float
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class Result:
    """A run with its result; ``machine`` and ``launches`` are None if it ended before."""

    run: Run
    judged: Judged
    started: str
    wall_s: float
    machine: Machine | None
    launches: Launches | None

    @property
    def wrong(self) -> bool:
        """Whether it misses the aims: red or not judged; for a sick one, anything but red."""
        if self.run.sick:
            # A job that did not start does not show a sick switch.
            return self.judged.outcome is not Outcome.RED or not self.judged.by_criterion
        return self.judged.outcome in (Outcome.RED, Outcome.NOT_JUDGED)


Campaign = records.Campaign[Settings, Run]


def planned(counts: Mapping[Condition, int], seed: int) -> tuple[Run, ...]:
    """Plan the runs of each condition; ``seed`` draws their order and seeds."""
    drawn = random.Random(seed)
    conditions = [condition for condition in Condition for _ in range(counts.get(condition, 0))]
    drawn.shuffle(conditions)
    return tuple(
        Run(number, condition, drawn.randrange(1, 2**31))
        for number, condition in enumerate(conditions, 1)
    )


def read(folder: Path) -> tuple[Campaign, list[Result]]:
    """Return a campaign and the results of its finished runs, in their order.

    Raises CannotRunError if the folder has no campaign, or a file is damaged.
    """
    return keeping.read(folder, Campaign, Result)
