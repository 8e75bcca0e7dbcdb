"""A switch measured alone is judged with what a store has of the others, each with its date."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from made_reports import busy
from typer.testing import CliRunner

from netproof import codec
from netproof.commands.cli import app
from netproof.diagnosis.diagnosis import ingest
from netproof.measurement import links
from netproof.measurement.case import Case
from netproof.session import node_facts, provenance, session
from netproof.session.measured import Launch, Measured
from netproof.store import Store
from netproof.verdict import session_verdict
from netproof.verdict.session_verdict import JudgedSession
from netproof.verdict.verdict import StoredResults

ROOT = Path(__file__).resolve().parents[3]
RECORDED = ROOT / "tests" / "data" / "sessions"
BOTH = RECORDED / "two-switches.json"
"""Sendrecv, Barrier and NetPIPE between two nodes, of two environments on both switches."""
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("project")]

NODE = ROOT / "tests" / "data" / "nodes" / "same" / "node.gige-1.txt"


def report(
    tmp_path: Path,
    name: str,
    partition: str,
    days: float = 0,
    change: Callable[[list[dict]], None] = lambda tests: None,
) -> Path:
    """The recorded run as if only one of its switches had been measured, so many days later."""
    document = json.loads(BOTH.read_text())
    info, run = document["session_info"], document["runs"][0]
    run["testcases"] = [test for test in run["testcases"] if test["partition"] == partition]
    change(run["testcases"])
    run["num_cases"] = len(run["testcases"])
    info["uuid"] = f"{abs(hash(name)) % 16**8:08x}{info['uuid'][8:]}"
    info["time_start_unix"] += 86400 * days
    path = tmp_path / f"{name}.json"
    path.write_text(json.dumps(document))
    return path


def store_of(tmp_path: Path, *reports: Path) -> Path:
    made = Store.create(tmp_path / "store")
    for path in reports:
        ingest(made, path)
    return made.folder


def judged(new: Path, store: Path, **asked: object) -> JudgedSession:
    return session_verdict.judge_session(
        session.load(new), system="testbed:fast-ethernet", asked=StoredResults(store, **asked)
    )


def of_jumbo_frames(tests: list[dict]) -> None:
    for test in tests:
        if test["netproof_measured"]:
            test["netproof_measured"]["partition_extras"]["mtu"] = 9000
            test["netproof_measured"].update(figures(test["netproof_measured"]))


def figures(values: dict) -> dict:
    """Return a check's measurement of these launches over this link, all over TCP."""
    launches = codec.decode(tuple[Launch, ...], values["launches"], "launches")
    case, extras = Case(**values["case"]), values["partition_extras"]
    functions = 2 if case.function == "Sendrecv" else 1
    rate = functions * links.Link(extras["link_mbit_s"], extras["mtu"]).line_rate_mb_s()
    rate = rate if values["line_rate_mb_s"] else None
    peak_from = extras["line_rate_from_bytes"] if rate else 0
    return codec.encode(Measured(case, launches, rate, peak_from))


def made_with(
    netproof: str, kernel: str, driver_version: str, benchmark: str
) -> Callable[[list[dict]], None]:
    """Provenance of every job, of a recorded node; ``benchmark``: the SHA-256 of IMB-MPI1."""
    node = dataclasses.replace(
        node_facts.read_node(NODE),
        kernel=kernel,
        driver="veth",
        driver_version=driver_version,
        programs={"IMB-MPI1": f"{benchmark} /opt/IMB-MPI1"},
    )
    software = {
        **{"netproof": netproof, "reframe": "4.10.4", "slurm": "slurm 22.05.8"},
        **{"git_revision": "0" * 40, "git_changed": False, "files": {}},
    }

    def change(tests: list[dict]) -> None:
        for test in tests:
            test[provenance.KEY] = {
                **software,
                "nodes": [dataclasses.asdict(node)],
            }

    return change


def failed(test: dict) -> None:
    test["result"] = "fail"


def collapsed(test: dict) -> None:
    for launch in test["netproof_measured"]["launches"]:
        times = launch["curves"][0]["time_us"]
        times[-4] = 1000 * times[-1]
    test["netproof_measured"].update(figures(test["netproof_measured"]))


def disturbed(test: dict) -> None:
    for launch in test["netproof_measured"]["launches"]:
        launch["loads"] = [busy()]


def inconclusive(test: dict) -> None:
    latency = {"value": 6, "bound": 5, "interval": [4, 7], "variable": "latency_us"}
    said = {"criterion": "reference", "level": "inconclusive", "where": "it", "reason": "undecided"}
    test["netproof_references"] = [said | latency]


SPOILT = {
    ("mpich", "mpi"): failed,
    ("mpich", "Sendrecv"): collapsed,
    ("intelmpi", "Sendrecv"): disturbed,
    ("intelmpi", "Barrier"): inconclusive,
}


def test_of_each_case_the_newest_session_in_which_it_was_good_counts(tmp_path):
    def spoil(tests: list[dict]) -> None:
        for test in tests:
            case = test["netproof_case"] or {}
            change = SPOILT.get((test["environ"], case.get("function")))
            if change and test["netproof_measured"]:
                change(test)

    older = report(tmp_path, "older", "gige", -9)
    store = store_of(tmp_path, older, report(tmp_path, "newer", "gige", -2, spoil))
    found = judged(report(tmp_path, "new", "fast-ethernet"), store).verdict.compared_with.cases
    newest = max(one.date for one in found)
    old = {(one.case.environment, one.case.function) for one in found if one.date < newest}
    assert old == {*SPOILT}


def test_an_old_session_is_marked_and_can_be_left_out(tmp_path):
    store = store_of(tmp_path, report(tmp_path, "old", "gige", -41))
    new = report(tmp_path, "new", "fast-ethernet")
    marked = judged(new, store).verdict.compared_with
    assert {one.marks for one in marked.cases} == {("41 days older, and 30 are allowed",)}
    assert not {
        one.marks for one in judged(new, store, max_age_days=60).verdict.compared_with.cases
    } - {()}
    without = judged(new, store, leave_out_marked=True).verdict
    assert without.compared_with.cases == ()
    assert {one.case.key() for one in without.compared_with.left_out} == {
        one.case.key() for one in marked.cases
    }
    assert any(
        note.startswith("no scores for ") and "the baseline gige mpich did not run them" in note
        for note in without.notes
    )


def test_another_configuration_is_marked_and_an_unmarked_older_one_takes_its_place(tmp_path):
    store = store_of(
        tmp_path,
        report(tmp_path, "same", "gige", -9),
        report(tmp_path, "jumbo", "gige", -2, of_jumbo_frames),
    )
    new = report(tmp_path, "new", "fast-ethernet")
    newest = judged(new, store).verdict.compared_with.cases
    assert {one.marks for one in newest} == {("mtu was 9000 and is 1500 in the site's file",)}
    unmarked = judged(new, store, leave_out_marked=True).verdict.compared_with.cases
    assert {one.marks for one in unmarked} == {()}
    assert {one.session for one in unmarked}.isdisjoint({one.session for one in newest})


def test_other_versions_are_marked_in_words(tmp_path):
    then, now = ("0.0.9", "6.1.0-25", "1.0", "aaa"), ("0.1.0", "6.1.0-27", "1.1", "bbb")
    store = store_of(tmp_path, report(tmp_path, "old", "gige", -3, made_with(*then)))
    of_imb = (
        "made with netproof 0.0.9, and not 0.1.0",
        "kernel 6.1.0-25, and not 6.1.0-27",
        "driver veth 1.0, and not 1.1",
        "other files of IMB-MPI1",
    )
    new = report(tmp_path, "new", "fast-ethernet", 0, made_with(*now))
    marks = {
        one.case.benchmark: one.marks for one in judged(new, store).verdict.compared_with.cases
    }
    assert marks == {"imb": of_imb, "netpipe": of_imb[:-1]}
    assert judged(new, store, leave_out_marked=True).verdict.compared_with.cases == ()
    same = report(tmp_path, "same", "fast-ethernet", 0, made_with(*then))
    assert {one.marks for one in judged(same, store).verdict.compared_with.cases} == {()}


def test_what_a_run_left_for_another_night_is_taken_from_the_store(tmp_path):
    def left(tests: list[dict]) -> None:
        for test in tests:
            test |= {"unique_name": test["display_name"], "dependencies_actual": []}
            if test["environ"] == "mpich":
                test |= {"result": "skip", "netproof_measured": None}
                test["netproof_left"] = {"why": "another night's turn", "planned": True}

    store = store_of(tmp_path, report(tmp_path, "old", "gige", -1))
    new = session.load(report(tmp_path, "new", "gige", 0, left))
    verdict = session_verdict.judge_session(
        new, system="testbed:gige", asked=StoredResults(store)
    ).verdict
    assert {case.environment for case, _ in verdict.skipped} == {"mpich"}
    of_gige = {one.case for one in verdict.compared_with.cases if one.case.partition == "gige"}
    assert {case.environment for case in of_gige} == {"mpich"}
    assert any(one.score() is not None for one in verdict.cases)


def test_a_damaged_session_is_said_and_the_next_one_taken(tmp_path):
    store = store_of(
        tmp_path, report(tmp_path, "whole", "gige", -9), report(tmp_path, "torn", "gige", -2)
    )
    newest = Store(store).sessions("testbed")[-1]
    (Store(store).path(newest) / "session.jsonl.zst").write_bytes(b"PAR1")
    result = judged(report(tmp_path, "new", "fast-ethernet"), store)
    assert len(result.verdict.unread) == 1
    assert newest.name in result.verdict.unread[0]
    assert newest.name not in {one.session for one in result.verdict.compared_with.cases}


def test_the_command_says_what_is_compared_with(tmp_path):
    store = store_of(tmp_path, report(tmp_path, "old", "gige", -41))
    new = str(report(tmp_path, "new", "fast-ethernet"))
    (stored,) = Store(store).sessions()

    def said(*more: str) -> str:
        asked = ["verdict", new, "testbed:fast-ethernet", "--store", str(store), "--with-stored"]
        return CliRunner().invoke(app, [*asked, *more]).stdout

    assert re.search(
        rf"compared with: gige mpich, of \d{{4}}-\d\d-\d\d \(41 days before\): \d+ cases of"
        rf" session {stored.name}; 41 days older, and 30 are allowed",
        said(),
    )
    assert re.search(r"fast-ethernet against gige, of .*, \d+ cases: slower in", said("--all"))
    assert "left out: gige mpich, of " in said("--leave-out-marked")
    (of_gige,) = (
        one
        for one in json.loads(said("--format=json"))["compared_with"]["sessions"]
        if one["environment"] == "mpich"
    )
    assert of_gige["session"] == stored.name
    assert of_gige["marks"] == ["41 days older, and 30 are allowed"]


def test_a_session_is_never_alongside_itself(tmp_path):
    new = report(tmp_path, "new", "fast-ethernet")
    assert judged(new, store_of(tmp_path, new)).verdict.compared_with.cases == ()
