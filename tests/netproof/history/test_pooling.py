"""Several series as one."""

from __future__ import annotations

import pytest
from made_series import quiet, stepped, steps

from netproof.history.changes import ChangeKind
from netproof.history.detection import follow, follow_all
from netproof.history.pooling import pooled


@pytest.mark.slow
def test_a_pool_finds_what_no_series_of_it_shows_so_soon():
    several = [stepped(seed, 0.025, 60, 64) for seed in range(20, 28)]
    assert sum(bool(steps(followed)) for followed in follow_all(several)) <= 2
    (change,) = steps(follow(pooled(several)))
    assert change.size == pytest.approx(0.025, abs=0.01)
    assert change.index in (59, 60, 61)


def test_a_night_that_is_bad_for_all_series_is_no_step_of_their_pool():
    several = [quiet(seed) for seed in range(30, 38)]
    for values in several:
        values[70] *= 1.3
    followed = follow(pooled(several))
    assert not steps(followed)
    assert [c.index for c in followed.changes if c.kind is ChangeKind.BAD_NIGHT] == [70]


def test_a_pool_has_no_value_where_none_of_its_series_has():
    assert pooled([[1.0, None, None, 1.0], [2.0, 2.0, None, 2.0]]) == [1.0, 1.0, None, 1.0]
    assert pooled([[None, None]]) == [None, None]
    assert pooled([]) == []
