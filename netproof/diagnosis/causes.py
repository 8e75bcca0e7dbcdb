"""Possible causes, most specific first, and the culprits that they make of a partition's evidence.

A cause is a rule of ``RULES``, and an entry of ``causes.toml``, which has what people read and how
it goes with other causes. A rule examines the evidence of a partition and yields a culprit for each
place. ``find_culprits`` merges those of one place.
"""

from __future__ import annotations

import copy
import math
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from netproof.criteria import Level
from netproof.diagnosis.evidence import (
    Culprit,
    Evidence,
    EvidenceSource,
    PartitionView,
    Place,
    PlaceKind,
    Sign,
    Sure,
    crashes_on_one_node,
    first_reason,
    of_network,
    red_quantity,
)
from netproof.errors import counted
from netproof.pairs.accusation import Effect
from netproof.pairs.alone import Recovery
from netproof.pairs.model import Kind
from netproof.site.partition import PairQuantity
from netproof.site.slurm import fold
from netproof.verdict.engine import group
from netproof.verdict.verdict import CaseVerdict

_BUFFERS = {
    **dict.fromkeys(("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"), math.inf),
    **dict.fromkeys(("net.core.rmem_max", "net.core.wmem_max"), 212992),
}
"""Largest buffers of sockets, and below how many bytes each is too small at most."""

Rule = Callable[[PartitionView], Iterable[Culprit]]

DISTINGUISHES_PORTS = "run a collective on all nodes: 'reframe -c checks -t imb -r'"

MODE_FULL = "measure every pair: 'reframe -c checks/pairs.py -S mode=full -r'"

OVER_TCP = "tcp"
"""NetPIPE's function without an MPI library."""

TCP_RANKS = 2
"""Ranks of NPtcp: it says nothing about traffic of more than two nodes."""


def _by_place(evidence: Iterable[Evidence]) -> Iterator[Culprit]:
    together: dict[tuple[str, ...], list[Evidence]] = defaultdict(list)
    for one in evidence:
        key = one.place.nodes or (one.place.name, one.place.interface)
        if one.place.kind in (PlaceKind.UPLINK, PlaceKind.LEAF):
            # Jobs with other nodes below it accuse the same one.
            key = (one.place.name,)
        together[tuple(sorted(key))].append(one)
    for several in together.values():
        # A port's own counters name the interface.
        first = next((one for one in several if one.asserted), several[0])
        yield Culprit(first.place, tuple(several), first.sure, first.why, first.setting)


def _nodes_of(seen: PartitionView, *signs: Sign) -> set[str]:
    return {node for one in seen.of(*signs) for node in one.place.nodes}


def _signs(*wanted: Sign) -> Rule:
    return lambda seen: _by_place(seen.of(*wanted))


def _linked(sign: Sign) -> Rule:
    """Return the same rule, without pairs that have a node without carrier."""

    def rule(seen: PartitionView) -> Iterator[Culprit]:
        gone = _nodes_of(seen, Sign.CARRIER_CHANGED)
        return _by_place(
            one
            for one in seen.of(sign)
            if len(one.place.nodes) < 2 or gone.isdisjoint(one.place.nodes)
        )

    return rule


def _setting(seen: PartitionView) -> Iterator[Culprit]:
    """Find different settings; those that only warn count if other evidence accuses the node."""
    accused = _nodes_of(seen, Sign.SLOW, Sign.LOSS, Sign.CPU)
    for one in _by_place(seen.of(Sign.SETTING)):
        if any(each.asserted for each in one.evidence) or {*one.place.nodes} & accused:
            names = list(dict.fromkeys(each.setting for each in one.evidence))
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            yield replace(one, detail=f"{names[0]}{more}")


def _loss(seen: PartitionView) -> Iterator[Culprit]:
    """Find nodes that damage packets or lose more than the others; of two nodes, either."""
    found = list(seen.of(Sign.LOSS, Sign.DAMAGED))
    lose = any(share >= seen.loses_much_from for share in seen.losing.values())
    if not found and len(seen.losing) == 2 and lose and any(map(of_network, seen.red)):
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


def _crashes(seen: PartitionView) -> Iterator[Culprit]:
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


def _by_pairs(
    seen: PartitionView, kinds: Sequence[Kind], *, recovers: bool = False
) -> Iterator[Culprit]:
    """Find what pairs accuse; ``recovers``: slow only while others send."""
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


def _slow_uplink(seen: PartitionView) -> Iterator[Culprit]:
    """Find leaves, uplinks or groups of nodes that are slow alone too, or were not tried alone."""
    alone = "measure a pair across it alone, while all other nodes are silent"
    for one in _by_pairs(seen, (Kind.SWITCH, Kind.UPLINK, Kind.GROUP)):
        if one.evidence[0].recovery is not Recovery.STAYS:
            several = (*one.alternatives, "oversubscribed: slow only while others send")
            one = replace(one, alternatives=several, distinguish_by=one.distinguish_by or alone)
        yield one


def _environment(seen: PartitionView) -> Iterator[Culprit]:
    """Find a single red environment where others, or TCP, pass the same cases."""
    red = [one for one in seen.red if one.complete]
    environments = sorted({one.case.environment for one in red})
    if len(environments) != 1 or any(one.case.function == OVER_TCP for one in red):
        return
    (name,) = environments
    others = sorted({one.environment for one in seen.passed} - {name})
    elsewhere: dict[tuple[object, ...], set[str]] = defaultdict(set)
    for case in seen.passed:
        if case.environment != name:
            elsewhere[group(case)].update(seen.nodes_of[case])
    same = [one for one in red if group(one.case) in elsewhere]
    alternatives: tuple[str, ...] = ()
    if 2 * len(same) > len(red):
        why = f"{len(same)} of its {len(red)} red cases pass with {', '.join(others)}"
        shared = {*_in_all(seen, filter(of_network, red))}
        if shared and not any(shared <= elsewhere[group(one.case)] for one in same):
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


def _red_of_several(seen: PartitionView) -> list[CaseVerdict]:
    """Return red inter-node cases of several environments or TCP; none if a place is accused.

    A case that fails only since something could not be judged does not count.
    """
    red = [one for one in seen.red if of_network(one) and (one.faults or _fails_by_value(one))]
    if any(one.asserted and one.sign is not Sign.SETTING for one in seen.evidence):
        return []
    environments = {one.case.environment for one in red}
    return red if len(environments) > 1 or any(one.case.function == OVER_TCP for one in red) else []


def _fails_by_value(one: CaseVerdict) -> bool:
    return any(
        found.level is Level.FAIL and found.own_level is not Level.UNDEFINED
        for found in one.findings
    )


def _in_all(seen: PartitionView, red: Iterable[CaseVerdict]) -> tuple[str, ...]:
    """Return the nodes that all red cases ran on, if one or two."""
    several = [{*seen.nodes_of[one.case]} for one in red]
    shared = set.intersection(*several) if several else set()
    return tuple(sorted(shared)) if len(shared) <= 2 else ()


def _of_red(place: Place, red: Sequence[CaseVerdict], why: str) -> Evidence:
    environments = ", ".join(sorted({one.case.environment for one in red}))
    first = f"{red[0].case.what()}: {first_reason(red[0])}"
    sentence = f"{len(red)} red cases of {environments}: {first}"
    return Evidence(EvidenceSource.CURVES, Sign.SLOW, place, sentence, Sure.LIKELY, why)


def _small_buffers(seen: PartitionView) -> Iterator[Culprit]:
    """Find nodes whose sockets hold less than their link carries in a round trip.

    Half of a buffer is the kernel's own. A limit of net.core counts only below Linux's default.
    """
    red = _red_of_several(seen)
    times = [one.landmarks.latency_us for one in seen.measured if one.case.path == "inter-node"]
    carried = 2 * min(filter(None, times), default=0.0) * seen.site.link().line_rate_mb_s()
    small: dict[str, set[str]] = defaultdict(set)
    for node in seen.described if red else ():
        for name, default in _BUFFERS.items():
            largest = node.sysctls.get(name, "").split()[-1:]
            if largest and largest[0].isdigit() and int(largest[0]) < min(2 * carried, default):
                small[f"{name} {largest[0]}"].add(node.node)
    if small:
        place = seen.several(sorted(set().union(*small.values())))
        why = f"half of a buffer is the kernel's, and a link carries {carried:.0f} in a round trip"
        evidence = [
            Evidence(
                *(EvidenceSource.HOST, Sign.SETTING, place, f"on {fold(nodes)} {limit} bytes"),
                *(Sure.SEEN, why),
            )
            for limit, nodes in small.items()
        ]
        yield Culprit(place, tuple(evidence), Sure.LIKELY, why, ", ".join(small), red=tuple(red))


def _whole(seen: PartitionView) -> Iterator[Culprit]:
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
        and not _in_all(seen, red)
        and any(red_quantity(one) in seen.cleared_by for one in red)
    )
    alternatives: tuple[str, ...] = ()
    apart = ""
    if len(shares) > 2 and min(shares) >= seen.loses_from:
        why = "all nodes lose packets, and none more than the others"
        detail = ": packets are lost at all nodes, as with small buffers"
        least, most = (100 * share for share in (min(shares), max(shares)))
        sentence = f"each of {len(shares)} nodes sent {least:.2g} to {most:.2g} % of segments again"
        by = EvidenceSource.COUNTERS
        evidence.append(Evidence(by, Sign.LOSS, place, sentence, Sure.LIKELY, why))
    elif cleared:
        why = "rounds of pairs clear every node"
        detail = ": several configurations are red and no node stands out"
        alternatives = ("a setting that all nodes have alike",)
        apart = "compare with a run over another switch, or after a change of the setting"
    else:
        return
    yield Culprit(place, tuple(evidence), Sure.LIKELY, why, detail, alternatives, apart, tuple(red))


def _one_or_two(seen: PartitionView) -> Iterator[Culprit]:
    """Find one or two nodes that are in all red cases, or a slow pair without any to compare.

    Nothing measured shows whether a node or the path between them is at fault; nor, where all
    cases ran there, whether it is the switch.
    """
    evidence = [one for one in seen.of(Sign.SLOW) if not one.asserted]
    red = _red_of_several(seen)
    shared = _in_all(seen, red)
    ran_on = [{*seen.nodes_of[one.case]} for one in seen.ran if of_network(one)]
    narrowed = not all({*shared} <= nodes for nodes in ran_on)
    ran_on += [{*one.rounds.nodes} for one in seen.pairs if one.rounds.launches]
    if shared:
        kind = PlaceKind.PAIR if shared[1:] else PlaceKind.NODE
        why = "no red case ran without them, and nothing measured tells more"
        if not narrowed:
            why = "no case between nodes ran without them, passed or red"
        evidence.append(_of_red(Place(kind, fold(shared), shared), red, why))
    for one in _by_place(evidence):
        nodes = one.place.nodes
        mine = tuple(red) if {*nodes} == {*shared} else ()
        what = f"all {len(mine)} red cases between nodes ran there" if mine else ""
        between = "them" if nodes[1:] else "it and the others"
        where = f"{' or '.join(nodes)} or what is between {between}"
        if mine and {*shared} >= set().union(*ran_on):
            where, what = f"{where}, or the whole switch", "no other nodes were measured"
        detail = f"{where}: {what or 'slow with each other'}"
        sure = narrowed or one.sure is not Sure.LIKELY
        yield replace(one, detail=detail, red=mine, narrowed=sure)


def _unexplained(seen: PartitionView) -> Iterator[Culprit]:
    place, jobs, cases = Place(PlaceKind.UNKNOWN, seen.name), len(seen.failed_jobs), len(seen.red)
    failed = [(sentence, "the job failed") for sentence in seen.failed_jobs]
    failed += [
        (f"{first.case.environment} {first.case.what()}: {first_reason(first)}", "it was judged")
        for first in seen.red[:1]
    ]
    if failed:
        evidence = tuple(
            Evidence(EvidenceSource.CURVES, Sign.SLOW, place, sentence, Sure.SEEN, why)
            for sentence, why in failed
        )
        several = [counted(cases, "red case")] if cases else []
        several += [counted(jobs, "failed job")] if jobs else []
        detail = "; ".join(filter(None, (" and ".join(several), crashes_on_one_node(seen))))
        why = "the failure was seen, its cause was not"
        yield Culprit(place, evidence, Sure.SEEN, why, detail, red=seen.red, narrowed=False)


TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_bytes().decode())

RULES: Mapping[str, Rule] = {
    "node died": _signs(Sign.DIED),
    "link down": _signs(Sign.NO_CARRIER),
    "link flapped": _signs(Sign.CARRIER_CHANGED),
    "messages took another network": _signs(Sign.OTHER_PATH),
    "MTU differs": _linked(Sign.MTU),
    "no TCP": _linked(Sign.NO_TCP),
    "link rate or duplex differs": _signs(Sign.LINK),
    "setting differs": _setting,
    "CPUs taken by something else": _signs(Sign.CPU),
    "packets lost": _loss,
    "launches die on one node": _crashes,
    "one direction slow": _signs(Sign.ONE_WAY),
    "port slower than the others": partial(_by_pairs, kinds=(Kind.NODE,)),
    "oversubscribed": partial(_by_pairs, kinds=tuple(Kind), recovers=True),
    "uplink or leaf slow": _slow_uplink,
    "one pair slow": partial(_by_pairs, kinds=(Kind.PAIR,)),
    "one MPI environment only": _environment,
    "small socket buffers": _small_buffers,
    "the switch as a whole": _whole,
    "one or two nodes or what is between them": _one_or_two,
    "unexplained": _unexplained,
}
"""The rule of each cause, most specific first."""


def find_culprits(seen: PartitionView) -> tuple[Culprit, ...]:
    """Return the culprits of a partition, worst first, one for each place."""
    merged = _merged(
        [one for name in RULES if not TEXTS[name].get("residual") for one in _by(name, seen)]
    )
    culprits = [replace(one, red=_explained(one, seen)) for one in merged]
    left = copy.copy(seen)
    if any(TEXTS[one.cause].get("stops_jobs") for one in culprits):
        left.failed_jobs = ()
    left.red = _without(seen.red, culprits)
    for name in RULES:
        if TEXTS[name].get("residual"):
            found = list(_by(name, left))
            culprits += found
            left.red = _without(left.red, found)
    return tuple(sorted(culprits, key=_badness))


def _by(cause: str, seen: PartitionView) -> Iterator[Culprit]:
    """Yield what the rule of a cause finds, with its sentences."""
    texts = TEXTS[cause]
    for found in RULES[cause](seen):
        place = found.place
        shown = str(place) if place.kind is not PlaceKind.ENVIRONMENT else place.name
        if place.kind is PlaceKind.SETTING:
            shown = fold(place.nodes)
        node = ", ".join(place.nodes) if 0 < len(place.nodes) <= 2 else place.name
        names = {"node": node, "session": seen.session, "where": f"{seen.system}:{seen.name}"}
        yield replace(
            found,
            cause=cause,
            headline=texts["headline"].format(place=shown, detail=found.detail),
            advice=texts["advice"].format(**names),
            advice_here=texts.get("advice_here", texts["advice"]).format(**names),
            rules_out=texts["rules_out"].format(node=node),
        )


def _merged(culprits: Sequence[Culprit]) -> list[Culprit]:
    """Return the most specific culprit of each place, the others as evidence or alternatives."""
    merged: list[Culprit] = []
    for one in culprits:
        several = [other for other in merged if other.covers(one)]
        explaining, alike = (
            next((other for other in several if _of_cause(other, key, one)), None)
            for key in ("explains", "alike")
        )
        other = explaining or alike
        if other is None:
            merged.append(one)
            continue
        more = tuple(e for e in one.evidence if e not in other.evidence)
        whole = replace(other, evidence=other.evidence + more)
        if explaining is None:
            whole = replace(
                whole,
                alternatives=tuple(dict.fromkeys((*other.alternatives, one.headline))),
                distinguish_by=other.distinguish_by or TEXTS[other.cause].get("distinguish_by", ""),
            )
        merged = [whole if each is other else each for each in merged]
    return merged


def _of_cause(other: Culprit, key: str, one: Culprit) -> bool:
    """Check whether a cause names that of another culprit under ``key``; ``*``: all but itself."""
    names = TEXTS[other.cause].get(key, ())
    return one.cause in names or ("*" in names and one.cause != other.cause)


def _without(red: Sequence[CaseVerdict], culprits: Sequence[Culprit]) -> tuple[CaseVerdict, ...]:
    explained = {one.case for culprit in culprits for one in culprit.red}
    return tuple(one for one in red if one.case not in explained)


def _explained(culprit: Culprit, seen: PartitionView) -> tuple[CaseVerdict, ...]:
    """Return the red cases that a culprit explains: for a setting none if others are red too."""
    if culprit.cause == "messages took another network":
        environments = culprit.place.environments
        return tuple(one for one in seen.red if one.case.environment in environments)
    mine = {one.case: _touches(culprit, one, seen.nodes_of[one.case]) for one in seen.red}
    outside = any(of_network(one) and not mine[one.case] for one in seen.red)
    if culprit.cause == "setting differs" and outside:
        return ()
    return tuple(one for one in seen.red if mine[one.case])


def _touches(culprit: Culprit, red: CaseVerdict, on: Sequence[str]) -> bool:
    within_nodes = TEXTS[culprit.cause].get("within_nodes")
    if not within_nodes and red.complete and not of_network(red):
        return False
    if not on:
        return bool(TEXTS[culprit.cause].get("stops_jobs"))
    nodes = {*culprit.place.nodes} & {*on}
    return len(nodes) > 1 if culprit.place.kind is PlaceKind.PAIR else bool(nodes)


def _badness(culprit: Culprit) -> tuple[int, int, int]:
    """Return the sort key: no traffic first, then slowness, then mere differences; then cause."""
    harm = int(TEXTS[culprit.cause].get("harm", 1))
    if culprit.cause == "setting differs" and (culprit.alternatives or culprit.red):
        harm = 1
    return harm, list(RULES).index(culprit.cause), -len(culprit.red)
