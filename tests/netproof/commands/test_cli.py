"""Help and faults of arguments come at once: nothing heavy is imported for them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import typer

from netproof.commands import options
from netproof.commands.cli import app

ROOT = Path(__file__).resolve().parents[3]
HEAVY = {
    *("altair", "duckdb", "jsonschema", "numpy", "pandas", "pyarrow", "reframe", "rich"),
    *("ruamel", "ruptures", "scipy", "vl_convert", "yaml"),
}
SAYS = (
    "import os, sys\n"
    "from netproof.commands.cli import main\n"
    "os._exit = sys.exit\n"
    "try:\n"
    "    main()\n"
    "finally:\n"
    "    print(*sys.modules, file=sys.stderr)\n"
)


OF_STORES_AND_PAGES = {
    *("altair", "duckdb", "pandas", "pyarrow", "reframe", "ruptures", "vl_convert"),
    *("scipy.optimize", "scipy.special", "scipy.stats"),
}
"""What takes long to load, and is used only where a store is asked or a page drawn."""


def called(*arguments: str) -> tuple[int, set[str]]:
    """Return the exit status, and the modules that were imported."""
    ran = subprocess.run(
        [sys.executable, "-c", SAYS, *arguments], capture_output=True, text=True, check=False
    )
    return ran.returncode, set(ran.stderr.splitlines()[-1].split())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["--help"], 0),
        (["verdict", "--help"], 0),
        (["report", "--help"], 0),
        (["history", "show", "--help"], 0),
        (["nonsense"], 2),
        (["verdict", "--nonsense"], 2),
        (["store", "export", "--store", ".", "--format", "nonsense", "--to", "."], 2),
        (["verdict", "--leave-out-marked"], 2),
        (["compare", "--by", "partition", "one", "another"], 2),
    ],
)
def test_help_and_wrong_arguments_import_nothing_heavy(arguments, status):
    ended, imported = called(*arguments)
    assert ended == status
    assert {"netproof", "typer"} <= imported
    assert {name.partition(".")[0] for name in imported} & HEAVY == set()


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ["verdict", "nosuch.json"],
        ["verdict", "--all", "nosuch.json"],
        ["diagnose", "nosuch.json"],
        ["judge", "nosuch"],
        ["compare", "nosuch", "another"],
        ["references", "derive", "nosuch.json"],
        ["site", "check", "nosuch"],
    ],
)
def test_what_only_some_sessions_need_is_not_imported_before(arguments, monkeypatch):
    monkeypatch.delenv("NETPROOF_STORE", raising=False)
    monkeypatch.setenv("RFM_CONFIG_PATH", str(ROOT / "site-config"))
    monkeypatch.setenv("RFM_REPORT_FILE", "reports/run-{sessionid}.json")
    ended, imported = called(*arguments)
    assert ended == 2
    assert imported & OF_STORES_AND_PAGES == set()


def test_what_is_said_of_arguments_is_of_arguments_that_there_are():
    used = {"examples", "help"}
    for name, command in typer.main.get_command(app).commands.items():
        for below, one in getattr(command, "commands", {"": command}).items():
            verb = f"{name} {below}".strip()
            parameters = {parameter.name for parameter in one.params}
            own = options._KNOWN.get(verb, {}).keys() - {"examples"}
            assert own <= parameters, verb
            used |= parameters
    assert {argument for several in options._KNOWN.values() for argument in several} <= used
