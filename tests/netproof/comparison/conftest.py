"""Recorded sessions that are compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from netproof.session import session

RECORDED = Path(__file__).resolve().parents[2] / "data" / "sessions"


@pytest.fixture(scope="module")
def healthy():
    """A session on healthy switches, two partitions and two environments."""
    return session.load(RECORDED / "healthy.json")


@pytest.fixture(scope="module")
def sick():
    """NetPIPE between two nodes of one of its partitions, on a switch with a small buffer."""
    return session.load(RECORDED / "sick.json")
