"""``netproof measure gpcnet``: its statuses by the bounds of a partition, and what it prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from netproof.benchmarks.gpcnet import read
from netproof.commands.cli import app
from netproof.experiments.gpcnet import GpcnetRound, GpcnetRuns

DATA = Path(__file__).resolve().parents[2] / "data"
RECORDED = read((DATA / "gpcnet" / "mpich-10-nodes.out").read_text(), "recorded")
EXTRAS = json.loads((DATA / "jobs" / "tails" / "plan.json").read_text())["extras"]


def report(folder: Path, rounds: int = 3, **settings: float) -> Path:
    """Return a recorded report with the run so many times, on a partition with these settings."""
    nodes = tuple(f"node-{number}" for number in range(10))
    several = (GpcnetRound(RECORDED),) * rounds
    extras = {**EXTRAS, "load": settings}
    kept = GpcnetRuns("testbed", "tree", "mpich", "1", nodes, extras, several)
    session = json.loads((DATA / "sessions" / "netpipe.json").read_text())
    (only,) = session["runs"]
    only["testcases"] = [{**only["testcases"][0], GpcnetRuns.KEY: kept.as_json()}]
    path = folder / "run.json"
    path.write_text(json.dumps(session))
    return path


@pytest.mark.parametrize(
    ("settings", "status", "said"),
    [
        ({}, 0, "at worst RR Two-sided Lat (8 B) is 2.15 times worse alongside the congestors"),
        ({"most": 3.0}, 0, "at worst RR Two-sided Lat (8 B) is 2.15 times worse"),
        ({"most": 1.5}, 1, "above the bound: RR Two-sided Lat (8 B) is 2.15 times worse"),
        ({"most_99th": 9.0}, 3, "undecided: RR Two-sided Lat (8 B)"),
    ],
)
def test_the_status_says_what_came_of_the_bounds(tmp_path, settings, status, said):
    path = report(tmp_path, **settings)
    ended = CliRunner().invoke(app, ["measure", "gpcnet", str(path)])
    assert ended.exit_code == status, ended.output
    words = " ".join(ended.output.split())
    assert said in words
    assert "GPCNeT 1.3 on 10 nodes, 2 of them for its tests; 3 rounds, 3 of them usable." in words
    assert "Multiple Allreduce (8 B): a 99th percentile is better than the mean" in words
    ran = CliRunner().invoke(app, ["measure", "gpcnet", str(path), "--format=json"])
    assert ran.exit_code == status
    (one,) = json.loads(ran.stdout)["gpcnet"]
    assert one["beyond"] is (status == 1)
    assert one["tests"][0]["mean"]["value"] == pytest.approx(30.3 / 14.1)


def test_too_few_rounds_are_undecided(tmp_path):
    ended = CliRunner().invoke(app, ["measure", "gpcnet", str(report(tmp_path, 2))])
    assert ended.exit_code == 3
    assert "nothing is known: too few rounds count" in ended.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "SYSTEM:PARTITION"),
        (("testbed:gige",), "--environment"),
        (("testbed:gige", "--environment", "mpich", "--nodes", "9"), "10 at least"),
        (("/nowhere.json",), "is not there"),
        (
            ("testbed:gige", "--environment", "mpich"),
            "no environment 'mpich' with the feature 'gpcnet'; it has none",
        ),
    ],
)
def test_what_cannot_be_done_is_said_with_the_remedy(arguments, said, monkeypatch):
    monkeypatch.setenv("RFM_CONFIG_PATH", str(DATA.parents[1] / "site-config"))
    ended = CliRunner().invoke(app, ["measure", "gpcnet", *arguments])
    assert ended.exit_code == 2
    assert said in " ".join(ended.output.replace("│", " ").split())
