"""A diagnosis is graded by the planted fault, and a campaign resumes where it was."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections import Counter
from pathlib import Path

import pytest
from runs_without_testbed import campaign, planned
from runs_without_testbed import result as result_of

from ci.evaluation import __main__ as evaluate
from ci.evaluation import engine, judges
from ci.evaluation.engine import Campaign, Result
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


def accused(cause: str, place: Place, detail: str = "", *, alike: str = "", sign=Sign.SLOW):
    """A culprit as the diagnosis makes it."""
    shown = str(place) if place.kind is not PlaceKind.SETTING else place.nodes[0]
    seen = Evidence(EvidenceSource.HOST, sign, place, "it was seen", Sure.SEEN, "by the kernel")
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
RIGHT = [
    (run_of("half-rate"), accused("port slower than the others", NODE, "50 %")),
    (run_of("tenth-rate"), accused("port slower than the others", NODE, "10 %")),
    (run_of("little-loss"), accused("packets lost", NODE)),
    (run_of("loss"), accused("packets lost", NODE)),
    (run_of("mtu"), accused("MTU differs", NODE)),
    (run_of("small-buffer", "gige"), accused("the switch as a whole", WHOLE)),
    (run_of("small-buffer", "gige"), accused("packets lost", WHOLE)),
    (
        run_of("busy-cpu"),
        accused("CPUs taken by something else", dataclasses.replace(NODE, interface="")),
    ),
    (run_of("link-flap"), accused("link flapped", NODE)),
    (run_of("link-down"), accused("link down", NODE)),
    (run_of("faster-network", "fast-ethernet"), accused("messages took another network", NETWORK)),
    (run_of("slower-network", "gige"), accused("messages took another network", NETWORK)),
    (run_of("sysctl"), accused("setting differs", setting("net.ipv4.tcp_sack"), "tcp_sack")),
    (run_of("uplink", "tree-leaf-2"), accused("uplink or leaf slow", UPLINK, "50 %")),
    (run_of("uplink", "tree-leaf-2"), accused("oversubscribed", UPLINK, "50 %")),
    (run_of("quarter-uplink", "tree-leaf-2"), accused("oversubscribed", UPLINK, "25 %")),
    (run_of("port-of-a-leaf", "tree-6"), accused("port slower than the others", LEAF_NODE, "50 %")),
    (run_of("buffers-of-leaves", "tree"), accused("packets lost", TREE)),
    (run_of("one-direction"), accused("one direction slow", NODE, "sends")),
    (
        run_of("one-direction", fault={"receive_rate": 0.5}),
        accused("one direction slow", NODE, "receives"),
    ),
]


@pytest.mark.parametrize(("run", "culprit"), RIGHT)
def test_kind_and_place_are_right(run, culprit):
    assert judged(run, culprit) is Grade.RIGHT


def test_there_is_a_right_diagnosis_for_every_kind():
    assert {run.kind for run, _ in RIGHT} == set(KINDS)


@pytest.mark.parametrize(
    ("run", "culprit"),
    [
        (run_of("half-rate"), accused("port slower than the others", OTHER, "50 %")),
        (run_of("loss"), accused("packets lost", PAIR)),
        (run_of("loss"), accused("packets lost", WHOLE)),
        (run_of("mtu"), accused("MTU differs", PAIR)),
        (run_of("small-buffer", "gige"), accused("packets lost", NODE)),
        (run_of("sysctl"), accused("setting differs", setting("net.ipv4.tcp_ecn"), "tcp_ecn")),
        (run_of("sysctl"), accused("setting differs", setting("net.ipv4.tcp_sack", "gige-1"))),
        (
            run_of("uplink", "tree-leaf-2"),
            accused("uplink or leaf slow", dataclasses.replace(UPLINK, kind=PlaceKind.LEAF)),
        ),
        (run_of("uplink", "tree-leaf-1"), accused("uplink or leaf slow", UPLINK)),
        (run_of("one-direction"), accused("one direction slow", NODE, "receives")),
        (run_of("one-direction"), accused("port slower than the others", NODE, "50 %")),
        (
            run_of("slower-network", "gige"),
            accused(
                "messages took another network", dataclasses.replace(NETWORK, interface="eth0")
            ),
        ),
        # What fits alike is named, with another cause before it.
        (
            run_of("half-rate"),
            accused("packets lost", NODE, alike="gige-3 (eth1): slower than the others: 50 %"),
        ),
    ],
)
def test_the_kind_at_another_or_wider_place_is_half_right(run, culprit):
    assert judged(run, culprit) is Grade.HALF


@pytest.mark.parametrize(
    ("run", "culprit"),
    [
        (run_of("half-rate"), accused("packets lost", NODE)),
        (run_of("half-rate"), accused("one MPI environment only", NETWORK)),
        (run_of("half-rate"), accused("one or two nodes or what is between them", OTHER)),
        (run_of("small-buffer", "gige"), accused("port slower than the others", NODE)),
        (run_of("link-down"), accused("link flapped", NODE)),
        (
            run_of("half-rate"),
            accused("packets lost", OTHER, alike="gige-2 (eth1): slower than the others: 50 %"),
        ),
    ],
)
def test_another_kind_is_false(run, culprit):
    assert judged(run, culprit) is Grade.FALSE


def test_nothing_named_is_missed_and_what_is_not_explained_names_nothing():
    run = run_of("half-rate")
    assert judged(run) is Grade.MISSED
    assert judged(run, accused("unexplained", UNKNOWN, "3 red cases")) is Grade.MISSED
    assert judged(run, accused("one or two nodes or what is between them", PAIR)) is Grade.MISSED
    of_switch = run_of("small-buffer", "gige")
    assert (
        judged(of_switch, accused("one or two nodes or what is between them", PAIR)) is Grade.MISSED
    )


def test_what_is_right_is_so_only_if_nothing_else_is_accused_alongside_it():
    run, right = run_of("mtu"), accused("MTU differs", NODE)
    assert judged(run, right, accused("unexplained", UNKNOWN, "1 red case")) is Grade.RIGHT
    assert judged(run, right, accused("MTU differs", PAIR)) is Grade.RIGHT
    assert judged(run, right, accused("MTU differs", OTHER)) is Grade.HALF
    assert judged(run, right, accused("port slower than the others", OTHER)) is Grade.FALSE
    assert judged(run, accused("launches die on one node", NODE), right) is Grade.FALSE


def test_on_a_healthy_testbed_whatever_is_named_is_false():
    run = run_of(HEALTHY)
    assert judged(run) is Grade.RIGHT
    assert judged(run, accused("unexplained", UNKNOWN, "1 red case")) is Grade.FALSE
    unknown = judges.graded(EVALUATION, run, 3, said(incomplete=("1 case inconclusive",)), "")
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


def test_the_environments_are_those_of_the_testbeds_site():
    configuration = site.load(ROOT / "site-config" / "testbed.py")
    features = {one["name"]: one["features"] for one in configuration["environments"]}
    for run in drawn():
        assert features.keys() >= {*run.environments}
    assert all("imb" in features[name] for name in Plant.environments)


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


def results(**odd: Grade) -> tuple[Campaign, list[Result]]:
    """A whole campaign, right but for the first run of the kinds ``odd``."""
    runs = drawn()
    made, seen = [], set()
    for run in runs:
        found = odd.get(run.kind.replace("-", "_"), Grade.RIGHT)
        found = Grade.RIGHT if run.kind in seen else found
        seen.add(run.kind)
        said = () if found is Grade.RIGHT else ("gige-2: the link is down",)
        made.append(result_of(run, found, *said))
    return campaign(*runs, pairs=False), made


def test_the_aims_are_nine_of_ten_right_and_no_healthy_run_that_accuses():
    assert engine.missed(EVALUATION, *results()) == []
    assert engine.missed(EVALUATION, *results(mtu=Grade.FALSE)) == []
    assert engine.missed(EVALUATION, *results(healthy=Grade.FALSE)) == ["healthy: 29 of 30 right"]
    whole, made = results(mtu=Grade.HALF)
    last = max(n for n, one in enumerate(made) if one.run.kind == "mtu")
    made[last] = dataclasses.replace(made[last], judged=Answer(Grade.MISSED))
    assert engine.missed(EVALUATION, whole, made) == ["MTU 1400 on a node: 8 of 10 right"]


def test_the_table_has_a_row_for_each_kind_and_tells_of_what_is_not_right():
    text = engine.table(EVALUATION, *results(mtu=Grade.HALF, healthy=Grade.FALSE))
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + len(KINDS) + 2
    assert len({line.count("|") for line in rows}) == 1
    assert "| MTU 1400 on a node | gige | 10 | 9 | 1 | 0 | 0 | 0 | 39 % | 60 | 60 |" in rows
    assert "| healthy | fast-ethernet, gige, tree | 30 | 29 | 0 | 0 | 1 | 0 |" in text
    assert "**half right**: gige-2: the link is down" in text
    assert "seed 3, 2 CPUs, Linux 6.18" in text
    assert text.endswith("- MISSED: healthy: 29 of 30 right.")
    assert engine.table(EVALUATION, *results()).endswith("Aims met.")


def test_the_command_begins_a_campaign_of_the_kinds_asked_for_and_prints_its_table(fake, tmp_path):
    folder = tmp_path / "campaign"
    asked = ["--kinds", "mtu", "uplink", "--runs", "2", "--healthy", "1", "--seed", "4"]
    assert evaluate.main(["diagnose-campaign", "--out", str(folder), *asked]) == 1
    begun, made = engine.read(EVALUATION, folder)
    assert Counter(run.kind for run in begun.runs) == {"mtu": 2, "uplink": 2, HEALTHY: 1}
    assert [one.run for one in made] == list(begun.runs)
