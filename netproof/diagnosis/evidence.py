"""Typed evidence with its place, and all the evidence of a session on one partition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from netproof.localization.accused import Effect
from netproof.localization.observations import PairQuantity
from netproof.localization.recovery import Recovery
from netproof.localization.searching import Kind
from netproof.measurement.case import Case

OVER_TCP = "tcp"
"""NetPIPE's function without an MPI library."""


class EvidenceSource(StrEnum):
    """Source of evidence."""

    PAIRS = "pairs"
    COUNTERS = "counters"
    PATH = "path"
    HOST = "host"
    LOAD = "load"
    CURVES = "curves"


class Sign(StrEnum):
    """Kind of observation."""

    NO_CARRIER = "no carrier"
    CARRIER_CHANGED = "carrier changed"
    OTHER_PATH = "other path"
    MTU = "MTU"
    NO_TCP = "no TCP"
    LINK = "link"
    SETTING = "setting"
    LOSS = "loss"
    DAMAGED = "damaged packets"
    CPU = "CPU"
    SLOW = "slow"
    ONE_WAY = "one way"
    CRASHES = "crashes"
    DIED = "died"


class Sure(StrEnum):
    """Confidence: seen directly, by statistics with an error, or likely."""

    SEEN = "seen directly"
    STATISTICAL = "statistical"
    LIKELY = "likely"


class PlaceKind(StrEnum):
    """Kind of place at fault."""

    NODE = "node"
    PAIR = "pair"
    UPLINK = "uplink"
    LEAF = "leaf"
    GROUP = "group"
    SETTING = "setting"
    ENVIRONMENT = "MPI environment"
    WHOLE = "the switch as a whole"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Place:
    """A place: the ``nodes`` concerned, and the ``interface`` if known.

    ``name``: the node, the pair, the switch, the setting on a node, or the ``environments``.
    """

    kind: PlaceKind
    name: str
    nodes: tuple[str, ...] = ()
    interface: str = ""
    environments: tuple[str, ...] = ()

    def __str__(self) -> str:
        on = f" ({self.interface})" if self.interface else ""
        return f"{self.name}{on}"


@dataclass(frozen=True)
class Evidence:
    """One observation: kind, place, sentence and confidence.

    ``why``: reason for the confidence; ``effects``, ``recovery``, ``alternatives``: from rounds of
    pairs; ``asserted``: whether it suffices to accuse its place, rather than only to explain;
    ``setting``: the one that differs, or the fault in words.
    """

    source: EvidenceSource
    sign: Sign
    place: Place
    sentence: str
    sure: Sure
    why: str
    environment: str = ""
    effects: tuple[Effect, ...] = ()
    recovery: Recovery | None = None
    alternatives: tuple[str, ...] = ()
    kind: Kind | None = None
    asserted: bool = True
    setting: str = ""


@dataclass(frozen=True)
class RedCase:
    """A failed case: the ``nodes`` it ran on, whether it was measured, and its first reason.

    ``of_network``: whether it was measured between nodes; ``quantity``: latency if it failed at
    short messages alone, else rate.
    """

    case: Case
    nodes: tuple[str, ...]
    measured: bool
    why: str
    of_network: bool
    quantity: PairQuantity = PairQuantity.RATE


@dataclass(frozen=True)
class Collected:
    """All evidence of a session on a partition.

    ``nodes``: measured nodes; ``asked``: sources that have evidence; ``measured``, ``passed``:
    cases with a curve, and those that passed; ``red``: failed cases; ``failed_jobs``: jobs that
    did not finish or crashed too often, a sentence each; ``losing``: share of retransmitted
    segments per node; ``loses_from``, ``loses_much_from``: shares that warn and fail; ``cleared``:
    nodes cleared by rounds of pairs, in the quantities ``cleared_by``; ``ruled_out``,
    ``not_known``: a sentence each; ``incomplete``: why the partition cannot be declared healthy;
    ``next_steps``: steps that would settle it.
    """

    partition: str
    nodes: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    asked: frozenset[EvidenceSource]
    measured: tuple[Case, ...]
    passed: tuple[Case, ...]
    red: tuple[RedCase, ...]
    failed_jobs: tuple[str, ...]
    losing: Mapping[str, float]
    loses_from: float
    loses_much_from: float
    cleared: tuple[str, ...]
    cleared_by: tuple[PairQuantity, ...]
    ruled_out: tuple[str, ...]
    not_known: tuple[str, ...]
    incomplete: tuple[str, ...]
    next_steps: tuple[str, ...]

    def of(self, *signs: Sign) -> tuple[Evidence, ...]:
        """Return the evidence of these signs."""
        return tuple(one for one in self.evidence if one.sign in signs)
