import pytest
from hypothesis import given
from hypothesis import strategies as st

from netproof.errors import NetproofError
from netproof.measurement.case import Curve, median_curve, spread


def launch(*times, sizes=(1, 64, 1024), bandwidth=None):
    return Curve(sizes, times, bandwidth)


def test_one_slow_launch_does_not_move_the_curve():
    launches = [launch(10, 12, 20), launch(11, 900, 21), launch(12, 13, 22)]
    assert median_curve(launches).time_us == (11, 13, 21)


def test_the_bandwidth_is_the_median_of_the_bandwidths():
    launches = [launch(1, 2, 3, bandwidth=(b, 2 * b, 3 * b)) for b in (10.0, 30.0, 20.0)]
    assert median_curve(launches).bandwidth_mb_s == (20.0, 40.0, 60.0)


def test_two_launches_meet_halfway():
    assert median_curve([launch(10, 12, 20), launch(12, 14, 30)]).time_us == (11, 13, 25)


def test_the_curve_of_one_launch_is_that_launch_and_its_spread_is_zero():
    only = launch(1, 2, 3, bandwidth=(1.0, 2.0, 3.0))
    assert median_curve([only]) == only
    assert spread([only]) == (0, 0, 0)


def test_the_spread_is_the_unscaled_median_distance_from_the_median():
    launches = [launch(10, 5, 1), launch(13, 5, 1), launch(20, 5, 9)]
    assert spread(launches) == (3, 0, 0)


def test_launches_over_other_sizes_are_refused_by_naming_the_sizes():
    short = launch(1, 2, sizes=(1, 1024))
    long = launch(1, 2, 3, sizes=(1, 64, 2048))
    with pytest.raises(NetproofError, match=r"launch 2 of 2 .* lacks 64 bytes"):
        median_curve([launch(1, 2, 3), short])
    with pytest.raises(NetproofError, match="lacks 1024 and also has 2048 bytes"):
        spread([launch(1, 2, 3), long])


def ranged(slowest, fastest, mean):
    return Curve((1, 64), slowest, None, fastest, mean)


def test_the_fastest_rank_and_the_mean_have_medians_of_their_own():
    launches = [
        ranged((5, 9), (1, 3), (4, 5)),
        ranged((6, 7), (2, 2), (3, 6)),
        ranged((7, 8), (3, 4), (5, 4)),
    ]
    assert median_curve(launches) == ranged((6, 8), (2, 3), (4, 5))


def test_a_launch_without_the_fastest_rank_among_others_is_refused():
    with pytest.raises(NetproofError, match="launch 2 of 2 has no time of the fastest rank"):
        median_curve([ranged((5, 9), (1, 3), (4, 5)), launch(5, 9, sizes=(1, 64))])


def test_the_fastest_rank_without_the_mean_is_no_curve():
    with pytest.raises(NetproofError, match="the fastest rank's time and the mean, or neither"):
        ranged((5, 9), (1, 3), None)


def test_a_launch_without_a_bandwidth_among_others_is_refused():
    with pytest.raises(NetproofError, match="launch 2 of 2 has no bandwidth"):
        median_curve([launch(1, 2, 3, bandwidth=(1.0, 2.0, 3.0)), launch(1, 2, 3)])


@pytest.mark.parametrize("statistic", [median_curve, spread])
def test_no_launch_has_no_curve(statistic):
    with pytest.raises(NetproofError, match="without a launch"):
        statistic([])


times = st.lists(st.floats(0, 1e9), min_size=3, max_size=3)


@given(st.lists(times, min_size=1, max_size=7))
def test_the_median_lies_within_the_launches_and_ignores_their_order(rows):
    launches = [launch(*row) for row in rows]
    curve = median_curve(launches)
    assert curve == median_curve(launches[::-1])
    for column, middle in zip(zip(*rows, strict=True), curve.time_us, strict=True):
        assert min(column) <= middle <= max(column)
