"""Several series as one."""

from __future__ import annotations

import pytest
from made_series import follow, quiet, stepped, steps

from netproof.history.followers import follow_all
from netproof.history.series import POOL_STRIDE, phase_of, pooled


@pytest.mark.slow
def test_a_pool_finds_what_no_series_of_it_shows_so_soon():
    several = [stepped(seed, 0.025, 60, 64) for seed in range(20, 28)]
    assert sum(bool(steps(followed)) for followed in follow_all(several)) <= 2
    (change,) = steps(follow(pooled(several)))
    assert change.size == pytest.approx(0.025, abs=0.01)
    assert change.index in (59, 60, 61)


def test_a_pool_has_no_value_where_none_of_its_series_has():
    assert pooled([[1.0, None, None, 1.0], [2.0, 2.0, None, 2.0]]) == [1.0, 1.0, None, 1.0]
    assert pooled([[None, None]]) == [None, None]
    assert pooled([]) == []


@pytest.mark.parametrize("phase", [0, 1, POOL_STRIDE - 1])
def test_the_values_of_earlier_nights_stay_until_the_weights_are_taken_anew(phase):
    several = [quiet(seed) for seed in range(30, 34)]
    several[1][2 * POOL_STRIDE + 5] = None
    for nights in (2 * POOL_STRIDE - phase, 3 * POOL_STRIDE - phase):
        first = pooled([values[:nights] for values in several], phase)
        for more in (1, POOL_STRIDE - 1):
            assert pooled([values[: nights + more] for values in several], phase)[:nights] == first
        assert (
            pooled([values[: nights + POOL_STRIDE] for values in several], phase)[:nights] != first
        )


def test_pools_take_their_weights_anew_on_nights_of_their_own():
    names = [("gige", f"mpi{number}", what) for number in range(8) for what in ("mean", "score")]
    assert len({phase_of(*name) for name in names}) > POOL_STRIDE // 3
    assert {phase_of(*name) for name in names} <= set(range(POOL_STRIDE))


def test_a_series_that_joins_late_is_weighed_by_all_of_its_nights():
    old = [quiet(seed) for seed in (30, 31)]
    late = [None] * (3 * POOL_STRIDE) + [1000.0 * value for value in quiet(32)[: POOL_STRIDE // 2]]
    of_all = pooled([*(values[: len(late)] for values in old), late])
    assert all(0.8 < value < 1.25 for value in of_all)
