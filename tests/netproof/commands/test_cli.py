"""Help and faults of arguments come at once: nothing heavy is imported for them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import typer

from netproof.commands import verbs
from netproof.commands.cli import app

HEAVY = {
    *("altair", "duckdb", "jsonschema", "numpy", "pandas", "pyarrow", "reframe", "rich"),
    *("ruamel", "ruptures", "scipy", "vl_convert", "yaml"),
}
SAYS = (
    "import sys\n"
    "from netproof.commands.cli import main\n"
    "try:\n"
    "    main()\n"
    "finally:\n"
    "    print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)\n"
)


def called(*arguments: str) -> tuple[int, set[str]]:
    """Return the exit status, and the imported packages."""
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
        (["export", "--store", ".", "--format", "nonsense", "--to", "."], 2),
        (["verdict", "--leave-out-marked"], 2),
        (["compare", "--by", "partition", "one", "another"], 2),
    ],
)
def test_help_and_wrong_arguments_import_nothing_heavy(arguments, status):
    ended, imported = called(*arguments)
    assert ended == status
    assert {"netproof", "typer"} <= imported
    assert imported & HEAVY == set()


def test_each_verb_is_one_file_and_the_command_has_them_all():
    files = {path.stem for path in Path(verbs.__file__).parent.glob("*.py")} - {"__init__"}
    group = typer.main.get_command(app)
    assert set(group.commands) == files
    for name, verb in group.commands.items():
        several = verb.commands.values() if hasattr(verb, "commands") else [verb]
        for one in several:
            assert one.callback.__module__ == f"netproof.commands.verbs.{name}"
