"""Properties that hold for every curve."""

import math
from contextlib import suppress
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_cases import along, case, compared, only, score

from netproof.criteria import Finding, Level
from netproof.criteria.findings import CannotJudgeError
from netproof.measurement.case import Curve

WHERE = "case"
inversion, jump, roughness = (partial(only, name) for name in ("inversion", "jump", "roughness"))
sizes = st.lists(st.integers(4, 2**26), min_size=2, max_size=25, unique=True).map(sorted)
readings = st.floats(1e-3, 1e9)
factors = st.floats(1e-3, 1e3)


@st.composite
def curves(draw, of=sizes):
    grid = draw(of)
    took = draw(st.lists(readings, min_size=len(grid), max_size=len(grid)))
    rates = tuple(size / time for size, time in zip(grid, took, strict=True))
    return Curve(tuple(grid), tuple(took), rates)


@st.composite
def launches_on_one_grid(draw, cases=2):
    grid = draw(sizes)
    return [draw(st.lists(curves(st.just(grid)), min_size=1, max_size=4)) for _ in range(cases)]


# Up to where the mean of two of them, the median of two launches, is still a number.
numbers_from_zero = st.floats(0, 8e307)


@st.composite
def anything_a_curve_holds(draw):
    points = draw(st.dictionaries(st.integers(0, 2**40), numbers_from_zero, min_size=1))
    grid = tuple(sorted(points))
    several = st.lists(numbers_from_zero, min_size=len(grid), max_size=len(grid))
    rates = draw(st.none() | several)
    return Curve(grid, tuple(points[size] for size in grid), tuple(rates) if rates else None)


def scaled(curve, factor):
    return Curve(curve.sizes, tuple(time * factor for time in curve.time_us))


@pytest.mark.parametrize("criterion", [inversion, jump, roughness])
@given(curve=curves(), factor=factors)
def test_the_unit_of_time_does_not_matter_along_a_curve(criterion, curve, factor):
    before = criterion(curve, where=WHERE).value
    after = criterion(scaled(curve, factor), where=WHERE).value
    assert after == pytest.approx(before, rel=1e-9, abs=1e-9)


@given(pair=launches_on_one_grid(), factor=factors)
def test_the_unit_of_time_does_not_matter_to_the_score(pair, factor):
    case, baseline = pair
    before = score(case, baseline, where=WHERE, of="b")
    after = score(
        [scaled(curve, factor) for curve in case],
        [scaled(curve, factor) for curve in baseline],
        where=WHERE,
        of="b",
    )
    assert after.value == pytest.approx(before.value, rel=1e-9)
    if before.interval:
        assert after.interval == pytest.approx(before.interval, rel=1e-9)


@given(pair=launches_on_one_grid(), factor=factors)
def test_a_case_slower_by_a_factor_at_every_size_has_that_factor_less_score(pair, factor):
    case, baseline = pair
    before = score(case, baseline, where=WHERE, of="b").value
    slower = [scaled(curve, factor) for curve in case]
    after = score(slower, baseline, where=WHERE, of="b").value
    assert after == pytest.approx(before / factor, rel=1e-9)


@given(curves(), st.floats(1, 1e6), st.data())
def test_a_size_slowed_by_k_never_lowers_what_it_is_over_a_larger_one_below_k(curve, k, data):
    """On a rising curve the rise to the next size is to be had first, so it comes off k."""
    at = data.draw(st.integers(0, len(curve.sizes) - 2))
    rise = min(curve.time_us[at + 1 :]) / curve.time_us[at]
    took = list(curve.time_us)
    took[at] *= k
    spiked = replace(curve, time_us=tuple(took))
    assert inversion(spiked, where=WHERE).value >= k / rise * (1 - 1e-12)


@given(curves())
def test_a_curve_that_never_falls_has_no_inversion_and_no_roughness(curve):
    rising = replace(curve, time_us=tuple(sorted(curve.time_us)))
    assert inversion(rising, where=WHERE).value == 1
    assert roughness(rising, where=WHERE).value == 0


def numbers(found: Finding):
    yield from (found.value, found.bound, *(found.interval or ()))


@given(anything_a_curve_holds(), anything_a_curve_holds(), readings)
def test_no_curve_at_all_makes_a_finding_that_is_no_number(curve, other, link):
    names = ("inversion", "jump", "roughness", "dropout", "line rate")
    names += ("MPI loss at the peak", "MPI loss at a size")
    known = {"line_rate": link, "over_tcp": True, "others": {"tcp": case(other)}}
    found = [
        *(one for name in names for one in along(name, curve, WHERE, **known)),
        *compared("envelope", {"one": curve, "other": other}),
    ]
    with suppress(CannotJudgeError):
        found.append(score([curve, curve], [other, other], where=WHERE, of="b"))
    for finding in found:
        assert all(number is None or math.isfinite(number) for number in numbers(finding))
        assert (finding.value is None) == (finding.level is Level.UNDEFINED)
        assert finding.why.startswith(finding.where + ": ")
    asked = only("early rendezvous", curve, ping_pong=True)
    assert all(number is None or math.isfinite(number) for number in numbers(asked))
    assert (asked.value is None) == (asked.level in (Level.UNDEFINED, Level.SHOWN))
