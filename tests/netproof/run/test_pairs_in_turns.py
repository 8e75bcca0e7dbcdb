"""Nodes of a partition of which a job can have only some take turns."""

from __future__ import annotations

import pytest

pytest.importorskip("reframe")

from netproof.run.system_here import of_other_turns

NODES = tuple(f"cn{number:02}" for number in range(7))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 6, 7])
def test_all_have_their_turn_in_as_few_jobs_as_can_be(count):
    measured = set()
    for turn in range(1, 1 - (-len(NODES) // count)):
        others = of_other_turns(NODES, count, turn)
        assert len(others) == len(NODES) - count
        measured |= {*NODES} - {*others}
    assert measured == {*NODES}
