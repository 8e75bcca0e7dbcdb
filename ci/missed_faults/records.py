"""Runs as they are planned, each with what its seed drew, and what became of them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ci.campaigns import keeping, records
from ci.campaigns.machine import PlainSettings as Settings
from ci.missed_faults.kinds import (
    DERIVING,
    HEALTHY,
    HEALTHY_DERIVED,
    KINDS,
    SAID,
    WITH_NETPIPE,
    kind_of,
)

RUNS = 10
"""Aim: so many runs of each fault, and of the healthy testbed."""
DERIVING_RUNS = 8
"""Healthy runs that make the references of a campaign."""
LEAST_NAMED = 0.9
"""Aim: the share of a fault's runs that name it; no healthy run fails."""


class Found(StrEnum):
    """What a verdict is worth, compared with what was planted.

    ``NAMED``: a case that has it fails by a sentence that names a size that has it, or nothing
    fails on the healthy testbed; ``OTHERWISE``: something else fails in the environment that has
    it; ``INCONCLUSIVE``: it would be named, were it certain, or a run is not certain enough to make
    references; ``MISSED``: neither; ``FALSE``: something fails on the healthy testbed.
    """

    NAMED = "named"
    OTHERWISE = "red otherwise"
    INCONCLUSIVE = "inconclusive"
    MISSED = "missed"
    FALSE = "false"
    NOT_JUDGED = records.NOT_JUDGED


@dataclass(frozen=True)
class Run:
    """One run to make: a fault or a kind of healthy run, and environments: the first has it."""

    number: int
    kind: str
    seed: int
    environments: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.kind not in SAID:
            raise ValueError(f"{self.kind!r} is no kind of run")

    @property
    def folder(self) -> str:
        """Name of its folder in the campaign's."""
        return f"{self.number:03}-{self.kind}"

    def __str__(self) -> str:
        return f"{SAID[self.kind]}, {' alongside '.join(self.environments)}"


@dataclass(frozen=True)
class Judged:
    """What a verdict is worth, the sentences that say so, and the criteria that named the fault."""

    found: Found
    said: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()


Campaign = records.Campaign[Settings, Run]
Result = records.Result[Run, Judged]


def planned(
    kinds: Sequence[str], runs: int, healthy: int, deriving: int, seed: int
) -> tuple[Run, ...]:
    """So many runs of each fault and healthy ones, in an order that ``seed`` draws.

    Where a fault is judged by derived references, so many ``deriving`` runs come first, and as many
    healthy runs are judged by them as ``healthy`` says; where all are, there are no others.
    """
    drawn = random.Random(seed)
    by_derived = {KINDS[name].derived for name in kinds}
    names = [name for name in kinds for _ in range(runs)]
    if False in by_derived or not kinds:
        names += [HEALTHY] * healthy
    if True in by_derived:
        names += [HEALTHY_DERIVED] * healthy
    drawn.shuffle(names)
    if True in by_derived and names:
        names = [DERIVING] * deriving + names
    return tuple(
        _run_of(position, name, drawn.randrange(1, 2**31)) for position, name in enumerate(names, 1)
    )


def _run_of(position: int, name: str, seed: int) -> Run:
    drawn = random.Random(seed)
    kind = kind_of(name)
    first = drawn.choice(WITH_NETPIPE if kind is None else kind.environments)
    if kind is not None and kind.derived:
        return Run(position, name, seed, (first,))
    # Alongside one that has IMB, collectives of both can be compared.
    other = drawn.choice([one for one in ("mpich", "intelmpi") if one != first])
    return Run(position, name, seed, (first, other))


def read(folder: Path) -> tuple[Campaign, list[Result]]:
    """A campaign, and the results of the runs that it made, in their order.

    Raises CannotRunError where the folder has none, or a file of it cannot be understood.
    """
    return keeping.read(folder, Campaign, Result)
