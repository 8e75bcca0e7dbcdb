"""A store that a test puts nights into."""

from __future__ import annotations

import pytest
from made_nights import MadeNights


@pytest.fixture
def nights(tmp_path) -> MadeNights:
    """A store without a session, and what puts nights into it."""
    return MadeNights(tmp_path)
