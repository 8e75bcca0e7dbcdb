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
    "verdict": [[BAD], ["/nowhere.json"], ["{pipe}"], ["{deep}"], ["x", "--store", STORE]],
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
    "site discover": [["two words", "{new}"], ["settings", "{new}"], [BAD]],
    "site init": [["two words", "{new}"], ["settings", "{new}"], [BAD]],
    "judge": [
        *(
            [*parse, *one]
            for parse in ([], ["--parse"])
            for one in ([BAD], ["/nowhere"], ["{pipe}"], [])
        ),
        [BAD, "--parse", "--link", "1G"],
        ["{deep}", BAD],
        [BAD, "--as", "{{}}"],
        [BAD, "--link", "x"],
    ],
    "store add": [
        [BAD, "--store", "{new}"],
        ["{deep}", "--store", "{new}"],
        [PASSED, "--store", BAD],
    ],
    "store check": [["--store", one] for one in (STORE, BAD, "/nowhere")],
    "store export": [
        ["--store", STORE, "--format", "csv", "--to", "{new}"],
        ["--store", BAD, "--format", "nothing", "--to", "{new}"],
    ],
    "measure study": [
        ["none"],
        ["e325-opteron", BAD],
        ["e325-opteron", "{deep}"],
        *(["--list", one] for one in ("none", BAD, "{deep}")),
        [],
    ],
    "report": [[BAD, "--to", "{new}"], ["{deep}", "--to", "{new}"], [PASSED, "--format", "x"]],
    "measure tune": [
        [BAD],
        ["{deep}"],
        ["/nowhere.json"],
        [PASSED],
        ["none:none", "mtu", "--environment", "none"],
        ["none", "--restore"],
        ["testbed:gige"],
        [BAD, "mtu"],
        [],
    ],
    "measure load": [
        [BAD],
        ["{deep}"],
        ["/nowhere.json"],
        [PASSED],
        ["none:none", "--environment", "none"],
        ["testbed", "--environment", "mpich"],
        ["testbed:gige", "--environment", "openmpi4"],
        ["testbed:gige", "--environment", "mpich", "--victims", "none"],
        ["testbed:gige", "--environment", "mpich", "--nodes", "3"],
        [],
    ],
    "measure tails": [
        [BAD],
        ["{deep}"],
        ["/nowhere.json"],
        [PASSED],
        ["none:none", "--environment", "none"],
        ["testbed", "--environment", "mpich"],
        ["testbed:gige", "--environment", "openmpi4"],
        ["testbed:gige", "--environment", "mpich", "--bytes", "99999999"],
        ["testbed:gige", "--environment", "mpich", "--seconds", "0"],
        [],
    ],
    "measure gpcnet": [
        [BAD],
        ["{deep}"],
        ["/nowhere.json"],
        [PASSED],
        ["none:none", "--environment", "none"],
        ["testbed", "--environment", "mpich"],
        ["testbed:gige", "--environment", "mpich"],
        ["testbed:gige", "--environment", "mpich", "--nodes", "9"],
        ["testbed:gige", "--environment", "mpich", "--rounds", "2"],
        [],
    ],
    "measure algorithms": [
        [BAD],
        ["none:none", "Allreduce", "--environment", "none"],
        ["testbed:gige", "Allreduce"],
        ["testbed:gige", "--environment", "mpich"],
        [],
    ],
    "run": [["none"]],
    "nightly": [
        ["testbed", "--store", "{new}"],
        ["none", "--store", "{new}", "--to", "{new}"],
        ["testbed", "--store", "{new}", "--to", "{new}", "--label", "x"],
        [],
    ],
    "diagnose": [
        [BAD],
        ["{deep}"],
        ["none", PASSED],
        ["none:gige", "--measure"],
        ["one", "two"],
        ["1.json", "2.json"],
    ],
    "history show": [
        ["--store", STORE],
        ["--store", BAD],
        ["--case", "((a+)+)+!", "--store", STORE],
    ],
    "history accept": [
        ["--store", STORE, "x", "--reason", "x", "--name", "x"],
        ["--store", STORE],
    ],
}


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
        for more in ([], ["--format=json"])
        if not more or VERBS[verb]
    ],
)
def test_faulty_input_is_2_and_said(place, tmp_path, monkeypatch, verb, arguments):
    expected = 1 if verb == "site check" and "{wrong site}" in arguments else 2
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
    assert (2 if isinstance(ran.exception, NetproofError) else ran.exit_code) == expected, (
        ran.output
    )
    assert ran.output.strip() or isinstance(ran.exception, NetproofError)
    assert "Traceback" not in ran.output
    if "--format=json" in arguments:
        # Whole or not at all.
        assert not ran.stdout or json.loads(ran.stdout)
