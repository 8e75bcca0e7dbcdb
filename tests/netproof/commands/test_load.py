"""``netproof measure load``: its statuses by a partition's bounds, and what it refuses at once."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from netproof.commands.cli import app
from netproof.experiments import load

ROOT = Path(__file__).resolve().parents[3]
DATA = ROOT / "tests" / "data"


def report(folder: Path, **settings: float) -> Path:
    """Return a recorded report with a job under load, on a partition with these settings."""
    one = load.of_job(DATA / "jobs" / "load", "1")
    extras = {**one.partition_extras, "load": settings}
    kept = dataclasses.replace(one, partition_extras=extras).as_json()
    session = json.loads((DATA / "sessions" / "netpipe.json").read_text())
    (only,) = session["runs"]
    only["testcases"] = [{**only["testcases"][0], load.Loaded.KEY: kept}]
    path = folder / "run.json"
    path.write_text(json.dumps(session))
    return path


@pytest.mark.parametrize(
    ("settings", "status"), [({}, 0), ({"most": 5.0}, 0), ({"most": 1.5}, 1), ({"most": 3.0}, 3)]
)
def test_the_status_says_what_came_of_the_bounds(tmp_path, settings, status):
    path = report(tmp_path, **settings)
    for arguments in ([], ["--format=json"]):
        ended = CliRunner().invoke(app, ["measure", "load", str(path), *arguments])
        assert ended.exit_code == status, ended.output
    assert json.loads(ended.stdout)["load"][0]["partition"] == "tree"


@pytest.mark.slow
def test_a_page_is_written_on_demand(tmp_path):
    made = ["measure", "load", str(report(tmp_path)), "--to", str(tmp_path / "page")]
    assert CliRunner().invoke(app, made).exit_code == 0
    assert "one-to-one" in (tmp_path / "page" / "index.html").read_text()


SITE = f"""
import runpy
site = runpy.run_path({str(ROOT / "site-config" / "testbed.py")!r})
site_configuration = site["site_configuration"]
for partition in site_configuration["systems"][0]["partitions"]:
    partition["extras"] |= {{"nodes": 3, "rank_counts": [2]}}
"""


@pytest.mark.slow
def test_three_nodes_are_refused_before_anything_is_measured(tmp_path, monkeypatch):
    (tmp_path / "settings.py").write_text("site_configuration = {}")
    (tmp_path / "testbed.py").write_text(SITE)
    monkeypatch.setenv("RFM_CONFIG_PATH", str(tmp_path))
    monkeypatch.setenv("RFM_REPORT_FILE", str(tmp_path / "reports" / "run.json"))
    monkeypatch.delenv("NETPROOF_TOPOLOGY", raising=False)
    ended = CliRunner().invoke(app, ["measure", "load", "testbed:gige", "-p", "mpich"])
    assert ended.exit_code == 2
    said = " ".join(ended.output.split())
    assert "testbed:gige has 3 nodes, and load takes 4: two for what is measured" in said
    assert not (tmp_path / "reports").exists()


@pytest.mark.slow
def test_an_environment_without_the_benchmark_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("RFM_CONFIG_PATH", str(ROOT / "site-config"))
    ended = CliRunner().invoke(app, ["measure", "load", "testbed:gige", "-p", "openmpi5"])
    assert ended.exit_code == 2
    said = " ".join(ended.output.split())
    assert "has no environment 'openmpi5' with IMB; it has intelmpi, mpich" in said
