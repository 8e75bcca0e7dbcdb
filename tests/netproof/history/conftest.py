"""Stores that tests put nights into, or only read."""

from __future__ import annotations

import pytest
from made_nights import MadeNights, by


@pytest.fixture
def nights(tmp_path) -> MadeNights:
    """A store without a session, and what puts nights into it."""
    return MadeNights(tmp_path)


@pytest.fixture(scope="session")
def stepped(tmp_path_factory) -> MadeNights:
    """30 nights; from the 25th on, times of ``gige mpich`` are 20 % longer. For reading only."""
    made = MadeNights(tmp_path_factory.mktemp("stepped"))
    made.add_many(30, {24: by(1.2, environment="mpich")})
    return made
