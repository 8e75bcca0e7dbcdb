"""Runs without a testbed, and a stand-in of its command."""

from __future__ import annotations

import os
import subprocess

import pytest
from made_programs import program
from runs_without_testbed import NoTestbed

from ci.evaluation import engine, machine
from ci.evaluation.plants import Answer


@pytest.fixture
def fake(monkeypatch):
    """Runs without a testbed: ``fake["measure"]`` says what becomes of each, in its folder."""
    made: dict = {"runs": [], "measure": lambda run, folder: Answer(made["evaluation"].grades[0])}

    def measure(evaluation, run, settings, folder, lock):
        made["runs"].append(run.number)
        made["evaluation"] = evaluation
        return made["measure"](run, folder)

    monkeypatch.setattr(engine, "Testbed", NoTestbed)
    monkeypatch.setattr(machine, "wait_until_quiet", lambda settings: None)
    monkeypatch.setattr(engine, "measure", measure)
    return made


@pytest.fixture
def asked(monkeypatch):
    """The questions to netproof, whose answers are no documents; no store may date a fault."""
    given: list[list[str]] = []

    def answered(command, folder, environment):
        assert "NETPROOF_STORE" not in environment
        given.append(command[:3])
        return subprocess.CompletedProcess(command, 0, "", "no diagnosis")

    monkeypatch.setattr(machine, "answered", answered)
    monkeypatch.setenv("NETPROOF_STORE", "/elsewhere")
    return given


@pytest.fixture
def commands(monkeypatch, tmp_path):
    """The verbs that a stand-in of the testbed's command was given; a file says how each ends."""
    said = tmp_path / "said"
    testbed = program(
        tmp_path / "testbed",
        f'printf "<%s>" "$@" >>{said}; echo >>{said}\necho "munged: no key"\n'
        f"read -r status 2>/dev/null <{tmp_path}/$1 || status=0\nexit $status",
    )
    monkeypatch.setattr(machine, "TESTBED", testbed)
    monkeypatch.setattr(machine, "STATE", tmp_path)
    monkeypatch.setenv("SLURM_CONF", "")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    program(tmp_path / "squeue")
    (tmp_path / "topology.yaml").write_text("switches: as found\n")
    (tmp_path / "status").write_text("0\n")

    def given() -> list[str]:
        return said.read_text().splitlines()

    return given
