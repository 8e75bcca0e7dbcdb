"""``netproof measure study``: the page is written, and missing parts name their remedy."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from netproof.commands import studies
from netproof.commands.cli import app
from netproof.errors import NetproofError
from netproof.experiments import literature
from netproof.site import folders

SESSIONS = Path(__file__).resolve().parents[2] / "data" / "sessions"
CHECKS = Path(__file__).resolve().parents[3] / "checks"


def ran(*arguments):
    return CliRunner().invoke(app, ["measure", "study", *map(str, arguments)])


@pytest.mark.slow
def test_the_page_is_written_and_says_what_was_not_swept(tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "of_reports", lambda: tmp_path / "reports")
    found = ran("e325-opteron", SESSIONS / "healthy.json", "--to", tmp_path / "page")
    assert found.exit_code == 0, found.stderr
    assert "socket buffer: no sweep of it was measured; `netproof measure tune" in found.stdout
    assert "MPI over TCP" in (tmp_path / "page" / "index.html").read_text()


def test_a_study_that_is_none_is_named_with_those_there_are(tmp_path):
    found = ran("e326", SESSIONS / "healthy.json", "--to", tmp_path / "page")
    assert found.exit_code == 2
    assert "'e326' is no study: there are e325-opteron" in found.stderr


def test_what_goes_together_is_said():
    assert (
        "leave SESSION and --sweep out"
        in ran("e325-opteron", SESSIONS / "healthy.json", "testbed:gige").stderr
    )
    assert "goes with SYSTEM:PARTITION" in ran("e325-opteron", "-p", "mpich").stderr


@pytest.mark.parametrize("name", literature.names())
def test_what_a_study_measures_are_classes_of_checks(name):
    text = "".join(path.read_text() for path in CHECKS.rglob("*.py"))
    for one in studies.checks(literature.load(name)):
        assert f"class {one}(" in text


def test_a_study_is_measured_and_its_sweeps_are_or_say_why_not(tmp_path, monkeypatch):
    asked = []

    def reframe(arguments, said, report):
        asked.append(arguments)
        raise NetproofError("far enough")

    monkeypatch.setattr(studies, "run_reframe", reframe)
    monkeypatch.setattr(folders, "of_reports", lambda: tmp_path)
    found = ran("gige-mpi-tests", "testbed:gige")
    assert (found.exit_code, found.stderr.strip()) == (2, "netproof: no study: far enough")
    ((*_, pattern, extras),) = asked
    assert extras == "--session-extras=study=gige-mpi-tests"
    assert "ImbPingPong" in pattern
    why = {}
    assert studies._swept(literature.load("gige-mpi-tests"), "testbed:gige", None, why) == []
    assert why == {
        "coalescing": "interrupt coalescing: say with which environment: --environment",
        "rails": "rails: say with which environment: --environment",
    }
