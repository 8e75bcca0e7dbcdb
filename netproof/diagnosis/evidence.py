"""Typed evidence with its place, failed cases, and the culprits that explain them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from netproof.measurement.case import Case
from netproof.pairs.accusation import Effect
from netproof.pairs.alone import Recovery
from netproof.pairs.model import Kind
from netproof.site.pair_settings import PairQuantity


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

    ``of_network``: measured between nodes; ``quantity``: latency if short messages alone failed.
    """

    case: Case
    nodes: tuple[str, ...]
    measured: bool
    why: str
    of_network: bool
    quantity: PairQuantity = PairQuantity.RATE


class CauseName(StrEnum):
    """Names of the causes, as documents have them."""

    NODE_DIED = "node died"
    LINK_DOWN = "link down"
    LINK_FLAPPED = "link flapped"
    OTHER_NETWORK = "messages took another network"
    MTU = "MTU differs"
    NO_TCP = "no TCP"
    LINK_SETTING = "link rate or duplex differs"
    SETTING = "setting differs"
    CPU_TAKEN = "CPUs taken by something else"
    LOSS = "packets lost"
    CRASHES = "launches die on one node"
    ONE_DIRECTION = "one direction slow"
    SLOW_PORT = "port slower than the others"
    OVERSUBSCRIBED = "oversubscribed"
    SLOW_UPLINK = "uplink or leaf slow"
    PAIR_ONLY = "one pair slow"
    ENVIRONMENT = "one MPI environment only"
    WHOLE = "the switch as a whole"
    ONE_OR_TWO = "one or two nodes or what is between them"
    UNEXPLAINED = "unexplained"


class Began(StrEnum):
    """When a fault began, as far as earlier sessions show.

    ``THIS``: the session before did not have it; ``EARLIER``: all from ``session`` on have it;
    ``AT_LEAST``: all sessions examined have it; ``NOT_KNOWN``: with the reason.
    """

    THIS = "this session"
    EARLIER = "earlier"
    AT_LEAST = "at least"
    NOT_KNOWN = "not known"


@dataclass(frozen=True)
class Since:
    """First ``session`` with the fault, and ``sessions`` in a row that have it, with this one."""

    began: Began
    why: str = ""
    session: str = ""
    started: datetime | None = None
    sessions: int = 1

    def __str__(self) -> str:
        first = f"session {self.session} of {self.started:%Y-%m-%d %H:%M}" if self.started else ""
        row = f"since {first}, {self.sessions} sessions in a row; {self.why}"
        return {
            Began.THIS: f"in this session for the first time; {self.why}",
            Began.EARLIER: row,
            Began.AT_LEAST: f"at least {row}",
            Began.NOT_KNOWN: f"not known: {self.why}",
        }[self.began]


NO_EARLIER = Since(Began.NOT_KNOWN, "there is no earlier session to look at")


@dataclass(frozen=True)
class Culprit:
    """A fault at one place, as the rule of a cause found it.

    ``sure``, ``why``: the confidence and its reason; ``evidence``: that of the cause first;
    ``detail``: text for the headline; ``alternatives``: other explanations, in words, and
    ``distinguish_by`` the measurement that distinguishes them; ``red``: failed cases that it
    explains; ``headline``, ``advice``, ``rules_out``: a sentence each.
    """

    place: Place
    evidence: tuple[Evidence, ...]
    sure: Sure
    why: str
    detail: str = ""
    alternatives: tuple[str, ...] = ()
    distinguish_by: str = ""
    red: tuple[RedCase, ...] = ()
    cause: CauseName = CauseName.UNEXPLAINED
    headline: str = ""
    advice: str = ""
    rules_out: str = ""
    since: Since = NO_EARLIER

    @property
    def consequences(self) -> int:
        """Number of failed cases that it explains."""
        return len(self.red)

    def same(self, other: Culprit) -> bool:
        """Check whether both are the same cause at the same place."""
        mine, its = self.place, other.place
        return (self.cause, mine.kind, mine.name) == (other.cause, its.kind, its.name)

    def covers(self, other: Culprit) -> bool:
        """Check whether both may have one reason: the same place, or a node and a pair with it."""
        mine, its = self.place, other.place
        if not mine.nodes or not its.nodes:
            return False
        if {*mine.nodes} == {*its.nodes}:
            return True
        either = its.kind in (PlaceKind.PAIR, PlaceKind.SETTING) and len(its.nodes) == 2
        return either and len(mine.nodes) == 1 and mine.nodes[0] in its.nodes
