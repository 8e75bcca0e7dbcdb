"""Planned runs, each with its seed's choices, and their results."""

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
"""Aim: runs of each fault, and of the healthy testbed."""
DERIVING_RUNS = 8
"""Healthy runs that make the references of a campaign."""
LEAST_NAMED = 0.9
"""Aim: share of a fault's runs that name it; no healthy run fails."""


class Found(StrEnum):
    """Grade of a verdict.

    ``NAMED``: an affected case fails by a sentence that names an affected size, or nothing fails on
    the healthy testbed; ``OTHERWISE``: something else fails in the faulty environment;
    ``INCONCLUSIVE``: it is named but uncertain, or a run is too uncertain to make references;
    ``MISSED``: none of these; ``FALSE``: something fails on the healthy testbed.
    """

    NAMED = "named"
    OTHERWISE = "red otherwise"
    INCONCLUSIVE = "inconclusive"
    MISSED = "missed"
    FALSE = "false"
    NOT_JUDGED = records.NOT_JUDGED


@dataclass(frozen=True)
class Run:
    """One planned run: a fault or kind of healthy run, and environments; the first is faulty."""

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
    """Grade of a verdict, its sentences, and the criteria that named the fault."""

    found: Found
    said: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()


Campaign = records.Campaign[Settings, Run]
Result = records.Result[Run, Judged]


def planned(
    kinds: Sequence[str], runs: int, healthy: int, deriving: int, seed: int
) -> tuple[Run, ...]:
    """Plan ``runs`` of each fault and ``healthy`` ones, in an order that ``seed`` draws.

    If derived references judge a fault, ``deriving`` runs come first, and ``healthy`` runs are
    judged by them. Other healthy runs are only planned for the other faults.
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
    # A partner with IMB lets collectives be compared.
    other = drawn.choice([one for one in ("mpich", "intelmpi") if one != first])
    return Run(position, name, seed, (first, other))


def read(folder: Path) -> tuple[Campaign, list[Result]]:
    """Return a campaign and the results of its finished runs, in their order.

    Raises CannotRunError if the folder has no campaign, or a file is damaged.
    """
    return keeping.read(folder, Campaign, Result)
