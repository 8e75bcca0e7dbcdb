"""``netproof measure tails``: its statuses by a bound, what it prints, and its page."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from netproof.commands.cli import app
from netproof.experiments import tails

ROOT = Path(__file__).resolve().parents[3]
DATA = ROOT / "tests" / "data"


def report(folder: Path, times: list[float] | None = None, **settings: float) -> Path:
    """Return a recorded report with a long launch, on a partition with these settings."""
    one = tails.of_job(DATA / "jobs" / "tails", "1")
    criteria = {"disturbance": {"others": 1, "steal": 1}}
    extras = {**one.partition_extras, "load": settings, "criteria": criteria}
    kept = dataclasses.replace(one, partition_extras=extras)
    if times is not None:
        looks = tuple((100 + 0.0003 * count, count) for count in range(50, len(times) + 1, 50))
        kept = dataclasses.replace(kept, times_us=tuple(times), watched=looks)
    session = json.loads((DATA / "sessions" / "netpipe.json").read_text())
    (only,) = session["runs"]
    only["testcases"] = [{**only["testcases"][0], kept.KEY: kept.as_json()}]
    path = folder / "run.json"
    path.write_text(json.dumps(session))
    return path


TIMES = [30.0] * 49_800 + [90.0] * 199 + [2_400_000.0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "status", "said"),
    [
        ({}, 0, "median 30 µs, 99.9th percentile 90 µs, 3 times it"),
        ({"most_999th": 5.0}, 0, "within the bound of 5 times: median"),
        ({"most_999th": 2.0}, 1, "above the bound of 2 times: median"),
    ],
)
def test_the_status_says_what_came_of_the_bound(tmp_path, settings, status, said):
    path = report(tmp_path, TIMES, **settings)
    ended = CliRunner().invoke(app, ["measure", "tails", str(path)])
    assert ended.exit_code == status, ended.output
    assert said in " ".join(ended.output.split())
    ran = CliRunner().invoke(app, ["measure", "tails", str(path), "--format=json"])
    assert ran.exit_code == status
    (one,) = json.loads(ran.stdout)["tails"]
    assert one["beyond"] is (status == 1)
    assert one["percentiles"][0]["value_us"] == 30


def test_too_few_calls_for_the_bound_are_undecided(tmp_path):
    path = report(tmp_path, [30.0] * 500, most_999th=2.0)
    ended = CliRunner().invoke(app, ["measure", "tails", str(path)])
    assert ended.exit_code == 3
    assert "too few calls for percentiles: 500" in ended.output


def test_a_pause_is_named_with_its_time(tmp_path):
    ended = CliRunner().invoke(app, ["measure", "tails", str(report(tmp_path, TIMES))])
    said = " ".join(ended.output.split())
    assert "1 pause, " in said
    assert "UTC: 4.8 s there and back" in said


@pytest.mark.slow
def test_a_page_has_the_percentiles_and_both_charts(tmp_path):
    made = ["measure", "tails", str(report(tmp_path, TIMES)), "--to", str(tmp_path / "page")]
    ended = CliRunner().invoke(app, made)
    assert ended.exit_code == 0, ended.output
    text = (tmp_path / "page" / "index.html").read_text()
    for words in ("99.9", "How often a call took how long", "The longest calls over time"):
        assert words in text


@pytest.mark.slow
def test_an_environment_without_the_benchmark_and_too_long_messages_are_refused(monkeypatch):
    monkeypatch.setenv("RFM_CONFIG_PATH", str(ROOT / "site-config"))
    monkeypatch.delenv("NETPROOF_TOPOLOGY", raising=False)
    where = ["measure", "tails", "testbed:gige", "-p"]
    ended = CliRunner().invoke(app, [*where, "openmpi5"])
    assert ended.exit_code == 2
    said = " ".join(ended.output.split())
    assert "has no environment 'openmpi5' with IMB; it has intelmpi, mpich" in said
    ended = CliRunner().invoke(app, [*where, "mpich", "--bytes", "99999999"])
    assert ended.exit_code == 2
    assert "--bytes 99999999: the largest message of testbed:gige is of" in ended.output
