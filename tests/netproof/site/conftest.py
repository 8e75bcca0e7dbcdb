"""Sites that tests write, and commands that stand in for the cluster's."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import pytest
from made_sites import CONFIGURATION


@pytest.fixture
def configuration() -> dict:
    """The content of a small site's file, to be changed."""
    return copy.deepcopy(CONFIGURATION)


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """``command(name, text)``: put a shell script of that name first in PATH."""
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv("SLURM_CONF", raising=False)

    def put(name: str, text: str) -> None:
        (tmp_path / name).write_text(f"#!/bin/bash\n{text}\n")
        (tmp_path / name).chmod(0o755)

    return put
