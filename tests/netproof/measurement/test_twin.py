"""Share of a healthy twin that a link carries: pair by pair, whatever the machine does to both."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netproof.measurement import twin
from netproof.measurement.case import Curve

SIZES = (65536, 131072, 262144, 393216, 524288)
factors = st.floats(0.2, 5.0)


def link(mb_s: float, sizes: tuple[int, ...] = SIZES) -> Curve:
    """Return the curve of a link with this rate and no latency."""
    return Curve(sizes, tuple(size / mb_s for size in sizes), (mb_s,) * len(sizes))


def test_a_link_at_half_rate_carries_half_of_its_twin():
    found = twin.compared([(link(50), link(100, SIZES[2:]))] * 3)
    assert found["paired_mb_s"][0] == pytest.approx(100)
    assert found["paired_share"] == (pytest.approx(0.5), pytest.approx((0.5, 0.5)))


@given(st.lists(factors, min_size=2, max_size=12), st.floats(0.1, 2.0))
def test_what_slows_a_launch_and_its_twin_alike_cancels(machine, share):
    pairs = [(link(100 * share * slow), link(100 * slow, SIZES[2:])) for slow in machine]
    found = twin.compared(pairs)
    assert found["paired_share"] == (pytest.approx(share), pytest.approx((share, share)))


def test_one_disturbed_size_does_not_count():
    disturbed = Curve(SIZES[2:], (2621.44, 39321.6, 5242.88), (100.0, 10.0, 100.0))
    assert twin.compared([(link(100), disturbed)])["paired_share"][0] == pytest.approx(1)


def test_one_launch_has_no_interval():
    found = twin.compared([(link(50), link(100, SIZES[2:]))])
    assert [interval for _, interval in found.values()] == [None, None]


@pytest.mark.parametrize(
    "alongside",
    [None, link(100, (262145,)), Curve((262144,), (0.0,), (100.0,)), Curve((262144,), (1.0,))],
)
def test_there_is_none_unless_every_launch_has_a_twin_of_its_sizes(alongside):
    assert twin.compared([(link(50), link(100, SIZES[2:])), (link(50), alongside)]) is None
    assert twin.compared([]) is None


POWERS = (1, 2, 4, 65536, 131072)


def test_the_twin_is_compared_at_the_sizes_of_a_launch_and_counted_as_it():
    """A launch that counts both ways carries 50 MB/s each, and its twin 100 each."""
    counted = Curve(POWERS, tuple(size / 50 for size in POWERS), (100.0,) * len(POWERS))
    alongside = twin.alike(link(100, (1, 2, 3, 4, 6, *SIZES[:2])), counted)
    assert alongside.sizes == POWERS
    assert alongside.time_us == pytest.approx([size / 100 for size in POWERS])
    assert alongside.bandwidth_mb_s == pytest.approx((200.0,) * len(POWERS))
    found = twin.compared([(counted, alongside)])
    assert [value for value, _ in found.values()] == pytest.approx((200, 0.5))


@pytest.mark.parametrize("messages", [0.5, 1.0, 2.0])
def test_a_launch_whose_time_is_of_other_than_one_message_is_compared_with_as_many(messages):
    """osu_bibw's time is of half a message each way, that of IMB's Exchange of two."""
    times = tuple(messages * size / 100 for size in POWERS)
    counted = Curve(POWERS, times, (200.0,) * len(POWERS))
    alongside = twin.alike(link(100, (1, 2, 3, 4, 6, *SIZES[:2])), counted, messages)
    assert alongside.time_us == pytest.approx(times)
    assert alongside.bandwidth_mb_s == pytest.approx((200.0,) * len(POWERS))
    found = twin.compared([(counted, alongside)])
    assert [value for value, _ in found.values()] == pytest.approx((200, 1))


def test_a_launch_without_bandwidth_is_compared_by_its_times():
    collective = Curve((4, 65536, 131072), (30.0, 1000.0, 2000.0))
    alongside = twin.alike(link(131.072), collective)
    assert alongside.sizes == (65536, 131072)
    found = twin.compared([(collective, alongside)])
    assert found["paired_share"][0] == pytest.approx(0.5)
    assert found["paired_mb_s"][0] == pytest.approx(131.072)


def test_an_empty_message_is_compared_with_the_least():
    barrier = Curve((0,), (60.0,))
    alongside = twin.alike(Curve((1, 2, 3), (20.0, 21.0, 22.0), (1.0, 1.0, 1.0)), barrier)
    assert alongside == Curve((0,), (20.0,))
    assert twin.compared([(barrier, alongside)]) is None
