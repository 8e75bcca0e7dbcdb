"""Launch spread: how far launches of one case lie apart."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_cases import only

from netproof.criteria import Level
from netproof.criteria.launches import LAUNCH_SPREAD
from netproof.measurement.curve import Curve

SIZES = (1, 64, 4096)
launch_spread = partial(only, "launch spread")


def launch(*times: float) -> Curve:
    return Curve(SIZES, times)


def test_the_size_that_lies_furthest_apart_is_named_with_both_times():
    found = launch_spread([launch(1, 10, 100), launch(1, 130, 110)], where="gige mpich")
    assert (found.level, found.size) == (Level.WARN, 64)
    assert found.value == pytest.approx(13)
    assert "at 64 bytes 2 launches took 10 to 130 µs, 13 times apart" in found.why


def test_nothing_fails_by_default_and_a_site_may_ask_for_it():
    several = [launch(1, 10, 100), launch(1, 10, 1e5)]
    assert launch_spread(several, where="x").level is Level.WARN
    strict = replace(LAUNCH_SPREAD, fail=100)
    assert launch_spread(several, where="x", settings=strict).level is Level.FAIL


def test_messages_below_four_bytes_have_no_part():
    assert launch_spread([launch(1, 10, 100), launch(900, 10, 100)], where="x").value == 1


@given(st.lists(st.floats(1, 1e6), min_size=2, max_size=8), st.floats(0.1, 10))
def test_the_order_of_launches_and_the_unit_do_not_count(times, factor):
    several = [launch(time, time, time) for time in times]
    scaled = [launch(*(factor * time for _ in SIZES)) for time in reversed(times)]
    one, other = (launch_spread(those, where="x").value for those in (several, scaled))
    assert one == pytest.approx(other)
    assert one >= 1


def test_one_launch_has_none_and_what_cannot_be_judged_says_why():
    assert launch_spread(launch(1, 10, 100)) is None
    found = launch_spread([launch(1, 10, 100), launch(1, 0, 100)])
    assert found.level is Level.UNDEFINED
    assert "in launch 2, 0 µs at 64 bytes is no reading" in found.why
