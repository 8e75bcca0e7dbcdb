"""Nodes that are not the same, or not what the site says, are named, each fault in a sentence."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from made_nodes import GIGE, SOFTWARE, changed, in_job

from netproof.criteria import Level
from netproof.session import node_facts
from netproof.session.node_facts import Node
from netproof.site import site
from netproof.site.matrix import matrix
from netproof.site.partition import FACTS, Partition
from netproof.verdict import nodes
from netproof.verdict.nodes import NodeFinding, NodeFindingKind

ROOT = Path(__file__).resolve().parents[3]
SITE = matrix(site.gather(ROOT / "site-config"), "testbed").partitions["gige"]


def with_changed(*names: str, **values: Any) -> list[Node]:
    """The recorded job with these nodes changed."""
    return [changed(one, **values) if one.node in names else one for one in in_job()]


def judged(found: Iterable[Node], site: Partition = SITE) -> tuple[NodeFinding, ...]:
    """Return the findings on these nodes."""
    made = dataclasses.replace(SOFTWARE, nodes=tuple(found))
    return nodes.judge(made, {"gige": site})


def sentences(found: Iterable[Node], site: Partition = SITE) -> list[str]:
    return [one.why for one in judged(found, site)]


def test_a_site_may_let_each_fact_that_is_judged_differ_by_its_name():
    judged_as = ({*node_facts.NAMES} - {*node_facts.OF_ITS_OWN, "interface"}) | {
        "clock",
        "path",
        "tcp",
    }
    assert {*FACTS} == judged_as


def test_nodes_that_are_alike_and_as_the_site_says_have_no_finding():
    assert judged(in_job()) == ()
    assert judged([*in_job(), *in_job("same", "8", "openmpi4")]) == ()


def test_another_mtu_is_one_sentence_with_what_it_does_to_packets():
    (found,) = judged(in_job("differ"))
    assert str(found) == (
        "gige: gige-2: MTU 1400, 3 others 1500, as the site's file says;"
        " packets from gige-1 of 1500 bytes do not come through to it"
    )
    assert (found.level, found.kind) == (Level.FAIL, NodeFindingKind.DECLARED)
    assert (found.nodes, found.value, found.others) == (("gige-2",), "1400", "1500")


SACK_OFF = {"sysctls": {"net.ipv4.tcp_sack": "0"}}


@pytest.mark.parametrize(
    ("names", "values", "sentence"),
    [
        (["gige-3"], SACK_OFF, "gige-3: sysctl net.ipv4.tcp_sack = 0, 3 others 1"),
        (["gige-1"], {"kernel": "6.1"}, "gige-1: kernel 6.1, 3 others 6.18.44-fc-v657 #1 SMP"),
        (GIGE, {"duplex": "Half"}, "gige-[1-4]: duplex Half"),
        (["gige-4"], {"state": "no carrier"}, "gige-4: interface eth1 no carrier, 3 others up"),
        (["gige-2"], {"memory": {"total KiB": "12342046"}}, "gige-2: memory 11.77 GiB, 3 others"),
        (["gige-2"], {"memory": {"total KiB": "much"}}, "gige-2: memory much, 3 others 23.54"),
        (["gige-4"], {"clock_ntp_offset_s": -2.5}, "gige-4: clock 2.5 s off, by what keeps it"),
        (["gige-3"], {"path_passed_bytes": 84}, "gige-3 to gige-4: packets of 1500 bytes do not"),
        (["gige-2"], {"programs": {"NPtcp": f"{'0' * 64} /x"}}, "gige-2: program NPtcp 0000"),
        (GIGE[:2], {"governor": "powersave"}, "gige-[3-4]: governor not known (the kernel sets"),
        (GIGE[2:], {"hugepages": "always"}, "transparent hugepages differs: gige-[3-4] always, "),
    ],
)
def test_the_few_are_compared_with_the_many(names, values, sentence):
    (found,) = sentences(with_changed(*names, **values))
    assert found.startswith(sentence)


def test_two_nodes_that_differ_are_both_named():
    first, second = in_job()[:2]
    (found,) = judged([first, changed(second, **SACK_OFF)])
    assert found.why == "sysctl net.ipv4.tcp_sack differs: gige-2 0, gige-1 1"
    assert (found.kind, found.nodes) == (NodeFindingKind.NO_MAJORITY, ("gige-1", "gige-2"))


def without(why: str, *names: str, nodes: tuple[str, ...] = ("gige-3",)) -> list[Node]:
    """The recorded job, in which these facts of some nodes are absent for one reason."""
    empty = {name: {} if name in ("offloads", "coalescing") else None for name in names}
    return [
        dataclasses.replace(one, **empty, absent={**one.absent, **dict.fromkeys(names, why)})
        if one.node in nodes
        else one
        for one in in_job()
    ]


INTERFACE = ("state", "mtu", "address", "link_mbit_s", "duplex", "autonegotiation", "driver")


ETHTOOL = ("driver", "duplex", "offloads", "driver_version", "autonegotiation")
OF_ETH1 = (*INTERFACE, "offloads", "coalescing", "path_passed_bytes")


@pytest.mark.parametrize(
    ("absent", "level", "sentence"),
    [
        (without("no ethtool", "driver"), Level.WARN, "gige-3: driver not known (no ethtool), "),
        (
            without("no ethtool", *ETHTOOL),
            Level.WARN,
            "gige-3: driver, driver version, duplex and 2 more not known (no ethtool), known on 3",
        ),
        (without("no eth1", *OF_ETH1), Level.FAIL, "gige-3: interface eth1 not known (no eth1)"),
        (
            without("no answer", "path_passed_bytes"),
            Level.WARN,
            "gige-3 to gige-4: whether packets of the MTU come through not known (no answer)",
        ),
        # What no node knows, but for what the site states.
        (without("no ping", "path_passed_bytes", "kernel", nodes=GIGE), None, ""),
        (without("Unknown!", "link_mbit_s", nodes=GIGE), Level.WARN, "gige-[1-4]: link rate in "),
    ],
)
def test_what_others_know_of_themselves_is_missed_in_one_sentence(absent, level, sentence):
    found = judged(absent, SITE.model_copy(update={"may_differ": {}}))
    found = [one for one in found if "the site's file says 1000" not in one.why]
    assert [one.level for one in found] == ([level] if level else [])
    assert all(one.why.startswith(sentence) for one in found)


@pytest.mark.parametrize(
    ("nodes", "site", "expected"),
    [
        (in_job(), {"mtu": 9000}, ["gige-[1-4]: MTU 1500, the site's file says 9000"]),
        (
            in_job(),
            {"may_differ": {}},
            ["gige-[1-4]: link rate in Mbit/s 10000, the site's file says 1000"],
        ),
        (
            with_changed("gige-3", **SACK_OFF, cpus=1),
            {"may_differ": {"sysctls net.ipv4.tcp_sack": "a trial", **SITE.may_differ}},
            ["gige-3: number of CPUs 1, 3 others 2"],
        ),
        (with_changed("gige-4", clock_ntp_offset_s=-2.5), {"clock_offset_ms": 3000}, []),
    ],
)
def test_a_site_says_what_is_right_and_what_may_differ(nodes, site, expected):
    assert sentences(nodes, SITE.model_copy(update=site)) == expected


def in_two_jobs(before: dict[str, Any], after: dict[str, Any]) -> list[list[Node]]:
    """The recorded job twice, its nodes changed before and after."""
    return [
        [changed(one, **values) for one in in_job("same", jobid)]
        for jobid, values in (("9", before), ("10", after))
    ]


def test_a_node_that_changes_within_the_session_is_named_with_the_jobs():
    later = [changed(one, cpus=1) if one.node == "gige-2" else one for one in in_job("same", "10")]
    (found,) = judged([*later, *in_job("same", "9")])
    assert found.why == "gige-2: number of CPUs 2 in job 9, 1 in job 10"
    assert found.kind is NodeFindingKind.CHANGED
    # Memory that changes fails nothing, and a tenth of a GiB is what a virtual machine gives back.
    kibs = ("7563379", "9136242", str(7563379 - 2**20 // 10))
    much, more, less = ({"memory": {"NUMA 0 KiB": kib}} for kib in kibs)
    before, after = in_two_jobs(much, less)
    assert judged([*before, *after]) == ()
    assert node_facts.between(before, after) == {}
    before, after = in_two_jobs(much, more)
    (found,) = judged([*before, *after])
    assert found.why == "gige-[1-4]: memory NUMA 0 7.213 GiB in job 9, 8.713 GiB in job 10"
    assert (found.kind, found.level) == (NodeFindingKind.CHANGED, Level.WARN)


@pytest.mark.parametrize(("share", "differs"), [(0.04, False), (0.06, True), (0.5, True)])
@pytest.mark.parametrize("key", ["total KiB", "NUMA 0 KiB"])
def test_memory_differs_between_nodes_from_a_twentieth_on(key, share, differs):
    kib = int(in_job()[0].memory[key])
    other = with_changed("gige-2", memory={key: str(int(kib * (1 - share)))})
    assert bool(sentences(other)) is differs
    assert bool(node_facts.differences(other)) is differs


def test_rates_that_a_card_adapts_are_of_the_moment():
    adaptive = {"Adaptive RX": "on TX: off", "rx-usecs": "8", "tx-usecs": "16"}
    others = {**adaptive, "rx-usecs": "64"}
    alike = [changed(one, coalescing=adaptive) for one in in_job()]
    assert sentences([*alike[:3], changed(alike[3], coalescing=others)]) == []
    fixed = [changed(one, coalescing={"Adaptive RX": "off TX: off"}) for one in alike]
    assert sentences([*fixed[:3], changed(fixed[3], coalescing={"rx-usecs": "64"})]) == [
        "gige-4: coalescing rx-usecs 64, 3 others 8"
    ]


def test_many_keys_in_which_the_same_nodes_differ_are_one_sentence():
    offloads = {name: "off" for name in list(in_job()[0].offloads)[:40]}
    alike = [changed(one, offloads=dict.fromkeys(offloads, "on")) for one in in_job()]
    (found,) = judged(
        [*alike[:2], *(changed(one, offloads=offloads) for one in alike[2:3]), alike[3]]
    )
    assert found.why == (
        "gige-3: 40 offloads differ: offload generic-receive-offload off, 3 others on;"
        " offload generic-segmentation-offload off, 3 others on; and 38 more"
    )
    assert found.fact == "offloads"


def in_ring(
    *silent: tuple[str, str], nodes: tuple[str, ...] = GIGE, jobid: str = "7"
) -> list[Node]:
    """The recorded job, whose neighbours answer one another but for these, source and target."""
    several = []
    for place, one in enumerate(in_job("same", jobid)[: len(nodes)]):
        others = dict.fromkeys((nodes[(place + 1) % len(nodes)], nodes[place - 1]))
        unanswered = [other for other in others if (nodes[place], other) in silent]
        answered = [other for other in others if other not in unanswered]
        heard = {
            "tcp_answered": ",".join(answered) or "none",
            "tcp_unanswered": ",".join(unanswered) or "none",
        }
        several.append(changed(one, path_to=nodes[(place + 1) % len(nodes)], **heard))
    return several


TO_2 = (("gige-1", "gige-2"), ("gige-3", "gige-2"))
FROM_2 = (("gige-2", "gige-1"), ("gige-2", "gige-3"))
ONE_WAY = (("gige-2", "gige-1"),)


@pytest.mark.parametrize(
    ("silent", "named", "why"),
    [
        (TO_2, ["gige-2"], "gige-2: answers no TCP connection of gige-1 and gige-3, and"),
        (FROM_2, ["gige-2"], "gige-2: gets no answer to TCP connections, of gige-1 and gige-3, "),
        ((*TO_2, *FROM_2), ["gige-2"], "gige-3, gets no answer of gige-1 and gige-3 either, "),
        # All answer one another, or nobody anybody.
        ((), [], ""),
        (tuple(itertools.permutations(GIGE, 2)), [], ""),
        # Two nodes that both have others.
        (ONE_WAY, ["gige-2", "gige-1"], "are not answered, and gige-1 answers others"),
    ],
)
def test_a_node_that_answers_no_neighbour_or_that_none_answers_is_named(silent, named, why):
    found = judged(in_ring(*silent))
    assert [[*one.nodes] for one in found] == [named] * bool(named)
    assert all(why in one.why for one in found)
    assert {(one.level, one.kind, one.fact) for one in found} <= {
        (Level.FAIL, NodeFindingKind.TCP, "tcp")
    }


def test_of_two_nodes_alone_that_do_not_answer_both_are_named():
    (found,) = judged(in_ring(("gige-1", "gige-2"), nodes=GIGE[:2]))
    assert found.nodes == ("gige-2",)
    assert found.why.endswith(
        ": look for a firewall on eth1 there, or on gige-1, which no other node answered"
    )


def test_connections_that_are_answered_in_some_jobs_warn():
    (found,) = judged([*in_ring(*TO_2), *in_ring(jobid="8")])
    assert found.why == (
        "gige-2: does not answer TCP connections of gige-1 in 1 of 2 jobs, of gige-3 in 1 of 2 jobs"
    )
    assert (found.nodes, found.level) == (("gige-2",), Level.WARN)
    (found,) = judged([*in_ring(TO_2[0]), *in_ring(jobid="8"), *in_ring(jobid="9")])
    assert found.why == "gige-1 to gige-2: TCP connections are not answered in 1 of 3 jobs"
    assert (found.nodes, found.level) == (("gige-1", "gige-2"), Level.WARN)


def test_packets_that_came_through_in_some_jobs_warn():
    (found,) = judged([*in_job("same", "8"), *with_changed("gige-3", path_passed_bytes=84)])
    assert found.why.endswith("; so it was in 1 of 2 jobs")
    assert (found.nodes, found.level) == (("gige-3", "gige-4"), Level.WARN)


def test_a_node_that_is_down_and_what_a_site_lets_differ_are_no_finding_over_tcp():
    down = [
        changed(one, state="down") if one.node == "gige-2" else one
        for one in in_ring(*TO_2, *FROM_2)
    ]
    assert [one.fact for one in judged(down)] == ["state"]
    site = SITE.model_copy(update={"may_differ": {"tcp": "a login node", **SITE.may_differ}})
    assert judged(in_ring(*TO_2), site) == ()


def ahead(by: Callable[[int], float]) -> list[Node]:
    """The recorded job with the clocks of its nodes ahead by so many seconds, by their number."""
    return [
        changed(one, clock_ahead_from_s=by(number) - 0.9, clock_ahead_to_s=by(number) + 0.1)
        for number, one in enumerate(in_job(), 1)
    ]


def test_clocks_that_are_certainly_apart_fail():
    assert sentences(ahead(lambda number: 1.5 if number == 2 else 0)) == []
    assert sentences(ahead(lambda number: -13 if number == 2 else 0)) == [
        "gige-2: clock at least 12.9 s behind that of most others"
    ]
    # The first node's own is the one that is off.
    assert sentences(ahead(lambda number: 0 if number == 1 else -13)) == [
        "gige-1: clock at least 12.9 s ahead of that of most others"
    ]
    assert sentences(ahead(lambda number: 13 if number == 2 else 0)[:2]) == [
        "clock differs: gige-2 is at least 12.1 s ahead of the first node of its job"
    ]


PCI = {"width": "16", "maximum width": "16", "speed": "16.0 GT/s PCIe"}


def test_a_card_in_a_slot_that_slows_it_fails_alone_and_warns_where_all_are():
    cards = [changed(one, pci=PCI | {"maximum speed": "16.0 GT/s PCIe"}) for one in in_job()]
    narrow = changed(cards[1], pci={"width": "8"})
    (found,) = judged([narrow, *cards[2:]])
    assert found.why == "gige-2: PCI width 8, 2 others 16"
    assert found.level is Level.FAIL
    (found,) = judged([changed(one, pci={"speed": "8.0 GT/s PCIe"}) for one in cards])
    assert found.why == "gige-[1-4]: PCI speed 8.0 GT/s PCIe, the card can 16.0 GT/s PCIe"
    assert (found.level, found.kind) == (Level.WARN, NodeFindingKind.BELOW_MAXIMUM)


def test_programs_may_differ_between_environments():
    other = [
        changed(one, programs={"NPmpi": f"{'1' * 64} /elsewhere/NPmpi"})
        for one in in_job("same", "8", "openmpi4")
    ]
    assert judged([*in_job(), *other]) == ()
    (found,) = judged([*in_job(), *other[:3], changed(other[3], programs={"NPmpi": "2 /else"})])
    assert str(found) == "gige openmpi4: gige-4: program NPmpi 2, 3 others 111111111111"
