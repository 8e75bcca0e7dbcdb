"""Runs as they are planned, and what became of them."""

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
"""Aim: so many runs of each kind."""
LEAST_RIGHT = 0.9
"""Aim: the share of a kind's runs that recommend what is planted as best."""
LEAST_STEPS = 15 / 16
"""Aim: the share of eager limits that are seen where they are."""


class Found(StrEnum):
    """What a recommendation is worth, compared with what was planted.

    ``WRONG``: another value, or one where there is nothing to recommend; ``MISSED``: none where
    there is one; ``CANNOT``: ``netproof tune`` could not tell, and said why.
    """

    RIGHT = "right"
    WRONG = "wrong"
    MISSED = "missed"
    CANNOT = "cannot tell"
    NOT_JUDGED = records.NOT_JUDGED


@dataclass(frozen=True)
class Run:
    """One run to make: a kind, and the environment that its seed drew."""

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
    """What a sweep is worth and what it said; ``steps``: limits seen where they are, and tried."""

    found: Found
    said: tuple[str, ...] = ()
    steps: tuple[int, int] = (0, 0)


Campaign = records.Campaign[Settings, Run]
Result = records.Result[Run, Judged]


def planned(kinds: Sequence[str], runs: int, seed: int) -> tuple[Run, ...]:
    """So many runs of each kind, in an order that ``seed`` draws; environments take turns."""
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
    """A campaign, and the results of the runs that it made, in their order.

    Raises CannotRunError where the folder has none, or a file of it cannot be understood.
    """
    return keeping.read(folder, Campaign, Result)
