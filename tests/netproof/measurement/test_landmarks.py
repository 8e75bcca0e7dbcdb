from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netproof.errors import NetproofError
from netproof.measurement import twin
from netproof.measurement.curve import Curve
from netproof.measurement.landmarks import (
    LANDMARK_NAMES,
    LandmarkSettings,
    eager_limit,
    landmarks,
    line_rate_share,
)
from netproof.measurement.launches import median_curve
from netproof.measurement.units import line_rate_mb_s

CURVES = Path(__file__).parents[2] / "data" / "curves"
POWERS = tuple(2**n for n in range(23))


def recorded(name):
    rows = [line.split() for line in (CURVES / name).read_text().splitlines()]
    sizes = tuple(int(size) for size, _, _ in rows)
    times = tuple(float(seconds) * 1e6 for _, _, seconds in rows)
    return curve(sizes, times)


def curve(sizes, times):
    rates = tuple(size / time if time else 0.0 for size, time in zip(sizes, times, strict=True))
    return Curve(tuple(sizes), tuple(times), rates)


def link(latency_us=30.0, mb_s=100.0, sizes=POWERS):
    return curve(sizes, [latency_us + size / mb_s for size in sizes])


def test_latency_is_the_median_time_of_messages_below_64_bytes():
    assert landmarks(curve((1, 4, 63, 64), (10, 14, 12, 99)), None).latency_us == 12


def test_empty_messages_and_printed_zeros_are_no_latency():
    assert landmarks(curve((0, 1, 4, 8), (0.1, 0, 20, 30)), None).latency_us == 25


def test_the_latency_of_a_barrier_is_its_time():
    assert landmarks(Curve((0,), (42.0,)), None).latency_us == 42


def test_a_curve_of_large_messages_has_no_latency_and_says_so():
    found = landmarks(curve((64, 128), (1, 2)), None)
    assert found.latency_us is None
    assert "1 to 63 bytes" in found.why("latency_us")


def test_the_peak_is_reached_at_the_least_size_that_has_it():
    found = landmarks(curve((1024, 2048, 4096, 8192), (100, 30, 40.96, 81.92)), None)
    assert (found.peak_mb_s, found.peak_size) == (100, 4096)


def test_messages_that_a_token_bucket_lets_pass_may_be_kept_from_being_the_peak():
    burst = curve((1024, 65536, 131072), (5, 600, 1180))
    assert landmarks(burst, None).peak_size == 1024
    found = landmarks(burst, 117.7, LandmarkSettings(peak_from=65536))
    assert (found.peak_size, found.half_power_size) == (131072, 1024)
    none = landmarks(burst, 117.7, LandmarkSettings(peak_from=2**20))
    assert none.why("peak_mb_s") == "no message of 1048576 bytes or more was measured"


def test_half_the_peak_is_reached_at_the_half_power_size():
    found = landmarks(link(latency_us=30, mb_s=100), None)
    assert found.half_power_size == 4096
    assert found.rate_4_kib_mb_s >= found.peak_mb_s / 2


def test_rates_are_those_of_exactly_1_4_16_and_64_kib():
    sizes = (1024, 4096, 16383, 65536)
    found = landmarks(curve(sizes, (10, 20, 50, 100)), None)
    assert found.rate_1_kib_mb_s == 102.4
    assert found.rate_4_kib_mb_s == 204.8
    assert found.rate_64_kib_mb_s == 655.36
    assert found.rate_16_kib_mb_s is None
    assert found.why("rate_16_kib_mb_s") == "16384 bytes was not measured"


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


def test_a_bandwidth_of_zero_everywhere_is_no_peak():
    found = landmarks(Curve((4, 8), (1.0, 1.0), (0.0, 0.0)), 117.7)
    assert found.peak_mb_s is None
    assert "0 at every size" in found.why("half_power_size")


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf")])
def test_a_line_rate_that_is_none_is_refused(rate):
    with pytest.raises(NetproofError, match="no line rate"):
        line_rate_share(1.0, rate)


def test_an_unknown_landmark_is_refused_with_the_names_there_are():
    with pytest.raises(NetproofError, match="peak_mb_s"):
        landmarks(link(), None).why("peek")


def test_open_mpi_over_tcp_shows_its_eager_limit_of_64_kib():
    found = landmarks(recorded("open-mpi-4.1-tcp-loopback.np"), None)
    limit = found.eager_limit
    assert (limit.size_below, limit.size_above) == (49155, 65533)
    assert limit.rate_below_mb_s > limit.rate_above_mb_s
    assert limit.step_us > found.latency_us


def handshake(plain, size_above, cost_us):
    return curve(
        plain.sizes,
        [
            time + (cost_us if size >= size_above else 0)
            for size, time in zip(plain.sizes, plain.time_us, strict=True)
        ],
    )


@pytest.mark.parametrize("size_above", [4096, 16384, 131072])
def test_a_round_trip_more_from_one_size_on_is_an_eager_limit(size_above):
    limit = eager_limit(handshake(link(), size_above, 200))
    assert (limit.size_below, limit.size_above) == (size_above // 2, size_above)
    assert limit.step_us == pytest.approx(200)


def test_a_line_through_latency_and_rate_has_no_eager_limit():
    assert eager_limit(link()) is None
    assert "stays for all larger" in landmarks(link(), None).why("eager_limit")


def test_a_step_below_a_latency_or_a_tenth_of_the_time_is_no_eager_limit():
    assert eager_limit(handshake(link(latency_us=30), 4096, 29)) is None
    assert eager_limit(handshake(link(latency_us=30), 131072, 60)) is None


def test_a_spike_and_a_dip_are_no_eager_limits():
    for factor in (8.0, 1.6, 0.6, 0.2):
        times = list(link().time_us)
        times[14] *= factor
        assert eager_limit(curve(POWERS, times)) is None


def test_a_rate_that_collapses_for_good_is_no_eager_limit():
    slow_above = [30 + size / 100 + max(0, size - 16384) / 2 for size in POWERS]
    assert eager_limit(curve(POWERS, slow_above)) is None


def test_where_the_eager_limit_is_looked_for_is_a_setting():
    late = handshake(link(), 512 * 1024, 1e6)
    assert eager_limit(late).size_above == 512 * 1024
    assert eager_limit(late, LandmarkSettings(eager_to=64 * 1024)) is None


@given(
    st.dictionaries(st.integers(0, 2**24), st.floats(0, 1e9), min_size=1, max_size=40),
    st.none() | st.floats(0.1, 1e5),
)
def test_every_curve_has_each_landmark_or_a_reason(points, line_rate):
    sizes = tuple(sorted(points))
    found = landmarks(Curve(sizes, tuple(points[size] for size in sizes)), line_rate)
    for name in LANDMARK_NAMES:
        assert (getattr(found, name) is None) == bool(found.why(name))


def line(latency_us=30.0, mb_s=100.0, factor=1.0, sizes=POWERS):
    """A curve on a line, whose benchmark counts so many messages a call."""
    spent = tuple(latency_us + size / mb_s for size in sizes)
    rates = tuple(factor * size / time for size, time in zip(sizes, spent, strict=True))
    return Curve(sizes, spent, rates)


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
    loose = LandmarkSettings(asymptotic_bend=3.0)
    assert landmarks(median_curve(several), 117.7, loose, launches=several).asymptotic_mb_s


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
