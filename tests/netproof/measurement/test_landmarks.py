"""Landmarks are read off a curve, each with its reason or interval; their table has all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_curves import POWERS, curve, line

from netproof.measurement import twin
from netproof.measurement.case import Curve, median_curve
from netproof.measurement.landmarks import LANDMARK_NAMES, LANDMARKS, landmarks


@given(
    st.dictionaries(st.integers(0, 2**24), st.floats(0, 1e9), min_size=1, max_size=40),
    st.none() | st.floats(0.1, 1e5),
)
def test_every_curve_has_each_landmark_or_a_reason(points, line_rate):
    sizes = tuple(sorted(points))
    found = landmarks(Curve(sizes, tuple(points[size] for size in sizes)), line_rate)
    for name in LANDMARK_NAMES:
        assert (getattr(found, name) is None) == bool(found.why(name))


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
    ("one", "reason"),
    [
        (line(sizes=(1, 64, 65536)), "takes 4 sizes, and there are 1 from 65536 to 65536 bytes"),
        (line(sizes=(65536, 131072, 262144)), "there are 3 from 65536 to 262144 bytes"),
        (curve(POWERS, [30.0] * len(POWERS)), "time does not grow"),
    ],
)
def test_too_few_sizes_and_a_time_that_does_not_grow_make_no_asymptote(one, reason):
    assert reason in landmarks(one, None).why("asymptotic_mb_s")


def test_short_messages_that_cost_nothing_leave_no_half_performance_length():
    found = landmarks(line(latency_us=-0.005), None)
    assert found.asymptotic_mb_s == pytest.approx(100)
    assert "below 0" in found.why("half_performance_bytes")


def test_a_top_that_is_no_line_makes_no_asymptote_and_says_by_how_much():
    largest = POWERS[-1]
    several = [
        curve(POWERS, [30 + n + s / 100 + max(0, s - largest / 4) / 50 for s in POWERS])
        for n in range(3)
    ]
    found = landmarks(median_curve(several), 117.7, launches=several)
    assert found.asymptotic_mb_s is None
    assert "lie on no line: they grow faster in the upper half" in found.why("asymptotic_mb_s")


def test_every_figure_of_several_launches_has_an_interval_around_it():
    several = [line(30, 100), line(33, 101), line(29, 98)]
    found = landmarks(median_curve(several), 117.7, launches=several)
    for name in LANDMARK_NAMES:
        if name not in ("eager_limit", *twin.NAMES):
            low, high = found.intervals.get(name)
            assert low <= getattr(found, name) <= high, name
    assert found.intervals.get("eager_limit") is None
    low, high = found.intervals.get("latency_us")
    assert low < 29 < 33 < high
    share = found.intervals.get("line_rate_share")
    assert share == pytest.approx([end / 117.7 for end in found.intervals.get("asymptotic_mb_s")])


def test_of_one_launch_only_what_goes_by_pairs_of_sizes_has_an_interval():
    found = landmarks(line(), 117.7, launches=[line()])
    assert set(found.intervals) == {"asymptotic_mb_s", "line_rate_share"}


def test_a_figure_that_a_launch_does_not_define_has_no_interval():
    several = [line(30), line(-0.005), line(40)]
    found = landmarks(median_curve(several), None, launches=several)
    assert found.half_performance_bytes is not None
    assert found.intervals.get("half_performance_bytes") is None


@pytest.mark.parametrize(
    ("sizes", "times", "latency_us"),
    [
        ((1, 4, 63, 64), (10, 14, 12, 99), 12),
        # An empty message and a printed 0 are none, but a barrier has nothing else.
        ((0, 1, 4, 8), (0.1, 0, 20, 30), 25),
        ((0,), (42,), 42),
    ],
)
def test_latency_is_the_median_time_of_messages_below_64_bytes(sizes, times, latency_us):
    assert landmarks(Curve(sizes, times), None).latency_us == latency_us


def test_a_curve_of_large_messages_has_no_latency_and_says_so():
    found = landmarks(curve((64, 128), (1, 2)), None)
    assert found.latency_us is None
    assert "1 to 63 bytes" in found.why("latency_us")


def test_messages_that_a_token_bucket_lets_pass_may_be_kept_from_being_the_peak():
    burst = curve((1024, 65536, 131072), (5, 600, 1180))
    assert landmarks(burst, None).peak_size == 1024
    found = landmarks(burst, 117.7, peak_from=65536)
    assert (found.peak_size, found.half_power_size) == (131072, 1024)
    none = landmarks(burst, 117.7, peak_from=2**20)
    assert none.why("peak_mb_s") == "no message of 1048576 bytes or more was measured"


def test_a_curve_without_bandwidth_has_none_of_its_landmarks():
    found = landmarks(Curve((0, 4, 1024, 4096), (1, 20, 30, 60)), 117.7)
    assert found.why("line_rate_share") == "the benchmark defines no bandwidth"


def test_a_bandwidth_of_zero_everywhere_is_no_peak():
    found = landmarks(Curve((4, 8), (1.0, 1.0), (0.0, 0.0)), 117.7)
    assert found.peak_mb_s is None
    assert "0 at every size" in found.why("half_power_size")


def test_a_name_that_has_a_unit_has_that_of_the_table():
    endings = {"_us": "us", "_mb_s": "MB/s", "_bytes": "B", "_size": "B", "_share": "%"}
    for name, one in LANDMARKS.items():
        assert [unit for ending, unit in endings.items() if name.endswith(ending)] == [one.unit]
