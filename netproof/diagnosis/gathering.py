"""Evidence on a partition: from nodes, counters, paths, other programs, launches and pairs."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import partial

from netproof.criteria import Finding, Level
from netproof.criteria.interface import Shows
from netproof.diagnosis.evidence import (
    LEAST_LAUNCHES,
    Evidence,
    EvidenceSource,
    PartitionView,
    Place,
    PlaceKind,
    Sign,
    Sure,
    count_of,
)
from netproof.measurement.disturbance import disturbed
from netproof.measurement.interval import Side
from netproof.pairs.alone import Recovery
from netproof.pairs.model import Kind
from netproof.session.node_facts import NOT_BUSY, Node
from netproof.verdict.nodes import UP, NodeFinding, NodeFindingKind
from netproof.verdict.traffic import LOSES_TO

LINK_FACTS = ("link_mbit_s", "duplex")
"""Facts of a node about the speed of its link."""

WAITED_TIMES = 3.0
"""Ratio to the waiting time on other nodes above which ranks count as waiting for CPUs."""

_BY_HOST = partial(Evidence, EvidenceSource.HOST)
_BY_COUNTERS = partial(Evidence, EvidenceSource.COUNTERS)


def gather(view: PartitionView) -> list[Evidence]:
    """Return the evidence of a session on a partition that it judged."""
    sources = (
        *(_of_nodes, _of_requeues, _of_counters, _of_losses, _of_paths, _of_loads),
        *(_of_pairs, _of_crashes, _of_streams),
    )
    return [one for source in sources for one in source(view)]


def _of_nodes(view: PartitionView) -> Iterator[Evidence]:
    """Yield the findings on facts that nodes reported."""
    for one in view.findings:
        sign = _sign_of(one)
        if sign is None:
            continue
        place = view.several(one.nodes)
        if one.kind in (NodeFindingKind.PATH, NodeFindingKind.TCP) and len(one.nodes) == 2:
            place = Place(PlaceKind.PAIR, " to ".join(one.nodes), one.nodes, view.interface)
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
    return Sign.LINK if finding.fact in LINK_FACTS else Sign.SETTING


def _of_requeues(view: PartitionView) -> Iterator[Evidence]:
    """Yield the nodes that Slurm lost under a job, which it then requeued."""
    for one in view.requeued:
        for node in one.died:
            place = view.node(node.name, interface=False)
            yield _BY_HOST(Sign.DIED, place, str(one), Sure.SEEN, "Slurm says so")


def _of_crashes(view: PartitionView) -> Iterator[Evidence]:
    """Yield a node if it alone has ranks that die first."""
    crashes = [crash for one in view.pairs for crash in one.rounds.crashes]
    crashes += [crash for one in view.measured for crash in one.crashes]
    located = [crash for crash in crashes if crash.nodes]
    on = {node for crash in located for node in crash.nodes}
    if len(on) == 1 and len(located) >= LEAST_LAUNCHES and len(view.nodes) > 1:
        (node,) = on
        place = view.node(node, interface=False)
        sentence = f"{count_of(len(located), 'launch', 'launches')} died, and each on {node}"
        why = "no launch died on another node"
        yield Evidence(EvidenceSource.CURVES, Sign.CRASHES, place, sentence, Sure.LIKELY, why)


def _of_counters(view: PartitionView) -> Iterator[Evidence]:
    """Yield carrier changes and damaged packets."""
    for one in view.rails:
        changes = one.carrier_changes()
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
        parts = [count_of(cases, "case")] if cases else []
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
    for load in (load for loads, _ in view.launches() for load in loads):
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
    for _, ranks in view.launches():
        waited: dict[str, float] = defaultdict(float)
        wall: dict[str, float] = defaultdict(float)
        for use in ranks:
            if use.scheduled is not None and use.scheduled.waited_s is not None and use.wall_s > 0:
                waited[use.node] += use.scheduled.waited_s
                wall[use.node] += use.wall_s
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
            yield Evidence(
                EvidenceSource.PAIRS,
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
            yield Evidence(
                EvidenceSource.PAIRS,
                Sign.SLOW,
                view.several(nodes),
                f"{sentence} (rounds of pairs, {one.rounds.environment})",
                Sure.STATISTICAL,
                "all of the interval is below the share that the site asks for ('bisection')",
                one.rounds.environment,
                asserted=False,
            )


def _of_streams(view: PartitionView) -> Iterator[Evidence]:
    """Yield the slow direction of nodes accused without alternatives, by the streams."""
    for pairs in view.pairs:
        sure = {one.name for one in pairs.judgement.accusations if not one.alternatives}
        environment = pairs.rounds.environment
        for node, ways in pairs.slow_ways(view.pair_settings, view.settings.disturbance).items():
            if node in sure:
                (way, effect), (other, rest) = ways.items()
                yield Evidence(
                    EvidenceSource.PAIRS,
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
