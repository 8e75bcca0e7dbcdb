from dataclasses import replace
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_cases import along, only

from netproof.criteria import Finding, Level
from netproof.criteria.confirming import ConfirmSettings, confirm, dense_sizes
from netproof.criteria.shape import DROPOUT, INVERSION, JUMP
from netproof.errors import NetproofError
from netproof.measurement.curve import Curve

WHERE = "gige, open-mpi-4.1, PingPong, 2 ranks"
POWERS = tuple(2**n for n in range(2, 21))

inversion, jump = partial(only, "inversion"), partial(only, "jump")
dropout = partial(along, "dropout")


def flag(size, criterion="jump", compared=()):
    return Finding(criterion, Level.FAIL, WHERE, "", size=size, compared_sizes=compared)


def link(sizes, latency_us=30.0, mb_s=100.0, spikes=(), factor=50.0):
    took = [(latency_us + size / mb_s) * (factor if size in spikes else 1) for size in sizes]
    return Curve(
        tuple(sizes),
        tuple(took),
        tuple(size / time for size, time in zip(sizes, took, strict=True)),
    )


class TestDenseSizes:
    @given(st.integers(5, 2**26))
    def test_are_at_least_8_between_half_and_twice_with_both_neighbours(self, size):
        dense = dense_sizes(flag(size))
        assert len(dense) >= 8
        assert {size - 1, size, size + 1} <= set(dense)
        assert size / 2 <= dense[0]
        assert dense[-1] <= 2 * size
        assert list(dense) == sorted(set(dense))

    @given(st.integers(5, 2**26))
    def test_leave_no_gap_wider_than_a_quarter_of_an_octave_beyond_whole_bytes(self, size):
        dense = dense_sizes(flag(size))
        for before, after in pairwise(dense):
            assert after <= before * 1.25 + 1

    def test_are_all_7_that_there_are_at_4_bytes(self):
        assert dense_sizes(flag(4)) == (2, 3, 4, 5, 6, 7, 8)

    def test_hold_the_sizes_that_the_flag_was_compared_with(self):
        assert {2, 2**20} < set(dense_sizes(flag(4096, compared=(2, 2**20))))

    @given(st.integers(2, 2**20), st.sampled_from([2, 4, 8]))
    def test_are_whole_elements_where_the_benchmark_rounds_to_them(self, elements, element_bytes):
        size = elements * element_bytes
        dense = dense_sizes(flag(size), ConfirmSettings(element_bytes=element_bytes))
        assert all(one % element_bytes == 0 for one in dense)
        assert {size - element_bytes, size, size + element_bytes} <= set(dense)
        assert len(dense) >= min(8, size // element_bytes)

    def test_a_finding_about_no_size_cannot_be_measured_again(self):
        with pytest.raises(NetproofError, match="no size to measure again"):
            dense_sizes(flag(None))

    def test_a_size_between_elements_is_refused(self):
        with pytest.raises(NetproofError, match="no multiple of an element of 4 bytes"):
            dense_sizes(flag(1023), ConfirmSettings(element_bytes=4))

    def test_begin_where_every_rank_has_a_part(self):
        settings = ConfirmSettings(element_bytes=4, least_bytes=16)
        assert dense_sizes(flag(16), settings)[:2] == (16, 20)
        assert dense_sizes(flag(64), settings)[0] == 32
        # Of a session that measured smaller ones.
        assert dense_sizes(flag(8), settings)[:2] == (8, 12)

    def test_less_than_the_method_asks_for_is_refused(self):
        for bad in ({"launches": 2}, {"sizes": 7}, {"element_bytes": 0}):
            with pytest.raises(NetproofError, match="at least 3 launches, 8 sizes"):
                ConfirmSettings(**bad)


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
class TestConfirm:
    def again(self, criterion, spiky, smooth, **changes):
        flagged, bounds = FLAGS[criterion]
        sizes = dense_sizes(flagged)
        sick = {size for size in sizes if abs(size - flagged.size) <= 1}
        launches = [link(sizes, spikes=sick)] * spiky + [link(sizes)] * smooth
        return confirm(flagged, launches, bounds=bounds, **changes)

    def test_a_flag_that_comes_back_in_the_majority_counts(self, criterion):
        found = self.again(criterion, spiky=2, smooth=1)
        assert found.confirmed
        assert (found.flagged, found.launches) == (2, 3)
        assert f"{criterion} at {FLAGS[criterion][0].size} bytes confirmed: 2 of 3" in found.reason

    def test_a_flag_that_does_not_is_shown_as_unconfirmed(self, criterion):
        for spiky, smooth in ((0, 3), (1, 2), (2, 2)):
            found = self.again(criterion, spiky, smooth)
            assert not found.confirmed
            assert found.level is Level.SHOWN
            assert "unconfirmed" in found.reason

    def test_two_launches_are_not_enough_to_say(self, criterion):
        found = self.again(criterion, spiky=2, smooth=0)
        assert found.level is Level.UNDEFINED
        assert not found.confirmed

    def test_no_launch_at_all_says_nothing(self, criterion):
        assert self.again(criterion, 0, 0).level is Level.UNDEFINED

    def test_more_launches_may_be_asked_for(self, criterion):
        found = self.again(criterion, 3, 1, settings=ConfirmSettings(launches=5))
        assert found.level is Level.UNDEFINED
        assert "takes 5" in found.reason


def test_a_failure_that_comes_back_as_a_warning_is_a_warning():
    flagged = inversion(SPIKE, where=WHERE)
    assert flagged.level is Level.FAIL
    mild = link(dense_sizes(flagged), spikes={4096}, factor=3)
    found = confirm(flagged, [mild] * 3, bounds=INVERSION)
    assert (found.confirmed, found.level) == (True, Level.WARN)


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
    assert (found.level, found.launches) == (Level.UNDEFINED, 2)
    assert "launch 3 could not be used: it lacks 4097 bytes" in found.reason
    assert "launch 4 could not be used: it has 5 of 8 sizes" in found.reason
    assert "launch 5 could not be used: 0 µs" in found.reason


def test_only_criteria_that_flag_single_sizes_are_confirmed():
    with pytest.raises(NetproofError, match="envelope is not confirmed"):
        confirm(flag(4096, "envelope"), [], bounds=JUMP)
