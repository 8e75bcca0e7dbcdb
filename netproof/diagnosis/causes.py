"""Possible causes, most specific first, and the culprits that they make of a partition's evidence.

A cause is an entry of ``CAUSES``. Its rule examines the evidence of a partition and yields a
culprit for each place. ``find_culprits`` merges those of one place.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from netproof.diagnosis import rules
from netproof.diagnosis.evidence import CauseName, Culprit, PartitionView, PlaceKind, RedCase, Sign
from netproof.pairs.model import Kind
from netproof.site.hostlist import fold


@dataclass(frozen=True)
class Cause:
    """A possible cause of a fault.

    ``headline``: with ``{place}`` and ``{detail}``; ``advice``: the next step, ``rules_out``: what
    would rule it out, with ``{node}``; ``explains``: causes at the same place that count as its
    evidence; ``alike``: causes as likely, and ``distinguish_by`` what distinguishes them;
    ``residual``: whether only red cases without another explanation are examined;
    ``of_network``: whether it leaves traffic within a node unaffected.
    """

    name: CauseName
    headline: str
    rule: rules.Rule
    advice: str
    rules_out: str
    explains: frozenset[CauseName] = frozenset()
    alike: frozenset[CauseName] = frozenset()
    distinguish_by: str = ""
    residual: bool = False
    of_network: bool = True


_SLOWER = frozenset({CauseName.ONE_DIRECTION, CauseName.SLOW_PORT, CauseName.PAIR_ONLY})

_EFFECTS = _SLOWER | {CauseName.LOSS, CauseName.CRASHES}

PAIRS_AGAIN = "'reframe -c checks/pairs.py -r'"

CAUSES: tuple[Cause, ...] = (
    Cause(
        CauseName.NODE_DIED,
        "{place}: the node died under a job, which Slurm requeued",
        rules.signs(Sign.DIED),
        "see 'scontrol show node {node}', its console and 'last reboot', and run the whole test"
        " again once it is back",
        "a run in which {node} keeps its job to the end",
        explains=frozenset(CauseName) - {CauseName.NODE_DIED},
        of_network=False,
    ),
    Cause(
        CauseName.LINK_DOWN,
        "{place}: the link is down",
        rules.signs(Sign.NO_CARRIER),
        "check cable, transceiver and the switch's port of {node}, bring the link up, and run"
        f" {PAIRS_AGAIN}",
        "'ip link show' on {node} with LOWER_UP",
        explains=frozenset(CauseName) - {CauseName.LINK_DOWN},
    ),
    Cause(
        CauseName.LINK_FLAPPED,
        "{place}: the link went down and came back while it was measured",
        rules.signs(Sign.CARRIER_CHANGED),
        "look at 'dmesg' of {node} and the log of its switch port, and swap cable and transceiver",
        "a run without carrier changes on {node}",
        explains=_EFFECTS | {CauseName.OVERSUBSCRIBED},
    ),
    Cause(
        CauseName.OTHER_NETWORK,
        "MPI of {place}: messages went over {detail}",
        rules.signs(Sign.OTHER_PATH),
        "set the interface that MPI uses (FI_TCP_IFACE, OMPI_MCA_btl_tcp_if_include,"
        " UCX_NET_DEVICES) and see what names resolve to",
        "a run in which the interface under test counts what was sent",
        explains=frozenset({CauseName.ENVIRONMENT}),
    ),
    Cause(
        CauseName.MTU,
        "{place}: the MTU differs, or its packets do not come through",
        rules.linked(Sign.MTU),
        "compare 'ip link show' of {node} with the others and its switch port, set the MTU, and run"
        f" {PAIRS_AGAIN}",
        "'ping -M do' with the largest payload from {node} and to it",
        explains=_EFFECTS,
    ),
    Cause(
        CauseName.NO_TCP,
        "{place}: {detail}",
        rules.linked(Sign.NO_TCP),
        "look at 'nft list ruleset', 'iptables -S', firewalld ('firewall-cmd --list-all') and"
        " 'ip route' of {node}, let all TCP of the partition's nodes pass, see by 'arping' from"
        " another node whether two machines answer for one address, and run"
        f" {PAIRS_AGAIN}",
        "TCP connections to {node} and from it that are taken or refused at once",
        explains=_EFFECTS,
    ),
    Cause(
        CauseName.LINK_SETTING,
        "{place}: link rate or duplex is not that of the others",
        rules.signs(Sign.LINK),
        "see 'ethtool' on {node} and its switch port, negotiate again, and swap the cable",
        "'ethtool' on {node} with the others' rate and full duplex",
        explains=_EFFECTS,
    ),
    Cause(
        CauseName.SETTING,
        "{place}: {detail} differs",
        rules.setting,
        f"set it on {{node}} as on the others, or list it in 'may_differ', and run {PAIRS_AGAIN}",
        "the same setting on all nodes, and the same figures",
        alike=_EFFECTS | {CauseName.CPU_TAKEN},
        distinguish_by=f"set it as on the other nodes and run {PAIRS_AGAIN}",
        of_network=False,
    ),
    Cause(
        CauseName.CPU_TAKEN,
        "{place}: something else takes the CPUs",
        rules.signs(Sign.CPU),
        "see 'top' on {node}, end what does not belong there, and measure again",
        "a run on {node} in which nothing else uses its CPUs and that is as slow",
        alike=_EFFECTS,
        distinguish_by=f"measure again while nothing else runs there: {PAIRS_AGAIN}",
        of_network=False,
    ),
    Cause(
        CauseName.LOSS,
        "{place}: packets are lost",
        rules.loss,
        "check the cable of {node} and the counters of both ends ('ethtool -S', the switch's port),"
        f" swap ports and run {PAIRS_AGAIN}",
        "as many segments sent again by the other nodes",
        alike=_SLOWER,
        distinguish_by="read the switch port's error and discard counters: a port that is only slow"
        " discards, a bad cable damages",
    ),
    Cause(
        CauseName.CRASHES,
        "{place}: launches die there",
        rules.crashes,
        "look at 'dmesg' and the memory of {node}, and run the launch again without it",
        "launches that die on other nodes as well",
        of_network=False,
    ),
    Cause(
        CauseName.ONE_DIRECTION,
        "{place}: slow in one direction, what it {detail}",
        rules.signs(Sign.ONE_WAY),
        "look at the counters of both ends of the cable of {node} for that direction, swap the"
        f" transceiver and run {PAIRS_AGAIN}",
        "streams in both directions at the same rate",
        explains=frozenset({CauseName.SLOW_PORT}),
    ),
    Cause(
        CauseName.SLOW_PORT,
        "{place}: slower than the others: {detail}",
        rules.accused(Kind.NODE),
        "see 'ethtool' and 'ethtool -S' on {node}, check its cable, swap ports and run"
        f" {PAIRS_AGAIN}",
        "the slowness staying with the switch's port and not with {node} after a swap",
    ),
    Cause(
        CauseName.OVERSUBSCRIBED,
        "{place}: slower than the others while all send, and recovers alone: {detail}",
        rules.accused(*Kind, recovers=True),
        "look at the rate, the members and the load of the uplinks that {node} shares, and run"
        " 'reframe -c checks/pairs.py -S mode=paths -r'",
        "the same rate while all other nodes are silent",
    ),
    Cause(
        CauseName.SLOW_UPLINK,
        "{place}: slower than the others: {detail}",
        rules.slow_uplink,
        "check rate, cable and counters of both ends of that uplink and its members, and run"
        " 'reframe -c checks/pairs.py -S mode=paths -r'",
        "nodes below it that are slow among themselves too",
    ),
    Cause(
        CauseName.PAIR_ONLY,
        "{place}: slow only with each other: {detail}",
        rules.accused(Kind.PAIR),
        "compare the route, the ARP entries and the switch's hashing between the two, and measure"
        " the pair's whole curve",
        "either node slow with a third one",
    ),
    Cause(
        CauseName.ENVIRONMENT,
        "{place}: only this MPI environment is red",
        rules.environment,
        "look at what its library says of its transport ('netproof verdict --all'), its settings"
        " and its version",
        "the same cases red with another environment",
        residual=True,
    ),
    Cause(
        CauseName.WHOLE,
        "{place}, as a whole{detail}",
        rules.whole,
        "look at the switch's buffers, flow control and discard counters of all ports, and compare"
        " with another switch: 'netproof compare'",
        "one node, or one environment, that alone is red",
        residual=True,
    ),
    Cause(
        CauseName.ONE_OR_TWO,
        "{detail}",
        rules.one_or_two,
        "measure the red cases between each of {node} and a third node, or let rounds of pairs"
        " judge what is red ('quantities'); then swap cables and ports one at a time",
        "the same cases red between other nodes",
        residual=True,
    ),
    Cause(
        CauseName.UNEXPLAINED,
        "{place}: {detail} that nothing here explains",
        rules.unexplained,
        "read the reasons: 'netproof verdict --all' has all of them",
        "",
        residual=True,
        of_network=False,
    ),
)
"""All causes, most specific first."""

BY_NAME = {cause.name: cause for cause in CAUSES}


_STOPS_JOBS = (
    CauseName.LINK_DOWN,
    CauseName.LINK_FLAPPED,
    CauseName.MTU,
    CauseName.NO_TCP,
    CauseName.CRASHES,
)
"""Causes that make jobs fail."""


def find_culprits(seen: PartitionView) -> tuple[Culprit, ...]:
    """Return the culprits of a partition, worst first, one for each place."""
    merged = _merged([one for cause in CAUSES if not cause.residual for one in _by(cause, seen)])
    culprits = [replace(one, red=_explained(one, seen.red)) for one in merged]
    left = copy.copy(seen)
    if any(one.cause in _STOPS_JOBS for one in culprits):
        left.failed_jobs = ()
    left.red = _without(seen.red, culprits)
    for cause in CAUSES:
        if cause.residual:
            found = list(_by(cause, left))
            culprits += found
            left.red = _without(left.red, found)
    return tuple(sorted(culprits, key=_badness))


def _by(cause: Cause, seen: PartitionView) -> Iterator[Culprit]:
    """Yield what the rule of a cause finds, with its sentences."""
    for found in cause.rule(seen):
        place = found.place
        shown = str(place) if place.kind is not PlaceKind.ENVIRONMENT else place.name
        if place.kind is PlaceKind.SETTING:
            shown = fold(place.nodes)
        node = ", ".join(place.nodes) if 0 < len(place.nodes) <= 2 else place.name
        yield replace(
            found,
            cause=cause.name,
            headline=cause.headline.format(place=shown, detail=found.detail),
            advice=cause.advice.format(node=node),
            rules_out=cause.rules_out.format(node=node),
        )


def _merged(culprits: Sequence[Culprit]) -> list[Culprit]:
    """Return the most specific culprit of each place, the others as evidence or alternatives."""
    merged: list[Culprit] = []
    for one in culprits:
        several = [other for other in merged if other.covers(one)]
        explaining = next((o for o in several if one.cause in BY_NAME[o.cause].explains), None)
        alike = next((o for o in several if one.cause in BY_NAME[o.cause].alike), None)
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
                distinguish_by=other.distinguish_by or BY_NAME[other.cause].distinguish_by,
            )
        merged = [whole if each is other else each for each in merged]
    return merged


def _without(red: Sequence[RedCase], culprits: Sequence[Culprit]) -> tuple[RedCase, ...]:
    explained = {id(one) for culprit in culprits for one in culprit.red}
    return tuple(one for one in red if id(one) not in explained)


def _explained(culprit: Culprit, red: Sequence[RedCase]) -> tuple[RedCase, ...]:
    """Return the red cases that a culprit explains: for a setting none if others are red too."""
    if culprit.cause is CauseName.OTHER_NETWORK:
        environments = culprit.place.environments
        return tuple(one for one in red if one.case.environment in environments)
    mine = tuple(one for one in red if _touches(culprit, one))
    outside = any(one.of_network and not _touches(culprit, one) for one in red)
    return () if culprit.cause is CauseName.SETTING and outside else mine


def _touches(culprit: Culprit, red: RedCase) -> bool:
    if BY_NAME[culprit.cause].of_network and red.measured and not red.of_network:
        return False
    if not red.nodes:
        return culprit.cause in _STOPS_JOBS
    nodes = {*culprit.place.nodes} & {*red.nodes}
    return len(nodes) > 1 if culprit.place.kind is PlaceKind.PAIR else bool(nodes)


def _badness(culprit: Culprit) -> tuple[int, int, int]:
    """Return the sort key: no traffic first, then slowness, then mere differences; then cause."""
    name = culprit.cause
    if name in (CauseName.NODE_DIED, CauseName.LINK_DOWN, CauseName.OTHER_NETWORK):
        harm = 0
    elif name is CauseName.UNEXPLAINED:
        harm = 3
    else:
        harmless = name is CauseName.SETTING and not (culprit.alternatives or culprit.red)
        harm = 2 if harmless else 1
    return harm, list(BY_NAME).index(name), -len(culprit.red)
