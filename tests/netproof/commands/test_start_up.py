"""A verb that fails at once, or has little to do, has not loaded what an answer would need."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from netproof.commands.cli import app

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

RUN = """
import sys
from netproof.commands.cli import main
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""


def test_every_verb_is_started():
    verbs = set()
    for name, command in typer.main.get_command(app).commands.items():
        below = getattr(command, "commands", None)
        verbs |= {name} if below is None else {f"{name} {one}" for one in below}
    assert verbs == set(STARTED)


def heavy_of(words, status, folder, **variables):
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("RFM_", "NETPROOF_"))
    }
    ended = subprocess.run(
        [sys.executable, "-c", RUN, *words.split()],
        env={**environment, "PYTHONPATH": os.pathsep.join(sys.path), **variables},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    *_, loaded = ended.stderr.splitlines()
    assert ended.returncode == status, ended.stderr
    return HEAVY & set(loaded.split())


@pytest.mark.slow
@pytest.mark.parametrize("verb", STARTED)
def test_a_verb_that_fails_at_once_loads_little(verb, tmp_path):
    arguments, status = STARTED[verb]
    assert heavy_of(f"{verb} {arguments}", status, tmp_path) == set()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "status", "allowed"),
    [
        ("site show testbed", 0, set()),
        ("site show absent", 2, set()),
        # They read references, which ruamel edits.
        ("site check absent", 2, {"ruamel.yaml"}),
        ("references derive absent", 2, {"ruamel.yaml"}),
        ("references risk absent", 2, {"ruamel.yaml"}),
    ],
)
def test_reading_a_site_loads_little(words, status, allowed, tmp_path):
    root = Path(__file__).parents[3]
    site = {
        "RFM_CONFIG_PATH": str(root / "site-config"),
        "RFM_REFERENCE_PREFIX": str(root / "reference-values"),
        "NETPROOF_SPACK_BUILDS": str(tmp_path),
    }
    assert heavy_of(words, status, tmp_path, **site) <= allowed
