"""Typed evidence with its place, and all that a session has of one partition."""

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
"""The function of NetPIPE that no MPI library has a part in."""


class EvidenceSource(StrEnum):
    """Where evidence is from."""

    PAIRS = "pairs"
    COUNTERS = "counters"
    PATH = "path"
    HOST = "host"
    LOAD = "load"
    CURVES = "curves"


class Sign(StrEnum):
    """What was seen."""

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
    """How sure something is: seen directly, by statistics with an error, or likely."""

    SEEN = "seen directly"
    STATISTICAL = "statistical"
    LIKELY = "likely"


class PlaceKind(StrEnum):
    """What kind of place is at fault."""

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
    """Where something is: ``nodes`` that it concerns, and the ``interface`` where one is known.

    ``name`` is the node, the pair, the switch, the setting on a node, or the ``environments``.
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
    """One thing that was seen: what, where, in a sentence, and how sure it is.

    ``why``: what that rests on; ``effects``, ``recovery``, ``alternatives``: of rounds of pairs;
    ``asserted``: whether it is enough to accuse its place, and not only for an explanation;
    ``setting``: which differs, or in words what is wrong there.
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
    """A case that failed: ``nodes`` that it ran on, whether it was measured, and its first reason.

    ``of_network``: whether it was measured between nodes; ``quantity``: latency if all that failed
    of it is of short messages, else rate.
    """

    case: Case
    nodes: tuple[str, ...]
    measured: bool
    why: str
    of_network: bool
    quantity: PairQuantity = PairQuantity.RATE


@dataclass(frozen=True)
class Collected:
    """All that a session has of a partition.

    ``nodes``: those that were measured; ``asked``: sources of which there is anything;
    ``measured``: cases that have a curve and ``passed`` of them, ``red`` those that failed;
    ``failed_jobs``: that did not come to their end, or crashed too often, a sentence each;
    ``losing``: of each node the share of segments sent again, ``loses_from`` and
    ``loses_much_from`` the bounds above which that warns and fails; ``cleared``: nodes that rounds
    of pairs clear, in the quantities ``cleared_by``; ``ruled_out`` and ``not_known``, in sentences;
    ``incomplete``: why it cannot be told that nothing is wrong, and ``to_tell``: what would, in
    sentences.
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
    to_tell: tuple[str, ...]

    def of(self, *signs: Sign) -> tuple[Evidence, ...]:
        """The evidence of these signs."""
        return tuple(one for one in self.evidence if one.sign in signs)
