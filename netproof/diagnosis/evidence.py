"""A judged session's view of one partition: evidence with its place, failed cases, and culprits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from netproof.criteria import Finding, Level
from netproof.criteria.counters import MORE
from netproof.criteria.interface import Shows
from netproof.criteria.registry import SHOWING
from netproof.measurement.case import Case
from netproof.measurement.disturbance import NodeLoad
from netproof.measurement.landmark_table import LATENCY_BELOW
from netproof.pairs.accusation import Effect
from netproof.pairs.alone import Recovery
from netproof.pairs.model import Kind
from netproof.session.measured import Measured, RankUse
from netproof.session.node_facts import Node
from netproof.session.pair_rounds import PairRounds
from netproof.site.hostlist import fold
from netproof.site.pair_settings import PairQuantity
from netproof.verdict.limits import size_of
from netproof.verdict.session_verdict import JudgedSession
from netproof.verdict.traffic import ALL_LOSE, LOSES, LOSES_TO, LOST_ONCE
from netproof.verdict.verdict import CaseVerdict


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


LEAST_LAUNCHES = 3
"""Fewest launches that distinguish a node's behaviour from a single event."""


class PartitionView:
    """The verdict on one partition: cases, rounds of pairs, findings, totals, nodes.

    ``measured``: cases with a curve; ``passed``: cases, each with its nodes; ``red``: failed cases;
    ``failed_jobs``: jobs that did not finish or crashed too often, a sentence each; ``losing``:
    share of retransmitted segments per node; ``loses_from``, ``loses_much_from``: shares that warn
    and fail; ``cleared``: nodes cleared by rounds of pairs, in the quantities ``cleared_by``;
    ``evidence``: as it is gathered.
    """

    def __init__(self, judged: JudgedSession, partition: str) -> None:
        verdict, made = judged.verdict, judged.provenance
        self.system, self.name = judged.matrix.cases[0].system, partition
        self.site = judged.matrix.partitions[partition]
        self.settings, self.pair_settings = self.site.settings(), self.site.pair_settings()
        self._not_over_tcp = judged.matrix.not_over_tcp
        self.interface = ", ".join(self.site.rails_or_interface())
        self.cases = [one for one in verdict.cases if one.case.partition == partition]
        self.ran = [one for one in self.cases if one.result is not None]
        self.measured = [one.measured for one in self.ran if one.measured is not None]
        self.pairs = [one for one in verdict.pairs if one.rounds.partition == partition]
        self.findings = [one for one in verdict.nodes if one.partition == partition]
        self.coverage = [one for one in verdict.coverage if one.partition == partition]
        self.skipped = [one for one in verdict.skipped if one.case.partition == partition]
        self.totals = [one for one in verdict.traffic if one.partition == partition]
        self.rails = [one for one in self.totals if one.rail]
        self._standing_out = verdict.standing_out
        self.lossy = [*self._stands_out(LOSES), *self._stands_out(LOSES_TO)]
        self.lost_once = self._stands_out(LOST_ONCE)
        everywhere = (ALL_LOSE, f"pairs on {partition}")
        self.all_lose = [
            one for one in verdict.standing_out if (one.criterion, one.where) == everywhere
        ]
        self.described: list[Node] = [
            one.node for one in (made.nodes if made else ()) if one.partition == partition
        ]
        self.requeued = [
            one for one in (made.requeued if made else ()) if one.partition == partition
        ]
        names = {node for one in self.pairs for node in one.rounds.nodes}
        names |= {node for one in self.coverage for node in one.measured}
        self.nodes = tuple(sorted(names | {node.node for node in self.described}))
        self.failed_jobs = (
            *(str(one) for one in verdict.failed_tests if one.partition == partition),
            *(
                one.finding.why
                for one in verdict.launched
                if one.partition == partition and one.finding.level is Level.FAIL
            ),
        )
        self.passed = {
            one.case: self._ran_on(one)
            for one in self.ran
            if one.measured is not None and one.passed
        }
        self.red = tuple(self._red(one) for one in self.ran if one.failed)
        self.losing = {one.node: one.again.value for one in self.rails if one.again.of}
        bounds = self.settings.retransmission
        self.loses_from = bounds.warn if bounds.warn is not None else MORE
        self.loses_much_from = bounds.fail if bounds.fail is not None else self.loses_from
        self.cleared = sorted({node for one in self.pairs for node in one.cleared()})
        self.cleared_by = self.pair_settings.quantities
        self.evidence: list[Evidence] = []

    def _stands_out(self, criterion: str) -> list[tuple[str, Finding]]:
        return [
            (one.node, one)
            for one in self._standing_out
            if one.criterion == criterion
            and one.node is not None
            and one.where.startswith(f"{self.name} {one.node} ")
        ]

    def of(self, *signs: Sign) -> tuple[Evidence, ...]:
        """Return the evidence of these signs."""
        return tuple(one for one in self.evidence if one.sign in signs)

    def asked(self) -> frozenset[EvidenceSource]:
        """Return the sources that have any evidence."""
        there = {
            EvidenceSource.PAIRS: any(one.rounds.launches for one in self.pairs),
            EvidenceSource.COUNTERS: self.totals,
            EvidenceSource.PATH: self.paths(),
            EvidenceSource.HOST: self.described,
            EvidenceSource.LOAD: any(loads for loads, _ in self.launches()),
            EvidenceSource.CURVES: self.measured,
        }
        return frozenset(source for source, found in there.items() if found)

    def node(self, name: str, *, interface: bool = True) -> Place:
        """Return a node as a place, with or without its interface."""
        return Place(PlaceKind.NODE, name, (name,), self.interface if interface else "")

    def several(self, nodes: Sequence[str]) -> Place:
        """Return nodes as a place: a node, a pair, a group, or all of the partition."""
        if len(nodes) == 1:
            return self.node(nodes[0])
        if len(nodes) > 2 and {*nodes} >= {*self.nodes}:
            return Place(PlaceKind.WHOLE, f"all nodes of {self.name}", tuple(nodes), self.interface)
        kind = PlaceKind.PAIR if len(nodes) == 2 else PlaceKind.GROUP
        return Place(kind, fold(nodes), tuple(nodes), self.interface)

    def showing(self, what: Shows) -> Iterator[Finding]:
        """Yield the findings on all cases that show this, a criterion after the other."""
        for name in SHOWING[what]:
            for one in self.ran:
                yield from (found for found in one.findings if found.criterion == name)

    def paths(self) -> dict[str, list[Finding]]:
        """Return the findings on the path of messages by environment: of cases, then of pairs."""
        found: dict[str, list[Finding]] = defaultdict(list)
        for one in self.ran:
            for finding in one.findings:
                if finding.criterion in SHOWING[Shows.PATH]:
                    found[one.case.environment].append(finding)
        for pairs in self.pairs:
            if pairs.path is not None:
                found[pairs.rounds.environment].append(pairs.path)
        return found

    def between_nodes(self) -> dict[str, bool]:
        """Return the environments measured between nodes, and whether their MPI goes over TCP."""
        names = {one.rounds.environment for one in self.pairs if one.rounds.launches}
        names |= {
            one.case.environment
            for one in self.ran
            if one.measured is not None and one.case.path == "inter-node"
        }
        return {name: name not in self._not_over_tcp for name in names}

    def line_rate_mb_s(self, environment: str) -> float:
        """Return the line rate in MB/s of one link of a node for MPI of an environment."""
        return self.site.link(over_tcp=environment not in self._not_over_tcp).line_rate_mb_s()

    def launches(self) -> Iterator[tuple[Sequence[NodeLoad], Sequence[RankUse]]]:
        """Yield the nodes' loads and the ranks' CPU use per launch, rounds of pairs included."""
        several: list[PairRounds | Measured] = [one.rounds for one in self.pairs]
        for one in [*several, *self.measured]:
            for launch in one.launches:
                yield launch.loads, launch.ranks

    def _red(self, judged: CaseVerdict) -> RedCase:
        fails = [one.reason for one in judged.findings if one.level is Level.FAIL]
        measured = judged.measured is not None
        return RedCase(
            judged.case,
            self._ran_on(judged),
            measured,
            [*judged.faults, *fails][0],
            measured and judged.case.path == "inter-node",
            _quantity(judged),
        )

    def _ran_on(self, judged: CaseVerdict) -> tuple[str, ...]:
        """Return the nodes of a case; if unmeasured those of its job, () if unknown."""
        if judged.measured is not None:
            several = (node for launch in judged.measured.launches for node in launch.nodes())
            return tuple(dict.fromkeys(several))
        # If a job ended early, ReFrame reports the host of ReFrame itself.
        known = {*self.nodes, *(node for one in self.coverage for node in one.usable)}
        of_job = () if judged.result is None else judged.result.nodes
        return tuple(node for node in of_job if node in known)


def _quantity(judged: CaseVerdict) -> PairQuantity:
    """Return latency if a case failed at short messages alone, else rate.

    A message is short if the link carries more within the case's own latency.
    """
    if judged.measured is None or judged.faults:
        return PairQuantity.RATE
    latency_us, rate_mb_s = judged.measured.landmarks.latency_us, judged.measured.line_rate_mb_s
    short: float = LATENCY_BELOW
    if latency_us is not None and rate_mb_s is not None:
        short = max(short, latency_us * rate_mb_s)
    sizes: list[int | None] = []
    for finding in judged.findings:
        if finding.level is Level.FAIL:
            variable = finding.variable
            sizes += [size_of(variable)] if variable else finding.sizes() or [None]
    of_latency = all(size is not None and size < short for size in sizes)
    return PairQuantity.LATENCY if of_latency else PairQuantity.RATE


def count_of(count: int, one: str, several: str | None = None) -> str:
    """Return a count in words, such as ``2 cases``."""
    return f"1 {one}" if count == 1 else f"{count} {several or f'{one}s'}"
