"""Runs under conditions of the machine, as they are planned, and what became of them."""

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
"""Aim: so many healthy runs of which none is red, so many of them quiet, so many sick."""
MOST_INCONCLUSIVE = 0.1
"""Aim: the share of quiet runs that may be inconclusive."""


class Condition(StrEnum):
    """What the machine or the switch is like during a run."""

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
    """How a run ended. Only what netproof itself says of a whole session is more than unjudged."""

    GREEN = "green"
    INCONCLUSIVE = "inconclusive"
    RED = "red"
    NOT_JUDGED = records.NOT_JUDGED


@dataclass(frozen=True)
class Settings:
    """What all runs of a campaign have in common, chosen when it begins.

    ``whole``: all launches and both switches, as ``ci/quickstart``, and not as its ``--smoke``;
    ``burst_s`` and ``pause_s``: means; ``quiet_share``: the most that others may use of all CPUs
    over ``quiet_s`` seconds before a run begins, for which it waits ``quiet_limit_s``;
    ``run_limit_s``: after which a run is ended and counts as not judged.
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
    """One run to make: its number from 1 in the order, and the seed of what is alongside it."""

    number: int
    condition: Condition
    seed: int

    @property
    def sick(self) -> bool:
        """Whether it has to be red."""
        return self.condition is Condition.SICK

    @property
    def folder(self) -> str:
        """Name of its folder in the campaign's."""
        return f"{self.number:03}-{self.condition}"


@dataclass(frozen=True)
class FlaggedCase:
    """A case that failed or is inconclusive: its name, the criteria that say so, and why."""

    name: str
    level: Level
    criteria: tuple[str, ...]
    sentences: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name}: {'; '.join(self.sentences) or self.level}"


@dataclass(frozen=True)
class Judged:
    """What became of a run: ``reason`` where it was not judged.

    ``faults`` and ``undecided``: what failed, and what is inconclusive, beyond a case.
    """

    outcome: Outcome
    reason: str = ""
    cases: tuple[FlaggedCase, ...] = ()
    faults: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()

    @property
    def by_criterion(self) -> tuple[str, ...]:
        """The criteria by which cases failed."""
        failed = (case.criteria for case in self.cases if case.level is Level.FAIL)
        return tuple(sorted(set(chain.from_iterable(failed))))


@dataclass(frozen=True)
class Machine:
    """The machine around a run.

    ``before`` and ``after``: load averages over 1, 5 and 15 minutes; ``waited_s`` for it to be
    quiet, ``others`` share of all CPUs then; ``pressure_s``: seconds of the run in which some task
    waited for a CPU, None where the kernel does not tell; ``load_cpu_s``: CPU seconds of the
    program alongside it; ``cpu``: the one that it took, where it took one.
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
    """Launches that a run made, how many ended with an error, their seconds; seeds of its jobs.

    Each job draws the order of its launches from a seed of its own, and writes it down.
    """

    made: int
    failed: int
    seconds: float
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class Result:
    """A run with what became of it; ``machine`` and ``launches`` None where it came not so far."""

    run: Run
    judged: Judged
    started: str
    wall_s: float
    machine: Machine | None
    launches: Launches | None

    @property
    def wrong(self) -> bool:
        """Whether it counts against the aims: red or not judged; a sick one, anything but red."""
        if self.run.sick:
            # A switch is not found sick by a job that did not start.
            return self.judged.outcome is not Outcome.RED or not self.judged.by_criterion
        return self.judged.outcome in (Outcome.RED, Outcome.NOT_JUDGED)


Campaign = records.Campaign[Settings, Run]


def planned(counts: Mapping[Condition, int], seed: int) -> tuple[Run, ...]:
    """So many runs of each condition, in an order and with seeds that ``seed`` draws."""
    drawn = random.Random(seed)
    conditions = [condition for condition in Condition for _ in range(counts.get(condition, 0))]
    drawn.shuffle(conditions)
    return tuple(
        Run(number, condition, drawn.randrange(1, 2**31))
        for number, condition in enumerate(conditions, 1)
    )


def read(folder: Path) -> tuple[Campaign, list[Result]]:
    """A campaign, and the results of the runs that it made, in their order.

    Raises CannotRunError where the folder has none, or a file of it cannot be understood.
    """
    return keeping.read(folder, Campaign, Result)
