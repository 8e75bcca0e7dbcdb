import math
from contextlib import suppress
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_cases import along, case, compared, only, score

from netproof.criteria import Finding, Level
from netproof.criteria.findings import Below, CannotJudgeError
from netproof.criteria.launches import crash_share
from netproof.criteria.rate import LineRateSettings, loss
from netproof.criteria.score import RESAMPLES, SEED, medians, samples
from netproof.criteria.slower import envelope
from netproof.errors import NetproofError
from netproof.measurement.case import Curve
from netproof.measurement.links import Link

WHERE = "gige, intel-mpi, Alltoall, 16 ranks"
inversion, jump, roughness, line_rate = (
    partial(only, name) for name in ("inversion", "jump", "roughness", "line rate")
)
dropout = partial(along, "dropout")
above_envelope = partial(compared, "envelope")


def mpi_loss(mpi, tcp):
    """Return the losses at the peak and at a size."""
    return tuple(
        only(name, mpi, over_tcp=True, others={"tcp": case(tcp)})
        for name in ("MPI loss at the peak", "MPI loss at a size")
    )


def times(*values, sizes=None):
    return Curve(tuple(sizes or (2 ** (n + 2) for n in range(len(values)))), tuple(values))


def rates(*values, sizes=None):
    sizes = tuple(sizes or (2 ** (n + 2) for n in range(len(values))))
    took = tuple(size / rate if rate else 1.0 for size, rate in zip(sizes, values, strict=True))
    return Curve(sizes, took, tuple(values))


class TestEnvelope:
    def test_is_the_least_time_of_all_from_4_bytes_on_and_knows_whose_it_is(self):
        found = envelope({"a": times(10, 30, 50), "b": times(20, 15, 90)})
        assert found == {4: (10, "a"), 8: (15, "b"), 16: (50, "a")}
        curves = {label: times(0, 0, 5, 6, sizes=(0, 1, 4, 8)) for label in "ab"}
        assert list(envelope(curves)) == [4, 8]

    def test_ten_times_is_passed_and_more_is_red_at_that_size(self):
        curves = {"fast": times(1, 1, 1, 1), "slow": times(10, 10, 10.5, 10.6)}
        fast, *slow = above_envelope(curves)
        assert fast.level is Level.PASS
        assert [(found.size, found.value, found.level) for found in slow] == [
            (16, 10.5, Level.FAIL),
            (32, 10.6, Level.FAIL),
        ]
        assert all(part in slow[0].why for part in ("slow: ", "16 bytes", "10.5 times", "fast"))
        assert (slow[0].bound, slow[0].common) == (10, (4, 8, 16, 32))
        # A single launch's sizes that scatter by as much tell nothing.
        _, slow = compared("envelope", {"fast": times(1, 1, 1, 1), "slow": times(2, 11, 3, 7)})
        assert (slow.size, slow.level) == (8, Level.INCONCLUSIVE)
        assert "sizes next to each other scatter by a factor of 3.7: repeat them" in slow.reason

    def test_what_has_nobody_to_be_compared_with_or_no_reading_is_not_passed(self):
        (found,) = above_envelope({WHERE: times(1, 2, 3)})
        assert (found.level, found.own_level) == (Level.SHOWN, Level.UNDEFINED)
        assert found.value is None
        assert "one has no envelope" in found.why
        found = above_envelope(
            {"a": times(1, sizes=(4,)), "b": times(1, sizes=(4,)), "c": times(1, sizes=(8,))}
        )
        assert [f.level for f in found] == [Level.PASS, Level.PASS, Level.UNDEFINED]
        broken, fast, slow = above_envelope(
            {"broken": times(0, 1, 1), "fast": times(1, 1, 1), "slow": times(2, 2, 2)}
        )
        assert broken.level is Level.UNDEFINED
        assert "0 µs at 4 bytes" in broken.why
        assert (fast.value, slow.value) == (1, 2)


def three(*values):
    """Launches of one size of 4 bytes."""
    return [times(value) for value in values]


def alongside(**launches):
    """Curves of one size as the medians of their launches, compared."""
    return {found.where: found for found in above_envelope(launches)}


@pytest.mark.parametrize("count", [1, 2, 3, 4, 6, 7])
def test_medians_of_bootstrap_samples_are_those_of_each_sample(count):
    launches = np.random.default_rng(count).lognormal(size=(count, 5))
    different, which = samples((count, 1))[0]
    found = medians(launches, different)[which]
    drawn = np.random.default_rng(SEED).integers(0, count, (RESAMPLES, count))
    assert (found == np.median(launches[drawn], axis=1)).all()


class TestEnvelopeIntervals:
    @pytest.mark.parametrize(
        ("who", "launches", "level", "against"),
        [
            # An interval that contains the bound, on whichever side the value is.
            ("slow", {"slow": (2, 8, 40), "fast": (0.99, 1, 1.01)}, "inconclusive", "fast"),
            ("slow", {"slow": (2, 12, 40), "fast": (0.99, 1, 1.01)}, "inconclusive", "fast"),
            # The fastest, whose launches are far apart.
            ("fast", {"fast": (0.1, 0.9, 300), "even": (0.99, 1, 1.01)}, "inconclusive", "even"),
            # Of one launch the value decides.
            ("slow", {"slow": (11,), "fast": (0.1, 1, 10)}, "fail", "fast"),
            # Who is steady makes it red where the fastest is not.
            ("slow", {"slow": (12,) * 3, "fast": (0.1, 0.9, 9), "even": (1,) * 3}, "fail", "even"),
        ],
    )
    def test_launches_that_scatter_fail_nobody_and_hide_nothing(
        self, who, launches, level, against
    ):
        found = alongside(**{name: three(*took) for name, took in launches.items()})[who]
        assert (found.level.value, found.against) == (level, against)
        if level == "inconclusive":
            assert found.interval[0] < 10 < found.interval[1]
            assert "contains that bound" in found.why

    def test_pairs_count_instead_of_launches_that_were_made_apart(self):
        launches = {"slow": three(7, 14, 7), "fast": three(1, 2, 2)}
        pairs = [(times(own), times(other)) for own, other in ((7, 1), (14, 2), (7.7, 1.1))]
        slow = {
            found.where: found
            for found in above_envelope(launches, pairs={("slow", "fast"): pairs})
        }["slow"]
        assert (slow.level, slow.value) == (Level.PASS, pytest.approx(7))
        assert slow.interval == pytest.approx((7, 7))
        assert "7.7 µs at 4 bytes, 7 times" in slow.why
        assert "the 1.1 µs of fast, in 3 interleaved pairs of launches" in slow.why
        assert alongside(**launches)["slow"].level is Level.INCONCLUSIVE
        # One pair has no interval, and is no reason to forget the rest.
        found = above_envelope(launches, pairs={("slow", "fast"): pairs[:1]})
        assert {one.where: one.level for one in found}["slow"] is Level.INCONCLUSIVE


class TestScore:
    def test_is_the_geometric_mean_of_baseline_over_case_without_interval_of_one_launch(self):
        found = score([times(1, 4)], [times(4, 4)] * 3, where=WHERE, of="extreme")
        assert found.value == pytest.approx(2)
        assert (found.level, found.interval) == (Level.SHOWN, None)
        assert "no interval" in found.why

    def test_without_a_reading_or_common_size_it_is_undefined(self):
        case = [times(1, 2)]
        for launches, baseline, reason in (
            (case, [times(1, sizes=(1024,))], "no size in common"),
            (case, [times(1, 0)], "launch 1 of extreme, 0 µs at 8 bytes"),
            ([times(1, sizes=(1,))], case, "0 sizes of 4 bytes or more"),
        ):
            with pytest.raises(CannotJudgeError, match=reason):
                score(launches, baseline, where=WHERE, of="extreme")

    @pytest.mark.parametrize(
        ("took", "level"),
        [
            ((9, 10, 11), Level.FAIL),
            ((3, 10, 11), Level.INCONCLUSIVE),
            ((3, 4.5, 11), Level.INCONCLUSIVE),
            ((3, 3.5, 4), Level.PASS),
        ],
    )
    def test_all_of_its_interval_decides(self, took, level):
        found = score(
            [times(one) for one in took],
            [times(one) for one in (1.9, 2, 2.1)],
            where=WHERE,
            of="b",
            bounds=Below(fail=0.4),
        )
        assert (found.level, found.against) == (level, "b")
        assert ("The interval contains that bound" in found.why) == (level is Level.INCONCLUSIVE)


NEVER_FALLS = times(1, 1, 2, 50)


@pytest.mark.parametrize(
    ("name", "curve", "value", "level"),
    [
        ("inversion", times(1.99, 1), 1.99, Level.PASS),
        ("inversion", times(2, 1), 2, Level.WARN),
        ("inversion", times(9.99, 1), 9.99, Level.WARN),
        ("inversion", times(10, 1), 10, Level.FAIL),
        # Zeros below 4 bytes are legal.
        ("inversion", times(0, 0, 5, 6, sizes=(0, 1, 4, 8)), 1, Level.PASS),
        ("jump", times(1, 2, 3, 3), 1, Level.PASS),
        # Sizes that are no powers of two count by their ratio.
        ("jump", times(10, 60, sizes=(1000, 1500)), 4, Level.WARN),
        ("roughness", NEVER_FALLS, 0, Level.SHOWN),
        ("roughness", times(1, 8, 2, 4, 1, 16), 8, Level.SHOWN),
        ("dropout", rates(100, 50, 100), 0.5, Level.PASS),
        ("dropout", rates(100, 49, 120), 0.49, Level.WARN),
        ("dropout", rates(100, 9, 100), 0.09, Level.FAIL),
        # A rate that only rises or only falls.
        ("dropout", rates(1, 10, 100, 1000), 10, Level.PASS),
        ("dropout", rates(1000, 100, 10, 1), 10, Level.PASS),
    ],
)
def test_a_curve_has_its_value_and_level(name, curve, value, level):
    found = only(name, curve, where=WHERE)
    assert (found.value, found.level) == (pytest.approx(value), level)


def test_an_inversion_names_the_slow_and_the_faster_message():
    found = inversion(times(10, 400, 20, 10, 50), where=WHERE)
    assert (found.size, found.compared_sizes, found.value) == (8, (32,), 40)
    assert (found.level, found.bound) == (Level.FAIL, 10)
    # 16 bytes took twice what 32 take.
    assert "Messages of 8 and 16 bytes took longer than larger ones. Look" in found.why
    assert "a message of 8 bytes took 400 µs, 40 times" in found.why
    assert "32 bytes" in found.why


def test_a_jump_is_the_growth_beyond_the_growth_of_the_size():
    found = jump(times(10, 20, 400), where=WHERE)
    assert (found.size, found.compared_sizes, found.value) == (16, (8,), 10)
    assert found.level is Level.FAIL
    assert "from 8 to 16 bytes time went from 20 to 400 µs" in found.why


def test_each_dropout_is_reported_with_the_sizes_that_it_lies_between():
    found = dropout(rates(10, 100, 15, 80, 20, 90), where=WHERE)
    assert [(f.size, f.level, f.compared_sizes) for f in found] == [
        (16, Level.WARN, (8, 128)),
        (64, Level.WARN, (8, 128)),
    ]
    assert "at 16 bytes the bandwidth is 15 MB/s, 0.17" in found[0].why


def test_without_bandwidth_there_is_no_dropout_and_two_sizes_have_no_middle():
    assert dropout(times(1, 2, 3)) == ()
    assert dropout(rates(1, 2), where=WHERE)[0].level is Level.UNDEFINED


class TestLineRate:
    gige = Link(1000, 1500).line_rate_mb_s()
    sizes = tuple(2**power for power in range(22))

    def found(self, *shares: float, **settings: float):
        """Return the finding for launches on a line each, with these shares of the line rate."""
        curves = []
        for share in shares:
            spent = [40 + size / (share * self.gige) for size in self.sizes]
            curves.append(
                Curve(
                    self.sizes,
                    tuple(spent),
                    tuple(size / time for size, time in zip(self.sizes, spent, strict=True)),
                )
            )
        return line_rate(curves, WHERE, LineRateSettings(**settings), line_rate=self.gige)

    @pytest.mark.parametrize(
        ("shares", "level", "words"),
        [
            (
                (0.98, 0.99, 1.0),
                Level.PASS,
                "99.0% of the line rate of 117.7 MB/s (flagged above 102%)",
            ),
            # More than the link carries is an error of measurement.
            ((1.019, 1.0191, 1.0192), Level.PASS, "101.9% of"),
            ((1.03, 1.031, 1.032), Level.FAIL, "103.1% of the line rate"),
            # Of an interval around the bound the share itself says whether it passes.
            ((0.97, 1.03, 1.05), Level.INCONCLUSIVE, "95% interval 88.8% to 116%"),
            ((0.97, 1.0, 1.05), Level.PASS, "100.0% of"),
            # A site may ask for a least share.
            ((0.7, 0.701, 0.702), Level.WARN, "flagged below 80%"),
            ((0.4, 0.401, 0.402), Level.FAIL, "flagged below 50%"),
            ((0.4, 0.45, 0.7), Level.INCONCLUSIVE, "contains that bound"),
        ],
    )
    def test_it_is_the_share_of_the_asymptotic_bandwidth_and_its_interval_decides(
        self, shares, level, words
    ):
        found = self.found(*shares, warn_below=0.8, fail_below=0.5)
        assert (found.level, found.size) == (level, None)
        assert found.value == pytest.approx(sorted(shares)[1])
        assert found.interval[0] < found.value < found.interval[1]
        assert words in found.why

    def test_too_few_sizes_are_undefined_and_without_bandwidth_or_line_rate_there_is_none(self):
        few = line_rate(rates(1, 2), line_rate=self.gige)
        assert few.level is Level.UNDEFINED
        assert "takes 4 sizes" in few.why
        assert line_rate(times(1, 2), line_rate=self.gige) is None
        assert line_rate(rates(1, 2)) is None


class TestMpiLoss:
    def test_peaks_may_lie_at_different_sizes(self):
        peak, at_size = mpi_loss(rates(50, 90, 80), rates(60, 95, 100))
        assert (peak.size, peak.compared_sizes) == (8, (16,))
        assert peak.value == pytest.approx(0.1)
        assert peak.level is Level.PASS
        assert (at_size.size, at_size.level) == (16, Level.PASS)
        assert (at_size.value, at_size.common) == (pytest.approx(0.2), (4, 8, 16))
        # A fifth is a warning at the peak, and half a failure.
        for mpi, level in ((90, Level.PASS), (75, Level.WARN), (50, Level.FAIL)):
            assert mpi_loss(rates(mpi), rates(100))[0].level is level

    def test_a_size_is_judged_by_its_interval(self):
        mpi = [rates(10 * factor, 99) for factor in (0.9, 1, 1.1)]
        tcp = [rates(100, 100)] * 3
        _, found = mpi_loss(mpi, tcp)
        assert (found.size, found.level) == (4, Level.FAIL)
        assert found.interval[0] < found.value < found.interval[1]
        mpi = [rates(20 * factor, 99) for factor in (0.5, 1, 2)]
        _, found = mpi_loss(mpi, tcp)
        assert found.level is Level.INCONCLUSIVE

    def test_without_a_bandwidth_both_are_undefined(self):
        for mpi, tcp in ((times(1, 2), rates(1, 2)), (rates(1, 2), rates(0, 2))):
            assert [f.level for f in mpi_loss(mpi, tcp)] == [Level.UNDEFINED] * 2
        with pytest.raises(NetproofError, match="bandwidths are above 0"):
            loss(1, -1)

    def test_without_a_common_size_the_peaks_still_compare(self):
        peak, at_size = mpi_loss(rates(90, sizes=(8,)), rates(100, sizes=(16,)))
        assert (peak.level, at_size.level) == (Level.PASS, Level.UNDEFINED)


@pytest.mark.parametrize("criterion", [inversion, jump, roughness])
class TestAlongACurve:
    def test_one_size_is_undefined_and_not_passed_and_a_barrier_has_none(self, criterion):
        found = criterion(times(5), where=WHERE)
        assert (found.level, found.value, found.size) == (Level.UNDEFINED, None, None)
        assert criterion(Curve((0,), (5.0,))) is None

    @pytest.mark.parametrize("time", [0.0, 5e-324, 1e300])
    def test_a_time_that_no_clock_reads_is_undefined(self, criterion, time):
        found = criterion(times(1, time, 2), where=WHERE)
        assert found.level is Level.UNDEFINED
        assert "at 8 bytes is no reading" in found.why


@pytest.mark.parametrize(
    ("sizes", "took"),
    [((4, 4), (1.0, 2.0)), ((8, 4), (1.0, 2.0)), ((4,), (-1.0,)), ((4,), (math.nan,)), ((), ())],
)
def test_equal_sizes_negative_times_and_no_sizes_never_become_a_curve(sizes, took):
    with pytest.raises(NetproofError):
        Curve(sizes, took)


@pytest.mark.parametrize(
    ("crashed", "launches", "level"),
    [
        (0, 96, Level.PASS),
        (1, 10, Level.PASS),
        (2, 100, Level.PASS),
        (2, 99, Level.FAIL),
        (3, 96, Level.FAIL),
        (0, 0, Level.UNDEFINED),
    ],
)
def test_crashes_fail_above_two_in_a_hundred_launches_and_from_two_on(crashed, launches, level):
    assert crash_share(crashed, launches, where="gige mpich").level is level


readings = st.floats(1e-3, 1e9)


# Up to where the mean of two of them, the median of two launches, is still a number.
numbers_from_zero = st.floats(0, 8e307)


@st.composite
def anything_a_curve_holds(draw):
    points = draw(st.dictionaries(st.integers(0, 2**40), numbers_from_zero, min_size=1))
    grid = tuple(sorted(points))
    several = st.lists(numbers_from_zero, min_size=len(grid), max_size=len(grid))
    rates = draw(st.none() | several)
    return Curve(grid, tuple(points[size] for size in grid), tuple(rates) if rates else None)


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
