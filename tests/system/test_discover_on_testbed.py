"""The testbed as a stranger's cluster: its site is discovered, checked by a job, and ready."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytestmark = [pytest.mark.testbed, pytest.mark.usefixtures("testbed"), pytest.mark.nightly]

ROOT = Path(__file__).resolve().parents[2]


def test_a_discovered_site_is_ready(run, tmp_path):
    programs = f"{ROOT}/.opt/mpich/bin:{ROOT}/.venv/bin:{os.environ['PATH']}"
    asked = ("--partition", "gige", "--interface", "eth1")
    made = run(tmp_path, *("netproof", "site", "discover", "tb", "tb", *asked), PATH=programs)
    assert made.returncode == 0, made.stdout + made.stderr
    text = (tmp_path / "tb" / "site-config" / "tb.py").read_text()
    assert '"link_mbit_s": 1000,' in text
    assert '"features": ["netpipe-tcp", "netpipe-mpi", "imb"]' in text
    assert '"pmi": "pmi2"' in text
    checked = run(tmp_path / "tb", "bash", "-c", ". ./activate && netproof site check --job tb")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "tb: ready" in checked.stdout
