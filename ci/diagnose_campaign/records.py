"""Planned runs, each with its seed's choices, and their results."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ci.campaigns import keeping, records
from ci.campaigns.altered_site import SITE
from ci.campaigns.errors import CannotRunError
from ci.campaigns.keeping import ROOT
from ci.diagnose_campaign.kinds import HEALTHY, KINDS, SAID, Kind, Measured
from ci.testbed import topology_reading
from ci.testbed.faults import Value
from netproof.site import site
from netproof.site.site_file import JUDGE_ENVIRONMENT

RUNS, HEALTHY_RUNS = 10, 30
"""Aim: runs of each kind of fault, and healthy runs."""
LEAST_RIGHT = 0.9
"""Aim: the share of a kind's runs that are right; no healthy run accuses anything."""


class Found(StrEnum):
    """Grade of a diagnosis.

    ``RIGHT``: kind and place, or nothing on a healthy testbed; ``HALF``: the kind at a wrong or
    wider place, or among its alternatives; ``MISSED``: nothing is named; ``FALSE``: something else
    is accused, even together with the right one.
    """

    RIGHT = "right"
    HALF = "half right"
    MISSED = "missed"
    FALSE = "false"
    NOT_JUDGED = records.NOT_JUDGED


@dataclass(frozen=True)
class Settings:
    """Settings of all runs of a campaign.

    ``flap_within_s``: seconds after its node's first launch within which a temporary fault begins;
    ``pairs``: a run measures rounds of pairs alone; the others as in ``campaigns.Settings``.
    """

    seed: int
    flap_within_s: float
    quiet_share: float
    quiet_s: float
    quiet_limit_s: float
    run_limit_s: float
    pairs: bool = False


@dataclass(frozen=True)
class Run:
    """One planned run, with its seed's choices.

    ``kind``: one of KINDS or HEALTHY; ``place`` and ``fault``: empty on a healthy testbed.
    """

    number: int
    kind: str
    seed: int
    topology: str
    switch: str
    environments: tuple[str, ...]
    place: str
    fault: Mapping[str, Value]

    def __post_init__(self) -> None:
        if self.kind not in SAID:
            raise ValueError(f"{self.kind!r} is no kind of run")

    @property
    def folder(self) -> str:
        """Name of its folder in the campaign's."""
        return f"{self.number:03}-{self.kind}"

    def __str__(self) -> str:
        fault = " ".join(f"{key}={value}" for key, value in self.fault.items())
        return " ".join(filter(None, (SAID[self.kind], self.place or self.switch, fault)))


@dataclass(frozen=True)
class Judged:
    """Grade of a diagnosis, its headlines or the reason without one, and its own outcome."""

    found: Found
    said: tuple[str, ...] = ()
    outcome: str = ""


Campaign = records.Campaign[Settings, Run]
Result = records.Result[Run, Judged]


def environments(site_file: Path = SITE) -> dict[Measured, tuple[str, ...]]:
    """Return the site's MPI environments for runs: all, and those with IMB."""
    configuration = site.load(site_file)
    (system,) = configuration["systems"]
    several = {name for partition in system["partitions"] for name in partition["environs"]}
    features = {one["name"]: one["features"] for one in configuration["environments"]}
    names = tuple(sorted(several - {JUDGE_ENVIRONMENT}))
    with_imb = tuple(name for name in names if "imb" in features[name])
    return {Measured.ANY: names, Measured.ONE_IMB: with_imb, Measured.ALL_IMB: with_imb}


def places(kind: Kind) -> list[str]:
    """Return the places where a kind of fault can be planted."""
    there = topology_reading.load(topology_file(kind.topology)).places
    return sorted(
        name
        for name, (of, switch) in there.items()
        if (of, switch.name) == (kind.place, kind.switch)
    )


def topology_file(name: str) -> Path:
    """Return the path of a testbed's topology."""
    return ROOT / "ci" / "testbed" / name


def planned(
    kinds: Sequence[str], runs: int, healthy: int, seed: int, *, pairs: bool = False
) -> tuple[Run, ...]:
    """Plan ``runs`` of each kind and ``healthy`` ones; ``seed`` draws their order and places.

    A healthy run is like one of ``kinds``, without its fault. ``pairs``: a run measures rounds of
    pairs alone, with one environment that has IMB.
    """
    drawn, there = random.Random(seed), environments()
    if pairs:
        there = dict.fromkeys(there, there[Measured.ONE_IMB])
    names = [name for name in kinds for _ in range(runs)] + [HEALTHY] * healthy
    drawn.shuffle(names)
    seeds = [drawn.randrange(1, 2**31) for _ in names]
    return tuple(
        _run_of(position, name, one, kinds, there, pairs=pairs)
        for position, (name, one) in enumerate(zip(names, seeds, strict=True), 1)
    )


def _run_of(
    position: int,
    name: str,
    seed: int,
    kinds: Sequence[str],
    there: Mapping[Measured, tuple[str, ...]],
    *,
    pairs: bool,
) -> Run:
    drawn = random.Random(seed)
    kind = KINDS[name if name != HEALTHY else drawn.choice(list(kinds))]
    several = there[kind.measured]
    if not several:
        raise CannotRunError(f"{SITE}: no MPI environment has IMB, which measures all nodes")
    if pairs or kind.measured is not Measured.ALL_IMB:
        several = (drawn.choice(several),)
    place = drawn.choice(places(kind)) if name != HEALTHY else ""
    fault = dict(drawn.choice(kind.faults)) if name != HEALTHY else {}
    return Run(position, name, seed, kind.topology, kind.switch, several, place, fault)


def read(folder: Path) -> tuple[Campaign, list[Result]]:
    """Return a campaign and the results of its finished runs, in their order.

    Raises CannotRunError if the folder has no campaign, or a file is damaged.
    """
    return keeping.read(folder, Campaign, Result)
