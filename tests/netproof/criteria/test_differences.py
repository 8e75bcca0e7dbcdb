"""Two configurations: from which size to which one is slower, by how much, and how sure that is."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from made_cases import case, compared

from netproof.criteria import Level
from netproof.criteria.findings import Above
from netproof.criteria.interface import Layer
from netproof.criteria.settings import Settings
from netproof.measurement.curve import Curve

POWERS = tuple(2**exponent for exponent in range(2, 18))


def side(slower=lambda size: 1.0, count=1, noise=0.0, seed=1):
    draw = random.Random(seed)
    return [
        Curve(
            POWERS,
            tuple(
                (10 + size / 1000) * slower(size) * draw.lognormvariate(0, noise) for size in POWERS
            ),
        )
        for _ in range(count)
    ]


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
    assert "slower than b from 4 to 32 bytes, by 100 to 100 %" in first.reason


def test_one_launch_each_says_to_repeat():
    (one,) = found(side(lambda size: 2), side())
    assert "one launch each: repeat" in one.reason
    (one,) = found(side(lambda size: 2, count=3), side())
    assert "one launch of one of them: repeat" in one.reason


def test_launches_that_show_it_are_certain_with_an_interval():
    one = side(lambda size: 1.4, count=5, noise=0.02)
    (only,) = found(one, side(count=5, noise=0.02, seed=2))
    assert "; certain" in only.reason
    assert 0.3 < only.interval[0] < 0.4 < only.interval[1] < 0.5


def test_two_launches_that_are_all_slower_are_likely():
    one = [*side(lambda size: 1.3), *side(lambda size: 1.9)]
    other = [*side(), *side(lambda size: 1.2)]
    (only,) = found(one, other)
    assert "likely: all launches are slower" in only.reason


@pytest.mark.parametrize("seed", range(20))
def test_noise_of_launches_is_no_certain_difference(seed):
    one, other = side(count=4, noise=0.2, seed=seed), side(count=4, noise=0.2, seed=99 - seed)
    assert not any(each.level is Level.FAIL for each in found(one, other, Above(0.1, 0.3)))


def test_a_bound_fails_a_range_or_a_part_of_it():
    one = side(lambda size: 1.1 if size < 1024 else 1.4)
    assert [each.level for each in found(one, side(), Above(0.1, 0.3))] == [Level.WARN, Level.FAIL]
    whole, part = found(one, side(), Above(0.1, 0.3))
    assert whole.sizes() == POWERS
    assert part.sizes() == tuple(size for size in POWERS if size >= 1024)
    assert "(fail: above 30 % is flagged)" in part.reason


def test_a_single_size_counts_only_if_it_differs_much():
    assert found(side(lambda size: 1.3 if size == 64 else 1), side()) == []
    (one,) = found(side(lambda size: 1.6 if size == 64 else 1), side())
    assert one.sizes() == (64,)


def test_of_two_that_are_alike_a_finding_says_so():
    (only,) = compared("slower", {"a": side(), "b": side()}, WARNS)
    assert (only.level, only.where, only.against, only.value) == (Level.PASS, "a", "b", 0)
    assert "no slower or faster than b over 16 common sizes" in only.reason


def test_the_slower_one_is_judged_by_its_own_bounds():
    """Of a baseline it is only shown where it is slower."""
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
    assert "slower than b, by 697 %" in only.reason


def test_a_placement_that_differs_is_suspected_and_is_no_failure():
    sides = {"a": side(lambda size: 9), "b": case(side(), "b", layer=Layer.INSIDE, ranks=2)}
    (one,) = compared("slower", sides, Above(0.5, 0.5))
    assert one.level is Level.INCONCLUSIVE
    assert "compare the same placement" in one.reason
