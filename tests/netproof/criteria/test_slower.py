"""Slower than others: the floor over all sizes, and two configurations side by side."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_cases import case, compared, launches, noisy

from netproof.criteria import Level
from netproof.criteria.findings import Above
from netproof.criteria.interface import Layer
from netproof.criteria.settings import Settings
from netproof.criteria.slower import FLOOR
from netproof.measurement.case import Curve


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
    assert "Compared over 4 common sizes, 4 to 16384 bytes" in found.why
    assert "(flagged below 0.25)" in found.why
    one_size = judged(launches(0.99, 1, 1.01, slow={1024: 16}))
    assert one_size.value == pytest.approx(0.5)
    assert one_size.level is not Level.FAIL


def test_of_a_single_launch_the_value_decides_and_alone_there_is_no_floor():
    found = judged(launches(5))
    assert (found.level, found.interval) == (Level.FAIL, None)
    assert "no interval, which takes two launches of both" in found.why
    assert judged(launches(5), others={}) is None
    others = {"broken": [Curve((4,), (0.0,))], "fast": launches(1, 1, 1)}
    assert judged(launches(5, 5, 5), others=others).against == "fast"


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


def test_what_cannot_be_compared_is_undefined():
    found = judged([Curve((8,), (5.0,))])
    assert found.level is Level.UNDEFINED
    assert "no size in common with another environment" in found.why
    found = judged([Curve((4,), (0.0,))])
    assert "in launch 1, 0 µs at 4 bytes is no reading" in found.why


POWERS = tuple(2**exponent for exponent in range(2, 18))


def side(slower=lambda size: 1.0, count=1, noise=0.0, seed=1):
    return noisy(POWERS, lambda size: (10 + size / 1000) * slower(size), count, noise, seed)


WARNS = Above(0.5)


def found(one, other, settings=WARNS):
    several = compared("slower", {"a": one, "b": other}, settings)
    return [finding for finding in several if finding.value]


def test_ranges_of_either_one_are_named_with_their_sizes():
    one = side(lambda size: 2 if size < 64 else 0.5 if size > 8192 else 1)
    first, second = found(one, side())
    assert (first.where, first.against, first.sizes()) == ("a", "b", (4, 8, 16, 32))
    assert (second.where, second.against) == ("b", "a")
    assert second.sizes() == (16384, 32768, 65536, 131072)
    assert (first.value, second.value) == pytest.approx((1, 1))
    assert "takes 100 % longer than b from 4 to 32 bytes; one launch each" in first.reason


def test_it_is_said_how_sure_launches_are_of_it():
    (one,) = found(side(lambda size: 2), side())
    assert "one launch each: repeat" in one.reason
    (one,) = found(side(lambda size: 2, count=3), side())
    assert "one launch of one of them: repeat" in one.reason
    several = side(lambda size: 1.4, count=5, noise=0.02)
    (one,) = found(several, side(count=5, noise=0.02, seed=2))
    assert "; certain" in one.reason
    assert 0.3 < one.interval[0] < 0.4 < one.interval[1] < 0.5
    two = [*side(lambda size: 1.3), *side(lambda size: 1.9)]
    (one,) = found(two, [*side(), *side(lambda size: 1.2)])
    assert "likely: all launches are slower" in one.reason


def test_a_bound_fails_a_range_or_a_part_of_it():
    one = side(lambda size: 1.1 if size < 1024 else 1.4)
    assert [each.level for each in found(one, side(), Above(0.1, 0.3))] == [Level.WARN, Level.FAIL]
    whole, part = found(one, side(), Above(0.1, 0.3))
    assert whole.sizes() == POWERS
    assert part.sizes() == tuple(size for size in POWERS if size >= 1024)
    assert "(flagged above 30 %)" in part.reason


def test_a_single_size_counts_only_if_it_differs_much():
    assert found(side(lambda size: 1.3 if size == 64 else 1), side()) == []
    (one,) = found(side(lambda size: 1.6 if size == 64 else 1), side())
    assert one.sizes() == (64,)


def test_of_two_that_are_alike_a_finding_says_so():
    (only,) = compared("slower", {"a": side(), "b": side()}, WARNS)
    assert (only.level, only.where, only.against, only.value) == (Level.PASS, "a", "b", 0)
    assert "no slower or faster than b over 16 common sizes" in only.reason


def test_the_slower_one_is_judged_by_its_own_bounds():
    """A baseline's own slowness is only shown."""
    nothing = replace(Settings(), slower=Above())
    sides = {"a": side(), "b": case(side(lambda size: 9), "b", settings=nothing)}
    (only,) = compared("slower", sides, WARNS)
    assert (only.level, only.where) == (Level.SHOWN, "b")
    assert "flagged" not in only.reason


def test_sizes_below_4_bytes_count_where_there_are_no_others():
    one, other = ([Curve((0,), (time,))] for time in (2.79, 0.35))
    (only,) = found(one, other)
    assert only.sizes() == (0,)
    assert only.value == pytest.approx(2.79 / 0.35 - 1)
    assert "takes 697 % longer than b;" in only.reason


def test_a_placement_that_differs_is_suspected_and_is_no_failure():
    sides = {"a": side(lambda size: 9), "b": case(side(), "b", layer=Layer.INSIDE, ranks=2)}
    (one,) = compared("slower", sides, Above(0.5, 0.5))
    assert one.level is Level.INCONCLUSIVE
    assert "compare the same placement" in one.reason
