"""Latency, peak and rates are read off a curve as it is."""

from __future__ import annotations

from made_curves import curve, link

from netproof.measurement.curve import Curve
from netproof.measurement.landmarks import landmarks


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
    found = landmarks(burst, 117.7, peak_from=65536)
    assert (found.peak_size, found.half_power_size) == (131072, 1024)
    none = landmarks(burst, 117.7, peak_from=2**20)
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


def test_a_bandwidth_of_zero_everywhere_is_no_peak():
    found = landmarks(Curve((4, 8), (1.0, 1.0), (0.0, 0.0)), 117.7)
    assert found.peak_mb_s is None
    assert "0 at every size" in found.why("half_power_size")
