"""The partition of recorded jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from netproof.session import session
from netproof.site.partition import Partition

FAULTY = Path(__file__).resolve().parents[2] / "data" / "sessions" / "faulty.json"


@pytest.fixture(scope="session")
def partition() -> Partition:
    """The partition that the jobs were recorded on."""
    kept = next(result.extras for result in session.load(FAULTY).results if result.measured)
    return Partition.model_validate(kept["partition_extras"])
