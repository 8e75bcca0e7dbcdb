"""A diagnosis is graded by the planted fault, and a campaign resumes where it was."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from ci.campaigns import attempting, cluster, errors, judged_run, keeping
from ci.campaigns.errors import CannotRunError
from ci.diagnose_campaign import command, judging, making, records, table
from ci.diagnose_campaign.kinds import HEALTHY, KINDS, Measured
from ci.diagnose_campaign.records import (
    Campaign,
    Found,
    Judged,
    Result,
    Run,
    Settings,
)
from ci.testbed import topology_reading
from netproof.diagnosis.causes import BY_NAME
from netproof.diagnosis.diagnosis import Diagnosis
from netproof.diagnosis.evidence import (
    CauseName,
    Culprit,
    Evidence,
    EvidenceSource,
    Place,
    PlaceKind,
    Sign,
    Sure,
)
from netproof.errors import NetproofError
from netproof.present import documents
from netproof.present.diagnosis import of_diagnosis
from netproof.site import site

ROOT = Path(__file__).resolve().parents[2]
SICK_SESSION = ROOT / "tests" / "data" / "sessions" / "sick.json"
SETTINGS = Settings(3, 0.01, 0.05, 0.05, 0.1, 60.0)
THERE = {
    Measured.ANY: ("intelmpi", "mpich", "openmpi4"),
    Measured.ONE_IMB: ("intelmpi", "mpich"),
    Measured.ALL_IMB: ("intelmpi", "mpich"),
}
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
        return Run(number, kind, 11, "topology.yaml", "gige", ("mpich",), "", {})
    made = KINDS[kind]
    chosen = dict(made.faults[0]) if fault is None else fault
    return Run(number, kind, 11, made.topology, made.switch, ("mpich",), place, chosen)


def accused(cause: CauseName, place: Place, detail: str = "", *, alike: str = "", sign=Sign.SLOW):
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
        headline=BY_NAME[cause].headline.format(place=shown, detail=detail),
        advice="look",
    )


def said(*culprits: Culprit, switch: str = "gige", incomplete: tuple[str, ...] = ()) -> str:
    """Output of ``netproof diagnose --format json`` on them."""
    found = Diagnosis(switch, culprits, 4, 4, 0, frozenset(), (), incomplete, incomplete)
    document = {"format": documents.FORMAT, "session": "run-0.json"}
    document["partitions"] = [of_diagnosis(found)]
    return json.dumps(document)


def judged(run: Run, *culprits: Culprit) -> Found:
    text = said(*culprits, switch=run.switch)
    return judging.judge(run, 1 if culprits else 0, text, "").found


def setting(sysctl: str, node: str = "gige-3") -> Place:
    return Place(PlaceKind.SETTING, f"sysctls {sysctl} on {node}", (node,))


LEAF_NODE = Place(PlaceKind.NODE, "tree-6", ("tree-6",), "eth1")
TREE = Place(PlaceKind.WHOLE, "switch of tree", tuple(f"tree-{node}" for node in range(1, 17)))
UPLINK = Place(PlaceKind.UPLINK, "uplink of tree-leaf-2", ("tree-5", "tree-6", "tree-7", "tree-8"))
NETWORK = Place(PlaceKind.ENVIRONMENT, "mpich", (), "mgmt0")
RIGHT = [
    (run_of("half-rate"), accused(CauseName.SLOW_PORT, NODE, "50 %")),
    (run_of("tenth-rate"), accused(CauseName.SLOW_PORT, NODE, "10 %")),
    (run_of("little-loss"), accused(CauseName.LOSS, NODE)),
    (run_of("loss"), accused(CauseName.LOSS, NODE)),
    (run_of("mtu"), accused(CauseName.MTU, NODE)),
    (run_of("small-buffer", "gige"), accused(CauseName.WHOLE, WHOLE)),
    (run_of("small-buffer", "gige"), accused(CauseName.LOSS, WHOLE)),
    (run_of("busy-cpu"), accused(CauseName.CPU_TAKEN, dataclasses.replace(NODE, interface=""))),
    (run_of("link-flap"), accused(CauseName.LINK_FLAPPED, NODE)),
    (run_of("link-down"), accused(CauseName.LINK_DOWN, NODE)),
    (run_of("faster-network", "fast-ethernet"), accused(CauseName.OTHER_NETWORK, NETWORK)),
    (run_of("slower-network", "gige"), accused(CauseName.OTHER_NETWORK, NETWORK)),
    (run_of("sysctl"), accused(CauseName.SETTING, setting("net.ipv4.tcp_sack"), "tcp_sack")),
    (run_of("uplink", "tree-leaf-2"), accused(CauseName.SLOW_UPLINK, UPLINK, "50 %")),
    (run_of("uplink", "tree-leaf-2"), accused(CauseName.OVERSUBSCRIBED, UPLINK, "50 %")),
    (run_of("quarter-uplink", "tree-leaf-2"), accused(CauseName.OVERSUBSCRIBED, UPLINK, "25 %")),
    (run_of("port-of-a-leaf", "tree-6"), accused(CauseName.SLOW_PORT, LEAF_NODE, "50 %")),
    (run_of("buffers-of-leaves", "tree"), accused(CauseName.LOSS, TREE)),
    (run_of("one-direction"), accused(CauseName.ONE_DIRECTION, NODE, "sends")),
    (
        run_of("one-direction", fault={"receive_rate": 0.5}),
        accused(CauseName.ONE_DIRECTION, NODE, "receives"),
    ),
]


@pytest.mark.parametrize(("run", "culprit"), RIGHT)
def test_kind_and_place_are_right(run, culprit):
    assert judged(run, culprit) is Found.RIGHT


def test_there_is_a_right_diagnosis_for_every_kind():
    assert {run.kind for run, _ in RIGHT} == set(KINDS)


@pytest.mark.parametrize(
    ("run", "culprit"),
    [
        (run_of("half-rate"), accused(CauseName.SLOW_PORT, OTHER, "50 %")),
        (run_of("loss"), accused(CauseName.LOSS, PAIR)),
        (run_of("loss"), accused(CauseName.LOSS, WHOLE)),
        (run_of("mtu"), accused(CauseName.MTU, PAIR)),
        (run_of("small-buffer", "gige"), accused(CauseName.LOSS, NODE)),
        (run_of("sysctl"), accused(CauseName.SETTING, setting("net.ipv4.tcp_ecn"), "tcp_ecn")),
        (run_of("sysctl"), accused(CauseName.SETTING, setting("net.ipv4.tcp_sack", "gige-1"))),
        (
            run_of("uplink", "tree-leaf-2"),
            accused(CauseName.SLOW_UPLINK, dataclasses.replace(UPLINK, kind=PlaceKind.LEAF)),
        ),
        (run_of("uplink", "tree-leaf-1"), accused(CauseName.SLOW_UPLINK, UPLINK)),
        (run_of("one-direction"), accused(CauseName.ONE_DIRECTION, NODE, "receives")),
        (run_of("one-direction"), accused(CauseName.SLOW_PORT, NODE, "50 %")),
        (
            run_of("slower-network", "gige"),
            accused(CauseName.OTHER_NETWORK, dataclasses.replace(NETWORK, interface="eth0")),
        ),
        # What fits alike is named, with another cause before it.
        (
            run_of("half-rate"),
            accused(CauseName.LOSS, NODE, alike="gige-3 (eth1): slower than the others: 50 %"),
        ),
    ],
)
def test_the_kind_at_another_or_wider_place_is_half_right(run, culprit):
    assert judged(run, culprit) is Found.HALF


@pytest.mark.parametrize(
    ("run", "culprit"),
    [
        (run_of("half-rate"), accused(CauseName.LOSS, NODE)),
        (run_of("half-rate"), accused(CauseName.ENVIRONMENT, NETWORK)),
        (run_of("half-rate"), accused(CauseName.ONE_OR_TWO, OTHER)),
        (run_of("small-buffer", "gige"), accused(CauseName.SLOW_PORT, NODE)),
        (run_of("link-down"), accused(CauseName.LINK_FLAPPED, NODE)),
        (
            run_of("half-rate"),
            accused(CauseName.LOSS, OTHER, alike="gige-2 (eth1): slower than the others: 50 %"),
        ),
    ],
)
def test_another_kind_is_false(run, culprit):
    assert judged(run, culprit) is Found.FALSE


def test_nothing_named_is_missed_and_what_is_not_explained_names_nothing():
    run = run_of("half-rate")
    assert judged(run) is Found.MISSED
    assert judged(run, accused(CauseName.UNEXPLAINED, UNKNOWN, "3 red cases")) is Found.MISSED
    assert judged(run, accused(CauseName.ONE_OR_TWO, PAIR)) is Found.MISSED
    of_switch = run_of("small-buffer", "gige")
    assert judged(of_switch, accused(CauseName.ONE_OR_TWO, PAIR)) is Found.MISSED


def test_what_is_right_is_so_only_if_nothing_else_is_accused_alongside_it():
    run, right = run_of("mtu"), accused(CauseName.MTU, NODE)
    assert judged(run, right, accused(CauseName.UNEXPLAINED, UNKNOWN, "1 red case")) is Found.RIGHT
    assert judged(run, right, accused(CauseName.MTU, PAIR)) is Found.RIGHT
    assert judged(run, right, accused(CauseName.MTU, OTHER)) is Found.HALF
    assert judged(run, right, accused(CauseName.SLOW_PORT, OTHER)) is Found.FALSE
    assert judged(run, accused(CauseName.CRASHES, NODE), right) is Found.FALSE


def test_on_a_healthy_testbed_whatever_is_named_is_false():
    run = run_of(HEALTHY)
    assert judged(run) is Found.RIGHT
    assert judged(run, accused(CauseName.UNEXPLAINED, UNKNOWN, "1 red case")) is Found.FALSE
    unknown = judging.judge(run, 3, said(incomplete=("1 case inconclusive",)), "")
    assert unknown == Judged(Found.RIGHT, ("inconclusive: 1 case inconclusive",), "inconclusive")


@pytest.mark.slow
def test_a_recorded_session_is_compared_with_what_was_planted(monkeypatch, tmp_path):
    run = run_of("small-buffer", "gige")
    monkeypatch.setattr(judged_run.night, "measure", recorded)
    monkeypatch.setenv("RFM_CONFIG_PATH", str(ROOT / "site-config"))
    monkeypatch.setenv("RFM_REFERENCE_PREFIX", str(ROOT / "reference-values"))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setenv("NETPROOF_STORE", str(tmp_path / "none"))
    found = making.measure(run, SETTINGS, tmp_path, 0)
    assert (found.found, found.outcome) == (Found.MISSED, "something found")
    assert found.said[0].startswith("gige-1 or gige-2 or what is between them: all 4 red cases")
    assert json.loads((tmp_path / "diagnosis.json").read_text())["partitions"]


def recorded(arguments, *, report: Path, **_others) -> None:
    """Stands for ReFrame, and leaves a session of a sick switch."""
    report.write_bytes(SICK_SESSION.read_bytes())


SOMETHING = said(accused(CauseName.MTU, NODE))


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (2, ""),
        (1, SOMETHING[:-5]),
        (0, SOMETHING),
        (2, SOMETHING),
        (3, SOMETHING),
        (1, said()),
        (0, said(incomplete=("nothing was measured",))),
        (1, said(accused(CauseName.MTU, NODE), switch="fast-ethernet")),
        (1, SOMETHING.replace('"MTU differs"', '"the weather"')),
        (1, SOMETHING.replace(f'"format": {documents.FORMAT}', '"format": 99')),
        (1, json.dumps({"format": documents.FORMAT, "partitions": []})),
        (1, "[]"),
    ],
)
def test_what_is_no_diagnosis_is_not_judged(status, text):
    found = judging.judge(run_of("mtu"), status, text, "netproof: cannot diagnose: why")
    assert found.found is Found.NOT_JUDGED
    assert found.said[0]


@pytest.fixture
def drawn(monkeypatch):
    """Plans without asking which MPI libraries this machine has."""
    monkeypatch.setattr(records, "environments", lambda: THERE)
    return records.planned


@pytest.mark.slow
def test_order_places_faults_and_environments_are_drawn_by_the_seed(drawn):
    runs = drawn(list(KINDS), 10, 30, 5)
    assert runs == drawn(list(KINDS), 10, 30, 5)
    assert runs != drawn(list(KINDS), 10, 30, 6)
    assert [run.number for run in runs] == list(range(1, len(KINDS) * 10 + 31))
    assert Counter(run.kind for run in runs) == {**dict.fromkeys(KINDS, 10), HEALTHY: 30}
    assert len({run.place for run in runs if run.kind == "half-rate"}) > 1
    assert len({run.place for run in runs if run.kind == "uplink"}) > 1
    assert len({str(run.fault) for run in runs if run.kind == "sysctl"}) == 3
    assert {run.switch for run in runs if run.kind == HEALTHY} == {"gige", "fast-ethernet", "tree"}


@pytest.mark.slow
def test_every_planned_fault_is_one_that_the_testbed_can_plant(drawn):
    for run in drawn(list(KINDS), 10, 30, 5):
        there = topology_reading.load(ROOT / "ci" / "testbed" / run.topology)
        assert run.switch in [switch.name for switch in there.switches]
        for key, value in run.fault.items():
            assert there.checked_fault(run.place, key, value) == (
                str(value) if key.startswith("net.") else value
            )
        assert bool(run.fault) is (run.kind != HEALTHY)


def test_what_rounds_of_pairs_tell_has_all_environments_that_make_them(drawn):
    runs = {run.kind: run for run in drawn(list(KINDS), 1, 0, 5)}
    for name in ("half-rate", "uplink", "one-direction", "small-buffer"):
        assert runs[name].environments == THERE[Measured.ALL_IMB]
    for name in ("loss", "mtu", "link-down", "slower-network"):
        assert len(runs[name].environments) == 1


@pytest.mark.slow
def test_rounds_of_pairs_alone_are_made_in_one_environment_with_imb(drawn):
    whole, pairs = (drawn(list(KINDS), 2, 2, 5, pairs=pairs) for pairs in (False, True))
    assert [(one.kind, one.seed) for one in pairs] == [(one.kind, one.seed) for one in whole]
    for run in pairs:
        (environment,) = run.environments
        assert environment in THERE[Measured.ONE_IMB]


def test_the_environments_are_those_of_the_testbeds_site():
    there = records.environments()
    assert {"mpich", "intelmpi", "openmpi4", "openmpi5"} <= set(there[Measured.ANY])
    assert {"mpich", "intelmpi"} <= set(there[Measured.ALL_IMB])
    assert "openmpi4" not in there[Measured.ALL_IMB]


def test_mpi_is_led_astray_by_a_site_of_the_run(tmp_path, monkeypatch):
    run = run_of("slower-network", "gige")
    variables = making.site_settings(run, tmp_path)
    folder = Path(variables["RFM_CONFIG_PATH"])
    monkeypatch.setenv("NETPROOF_TOPOLOGY", variables["NETPROOF_TOPOLOGY"])
    configuration = site.gather(folder)
    (gige, _) = configuration["systems"][0]["partitions"]
    assert ["FI_TCP_IFACE", "mgmt0"] in gige["env_vars"]
    assert ["OMPI_MCA_btl_tcp_if_include", "mgmt0"] in gige["env_vars"]
    # What the site declares to be under test stays.
    assert gige["extras"]["interface"] == "eth1"
    assert "RFM_CONFIG_PATH" not in making.site_settings(run_of("mtu"), tmp_path)


def test_a_run_measures_its_switch_with_its_environments_and_topology(tmp_path, monkeypatch):
    asked = {}

    def far_enough(arguments, *, settings, **_others):
        asked.update(arguments=arguments, settings=settings)
        raise NetproofError("far enough")

    monkeypatch.setattr(judged_run.night, "measure", far_enough)
    run = dataclasses.replace(run_of("uplink", "tree-leaf-1"), environments=("intelmpi", "mpich"))
    with pytest.raises(NetproofError, match="far enough"):
        making.measure(run, SETTINGS, tmp_path, 0)
    arguments = asked["arguments"]
    assert arguments[:2] == ["--system", "testbed:tree"]
    assert arguments[arguments.index("-p") + 1] == "^(intelmpi|mpich)$"
    assert asked["settings"]["NETPROOF_TOPOLOGY"].endswith("ci/testbed/leaves.yaml")
    assert arguments[arguments.index("-c") + 1] == str(ROOT / "checks")
    assert "launches=1" in arguments
    with pytest.raises(NetproofError, match="far enough"):
        making.measure(run, dataclasses.replace(SETTINGS, pairs=True), tmp_path, 0)
    arguments = asked["arguments"]
    assert arguments[arguments.index("-c") + 1] == str(ROOT / "checks" / "pairs.py")
    assert "launches=1" not in arguments


class NoTestbed:
    """Stands for the testbed, which these tests leave alone."""

    verbs: list[str]

    def __init__(self, log: Path) -> None:
        NoTestbed.verbs = []

    def up(self, topology: Path) -> None:
        self.verbs.append(f"up {topology.stem}")

    def plant(self, place: str, fault: dict) -> None:
        self.verbs.append(f"plant {place} {fault}")

    def plant_for(self, place: str, fault: dict, seconds: float) -> subprocess.Popen[bytes]:
        self.verbs.append(f"plant {place} {fault} for {seconds:g}")
        return subprocess.Popen(["sleep", "0.1"])

    def lift(self) -> None:
        self.verbs.append("lift")

    def rebuild(self) -> None:
        self.verbs.append("rebuild")

    def restore(self) -> None:
        self.verbs.append("restored")


@pytest.fixture
def fake(monkeypatch):
    """Runs without a testbed: ``fake["measure"]`` says what becomes of each, in its folder."""
    made: dict = {"runs": [], "measure": lambda run, folder: Judged(Found.RIGHT)}

    def measure(run, settings, folder, lock):
        made["runs"].append(run.number)
        return made["measure"](run, folder)

    monkeypatch.setattr(making, "Testbed", NoTestbed)
    monkeypatch.setattr(attempting, "wait_until_quiet", lambda settings: (0.1, 0.0))
    monkeypatch.setattr(making, "has_launch", lambda node: True)
    monkeypatch.setattr(making, "measure", measure)
    return made


def campaign(*runs: Run) -> Campaign:
    machine = {"cpus": 2, "kernel": "6.18", "autogroup": True}
    return Campaign(SETTINGS, runs, keeping.code_digest(), machine)


MTU, CLEAN = run_of("mtu"), run_of(HEALTHY, number=2)


def test_a_fault_is_there_while_its_run_is_made_and_lifted_after_it(fake, tmp_path, capsys):
    keeping.begin(tmp_path, campaign(MTU, CLEAN))
    fake["measure"] = lambda run, folder: NoTestbed.verbs.append("measure") or Judged(Found.RIGHT)
    making.go_on(tmp_path)
    assert NoTestbed.verbs == [
        *("up topology", "plant gige-3 {'mtu': 1400}", "measure", "lift"),
        *("up topology", "measure", "restored"),
    ]
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("1/2 MTU 1400 on a node gige-3 mtu=1400: load average ")


@pytest.mark.parametrize(
    "error",
    [NetproofError("no report"), OSError("no space"), errors.Ended("SIGTERM")],
)
def test_a_fault_is_lifted_whatever_ends_its_run(fake, tmp_path, error):
    keeping.begin(tmp_path, campaign(MTU))

    def broken(run, folder):
        raise error

    fake["measure"] = broken
    if isinstance(error, errors.Ended):
        with pytest.raises(errors.Ended):
            making.go_on(tmp_path)
    else:
        making.go_on(tmp_path)
        (only,) = records.read(tmp_path)[1]
        assert only.judged == Judged(Found.NOT_JUDGED, (str(error),))
        assert "rebuild" in NoTestbed.verbs
    assert NoTestbed.verbs[2] == "lift"
    assert NoTestbed.verbs[-1] == "restored"


def test_a_fault_that_is_not_lifted_makes_its_run_not_judged(fake, tmp_path, monkeypatch):
    def stays(self):
        raise NetproofError("testbed lift ended with 1")

    monkeypatch.setattr(NoTestbed, "lift", stays)
    keeping.begin(tmp_path, campaign(MTU, CLEAN))
    making.go_on(tmp_path)
    first, second = records.read(tmp_path)[1]
    assert first.judged.said == ("testbed lift ended with 1",)
    assert second.judged.found is Found.RIGHT
    assert "rebuild" in NoTestbed.verbs


def test_a_campaign_goes_on_with_what_has_no_result_and_what_was_not_judged(fake, tmp_path):
    runs = (MTU, CLEAN, run_of("loss", number=3))
    keeping.begin(tmp_path, campaign(*runs))

    def second_breaks_and_third_is_interrupted(run, folder):
        (folder / "reframe.log").write_text("half of it")
        if run.number == 3:
            raise errors.Ended("SIGTERM")
        return Judged(Found.NOT_JUDGED if run.number == 2 else Found.MISSED, ("why",))

    fake["measure"] = second_breaks_and_third_is_interrupted
    with pytest.raises(errors.Ended):
        making.go_on(tmp_path)
    assert [one.run for one in records.read(tmp_path)[1]] == [MTU, CLEAN]

    def again(run, folder):
        assert not (folder / "reframe.log").exists()
        return Judged(Found.RIGHT)

    fake["measure"] = again
    making.go_on(tmp_path)
    assert fake["runs"] == [1, 2, 3, 2, 3]
    found = [one.judged.found for one in records.read(tmp_path)[1]]
    assert found == [Found.MISSED, Found.RIGHT, Found.RIGHT]
    making.go_on(tmp_path)
    assert fake["runs"] == [1, 2, 3, 2, 3]


@pytest.mark.slow
def test_a_link_goes_down_for_two_seconds_after_the_first_launch_on_its_node(fake, tmp_path):
    keeping.begin(tmp_path, campaign(run_of("link-flap")))
    fake["measure"] = lambda run, folder: time.sleep(1) or Judged(Found.RIGHT)
    making.go_on(tmp_path)
    (only,) = records.read(tmp_path)[1]
    assert only.judged.found is Found.RIGHT
    assert NoTestbed.verbs[1:3] == ["plant gige-3 {'link': 'down'} for 2", "lift"]


def test_reports_are_judged_again_and_what_was_found_stays(fake, tmp_path, monkeypatch):
    broken = run_of("faster-network", number=3)
    keeping.begin(tmp_path, campaign(MTU, CLEAN, broken))

    def measure(run, folder):
        if run.kind != HEALTHY:
            (folder / judged_run.REPORT).write_text("{}")
        return Judged(Found.NOT_JUDGED if run == broken else Found.MISSED, ("why",))

    fake["measure"] = measure
    making.go_on(tmp_path)
    asked = []

    def answered(command, folder, name, **_):
        asked.append((command[2], folder.name, name))
        return subprocess.CompletedProcess(command, 0, "", "no diagnosis")

    monkeypatch.setattr(making, "answered", answered)
    _, again = making.read_judged_again(tmp_path)
    assert asked == [(f"testbed:{MTU.switch}", MTU.folder, "diagnosis-again")]
    assert [one.judged.found for one in again] == [
        *(Found.NOT_JUDGED, Found.MISSED, Found.NOT_JUDGED)
    ]
    assert "no diagnosis" in again[0].judged.said[0]
    kept = [one.judged.found for one in records.read(tmp_path)[1]]
    assert kept == [Found.MISSED, Found.MISSED, Found.NOT_JUDGED]


def test_a_run_that_ends_before_its_link_went_down_and_came_back_is_not_judged(
    fake, tmp_path, monkeypatch
):
    monkeypatch.setattr(making, "has_launch", lambda node: False)
    keeping.begin(tmp_path, campaign(run_of("link-flap")))
    making.go_on(tmp_path)
    (only,) = records.read(tmp_path)[1]
    assert only.judged.found is Found.NOT_JUDGED
    assert "the run ended before" in only.judged.said[0]


def test_a_launch_on_a_node_is_distinct_from_the_script_of_its_job(tmp_path, monkeypatch):
    program = tmp_path / "squeue"
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for steps, launching in (("7.batch 7.extern", False), ("7.batch 7.0", True), ("", False)):
        program.write_text(f"#!/bin/bash\nprintf '%s\\n' {steps}\n")
        program.chmod(0o755)
        assert making.has_launch("gige-1") is launching


def test_runs_of_other_code_are_no_one_campaign(fake, tmp_path):
    keeping.begin(tmp_path, dataclasses.replace(campaign(MTU), code="other"))
    with pytest.raises(CannotRunError, match="other code or configuration"):
        making.go_on(tmp_path)
    assert fake["runs"] == []


def test_a_campaign_of_another_kind_is_refused(tmp_path):
    keeping.begin(tmp_path, campaign(MTU))
    path = tmp_path / keeping.CAMPAIGN_FILE
    path.write_text(path.read_text().replace('"kind": "mtu"', '"kind": "the weather"'))
    with pytest.raises(CannotRunError, match="'the weather' is no kind of run"):
        records.read(tmp_path)


def results(drawn, **odd: Found) -> tuple[Campaign, list[Result]]:
    """A whole campaign, right but for the first run of the kinds ``odd``."""
    runs = drawn(list(KINDS), 10, 30, 5)
    made, seen = [], set()
    for run in runs:
        found = odd.get(run.kind.replace("-", "_"), Found.RIGHT)
        found = Found.RIGHT if run.kind in seen else found
        seen.add(run.kind)
        said = () if found is Found.RIGHT else ("gige-2: the link is down",)
        made.append(
            Result(
                run,
                Judged(found, said),
                "2026-11-22T10:00:00+00:00",
                60.0,
                (0.2, 0.1, 0.1),
                (1.0, 1.0, 1.0),
            )
        )
    return campaign(*runs), made


@pytest.mark.slow
def test_the_aims_are_nine_of_ten_right_and_no_healthy_run_that_accuses(drawn):
    assert table.missed(*results(drawn)) == []
    assert table.missed(*results(drawn, mtu=Found.FALSE)) == []
    assert table.missed(*results(drawn, healthy=Found.FALSE)) == [
        "1 of 30 healthy runs accuse something"
    ]
    assert table.missed(*results(drawn, mtu=Found.NOT_JUDGED)) == [
        "1 runs were not judged; --resume makes them again",
        "MTU 1400 on a node: 9 of the 10 runs that it takes",
    ]
    whole, made = results(drawn, mtu=Found.HALF)
    last = max(n for n, one in enumerate(made) if one.run.kind == "mtu")
    made[last] = dataclasses.replace(made[last], judged=Judged(Found.MISSED))
    assert table.missed(whole, made) == ["MTU 1400 on a node: 8 of 10 right"]
    assert table.missed(whole, made[:-1])[0] == "199 of 200 runs were made"


@pytest.mark.slow
def test_the_table_has_a_row_for_each_kind_and_tells_of_what_is_not_right(drawn):
    text = table.table(*results(drawn, mtu=Found.HALF, healthy=Found.FALSE))
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + len(KINDS) + 1
    assert {line.count("|") for line in rows} == {len(table.HEAD) + 1}
    assert "| MTU 1400 on a node | gige | 10 | 9 | 1 | 0 | 0 | 0 | 0 | 39 % | 60 | 60 |" in rows
    assert "| healthy | fast-ethernet, gige, tree | 30 | 29 | 0 | 0 | 1 | 0 | 0 |" in text
    assert "**half right**: gige-2: the link is down" in text
    assert "seed 3, 2 CPUs, Linux 6.18" in text
    assert text.endswith("- MISSED: 1 of 30 healthy runs accuse something.")
    assert table.table(*results(drawn)).endswith("Aims met.")


def test_the_command_begins_a_campaign_of_the_kinds_asked_for_and_prints_its_table(fake, tmp_path):
    folder = tmp_path / "campaign"
    asked = ["--kinds", "mtu", "uplink", "--runs", "2", "--healthy", "1", "--seed", "4"]
    assert command.main(["--out", str(folder), *asked]) == 1
    begun, made = records.read(folder)
    assert Counter(run.kind for run in begun.runs) == {"mtu": 2, "uplink": 2, HEALTHY: 1}
    assert [one.run for one in made] == list(begun.runs)


@pytest.mark.slow
def test_the_script_prints_what_was_found_so_far(tmp_path):
    keeping.begin(tmp_path, campaign(MTU))
    command = [ROOT / "ci" / "diagnose-campaign", "--table", tmp_path]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 1, ran.stderr
    assert "MISSED: 0 of 1 runs were made." in ran.stdout


INTERRUPTED = """
import sys, time
from ci.campaigns import attempting
from ci.diagnose_campaign import command, making

class NoTestbed:
    def __init__(self, log): pass
    def up(self, topology): pass
    def plant(self, place, fault): pass
    def lift(self): print("lifted", flush=True)
    def restore(self): print("restored", flush=True)

def measure(run, settings, folder, lock):
    print("measuring", flush=True)
    time.sleep(60)

making.Testbed, making.measure = NoTestbed, measure
attempting.wait_until_quiet = lambda settings: (0.0, 0.0)
sys.exit(command.main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_a_campaign_that_gets_a_signal_to_end_lifts_its_fault(tmp_path):
    folder = tmp_path / "campaign"
    asked = ["--out", str(folder), "--kinds", "mtu", "--runs", "1", "--healthy", "0"]
    command = [sys.executable, "-c", INTERRUPTED, *asked]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True) as ours:
        assert "load average" in ours.stdout.readline()
        assert ours.stdout.readline() == "measuring\n"
        ours.send_signal(signal.SIGTERM)
        out, errors = ours.communicate(timeout=30)
    assert (ours.returncode, out) == (2, "lifted\nrestored\n")
    assert f"ended by SIGTERM; go on with --resume {folder}" in errors


def test_a_fault_is_planted_and_lifted_by_the_testbeds_own_verbs(tmp_path, monkeypatch):
    program, calls = tmp_path / "testbed", tmp_path / "calls"
    program.write_text(
        f'#!/bin/bash\nprintf "<%s>" "$@" >>{calls}; echo >>{calls}\n[[ $1 != status ]] || exit 2\n'
    )
    program.chmod(0o755)
    monkeypatch.setattr(cluster, "TESTBED", program)
    monkeypatch.setenv("SLURM_CONF", "")
    testbed = cluster.Testbed(tmp_path / "log")
    testbed.plant("gige-1", {"net.ipv4.tcp_rmem": "4096 16384 16384"})
    assert testbed.plant_for("gige-2", {"link": "down"}, 2.0).wait() == 0
    testbed.lift()
    assert calls.read_text().splitlines()[1:] == [
        "<plant><gige-1><net.ipv4.tcp_rmem=4096 16384 16384>",
        "<plant><gige-2><link=down><--for><2>",
        "<lift>",
    ]
