"""A verb that fails at once, or has little to do, has not loaded what an answer would need."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from netproof.commands import options
from netproof.commands.cli import app

ROOT = Path(__file__).resolve().parents[3]
HEAVY = {
    *("altair", "jinja2", "vl_convert"),
    *("duckdb", "pyarrow", "pandas"),
    *("numpy", "scipy", "ruptures", "jsonschema", "ruamel.yaml"),
    *("reframe", "netproof.verdict.session_verdict"),
}
"""What takes a twentieth of a second or more to load, and leads to it."""

STARTED = {
    "site discover": ("mine place", 2),
    "site init": ("mine place", 0),
    "site check": ("", 2),
    "site show": ("mine", 2),
    "references derive": ("nosuch.json", 2),
    "references risk": ("nosuch.json", 2),
    "run": ("mine", 2),
    "nightly": ("mine --store store", 2),
    "measure tune": ("mine:one mtu -p mpich", 2),
    "measure algorithms": ("mine:one Allreduce -p mpich", 2),
    "measure load": ("mine:one -p mpich", 2),
    "measure tails": ("mine:one -p mpich", 2),
    "measure gpcnet": ("mine:one -p mpich", 2),
    "measure study": ("e325-opteron nosuch.json", 2),
    "verdict": ("nosuch.json --all", 2),
    "report": ("./nosuch --store nosuch", 2),
    "compare": ("", 2),
    "history show": ("--store nosuch", 2),
    "history accept": ("1 --reason r --name n --case . --store nosuch", 2),
    "diagnose": ("mine:one", 2),
    "judge": ("nosuch", 2),
    "store add": ("nosuch.json --store store", 2),
    "store export": ("--store nosuch --format csv --to place", 2),
    "store check": ("--store nosuch", 2),
}
"""Of each verb arguments with which it ends at once in an empty folder, and its exit status."""

ARGUMENTS = {
    "--help": 0,
    "verdict --help": 0,
    "history show --help": 0,
    "nonsense": 2,
    "verdict --nonsense": 2,
    "store export --store . --format nonsense --to .": 2,
    "verdict --leave-out-marked": 2,
    "compare --by partition one another": 2,
}
"""Help and wrong arguments, and the exit status."""

OF_A_SITE = {
    "site show testbed": (0, set()),
    "site show absent": (2, set()),
    # They read references, which ruamel edits.
    "site check absent": (2, {"ruamel.yaml"}),
    "references derive absent": (2, {"ruamel.yaml"}),
    "references risk absent": (2, {"ruamel.yaml"}),
}
"""What reads a site, its exit status, and what it may load."""

RUN = """
import json, os, sys
import netproof.commands.cli
os._exit, end = sys.exit, os._exit
for words in json.loads(sys.argv[1]):
    reading, writing = os.pipe()
    if os.fork() == 0:
        sys.argv = ["netproof", *words.split()]
        status = 0
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        try:
            netproof.commands.cli.main()
        except SystemExit as ended:
            status = ended.code or 0
        os.write(writing, json.dumps([words, status, [*sys.modules]]).encode() + b"\\n")
        end(0)
    os.close(writing)
    print(os.fdopen(reading).read(), end="")
    os.wait()
"""
"""Each command in a process of its own, which begins where the program begins."""


def loaded(several, folder: Path, **variables: str) -> dict[str, tuple[int, set[str]]]:
    """Return the exit status of each command, and the modules that it loaded."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("RFM_", "NETPROOF_"))
    }
    ran = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps([*several])],
        env={**environment, "PYTHONPATH": os.pathsep.join(sys.path), **variables},
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    found = map(json.loads, ran.stdout.splitlines())
    return {words: (status, set(modules)) for words, status, modules in found}


def test_every_verb_is_started():
    verbs = set()
    for name, command in typer.main.get_command(app).commands.items():
        below = getattr(command, "commands", None)
        verbs |= {name} if below is None else {f"{name} {one}" for one in below}
    assert verbs == set(STARTED)


@pytest.mark.slow
def test_a_verb_that_fails_at_once_loads_little(tmp_path):
    expected = {f"{verb} {words}": status for verb, (words, status) in STARTED.items()}
    found = loaded(expected, tmp_path)
    assert {words: status for words, (status, _) in found.items()} == expected
    assert {
        words: modules & HEAVY for words, (_, modules) in found.items() if modules & HEAVY
    } == {}


@pytest.mark.slow
def test_help_and_wrong_arguments_load_not_even_what_prints(tmp_path):
    for words, (status, modules) in loaded(ARGUMENTS, tmp_path).items():
        assert status == ARGUMENTS[words], words
        assert {"netproof", "typer"} <= modules
        assert {name.partition(".")[0] for name in modules} & {*HEAVY, "rich", "yaml"} == set()


@pytest.mark.slow
def test_reading_a_site_loads_little(tmp_path):
    site = {
        "RFM_CONFIG_PATH": str(ROOT / "site-config"),
        "RFM_REFERENCE_PREFIX": str(ROOT / "reference-values"),
        "NETPROOF_SPACK_BUILDS": str(tmp_path),
    }
    for words, (status, modules) in loaded(OF_A_SITE, tmp_path, **site).items():
        ends, allowed = OF_A_SITE[words]
        assert (status, modules & HEAVY - allowed) == (ends, set()), words


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
