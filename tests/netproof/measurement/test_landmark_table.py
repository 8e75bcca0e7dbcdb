"""The one table of landmarks has all that the code finds."""

from __future__ import annotations

from netproof.measurement.landmark_table import LANDMARKS, RATES, Better
from netproof.measurement.landmarks import LANDMARK_NAMES


def test_every_landmark_but_the_eager_limit_is_in_the_table():
    assert list(LANDMARKS) == [name for name in LANDMARK_NAMES if name != "eager_limit"]


def test_a_name_that_has_a_unit_has_that_of_the_table():
    endings = {"_us": "us", "_mb_s": "MB/s", "_bytes": "B", "_size": "B", "_share": "%"}
    for name, one in LANDMARKS.items():
        assert [unit for ending, unit in endings.items() if name.endswith(ending)] == [one.unit]


def test_more_is_better_of_rates_and_shares_alone():
    for one in LANDMARKS.values():
        assert (one.better is Better.LARGER) == (one.unit in ("MB/s", "%"))
    assert [one.name for one in LANDMARKS.values() if one.better is Better.SMALLER] == [
        "latency_us"
    ]


def test_rates_are_at_the_sizes_of_their_names():
    assert {f"rate_{kib}_kib_mb_s": 1024 * kib for kib in (1, 4, 16, 64)} == RATES
