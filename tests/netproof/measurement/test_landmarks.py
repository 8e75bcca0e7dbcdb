"""Landmarks are read off a curve, each with its reason or interval; their table has all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_curves import POWERS, curve, line

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


ODD = Curve(POWERS, line().time_us, tuple(r * (1 + n) for n, r in enumerate(line().time_us)))


@pytest.mark.parametrize(
    ("one", "landmark", "reason"),
    [
        (
            line(sizes=(1, 64, 65536)),
            "asymptotic_mb_s",
            "takes 4 sizes, and there are 1 from 65536",
        ),
        (line(sizes=(65536, 131072, 262144)), "asymptotic_mb_s", "3 from 65536 to 262144 bytes"),
        (curve(POWERS, [30.0] * len(POWERS)), "asymptotic_mb_s", "time does not grow"),
        (ODD, "asymptotic_mb_s", "is no constant"),
        (ODD, "line_rate_share", "is no constant"),
        (line(latency_us=-0.005), "half_performance_bytes", "below 0"),
        (curve((64, 128), (1, 2)), "latency_us", "1 to 63 bytes"),
        (Curve((4, 1024), (20, 30)), "line_rate_share", "the benchmark defines no bandwidth"),
        (Curve((4, 8), (1.0, 1.0), (0.0, 0.0)), "half_power_size", "0 at every size"),
        (curve((1024, 16383), (10, 50)), "rate_16_kib_mb_s", "16384 bytes was not measured"),
    ],
)
def test_what_a_curve_does_not_define_has_its_reason(one, landmark, reason):
    found = landmarks(one, 117.7)
    assert getattr(found, landmark) is None
    assert reason in found.why(landmark)


def test_a_top_that_is_no_line_makes_no_asymptote_and_says_by_how_much():
    largest = POWERS[-1]
    several = [
        curve(POWERS, [30 + n + s / 100 + max(0, s - largest / 4) / 50 for s in POWERS])
        for n in range(3)
    ]
    found = landmarks(median_curve(several), 117.7, launches=several)
    assert found.asymptotic_mb_s is None
    assert "lie on no straight line: they grow faster in the upper half" in found.why(
        "asymptotic_mb_s"
    )


def test_a_figure_that_a_launch_does_not_define_has_no_interval():
    several = [line(30), line(-0.005), line(4000)]
    found = landmarks(median_curve(several), None, launches=several)
    assert found.half_performance_bytes is not None
    assert found.intervals.get("half_performance_bytes") is None
    # The median of an even number of launches does not make the count of messages waver.
    several = [line(latency_us=30), line(latency_us=4000)]
    found = landmarks(median_curve(several), None, launches=several)
    assert found.asymptotic_mb_s == pytest.approx(100)


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


def test_messages_that_a_token_bucket_lets_pass_may_be_kept_from_being_the_peak():
    burst = curve((1024, 65536, 131072), (5, 600, 1180))
    assert landmarks(burst, None).peak_size == 1024
    found = landmarks(burst, 117.7, peak_from=65536)
    assert (found.peak_size, found.half_power_size) == (131072, 1024)
    none = landmarks(burst, 117.7, peak_from=2**20)
    assert none.why("peak_mb_s") == "no message of 1048576 bytes or more was measured"


def test_a_name_that_has_a_unit_has_that_of_the_table():
    endings = {"_us": "us", "_mb_s": "MB/s", "_bytes": "B", "_size": "B", "_share": "%"}
    for name, one in LANDMARKS.items():
        assert [unit for ending, unit in endings.items() if name.endswith(ending)] == [one.unit]
