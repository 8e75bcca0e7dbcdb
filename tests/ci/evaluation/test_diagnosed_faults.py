"""A diagnosis is graded by the planted fault, and a campaign resumes where it was."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections import Counter
from pathlib import Path

import pytest
from runs_without_testbed import planned

from ci.evaluation import __main__ as evaluate
from ci.evaluation import engine, judges
from ci.evaluation.plants import EVALUATIONS, HEALTHY, Answer, Grade, Plant, Run
from ci.testbed import topology_reading
from netproof.diagnosis.causes import TEXTS
from netproof.diagnosis.diagnosis import Diagnosis
from netproof.diagnosis.evidence import (
    Culprit,
    Evidence,
    EvidenceSource,
    Place,
    PlaceKind,
    Sign,
    Sure,
)
from netproof.present import documents
from netproof.site import site

ROOT = Path(__file__).resolve().parents[3]
EVALUATION = EVALUATIONS["diagnose-campaign"]
KINDS = EVALUATION.faults
NODE, ALL = (
    Place(PlaceKind.NODE, "gige-3", ("gige-3",), "eth1"),
    tuple(f"gige-{number}" for number in range(1, 5)),
)
OTHER = Place(PlaceKind.NODE, "gige-2", ("gige-2",), "eth1")
PAIR = Place(PlaceKind.PAIR, "gige-[2-3]", ("gige-2", "gige-3"), "eth1")
WHOLE = Place(PlaceKind.WHOLE, "switch of gige", ALL)
UNKNOWN = Place(PlaceKind.UNKNOWN, "gige")


def run_of(kind: str, place: str = "gige-3", fault: dict | None = None, number: int = 1) -> Run:
    """A planned run; the first fault of its kind if none is given."""
    if kind == HEALTHY:
        return Run(number, kind, 11, ("mpich",), Plant.topology, "gige", (), {})
    made = KINDS[kind]
    chosen = dict(made.faults[0]) if fault is None else fault
    return Run(number, kind, 11, ("mpich",), made.topology, made.switch, (place,), chosen)


def accused(cause: str, place: Place, detail: str = "", alike: str = "") -> Culprit:
    """A culprit as the diagnosis makes it."""
    shown = str(place) if place.kind is not PlaceKind.SETTING else place.nodes[0]
    seen = Evidence(
        EvidenceSource.HOST, Sign.SLOW, place, "it was seen", Sure.SEEN, "by the kernel"
    )
    return Culprit(
        place,
        (seen,),
        Sure.SEEN,
        "the nodes say so themselves",
        alternatives=(alike,) if alike else (),
        cause=cause,
        headline=TEXTS[cause]["headline"].format(place=shown, detail=detail),
        advice="look",
    )


def said(*culprits: Culprit, switch: str = "gige", incomplete: tuple[str, ...] = ()) -> str:
    """Output of ``netproof diagnose --format json`` on them."""
    found = Diagnosis(switch, culprits, 4, 4, 0, frozenset(), (), incomplete, incomplete)
    document = {"format": documents.FORMAT, "session": "run-0.json"}
    document["partitions"] = [documents.plain(found)]
    return json.dumps(document)


def judged(run: Run, *culprits: Culprit) -> Grade:
    text = said(*culprits, switch=run.switch)
    return judges.graded(EVALUATION, run, 1 if culprits else 0, text, "").found


def setting(sysctl: str, node: str = "gige-3") -> Place:
    return Place(PlaceKind.SETTING, f"sysctls {sysctl} on {node}", (node,))


LEAF_NODE = Place(PlaceKind.NODE, "tree-6", ("tree-6",), "eth1")
TREE = Place(PlaceKind.WHOLE, "switch of tree", tuple(f"tree-{node}" for node in range(1, 17)))
UPLINK = Place(PlaceKind.UPLINK, "uplink of tree-leaf-2", ("tree-5", "tree-6", "tree-7", "tree-8"))
NETWORK = Place(PlaceKind.ENVIRONMENT, "mpich", (), "mgmt0")
R, H, F, M = Grade.RIGHT, Grade.HALF, Grade.FALSE, Grade.MISSED
SLOW, LOST, AROUND = (
    *("port slower than the others", "packets lost", "one or two nodes or what is between them"),
)
LEAF = dataclasses.replace(UPLINK, kind=PlaceKind.LEAF)
ETH0 = dataclasses.replace(NETWORK, interface="eth0")
CPU = dataclasses.replace(NODE, interface="")
BACK = {"receive_rate": 0.5}
ANSWERS: list[tuple[Grade, Run, tuple[Culprit, ...]]] = [
    (grade, run, tuple(accused(*one) for one in culprits))
    for grade, run, *culprits in (
        (R, run_of("half-rate"), (SLOW, NODE, "50 %")),
        (R, run_of("tenth-rate"), (SLOW, NODE, "10 %")),
        (R, run_of("little-loss"), (LOST, NODE)),
        (R, run_of("loss"), (LOST, NODE)),
        (R, run_of("mtu"), ("MTU differs", NODE)),
        (R, run_of("small-buffer", "gige"), ("the switch as a whole", WHOLE)),
        (R, run_of("small-buffer", "gige"), (LOST, WHOLE)),
        (R, run_of("busy-cpu"), ("CPUs taken by something else", CPU)),
        (R, run_of("link-flap"), ("link flapped", NODE)),
        (R, run_of("link-down"), ("link down", NODE)),
        (R, run_of("faster-network", "x"), ("messages took another network", NETWORK)),
        (R, run_of("slower-network", "gige"), ("messages took another network", NETWORK)),
        (R, run_of("sysctl"), ("setting differs", setting("net.ipv4.tcp_sack"), "tcp_sack")),
        (R, run_of("uplink", "tree-leaf-2"), ("uplink or leaf slow", UPLINK, "50 %")),
        (R, run_of("uplink", "tree-leaf-2"), ("oversubscribed", UPLINK, "50 %")),
        (R, run_of("quarter-uplink", "tree-leaf-2"), ("oversubscribed", UPLINK, "25 %")),
        (R, run_of("port-of-a-leaf", "tree-6"), (SLOW, LEAF_NODE, "50 %")),
        (R, run_of("buffers-of-leaves", "tree"), (LOST, TREE)),
        (R, run_of("one-direction"), ("one direction slow", NODE, "sends")),
        (R, run_of("one-direction", fault=BACK), ("one direction slow", NODE, "receives")),
        # The kind at another or wider place.
        (H, run_of("half-rate"), (SLOW, OTHER, "50 %")),
        (H, run_of("loss"), (LOST, PAIR)),
        (H, run_of("small-buffer", "gige"), (LOST, NODE)),
        (H, run_of("sysctl"), ("setting differs", setting("net.ipv4.tcp_ecn"), "tcp_ecn")),
        (H, run_of("sysctl"), ("setting differs", setting("net.ipv4.tcp_sack", "gige-1"))),
        (H, run_of("uplink", "tree-leaf-2"), ("uplink or leaf slow", LEAF)),
        (H, run_of("uplink", "tree-leaf-1"), ("uplink or leaf slow", UPLINK)),
        (H, run_of("one-direction"), ("one direction slow", NODE, "receives")),
        (H, run_of("one-direction"), (SLOW, NODE, "50 %")),
        (H, run_of("slower-network", "gige"), ("messages took another network", ETH0)),
        # What fits alike is named, with another cause before it.
        (H, run_of("half-rate"), (LOST, NODE, "", "gige-3 (eth1): slower than the others: 50 %")),
        # Another kind.
        (F, run_of("half-rate"), (LOST, NODE)),
        (F, run_of("half-rate"), (AROUND, OTHER)),
        (F, run_of("link-down"), ("link flapped", NODE)),
        (F, run_of("half-rate"), (LOST, OTHER, "", "gige-2 (eth1): slower than the others: 50 %")),
        # Nothing, and what is not explained.
        (M, run_of("half-rate")),
        (M, run_of("half-rate"), ("unexplained", UNKNOWN, "3 red cases")),
        (M, run_of("half-rate"), (AROUND, PAIR)),
        (M, run_of("small-buffer", "gige"), (AROUND, PAIR)),
        # All together.
        (R, run_of("mtu"), ("MTU differs", NODE), ("unexplained", UNKNOWN, "1 red case")),
        (R, run_of("mtu"), ("MTU differs", NODE), ("MTU differs", PAIR)),
        (H, run_of("mtu"), ("MTU differs", NODE), ("MTU differs", OTHER)),
        (F, run_of("mtu"), ("MTU differs", NODE), (SLOW, OTHER)),
        (F, run_of("mtu"), ("launches die on one node", NODE), ("MTU differs", NODE)),
        # On a healthy testbed whatever is named is false.
        (R, run_of(HEALTHY)),
        (F, run_of(HEALTHY), ("unexplained", UNKNOWN, "1 red case")),
    )
]


@pytest.mark.parametrize(("grade", "run", "culprits"), ANSWERS)
def test_an_answer_has_to_name_kind_and_place_and_nothing_else(grade, run, culprits):
    assert judged(run, *culprits) is grade


def test_every_kind_has_a_right_answer_and_an_inconclusive_one_is_reported():
    assert {run.kind for grade, run, _ in ANSWERS if grade is R} == {*KINDS, HEALTHY}
    text = said(incomplete=("1 case inconclusive",))
    unknown = judges.graded(EVALUATION, run_of(HEALTHY), 3, text, "")
    assert unknown == Answer(Grade.RIGHT, ("inconclusive: 1 case inconclusive",), ("inconclusive",))


drawn = functools.partial(planned, EVALUATION)


def test_order_places_faults_and_environments_are_drawn_by_the_seed():
    runs = drawn()
    assert runs == drawn() != drawn(seed=6)
    assert [run.number for run in runs] == list(range(1, len(KINDS) * 10 + 31))
    assert Counter(run.kind for run in runs) == {**dict.fromkeys(KINDS, 10), HEALTHY: 30}
    assert len({run.places for run in runs if run.kind == "half-rate"}) > 1
    assert len({run.places for run in runs if run.kind == "uplink"}) > 1
    assert len({str(run.fault) for run in runs if run.kind == "sysctl"}) == 3
    assert {run.switch for run in runs if run.kind == HEALTHY} == {"gige", "fast-ethernet", "tree"}


@pytest.mark.slow
def test_every_planned_fault_is_one_that_the_testbed_can_plant():
    for run in drawn():
        there = topology_reading.load(ROOT / run.topology)
        assert run.switch in [switch.name for switch in there.switches]
        for key, value in run.fault.items():
            assert there.checked_fault(run.places[0], key, value) == (
                str(value) if key.startswith("net.") else value
            )
        assert bool(run.fault) is (run.kind != HEALTHY)


def test_mpi_is_led_astray_by_a_site_of_the_run(tmp_path, monkeypatch):
    run = run_of("slower-network", "gige")
    variables = engine.site(EVALUATION, run, tmp_path)
    folder = Path(variables["RFM_CONFIG_PATH"])
    monkeypatch.setenv("NETPROOF_TOPOLOGY", variables["NETPROOF_TOPOLOGY"])
    configuration = site.gather(folder)
    (gige, _) = configuration["systems"][0]["partitions"]
    assert ["FI_TCP_IFACE", "mgmt0"] in gige["env_vars"]
    assert ["OMPI_MCA_btl_tcp_if_include", "mgmt0"] in gige["env_vars"]
    # What the site declares to be under test stays.
    assert gige["extras"]["interface"] == "eth1"
    assert "RFM_CONFIG_PATH" not in engine.site(EVALUATION, run_of("mtu"), tmp_path)


def test_the_command_begins_a_campaign_of_the_kinds_asked_for_and_prints_its_table(fake, tmp_path):
    folder = tmp_path / "campaign"
    asked = ["--kinds", "mtu", "uplink", "--runs", "2", "--healthy", "1", "--seed", "4"]
    assert evaluate.main(["diagnose-campaign", "--out", str(folder), *asked]) == 1
    begun, made = engine.read(EVALUATION, folder)
    assert Counter(run.kind for run in begun.runs) == {"mtu": 2, "uplink": 2, HEALTHY: 1}
    assert [one.run for one in made] == list(begun.runs)
