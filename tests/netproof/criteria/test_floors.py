"""Floor: a configuration scored against the other environments of its partition."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_cases import case, compared

from netproof.criteria import Level
from netproof.criteria.slower import FLOOR
from netproof.measurement.curve import Curve

SIZES = (4, 64, 1024, 16384)
TIMES = (10.0, 11.0, 20.0, 150.0)


def launches(*factors: float, slow: dict[int, float] | None = None) -> list[Curve]:
    """Launches that take so many times as long as ``TIMES``, at some sizes ``slow`` times more."""
    return [
        Curve(
            SIZES,
            tuple(
                factor * time * (slow or {}).get(size, 1)
                for size, time in zip(SIZES, TIMES, strict=True)
            ),
        )
        for factor in factors
    ]


def judged(own: list[Curve], pairs=None, others=None, **settings):
    alongside = {"fast": launches(0.98, 1, 1.02)} if others is None else others
    where = "Alltoall by mpich"
    sides = {
        label: case(several, label, place=("gige",), configuration=("", "gige", label, ""))
        for label, several in {where: own, **alongside}.items()
    }
    paired = {(where, label): launches for label, launches in (pairs or {}).items()}
    found = compared("floor", sides, replace(FLOOR, **settings), paired, where)
    return found[0] if found else None


def test_what_is_slow_at_all_sizes_fails_though_no_size_is_far_off():
    found = judged(launches(4.9, 5, 5.1))
    assert (found.level, found.against) == (Level.FAIL, "fast")
    assert found.value == pytest.approx(0.2)
    assert found.interval[1] < 0.25
    assert "0.2 times as fast as fast over 4 common sizes, 4 to 16384 bytes" in found.why
    assert "(fail: below 0.25 is flagged)" in found.why


def test_three_times_as_long_warns_and_half_as_long_again_passes():
    assert judged(launches(2.9, 3, 3.1)).level is Level.WARN
    assert judged(launches(1.4, 1.5, 1.6)).level is Level.PASS
    assert judged(launches(2.9, 3, 3.1), warn=None, fail=0.4).level is Level.FAIL


def test_it_is_the_mean_over_the_sizes_that_counts():
    found = judged(launches(0.99, 1, 1.01, slow={1024: 16}))
    assert found.value == pytest.approx(0.5)
    assert found.level is not Level.FAIL


def test_smaller_messages_can_be_left_out():
    own = launches(1, 1, 1, slow={4: 10_000})
    assert judged(own).level is Level.FAIL
    assert judged(own, least_size=64).value == pytest.approx(1)


def test_an_interval_that_contains_the_bound_is_inconclusive():
    found = judged(launches(2, 5, 9))
    assert found.level is Level.INCONCLUSIVE
    assert found.interval[0] < 0.25 < found.interval[1]
    assert "The interval contains that bound" in found.why


def test_of_a_single_launch_the_value_decides():
    found = judged(launches(5))
    assert (found.level, found.interval) == (Level.FAIL, None)
    assert "no interval, which takes two launches of both" in found.why


def test_a_failure_against_any_other_counts_and_the_lowest_score_is_reported():
    others = {
        "slower": launches(3.9, 4, 4.1),
        "fast": launches(0.98, 1, 1.02),
        "faster": launches(0.49, 0.5, 0.51),
        "unsteady": launches(0.01, 1, 9),
    }
    found = judged(launches(4.9, 5, 5.1), others=others)
    assert (found.level, found.against) == (Level.FAIL, "faster")
    without = {name: others[name] for name in ("slower", "unsteady")}
    found = judged(launches(4.9, 5, 5.1), others=without)
    assert (found.level, found.against) == (Level.INCONCLUSIVE, "unsteady")


def test_launches_next_to_each_other_decide_alone():
    # The machine changed its pace between launches, and both had the same one.
    own, fast = launches(5, 50, 5, 50, 5, 50), launches(1, 10, 1, 10, 1, 10)
    assert judged(own, others={"fast": fast}).level is Level.INCONCLUSIVE
    pairs = {"fast": list(zip(own, fast, strict=True))}
    found = judged(own, pairs, {"fast": fast})
    assert found.level is Level.FAIL
    assert found.interval == pytest.approx((0.2, 0.2))
    assert "in 6 interleaved pairs of launches" in found.why
    assert judged(own, {"fast": pairs["fast"][:1]}, {"fast": fast}).level is Level.INCONCLUSIVE


def test_without_another_environment_there_is_no_floor():
    assert judged(launches(5), others={}) is None


def test_what_cannot_be_compared_is_undefined():
    found = judged([Curve((8,), (5.0,))])
    assert found.level is Level.UNDEFINED
    assert "no size in common with another environment" in found.why
    found = judged([Curve((4,), (0.0,))])
    assert "in launch 1, 0 µs at 4 bytes is no reading" in found.why


def test_another_that_cannot_be_judged_takes_no_part():
    others = {"broken": [Curve((4,), (0.0,))], "fast": launches(1, 1, 1)}
    assert judged(launches(5, 5, 5), others=others).against == "fast"


@given(
    factor=st.floats(0.1, 10),
    pace=st.floats(0.01, 100),
    scatter=st.lists(st.floats(0.9, 1.1), min_size=3, max_size=3),
)
def test_what_slows_both_down_alike_changes_nothing(factor, pace, scatter):
    own = [factor * one for one in scatter]
    plain = judged(launches(*own))
    both = judged(
        launches(*(pace * one for one in own)),
        others={"fast": launches(*(pace * one for one in (0.98, 1, 1.02)))},
    )
    assert both.value == pytest.approx(plain.value)
    assert both.interval == pytest.approx(plain.interval)
