"""Sites that tests write."""

from __future__ import annotations

import copy

import pytest
from made_sites import CONFIGURATION


@pytest.fixture
def configuration() -> dict:
    """The content of a small site's file, to be changed."""
    return copy.deepcopy(CONFIGURATION)
