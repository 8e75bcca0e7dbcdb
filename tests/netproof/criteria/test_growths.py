"""Growth and monotony: a collective grows with its ranks as its work does, and never shrinks."""

from __future__ import annotations

import pytest
from made_cases import case, compared

from netproof.criteria import Level
from netproof.measurement.curve import Curve

SIZES = (4, 64, 1024, 16384)
TIMES = (10.0, 11.0, 20.0, 150.0)


def launches(*factors: float, slow: dict[int, float] | None = None) -> tuple[Curve, ...]:
    return tuple(
        Curve(
            SIZES,
            tuple(
                factor * time * (slow or {}).get(size, 1)
                for size, time in zip(SIZES, TIMES, strict=True)
            ),
        )
        for factor in factors
    )


FEW = launches(0.99, 1, 1.01)


def on_ranks(name: str, operation: str, few, many, on: int):
    """Return the finding on 4 or 8 ranks; the work on a link is 2.5 times as much on 8."""
    sides = {
        f"{operation} {ranks} ranks": case(
            several, f"{operation} {ranks} ranks", ranks=ranks, on_link=work
        )
        for ranks, several, work in ((4, few, 4), (8, many, 10))
    }
    (found,) = compared(name, sides, only=f"{operation} {on} ranks")
    return found


def grown(own):
    return on_ranks("growth", "Alltoall", FEW, own, 8)


def test_what_grows_as_its_work_passes():
    found = grown(launches(2.4, 2.5, 2.6))
    assert (found.level, found.against) == (Level.PASS, "Alltoall 4 ranks")
    assert found.value == pytest.approx(1)


def test_what_grows_by_far_more_fails_at_the_size_where_it_does():
    found = grown(launches(2.4, 2.5, 2.6, slow={1024: 20}))
    assert (found.level, found.size) == (Level.FAIL, 1024)
    assert found.value == pytest.approx(20)
    assert found.interval[0] > 10
    assert "50 times the 20 µs of Alltoall 4 ranks" in found.why
    assert "its ranks explain 2.5 times" in found.why
    assert grown(launches(12.4, 12.5, 12.6)).level is Level.WARN


def test_few_launches_assert_nothing():
    found = grown(launches(100, 100))
    assert found.level is Level.SHOWN
    assert "takes 3 launches of both" in found.why


def test_an_interval_that_contains_the_bound_fails_nothing():
    assert grown(launches(10, 26, 60)).level is Level.SHOWN
    assert grown(launches(2, 15, 60)).level is Level.WARN
    assert grown(launches(1, 8, 60)).level is Level.PASS


def test_other_sizes_and_readings_that_are_none_are_undefined():
    curve = Curve((8,), (5.0,))
    assert grown(curve).level is Level.UNDEFINED
    assert "no size in common with Alltoall 4 ranks" in grown(curve).why
    wrong = Curve((4,), (0.0,))
    assert "is no reading" in grown(wrong).why


class TestMonotony:
    def shrunk(self, own, more=FEW):
        return on_ranks("monotony", "Bcast", own, more, 4)

    def test_what_takes_less_on_fewer_ranks_passes(self):
        found = self.shrunk(launches(0.5, 0.5, 0.5))
        assert (found.criterion, found.level) == ("monotony", Level.PASS)
        assert found.value == pytest.approx(0.5)

    def test_what_takes_far_longer_on_fewer_ranks_fails_at_its_size(self):
        found = self.shrunk(launches(0.98, 1, 1.02, slow={64: 12}))
        assert (found.level, found.size) == (Level.FAIL, 64)
        assert found.value == pytest.approx(12)
        assert "64 bytes took 132 µs, 12 times (95% interval 11" in found.why
        assert "the 11 µs of Bcast 8 ranks, which has more to do" in found.why
        assert "Look at the nodes of that job" in found.why

    def test_a_library_that_chooses_better_on_more_ranks_warns(self):
        assert self.shrunk(launches(4.9, 5, 5.1)).level is Level.WARN

    def test_few_launches_and_intervals_that_contain_the_bound_fail_nothing(self):
        assert self.shrunk(launches(100, 100)).level is Level.SHOWN
        assert self.shrunk(launches(4, 12, 40)).level is Level.SHOWN

    def test_what_cannot_be_judged_is_undefined(self):
        wrong = Curve((4,), (0.0,))
        found = self.shrunk(FEW, wrong)
        assert (found.criterion, found.level) == ("monotony", Level.UNDEFINED)
        assert "of Bcast 8 ranks, 0 µs at 4 bytes is no reading" in found.why
