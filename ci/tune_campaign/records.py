"""Planned runs and their results."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ci.campaigns import keeping, records
from ci.campaigns.machine import PlainSettings as Settings
from ci.tune_campaign.kinds import KINDS

RUNS = 10
"""Aim: runs of each kind."""
LEAST_RIGHT = 0.9
"""Aim: share of a kind's runs that recommend the planted best value."""
LEAST_STEPS = 15 / 16
"""Aim: share of eager limits found at their sizes."""


class Found(StrEnum):
    """Grade of a recommendation.

    ``WRONG``: another value, or one where none is best; ``MISSED``: none where one is best;
    ``CANNOT``: ``netproof measure tune`` was inconclusive, with a reason.
    """

    RIGHT = "right"
    WRONG = "wrong"
    MISSED = "missed"
    CANNOT = "inconclusive"
    NOT_JUDGED = records.NOT_JUDGED


@dataclass(frozen=True)
class Run:
    """One planned run: a kind, and the environment that its seed drew."""

    number: int
    kind: str
    seed: int
    environments: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"{self.kind!r} is no kind of run")

    @property
    def folder(self) -> str:
        """Name of its folder in the campaign's."""
        return f"{self.number:03}-{self.kind}"

    def __str__(self) -> str:
        return f"{KINDS[self.kind].said}, {self.environments[0]}"


@dataclass(frozen=True)
class Judged:
    """Grade of a sweep, and its sentences; ``steps``: limits found at their sizes, and all."""

    found: Found
    said: tuple[str, ...] = ()
    steps: tuple[int, int] = (0, 0)


Campaign = records.Campaign[Settings, Run]
Result = records.Result[Run, Judged]


def planned(kinds: Sequence[str], runs: int, seed: int) -> tuple[Run, ...]:
    """Plan ``runs`` of each kind, in an order that ``seed`` draws; environments take turns."""
    drawn = random.Random(seed)
    several = []
    for name in kinds:
        there = KINDS[name].environments
        first = drawn.randrange(len(there))
        several += [(name, there[(first + turn) % len(there)]) for turn in range(runs)]
    drawn.shuffle(several)
    return tuple(
        Run(number, name, drawn.randrange(1, 2**31), (environment,))
        for number, (name, environment) in enumerate(several, 1)
    )


def read(folder: Path) -> tuple[Campaign, list[Result]]:
    """Return a campaign and the results of its finished runs, in their order.

    Raises CannotRunError if the folder has no campaign, or a file is damaged.
    """
    return keeping.read(folder, Campaign, Result)
