"""Nodes of a partition of which a job can have only some take turns."""

from __future__ import annotations

import pytest

pytest.importorskip("reframe")

from netproof.run.system_here import of_other_days

NODES = tuple(f"cn{number:02}" for number in range(7))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("first", [0, 20419])
def test_all_have_their_turn_in_as_few_days_as_can_be(count, first):
    measured = set()
    for day in range(first, first - (-len(NODES) // count)):
        others = of_other_days(NODES, count, day)
        assert len(others) == len(NODES) - count
        measured |= {*NODES} - {*others}
    assert measured == {*NODES}


def test_a_job_that_can_have_all_leaves_none():
    assert of_other_days(NODES, 7, 5) == of_other_days(NODES, 9, 5) == ()
