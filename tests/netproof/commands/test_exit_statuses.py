"""Every verb ends with 2 and a sentence for faulty input: 1 is a network that failed."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from string import Template

import pytest
import typer
import yaml
from typer.testing import CliRunner

from netproof.commands import measure, reframe
from netproof.commands.cli import app
from netproof.errors import NetproofError
from netproof.experiments.load_plan import LoadAsked

ROOT = Path(__file__).resolve().parents[3]
DATA = ROOT / "tests" / "data"
SESSIONS = DATA / "sessions"
REFUSED = yaml.safe_load(Path(__file__).with_name("refused.yaml").read_text())
QUICK = {"judge", "measure", "run", "report"}
"""Verbs that refuse arguments at once."""


def verbs(group=None, before: str = "") -> dict[str, bool]:
    """Return all commands, those of groups with the group's name; whether each prints JSON."""
    found = {}
    for name, command in (group or typer.main.get_command(app)).commands.items():
        if hasattr(command, "commands"):
            found |= verbs(command, f"{before}{name} ")
        else:
            found[f"{before}{name}"] = any(one.default == "text" for one in command.params)
    return found


VERBS = verbs()


def test_no_verb_is_left_out():
    assert sorted(REFUSED) == sorted(VERBS)


@pytest.fixture
def place(project, tmp_path, monkeypatch) -> dict[str, Path]:
    """A file of no known kind, one nested deeply, a pipe, a folder that is no store, and data."""
    for module in (measure, reframe):
        monkeypatch.setattr(module, "run_reframe", None)
    # More than the testbed has.
    monkeypatch.setattr(LoadAsked, "LEAST_NODES", 5)
    made = {name: tmp_path / f"{name}.json" for name in ("bad", "deep")}
    made["bad"].write_text("no report\n")
    made["deep"].write_text("[" * 100_000)
    made |= {name: tmp_path / name for name in ("no_store", "new", "pipe")}
    made["no_store"].mkdir()
    os.mkfifo(made["pipe"])
    tcp, imb = DATA / "netpipe" / "3.7.2" / "tcp.out", DATA / "imb" / "2021.11" / "all.txt"
    made |= {name: SESSIONS / f"{name}.json" for name in ("passed", "healthy", "sick")}
    return made | {"sessions": SESSIONS, "tcp": tcp, "tcps": tcp.parent, "imb": imb}


def refusals() -> Iterator[object]:
    """Yield verb, arguments and words of each refusal; with JSON too where a verb prints it."""
    for verb, several in REFUSED.items():
        for arguments, *words in several:
            for more in ("", " --format=json") if VERBS[verb] and not words else ("",):
                marks = () if words and verb.split()[0] in QUICK else pytest.mark.slow
                yield pytest.param(verb, arguments + more, words, marks=marks)


@pytest.mark.parametrize(("verb", "arguments", "words"), [*refusals()])
def test_faulty_input_is_2_and_said_and_nothing_is_written(place, tmp_path, verb, arguments, words):
    there = {*tmp_path.iterdir()}
    asked = Template(arguments).safe_substitute(place)
    ran = CliRunner().invoke(app, [*verb.split(), *shlex.split(asked)])
    # As entry.run reports it: typer's message on arguments, and 2.
    assert isinstance(ran.exception, SystemExit | NetproofError), repr(ran.exception)
    assert isinstance(ran.exception, NetproofError) or ran.exit_code == 2, ran.output
    said = " ".join(f"{ran.output} {ran.exception}".replace("│", " ").split())
    assert [one for one in words if one not in said] == [], said
    assert "Traceback" not in said
    # Whole or not at all.
    assert "--format=json" not in arguments or not ran.stdout or json.loads(ran.stdout)
    assert {*tmp_path.iterdir()} == there or verb in ("store add", "nightly")
