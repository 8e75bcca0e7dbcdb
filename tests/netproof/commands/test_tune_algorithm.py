"""``netproof measure algorithms``: what it refuses before anything is measured."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from netproof.commands.cli import app

ROOT = Path(__file__).resolve().parents[3]
WHERE = ("testbed:gige",)


@pytest.fixture(autouse=True)
def on_the_testbed(monkeypatch, tmp_path):
    monkeypatch.setenv("RFM_CONFIG_PATH", str(ROOT / "site-config"))
    monkeypatch.setenv("RFM_REPORT_FILE", str(tmp_path / "run-0.json"))


def refused(*arguments: str) -> str:
    """Return the output of the command, which measures nothing."""
    ran = CliRunner().invoke(app, ["measure", "algorithms", *WHERE, *arguments])
    assert ran.exit_code == 2
    return " ".join(ran.output.split())


def test_an_environment_without_imb_is_refused_with_the_reason_of_its_site():
    said = refused("Allreduce", "--environment", "openmpi4")
    assert "testbed:gige has no environment 'openmpi4' with IMB, whose site says: " in said
    assert "intelmpi, mpich" in said


@pytest.mark.slow
def test_functions_and_rank_counts_are_those_that_there_are():
    mpich = ("--environment", "mpich")
    said = refused("PingPong", *mpich)
    assert "'PingPong' is no function whose algorithms are swept" in said
    said = refused("Reduce", *mpich, "--ranks", "3")
    assert "testbed:gige measures Reduce on 2, 4 ranks, and not on 3" in said


def test_a_place_takes_a_function_and_a_session_none():
    for arguments in ((*WHERE, "-p", "mpich"), (__file__, "Allreduce")):
        ran = CliRunner().invoke(app, ["measure", "algorithms", *arguments])
        assert ran.exit_code == 2
        assert "give SYSTEM:PARTITION and FUNCTION to measure, or only SESSION" in " ".join(
            ran.output.split()
        )
