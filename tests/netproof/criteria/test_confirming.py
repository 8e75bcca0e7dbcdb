"""Sizes to measure again, around flagged ones and between two, and what repeats show."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_cases import along, curve, only

from netproof.benchmarks import netpipe
from netproof.benchmarks.interface import ListedSizes
from netproof.criteria import Finding, Level
from netproof.criteria.settings import ConfirmSettings, dense_sizes
from netproof.criteria.shape import DROPOUT, INVERSION, JUMP
from netproof.errors import NetproofError
from netproof.measurement.case import Curve
from netproof.verdict import confirmations
from netproof.verdict.confirmations import (
    Bend,
    found_closer,
    kinks,
    measured_closer,
    regions,
    sizes_of,
)

WHERE = "gige, open-mpi-4.1, PingPong, 2 ranks"
POWERS = tuple(2**n for n in range(2, 21))

inversion, jump = partial(only, "inversion"), partial(only, "jump")
dropout = partial(along, "dropout")


def flag(size, criterion="jump", compared=()):
    return Finding(criterion, Level.FAIL, WHERE, "", size=size, compared_sizes=compared)


def link(sizes, latency_us=30.0, rate_mb_s=117.0, slower=lambda size: 1.0, spikes=(), factor=50.0):
    """A link's curve, ``slower(size)`` times as slow at each size, and ``factor`` times at some."""

    def time_us(size):
        return (latency_us + size / rate_mb_s) * slower(size) * (factor if size in spikes else 1)

    return curve(sizes, time_us, rates=True)


def confirm(flagged, launches, bounds, settings=None):
    how = settings or ConfirmSettings()
    return confirmations.confirm(flagged, launches, bounds=bounds, settings=how)


class TestDenseSizes:
    @given(st.integers(5, 2**26))
    def test_are_at_least_8_between_half_and_twice_without_a_wide_gap(self, size):
        dense = dense_sizes(flag(size))
        assert len(dense) >= 8
        assert {size - 1, size, size + 1} <= set(dense)
        assert size / 2 <= dense[0] < dense[-1] <= 2 * size
        for before, after in pairwise(dense):
            # A quarter of an octave, and what whole bytes take.
            assert before < after <= before * 1.25 + 1

    def test_begin_where_every_rank_has_a_part(self):
        settings = ConfirmSettings(element_bytes=4, least_bytes=16)
        assert dense_sizes(flag(16), settings)[:2] == (16, 20)
        assert dense_sizes(flag(64), settings)[0] == 32
        # Of a session that measured smaller ones.
        assert dense_sizes(flag(8), settings)[:2] == (8, 12)
        with pytest.raises(NetproofError, match="no size to measure again"):
            dense_sizes(flag(None))


SPIKE = link(POWERS, spikes={4096})
FLAGS = {
    "inversion": (inversion(SPIKE, where=WHERE), INVERSION),
    "jump": (jump(SPIKE, where=WHERE), JUMP),
    "dropout": (
        dropout(
            link(POWERS, spikes={65536}), where=WHERE, settings=replace(DROPOUT, least_size=4096)
        )[0],
        DROPOUT,
    ),
}


@pytest.mark.parametrize("criterion", FLAGS)
@pytest.mark.parametrize(
    ("spiky", "smooth", "level", "words"),
    [
        (2, 1, None, "bytes confirmed: 2 of 3"),
        (0, 3, Level.SHOWN, "unconfirmed"),
        (1, 2, Level.SHOWN, "unconfirmed"),
        (2, 2, Level.SHOWN, "unconfirmed"),
        (2, 0, Level.UNDEFINED, "takes 3"),
    ],
)
def test_a_flag_that_comes_back_in_the_majority_of_three_launches_or_more_counts(
    criterion, spiky, smooth, level, words
):
    flagged, bounds = FLAGS[criterion]
    sizes = dense_sizes(flagged)
    sick = {size for size in sizes if abs(size - flagged.size) <= 1}
    launches = [link(sizes, spikes=sick)] * spiky + [link(sizes)] * smooth
    found = confirm(flagged, launches, bounds=bounds)
    assert found.level is (level or flagged.level)
    assert found.confirmed is (level is None)
    assert words in found.reason


def test_an_inversion_is_compared_with_the_faster_message_wherever_it_lies():
    flagged = flag(4096, "inversion", compared=(1_048_576,))
    sizes = dense_sizes(flagged)
    plateau = Curve(sizes, tuple(10_000.0 if size < 2**20 else 1000.0 for size in sizes))
    assert sizes[-2] <= 2 * 4096
    assert confirm(flagged, [plateau] * 3, bounds=INVERSION).confirmed


def test_trouble_elsewhere_does_not_confirm_a_flag():
    flagged = flag(4096, "jump", compared=(4,))
    sizes = tuple(sorted({*dense_sizes(flagged), 100_000, 200_000}))
    elsewhere = link(sizes, spikes={200_000})
    assert jump(elsewhere, where=WHERE).level is Level.FAIL
    assert not confirm(flagged, [elsewhere] * 3, bounds=JUMP).confirmed


def test_a_launch_that_is_not_dense_is_not_counted_and_named():
    flagged = jump(SPIKE, where=WHERE)
    sizes = dense_sizes(flagged)
    full = link(sizes, spikes={4095, 4096, 4097})
    lacking = link([size for size in sizes if size != 4097])
    sparse = link([2048, 4095, 4096, 4097, 8192])
    zero = Curve(sizes, tuple(0.0 for _ in sizes))
    found = confirm(flagged, [full, full, lacking, sparse, zero], bounds=JUMP)
    assert found.repeated == (Level.UNDEFINED, 2, 2)
    assert "launch 3 could not be used: it lacks 4097 bytes" in found.reason
    assert "launch 4 could not be used: it has 5 of 8 sizes" in found.reason
    assert "launch 5 could not be used: 0 µs" in found.reason


DOUBLING = tuple(2**n for n in range(23))
GRIDS = (
    DOUBLING,
    netpipe.sizes(1, 2**22, 0),
    netpipe.sizes(1, 2**22, 1),
    netpipe.sizes(1, 2**22, 3),
    ListedSizes(per_octave=4).sizes(1, 2**22),
    ListedSizes(per_octave=16, also=(3000, 100_000)).sizes(4, 2**22),
)
BOUNDS = {
    "inversion": INVERSION,
    "jump": JUMP,
    "dropout": DROPOUT,
}
ON = 0.5


def spike(at: int, factor: float = 40.0, width: float = 0.17):
    """Slower by ``factor`` at a size, and hardly any more a quarter of it away."""
    return lambda size: 1 + (factor - 1) * math.exp(-((math.log(size / at) / width) ** 2))


class TestKinks:
    def test_what_one_launch_of_three_shows_is_noise(self):
        noisy, smooth = link(DOUBLING, slower=spike(4096)), link(DOUBLING)
        assert kinks([noisy, smooth, smooth], ON) == ()
        assert kinks([noisy, noisy, smooth], ON)

    def test_a_reading_of_nothing_is_for_the_criteria_to_tell(self):
        nothing = link(DOUBLING, slower=lambda size: 1.0 if size != 512 else 1e-30)
        assert kinks([nothing], ON) == kinks([], ON) == ()

    def test_sizes_of_a_perturbation_are_one(self):
        """A slope from 4093 to 4096 bytes is that of the noise of two readings."""
        grid = GRIDS[3]
        curve = link(grid, slower=lambda size: 1.02 if size in (4093, 65539) else 1.0)
        assert kinks([curve], 0.3) == ()
        curve = link(grid, slower=lambda size: 3.0 if 4000 < size < 4200 else 1.0)
        (strongest, *_) = kinks([curve], ON)
        assert (strongest.below, strongest.size, strongest.above) == (3072, 4096, 6144)


@pytest.mark.parametrize(
    ("place", "element_bytes", "sizes"),
    [
        ((1024, 2048, 4096), 1, (1024, 1290, 1625, 2048, 2580, 3251, 4096)),
        # Reductions go by whole elements.
        ((1024, 2048, 4096), 4, (1024, 1292, 1624, 2048, 2580, 3252, 4096)),
        # There are fewer where no more sizes are.
        ((4, 6, 8), 1, (4, 5, 6, 7, 8)),
        ((4, 8, 12), 4, (4, 8, 12)),
    ],
)
def test_both_gaps_next_to_a_bend_are_divided_evenly(place, element_bytes, sizes):
    assert sizes_of((Bend(*place, 1.0),), element_bytes) == sizes


class TestFound:
    PLACES = (Bend(1024, 2048, 4096, 1.0), Bend(2048, 4096, 8192, 1.2))

    def sizes(self):
        return sizes_of(self.PLACES)

    def found(self, *launches):
        (region,) = regions(self.PLACES)
        assert all(measured_closer(region, DOUBLING, one) for one in launches)
        return found_closer(region, DOUBLING, launches, BOUNDS, where="case")

    def test_a_dip_of_the_bandwidth_alone_is_a_dropout(self):
        curve = link(self.sizes())
        rates = tuple(
            rate * (0.05 if size == 3251 else 1.0)
            for size, rate in zip(curve.sizes, curve.bandwidth_mb_s, strict=True)
        )
        shown = self.found(*[Curve(curve.sizes, curve.time_us, rates)] * 3)
        assert (shown.criterion, shown.size) == ("dropout", 3251)
        assert "the bandwidth is 0.0" in shown.reason
        assert "flagged below 0.1" in shown.reason

    def test_most_launches_have_to_show_it_at_one_size(self):
        sound = link(self.sizes())
        at = {
            size: link(self.sizes(), slower=lambda s, o=size: 50.0 if s == o else 1.0)
            for size in (1290, 2580, 6502)
        }
        assert self.found(at[2580], at[2580], sound).repeated[1] == 2
        assert self.found(at[2580], sound, sound) is None
        assert self.found(*at.values()) is None
        assert self.found(at[2580], at[2580], sound, sound) is None

    def test_bounds_are_the_site_s(self):
        (region,) = regions(self.PLACES)
        launches = [link(self.sizes(), slower=spike(2900))] * 3
        for change in ({"warn": None, "fail": None}, {"least_size": 8192}):
            bounds = {name: replace(one, **change) for name, one in BOUNDS.items()}
            assert found_closer(region, DOUBLING, launches, bounds, where="case") is None
