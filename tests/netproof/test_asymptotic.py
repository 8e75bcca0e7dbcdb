"""Hockney's line: what cancels and what does not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netproof.asymptotic import theil_sen, top

SIZES = (65536, 98304, 131072, 196608, 262144, 393216, 524288)


@given(st.floats(1, 1e5), st.floats(0, 1e6))
def test_a_constant_cost_is_in_t0_and_not_in_the_bandwidth(r_mb_s, t_us):
    line = theil_sen(SIZES, [t_us + size / r_mb_s for size in SIZES])
    assert line.r_mb_s == pytest.approx(r_mb_s, rel=1e-6)
    assert line.t_us == pytest.approx(t_us, rel=1e-6, abs=1e-3)
    assert line.n_half_bytes == pytest.approx(t_us * r_mb_s, rel=1e-6, abs=1)


def test_one_disturbed_size_of_seven_hardly_moves_it():
    times = [50 + size / 117.7 for size in SIZES]
    times[3] *= 3
    assert theil_sen(SIZES, times).r_mb_s == pytest.approx(117.7, rel=1e-6)


@pytest.mark.parametrize(
    ("sizes", "times"), [((1024,), (10.0,)), ((), ()), ((1024, 2048), (10.0, 10.0))]
)
def test_no_line_goes_through_one_size_or_through_a_time_that_does_not_grow(sizes, times):
    assert theil_sen(sizes, times) is None


def test_the_top_is_what_reaches_an_eighth_of_the_largest_size():
    sizes = (1, 1024, 65535, 65536, 524288)
    assert [sizes[place] for place in top(sizes)] == [65536, 524288]
