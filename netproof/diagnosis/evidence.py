"""Evidence on a partition of a judged session: from nodes, counters, paths, programs and pairs."""

from __future__ import annotations

import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial

from netproof.criteria import Finding, Level
from netproof.criteria.counters import MORE
from netproof.criteria.interface import Shows
from netproof.criteria.registry import SHOWING
from netproof.errors import counted
from netproof.measurement.disturbance import disturbed
from netproof.measurement.interval import Side
from netproof.measurement.landmarks import LATENCY_BELOW
from netproof.pairs.accusation import Effect
from netproof.pairs.alone import Recovery
from netproof.pairs.model import Kind
from netproof.session.job_files import first_to_die
from netproof.session.measured import Launch, Measured
from netproof.session.node_facts import NOT_BUSY, Node
from netproof.session.pair_rounds import PairRounds
from netproof.site.partition import PairQuantity
from netproof.site.slurm import fold, unfold, usable
from netproof.verdict.limits import size_of
from netproof.verdict.nodes import UP, NodeFinding, NodeFindingKind
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
    explains; ``narrowed``: whether the evidence singles out the place; ``cause``: its name in
    ``causes.toml``; ``headline``, ``advice``, ``rules_out``: a sentence each; ``advice_here``: what
    to do where the reasons stand beside it.
    """

    place: Place
    evidence: tuple[Evidence, ...]
    sure: Sure
    why: str
    detail: str = ""
    alternatives: tuple[str, ...] = ()
    distinguish_by: str = ""
    red: tuple[CaseVerdict, ...] = ()
    narrowed: bool = True
    cause: str = "unexplained"
    headline: str = ""
    advice: str = ""
    advice_here: str = ""
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

    ``measured``: cases with a curve; ``red``: failed cases; ``nodes_of``: nodes of each case;
    ``failed_jobs``: jobs that did not finish or crashed too often, a sentence each; ``losing``:
    share of retransmitted segments per node; ``loses_from``, ``loses_much_from``: shares that warn
    and fail; ``cleared``: nodes cleared by rounds of pairs.
    """

    def __init__(self, judged: JudgedSession, partition: str) -> None:
        verdict, made = judged.verdict, judged.session.provenance
        self.system, self.name = judged.matrix.cases[0].system, partition
        self.site, self.session = judged.matrix.partitions[partition], judged.session.path
        self.settings, self.pair_settings = self.site.settings(), self.site.pair_settings()
        self._not_over_tcp = judged.matrix.not_over_tcp
        self.interface = ", ".join(self.site.rails_or_interface())
        self.cases = verdict.by_partition.get(partition, [])
        self.ran = [one for one in self.cases if one.result is not None]
        self.measured = [one.measured for one in self.ran if one.measured is not None]
        self.pairs = [one for one in verdict.pairs if one.rounds.partition == partition]
        self.crashes = [crash for one in self.pairs for crash in one.rounds.crashes]
        self.crashes += [crash for one in self.measured for crash in one.crashes]
        self.findings = [one for one in verdict.nodes if one.partition == partition]
        self.coverage = [one for one in verdict.coverage if one.partition == partition]
        self.skipped = [one for case, one in verdict.skipped if case.partition == partition]
        self.totals = [one for one in verdict.traffic if one.partition == partition]
        self.rails = [one for one in self.totals if one.rail]
        self._standing_out = verdict.standing_out
        self.lossy = [*self._stands_out(LOSES), *self._stands_out(LOSES_TO)]
        self.lost_once = self._stands_out(LOST_ONCE)
        everywhere = (ALL_LOSE, f"pairs on {partition}")
        self.all_lose = [
            one for one in verdict.standing_out if (one.criterion, one.where) == everywhere
        ]
        self.described = made.by_partition.get(partition, [])
        self.requeued = {
            why: nodes
            for one in judged.session.results
            if one.partition == partition
            for why, nodes in one.requeued.items()
        }
        names = {node for one in self.pairs for node in one.rounds.nodes}
        names |= {node for one in self.coverage for node in one.measured}
        self.nodes = tuple(sorted(names | {node.node for node in self.described}))
        here = f"{self.system}:{partition} "
        launched = [one for one in verdict.launched if one.partition == partition]
        self.failed_jobs = (
            *(one.why for one in verdict.failed_tests if one.where.startswith(here)),
            *(one.finding.why for one in launched if one.finding.level is Level.FAIL),
        )
        self.nodes_of = {one.case: self._ran_on(one) for one in self.ran}
        self.passed = [one.case for one in self.ran if one.complete and one.passed]
        self.red = tuple(one for one in self.ran if one.failed)
        self.losing = {one.node: one.again.value for one in self.rails if one.again.of}
        bounds = self.settings.retransmission
        self.loses_from = bounds.warn if bounds.warn is not None else MORE
        self.loses_much_from = bounds.fail if bounds.fail is not None else self.loses_from
        self.cleared = sorted({node for one in self.pairs for node in one.cleared()})
        self.cleared_by = self.pair_settings.quantities
        sources = (
            *(_of_nodes, _of_requeues, _of_counters, _of_losses, _of_paths, _of_loads),
            *(_of_pairs, _of_crashes, _of_streams),
        )
        self.evidence = [one for source in sources for one in source(self)]

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
            EvidenceSource.LOAD: any(launch.loads for launch in self.launches()),
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

    def launches(self) -> Iterator[Launch]:
        """Yield the launches of cases, and those of rounds of pairs."""
        several: list[PairRounds | Measured] = [one.rounds for one in self.pairs]
        for one in [*several, *self.measured]:
            yield from one.launches

    def _ran_on(self, judged: CaseVerdict) -> tuple[str, ...]:
        """Return the nodes of a case; if unmeasured those of its job, () if unknown."""
        if judged.measured is not None:
            return judged.measured.nodes()
        # If a job ended early, ReFrame reports the host of ReFrame itself.
        known = {*self.nodes, *(node for one in self.coverage for node in one.usable)}
        of_job = () if judged.result is None else judged.result.nodes
        return tuple(node for node in of_job if node in known)


def of_network(judged: CaseVerdict) -> bool:
    """Check whether a case was measured between nodes."""
    return judged.complete and judged.case.path == "inter-node"


def first_reason(judged: CaseVerdict) -> str:
    """Return the first reason of a failed case."""
    fails = (one.reason for one in judged.findings if one.level is Level.FAIL)
    return next(iter((*judged.faults, *fails)))


def red_quantity(judged: CaseVerdict) -> PairQuantity:
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


WAITED_TIMES = 3.0
"""Ratio to the waiting time on other nodes above which ranks count as waiting for CPUs."""

_BY_HOST = partial(Evidence, EvidenceSource.HOST)
_BY_COUNTERS = partial(Evidence, EvidenceSource.COUNTERS)
_BY_PAIRS = partial(Evidence, EvidenceSource.PAIRS)


def _of_nodes(view: PartitionView) -> Iterator[Evidence]:
    between = _between_leaves(view)
    for one in view.findings:
        sign = _sign_of(one)
        if sign is None:
            continue
        place = view.several(one.nodes)
        if one.kind in (NodeFindingKind.PATH, NodeFindingKind.TCP) and len(one.nodes) == 2:
            pair = Place(PlaceKind.PAIR, " to ".join(one.nodes), one.nodes, view.interface)
            place = between or pair
        if sign is Sign.SETTING:
            place = Place(PlaceKind.SETTING, f"{one.fact} on {place.name}", one.nodes)
        yield _BY_HOST(
            sign,
            place,
            one.why,
            Sure.SEEN,
            "the nodes say so themselves",
            one.environment,
            asserted=one.level is Level.FAIL,
            setting=one.value or "" if sign is Sign.NO_TCP else one.fact,
        )


def _between_leaves(view: PartitionView) -> Place | None:
    """Return what is between two leaves, if all pairs without a path are across, and share no node.

    Every node tests its path to the next one, so of nodes within a leaf most were tested too.
    """
    leaf = {
        node: name
        for one in view.pairs
        for name, nodes in one.rounds.leaves.items()
        for node in nodes
    }
    kinds = (NodeFindingKind.PATH, NodeFindingKind.TCP)
    several = [one.nodes for one in view.findings if one.kind in kinds]
    ends = {tuple(sorted({leaf.get(node, "") for node in nodes})) for nodes in several}
    if len(ends) != 1 or set.intersection(*map(set, several)):
        return None
    (leaves,) = ends
    if len(leaves) != 2 or "" in leaves:
        return None
    nodes = tuple(dict.fromkeys(node for pair in several for node in pair))
    name = f"what is between {' and '.join(leaves)}"
    return Place(PlaceKind.UPLINK, name, nodes, view.interface)


def _sign_of(finding: NodeFinding) -> Sign | None:
    if finding.fact == "state":
        changed = finding.kind is NodeFindingKind.CHANGED
        return Sign.CARRIER_CHANGED if changed and finding.value == UP else Sign.NO_CARRIER
    if finding.kind is NodeFindingKind.NOT_KNOWN:
        return None
    if finding.fact in ("mtu", "path"):
        return Sign.MTU
    if finding.fact == "tcp":
        return Sign.NO_TCP
    return Sign.LINK if finding.fact in ("link_mbit_s", "duplex") else Sign.SETTING


_UNAVAILABLE = re.compile(r"UnavailableNodes:([\w.,\[\]-]+[\w\]])")
"""Slurm's reason for a job whose nodes do not come back."""


def _of_requeues(view: PartitionView) -> Iterator[Evidence]:
    died = [
        (name, why)
        for why, nodes in view.requeued.items()
        for name, state in nodes.items()
        if not usable(state)
    ]
    # What could not be used when the run began is no news.
    there = {node for one in view.coverage for node in one.usable}
    for why in view.failed_jobs:
        if listed := _UNAVAILABLE.search(why):
            died += [(name, why) for name in sorted(there.intersection(unfold(listed[1])))]
    for name, why in died:
        place = view.node(name, interface=False)
        yield _BY_HOST(Sign.DIED, place, why, Sure.SEEN, "Slurm says so")


def _of_crashes(view: PartitionView) -> Iterator[Evidence]:
    """Yield a node if it alone has ranks that die first."""
    located = [crash for crash in view.crashes if crash.died_on]
    on = {node for crash in located for node in crash.died_on}
    if len(on) == 1 and len(located) >= LEAST_LAUNCHES and len(view.nodes) > 1:
        (node,) = on
        place = view.node(node, interface=False)
        sentence = f"{counted(len(located), 'launch', 'launches')} died, and each on {node}"
        why = "no launch died on another node"
        yield Evidence(EvidenceSource.CURVES, Sign.CRASHES, place, sentence, Sure.LIKELY, why)


def _of_counters(view: PartitionView) -> Iterator[Evidence]:
    for one in view.rails:
        _, _, changes = one.faults
        if changes:
            times = "once" if changes == 1 else f"{changes} times"
            yield _BY_COUNTERS(
                Sign.CARRIER_CHANGED,
                Place(PlaceKind.NODE, one.node, (one.node,), one.interface),
                f"the carrier of {one.node} {one.interface} came or went {times} while its"
                " jobs ran",
                Sure.SEEN,
                "the kernel counted it",
            )
    damaged: dict[tuple[str, str], Finding] = {}
    for finding in view.showing(Shows.DAMAGE):
        if finding.own_level is Level.FAIL and finding.node is not None:
            damaged.setdefault((finding.criterion, finding.node), finding)
    for (_, node), finding in damaged.items():
        place = Place(PlaceKind.NODE, node, (node,), finding.interface or "")
        why = "the interface counted it"
        yield _BY_COUNTERS(Sign.DAMAGED, place, finding.reason, Sure.SEEN, why)


def _of_losses(view: PartitionView) -> Iterator[Evidence]:
    """Yield nodes whose ports lose more than others, together where either may be at fault."""
    for finding in view.all_lose:
        why = "the kernel of every node counted it"
        yield _BY_COUNTERS(Sign.LOSS, view.several(view.nodes), finding.reason, Sure.SEEN, why)
    losing: dict[tuple[str, ...], tuple[str, Finding]] = {}
    for node, finding in view.lossy:
        names = tuple(sorted({node, *(finding.against or "").split()}))
        losing.setdefault(names, (node, finding))
    for names, (node, finding) in losing.items():
        ports = tuple(f"the port of {name}" for name in names) if names[1:] else ()
        why = "TCP counts at the sender what was lost on the way, and this port explains it best"
        if finding.criterion == LOSES_TO:
            ports, why = (), "TCP counts at the sender what was lost on the way, and only there"
        sentence = f"{node}: {finding.reason.partition(': look at')[0]}"
        yield _BY_COUNTERS(
            Sign.LOSS, view.several(names), sentence, Sure.LIKELY, why, alternatives=ports
        )


def _of_paths(view: PartitionView) -> Iterator[Evidence]:
    """Yield environments whose messages took another network, grouped by interface."""
    went: dict[str, dict[str, list[Finding]]] = defaultdict(lambda: defaultdict(list))
    for environment, findings in view.paths().items():
        for finding in findings:
            if finding.level is Level.FAIL:
                went[finding.interface or ""][environment].append(finding)
    of_pairs = [one.path for one in view.pairs if one.path is not None]
    for interface, environments in went.items():
        names = sorted(environments)
        several = [finding for name in names for finding in environments[name]]
        over = interface or "no interface that is known"
        cases = sum(finding not in of_pairs for finding in several)
        parts = [counted(cases, "case")] if cases else []
        parts += ["rounds of pairs"] if cases < len(several) else []
        worst = min(several, key=lambda one: one.value if one.value is not None else 1.0)
        yield Evidence(
            EvidenceSource.PATH,
            Sign.OTHER_PATH,
            Place(PlaceKind.ENVIRONMENT, ", ".join(names), (), interface, tuple(names)),
            f"in {' and '.join(parts)} of {', '.join(names)} messages went over"
            f" {over} and not over {view.interface}: {worst.reason}",
            Sure.SEEN,
            "the interfaces counted the bytes",
            names[0] if len(names) == 1 else "",
            setting=over,
        )


def _of_loads(view: PartitionView) -> Iterator[Evidence]:
    """Yield nodes whose CPUs other programs used, unlike those of most nodes."""
    busy: dict[str, list[bool]] = defaultdict(list)
    on: dict[str, set[str]] = defaultdict(set)
    for load in (load for launch in view.launches() for load in launch.loads):
        busy[load.node].append(bool(disturbed([load], view.settings.disturbance)))
        if load.machine is not None:
            on[load.machine].add(load.node)
    most = {n for n, noisy in busy.items() if 2 * sum(noisy) > len(noisy) >= LEAST_LAUNCHES}
    taken = set() if 2 * len(most) >= len(busy) else most
    programs = _programs(view.described)
    named = {node for node in most & programs.keys() if node not in taken}
    if 2 * len(named) >= len(busy):
        named = set()
    # Nodes on one machine wait for the same CPUs, whichever of them uses them.
    together = {node for nodes in on.values() if len(nodes) > 1 for node in nodes}
    seen: list[tuple[str, str, str]] = []
    for node in sorted(named):
        several, of = programs[node]
        sentence = (
            f"in {len(several)} of {of} jobs a program of its own took CPUs of {node} before"
            f" the launches: {several[-1]}"
        )
        why = "the kernel counted it, and something took CPUs during most launches"
        seen.append((node, sentence, why))
    for node in sorted(taken):
        sentence = (
            f"in {sum(busy[node])} of {len(busy[node])} launches other programs took CPUs of"
            f" {node}, and not of most other nodes"
        )
        seen.append((node, sentence, "the kernel counted it"))
    for node, (share, usual) in sorted(_waits(view).items()):
        if node not in taken | named | together:
            sentence = (
                f"ranks on {node} could run and had no CPU for {100 * share:.0f} % of the time,"
                f" and for {100 * usual:.0f} % on the other nodes of the same launches"
            )
            seen.append((node, sentence, "the scheduler counted it"))
    for node, sentence, why in seen:
        place = view.node(node, interface=False)
        yield Evidence(EvidenceSource.LOAD, Sign.CPU, place, sentence, Sure.SEEN, why)


def _programs(described: Iterable[Node]) -> dict[str, tuple[list[str], int]]:
    """Return the busy programs of nodes that named one in most jobs, and their number of jobs."""
    jobs = Counter(node.node for node in described)
    found: dict[str, list[str]] = defaultdict(list)
    for node in described:
        if node.busy is not None and node.busy != NOT_BUSY:
            found[node.node].append(node.busy)
    most = [name for name, words in found.items() if 2 * len(words) > jobs[name]]
    return {name: (found[name], jobs[name]) for name in most}


def _waits(view: PartitionView) -> dict[str, tuple[float, float]]:
    """Return nodes whose ranks wait for CPUs in most launches: the median share, and others'."""
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for launch in view.launches():
        waited: dict[str, float] = defaultdict(float)
        wall: dict[str, float] = defaultdict(float)
        columns = (launch.used.get(name, ()) for name in ("wall_s", "waited_s"))
        for node, wall_s, waited_s in zip(launch.ranks, *columns, strict=False):
            if not isinstance(wall_s, str) and not isinstance(waited_s, str) and wall_s > 0:
                waited[node] += waited_s
                wall[node] += wall_s
        shares = {node: waited[node] / wall[node] for node in wall}
        for node, share in shares.items():
            others = [other for name, other in shares.items() if name != node]
            if others:
                found[node].append((share, statistics.median(others)))
    waiting = {}
    for node, several in found.items():
        long = [
            share > WAITED_TIMES * usual and share - usual > view.settings.disturbance.others
            for share, usual in several
        ]
        if len(long) >= LEAST_LAUNCHES and 2 * sum(long) > len(long):
            waiting[node] = tuple(map(statistics.median, zip(*several, strict=True)))
    return waiting


def _of_pairs(view: PartitionView) -> Iterator[Evidence]:
    """Yield the accusations by rounds of pairs, and lone pairs below the bisection asked for."""
    error = view.pair_settings.error
    why = f"at most {1000 * error:.3g} in 1,000 healthy runs accuse anyone"
    for one in view.pairs:
        for accusation in one.judgement.accusations:
            # Undecided if its pairs disagree alone.
            alone = {it.recovery for it in one.alone if {*it.pair} & {*accusation.nodes}}
            of_nodes = accusation.kind in (Kind.NODE, Kind.PAIR)
            leaf = accusation.kind is Kind.SWITCH
            kind = PlaceKind.LEAF if leaf else PlaceKind(accusation.kind.value)
            interface = view.interface if of_nodes else ""
            yield _BY_PAIRS(
                Sign.SLOW,
                Place(kind, accusation.name, accusation.nodes, interface),
                f"{accusation.name}: {'; '.join(map(str, accusation.effects))}"
                f" (rounds of pairs, {one.rounds.environment})",
                Sure.STATISTICAL,
                why,
                one.rounds.environment,
                accusation.effects,
                Recovery.UNDECIDED if len(alone) > 1 else next(iter(alone), None),
                accusation.alternatives,
                accusation.kind,
            )
        for nodes, sentence in one.asked(Side.BEYOND).items() if one.lone else ():
            yield _BY_PAIRS(
                Sign.SLOW,
                view.several(nodes),
                f"{sentence} (rounds of pairs, {one.rounds.environment})",
                Sure.STATISTICAL,
                "all of the interval is below the share that the site asks for ('bisection')",
                one.rounds.environment,
                asserted=False,
            )


_CRASHED = re.compile(r"(\S+\.err): [^:]* ended with status(.*?)(?=; \S+\.err: |$)")
"""A launch that ended badly, in the reason of a failed job or case, and its last words."""


def crashes_on_one_node(view: PartitionView) -> str:
    """Return how many crashes name one node, by records and reasons; '' if none or several do."""
    reasons = [*view.failed_jobs, *(fault for one in view.red for fault in one.faults)]
    crashes = {one[1]: one[2] for why in reasons for one in _CRASHED.finditer(why)}
    died_on = [one.died_on for one in view.crashes]
    died_on += [first_to_die(words.split(" | ")) for words in crashes.values()]
    nodes = {node for several in died_on for node in several}
    if len(nodes) != 1 or len(view.nodes) < 2:
        return ""
    count = sum(map(bool, died_on))
    but = "too few to accuse it" if count < LEAST_LAUNCHES else "which may be the program's fault"
    shown = f"{count} of {len(died_on)}, {but}, so measure on other nodes"
    return f"crashes of tasks on {nodes.pop()}: {shown}"


def _of_streams(view: PartitionView) -> Iterator[Evidence]:
    """Yield the slow direction of nodes accused without alternatives, by the streams."""
    for pairs in view.pairs:
        sure = {one.name for one in pairs.judgement.accusations if not one.alternatives}
        environment = pairs.rounds.environment
        for node, ways in pairs.slow_ways(view.pair_settings, view.settings.disturbance).items():
            if node in sure:
                (way, effect), (other, rest) = ways.items()
                yield _BY_PAIRS(
                    Sign.ONE_WAY,
                    view.node(node),
                    f"only what {node} {way} is slow: {effect}; what it"
                    f" {other}: {rest} (streams, {environment})",
                    Sure.STATISTICAL,
                    "streams go one way, and those of cleared nodes were measured with them",
                    environment,
                    (effect,),
                    setting=way.value,
                )
