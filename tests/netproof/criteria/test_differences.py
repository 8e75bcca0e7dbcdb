"""Two configurations: from which size to which one is slower, by how much, and how sure that is."""

from __future__ import annotations

import random

import pytest
from made_cases import case, compared

from netproof.criteria import Level
from netproof.criteria.findings import Above
from netproof.criteria.interface import Layer
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
    return compared("slower", {"a": one, "b": other}, settings)


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
    assert found(side(lambda size: 1.3 if size == 64 else 1), side()) == ()
    (one,) = found(side(lambda size: 1.6 if size == 64 else 1), side())
    assert one.sizes() == (64,)


def test_a_placement_that_differs_is_suspected():
    sides = {"a": side(lambda size: 9), "b": case(side(), "b", layer=Layer.INSIDE)}
    (one,) = compared("slower", sides, Above(0.5))
    assert "compare the same placement" in one.reason
