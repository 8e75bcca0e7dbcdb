"""Each cause is named with its place where its evidence is there, once, and nobody else is."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from datetime import datetime

import pytest
from made_sessions import (
    BUSY,
    NODES,
    accusing,
    few,
    in_job,
    judged_case,
    rounds,
    sending_again,
    session_of,
    site,
    strict,
    subject,
    unmeasured,
    with_waits,
)

from netproof.criteria import Finding, Level
from netproof.criteria.findings import undefined
from netproof.diagnosis.causes import RULES, TEXTS
from netproof.diagnosis.diagnosis import (
    INCONCLUSIVE,
    NOTHING_WRONG,
    SOMETHING_WRONG,
    Diagnosis,
    DiagnosisOutcome,
    diagnose,
    status,
)
from netproof.diagnosis.evidence import Began, Culprit, PlaceKind, Sure
from netproof.errors import NetproofError
from netproof.measurement.case import Curve
from netproof.measurement.disturbance import NodeLoad
from netproof.pairs.accusation import State
from netproof.pairs.alone import Recovery
from netproof.pairs.model import Kind
from netproof.pairs.verdict import PairsVerdict, judge, path_of_rounds
from netproof.session import provenance
from netproof.session.measured import Launch, Measured
from netproof.session.node_facts import Node
from netproof.verdict import PASSED, limits
from netproof.verdict.confirmations import LaunchCount
from netproof.verdict.engine import Subject
from netproof.verdict.judge import FAILED_TEST
from netproof.verdict.limits import Limits
from netproof.verdict.session_verdict import JudgedSession
from netproof.verdict.verdict import CaseVerdict


def of(**parts) -> Diagnosis:
    (found,) = diagnose(session_of(**parts))
    return found


def only(**parts) -> Culprit:
    """The only culprit of such a session."""
    (culprit,) = of(**parts).culprits
    return culprit


def healthy(**others) -> dict:
    usual = {"cases": [judged_case(subject())], "of_pairs": [rounds()], "described": in_job()}
    return usual | others


def failed_test(name: str, why: str) -> Finding:
    return Finding(FAILED_TEST, Level.FAIL, f"testbed:gige mpich {name}", why)


def test_every_cause_has_a_rule_an_advice_and_its_place_in_the_order():
    assert [*RULES] == [*TEXTS]
    assert all(texts["advice"] and texts["headline"] for texts in TEXTS.values())


BELOW_A_DOUBLING = (
    "whether the latency of pairs differs by less than 2 times: the site clears nodes by the rate"
    " alone ('quantities')"
)


NOT_COUNTED = "what interfaces counted: it was not recorded"


def not_counted() -> dict:
    one = subject()
    launches = tuple(dataclasses.replace(each, counters=None) for each in one.measured.launches)
    measured = dataclasses.replace(one.measured, launches=launches)
    return {"cases": [judged_case(dataclasses.replace(one, measured=measured))]}


def rate_alone() -> dict:
    one = rounds()
    nodes = {
        name: dataclasses.replace(node, effects=[e for e in node.effects if e.quantity == "rate"])
        for name, node in one.judgement.nodes.items()
    }
    judgement = dataclasses.replace(one.judgement, nodes=nodes)
    return {"of_pairs": [dataclasses.replace(one, judgement=judgement)]}


def unknown_path() -> dict:
    (one,) = healthy()["cases"]
    others = [each for each in one.findings if each.criterion != "path"]
    unknown = undefined("path", str(one.case), "no counter")
    return {"cases": [dataclasses.replace(one, findings=(*others, unknown))]}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (not_counted, NOT_COUNTED),
        (rate_alone, "whether the latency of pairs of mpich differs"),
        (unknown_path, "the path of messages of mpich: no counter"),
    ],
)
def test_what_was_to_be_judged_and_could_not_be_makes_nothing_wrong_impossible(change, why):
    found = of(**healthy(**change()))
    assert (found.outcome, found.incomplete) == (DiagnosisOutcome.INCONCLUSIVE, (why,))
    assert why in found.not_known


def test_a_healthy_session_accuses_nobody_and_says_what_was_ruled_out():
    found = of(**healthy())
    assert (found.outcome, found.culprits) == (DiagnosisOutcome.NOTHING, ())
    assert status([found]) == NOTHING_WRONG
    assert found.ruled_out == (
        "rounds of pairs clear gige-[1-4]",
        "no interface lost its carrier (2 interfaces)",
        "no segment was sent again (2 nodes)",
        "messages went over eth1 in 1 case",
        "4 nodes are alike in 130 facts",
    )
    assert found.not_known == (BELOW_A_DOUBLING,)


LEAVES = {"leaf1": NODES[:2], "leaf2": NODES[2:]}


def in_two_leaves(times: int, slow: float) -> PairsVerdict:
    """Rounds in which each pair is alone in its launch, slower across two leaves of two nodes."""
    recorded = rounds(times)

    def alone(number: int, pair: tuple[str, str], curve: Curve) -> Launch:
        factor = slow if (pair[0] in NODES[:2]) != (pair[1] in NODES[:2]) else 1.0
        curve = dataclasses.replace(curve, time_us=tuple(factor * one for one in curve.time_us))
        first = recorded.rounds.launches[0]
        return dataclasses.replace(
            first, number=number, round=number, pairs=(pair,), curves=(curve,)
        )

    every = [
        found
        for launch in recorded.rounds.launches
        for found in zip(launch.pairs, launch.curves, strict=True)
    ]
    launches = tuple(alone(number, *found) for number, found in enumerate(every, 1))
    tree = {"leaves": LEAVES, "parents": dict.fromkeys(LEAVES, "spine")}
    made = dataclasses.replace(recorded.rounds, launches=launches, **tree)
    return judge(made, site().pair_settings(), BUSY)


def test_pairs_alone_name_the_uplink_of_two_leaves_of_two_nodes():
    (culprit,) = of(**healthy(of_pairs=[in_two_leaves(2, 3.0)])).culprits
    assert (culprit.cause, culprit.place.name) == ("uplink or leaf slow", "uplink of leaf1")
    assert "uplink of leaf2" in culprit.alternatives
    assert not of(**healthy(of_pairs=[in_two_leaves(2, 1.0)])).culprits


def test_an_uplink_that_jobs_of_other_nodes_accuse_is_one_culprit():
    several = [in_two_leaves(times, 3.0) for times in (2, 3)]
    accused = dataclasses.replace(several[1].judgement.accusations[0], nodes=NODES[1:2])
    judgement = dataclasses.replace(several[1].judgement, accusations=(accused,))
    several[1] = dataclasses.replace(several[1], judgement=judgement)
    (culprit,) = of(**healthy(of_pairs=several)).culprits
    assert len(culprit.evidence) == 2


def test_with_too_few_pairs_alone_an_uplink_is_not_known_to_be_fine():
    found = of(**healthy(of_pairs=[in_two_leaves(1, 1.0)]))
    assert found.outcome is DiagnosisOutcome.INCONCLUSIVE
    assert any(one.startswith("whether an uplink is slow: ") for one in found.incomplete)


def test_packets_that_stop_between_two_leaves_alone_accuse_no_node_of_them():
    def without(**ends: str) -> list[Node]:
        stops = {"path_asked_bytes": 8972, "path_passed_bytes": 1472}
        changes = {node: {"path_to": to, **stops} for node, to in ends.items()}
        return in_job(**changes)

    across = without(gige_1="gige-3", gige_4="gige-2")
    (culprit,) = of(described=across, of_pairs=[in_two_leaves(2, 1.0)]).culprits
    assert culprit.cause == "MTU differs"
    assert str(culprit.place) == "what is between leaf1 and leaf2 (eth1)"
    one_node = without(gige_1="gige-3", gige_4="gige-1")
    found = of(described=one_node, of_pairs=[in_two_leaves(2, 1.0)]).culprits
    assert [one.place.kind for one in found] == [PlaceKind.PAIR] * 2


def test_nodes_that_were_in_no_job_together_are_not_known_with_each_other():
    jobs = [rounds(), rounds()]
    found = of(of_pairs=jobs)
    where = "rounds of pairs of mpich took 2"
    assert f"whether nodes of different jobs are slow with each other: {where}" in found.not_known
    assert not any("different jobs" in one for one in of(of_pairs=jobs[:1]).not_known)


def test_where_pairs_alone_were_measured_it_is_said_what_they_get():
    def get(**slow: float) -> float:
        not_counted, one, _ = of(**healthy(cases=[], of_pairs=[rounds(**slow)])).not_known
        assert not_counted == NOT_COUNTED
        found = re.search(r"slow alike: .* A pair of mpich gets ([\d.]+)% of the line rate", one)
        return float(found[1])

    every = dict.fromkeys(("gige_1", "gige_2", "gige_3", "gige_4"), 2.0)
    assert get(**every) == pytest.approx(get() / 2, rel=0.02)
    own = site().model_copy(update={"rdma": "infiniband"})
    rdma = {"partition": own, "not_over_tcp": ["mpich"]}
    over_rdma = of(**healthy(cases=[], of_pairs=[rounds()], **rdma))
    share = float(re.search(r"gets ([\d.]+)%", over_rdma.not_known[1])[1])
    assert share == pytest.approx(get() * (1448 / 1538) / (4096 / 4122), abs=0.1)
    assert not of(**healthy(cases=[], of_pairs=[rounds(**every)])).culprits


def test_two_environments_that_accuse_one_node_are_one_culprit_and_one_that_clears_it_is_told():
    one, clears = rounds(gige_3=2.0), rounds(environment="openmpi4")
    accuses = rounds(environment="openmpi4", gige_3=2.0)
    culprit = only(**healthy(of_pairs=[one, accuses]))
    assert [each.environment for each in culprit.evidence] == ["mpich", "openmpi4"]
    culprit = only(**healthy(of_pairs=[one, clears]))
    assert culprit.alternatives == ("only with mpich: other rounds clear it",)


def test_of_many_launches_that_failed_the_first_is_told():
    pairs = rounds()
    faults = tuple(f"pairs.{number} ended with status 143" for number in (1, 4, 5))
    failed = dataclasses.replace(pairs.rounds, faults=faults)
    found = of(**healthy(of_pairs=[dataclasses.replace(pairs, rounds=failed)]))
    assert found.incomplete == (
        "rounds of pairs of mpich have 3 faults, the first: pairs.1 ended with status 143",
    )


@pytest.mark.parametrize("state", ["no carrier", "down"])
def test_a_link_that_is_down_explains_what_failed_on_its_node(state):
    described = in_job(gige_2={"state": state})
    failed = [failed_test("Job", "did not end")]
    found = of(cases=[unmeasured()], described=described, failed_tests=failed)
    (culprit,) = found.culprits
    assert (culprit.cause, culprit.sure, culprit.consequences) == ("link down", Sure.SEEN, 1)
    assert (culprit.place.kind, culprit.place.nodes) == (PlaceKind.NODE, ("gige-2",))
    assert not any("carrier" in sentence for sentence in found.ruled_out)
    # Or of a case of which no node is known.
    one = unmeasured()
    there = dataclasses.replace(one.result, nodes=("login",))
    culprit = only(cases=[CaseVerdict.of(one.case, there, one.faults)], described=described)
    assert (culprit.cause, culprit.consequences) == ("link down", 1)


def test_packets_that_did_not_come_through_while_a_link_flapped_say_nothing_of_an_mtu():
    short = {"path_to": "gige-2", "path_asked_bytes": 1500, "path_passed_bytes": 84}
    described = in_job(gige_1=short)
    culprit = only(**healthy(described=described))
    assert (culprit.cause, culprit.place.kind) == ("MTU differs", PlaceKind.PAIR)
    culprit = only(cases=[judged_case(subject("carrier"))], described=described)
    assert culprit.cause == "link flapped"
    # An interface's own MTU is another matter.
    assert len(of(cases=[judged_case(subject("carrier"))], described=in_job("differ")).culprits) > 1


def test_rounds_of_pairs_over_another_network_name_its_interface_too():
    counters = subject("management", "mpi-inter-node-oneway").measured.launches[0].counters
    one = rounds()
    launches = [
        dataclasses.replace(launch, counters=counters, payload=110100240)
        for launch in one.rounds.launches
    ]
    made = dataclasses.replace(one.rounds, launches=tuple(launches))
    went = dataclasses.replace(one, rounds=made, path=path_of_rounds(made, site()))
    culprit = only(**healthy(of_pairs=[went], cases=[]))
    assert culprit.headline == "MPI of mpich: messages went over eth0"
    assert "in rounds of pairs of mpich messages went over eth0" in culprit.evidence[0].sentence


def test_another_mtu_explains_that_pairs_accuse_its_node_or_a_pair_with_it():
    culprit = only(**healthy(described=in_job("differ"), of_pairs=[rounds(gige_2=2.0)]))
    assert (culprit.cause, culprit.place.nodes) == ("MTU differs", ("gige-2",))
    assert [one.source for one in culprit.evidence] == ["host", "pairs"]
    accused = accusing(Kind.PAIR, "gige-1 – gige-2", NODES[:2])
    culprit = only(**healthy(described=in_job("differ"), of_pairs=[accused]))
    assert culprit.cause == "MTU differs"


RING = {
    "gige_1": {"tcp_answered": "gige-4", "tcp_unanswered": "gige-2"},
    "gige_2": {"tcp_answered": "gige-3,gige-1", "tcp_unanswered": "none"},
    "gige_3": {"tcp_answered": "gige-4", "tcp_unanswered": "gige-2"},
    "gige_4": {"tcp_answered": "gige-1,gige-3", "tcp_unanswered": "none"},
}
"""A ring whose second node has a firewall that drops requests for connections."""


def test_a_node_behind_a_firewall_explains_jobs_that_hang_and_nodes_that_answer_are_ruled_out():
    failed = [failed_test("Job", "did not end")]
    culprit = only(**healthy(cases=[unmeasured()], described=in_job(**RING), failed_tests=failed))
    assert (culprit.cause, culprit.place.nodes) == ("no TCP", ("gige-2",))
    assert culprit.headline == "gige-2 (eth1): does not answer TCP connections"
    assert "of gige-1 and gige-3, and pings come through" in culprit.evidence[0].sentence
    assert (culprit.sure, culprit.consequences) == (Sure.SEEN, 1)
    assert all(word in culprit.advice for word in ("nft list ruleset", "iptables -S", "firewalld"))
    others = ("gige-1,gige-3", "gige-2,gige-4")
    ring = {
        name: {"tcp_answered": others[int(name[-1]) % 2], "tcp_unanswered": "none"} for name in RING
    }
    found = of(**healthy(described=in_job(**ring)))
    assert found.culprits == ()
    assert "4 nodes answered TCP connections" in found.ruled_out


def test_another_sysctl_is_the_setting_on_its_node_and_fits_a_slow_port_alike():
    described = in_job(gige_3={"sysctls": {"net.ipv4.tcp_sack": "0"}})
    culprit = only(**healthy(described=described))
    assert (culprit.cause, culprit.alternatives) == ("setting differs", ())
    assert culprit.place.name == "sysctls net.ipv4.tcp_sack on gige-3"
    assert culprit.headline == "gige-3: sysctls net.ipv4.tcp_sack differs"
    culprit = only(**healthy(described=described, of_pairs=[rounds(gige_3=2.0)]))
    assert culprit.cause == "setting differs"
    (other,) = culprit.alternatives
    assert other.startswith("gige-3 (eth1): slower than the others")
    assert "set it as on the other nodes" in culprit.distinguish_by
    # It does not explain what is red without it.
    cases = [
        judged_case(subject(), "slow at 1024"),
        judged_case(subject(environment="openmpi4", on=("gige-3", "gige-4")), "slow at 1024"),
    ]
    found = of(**healthy(cases=cases, described=described)).culprits
    causes = [(culprit.cause, culprit.consequences) for culprit in found]
    assert causes == [("the switch as a whole", 2), ("setting differs", 0)]


def test_ranks_that_wait_for_cpus_on_one_node_only():
    one = subject()
    waiting = dataclasses.replace(one, measured=with_waits(one.measured, "gige-2", 0.5))
    assert of(**healthy(cases=[judged_case(waiting)], partition=strict())).culprits == (), (
        "the nodes are one machine"
    )
    one = dataclasses.replace(one, measured=apart(one.measured))
    waiting = dataclasses.replace(one, measured=with_waits(one.measured, "gige-2", 0.5))
    culprit = only(**healthy(cases=[judged_case(waiting)], of_pairs=[], partition=strict()))
    assert culprit.cause == "CPUs taken by something else"
    assert culprit.place.nodes == ("gige-2",)
    assert "50 % of the time, and for 1 %" in culprit.evidence[0].sentence
    nobody = dataclasses.replace(one, measured=with_waits(one.measured, "gige-2", 0.05))
    found = of(**healthy(cases=[judged_case(nobody)], partition=strict()))
    assert found.outcome is DiagnosisOutcome.NOTHING


def apart(measured: Measured) -> Measured:
    """The same on nodes that are machines of their own."""
    return measured.with_launches(
        [
            dataclasses.replace(
                launch,
                loads=tuple(dataclasses.replace(load, machine=load.node) for load in launch.loads),
            )
            for launch in measured.launches
        ]
    )


def loaded(*busy: str, machine: str = "", described: Sequence[Node] = ()) -> JudgedSession:
    """Rounds of pairs on nodes that are machines of their own, some with other programs."""
    pairs = rounds(1)
    loads = tuple(
        NodeLoad(
            *(node, machine or node, 8, 60.0, 240.0, 0.5 if node in busy else 0.0),
            *(0.0, 0.0, 0.0, 0.0),
        )
        for node in NODES
    )
    launches = tuple(dataclasses.replace(one, loads=loads) for one in pairs.rounds.launches)
    own = dataclasses.replace(
        pairs, rounds=dataclasses.replace(pairs.rounds, launches=launches), alone=()
    )
    return session_of(of_pairs=[own], described=described or in_job(), partition=strict())


def naming(program: str, *nodes: str) -> list[Node]:
    """The nodes of a job, some with a busy program."""
    return [
        dataclasses.replace(node, busy=program if node.node in nodes else "none")
        for node in in_job()
    ]


LOOP = "sh (process 4711 of root) 55 % of a CPU"


def test_of_nodes_that_are_one_machine_the_one_with_the_busy_program_is_named():
    (found,) = diagnose(loaded(*NODES, machine="vm", described=naming(LOOP, "gige-3")))
    (culprit,) = found.culprits
    assert (culprit.cause, culprit.place.nodes) == ("CPUs taken by something else", ("gige-3",))
    assert culprit.evidence[0].sentence.endswith(f"before the launches: {LOOP}")


@pytest.mark.parametrize(
    ("busy", "programs"), [(NODES, ()), (NODES, NODES[:2]), (NODES, NODES), ((), NODES[2:3])]
)
def test_programs_on_no_node_or_on_half_of_them_or_that_disturb_nothing_accuse_none(busy, programs):
    (found,) = diagnose(loaded(*busy, machine="vm", described=naming(LOOP, *programs)))
    assert found.culprits == ()


def test_nodes_that_rounds_of_pairs_do_not_decide_are_told_by_reason():
    pairs = accusing(Kind.NODE, "gige-1", NODES[:1])

    def undecided(**reasons: str) -> Diagnosis:
        states = {
            name: dataclasses.replace(
                one, state=State.UNDECIDED, reason=reasons.get(name.replace("-", ""), "few")
            )
            for name, one in pairs.judgement.nodes.items()
        }
        judgement = dataclasses.replace(pairs.judgement, nodes=states, accusations=())
        return of(**healthy(of_pairs=[dataclasses.replace(pairs, judgement=judgement)]))

    found = undecided()
    assert found.outcome is DiagnosisOutcome.INCONCLUSIVE
    assert found.incomplete == ("gige-[1-4] undecided by rounds of pairs of mpich: few",)
    assert undecided(gige3="not measured").incomplete == (
        "gige-[1-2,4] undecided by rounds of pairs of mpich: few",
        "gige-3 undecided by rounds of pairs of mpich: not measured",
    )


@pytest.mark.parametrize("count", [2, 3])
def test_too_few_nodes_to_compare_are_no_reason_to_doubt_what_passed(count):
    session = session_of(**healthy(of_pairs=[few(count)]))
    assert session.verdict.undecided == ()
    assert session.verdict.status == PASSED
    (found,) = diagnose(session)
    assert status([found]) == NOTHING_WRONG
    (one,) = found.not_known
    assert one.startswith(
        "which node is slow, if one is: rounds of pairs of mpich: too few nodes to compare with"
        f" each other ({count}); what a pair alone tells: gige-1 – gige-2 "
    )
    assert not any("clear" in one for one in found.ruled_out)


def test_too_few_nodes_without_a_case_cannot_be_told():
    found = of(**healthy(cases=[], of_pairs=[few()]))
    assert status([found]) == INCONCLUSIVE
    assert found.incomplete == (
        "no case was judged, and there are too few nodes to compare with each other",
        NOT_COUNTED,
    )
    assert found.next_steps == ("measure its cases: 'reframe -c checks -r'",)
    # What a site asks of a pair is judged.
    asked = of(**healthy(cases=[], of_pairs=[few(least=0.5)]))
    assert (asked.culprits, asked.incomplete) == ((), (NOT_COUNTED,))


def test_where_it_cannot_be_told_the_next_step_is():
    alongside = dataclasses.replace(
        rounds(), busy=dict.fromkeys(NODES, "something else ran alongside")
    )
    (busy,) = diagnose(session_of(of_pairs=[alongside], described=in_job()))
    assert busy.next_steps == (
        "when nothing else runs on the nodes, which 'top' there shows, run 'netproof diagnose"
        " testbed:gige --measure'",
    )
    assert of(**healthy(of_pairs=[])).next_steps == (
        "run 'netproof diagnose testbed:gige --measure'",
    )
    assert of(**healthy(of_pairs=[rounds()])).next_steps == ()


def test_nodes_that_other_jobs_held_are_told_from_those_that_were_missed():
    session = session_of(of_pairs=[rounds()], described=in_job())
    (covered,) = session.verdict.coverage
    covered = dataclasses.replace(
        covered, unmeasured=NODES[2:], waited_for=("gige-4",), waited_s=600.0
    )
    verdict = dataclasses.replace(session.verdict, coverage=(covered,))
    (found,) = diagnose(dataclasses.replace(session, verdict=verdict))
    assert found.incomplete == (
        "gige-3: usable and not measured",
        "gige-4: not measured, other jobs held it for 600 s",
        NOT_COUNTED,
    )
    assert found.next_steps == (
        "when other jobs have left gige-4, which 'squeue' shows, run 'netproof diagnose"
        " testbed:gige --measure'",
    )


def losing(times: int = 3, **again: int) -> list:
    """Cases whose nodes retransmitted so much, in so many environments."""
    return [
        judged_case(subject(environment=f"mpi{n}", counters=sending_again(**again)))
        for n in range(times)
    ]


def test_a_node_that_loses_more_than_the_others_fits_a_slow_port_alike():
    cases = losing(gige_1=200, gige_2=600, gige_3=210, gige_4=190)
    culprit = only(**healthy(cases=cases))
    assert culprit.cause == "packets lost"
    assert str(culprit.place) == "gige-2 (eth1)"
    assert culprit.sure is Sure.LIKELY
    assert "gige-2: its port loses 0.59 % of segments" in culprit.evidence[0].sentence
    culprit = only(**healthy(cases=cases, of_pairs=[rounds(gige_2=2.0)]))
    assert culprit.cause == "packets lost"
    assert culprit.alternatives[0].startswith("gige-2 (eth1): slower than the others")
    assert "discard" in culprit.distinguish_by


def test_both_ends_of_a_lossy_port_lose_and_launches_on_all_nodes_tell_which_it_is():
    two = losing(gige_1=900, gige_2=900)
    among_all = losing(gige_1=100, gige_2=300, gige_3=100, gige_4=90)
    culprit = only(**healthy(cases=[*two, *among_all]))
    assert (culprit.cause, culprit.place.nodes) == ("packets lost", ("gige-2",))
    among_all = losing(gige_1=280, gige_2=300, gige_3=100, gige_4=90)
    culprits = of(**healthy(cases=[*two, *among_all])).culprits
    assert [one.place.nodes for one in culprits] == [("gige-1",), ("gige-2",)]


def test_a_burst_in_one_launch_accuses_nobody_and_is_said():
    cases = [
        *losing(1, gige_2=900, gige_1=450, gige_3=450),
        *losing(4, gige_2=0, gige_1=0, gige_3=0),
    ]
    found = of(**healthy(cases=cases, of_pairs=[]))
    assert found.culprits == ()
    assert "whether gige-2 loses packets: it did in few launches only" in found.not_known


def test_of_two_nodes_that_lose_alike_the_port_is_not_known():
    counted = sending_again(gige_1=1600, gige_2=1500)
    cases = [judged_case(subject(counters=counted), "slow at 1024")]
    culprit = only(cases=cases, described=in_job())
    assert culprit.cause == "packets lost"
    assert culprit.place.kind is PlaceKind.PAIR
    assert culprit.alternatives == ("the port of gige-1", "the port of gige-2")


def test_launches_that_die_on_one_node():
    one = subject()
    crashes = tuple(
        Launch(n, n, 0.0, 1.0, (), (), attempt=1, status=139, died_on=("gige-2",))
        for n in range(1, 4)
    )
    died = dataclasses.replace(one, measured=dataclasses.replace(one.measured, crashes=crashes))
    culprit = only(**healthy(cases=[judged_case(died)]))
    assert (culprit.cause, culprit.place.nodes) == ("launches die on one node", ("gige-2",))
    # MPI gives up on the other node where one has no link.
    down = in_job(gige_1={"state": "no carrier"})
    culprit = only(**healthy(cases=[judged_case(died)], described=down))
    assert (culprit.cause, culprit.place.nodes) == ("link down", ("gige-1",))
    # And where the two cannot connect.
    ring = RING | {"gige_1": {"tcp_answered": "gige-2,gige-4", "tcp_unanswered": "none"}}
    culprit = only(**healthy(cases=[judged_case(died)], described=in_job(**ring)))
    assert culprit.headline == "gige-3 to gige-2 (eth1): TCP connections are not answered"
    both = (*crashes, dataclasses.replace(crashes[0], died_on=("gige-1",)))
    died = dataclasses.replace(one, measured=dataclasses.replace(one.measured, crashes=both))
    assert of(**healthy(cases=[judged_case(died)])).culprits == ()


@pytest.mark.parametrize(
    ("kind", "recovery", "cause", "place"),
    [
        (Kind.UPLINK, Recovery.STAYS, "uplink or leaf slow", PlaceKind.UPLINK),
        (Kind.UPLINK, Recovery.RECOVERS, "oversubscribed", PlaceKind.UPLINK),
        (Kind.SWITCH, Recovery.STAYS, "uplink or leaf slow", PlaceKind.LEAF),
        (Kind.GROUP, Recovery.STAYS, "uplink or leaf slow", PlaceKind.GROUP),
        (Kind.NODE, Recovery.RECOVERS, "oversubscribed", PlaceKind.NODE),
        (Kind.NODE, Recovery.STAYS, "port slower than the others", PlaceKind.NODE),
        (Kind.PAIR, None, "one pair slow", PlaceKind.PAIR),
    ],
)
def test_what_rounds_of_pairs_accuse_keeps_its_kind(kind, recovery, cause, place):
    nodes = NODES[:1] if kind is Kind.NODE else NODES[:2]
    name = "gige-1" if kind is Kind.NODE else "it"
    culprit = only(**healthy(of_pairs=[accusing(kind, name, nodes, recovery=recovery)]))
    assert (culprit.cause, culprit.place.kind) == (cause, place)
    assert culprit.alternatives == ()
    assert (recovery is None) or f"alone it {recovery}" in culprit.headline


def test_what_fits_as_well_in_rounds_of_pairs_is_named():
    culprit = only(**healthy(of_pairs=[accusing(Kind.UPLINK, "uplink of leaf2", NODES[:2])]))
    assert culprit.alternatives == ("oversubscribed: slow only while others send",)
    assert "alone" in culprit.distinguish_by
    accused = accusing(Kind.NODE, "gige-1", NODES[:1], alternatives=["the pair gige-1 – gige-2"])
    culprit = only(**healthy(of_pairs=[accused]))
    assert culprit.alternatives == ("the pair gige-1 – gige-2",)
    assert "mode=full" in culprit.distinguish_by


def streams(sends: float, receives: float, *, disturbed: bool = False):
    """Rounds that accuse gige-1, with three streams of it each way and of two cleared nodes."""
    ratio = 2 / (1 / sends + 1 / receives)
    accused = accusing(Kind.NODE, "gige-1", NODES[:1], ratio=ratio)
    shares = {NODES[1:3]: 1.0, NODES[:2]: sends, (NODES[1], NODES[0]): receives}
    others = 0.9 if disturbed else 0.0
    launches = list(accused.rounds.launches)
    for _ in range(3):
        for pair, share in shares.items():
            number = len(launches) + 1
            rate = 110 * share * (1 + 0.001 * number)
            launches.append(
                dataclasses.replace(
                    launches[0],
                    number=number,
                    round=number,
                    pairs=(pair,),
                    curves=(Curve((1024,), (1024 / rate,)),),
                    loads=tuple(load_of(node, others) for node in pair),
                    alone=True,
                    stream=True,
                )
            )
    rounds_of = dataclasses.replace(accused.rounds, launches=tuple(launches))
    return dataclasses.replace(accused, rounds=rounds_of)


def load_of(node: str, others: float) -> NodeLoad:
    """A second of a node with two CPUs, a share of them used by others."""
    return NodeLoad(node, None, 2, 1.0, 2 * others, others, 0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(("sends", "receives", "slow"), [(0.5, 1, "sends"), (1, 0.5, "receives")])
def test_one_direction_is_named_by_the_streams_of_the_rounds(sends, receives, slow):
    culprit = only(**healthy(of_pairs=[streams(sends, receives)]))
    assert culprit.cause == "one direction slow"
    assert culprit.headline.endswith(f"what it {slow}")
    assert str(culprit.place) == "gige-1 (eth1)"
    assert any("50" in one.sentence and "streams" in one.sentence for one in culprit.evidence)


def test_where_both_directions_are_slow_or_disturbed_no_direction_is_named():
    assert only(**healthy(of_pairs=[streams(0.5, 0.5)])).cause == "port slower than the others"
    culprit = only(**healthy(of_pairs=[streams(0.5, 1, disturbed=True)], partition=strict()))
    assert culprit.cause == "port slower than the others"


def test_one_environment_alone_is_red_where_others_pass_the_same():
    cases = [
        judged_case(subject(step="mpi-inter-node-oneway"), "slow at 1024"),
        judged_case(subject(step="mpi-inter-node-oneway", environment="openmpi4")),
        judged_case(subject(step="mpi-inter-node-oneway", environment="intelmpi")),
    ]
    culprit = only(**healthy(cases=cases))
    assert (culprit.cause, culprit.place.name) == ("one MPI environment only", "mpich")
    assert "1 of its 1 red cases pass with intelmpi, openmpi4" in culprit.why
    assert culprit.consequences == 1


def test_one_environment_that_ran_on_other_nodes_than_the_others_leaves_its_nodes_possible():
    def cases(nodes: Sequence[str]) -> list[CaseVerdict]:
        step = "mpi-inter-node-oneway"
        return [
            judged_case(subject(step=step, on=NODES[:2]), "slow at 1024"),
            judged_case(subject(step=step, environment="openmpi4", on=nodes)),
        ]

    culprit = only(**healthy(cases=cases(NODES[2:])))
    assert culprit.cause == "one MPI environment only"
    assert culprit.alternatives == ("gige-[1-2]: these cases ran on other nodes with the others",)
    assert culprit.distinguish_by.endswith("another environment, on the same nodes")
    assert only(**healthy(cases=cases(NODES[:2]))).alternatives == ()


def test_where_only_tcp_passes_it_may_be_the_switch_too():
    cases = [
        judged_case(subject(step="mpi-inter-node-oneway"), "slow at 1024"),
        judged_case(subject()),
    ]
    culprit = only(**healthy(cases=cases))
    assert culprit.cause == "one MPI environment only"
    assert culprit.alternatives == ("the switch under the traffic of all nodes",)


def red_everywhere(counters=None, on=(NODES[:2], NODES[2:])):
    return [
        judged_case(subject(environment=name, counters=counters, on=nodes), "slow at 1024")
        for name, nodes in zip(("mpich", "openmpi4"), on, strict=True)
    ]


def test_losses_at_all_nodes_are_the_switch_as_a_whole():
    counted = sending_again(gige_1=600, gige_2=700, gige_3=650, gige_4=620)
    culprit = only(**healthy(cases=red_everywhere(counted)))
    assert (culprit.cause, culprit.place.kind) == ("the switch as a whole", PlaceKind.WHOLE)
    assert "as with small buffers" in culprit.headline
    assert culprit.evidence[1].sentence == ("each of 4 nodes sent 0.6 to 0.7 % of segments again")
    assert culprit.consequences == 2


def test_where_all_lose_a_node_that_many_cases_ran_on_is_not_accused():
    two = [
        judged_case(subject(environment=name, counters=counted), "slow at 1024")
        for name in ("mpich", "openmpi4", "openmpi5")
        for counted in [sending_again(gige_1=4000, gige_2=4000)]
    ]
    among_all = losing(gige_1=610, gige_2=700, gige_3=650, gige_4=620)
    parts = healthy(cases=[*two, *among_all])
    assert session_of(**parts).verdict.standing_out == ()
    assert only(**parts).cause == "the switch as a whole"


def test_too_many_crashes_on_several_nodes_are_not_explained():
    parts = healthy()
    session = session_of(**parts)
    finding = Finding("crashes", Level.FAIL, "gige mpich", "9 of 20 launches crashed")
    crashing = LaunchCount("gige", "mpich", 20, 9, finding)
    verdict = dataclasses.replace(session.verdict, launched=(crashing,))
    (found,) = diagnose(dataclasses.replace(session, verdict=verdict))
    (culprit,) = found.culprits
    assert culprit.cause == "unexplained"
    assert "9 of 20 launches crashed" in culprit.evidence[0].sentence


def test_red_everywhere_with_small_socket_buffers_is_that_setting():
    small = {"sysctls": {"net.ipv4.tcp_rmem": "4096 4096 4096", "net.core.wmem_max": "2304"}}
    described = in_job(**{f"gige_{number}": small for number in range(1, 5)})
    culprit = only(**healthy(cases=red_everywhere(), described=described))
    assert culprit.cause == "small socket buffers"
    assert culprit.headline == (
        "all nodes of gige (eth1): socket buffers hold less than the link carries in a round trip:"
        " net.ipv4.tcp_rmem 4096, net.core.wmem_max 2304"
    )
    assert culprit.evidence[0].sentence == "on gige-[1-4] net.ipv4.tcp_rmem 4096 bytes"
    assert culprit.consequences == 2


BATCH_US = 125.0
RATE_ALONE = site().model_copy(update={"pairs": {"quantities": ["rate"]}})
"""As the testbed's file has it."""


def batched(one: Subject) -> CaseVerdict:
    """The recorded case with packets in batches: each message later, and its latency red."""
    launches = []
    for launch in one.measured.launches:
        times = tuple(time + BATCH_US for time in launch.curve.time_us)
        rates = tuple(size / time for size, time in zip(launch.curve.sizes, times, strict=True))
        curve = dataclasses.replace(launch.curve, time_us=times, bandwidth_mb_s=rates)
        launches.append(dataclasses.replace(launch, curves=(curve,)))
    usual = {"latency_us": Limits(0.0, 1.5 * one.measured.landmarks.latency_us)}
    slow = dataclasses.replace(one, measured=one.measured.with_launches(launches))
    found = limits.judge(slow.measured, usual, str(one))["latency_us"]
    judged = judged_case(slow)
    return dataclasses.replace(judged, findings=(*judged.findings, found))


def in_batches(*on: Sequence[str]) -> list[CaseVerdict]:
    return [
        batched(subject(step=step, environment=environment, on=nodes))
        for environment, nodes in zip(("mpich", "openmpi4"), on, strict=True)
        for step in ("tcp-inter-node-oneway", "mpi-inter-node-oneway")
    ]


def test_a_node_that_sends_in_batches_is_narrowed_to_the_two_that_all_red_cases_ran_on():
    """Its rate is that of the others, by which alone pairs are judged."""
    red = in_batches(NODES[:2], NODES[:2])
    assert all(one.failed for one in red)
    found = of(**healthy(cases=red, partition=RATE_ALONE))
    (culprit,) = found.culprits
    assert (culprit.cause, culprit.place.kind) == (
        "one or two nodes or what is between them",
        PlaceKind.PAIR,
    )
    assert culprit.headline == (
        "gige-1 or gige-2 or what is between them: all 4 red cases between nodes ran there"
    )
    assert culprit.consequences == 4
    words = " ".join((culprit.headline, culprit.why, *(one.sentence for one in culprit.evidence)))
    assert "as a whole" not in words
    assert "every node" not in words
    assert "rounds of pairs clear gige-[1-4] by rate alone" in found.ruled_out
    assert found.not_known == (BELOW_A_DOUBLING,)


def test_cases_that_fail_since_they_lack_what_they_are_compared_with_name_no_node():
    cases = []
    for one in in_batches(NODES[:2], NODES[:2]):
        lost = undefined("MPI loss at the peak", str(one.case), "its run over TCP is not complete")
        failed = lost.ruled(Level.FAIL)
        cases.append(dataclasses.replace(one, findings=(failed,)))
    assert all(one.failed for one in cases)
    assert only(**healthy(cases=cases, partition=RATE_ALONE)).cause == "unexplained"


def test_pairs_that_were_judged_by_rate_alone_say_nothing_of_a_latency_that_is_red():
    cases = in_batches(NODES[:2], NODES[2:])
    assert only(**healthy(cases=cases, partition=RATE_ALONE)).cause == "unexplained"
    assert only(**healthy(cases=cases)).cause == "the switch as a whole"
    of_rate = red_everywhere()
    assert only(**healthy(cases=of_rate, partition=RATE_ALONE)).cause == "the switch as a whole"


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (NODES[:2], "gige-1 or gige-2 or what is between them: "),
        ((NODES[0], NODES[2]), "gige-1 or what is between it and the others: "),
    ],
)
def test_nodes_that_are_in_all_red_cases_are_named_and_not_the_switch(other, named):
    culprit = only(**healthy(cases=red_everywhere(on=(NODES[:2], other))))
    assert culprit.cause == "one or two nodes or what is between them"
    assert culprit.headline.startswith(named)


def test_a_pair_of_too_few_nodes_below_the_share_that_is_asked_for_is_named():
    culprit = only(**healthy(of_pairs=[few(least=0.8, gige_1=2.0)]))
    assert (culprit.cause, culprit.place.nodes) == (
        "one or two nodes or what is between them",
        NODES[:2],
    )
    assert culprit.headline == ("gige-1 or gige-2 or what is between them: slow with each other")
    assert "of the line rate" in culprit.evidence[0].sentence
    red = red_everywhere(on=(NODES[:2], NODES[:2]))
    culprit = only(**healthy(cases=red, of_pairs=[few(least=0.8, gige_1=2.0)]))
    assert (len(culprit.evidence), culprit.consequences) == (2, 2)


def test_what_is_not_measured_cannot_be_told_and_what_was_found_outweighs_it():
    found = of(**healthy(covered=False))
    assert found.outcome is DiagnosisOutcome.INCONCLUSIVE
    assert found.incomplete == ("how many nodes there are: not asked",)
    assert of().incomplete == ("nothing was measured on this partition",)
    assert status([found, of(**healthy())]) == INCONCLUSIVE
    assert status([found, of(**healthy(of_pairs=[rounds(gige_3=2.0)]))]) == SOMETHING_WRONG
    with pytest.raises(NetproofError, match="there is no partition 'other'; there are gige"):
        diagnose(session_of(**healthy()), "other")


def earlier(*sessions, asked: list[int]):
    """Sessions, the newest first, that are noted when they are judged."""

    def judging(number, made):
        def judge():
            asked.append(number)
            if isinstance(made, str):
                raise NetproofError(made)
            return made

        return judge

    return [
        (f"s{number}", datetime(2026, 11, 20 - number), judging(number, made))
        for number, made in enumerate(sessions)
    ]


def slow(node: str = "gige_3") -> JudgedSession:
    return session_of(**healthy(of_pairs=[rounds(**{node: 2.0})]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "began", "first", "count", "asked"),
    [
        ([], Began.NOT_KNOWN, "", 1, 0),
        (["fine", "slow"], Began.THIS, "", 1, 1),
        (["other"], Began.THIS, "", 1, 1),
        (["slow", "slow", "fine", "slow"], Began.EARLIER, "s1", 3, 3),
        (["slow", "slow"], Began.AT_LEAST, "s1", 3, 2),
        (["slow", "without pairs"], Began.AT_LEAST, "s0", 2, 2),
        (["without pairs"], Began.NOT_KNOWN, "", 1, 1),
        (["damaged"], Began.NOT_KNOWN, "", 1, 1),
    ],
)
def test_since_when_is_the_first_of_the_latest_sessions_that_have_it(
    before, began, first, count, asked
):
    kinds = {
        "slow": slow(),
        "fine": session_of(**healthy()),
        "other": slow("gige_1"),
        "without pairs": session_of(**healthy(of_pairs=[])),
        "damaged": "its file is damaged",
    }
    looked: list[int] = []
    several = earlier(*(kinds[one] for one in before), asked=looked)
    (found,) = diagnose(slow(), earlier=several)
    since = found.culprits[0].since
    assert (since.began, since.session, since.sessions) == (began, first, count)
    assert len(looked) == asked
    assert str(since)


def test_a_warning_about_a_setting_accuses_only_with_something_else():
    pci = {"pci": {"speed": "8.0 GT/s PCIe", "maximum speed": "16.0 GT/s PCIe"}}
    changes = {node.replace("-", "_"): pci for node in NODES}
    found = of(**healthy(described=in_job(**changes)))
    warned = session_of(**healthy(described=in_job(**changes))).verdict.nodes
    assert {one.level for one in warned} == {Level.WARN}
    assert found.culprits == ()


def test_a_node_that_died_under_a_job_is_named_with_the_requeue():
    nodes = {"gige-2": "down* (Not responding)", "gige-3": "idle"}
    requeued = provenance.requeues("ImbJob (job 7)", [nodes])
    culprit = only(**healthy(requeued=("gige", requeued)))
    assert (culprit.cause, culprit.place.nodes) == ("node died", ("gige-2",))
    assert culprit.evidence[0].sentence.startswith(
        "requeued: ImbJob (job 7), after a try on gige-[2"
    )
    assert of(**healthy(requeued=("ib", requeued))).culprits == ()
    preempted = provenance.requeues("ImbJob (job 7)", [{"gige-3": "idle"}])
    assert of(**healthy(requeued=("gige", preempted))).culprits == ()


@pytest.mark.parametrize(
    ("listed", "nodes"), [("gige-2,old", ["gige-2"]), ("gige-[2-3]", ["gige-2", "gige-3"])]
)
def test_a_node_for_which_a_job_waited_in_vain_is_named(listed, nodes):
    why = (
        "fail in run: job blocked error: [jobid=316] job cancelled because it was blocked due to"
        f" reason: ReqNodeNotAvail, UnavailableNodes:{listed}"
    )
    cancelled = failed_test("PairJob", why)
    found = of(**healthy(failed_tests=[cancelled]))
    named = [one for one in found.culprits if one.cause == "node died"]
    assert [node for one in named for node in one.place.nodes] == nodes
    assert [*found.culprits] == named
    assert all(listed in one.evidence[0].sentence for one in named)
