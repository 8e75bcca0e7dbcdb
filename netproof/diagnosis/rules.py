"""Rules that find each cause in the evidence on a partition."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from netproof.diagnosis.evidence import (
    Culprit,
    Evidence,
    EvidenceSource,
    PartitionView,
    Place,
    PlaceKind,
    RedCase,
    Sign,
    Sure,
    count_of,
)
from netproof.measurement.case import Case
from netproof.pairs.accusation import Effect
from netproof.pairs.alone import Recovery
from netproof.pairs.model import Kind
from netproof.site.hostlist import fold
from netproof.site.pair_settings import PairQuantity

Rule = Callable[[PartitionView], Iterable[Culprit]]

DISTINGUISHES_PORTS = "run a collective on all nodes: 'reframe -c checks/imb.py -r'"

MODE_FULL = "measure every pair: 'reframe -c checks/pairs.py -S mode=full -r'"

OVER_TCP = "tcp"
"""NetPIPE's function without an MPI library."""

TCP_RANKS = 2
"""Ranks of NPtcp: it says nothing about traffic of more than two nodes."""


def _by_place(evidence: Iterable[Evidence]) -> Iterator[Culprit]:
    """Yield one finding for each place, with all its evidence."""
    together: dict[tuple[str, ...], list[Evidence]] = defaultdict(list)
    for one in evidence:
        key = one.place.nodes or (one.place.name, one.place.interface)
        together[tuple(sorted(key))].append(one)
    for several in together.values():
        # A port's own counters name the interface.
        first = next((one for one in several if one.asserted), several[0])
        yield Culprit(first.place, tuple(several), first.sure, first.why, first.setting)


def _nodes_of(seen: PartitionView, *signs: Sign) -> set[str]:
    return {node for one in seen.of(*signs) for node in one.place.nodes}


def signs(*wanted: Sign) -> Rule:
    """Return the rule that finds each place with evidence of these signs."""
    return lambda seen: _by_place(seen.of(*wanted))


def linked(sign: Sign) -> Rule:
    """Return the same rule, without pairs that have a node without carrier."""

    def rule(seen: PartitionView) -> Iterator[Culprit]:
        gone = _nodes_of(seen, Sign.CARRIER_CHANGED)
        return _by_place(
            one
            for one in seen.of(sign)
            if len(one.place.nodes) < 2 or gone.isdisjoint(one.place.nodes)
        )

    return rule


def setting(seen: PartitionView) -> Iterator[Culprit]:
    """Find different settings; those that only warn count if other evidence accuses the node."""
    accused = _nodes_of(seen, Sign.SLOW, Sign.LOSS, Sign.CPU)
    for one in _by_place(seen.of(Sign.SETTING)):
        if any(each.asserted for each in one.evidence) or {*one.place.nodes} & accused:
            names = list(dict.fromkeys(each.setting for each in one.evidence))
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            yield replace(one, detail=f"{names[0]}{more}")


def loss(seen: PartitionView) -> Iterator[Culprit]:
    """Find nodes that damage packets or lose more than the others; of two nodes, either."""
    found = list(seen.of(Sign.LOSS, Sign.DAMAGED))
    lose = any(share >= seen.loses_much_from for share in seen.losing.values())
    if not found and len(seen.losing) == 2 and lose and any(one.of_network for one in seen.red):
        losing = tuple(seen.losing)
        shares = ", ".join(f"{node} {100 * of:.2g} %" for node, of in seen.losing.items())
        found.append(
            Evidence(
                EvidenceSource.COUNTERS,
                Sign.LOSS,
                Place(PlaceKind.PAIR, fold(losing), losing),
                f"segments sent again: {shares}",
                Sure.LIKELY,
                "only two nodes were counted, and TCP counts losses at the sender",
                alternatives=tuple(f"the port of {node}" for node in losing),
            )
        )
    for one in _by_place(found):
        several = _alternatives(one)
        apart = DISTINGUISHES_PORTS if several else ""
        yield replace(one, alternatives=several, distinguish_by=apart)


def crashes(seen: PartitionView) -> Iterator[Culprit]:
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


def accused(*kinds: Kind, recovers: bool = False) -> Rule:
    """Return the rule of accusations by pairs; ``recovers``: slow only while others send."""
    return lambda seen: _accused(seen, kinds, recovers=recovers)


def _accused(seen: PartitionView, kinds: Sequence[Kind], *, recovers: bool) -> Iterator[Culprit]:
    several = [
        one
        for one in seen.of(Sign.SLOW)
        if one.kind in kinds and (one.recovery is Recovery.RECOVERS) is recovers
    ]
    for one in _by_place(several):
        first = one.evidence[0]
        alternatives = _alternatives(one)
        if first.kind is Kind.NODE and {*one.place.nodes} & {*seen.cleared}:
            rounds = ", ".join(sorted({each.environment for each in one.evidence}))
            alternatives += (f"only with {rounds}: other rounds clear it",)
        worst = max(first.effects, key=_slowness, default=None)
        alone = f"; alone it {first.recovery}" if first.recovery is not None else ""
        yield replace(
            one,
            detail=f"{worst}{alone}" if worst is not None else "",
            alternatives=alternatives,
            distinguish_by=MODE_FULL if alternatives else "",
        )


def _alternatives(culprit: Culprit) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one for each in culprit.evidence for one in each.alternatives))


def _slowness(effect: Effect) -> float:
    return effect.ratio if effect.quantity is PairQuantity.LATENCY else 1 / effect.ratio


def slow_uplink(seen: PartitionView) -> Iterator[Culprit]:
    """Find leaves, uplinks or groups of nodes that are slow alone too, or were not tried alone."""
    alone = "measure a pair across it alone, while all other nodes are silent"
    for one in _accused(seen, (Kind.SWITCH, Kind.UPLINK, Kind.GROUP), recovers=False):
        if one.evidence[0].recovery is not Recovery.STAYS:
            several = (*one.alternatives, "oversubscribed: slow only while others send")
            one = replace(one, alternatives=several, distinguish_by=one.distinguish_by or alone)
        yield one


def _key(case: Case) -> tuple[object, ...]:
    return (case.benchmark, case.function, case.ranks, case.path, case.direction)


def environment(seen: PartitionView) -> Iterator[Culprit]:
    """Find a single red environment where others, or TCP, pass the same cases."""
    red = [one for one in seen.red if one.measured]
    environments = sorted({one.case.environment for one in red})
    if len(environments) != 1 or any(one.case.function == OVER_TCP for one in red):
        return
    (name,) = environments
    others = sorted({one.environment for one in seen.passed} - {name})
    elsewhere: dict[tuple[object, ...], set[str]] = defaultdict(set)
    for case, nodes in seen.passed.items():
        if case.environment != name:
            elsewhere[_key(case)].update(nodes)
    same = [one for one in red if _key(one.case) in elsewhere]
    alternatives: tuple[str, ...] = ()
    if 2 * len(same) > len(red):
        why = f"{len(same)} of its {len(red)} red cases pass with {', '.join(others)}"
        shared = {*_in_all([one for one in red if one.of_network])}
        if shared and not any(shared <= elsewhere[_key(one.case)] for one in same):
            alternatives = (f"{fold(shared)}: these cases ran on other nodes with the others",)
    elif (
        not others
        and all(one.case.ranks == TCP_RANKS for one in red)
        and any(case.function == OVER_TCP and case.path == "inter-node" for case in seen.passed)
    ):
        why = "TCP between the same nodes passes, and no other environment was measured"
        alternatives = ("the switch under the traffic of all nodes",)
    else:
        return
    place = Place(PlaceKind.ENVIRONMENT, name, environments=(name,))
    apart = "measure the same cases with another environment, on the same nodes"
    yield Culprit(
        place,
        (replace(_of_red(place, red, why), environment=name),),
        Sure.LIKELY,
        why,
        alternatives=alternatives,
        distinguish_by=apart if alternatives else "",
        red=tuple(red),
    )


def _red_of_several(seen: PartitionView) -> list[RedCase]:
    """Return red inter-node cases of several environments or TCP; none if a place is accused."""
    red = [one for one in seen.red if one.of_network]
    if any(one.asserted and one.sign is not Sign.SETTING for one in seen.evidence):
        return []
    environments = {one.case.environment for one in red}
    return red if len(environments) > 1 or any(one.case.function == OVER_TCP for one in red) else []


def _in_all(red: Sequence[RedCase]) -> tuple[str, ...]:
    """Return the nodes that all red cases ran on, if one or two."""
    shared = set.intersection(*({*one.nodes} for one in red)) if red else set()
    return tuple(sorted(shared)) if len(shared) <= 2 else ()


def _of_red(place: Place, red: Sequence[RedCase], why: str) -> Evidence:
    environments = ", ".join(sorted({one.case.environment for one in red}))
    sentence = f"{len(red)} red cases of {environments}: {red[0].case.what()}: {red[0].why}"
    return Evidence(EvidenceSource.CURVES, Sign.SLOW, place, sentence, Sure.LIKELY, why)


def whole(seen: PartitionView) -> Iterator[Culprit]:
    """Find a partition that is red as a whole: all nodes lose alike, or all are cleared.

    Pairs clear nodes only in what they judge, and not if one or two nodes are in all red cases.
    """
    red = _red_of_several(seen)
    if not red:
        return
    place = Place(PlaceKind.WHOLE, f"switch of {seen.name}", seen.nodes)
    evidence = [_of_red(place, red, "")]
    shares = list(seen.losing.values())
    cleared = (
        seen.nodes
        and {*seen.cleared} >= {*seen.nodes}
        and not _in_all(red)
        and any(one.quantity in seen.cleared_by for one in red)
    )
    alternatives: tuple[str, ...] = ()
    apart = ""
    if len(shares) > 2 and min(shares) >= seen.loses_from:
        why = "all nodes lose packets, and none more than the others"
        detail = ": packets are lost at all nodes, as with small buffers"
        least, most = (100 * share for share in (min(shares), max(shares)))
        sentence = f"each of {len(shares)} nodes sent {least:.2g} to {most:.2g} % of segments again"
        counted = EvidenceSource.COUNTERS
        evidence.append(Evidence(counted, Sign.LOSS, place, sentence, Sure.LIKELY, why))
    elif cleared:
        why = "rounds of pairs clear every node"
        detail = ": several configurations are red and no node stands out"
        alternatives = ("a setting that all nodes have alike",)
        apart = "compare with a run over another switch, or after a change of the setting"
    else:
        return
    yield Culprit(place, tuple(evidence), Sure.LIKELY, why, detail, alternatives, apart, tuple(red))


def one_or_two(seen: PartitionView) -> Iterator[Culprit]:
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
        nodes = one.place.nodes
        mine = tuple(red) if {*nodes} == {*shared} else ()
        what = f"all {len(mine)} red cases between nodes ran there" if mine else ""
        between = "them" if nodes[1:] else "it and the others"
        where = f"{' or '.join(nodes)} or what is between {between}"
        yield replace(one, detail=f"{where}: {what or 'slow with each other'}", red=mine)


def unexplained(seen: PartitionView) -> Iterator[Culprit]:
    """Find failed jobs and cases that have no explanation."""
    place, jobs, cases = Place(PlaceKind.UNKNOWN, seen.name), len(seen.failed_jobs), len(seen.red)
    failed = [(sentence, "the job failed") for sentence in seen.failed_jobs]
    failed += [
        (f"{first.case.environment} {first.case.what()}: {first.why}", "it was judged")
        for first in seen.red[:1]
    ]
    if failed:
        evidence = tuple(
            Evidence(EvidenceSource.CURVES, Sign.SLOW, place, sentence, Sure.SEEN, why)
            for sentence, why in failed
        )
        counted = [count_of(cases, "red case")] if cases else []
        counted += [count_of(jobs, "failed job")] if jobs else []
        why = "that it failed was seen; the cause was not"
        yield Culprit(place, evidence, Sure.SEEN, why, " and ".join(counted), red=seen.red)
