"""Every verb ends with 2 and a sentence for faulty input: 1 is a network that failed."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from netproof.commands.cli import app
from netproof.errors import NetproofError

ROOT = Path(__file__).resolve().parents[3]
PASSED = ROOT / "tests" / "data" / "sessions" / "passed.json"

READ = ("{bad}", "{deep}", "{passed}", "")
"""Files without a report of an experiment: no report, nested too deeply, of another kind."""

MEASURED = (
    *("none:none --environment none", "testbed --environment mpich"),
    "testbed:gige --environment openmpi4",
)
"""Places at which no experiment can be made."""

FAULTY = {
    "verdict": ("{bad}", "/nowhere.json", "{pipe}", "{deep}", "x --store {no_store}"),
    "compare": (
        *("{bad} {bad}", "/nowhere.json {passed}", "{passed} {deep}", "{passed} --by nothing"),
        "{passed} {passed} --partition gige none",
    ),
    "site check": ("none", "testbed:none", "{wrong_site}"),
    "site show": ("none", "testbed:none", "{wrong_site}"),
    "references derive": (
        *("{bad}", "{passed}", "{passed} {passed} {passed}", "{deep} {deep} {deep}"),
        "{bad} --floor 7",
    ),
    "references risk": ("{bad}", "{passed}", "{deep} {deep} {deep}"),
    "site discover": ("'two words' {new}", "settings {new}", "{bad}"),
    "site init": ("'two words' {new}", "settings {new}", "{bad}"),
    "judge": (
        *("{bad}", "/nowhere", "{pipe}", "", "{deep} {bad}", "{bad} --as {{}}", "{bad} --link x"),
        *("--parse {bad}", "--parse /nowhere", "--parse {pipe}", "--parse"),
        "{bad} --parse --link 1G",
    ),
    "store add": (
        *("{bad} --store {new}", "{deep} --store {new}"),
        "{passed} --store {bad}",
    ),
    "store check": ("--store {no_store}", "--store {bad}", "--store /nowhere"),
    "store export": (
        "--store {no_store} --format csv --to {new}",
        "--store {bad} --format nothing --to {new}",
    ),
    "measure study": (
        *("none", "e325-opteron {bad}", "e325-opteron {deep}", ""),
        *("--list none", "--list {bad}", "--list {deep}"),
    ),
    "report": ("{bad} --to {new}", "{deep} --to {new}", "{passed} --format x"),
    "measure tune": (
        *(*READ, "testbed:gige", "{bad} mtu", "none --restore"),
        "none:none mtu --environment none",
    ),
    "measure load": (
        *(*READ, *MEASURED, "testbed:gige --environment mpich --victims none"),
        "testbed:gige --environment mpich --nodes 3",
    ),
    "measure tails": (
        *(*READ, *MEASURED, "testbed:gige --environment mpich --bytes 99999999"),
        "testbed:gige --environment mpich --seconds 0",
    ),
    "measure gpcnet": (
        *(*READ, *MEASURED, "testbed:gige --environment mpich"),
        "testbed:gige --environment mpich --nodes 9",
        "testbed:gige --environment mpich --rounds 2",
    ),
    "measure algorithms": (
        *("{bad}", "testbed:gige Allreduce", "testbed:gige --environment mpich", ""),
        "none:none Allreduce --environment none",
    ),
    "run": ("none",),
    "nightly": (
        *("testbed --store {new}", "none --store {new} --to {new}", ""),
        "testbed --store {new} --to {new} --label x",
    ),
    "diagnose": (
        "{bad}",
        "{deep}",
        "none {passed}",
        "none:gige --measure",
        "one two",
        "1.json 2.json",
    ),
    "history show": (
        *("--store {no_store}", "--store {bad}"),
        "--case '((a+)+)+!' --store {no_store}",
    ),
    "history accept": ("--store {no_store} x --reason x --name x", "--store {no_store}"),
}
"""Arguments of each verb, as one types them; in braces files and folders of ``place``."""


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
def place(project, tmp_path, monkeypatch) -> dict[str, Path]:
    """A file of no known kind, one nested deeply, a pipe, a folder that is no store, a report."""
    monkeypatch.delenv("RFM_REPORT_FILE")
    made = {name: tmp_path / f"{name}.json" for name in ("bad", "deep")}
    made["bad"].write_text("no report\n")
    made["deep"].write_text("[" * 100_000)
    made |= {name: tmp_path / name for name in ("no_store", "new", "pipe")}
    made["no_store"].mkdir()
    os.mkfifo(made["pipe"])
    return made | {"passed": PASSED}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("verb", "arguments"),
    [
        (verb, f"{one} {more}")
        for verb, several in FAULTY.items()
        for one in several
        for more in ("", "--format=json")
        if not more or VERBS[verb]
    ],
)
def test_faulty_input_is_2_and_said(place, tmp_path, monkeypatch, verb, arguments):
    expected = 1 if verb == "site check" and "{wrong_site}" in arguments else 2
    if "{wrong_site}" in arguments:
        shutil.copytree(ROOT / "site-config", tmp_path / "site-config")
        path = tmp_path / "site-config" / "example.py"
        path.write_text(path.read_text().replace('"mtu": 1500', '"mtu": 15'))
        monkeypatch.setenv("RFM_CONFIG_PATH", str(path.parent))
    words = shlex.split(arguments.format(**place, wrong_site="example"))
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
