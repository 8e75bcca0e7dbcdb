"""Early rendezvous: a library that asks before it sends short messages."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_cases import along, curve, only

from netproof.criteria import Level
from netproof.criteria.protocol import EARLY_RENDEZVOUS
from netproof.measurement.case import Curve

RECORDED = Path(__file__).parents[3] / "docs" / "criteria" / "sessions" / "eager-limit.json"
POWERS = tuple(2**exponent for exponent in range(20))
DENSE = tuple(sorted({*POWERS, *(3 * size // 2 for size in POWERS[1:])}))


def link(latency, per_byte, *, limit=2**20, sizes=POWERS, trips=3.0) -> Curve:
    """Times of a link, and of a library that sends up to ``limit`` without asking."""
    return curve(sizes, lambda size: latency * (trips if size > limit else 1.0) + per_byte * size)


def judged(*launches: Curve, **settings: float):
    bounds = dataclasses.replace(EARLY_RENDEZVOUS, **settings)
    return only("early rendezvous", launches, settings=bounds, ping_pong=True)


@pytest.mark.parametrize(
    ("limit", "sizes"),
    [(16, POWERS), (64, POWERS), (256, POWERS), (16, DENSE), (256, DENSE), (1024, DENSE)],
)
@pytest.mark.parametrize(("latency", "per_byte"), [(1.0, 8e-5), (30.0, 8.5e-3), (2.0, 8e-4)])
def test_three_latencies_for_one_are_found_and_the_size_is_named(latency, per_byte, limit, sizes):
    slow = link(latency, per_byte, limit=limit, sizes=sizes)
    found = judged(*[slow] * 3)
    assert found.level is Level.FAIL
    assert found.compared_sizes == (limit,)
    assert found.value == pytest.approx(3, rel=0.1)
    assert f"from {limit} to {found.size} bytes the time of a message goes from" in found.why
    assert "eager limit" in found.why


@given(
    st.floats(0.5, 100),
    st.floats(1e-5, 1),
    st.sampled_from([POWERS, DENSE]),
    st.integers(4096, 2**20),
)
def test_bytes_alone_and_a_limit_of_some_kib_are_none(latency, per_byte, sizes, limit):
    found = judged(*[link(latency, per_byte, limit=limit, sizes=sizes)] * 3)
    assert found.level in (Level.PASS, Level.SHOWN)


def test_another_latency_is_not_two_and_one_longer_message_that_is_fast_is_enough():
    # Such as a change of protocol that copies once more.
    found = judged(*[link(20, 8.5e-3, limit=128, trips=2.0)] * 3)
    assert (found.level, found.compared_sizes) == (Level.PASS, (128,))
    assert found.value == pytest.approx(2, rel=0.05)
    # Launches of IMB on a busy machine take five times as long for some sizes in a row.
    slow = link(5, 8.5e-3, limit=16, trips=5)
    awake = dataclasses.replace(slow, time_us=(*slow.time_us[:7], 5.1, *slow.time_us[8:]))
    assert judged(*[slow] * 3).level is Level.FAIL
    assert judged(*[awake] * 3).level is Level.PASS


def test_one_launch_of_several_does_not_decide():
    healthy, slow = link(30, 8.5e-3), link(30, 8.5e-3, limit=64)
    assert judged(healthy, healthy, slow, slow, slow).level is Level.INCONCLUSIVE
    assert judged(*[healthy] * 6, slow).level is Level.PASS


@pytest.mark.parametrize(
    "sizes", [(4096, 8192, 16384), tuple(4 * size for size in POWERS), (4, 8), (4,)], ids=str
)
def test_a_link_on_which_bytes_take_longer_than_a_latency_is_not_judged(sizes):
    found = judged(link(1, 1, sizes=sizes))
    assert (found.level, found.value) == (Level.SHOWN, None)
    assert "not judged, which takes 3 sizes" in found.why


@pytest.mark.parametrize("case", [{"ping_pong": False}, {"ping_pong": True, "inside": True}])
def test_only_single_messages_of_mpi_between_nodes_are_judged(case):
    slow = link(30, 8.5e-3, limit=64)
    assert along("early rendezvous", slow, **case) == ()


@pytest.mark.parametrize(
    ("which", "level"), [("limit of 64", Level.FAIL), ("as it comes", Level.PASS)]
)
def test_a_recorded_eager_limit_of_64_bytes_is_found_and_that_which_it_comes_with_is_not(
    which, level
):
    """64 bytes with Open MPI's header: 8 of the message."""
    cases = json.loads(RECORDED.read_text())[which]
    assert {case["direction"] for case in cases} == {"oneway", "bidirectional"}
    for case in cases:
        launches = [Curve(tuple(one["sizes"]), tuple(one["time_us"])) for one in case["launches"]]
        found = judged(*launches)
        assert found.level is level
        if level is Level.FAIL:
            assert found.compared_sizes == (8,)
