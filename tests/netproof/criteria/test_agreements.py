"""Agreement: benchmarks that send the same message between the same two ranks agree."""

from __future__ import annotations

import pytest
from made_cases import compared

from netproof.criteria import Level
from netproof.measurement.curve import Curve

SIZES = (4, 64, 1024, 16384)
TIMES = (10.0, 11.0, 20.0, 150.0)


def agreement(own, others, where):
    found = compared("agreement", {where: own, **others}, only=where)
    return found[0] if found else None


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


def test_the_slower_one_fails_and_names_the_other():
    slow, other = launches(2.9, 3, 3.1), launches(0.99, 1, 1.01)
    found = agreement(slow, {"NetPIPE": other}, where="IMB PingPong")
    assert (found.level, found.against) == (Level.FAIL, "NetPIPE")
    assert found.value == pytest.approx(3)
    assert "3 times (95% interval" in found.why
    assert "by NetPIPE, which sends the same" in found.why
    assert agreement(other, {"IMB": slow}, where="NetPIPE").level is Level.PASS


def test_one_size_is_enough():
    spiked = launches(0.99, 1, 1.01, slow={1024: 6})
    found = agreement(spiked, {"IMB": launches(0.99, 1, 1.01)}, where="NetPIPE")
    assert (found.level, found.size) == (Level.FAIL, 1024)


MANY = tuple(1 << power for power in range(12, 20))


def curves(*factors: float, of: tuple[int, ...] = MANY) -> tuple[Curve, ...]:
    times = [tuple(factor * (50 + size / 117) for size in of) for factor in factors]
    return tuple(Curve(of, one) for one in times)


def scattered(*factors: float) -> tuple[Curve, ...]:
    """Return launches, one of which is slow at each size, never the same."""
    return tuple(
        Curve(
            MANY,
            tuple(
                factor * (50 + size / 117) * (4 if at % 3 == number else 1)
                for at, size in enumerate(MANY)
            ),
        )
        for number, factor in enumerate(factors)
    )


def test_a_curve_that_is_slow_as_a_whole_fails_though_no_size_is_sure_of_it():
    slow, other = scattered(2.9, 3, 3.1), scattered(1, 1.02, 0.98)
    found = agreement(slow, {"NetPIPE": other}, where="IMB PingPong")
    assert (found.level, found.size, found.against) == (Level.FAIL, None, "NetPIPE")
    assert found.value == pytest.approx(3, rel=0.05)
    assert found.interval[0] > 2
    assert "over 8 common sizes, 4096 to 524288 bytes" in found.why
    assert "interval over launches" in found.why
    assert "above 2 is flagged" in found.why


def test_of_one_launch_a_slow_curve_is_inconclusive():
    found = agreement(curves(3), {"NetPIPE": curves(1)}, where="IMB PingPong")
    assert (found.level, found.size) == (Level.INCONCLUSIVE, None)
    assert "interval over sizes 3 to 3" in found.why
    assert "takes 3 launches of both" in found.why
    assert agreement(curves(1), {"IMB": curves(3)}, where="NetPIPE").level is Level.SHOWN


def test_of_one_launch_some_slow_sizes_are_shown():
    spiked = Curve(MANY, tuple((50 + size / 117) * (1 if size < 1 << 15 else 4) for size in MANY))
    found = agreement(spiked, {"NetPIPE": curves(1)}, where="x")
    assert found.level is Level.SHOWN


def test_of_one_launch_few_sizes_tell_nothing():
    found = agreement(
        curves(3, of=MANY[:5]), {"NetPIPE": curves(1, of=MANY[:5])}, where="IMB PingPong"
    )
    assert found.level is Level.SHOWN


def test_few_launches_assert_nothing():
    found = agreement(launches(3, 3), {"other": launches(1, 1, 1)}, where="x")
    assert found.level is Level.SHOWN
    assert "takes 3 launches of both" in found.why


def test_an_interval_that_contains_the_bound_asserts_nothing():
    found = agreement(launches(1, 2.2, 5), {"other": launches(1, 1, 1)}, where="x")
    assert found.level is Level.SHOWN
    found = agreement(launches(1, 1.8, 5), {"other": launches(1, 1, 1)}, where="x")
    assert found.level is Level.PASS


def test_alone_a_benchmark_has_nobody_to_agree_with():
    assert agreement(launches(1, 1, 1), {}, where="x") is None


def test_without_a_common_size_it_is_undefined():
    other = Curve((3,), (1.0,))
    found = agreement(launches(1), {"other": other}, where="x")
    assert found.level is Level.UNDEFINED
    assert found.value is None
