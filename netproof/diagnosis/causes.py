"""Possible causes, most specific first: evidence, advice, and what would rule each out.

A cause is an entry of ``CAUSES``. Its rule examines the evidence of a partition and yields a
``Found`` for each place. ``culprits`` merges those of one place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from netproof.diagnosis.evidence import Collected
from netproof.diagnosis.evidence_for import (
    CauseName,
    Found,
    cpu_taken,
    crashes,
    environment,
    link_down,
    link_flapped,
    link_setting,
    loss,
    mtu,
    no_tcp,
    node_died,
    one_direction,
    one_or_two,
    other_network,
    oversubscribed,
    pair_only,
    setting,
    slow_port,
    slow_uplink,
    unexplained,
    whole,
)


@dataclass(frozen=True)
class Cause:
    """A possible cause of a fault.

    ``headline``: with ``{place}`` and ``{detail}``; ``rule``: the function that finds it;
    ``advice``: the next step, and ``rules_out``: what would rule it out, a sentence each, with
    ``{node}``; ``explains``: causes at the same place that count as its evidence; ``alike``:
    causes at the same place that are as likely, so both are named; ``distinguish_by``: the
    measurement that distinguishes them; ``residual``: whether only red cases without another
    explanation are examined; ``of_network``: whether it leaves traffic within a node unaffected.
    """

    name: CauseName
    headline: str
    rule: Callable[[Collected], Iterable[Found]]
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
        node_died,
        "see 'scontrol show node {node}', its console and 'last reboot', and run the whole test"
        " again once it is back",
        "a run in which {node} keeps its job to the end",
        explains=frozenset(CauseName) - {CauseName.NODE_DIED},
        of_network=False,
    ),
    Cause(
        CauseName.LINK_DOWN,
        "{place}: the link is down",
        link_down,
        "check cable, transceiver and the switch's port of {node}, bring the link up, and run"
        f" {PAIRS_AGAIN}",
        "'ip link show' on {node} with LOWER_UP",
        explains=frozenset(CauseName) - {CauseName.LINK_DOWN},
    ),
    Cause(
        CauseName.LINK_FLAPPED,
        "{place}: the link went down and came back while it was measured",
        link_flapped,
        "look at 'dmesg' of {node} and the log of its switch port, and swap cable and transceiver",
        "a run without carrier changes on {node}",
        explains=_EFFECTS | {CauseName.OVERSUBSCRIBED},
    ),
    Cause(
        CauseName.OTHER_NETWORK,
        "MPI of {place}: messages went over {detail}",
        other_network,
        "set the interface that MPI uses (FI_TCP_IFACE, OMPI_MCA_btl_tcp_if_include,"
        " UCX_NET_DEVICES) and see what names resolve to",
        "a run in which the interface under test counts what was sent",
        explains=frozenset({CauseName.ENVIRONMENT}),
    ),
    Cause(
        CauseName.MTU,
        "{place}: the MTU differs, or its packets do not come through",
        mtu,
        "compare 'ip link show' of {node} with the others and its switch port, set the MTU, and run"
        f" {PAIRS_AGAIN}",
        "'ping -M do' with the largest payload from {node} and to it",
        explains=_EFFECTS,
    ),
    Cause(
        CauseName.NO_TCP,
        "{place}: {detail}",
        no_tcp,
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
        link_setting,
        "see 'ethtool' on {node} and its switch port, negotiate again, and swap the cable",
        "'ethtool' on {node} with the others' rate and full duplex",
        explains=_EFFECTS,
    ),
    Cause(
        CauseName.SETTING,
        "{place}: {detail} differs",
        setting,
        f"set it on {{node}} as on the others, or list it in 'may_differ', and run {PAIRS_AGAIN}",
        "the same setting on all nodes, and the same figures",
        alike=_EFFECTS | {CauseName.CPU_TAKEN},
        distinguish_by=f"set it as on the other nodes and run {PAIRS_AGAIN}",
        of_network=False,
    ),
    Cause(
        CauseName.CPU_TAKEN,
        "{place}: something else takes the CPUs",
        cpu_taken,
        "see 'top' on {node}, end what does not belong there, and measure again",
        "a run on {node} in which nothing else uses its CPUs and that is as slow",
        alike=_EFFECTS,
        distinguish_by=f"measure again while nothing else runs there: {PAIRS_AGAIN}",
        of_network=False,
    ),
    Cause(
        CauseName.LOSS,
        "{place}: packets are lost",
        loss,
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
        crashes,
        "look at 'dmesg' and the memory of {node}, and run the launch again without it",
        "launches that die on other nodes as well",
        of_network=False,
    ),
    Cause(
        CauseName.ONE_DIRECTION,
        "{place}: slow in one direction, what it {detail}",
        one_direction,
        "look at the counters of both ends of the cable of {node} for that direction, swap the"
        f" transceiver and run {PAIRS_AGAIN}",
        "streams in both directions at the same rate",
        explains=frozenset({CauseName.SLOW_PORT}),
    ),
    Cause(
        CauseName.SLOW_PORT,
        "{place}: slower than the others: {detail}",
        slow_port,
        "see 'ethtool' and 'ethtool -S' on {node}, check its cable, swap ports and run"
        f" {PAIRS_AGAIN}",
        "the slowness staying with the switch's port and not with {node} after a swap",
    ),
    Cause(
        CauseName.OVERSUBSCRIBED,
        "{place}: slower than the others while all send, and recovers alone: {detail}",
        oversubscribed,
        "look at the rate, the members and the load of the uplinks that {node} shares, and run"
        " 'reframe -c checks/pairs.py -S mode=paths -r'",
        "the same rate while all other nodes are silent",
    ),
    Cause(
        CauseName.SLOW_UPLINK,
        "{place}: slower than the others: {detail}",
        slow_uplink,
        "check rate, cable and counters of both ends of that uplink and its members, and run"
        " 'reframe -c checks/pairs.py -S mode=paths -r'",
        "nodes below it that are slow among themselves too",
    ),
    Cause(
        CauseName.PAIR_ONLY,
        "{place}: slow only with each other: {detail}",
        pair_only,
        "compare the route, the ARP entries and the switch's hashing between the two, and measure"
        " the pair's whole curve",
        "either node slow with a third one",
    ),
    Cause(
        CauseName.ENVIRONMENT,
        "{place}: only this MPI environment is red",
        environment,
        "look at what its library says of its transport ('netproof show'), its settings and its"
        " version",
        "the same cases red with another environment",
        residual=True,
    ),
    Cause(
        CauseName.WHOLE,
        "{place}, as a whole{detail}",
        whole,
        "look at the switch's buffers, flow control and discard counters of all ports, and compare"
        " with another switch: 'netproof compare'",
        "one node, or one environment, that alone is red",
        residual=True,
    ),
    Cause(
        CauseName.ONE_OR_TWO,
        "{detail}",
        one_or_two,
        "measure the red cases between each of {node} and a third node, or let rounds of pairs"
        " judge what is red ('quantities'); then swap cables and ports one at a time",
        "the same cases red between other nodes",
        residual=True,
    ),
    Cause(
        CauseName.UNEXPLAINED,
        "{place}: {detail} that nothing here explains",
        unexplained,
        "read the reasons: 'netproof verdict' has all of them",
        "",
        residual=True,
        of_network=False,
    ),
)
"""All causes, most specific first."""

BY_NAME = {cause.name: cause for cause in CAUSES}
