"""Every verb ends with 2 and a sentence for faulty input: 1 is a network that failed."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from netproof.commands.cli import app
from netproof.errors import NetproofError

ROOT = Path(__file__).resolve().parents[3]
PASSED = ROOT / "tests" / "data" / "sessions" / "passed.json"

BAD = "{bad}"
STORE = "{store}"
"""A file of no known kind, and a folder that is no store."""

FAULTY = {
    "parse": [[BAD], ["/nowhere"], ["{pipe}"], []],
    "verdict": [[BAD], ["/nowhere.json"], ["{pipe}"], ["{deep}"], ["x", "--store", STORE]],
    "show": [[BAD], ["/nowhere.json"], ["{pipe}"], ["{deep}"], ["x", "--store", STORE]],
    "compare": [
        [BAD, BAD],
        ["/nowhere.json", PASSED],
        [PASSED, "{deep}"],
        [PASSED, "--by", "nothing"],
        [PASSED, PASSED, "--partition", "gige", "none"],
    ],
    "site check": [["none"], ["testbed:none"], ["{wrong site}"]],
    "site show": [["none"], ["testbed:none"], ["{wrong site}"]],
    "references derive": [
        [BAD],
        [PASSED],
        [PASSED, PASSED, PASSED],
        ["{deep}"] * 3,
        [BAD, "--floor", "7"],
    ],
    "references risk": [[BAD], [PASSED], ["{deep}"] * 3],
    "init": [["--system", "two words", "{new}"], ["--system", "settings", "{new}"], [BAD]],
    "judge": [[BAD], ["{deep}", BAD], [BAD, "--as", "{{}}"], [BAD, "--link", "x"], ["/nowhere"]],
    "ingest": [[BAD, "--store", "{new}"], ["{deep}", "--store", "{new}"], [PASSED, "--store", BAD]],
    "store check": [[STORE], [BAD], ["/nowhere"]],
    "export": [
        ["--store", STORE, "--format", "csv", "--to", "{new}"],
        ["--store", BAD, "--format", "nothing", "--to", "{new}"],
    ],
    "study": [["none"], ["e325-opteron", BAD], ["e325-opteron", "{deep}"]],
    "literature": [["none"], ["--session", BAD], ["--session", "{deep}"]],
    "report": [[BAD, "--out", "{new}"], ["{deep}", "--out", "{new}"], [PASSED, "--format", "x"]],
    "tune": [
        ["--report", BAD],
        ["--report", "{deep}"],
        ["--report", "/nowhere.json"],
        ["--report", PASSED],
        ["mtu", "--system", "none:none", "--environment", "none"],
        ["--restore", "--system", "none"],
        [],
    ],
    "load": [
        ["--report", BAD],
        ["--report", "{deep}"],
        ["--report", "/nowhere.json"],
        ["--report", PASSED],
        ["--system", "none:none", "--environment", "none"],
        ["--system", "testbed", "--environment", "mpich"],
        ["--system", "testbed:gige", "--environment", "openmpi4"],
        ["--system", "testbed:gige", "--environment", "mpich", "--victims", "none"],
        ["--system", "testbed:gige", "--environment", "mpich", "--nodes", "3"],
        [],
    ],
    "tails": [
        ["--report", BAD],
        ["--report", "{deep}"],
        ["--report", "/nowhere.json"],
        ["--report", PASSED],
        ["--system", "none:none", "--environment", "none"],
        ["--system", "testbed", "--environment", "mpich"],
        ["--system", "testbed:gige", "--environment", "openmpi4"],
        ["--system", "testbed:gige", "--environment", "mpich", "--bytes", "99999999"],
        ["--system", "testbed:gige", "--environment", "mpich", "--seconds", "0"],
        [],
    ],
    "gpcnet": [
        ["--report", BAD],
        ["--report", "{deep}"],
        ["--report", "/nowhere.json"],
        ["--report", PASSED],
        ["--system", "none:none", "--environment", "none"],
        ["--system", "testbed", "--environment", "mpich"],
        ["--system", "testbed:gige", "--environment", "mpich"],
        ["--system", "testbed:gige", "--environment", "mpich", "--nodes", "9"],
        ["--system", "testbed:gige", "--environment", "mpich", "--rounds", "2"],
        [],
    ],
    "nightly": [
        ["--system", "testbed", "--store", "{new}"],
        ["--system", "none", "--store", "{new}", "--report", "{new}"],
        ["--system", "testbed", "--store", "{new}", "--report", "{new}", "--label", "x"],
        [],
    ],
    "diagnose": [
        ["--session", BAD],
        ["--session", "{deep}"],
        ["none", "--session", PASSED],
        ["gige", "--measure", "--system", "none"],
    ],
    "history show": [["--store", STORE], ["--store", BAD], ["((a+)+)+!", "--store", STORE]],
    "history accept": [
        ["--store", STORE, "--session", "x", "--reason", "x", "--name", "x"],
        ["--store", STORE],
    ],
}


def verbs(group=None, before: str = "") -> dict[str, list[str]]:
    """Return all commands, those of groups with the group's name, and their options."""
    found = {}
    for name, command in (group or typer.main.get_command(app)).commands.items():
        if hasattr(command, "commands"):
            found |= verbs(command, f"{before}{name} ")
        else:
            options = [option for one in command.params for option in one.opts]
            found[f"{before}{name}"] = options
    return found


VERBS = verbs()


def test_no_verb_is_left_out():
    assert sorted(FAULTY) == sorted(VERBS)


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("RFM_CONFIG_PATH", str(ROOT / "site-config"))
    monkeypatch.setenv("RFM_REFERENCE_PREFIX", str(ROOT / "reference-values"))
    for name in ("RFM_REPORT_FILE", "RFM_SYSTEM", "NETPROOF_STORE"):
        monkeypatch.delenv(name, raising=False)
    names = {"bad": "no report\n", "deep": "[" * 100_000}
    made = {f"{{{name}}}": tmp_path / f"{name}.json" for name in names}
    for name, text in names.items():
        made[f"{{{name}}}"].write_text(text)
    (tmp_path / "no-store").mkdir()
    os.mkfifo(tmp_path / "pipe")
    return made | {
        STORE: tmp_path / "no-store",
        "{new}": tmp_path / "new",
        "{pipe}": tmp_path / "pipe",
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("verb", "arguments"),
    [
        (verb, [*one, *more])
        for verb, several in FAULTY.items()
        for one in several
        for more in ([], ["--json"])
        if not more or "--json" in VERBS[verb]
    ],
)
def test_faulty_input_is_2_and_said(place, tmp_path, monkeypatch, verb, arguments):
    if "{wrong site}" in arguments:
        shutil.copytree(ROOT / "site-config", tmp_path / "site-config")
        path = tmp_path / "site-config" / "example.py"
        path.write_text(path.read_text().replace('"mtu": 1500', '"mtu": 15'))
        monkeypatch.setenv("RFM_CONFIG_PATH", str(path.parent))
        arguments = ["example" if one == "{wrong site}" else one for one in arguments]
    words = [str(place.get(one, one)) for one in arguments]
    ran = CliRunner().invoke(app, [*verb.split(), *words])
    # As entry.run reports it: typer's message on arguments, and 2.
    foreseen = isinstance(ran.exception, SystemExit | NetproofError)
    assert foreseen, repr(ran.exception)
    assert (2 if isinstance(ran.exception, NetproofError) else ran.exit_code) == 2, ran.output
    assert ran.output.strip() or isinstance(ran.exception, NetproofError)
    assert "Traceback" not in ran.output
    if "--json" in arguments:
        # Whole or not at all.
        assert not ran.stdout or json.loads(ran.stdout)
