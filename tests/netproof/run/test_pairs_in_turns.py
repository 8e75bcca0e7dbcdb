"""Nodes of a partition of which a job can have only some take turns."""

from __future__ import annotations

import pytest

pytest.importorskip("reframe")

from netproof.run.mixins import of_other_turns

NODES = tuple(f"cn{number:02}" for number in range(7))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 6, 7])
@pytest.mark.parametrize("first", [0, 20419])
def test_all_have_their_turn_in_as_few_jobs_as_can_be(count, first):
    measured = set()
    for turn in range(first, first - (-len(NODES) // count)):
        others = of_other_turns(NODES, count, turn)
        assert len(others) == len(NODES) - count
        measured |= {*NODES} - {*others}
    assert measured == {*NODES}
