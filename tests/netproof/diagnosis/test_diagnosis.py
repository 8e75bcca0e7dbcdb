"""Each cause is named with its place where its evidence is there, once, and nobody else is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

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
from netproof.session.measured import Launch
from netproof.session.node_facts import Node
from netproof.verdict import limits
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


def with_rounds(pairs: PairsVerdict, **values: Any) -> PairsVerdict:
    return replace(pairs, rounds=replace(pairs.rounds, **values))


def with_judgement(pairs: PairsVerdict, **values: Any) -> PairsVerdict:
    return replace(pairs, judgement=replace(pairs.judgement, **values))


def test_every_cause_has_a_rule_an_advice_and_its_place_in_the_order():
    assert [*RULES] == [*TEXTS]
    assert all(texts["advice"] and texts["headline"] for texts in TEXTS.values())


BELOW_A_DOUBLING = (
    "whether the latency of pairs differs by less than 2 times: the site's file judges pairs by"
    " the rate alone"
)
NOT_COUNTED = "what interfaces counted: it was not recorded"


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


# Nothing is declared healthy that was not judged.


def rate_alone() -> dict:
    one = rounds()
    nodes = {
        name: replace(node, effects=[e for e in node.effects if e.quantity == "rate"])
        for name, node in one.judgement.nodes.items()
    }
    return {"of_pairs": [with_judgement(one, nodes=nodes)]}


def unknown_path() -> dict:
    (one,) = healthy()["cases"]
    others = [each for each in one.findings if each.criterion != "path"]
    unknown = undefined("path", str(one.case), "no counter")
    return {"cases": [replace(one, findings=(*others, unknown))]}


def failed_launches() -> dict:
    faults = tuple(f"pairs.{number} ended with status 143" for number in (1, 4, 5))
    return {"of_pairs": [with_rounds(rounds(), faults=faults)]}


def undecided_nodes() -> dict:
    pairs = accusing(Kind.NODE, "gige-1", NODES[:1])
    states = {
        name: replace(
            one, state=State.UNDECIDED, reason="not measured" if name == "gige-3" else "few"
        )
        for name, one in pairs.judgement.nodes.items()
    }
    return {"of_pairs": [with_judgement(pairs, nodes=states, accusations=())]}


@pytest.mark.parametrize(
    ("change", "incomplete"),
    [
        (rate_alone, ["whether the latency of pairs of mpich differs"]),
        (unknown_path, ["the path of messages of mpich: no counter"]),
        (
            failed_launches,
            ["rounds of pairs of mpich have 3 faults, the first: pairs.1 ended with status 143"],
        ),
        (
            undecided_nodes,
            [
                "gige-[1-2,4] undecided by rounds of pairs of mpich: few",
                "gige-3 undecided by rounds of pairs of mpich: not measured",
            ],
        ),
        (lambda: {"covered": False}, ["how many nodes there are: not asked"]),
    ],
)
def test_what_was_to_be_judged_and_could_not_be_makes_nothing_wrong_impossible(change, incomplete):
    found = of(**healthy(**change()))
    assert (found.outcome, [*found.incomplete]) == (DiagnosisOutcome.INCONCLUSIVE, incomplete)
    assert {*incomplete} <= {*found.not_known}
    assert status([found, of(**healthy())]) == INCONCLUSIVE


def test_what_was_found_outweighs_what_is_missing_and_a_partition_has_to_be_there():
    assert of().incomplete == ("nothing was measured on this partition",)
    found = [of(**healthy(covered=False)), of(**healthy(of_pairs=[rounds(gige_3=2.0)]))]
    assert status(found) == SOMETHING_WRONG
    with pytest.raises(NetproofError, match="the system has no partition 'other'; it has gige"):
        diagnose(session_of(**healthy()), "other")


def test_nodes_that_other_jobs_held_are_distinguished_from_those_that_were_missed():
    session = session_of(of_pairs=[rounds()], described=in_job())
    (covered,) = session.verdict.coverage
    covered = replace(covered, unmeasured=NODES[2:], waited_for=("gige-4",), waited_s=600.0)
    verdict = replace(session.verdict, coverage=(covered,))
    (found,) = diagnose(replace(session, verdict=verdict))
    assert found.incomplete == (
        "gige-3: usable and not measured",
        "gige-4: not measured, other jobs held it for 600 s",
        NOT_COUNTED,
    )
    assert found.next_steps == (
        "when other jobs have left gige-4, which 'squeue' shows, run 'netproof diagnose"
        " testbed:gige --measure'",
    )


def test_where_it_is_inconclusive_the_next_step_is_named():
    busy = replace(rounds(), busy=dict.fromkeys(NODES, "something else ran"))
    assert of(of_pairs=[busy], described=in_job()).next_steps == (
        "when nothing else runs on the nodes, which 'top' there shows, run 'netproof diagnose"
        " testbed:gige --measure'",
    )
    assert of(**healthy(of_pairs=[])).next_steps == (
        "run 'netproof diagnose testbed:gige --measure'",
    )
    assert of(**healthy()).next_steps == ()


def test_too_few_nodes_without_a_case_are_inconclusive():
    found = of(**healthy(cases=[], of_pairs=[few()]))
    assert found.incomplete == (
        "no case was judged, and there are too few nodes to compare with each other",
        NOT_COUNTED,
    )
    assert found.next_steps == ("measure its cases: 'reframe -c checks -r'",)
    # What a site asks of a pair is judged.
    asked = of(**healthy(cases=[], of_pairs=[few(least=0.5)]))
    assert (asked.culprits, asked.incomplete) == ((), (NOT_COUNTED,))


def test_where_pairs_alone_were_measured_it_is_said_what_they_get():
    def get(slow: float = 1.0, **parts) -> float:
        every = rounds(**{node.replace("-", "_"): slow for node in NODES})
        found = of(**healthy(cases=[], of_pairs=[every], **parts))
        assert found.culprits == ()
        said = re.search(
            r"slow alike: .* A pair of mpich gets ([\d.]+)% of the line rate", found.not_known[1]
        )
        return float(said[1])

    assert get(2.0) == pytest.approx(get() / 2, rel=0.02)
    rdma = site().model_copy(update={"rdma": "infiniband"})
    share = get(partition=rdma, not_over_tcp=["mpich"])
    assert share == pytest.approx(get() * (1448 / 1538) / (4096 / 4122), abs=0.1)


# Each cause, with its place.

RING = {
    "gige_1": {"tcp_answered": "gige-4", "tcp_unanswered": "gige-2"},
    "gige_2": {"tcp_answered": "gige-3,gige-1", "tcp_unanswered": "none"},
    "gige_3": {"tcp_answered": "gige-4", "tcp_unanswered": "gige-2"},
    "gige_4": {"tcp_answered": "gige-1,gige-3", "tcp_unanswered": "none"},
}
"""A ring whose second node has a firewall that drops requests for connections."""
ANSWERED = {"tcp_answered": "gige-2,gige-4", "tcp_unanswered": "none"}
SACK = {"gige_3": {"sysctls": {"net.ipv4.tcp_sack": "0"}}}
SHORT = {"gige_1": {"path_to": "gige-2", "path_asked_bytes": 1500, "path_passed_bytes": 84}}
SMALL = {"sysctls": {"net.ipv4.tcp_rmem": "4096 4096 4096", "net.core.wmem_max": "2304"}}


def hanging(**described: dict) -> dict:
    """A session whose job did not end."""
    failed = [failed_test("Job", "did not end")]
    return {"cases": [unmeasured()], "described": in_job(**described), "failed_tests": failed}


def dying(*nodes: str, **parts: Any) -> dict:
    """A case whose launches died, one on each of these nodes."""
    one = subject()
    crashes = tuple(
        Launch(n, n, 0.0, 1.0, (), (), attempt=1, status=139, died_on=(node,))
        for n, node in enumerate(nodes, 1)
    )
    died = replace(one, measured=replace(one.measured, crashes=crashes))
    return healthy(cases=[judged_case(died)]) | parts


def over_another_network() -> dict:
    """Rounds of pairs that went over the interface of the management."""
    counters = subject("management", "mpi-inter-node-oneway").measured.launches[0].counters
    several = (
        replace(launch, counters=counters, payload=110100240) for launch in rounds().rounds.launches
    )
    went = with_rounds(rounds(), launches=tuple(several))
    path = path_of_rounds(went.rounds, site())
    return healthy(of_pairs=[replace(went, path=path)], cases=[])


def losing(times: int = 3, **again: int) -> list:
    """Cases whose nodes retransmitted so much, in so many environments."""
    return [
        judged_case(subject(environment=f"mpi{n}", counters=sending_again(**again)))
        for n in range(times)
    ]


def red_everywhere(counters=None, on=(NODES[:2], NODES[2:])):
    return [
        judged_case(subject(environment=name, counters=counters, on=nodes), "slow at 1024")
        for name, nodes in zip(("mpich", "openmpi4"), on, strict=True)
    ]


ALL_LOSE = {"gige_1": 610, "gige_2": 700, "gige_3": 650, "gige_4": 620}


def all_lose_and_many_ran_on_two() -> dict:
    """Losses at all nodes, where more cases ran on two of them."""
    counted = sending_again(gige_1=4000, gige_2=4000)
    two = [
        judged_case(subject(environment=name, counters=counted), "slow at 1024")
        for name in ("mpich", "openmpi4", "openmpi5")
    ]
    return healthy(cases=[*two, *losing(**ALL_LOSE)])


def streams(sends: float, receives: float, *, disturbed: bool = False):
    """Rounds that accuse gige-1, with three streams of it each way and of two cleared nodes."""
    ratio = 2 / (1 / sends + 1 / receives)
    accused = accusing(Kind.NODE, "gige-1", NODES[:1], ratio=ratio)
    shares = {NODES[1:3]: 1.0, NODES[:2]: sends, (NODES[1], NODES[0]): receives}
    others = 0.9 if disturbed else 0.0
    launches = list(accused.rounds.launches)
    for pair, share in 3 * [*shares.items()]:
        number = len(launches) + 1
        rate = 110 * share * (1 + 0.001 * number)
        # A second of a node with two CPUs, a share of them used by others.
        loads = tuple(
            NodeLoad(node, None, 2, 1.0, 2 * others, others, 0.0, 0.0, 0.0, 0.0) for node in pair
        )
        curves = (Curve((1024,), (1024 / rate,)),)
        stream = {"pairs": (pair,), "curves": curves, "loads": loads, "alone": True, "stream": True}
        launches.append(replace(launches[0], number=number, round=number, **stream))
    return with_rounds(accused, launches=tuple(launches))


RATE_ALONE = site().model_copy(update={"pairs": {"quantities": ["rate"]}})
"""As the testbed's file has it."""


def batched(one: Subject) -> CaseVerdict:
    """The recorded case with packets in batches: each message later, and its latency red."""
    launches = []
    for launch in one.measured.launches:
        times = tuple(time + 125.0 for time in launch.curve.time_us)
        rates = tuple(size / time for size, time in zip(launch.curve.sizes, times, strict=True))
        curve = replace(launch.curve, time_us=times, bandwidth_mb_s=rates)
        launches.append(replace(launch, curves=(curve,)))
    usual = {"latency_us": Limits(0.0, 1.5 * one.measured.landmarks.latency_us)}
    slow = replace(one, measured=one.measured.with_launches(launches))
    found = limits.judge(slow.measured, usual, str(one))["latency_us"]
    judged = judged_case(slow)
    return replace(judged, findings=(*judged.findings, found))


def in_batches(*on: Sequence[str]) -> list[CaseVerdict]:
    return [
        batched(subject(step=step, environment=environment, on=nodes))
        for environment, nodes in zip(("mpich", "openmpi4"), on, strict=True)
        for step in ("tcp-inter-node-oneway", "mpi-inter-node-oneway")
    ]


def uncompared() -> dict[str, Any]:
    """Cases that lack their run over TCP."""
    cases = []
    for one in in_batches(NODES[:2], NODES[:2]):
        lost = undefined("MPI loss at the peak", str(one.case), "its run over TCP is not complete")
        cases.append(replace(one, findings=(lost.ruled(Level.FAIL),)))
    return healthy(cases=cases, partition=RATE_ALONE)


@pytest.mark.parametrize(
    ("made", "cause", "place", "red", "said"),
    [
        (lambda: hanging(gige_2={"state": "down"}), "link down", "gige-2 (eth1)", 1, ""),
        (
            lambda: healthy(described=in_job(**SHORT)),
            *("MTU differs", "gige-1 to gige-2 (eth1)", 0, ""),
        ),
        # While a link flaps, packets that do not come through say nothing of an MTU.
        (
            lambda: {"cases": [judged_case(subject("carrier"))], "described": in_job(**SHORT)},
            *("link flapped", "gige-2 (eth1)", 1, ""),
        ),
        (
            over_another_network,
            *("messages took another network", "mpich (eth0)", 0),
            "in rounds of pairs of mpich messages went over eth0",
        ),
        (
            lambda: healthy(
                described=in_job("differ"), of_pairs=[accusing(Kind.PAIR, "it", NODES[:2])]
            ),
            *("MTU differs", "gige-2 (eth1)", 0, ""),
        ),
        (
            lambda: dying("gige-2", "gige-2", "gige-2"),
            *("launches die on one node", "gige-2", 0, "3 launches died, and each on gige-2"),
        ),
        # MPI gives up on the other node where one has no link.
        (
            lambda: dying(*3 * ["gige-2"], described=in_job(gige_1={"state": "no carrier"})),
            *("link down", "gige-1 (eth1)", 0, ""),
        ),
        # And where the two cannot connect.
        (
            lambda: dying(*3 * ["gige-2"], described=in_job(**RING | {"gige_1": ANSWERED})),
            *("no TCP", "gige-3 to gige-2 (eth1)", 0, "TCP connections are not answered"),
        ),
        # Launches on all nodes show which end of a port loses.
        (
            lambda: healthy(
                cases=[
                    *losing(gige_1=900, gige_2=900),
                    *losing(gige_1=100, gige_2=300, gige_3=100, gige_4=90),
                ]
            ),
            *("packets lost", "gige-2 (eth1)", 0, ""),
        ),
        (
            lambda: healthy(cases=red_everywhere(sending_again(**ALL_LOSE))),
            *("the switch as a whole", "switch of gige", 2),
            "each of 4 nodes sent 0.61 to 0.7 % of segments again",
        ),
        (
            all_lose_and_many_ran_on_two,
            *("the switch as a whole", "switch of gige", 3, "as with small buffers"),
        ),
        (
            lambda: healthy(
                cases=red_everywhere(),
                described=in_job(**{f"gige_{number}": SMALL for number in range(1, 5)}),
            ),
            *("small socket buffers", "all nodes of gige (eth1)", 2),
            "on gige-[1-4] net.ipv4.tcp_rmem 4096 bytes",
        ),
        (
            lambda: healthy(cases=red_everywhere(on=(NODES[:2], NODES[:2]))),
            *("one or two nodes or what is between them", "gige-[1-2]", 2),
            "gige-1 or gige-2 or what is between them: all 2 red cases between nodes ran there",
        ),
        (
            lambda: healthy(cases=red_everywhere(on=(NODES[:2], NODES[:3:2]))),
            *("one or two nodes or what is between them", "gige-1", 2),
            "gige-1 or what is between it and the others: ",
        ),
        (
            lambda: healthy(of_pairs=[few(least=0.8, gige_1=2.0)]),
            *("one or two nodes or what is between them", "gige-[1-2] (eth1)", 0),
            "gige-1 or gige-2 or what is between them: slow with each other",
        ),
        (
            lambda: healthy(of_pairs=[streams(1, 0.5)]),
            *("one direction slow", "gige-1 (eth1)", 0, "what it receives"),
        ),
        (
            lambda: healthy(of_pairs=[streams(0.5, 0.5)]),
            *("port slower than the others", "gige-1 (eth1)", 0, ""),
        ),
        # While something else ran no direction is known.
        (
            lambda: healthy(of_pairs=[streams(0.5, 1, disturbed=True)], partition=strict()),
            *("port slower than the others", "gige-1 (eth1)", 0, ""),
        ),
        # Cases that fail since they lack what they are compared with name no node.
        (uncompared, "unexplained", "gige", 4, ""),
    ],
)
def test_a_cause_is_named_once_with_its_place_and_what_it_explains(made, cause, place, red, said):
    culprit = only(**made())
    assert (culprit.cause, str(culprit.place), culprit.consequences) == (cause, place, red)
    assert culprit.alternatives == ()
    assert said in " ".join((culprit.headline, *(one.sentence for one in culprit.evidence)))


def test_a_link_that_is_down_explains_a_case_of_which_no_node_is_known():
    one = unmeasured()
    there = replace(one.result, nodes=("login",))
    described = in_job(gige_2={"state": "no carrier"})
    found = of(cases=[CaseVerdict.of(one.case, there, one.faults)], described=described)
    (culprit,) = found.culprits
    assert (culprit.cause, culprit.sure, culprit.consequences) == ("link down", Sure.SEEN, 1)
    assert not any("carrier" in sentence for sentence in found.ruled_out)


def test_another_sysctl_is_the_setting_on_its_node_and_does_not_explain_what_is_red_elsewhere():
    cases = red_everywhere()
    switch, setting = of(**healthy(cases=cases, described=in_job(**SACK))).culprits
    assert (switch.cause, switch.consequences) == ("the switch as a whole", 2)
    assert setting.consequences == 0
    assert setting.place.name == "sysctls net.ipv4.tcp_sack on gige-3"
    assert setting.headline == "gige-3: sysctls net.ipv4.tcp_sack differs"


def test_nodes_that_answer_tcp_are_ruled_out():
    described = in_job(gige_1=ANSWERED)
    assert "2 nodes answered TCP connections" in of(**healthy(described=described)).ruled_out


@pytest.mark.parametrize(
    ("parts", "cause", "apart"),
    [
        (lambda: {"described": in_job(**SACK)}, "setting differs", "set it as on the other nodes"),
        (lambda: {"cases": losing(gige_3=600, gige_1=200, gige_2=210)}, "packets lost", "discard"),
    ],
)
def test_a_setting_or_losses_fit_a_slow_port_alike(parts, cause, apart):
    culprit = only(**healthy(**parts(), of_pairs=[rounds(gige_3=2.0)]))
    assert (culprit.cause, culprit.place.nodes) == (cause, ("gige-3",))
    (other,) = culprit.alternatives
    assert other.startswith("gige-3 (eth1): slower than the others")
    assert apart in culprit.distinguish_by


def test_a_warning_about_a_setting_accuses_only_with_something_else():
    pci = {"pci": {"speed": "8.0 GT/s PCIe", "maximum speed": "16.0 GT/s PCIe"}}
    described = in_job(**{node.replace("-", "_"): pci for node in NODES})
    warned = session_of(**healthy(described=described))
    assert {one.level for one in warned.verdict.nodes} == {Level.WARN}
    (found,) = diagnose(warned)
    assert found.culprits == ()


def test_a_burst_in_one_launch_accuses_nobody_and_is_said():
    cases = [
        *losing(1, gige_2=900, gige_1=450, gige_3=450),
        *losing(4, gige_2=0, gige_1=0, gige_3=0),
    ]
    found = of(**healthy(cases=cases, of_pairs=[]))
    assert found.culprits == ()
    lost = "whether gige-2 loses packets: few launches that nothing disturbed show it"
    assert lost in found.not_known


def test_both_ends_of_a_lossy_port_lose_where_launches_on_all_nodes_show_no_difference():
    cases = [
        *losing(gige_1=900, gige_2=900),
        *losing(gige_1=280, gige_2=300, gige_3=100, gige_4=90),
    ]
    culprits = of(**healthy(cases=cases)).culprits
    assert [one.place.nodes for one in culprits] == [("gige-1",), ("gige-2",)]
    # Of two nodes alone the port is not known.
    counted = sending_again(gige_1=1600, gige_2=1500)
    cases = [judged_case(subject(counters=counted), "slow at 1024")]
    culprit = only(cases=cases, described=in_job())
    assert (culprit.cause, culprit.place.kind) == ("packets lost", PlaceKind.PAIR)
    assert culprit.alternatives == ("the port of gige-1", "the port of gige-2")


def test_too_many_crashes_on_several_nodes_are_not_explained():
    assert of(**dying("gige-2", "gige-2", "gige-2", "gige-1")).culprits == ()
    session = session_of(**healthy())
    finding = Finding("crashes", Level.FAIL, "gige mpich", "9 of 20 launches crashed")
    crashing = LaunchCount("gige", "mpich", 20, 9, finding)
    verdict = replace(session.verdict, launched=(crashing,))
    (found,) = diagnose(replace(session, verdict=verdict))
    (culprit,) = found.culprits
    assert culprit.cause == "unexplained"
    assert "9 of 20 launches crashed" in culprit.evidence[0].sentence


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        (["gige-2"] * 2, "gige-2: 2 of 2, too few to accuse it, so measure on other nodes"),
        (
            ["gige-2"] * 3,
            "gige-2: 3 of 3, which may be the program's fault, so measure on other nodes",
        ),
        (["gige-2", ""], "gige-2: 1 of 2, too few to accuse it, so measure on other nodes"),
        (["gige-2", "gige-1"], ""),
        (["gige-[1-2]"] * 2, ""),
    ],
)
def test_crashes_that_name_one_node_are_said_and_do_not_accuse_it(nodes, said):
    ended = "fail in sanity: /job/{0}.1.err: {0}.1 ended with status 143; it said: {1} | srun: done"
    named = [f"srun: error: {on}: task 1: Exited with exit code 139" for on in nodes]
    functions = ("Bcast", "Allreduce", "Barrier")
    cases = [
        unmeasured(one, ended.format(one, on)) for one, on in zip(functions, named, strict=False)
    ]
    culprit = only(**healthy(cases=[*cases, judged_case(subject())]))
    assert (culprit.cause, culprit.place.nodes, culprit.narrowed) == ("unexplained", (), False)
    more = f"; crashes of tasks on {said}" if said else ""
    assert culprit.headline == f"unexplained: gige: {len(nodes)} red cases{more}"


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
    found = of(**healthy(failed_tests=[failed_test("PairJob", why)])).culprits
    assert [(one.cause, *one.place.nodes) for one in found] == [
        ("node died", node) for node in nodes
    ]
    assert all(listed in one.evidence[0].sentence for one in found)


# CPUs that something else takes.


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
    launches = tuple(replace(one, loads=loads) for one in pairs.rounds.launches)
    own = replace(with_rounds(pairs, launches=launches), alone=())
    return session_of(of_pairs=[own], described=described or in_job(), partition=strict())


def naming(program: str, *nodes: str) -> list[Node]:
    """The nodes of a job, some with a busy program."""
    return [replace(node, busy=program if node.node in nodes else "none") for node in in_job()]


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


def test_ranks_that_wait_for_cpus_on_one_node_only():
    one = subject()

    def waiting(share: float, machine: str = "") -> tuple[Culprit, ...]:
        """Have the ranks of node 2 wait for so much of the time, on machines of their own."""
        first = one.measured.launches[0]
        loads = [replace(load, machine=machine or load.node) for load in first.loads]
        there = zip(first.ranks, first.used["wall_s"], strict=True)
        waited = [wall_s * (share if node == "gige-2" else 0.01) for node, wall_s in there]
        used = {**first.used, "waited_s": waited}
        launches = [replace(first, number=n, loads=loads, used=used) for n in (1, 2, 3)]
        found = replace(one, measured=one.measured.with_launches(launches))
        return of(cases=[judged_case(found)], described=in_job(), partition=strict()).culprits

    (culprit,) = waiting(0.5)
    assert (culprit.cause, culprit.place.nodes) == ("CPUs taken by something else", ("gige-2",))
    assert "50 % of the time, and for 1 %" in culprit.evidence[0].sentence
    assert waiting(0.05) == waiting(0.5, "vm") == ()


# What rounds of pairs accuse.

LEAVES = {"leaf1": NODES[:2], "leaf2": NODES[2:]}


def in_two_leaves(times: int, slow: float) -> PairsVerdict:
    """Rounds in which each pair is alone in its launch, slower across two leaves of two nodes."""
    recorded = rounds(times).rounds
    launches: list[Launch] = []
    for launch in recorded.launches:
        for pair, curve in zip(launch.pairs, launch.curves, strict=True):
            factor = slow if (pair[0] in NODES[:2]) != (pair[1] in NODES[:2]) else 1.0
            curve = replace(curve, time_us=tuple(factor * t for t in curve.time_us))
            number = len(launches) + 1
            alone = {"number": number, "round": number, "pairs": (pair,), "curves": (curve,)}
            launches.append(replace(recorded.launches[0], **alone))
    tree = {"leaves": LEAVES, "parents": dict.fromkeys(LEAVES, "spine")}
    made = replace(recorded, launches=tuple(launches), **tree)
    return judge(made, site().pair_settings(), BUSY)


def test_pairs_alone_name_the_uplink_of_two_leaves_of_two_nodes():
    several = [in_two_leaves(times, 3.0) for times in (2, 3)]
    # Jobs with other nodes below it accuse the same one.
    accused = replace(several[1].judgement.accusations[0], nodes=NODES[1:2])
    culprit = only(
        **healthy(of_pairs=[several[0], with_judgement(several[1], accusations=(accused,))])
    )
    assert (culprit.cause, culprit.place.name) == ("uplink or leaf slow", "uplink of leaf1")
    assert "uplink of leaf2" in culprit.alternatives
    assert len(culprit.evidence) == 2
    assert not of(**healthy(of_pairs=[in_two_leaves(2, 1.0)])).culprits


def test_with_too_few_pairs_alone_an_uplink_is_not_known_to_be_fine():
    found = of(**healthy(of_pairs=[in_two_leaves(1, 1.0)]))
    assert found.outcome is DiagnosisOutcome.INCONCLUSIVE
    assert any(one.startswith("whether an uplink is slow: ") for one in found.incomplete)


def test_packets_that_stop_between_two_leaves_alone_accuse_no_node_of_them():
    def without(**ends: str) -> tuple[Culprit, ...]:
        stops = {"path_asked_bytes": 8972, "path_passed_bytes": 1472}
        described = in_job(**{node: {"path_to": to, **stops} for node, to in ends.items()})
        return of(described=described, of_pairs=[in_two_leaves(2, 1.0)]).culprits

    (culprit,) = without(gige_1="gige-3", gige_4="gige-2")
    assert culprit.cause == "MTU differs"
    assert str(culprit.place) == "what is between leaf1 and leaf2 (eth1)"
    of_one_node = without(gige_1="gige-3", gige_4="gige-1")
    assert [one.place.kind for one in of_one_node] == [PlaceKind.PAIR] * 2


def test_two_environments_that_accuse_one_node_are_one_culprit_and_one_that_clears_it_is_named():
    accuse = [rounds(environment=name, gige_3=2.0) for name in ("mpich", "openmpi4")]
    culprit = only(**healthy(of_pairs=accuse))
    assert [each.environment for each in culprit.evidence] == ["mpich", "openmpi4"]
    culprit = only(**healthy(of_pairs=[accuse[0], rounds(environment="openmpi4")]))
    assert culprit.alternatives == ("only with mpich: other rounds clear it",)


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
    culprit = only(**healthy(of_pairs=[accusing(kind, "gige-1", nodes, recovery=recovery)]))
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


# What red cases have in common.


@pytest.mark.parametrize(
    ("nodes", "alternatives"),
    [
        (NODES[:2], ()),
        (NODES[2:], ("gige-[1-2]: these cases ran on other nodes with the others",)),
    ],
)
def test_one_environment_alone_is_red_where_others_pass_the_same(nodes, alternatives):
    step = "mpi-inter-node-oneway"
    cases = [
        judged_case(subject(step=step), "slow at 1024"),
        judged_case(subject(step=step, environment="openmpi4", on=nodes)),
    ]
    culprit = only(**healthy(cases=cases))
    assert (culprit.cause, culprit.place.name) == ("one MPI environment only", "mpich")
    assert "1 of its 1 red cases pass with openmpi4" in culprit.why
    assert (culprit.consequences, culprit.alternatives) == (1, alternatives)
    apart = "measure the same cases with another environment, on the same nodes"
    assert culprit.distinguish_by == (apart if alternatives else "")


def test_where_only_tcp_passes_it_may_be_the_switch_too():
    red = judged_case(subject(step="mpi-inter-node-oneway"), "slow at 1024")
    culprit = only(**healthy(cases=[red, judged_case(subject())]))
    assert culprit.cause == "one MPI environment only"
    assert culprit.alternatives == ("the switch under the traffic of all nodes",)


def test_a_node_that_sends_in_batches_is_narrowed_to_the_two_that_all_red_cases_ran_on():
    """Its rate is that of the others, by which alone pairs are judged."""
    red = in_batches(NODES[:2], NODES[:2])
    assert all(one.failed for one in red)
    found = of(**healthy(cases=red, partition=RATE_ALONE))
    (culprit,) = found.culprits
    assert culprit.headline == (
        "gige-1 or gige-2 or what is between them: all 4 red cases between nodes ran there"
    )
    assert (culprit.place.kind, culprit.consequences) == (PlaceKind.PAIR, 4)
    words = " ".join((culprit.headline, culprit.why, *(one.sentence for one in culprit.evidence)))
    assert "as a whole" not in words
    assert "every node" not in words
    assert "rounds of pairs clear gige-[1-4] by rate alone" in found.ruled_out
    assert found.not_known == (BELOW_A_DOUBLING,)


@pytest.mark.parametrize(
    ("on", "pairs", "narrowed", "said"),
    [
        (NODES[:2], [], False, "them, or the whole switch: no other nodes were measured"),
        (NODES[:2], [rounds()], False, "them: all 2 red cases between nodes ran there"),
        (NODES[2:], [], True, "them: all 2 red cases between nodes ran there"),
    ],
)
def test_nodes_that_every_case_ran_on_are_not_singled_out_by_the_red_ones(
    on, pairs, narrowed, said
):
    cases = [
        *red_everywhere(on=(NODES[:2],) * 2),
        judged_case(subject(environment="openmpi5", on=on)),
    ]
    culprit = only(**healthy(cases=cases, of_pairs=pairs))
    assert culprit.headline == f"gige-1 or gige-2 or what is between {said}"
    assert culprit.narrowed is narrowed
    assert ("no case between nodes ran without them" in culprit.why) is not narrowed


def test_pairs_that_were_judged_by_rate_alone_say_nothing_of_a_latency_that_is_red():
    cases = in_batches(NODES[:2], NODES[2:])
    assert only(**healthy(cases=cases, partition=RATE_ALONE)).cause == "unexplained"
    assert only(**healthy(cases=cases)).cause == "the switch as a whole"
    of_rate = red_everywhere()
    assert only(**healthy(cases=of_rate, partition=RATE_ALONE)).cause == "the switch as a whole"


def test_a_pair_below_the_share_that_is_asked_for_explains_the_red_cases_of_its_nodes():
    red = red_everywhere(on=(NODES[:2], NODES[:2]))
    culprit = only(**healthy(cases=red, of_pairs=[few(least=0.8, gige_1=2.0)]))
    assert (len(culprit.evidence), culprit.consequences) == (2, 2)


# Since when.


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
        "slow": slow,
        "fine": lambda: session_of(**healthy()),
        "other": lambda: slow("gige_1"),
        "without pairs": lambda: session_of(**healthy(of_pairs=[])),
    }
    looked: list[int] = []

    def judging(number: int, kind: str) -> JudgedSession:
        looked.append(number)
        if kind == "damaged":
            raise NetproofError("its file is damaged")
        return kinds[kind]()

    several = [
        (f"s{n}", datetime(2026, 11, 20 - n), lambda n=n, kind=kind: judging(n, kind))
        for n, kind in enumerate(before)
    ]
    (found,) = diagnose(slow(), earlier=several)
    since = found.culprits[0].since
    assert (since.began, since.session, since.sessions) == (began, first, count)
    assert len(looked) == asked
    assert str(since)
    damaged = "session s0 cannot be judged: its file is damaged"
    assert (since.why == damaged) is (before == ["damaged"])
