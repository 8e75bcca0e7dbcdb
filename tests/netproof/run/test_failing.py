"""What netproof refuses ends a test of ReFrame's with its own words, once."""

from __future__ import annotations

import pytest
from reframe.core.exceptions import SanityError

from netproof.errors import NetproofError
from netproof.run.mixins import failing


def test_a_reason_is_not_repeated_as_its_own_cause():
    with pytest.raises(SanityError) as raised, failing(SanityError):
        raise NetproofError("/job/Bcast.1.err: Bcast.1 ended with status 143")
    assert str(raised.value) == "/job/Bcast.1.err: Bcast.1 ended with status 143"
