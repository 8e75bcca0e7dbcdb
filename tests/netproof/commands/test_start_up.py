"""A verb that fails at once has not loaded what it would have needed for an answer."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

CHARTS = {"altair", "jinja2", "vl_convert"}
TABLES = {"duckdb", "pyarrow"}
SCIPY = {"scipy.special", "scipy.stats", "scipy.optimize"}
JUDGING = {"numpy", "scipy", "ClusterShell", "netproof.session.session"}
RUN = """
import sys
from netproof.commands.cli import app
try:
    app(args=sys.argv[1:], standalone_mode=False)
except BaseException:
    pass
print(*sys.modules)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("verb", "unused"),
    [
        *(
            (verb, JUDGING | CHARTS | TABLES)
            for verb in (
                "verdict nosuch.json",
                "verdict --all nosuch.json",
                "report nosuch.json",
                "diagnose nosuch.json",
                "compare nosuch.json",
                "references derive nosuch.json",
                "references risk nosuch.json",
            )
        ),
        ("measure study nosuch", CHARTS | TABLES | SCIPY),
        ("site check nosuch", CHARTS | TABLES | SCIPY),
        ("judge nosuch", CHARTS | TABLES | SCIPY),
    ],
)
def test_a_verb_that_fails_at_once_loads_little(verb, unused, tmp_path):
    ended = subprocess.run(
        [sys.executable, "-c", RUN, *verb.split()],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "nosuch" in ended.stderr + ended.stdout or verb.startswith("site")
    assert unused & set(ended.stdout.split()) == set()
