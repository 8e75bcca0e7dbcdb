"""The verbs of ``netproof measure``: statuses by bounds, pages, and what is refused at once."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from click.testing import Result
from made_answers import insist_on_keys
from typer.testing import CliRunner

from netproof import codec
from netproof.benchmarks.gpcnet import BENCHMARK
from netproof.commands import measure as verbs
from netproof.commands.cli import app
from netproof.errors import NetproofError
from netproof.experiments import literature, load, tails
from netproof.experiments.gpcnet import GpcnetRound, GpcnetRuns, network_tests
from netproof.experiments.load_plan import LoadAsked
from netproof.experiments.tails import TailsAsked
from netproof.experiments.tuning import AlgorithmsAsked, TuningAsked
from netproof.session.session import MeasuredJob
from netproof.site import folders

ROOT = Path(__file__).resolve().parents[3]
DATA = ROOT / "tests" / "data"
SESSIONS = DATA / "sessions"
HEALTHY = SESSIONS / "healthy.json"
RECORDED = network_tests(
    BENCHMARK.read((DATA / "gpcnet" / "mpich-10-nodes.out").read_text(), "recorded")
)
TIMES = [30.0] * 49_800 + [90.0] * 199 + [2_400_000.0]
TWICE = "at worst RR Two-sided Lat (8 B) is 2.15 times worse"


def measure(*arguments: object) -> tuple[Result, str]:
    """Call a verb; return what came of it, and its output in words."""
    ended = CliRunner().invoke(app, ["measure", *map(str, arguments)])
    return ended, " ".join(ended.output.replace("│", " ").split())


@pytest.fixture
def report(tmp_path):
    """``report(job, **settings)``: a recorded report with a job, and settings of its partition."""

    def made(job: MeasuredJob, **settings: float) -> Path:
        criteria = {"disturbance": {"others": 1, "steal": 1}}
        extras = {**job.partition_extras, "load": settings, "criteria": criteria}
        kept = codec.encode(dataclasses.replace(job, partition_extras=extras))
        session = json.loads((SESSIONS / "netpipe.json").read_text())
        (only,) = session["runs"]
        only["testcases"] = [{**only["testcases"][0], job.KEY: kept}]
        path = tmp_path / "run.json"
        path.write_text(json.dumps(session))
        return path

    return made


def under_load() -> MeasuredJob:
    return load.of_job(DATA / "jobs" / "load", "1")


def long_launch(times: list[float]) -> MeasuredJob:
    one = tails.of_job(DATA / "jobs" / "tails", "1")
    looks = tuple((100 + 0.0003 * count, count) for count in range(50, len(times) + 1, 50))
    return dataclasses.replace(one, times_us=tuple(times), watched=looks)


def of_gpcnet(rounds: int) -> MeasuredJob:
    extras = json.loads((DATA / "jobs" / "tails" / "plan.json").read_text())["extras"]
    nodes = tuple(f"node-{number}" for number in range(10))
    several = (GpcnetRound(RECORDED, version="1.3", nodes_of_tests=2),) * rounds
    return GpcnetRuns("testbed", "tree", "mpich", "1", nodes, extras, several)


@pytest.mark.parametrize(
    ("settings", "status", "said"),
    [
        ({}, 0, "at worst bandwidth takes 3.31 times as long"),
        ({"most": 5.0}, 0, "at worst bandwidth takes 3.31 times as long"),
        ({"most": 1.5}, 1, "above the bound: bandwidth takes 3.31 times as long"),
        ({"most": 3.0}, 3, "undecided: bandwidth takes 3.31 times as long"),
    ],
)
def test_the_status_of_load_says_what_came_of_the_bounds(report, settings, status, said):
    path = report(under_load(), **settings)
    ended, words = measure("load", path)
    assert (ended.exit_code, said in words) == (status, True), words
    ended, _ = measure("load", path, "--format=json")
    assert ended.exit_code == status
    document = json.loads(ended.stdout)
    assert document["load"][0]["partition"] == "tree"
    insist_on_keys("measure load", document)


@pytest.mark.parametrize(
    ("times", "settings", "status", "said"),
    [
        (TIMES, {}, 0, "median 30 µs, 99.9th percentile 90 µs, 3 times it"),
        (TIMES, {"most_999th": 5.0}, 0, "within the bound of 5 times: median"),
        (TIMES, {"most_999th": 2.0}, 1, "above the bound of 2 times: median"),
        ([30.0] * 500, {"most_999th": 2.0}, 3, "too few calls for percentiles: 500"),
    ],
)
def test_the_status_of_tails_says_what_came_of_the_bound(report, times, settings, status, said):
    path = report(long_launch(times), **settings)
    ended, words = measure("tails", path)
    assert ended.exit_code == status, ended.output
    assert said in words
    assert ("1 pause, " in words and "UTC: 4.8 s there and back" in words) is (times is TIMES)
    document = json.loads(measure("tails", path, "--format=json")[0].stdout)
    insist_on_keys("measure tails", document)
    (one,) = document["tails"]
    assert one["beyond"] is (status == 1)
    assert {each["value_us"] for each in one["percentiles"][:1]} <= {30}


@pytest.mark.parametrize(
    ("settings", "status", "said"),
    [
        ({}, 0, f"{TWICE} alongside the congestors"),
        ({"most": 3.0}, 0, TWICE),
        ({"most": 1.5}, 1, "above the bound: RR Two-sided Lat (8 B) is 2.15 times worse"),
        ({"most_99th": 9.0}, 3, "undecided: RR Two-sided Lat (8 B)"),
    ],
)
def test_the_status_of_gpcnet_says_what_came_of_the_bounds(report, settings, status, said):
    path = report(of_gpcnet(3), **settings)
    ended, words = measure("gpcnet", path)
    assert ended.exit_code == status, ended.output
    assert said in words
    assert "GPCNeT 1.3 on 10 nodes, 2 of them for its tests; 3 rounds, 3 of them usable." in words
    assert "Multiple Allreduce (8 B): a 99th percentile is better than the mean" in words
    document = json.loads(measure("gpcnet", path, "--format=json")[0].stdout)
    insist_on_keys("measure gpcnet", document)
    (one,) = document["gpcnet"]
    assert one["beyond"] is (status == 1)
    assert one["tests"][0]["mean"]["value"] == pytest.approx(30.3 / 14.1)


@pytest.mark.slow
def test_a_page_is_written_on_demand(tmp_path, report):
    ended, _ = measure("tails", report(long_launch(TIMES)), "--to", tmp_path / "page")
    assert ended.exit_code == 0, ended.output
    text = (tmp_path / "page" / "index.html").read_text()
    for words in ("99.9", "How often a call took how long", "The longest calls over time"):
        assert words in text


@pytest.fixture
def seen(monkeypatch) -> list[str]:
    """Arguments of ReFrame, which measures nothing."""
    found: list[str] = []

    def run_reframe(arguments: list[str], *_: str) -> Path:
        found.extend(arguments)
        raise NetproofError("far enough")

    monkeypatch.setattr(verbs, "run_reframe", run_reframe)
    return found


@pytest.mark.parametrize(
    ("arguments", "name", "experiment"),
    [
        ("load testbed:gige -p mpich --victims latency", "Load", LoadAsked),
        ("tails testbed:gige -p mpich", "Tails", TailsAsked),
        ("tune testbed:gige socket-buffer -p mpich", "Tuning", TuningAsked),
        ("algorithms testbed:gige Allreduce -p mpich", "Algorithm", AlgorithmsAsked),
    ],
)
def test_what_is_asked_reaches_the_test_of_reframe(project, seen, arguments, name, experiment):
    ended, words = measure(*arguments.split())
    assert (ended.exit_code, "far enough" in words) == (2, True)
    option, _, text = seen[seen.index("-S") + 1].partition("=")
    assert option == f"{name}.asked"
    assert f"class {name}(" in (ROOT / "checks" / "experiments.py").read_text()
    codec.decode(experiment, json.loads(text), "asked")


@pytest.mark.slow
def test_the_page_of_a_study_says_what_was_not_swept(tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "of_reports", lambda: tmp_path / "reports")
    page = tmp_path / "page"
    found, words = measure("study", "e325-opteron", HEALTHY, "--to", page)
    assert found.exit_code == 0, found.stderr
    assert "socket buffer: no sweep of it was measured; `netproof measure tune" in words
    assert "MPI over TCP" in (page / "index.html").read_text()


def test_a_study_is_measured_and_its_sweeps_are_or_say_why_not(seen, tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "of_reports", lambda: tmp_path)
    found, words = measure("study", "gige-mpi-tests", "testbed:gige")
    assert (found.exit_code, words) == (2, "netproof: no study: far enough")
    *_, pattern, extras = seen
    assert extras == "--session-extras=study=gige-mpi-tests"
    assert "ImbPingPong" in pattern
    found, why = verbs._swept(literature.load("gige-mpi-tests"), "testbed:gige", None)
    assert found == []
    assert why == {
        "coalescing": "interrupt coalescing: say with which environment: --environment",
        "rails": "rails: say with which environment: --environment",
    }
