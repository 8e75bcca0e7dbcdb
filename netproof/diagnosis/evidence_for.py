"""Rules that find each cause in the evidence on a partition."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from netproof.diagnosis.evidence import (
    OVER_TCP,
    Collected,
    Evidence,
    EvidenceSource,
    Place,
    PlaceKind,
    RedCase,
    Sign,
    Sure,
)
from netproof.localization.accused import Effect
from netproof.localization.observations import PairQuantity
from netproof.localization.recovery import Recovery
from netproof.localization.searching import Kind
from netproof.measurement.case import Case
from netproof.site.hostlist import fold

DISTINGUISHES_PORTS = "run a collective on all nodes: 'reframe -c checks/imb.py -r'"

MODE_FULL = "measure every pair: 'reframe -c checks/pairs.py -S mode=full -r'"


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


@dataclass(frozen=True)
class Found:
    """Result of a rule at a place: the evidence, its confidence and why.

    ``detail``: text for the headline; ``alternatives``: equally likely causes, in words;
    ``distinguish_by``: the measurement that distinguishes them; ``red``: cases explained by it.
    """

    place: Place
    evidence: tuple[Evidence, ...]
    sure: Sure
    why: str
    detail: str = ""
    alternatives: tuple[str, ...] = ()
    distinguish_by: str = ""
    red: tuple[RedCase, ...] = ()


def _by_place(evidence: Iterable[Evidence]) -> Iterator[Found]:
    """Yield one finding for each place, with all its evidence."""
    together: dict[tuple[str, ...], list[Evidence]] = defaultdict(list)
    for one in evidence:
        key = one.place.nodes or (one.place.name,)
        together[tuple(sorted(key))].append(one)
    for several in together.values():
        # A port's own counters name the interface.
        first = next((one for one in several if one.asserted), several[0])
        yield Found(first.place, tuple(several), first.sure, first.why)


def node_died(seen: Collected) -> Iterator[Found]:
    """Find nodes that Slurm lost under a job."""
    yield from _by_place(seen.of(Sign.DIED))


def link_down(seen: Collected) -> Iterator[Found]:
    """Find interfaces that are missing, down or without carrier."""
    yield from _by_place(seen.of(Sign.NO_CARRIER))


def link_flapped(seen: Collected) -> Iterator[Found]:
    """Find interfaces under test whose carrier changed."""
    yield from _by_place(seen.of(Sign.CARRIER_CHANGED))


def other_network(seen: Collected) -> Iterator[Found]:
    """Find environments whose messages went over another interface."""
    for one in seen.of(Sign.OTHER_PATH):
        over = one.place.interface or "no interface that is known"
        yield Found(one.place, (one,), one.sure, one.why, detail=over)


def _nodes_of(seen: Collected, *signs: Sign) -> set[str]:
    return {node for one in seen.of(*signs) for node in one.place.nodes}


def _between_linked(seen: Collected, sign: Sign) -> list[Evidence]:
    """Return the evidence of a sign, except on pairs with a node whose carrier changed."""
    gone = _nodes_of(seen, Sign.CARRIER_CHANGED)
    return [
        one for one in seen.of(sign) if len(one.place.nodes) < 2 or not {*one.place.nodes} & gone
    ]


def mtu(seen: Collected) -> Iterator[Found]:
    """Find different MTUs, or links that drop packets of the MTU's size."""
    yield from _by_place(_between_linked(seen, Sign.MTU))


def no_tcp(seen: Collected) -> Iterator[Found]:
    """Find nodes that give or get no answer to TCP connections, or pairs that do not connect."""
    for one in _by_place(_between_linked(seen, Sign.NO_TCP)):
        first = next((each for each in one.evidence if each.asserted), one.evidence[0])
        yield dataclasses.replace(one, detail=first.setting)


def link_setting(seen: Collected) -> Iterator[Found]:
    """Find a different link rate or duplex."""
    yield from _by_place(seen.of(Sign.LINK))


def setting(seen: Collected) -> Iterator[Found]:
    """Find different settings; those that only warn count if other evidence accuses the node."""
    accused = {node for one in seen.of(Sign.SLOW, Sign.LOSS, Sign.CPU) for node in one.place.nodes}
    for one in _by_place(seen.of(Sign.SETTING)):
        if any(each.asserted for each in one.evidence) or {*one.place.nodes} & accused:
            names = list(dict.fromkeys(each.setting for each in one.evidence))
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            yield Found(one.place, one.evidence, one.sure, one.why, detail=f"{names[0]}{more}")


def cpu_taken(seen: Collected) -> Iterator[Found]:
    """Find nodes whose CPUs are used by something else."""
    yield from _by_place(seen.of(Sign.CPU))


def loss(seen: Collected) -> Iterator[Found]:
    """Find nodes that damage packets or lose more than the others; of two nodes, either."""
    found = seen.of(Sign.LOSS, Sign.DAMAGED)
    for one in _by_place(found):
        several = tuple(dict.fromkeys(name for each in one.evidence for name in each.alternatives))
        apart = DISTINGUISHES_PORTS if several else ""
        yield dataclasses.replace(one, alternatives=several, distinguish_by=apart)
    lose = any(share >= seen.loses_much_from for share in seen.losing.values())
    if found or len(seen.losing) != 2 or not lose:
        return
    if not any(one.of_network for one in seen.red):
        return
    losing = tuple(seen.losing)
    shares = ", ".join(f"{node} {100 * share:.2g} %" for node, share in seen.losing.items())
    place = Place(PlaceKind.PAIR, fold(losing), losing)
    counted = Evidence(
        EvidenceSource.COUNTERS,
        Sign.LOSS,
        place,
        f"segments sent again: {shares}",
        Sure.LIKELY,
        "only two nodes were counted, and TCP counts losses at the sender",
    )
    yield Found(
        place,
        (counted,),
        counted.sure,
        counted.why,
        alternatives=tuple(f"the port of {node}" for node in losing),
        distinguish_by=DISTINGUISHES_PORTS,
    )


def crashes(seen: Collected) -> Iterator[Found]:
    """Find nodes on which launches die, unless a link or TCP explains it.

    If another node had no link, or two nodes cannot connect, MPI may give up on either node.
    """
    gone = _nodes_of(seen, Sign.NO_CARRIER, Sign.CARRIER_CHANGED)
    apart = {
        node for one in seen.of(Sign.NO_TCP) if len(one.place.nodes) > 1 for node in one.place.nodes
    }
    yield from _by_place(
        one
        for one in seen.of(Sign.CRASHES)
        if (not gone or gone & {*one.place.nodes}) and not apart & {*one.place.nodes}
    )


def one_direction(seen: Collected) -> Iterator[Found]:
    """Find nodes that are slow only when sending, or only when receiving."""
    for one in _by_place(seen.of(Sign.ONE_WAY)):
        yield Found(one.place, one.evidence, one.sure, one.why, detail=one.evidence[0].setting)


def _accused(seen: Collected, kinds: Sequence[Kind], *, recovers: bool) -> Iterator[Found]:
    """Find accusations of these kinds by pairs that recover, or not, when all others are silent."""
    several = [
        one
        for one in seen.of(Sign.SLOW)
        if one.kind in kinds and (one.recovery is Recovery.RECOVERS) is recovers
    ]
    for one in _by_place(several):
        first = one.evidence[0]
        alternatives = tuple(
            dict.fromkeys(other for each in one.evidence for other in each.alternatives)
        )
        apart = MODE_FULL if alternatives else ""
        rounds = {each.environment for each in one.evidence}
        cleared = [node for node in one.place.nodes if node in seen.cleared]
        if first.kind is Kind.NODE and cleared:
            alternatives += (f"only with {', '.join(sorted(rounds))}: other rounds clear it",)
            apart = MODE_FULL
        worst = max(first.effects, key=_slowness, default=None)
        alone = f"; alone it {first.recovery}" if first.recovery is not None else ""
        detail = f"{worst}{alone}" if worst is not None else ""
        yield Found(one.place, one.evidence, one.sure, one.why, detail, alternatives, apart)


def _slowness(effect: Effect) -> float:
    """Return the factor of slowness, by rate or by time."""
    return effect.ratio if effect.quantity is PairQuantity.LATENCY else 1 / effect.ratio


def slow_port(seen: Collected) -> Iterator[Found]:
    """Find nodes that are slow with every partner, and not only while others send."""
    yield from _accused(seen, (Kind.NODE,), recovers=False)


def oversubscribed(seen: Collected) -> Iterator[Found]:
    """Find places that are slow only while others send."""
    yield from _accused(seen, tuple(Kind), recovers=True)


def slow_uplink(seen: Collected) -> Iterator[Found]:
    """Find leaves, uplinks or groups of nodes that are slow alone too, or were not tried alone."""
    for one in _accused(seen, (Kind.SWITCH, Kind.UPLINK, Kind.GROUP), recovers=False):
        if one.evidence[0].recovery is Recovery.STAYS:
            yield one
            continue
        yield Found(
            one.place,
            one.evidence,
            one.sure,
            one.why,
            one.detail,
            (*one.alternatives, "oversubscribed: slow only while others send"),
            one.distinguish_by
            or "measure a pair across it alone, while all other nodes are silent",
        )


def pair_only(seen: Collected) -> Iterator[Found]:
    """Find two nodes that are slow with each other and fine with others."""
    yield from _accused(seen, (Kind.PAIR,), recovers=False)


def _key(case: Case) -> tuple[object, ...]:
    """Return the identity of a case apart from its environment."""
    return (case.benchmark, case.function, case.ranks, case.path, case.direction)


TCP_RANKS = 2
"""Ranks of NPtcp: it says nothing about traffic of more than two nodes."""


def _of_tcp(case: Case) -> bool:
    return case.function == OVER_TCP


def environment(seen: Collected) -> Iterator[Found]:
    """Find a single red environment where others, or TCP, pass the same cases."""
    red = [one for one in seen.red if one.measured]
    environments = sorted({one.case.environment for one in red})
    if len(environments) != 1 or any(_of_tcp(one.case) for one in red):
        return
    (name,) = environments
    others = sorted({one.environment for one in seen.passed} - {name})
    elsewhere = {_key(case) for case in seen.passed if case.environment != name}
    same = [one for one in red if _key(one.case) in elsewhere]
    alternatives: tuple[str, ...] = ()
    if 2 * len(same) > len(red):
        why = f"{len(same)} of its {len(red)} red cases pass with {', '.join(others)}"
    elif (
        not others
        and all(one.case.ranks == TCP_RANKS for one in red)
        and any(_of_tcp(case) and case.path == "between" for case in seen.passed)
    ):
        why = "TCP between the same nodes passes, and no other environment was measured"
        alternatives = ("the switch under the traffic of all nodes",)
    else:
        return
    place = Place(PlaceKind.ENVIRONMENT, name, environments=(name,))
    evidence = Evidence(
        EvidenceSource.CURVES,
        Sign.SLOW,
        place,
        f"{len(red)} red cases, all of {name}: {red[0].case.what()}: {red[0].why}",
        Sure.LIKELY,
        why,
        name,
    )
    apart = "measure the same cases with another environment" if alternatives else ""
    yield Found(place, (evidence,), evidence.sure, why, "", alternatives, apart, tuple(red))


def _red_of_several(seen: Collected) -> list[RedCase]:
    """Return red inter-node cases of several environments or TCP; none if a place is accused."""
    red = [one for one in seen.red if one.of_network]
    if any(one.asserted and one.sign is not Sign.SETTING for one in seen.evidence):
        return []
    environments = {one.case.environment for one in red}
    return red if len(environments) > 1 or any(_of_tcp(one.case) for one in red) else []


def _in_all(red: Sequence[RedCase]) -> tuple[str, ...]:
    """Return the nodes that all red cases ran on, if one or two."""
    shared = set.intersection(*({*one.nodes} for one in red)) if red else set()
    return tuple(sorted(shared)) if len(shared) <= 2 else ()


def _of_red(place: Place, red: Sequence[RedCase], why: str) -> Evidence:
    environments = ", ".join(sorted({one.case.environment for one in red}))
    sentence = f"{len(red)} red cases of {environments}: {red[0].case.what()}: {red[0].why}"
    return Evidence(EvidenceSource.CURVES, Sign.SLOW, place, sentence, Sure.LIKELY, why)


def whole(seen: Collected) -> Iterator[Found]:
    """Find a partition that is red as a whole: all nodes lose alike, or all are cleared.

    Rounds of pairs clear nodes only in the quantities that they judge, and not if one or two
    nodes are in all red cases.
    """
    red = _red_of_several(seen)
    if not red:
        return
    place = Place(PlaceKind.WHOLE, f"switch of {seen.partition}", seen.nodes)
    evidence = [_of_red(place, red, "")]
    shares = list(seen.losing.values())
    lose = len(shares) > 2 and min(shares) >= seen.loses_from
    cleared = (
        bool(seen.nodes)
        and {*seen.cleared} >= {*seen.nodes}
        and not _in_all(red)
        and any(one.quantity in seen.cleared_by for one in red)
    )
    if lose:
        why = "all nodes lose packets, and none more than the others"
        detail = ": packets are lost at all nodes, as with small buffers"
        least, most = (100 * share for share in (min(shares), max(shares)))
        sentence = f"each of {len(shares)} nodes sent {least:.2g} to {most:.2g} % of segments again"
        counted = EvidenceSource.COUNTERS
        evidence.append(Evidence(counted, Sign.LOSS, place, sentence, Sure.LIKELY, why))
        alternatives: tuple[str, ...] = ()
    elif cleared:
        why = "rounds of pairs clear every node"
        detail = ": several configurations are red and no node stands out"
        alternatives = ("a setting that all nodes have alike",)
    else:
        return
    apart = "compare with a run over another switch, or after a change of the setting"
    yield Found(
        place,
        tuple(evidence),
        Sure.LIKELY,
        why,
        detail,
        alternatives,
        apart if alternatives else "",
        tuple(red),
    )


def one_or_two(seen: Collected) -> Iterator[Found]:
    """Find one or two nodes that are in all red cases, or a slow pair without any to compare.

    Nothing measured shows whether a node or the path between them is at fault.
    """
    evidence = [one for one in seen.of(Sign.SLOW) if not one.asserted]
    red = _red_of_several(seen)
    shared = _in_all(red)
    if shared:
        kind = PlaceKind.PAIR if shared[1:] else PlaceKind.NODE
        why = "no red case ran without them, and nothing measured tells more"
        evidence.append(_of_red(Place(kind, fold(shared), shared), red, why))
    for one in _by_place(evidence):
        nodes, mine = one.place.nodes, ()
        what = "slow with each other"
        if {*nodes} == {*shared}:
            mine = tuple(red)
            what = f"all {len(mine)} red cases between nodes ran there"
        between = "them" if nodes[1:] else "it and the others"
        detail = f"{' or '.join(nodes)} or what is between {between}: {what}"
        yield dataclasses.replace(one, detail=detail, red=mine)


def unexplained(seen: Collected) -> Iterator[Found]:
    """Find failed jobs and cases that have no explanation."""
    place = Place(PlaceKind.UNKNOWN, seen.partition)
    evidence = [
        Evidence(EvidenceSource.CURVES, Sign.SLOW, place, why, Sure.SEEN, "the job failed")
        for why in seen.failed_jobs
    ]
    if seen.red:
        first = seen.red[0]
        sentence = f"{first.case.environment} {first.case.what()}: {first.why}"
        evidence.append(
            Evidence(EvidenceSource.CURVES, Sign.SLOW, place, sentence, Sure.SEEN, "it was judged")
        )
    if evidence:
        cases = f"{len(seen.red)} red case{'' if len(seen.red) == 1 else 's'}" if seen.red else ""
        jobs = len(seen.failed_jobs)
        failed = f"{jobs} failed job{'' if jobs == 1 else 's'}" if jobs else ""
        detail = " and ".join(filter(None, (cases, failed)))
        why = "that it failed was seen; the cause was not"
        yield Found(place, tuple(evidence), Sure.SEEN, why, detail, red=seen.red)
