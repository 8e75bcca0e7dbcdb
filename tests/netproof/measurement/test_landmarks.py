from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_curves import POWERS, curve, line, link

from netproof.errors import NetproofError
from netproof.measurement import twin
from netproof.measurement.curve import Curve, median_curve
from netproof.measurement.landmarks import LANDMARK_NAMES, landmarks
from netproof.measurement.links import line_rate_mb_s


def test_gige_at_its_line_rate_has_a_share_of_one():
    line_rate = line_rate_mb_s(1000, 1500)
    times = [40 + size / line_rate for size in POWERS]
    found = landmarks(curve(POWERS, times), line_rate)
    assert found.line_rate_share == pytest.approx(1)
    assert found.peak_mb_s < found.asymptotic_mb_s


def test_without_a_bandwidth_only_the_latency_and_the_reasons_are_there():
    found = landmarks(Curve((0, 4, 1024, 4096), (1, 20, 30, 60)), 117.7)
    assert found.latency_us == 20
    for name in LANDMARK_NAMES:
        assert (getattr(found, name) is None) == (found.why(name) is not None)
    assert found.why("line_rate_share") == "the benchmark defines no bandwidth"


def test_an_unknown_landmark_is_refused_with_the_names_there_are():
    with pytest.raises(NetproofError, match="peak_mb_s"):
        landmarks(link(), None).why("peek")


@given(
    st.dictionaries(st.integers(0, 2**24), st.floats(0, 1e9), min_size=1, max_size=40),
    st.none() | st.floats(0.1, 1e5),
)
def test_every_curve_has_each_landmark_or_a_reason(points, line_rate):
    sizes = tuple(sorted(points))
    found = landmarks(Curve(sizes, tuple(points[size] for size in sizes)), line_rate)
    for name in LANDMARK_NAMES:
        assert (getattr(found, name) is None) == bool(found.why(name))


def test_the_asymptotic_bandwidth_counts_as_the_benchmark_does():
    for factor in (1.0, 2.0, 4.0):
        found = landmarks(line(factor=factor), None)
        assert found.asymptotic_mb_s == pytest.approx(100 * factor)
        assert found.half_performance_bytes == pytest.approx(3000)


def test_a_bandwidth_that_is_no_multiple_of_size_over_time_has_no_asymptote():
    one = line()
    odd = Curve(one.sizes, one.time_us, tuple(r * (1 + n) for n, r in enumerate(one.time_us)))
    found = landmarks(odd, 100.0)
    assert found.asymptotic_mb_s is None
    assert "is no constant" in found.why("asymptotic_mb_s")
    assert found.why("line_rate_share") == found.why("asymptotic_mb_s")


def test_an_even_number_of_launches_does_not_make_the_count_of_messages_waver():
    several = [line(latency_us=30), line(latency_us=4000)]
    found = landmarks(median_curve(several), None, launches=several)
    assert found.asymptotic_mb_s == pytest.approx(100)


@pytest.mark.parametrize(
    ("sizes", "reason"),
    [
        ((1, 64, 65536), "a line takes 4 sizes, and there are 1 from 65536 to 65536 bytes"),
        ((65536, 131072, 262144), "there are 3 from 65536 to 262144 bytes"),
    ],
)
def test_too_few_sizes_make_no_asymptote(sizes, reason):
    assert reason in landmarks(line(sizes=sizes), None).why("asymptotic_mb_s")


def test_a_time_that_does_not_grow_makes_no_asymptote():
    found = landmarks(curve(POWERS, [30.0] * len(POWERS)), None)
    assert "time does not grow" in found.why("asymptotic_mb_s")


def test_a_top_that_is_no_line_makes_no_asymptote_and_says_by_how_much():
    largest = POWERS[-1]
    several = [
        curve(POWERS, [30 + n + s / 100 + max(0, s - largest / 4) / 50 for s in POWERS])
        for n in range(3)
    ]
    found = landmarks(median_curve(several), 117.7, launches=several)
    assert found.asymptotic_mb_s is None
    assert "lie on no line: they grow faster in the upper half" in found.why("asymptotic_mb_s")


def test_short_messages_that_cost_nothing_leave_no_half_performance_length():
    found = landmarks(line(latency_us=-0.005), None)
    assert found.asymptotic_mb_s == pytest.approx(100)
    assert found.half_performance_bytes is None
    assert "below 0" in found.why("half_performance_bytes")


def test_every_figure_of_several_launches_has_an_interval_around_it():
    several = [line(30, 100), line(33, 101), line(29, 98)]
    found = landmarks(median_curve(several), 117.7, launches=several)
    for name in LANDMARK_NAMES:
        if name not in ("eager_limit", *twin.NAMES):
            low, high = found.interval(name)
            assert low <= getattr(found, name) <= high, name
    assert found.interval("eager_limit") is None
    low, high = found.interval("latency_us")
    assert low < 29 < 33 < high
    share = found.interval("line_rate_share")
    assert share == pytest.approx([end / 117.7 for end in found.interval("asymptotic_mb_s")])


def test_of_one_launch_only_what_goes_by_pairs_of_sizes_has_an_interval():
    found = landmarks(line(), 117.7, launches=[line()])
    assert {name for name, _, _ in found.intervals} == {"asymptotic_mb_s", "line_rate_share"}


def test_a_figure_that_a_launch_does_not_define_has_no_interval():
    several = [line(30), line(-0.005), line(40)]
    found = landmarks(median_curve(several), None, launches=several)
    assert found.half_performance_bytes is not None
    assert found.interval("half_performance_bytes") is None
    with pytest.raises(NetproofError, match="no landmark"):
        found.interval("peek")
