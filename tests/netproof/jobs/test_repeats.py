"""Repeat launches: what is undecided, what is launched for it, and when that ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from netproof.criteria import Finding, Level
from netproof.jobs import repeat_cases
from netproof.jobs.repeat_cases import RepeatCase, netpipe_sweeps
from netproof.measurement.case import Curve
from netproof.measurement.counters import Counters, CounterSource
from netproof.measurement.disturbance import NodeLoad
from netproof.session import session
from netproof.session.measured import Launch, Measured
from netproof.site import site
from netproof.site.partition import ScoreBaseline
from netproof.verdict import confirmations, engine
from netproof.verdict.confirmations import settled
from netproof.verdict.engine import Subject
from netproof.verdict.limits import Limits

ROOT = Path(__file__).resolve().parents[3]
SESSIONS = ROOT / "tests" / "data" / "sessions"
GIGE = site.load(ROOT / "site-config" / "testbed.py")["systems"][0]["partitions"][0]
EXTRAS = {**GIGE["extras"], "criteria": {}}
BUSY = NodeLoad("gige-1", "m", 2, 1.0, 0.8, 0.4, 0.0, 0.0, 0.5, 0.0)


def cases(name: str) -> list[Measured]:
    stored = session.load(SESSIONS / name)
    return [result.measured for result in stored.results if result.measured]


def asked(measured: Measured, limits: dict[str, Limits] | None = None, **criteria) -> RepeatCase:
    extras = {**EXTRAS, "criteria": criteria}
    return RepeatCase(Subject.of_extras(measured, extras, {}), limits or {})


@pytest.fixture(scope="module")
def pingpong() -> Measured:
    """PingPong between two nodes of a healthy switch, three launches."""
    return next(one for one in cases("healthy.json") if one.case.function == "PingPong")


@pytest.fixture(scope="module")
def sick() -> list[Measured]:
    """NetPIPE between two nodes of a switch with a small buffer."""
    return [one for one in cases("sick.json") if one.case.environment == "mpich"]


class Undecided(NamedTuple):
    """Keys of the cases to repeat."""

    whole: set[tuple]
    around: set[tuple]

    def __bool__(self) -> bool:
        return any(self)


def undecided(*several: RepeatCase) -> Undecided:
    found = repeat_cases.undecided(several)
    whole, around = ({one.key for one in found if getattr(one, of)} for of in ("whole", "around"))
    return Undecided(whole, around)


def below(measured: Measured, factor: float) -> dict[str, Limits]:
    """A bound of its latency at so many times the latency."""
    return {"latency_us": Limits(0, factor * measured.landmarks.latency_us)}


def busy(several: Sequence[Launch]) -> tuple[Launch, ...]:
    return tuple(replace(one, loads=(BUSY,)) for one in several)


def noisy(measured: Measured) -> Measured:
    return measured.with_launches(busy(measured.launches))


def launched_on(one: RepeatCase, count: int, factor: float = 1.0, loads=()) -> RepeatCase:
    """As often as ``count`` its first launch again, ``factor`` times as slow."""
    (first, *_) = one.subject.measured.launches
    rates = first.curve.bandwidth_mb_s
    curve = replace(
        first.curve,
        time_us=tuple(factor * time for time in first.curve.time_us),
        bandwidth_mb_s=None if rates is None else tuple(rate / factor for rate in rates),
    )
    launch = replace(first, curves=(curve,), further=True, loads=loads)
    return replace(one, launches=(launch,) * count)


def with_losses(measured: Measured) -> Measured:
    """A tenth of what its launches sent was sent again, by a node's counters."""
    names = (("Tcp.OutSegs", "Tcp.RetransSegs"),)
    source = CounterSource("tcp", "", {"Tcp.OutSegs": 90_000, "Tcp.RetransSegs": 10_000}, 0)
    counters = Counters({"gige-1": (source,)}, names, {"gige-1": {}})
    return measured.with_launches([replace(one, counters=counters) for one in measured.launches])


class TestUndecided:
    def test_more_launches_do_not_change_what_the_nodes_counted(self, pingpong):
        assert undecided(asked(pingpong, below(pingpong, 0.1)))
        lossy = asked(with_losses(pingpong), below(pingpong, 0.1))
        levels = {found.criterion: found.level for found in engine.counted(lossy.subject)}
        assert levels["retransmissions"] is Level.FAIL
        assert not undecided(lossy)

    def test_what_turns_out_to_be_within_is_launched_no_more(self, pingpong):
        slow = pingpong.with_launches(pingpong.launches[:1])
        one = asked(slow, below(slow, 0.9))
        assert undecided(one).whole
        assert undecided(launched_on(one, 2, factor=0.5)).whole
        assert not undecided(launched_on(one, 11, factor=0.5)).whole

    def test_what_stays_astride_ends_with_the_most_launches_or_where_another_case_failed(
        self, pingpong
    ):
        first = pingpong.with_launches(pingpong.launches[:1])
        one = asked(first, below(first, 1), confirm={"most_launches": 7})
        assert one.rounds() == 6
        faster, slower = (launched_on(one, 3, factor).launches for factor in (0.9, 1.1))
        several = [replace(one, launches=(*faster[:n], *slower[:n])) for n in (1, 2, 3)]
        assert all(undecided(done).whole for done in several[:2])
        assert not undecided(several[2]).whole
        (finding,) = engine.references(several[2].repeated, one.limits).values()
        assert finding.level is Level.INCONCLUSIVE

        def red(**of_case: str) -> RepeatCase:
            case = replace(pingpong.case, **of_case)
            other = replace(pingpong, case=case)
            return launched_on(asked(other, below(pingpong, 0.1)), 3)

        # As often as confirming takes, in its environment alone.
        assert undecided(several[0], red(function="PingPing")).whole
        assert not undecided(several[1], red(function="PingPing")).whole
        assert undecided(several[1], red(environment="x")).whole

    def test_by_disturbed_launches_it_is_inconclusive_unless_some_are_not(self, pingpong):
        one = asked(noisy(pingpong), below(pingpong, 0.1))
        assert undecided(launched_on(one, 2, loads=(BUSY,)))
        last = launched_on(one, 3, loads=(BUSY,))
        assert not undecided(last)
        (finding,) = engine.references(last.repeated, one.limits).values()
        assert finding.level is Level.INCONCLUSIVE
        assert finding.why.endswith("disturbed: gige-1: others used 40 % of the CPUs")
        # More are made until three were undisturbed.
        disturbed, undisturbed = launched_on(one, 2, loads=(BUSY,)), launched_on(one, 3)
        for count, wanted in ((1, True), (2, True), (3, False)):
            several = (*disturbed.launches, *undisturbed.launches[:count])
            assert bool(undecided(replace(one, launches=several))) is wanted

    def test_an_undefined_value_is_launched_on(self, pingpong):
        bent = replace(pingpong)
        vars(bent)["landmarks"] = replace(
            pingpong.landmarks, line_rate_share=None, undefined={"line_rate_share": "it is no line"}
        )
        assert undecided(asked(bent, {"line_rate_share": Limits(50, 102)})).whole

    def test_a_twin_that_stays_too_slow_is_waited_for_no_more(self, pingpong):
        """One that is too slow only now and then is."""

        def alongside(done: RepeatCase, shares: list[float]) -> RepeatCase:
            rate, launches = pingpong.line_rate_mb_s, []
            for launch, share in zip(done.launches, shares, strict=True):
                times = {size: size / rate / share for size in (65536, 131072)}
                twin = Curve(tuple(times), tuple(times.values()), (share * rate,) * 2)
                launches.append(replace(launch, twin=twin))
            return replace(done, launches=tuple(launches))

        first = pingpong.with_launches(pingpong.launches[:1])
        (launch,) = alongside(launched_on(asked(first), 1), [0.5]).launches
        one = asked(
            first.with_launches([replace(launch, further=False)]),
            {"paired_share": Limits(0, 1000)},
        )
        assert undecided(one)
        assert undecided(alongside(launched_on(one, 2), [0.5, 0.5]))
        assert not undecided(alongside(launched_on(one, 3), [0.5, 0.5, 0.5])).whole
        assert undecided(alongside(launched_on(one, 3), [0.5, 0.5, 0.9])).whole

    def test_what_mpi_loses_of_the_tcp_of_another_environment_is_launched_on_in_both(self, sick):
        several = []
        for one in sick:
            environment = "first" if one.case.function == "tcp" else "second"
            moved = replace(one.case, environment=environment)
            if one.case.direction == "oneway":
                made = replace(one, case=moved)
                several.append(asked(made, mpi_loss={"warn": None, "fail": -0.9}))
        found = undecided(*several)
        assert {key[2:5:2] for key in found.whole} == {("first", "tcp"), ("second", "mpi")}
        without = [one for one in several if one.case.function == "mpi"]
        (loss,) = (
            finding
            for finding in engine.rates(without[0].subject, {})
            if finding.criterion == "MPI loss at the peak"
        )
        assert engine.rule(without[0].subject, loss).level is Level.FAIL


class TestSettled:
    @pytest.fixture
    def flagged(self, sick) -> tuple[RepeatCase, tuple[Launch, ...]]:
        """A flagged case and what was measured again of it in the same run: all show it again."""
        for measured in sick:
            one, again = asked(measured), measured.again
            if settled(one.subject, one.flags(), again, one.rounds()):
                return one, again
        raise AssertionError("no case of the session was confirmed")

    def smooth(self, launch: Launch) -> Launch:
        """The same sizes, on a straight line."""
        curve = launch.curve
        times = tuple(10 + size / 100 for size in curve.sizes)
        rates = tuple(size / time for size, time in zip(curve.sizes, times, strict=True))
        curve = replace(curve, time_us=times, bandwidth_mb_s=rates)
        return replace(launch, curves=(curve,))

    def test_launches_settle_a_flag_once_their_majority_is_certain(self, flagged):
        one, again = flagged
        shows, not_again = again[0], self.smooth(again[0])
        for several, enough in (
            ((shows,) * 3, True),
            ((shows,) * 2, False),
            ((not_again,) * 3, True),
            ((shows, shows, not_again), False),
            ((*(shows,) * 5, *(not_again,) * 2), True),
            # Disturbed launches settle nothing unless all are.
            ((*busy(again[1:]), again[0]), False),
            (busy(again), True),
        ):
            assert settled(one.subject, one.flags(), several, 9) is enough

    def test_a_case_that_failed_by_a_flag_is_launched_no_more_for_anything_else(self, flagged):
        one, again = flagged
        one = replace(one, limits=below(one.subject.measured, 0.9))
        assert undecided(one) == ({one.key}, {one.key})
        for several in (tuple(map(self.smooth, again)), again[:2]):
            assert undecided(replace(one, again=several)).whole
        assert not undecided(replace(one, again=again))

    def test_a_case_that_failed_by_a_reference_is_launched_no_more_around_its_flags(self, flagged):
        one, again = flagged
        one = replace(one, limits=below(one.subject.measured, 0.1))
        two, three = (replace(launched_on(one, n), again=again[:2]) for n in (2, 3))
        assert undecided(two).around
        assert not undecided(three)


class TestCloser:
    """Between the sizes of a curve, where its slopes disagree and nothing is flagged."""

    def test_it_is_launched_around_as_often_as_confirming_takes_and_no_more(self, pingpong):
        assert not undecided(asked(pingpong))
        one = asked(pingpong, refine={"slopes": 1})
        assert not one.flags()
        assert undecided(one) == (set(), {one.key})
        (place, *_) = confirmations.places(one.subject)
        assert (place.size, round(place.disagreement, 1)) == (4096, 1.6)
        sizes = tuple(sorted({size for _, part in one.dense() for size in part}))
        line = Curve(sizes, tuple(20 + size / 100 for size in sizes))
        launch = Launch(1, 0, 0.0, 0.0, (), (line,))
        assert undecided(replace(one, again=(launch,) * 2)).around
        assert not undecided(replace(one, again=(launch,) * 3))

    def test_imb_lists_the_sizes_and_omb_has_calls_in_which_they_double(
        self, pingpong, monkeypatch
    ):
        monkeypatch.setattr(confirmations, "MOST_PLACES", 1)
        one = asked(pingpong, refine={"slopes": 1})
        sizes = (2048, 2580, 3251, 4096, 5161, 6502, 8192)
        assert one.dense() == (("PingPong-dense", sizes),)
        case = replace(one.case, benchmark="osu", function="latency")
        omb = asked(replace(pingpong, case=case), refine={"slopes": 1})
        parts = [part for _, part in omb.dense()]
        assert parts[0] == (2048, 4096, 8192)
        assert sorted(size for part in parts for size in part) == list(sizes)

    def test_netpipe_has_calls_of_their_own_for_sizes_that_it_would_not_visit(self, monkeypatch):
        monkeypatch.setattr(confirmations, "MOST_PLACES", 1)
        (measured, *_) = (
            one
            for one in cases("two-switches.json")
            if one.case.function == "tcp" and one.case.partition == "gige"
        )
        one = asked(measured, refine={"slopes": 1})
        assert not one.flags()
        (first, *alone) = one.sweeps()
        (place,) = confirmations.places(one.subject)
        assert (place.below, place.size, place.above) == (4096, 6144, 8192)
        assert (first.lower, first.upper) == (4096, 8192)
        assert [(sweep.lower, sweep.upper) for sweep in alone] == [
            (size, size) for size in (4689, 5367, 6762, 7443)
        ]
        assert len(one.dense()) == len(one.sweeps())

    def test_netpipe_goes_through_no_sizes_between_places_far_apart(self, sick):
        flagged = next(asked(one) for one in sick if asked(one).flags())
        (flag, *_) = flagged.flags()
        far = [(4, 6, 8), (6, 7, 8, 10, 12), (2**20, 2**20 + 5, 2**21)]
        sweeps = netpipe_sweeps([flag], flagged.subject.confirm_settings(), far)
        lowers = [sweep.lower for sweep in sweeps]
        assert len(lowers) == len(set(lowers))
        sizes = {size for sweep in sweeps for size in sweep.sizes()}
        assert {size for region in far for size in region} < sizes
        between = {size for size in sizes if 16 < size < flag.size / 4}
        assert between == set()
        alone = netpipe_sweeps([flag], flagged.subject.confirm_settings())
        assert {size for sweep in alone for size in sweep.sizes()} <= sizes


def compared(criterion: str, *members: Subject) -> list[Finding]:
    """Return what a criterion finds on the first of several cases."""
    found = engine.compared(members, None, only=members[0], scored=False)
    return [finding for _, finding in found if finding.criterion == criterion]


def to_compare(everyone, own, baseline: ScoreBaseline | None) -> list[RepeatCase]:
    """Return those of ``own`` that comparing leaves undecided."""
    keys = {one.key for one in own}
    return [one for one in repeat_cases.compared(everyone, baseline) if one.key in keys]


SIZES = (49152, 65536, 98304, 131072)
RECORDED = {
    "gige": ((6.4, 7.61, 9.8, 13.84), (8.47, 10.04, 28.56, 21.83), (6.9, 8.18, 10.54, 12.76)),
    "fast-ethernet": ((6.46, 7.87, 10.58, 13.59), (5.66, 6.8, 9.17, 10.92), (5.62, 6.82, 9.16, 11)),
}
"""NetPIPE within a node, one way, in µs by launch, of a quick start that stayed inconclusive.

The second launch on gige had CPUs far apart, and something came upon it at 96 KiB.
"""


class TestElsewhere:
    """Comparing with another partition, whose job is not this one."""

    def recorded(self, sick: list[Measured], partition: str, further: int = 0) -> RepeatCase:
        """A recorded case, the last launch made so often again."""
        pattern = next(one for one in sick if one.case.function == "mpi")
        place = {"partition": partition, "path": "intra-node", "ranks_per_node": 2}
        times = RECORDED[partition] + RECORDED[partition][-1:] * further
        launches = [
            replace(pattern.launches[0], number=number, curves=(Curve(SIZES, of),))
            for number, of in enumerate(times, 1)
        ]
        case = replace(pattern.case, **place)
        one = asked(replace(pattern, case=case).with_launches(launches[:3]))
        again = [replace(launch, further=True) for launch in launches[3:]]
        return replace(one, launches=tuple(again))

    def test_three_launches_that_scatter_are_repeated_as_the_comparison_would_stay_open(self, sick):
        gige, other = (self.recorded(sick, name) for name in RECORDED)
        (finding, *_) = compared("envelope", gige.subject, other.subject)
        assert (finding.level, finding.size) == (Level.INCONCLUSIVE, 98304)
        assert finding.interval == pytest.approx((0.216, 11.1), rel=0.01)
        (kept,) = to_compare([gige], [gige], None)
        assert (kept.elsewhere, kept.peers, kept.paired) == (True, (), ())
        assert to_compare([other], [other], None) == []
        assert undecided(kept) == ({gige.key}, set())
        for count, still in ((1, True), (2, True), (3, False)):
            again = self.recorded(sick, "gige", further=count).launches
            assert bool(undecided(replace(kept, launches=again))) == still
        repeated = self.recorded(sick, "gige", further=3).repeated
        (finding, *_) = compared("envelope", repeated, other.subject)
        assert finding.level is Level.PASS

        # It is repeated no more often than a case alone.
        (wild,) = gige.subject.measured.launches[1].curves
        slow = replace(wild, time_us=tuple(30 * time for time in wild.time_us))
        for count, still in ((kept.rounds_alone() - 1, True), (kept.rounds_alone(), False)):
            several = [
                replace(again[0], curves=((wild, slow)[number % 2],)) for number in range(count)
            ]
            assert bool(undecided(replace(kept, launches=tuple(several)))) == still


class TestCompared:
    def configurations(self, pingpong: Measured, *factors: float) -> list[RepeatCase]:
        """The case as several environments would have it, each so many times as slow."""
        several = []
        for number, factor in enumerate(factors):
            case = replace(pingpong.case, environment=f"mpi-{number}")
            done = launched_on(asked(pingpong), 3, factor)
            launches = [replace(one, further=False) for one in done.launches]
            made = replace(pingpong, case=case).with_launches(launches)
            several.append(asked(made, floor={"warn": None, "fail": None}))
        return several

    @pytest.fixture
    def kept(self, pingpong) -> RepeatCase:
        """A case that is twenty times as slow as in another environment, and flagged for it."""
        slow, fast = self.configurations(pingpong, 20.0, 1.0)
        (kept,) = to_compare([slow, fast], [slow], None)
        return kept

    def pairs(
        self, kept: RepeatCase, count: int, *ratios: float, busy: int = 0, moved: float | str = 25.0
    ) -> RepeatCase:
        """Pair so many launches with those of the other environment; the ratios in rotation.

        The first were ``busy``; ``moved``: how far apart the CPUs were at the end of one side.
        """
        launches = []
        for number, launch in enumerate(launched_on(kept, count).launches):
            times = tuple(time / ratios[number % len(ratios)] for time in launch.curve.time_us)
            other = (replace(launch.curve, time_us=times),)
            peer = replace(launch, environment="mpi-1", curves=other, paces=(25.0, 25.0))
            loads = (BUSY,) if number < busy else ()
            launches.append(replace(launch, paces=(25.0, moved), peers=(peer,), loads=loads))
        return replace(kept, launches=tuple(launches))

    def ruled(self, done: RepeatCase) -> Finding:
        return compared("envelope", done.repeated, *done.peers)[0]

    def test_what_is_flagged_is_launched_next_to_what_it_was_compared_with(self, pingpong):
        slow, fast, between = several = self.configurations(pingpong, 20.0, 1.0, 3.0)
        (kept,) = to_compare(several, [slow], None)
        assert (kept.paired, kept.by_score) == (("mpi-1",), False)
        assert {str(peer) for peer in kept.peers} == {str(fast.subject), str(between.subject)}
        assert to_compare(several, [fast, between], None) == []
        assert undecided(kept).whole
        # Three pairs may agree by chance, where a machine has two paces.
        assert undecided(self.pairs(kept, 3, 20.0)).whole
        # All of the ratio is above ten times, or all of it below: nothing is open any more.
        assert not undecided(self.pairs(kept, 6, 20.0))
        assert not undecided(self.pairs(kept, 6, 5.0, 5.1))
        assert undecided(self.pairs(kept, 6, 5.0, 20.0)).whole

    def test_what_was_in_the_way_of_pairs_is_no_failure_and_asks_for_more(self, kept):
        """Too few pairs are left: those made apart do not count."""
        done = self.pairs(kept, 7, 20.0, busy=2)
        assert undecided(done).whole
        assert self.ruled(done).level is Level.INCONCLUSIVE
        assert "5 of 7 pairs were undisturbed, and a failure takes 6: " in self.ruled(done).why
        assert "others used 40 %" in self.ruled(done).why
        assert self.ruled(self.pairs(kept, 8, 20.0, busy=2)).level is Level.FAIL

    @pytest.mark.parametrize(
        ("moved", "why"),
        [
            (150.0, "25 ns apart in one half of a launch in mpi-0 and 150 ns in the other"),
            ("there is one CPU", "the pace of a launch in mpi-0 is not known: there is one CPU"),
        ],
    )
    def test_launches_of_unlike_pace_do_not_count(self, kept, moved, why):
        assert self.ruled(self.pairs(kept, 6, 20.0)).level is Level.FAIL
        apart = self.ruled(self.pairs(kept, 6, 20.0, moved=moved))
        assert apart.level is Level.INCONCLUSIVE
        assert why in apart.why

    def test_rounds_are_made_until_the_pairs_that_count_decide_up_to_three_times_as_many(
        self, kept
    ):
        assert kept.rounds() == 3 * replace(kept, paired=()).rounds()
        assert not undecided(self.pairs(kept, 6, 5.0, 6.0))
        for moved in (25.0, 150.0):
            several = (kept.rounds() - 1, kept.rounds())
            less, most = (self.pairs(kept, count, 5.0, 20.0, moved=moved) for count in several)
            assert undecided(less).whole
            assert not undecided(most)

    def test_alongside_other_work_there_are_no_more_rounds_than_of_a_case_alone(self, kept):
        alone = kept.rounds_alone()
        for count, busy, still in (
            (alone - 1, alone - 2, True),
            (alone, alone - 1, False),
            (alone, alone // 2, True),
            (2 * alone, alone + 1, False),
        ):
            assert bool(undecided(self.pairs(kept, count, 5.0, 20.0, busy=busy))) is still
        # Where none of its launches was undisturbed, they are as many as a failure takes.
        kept = replace(kept, subject=replace(kept.subject, measured=noisy(kept.subject.measured)))
        for count, busy, still in ((5, 5, True), (6, 0, True), (6, 6, False)):
            assert bool(undecided(self.pairs(kept, count, 5.0, 20.0, busy=busy))) is still

    def test_one_launch_that_was_slowed_unseen_does_not_decide_from_nine_pairs_on(self, kept):
        ratios = (*[5.0, 6.0, 5.5, 4.0, 6.5, 7.0], 18.0, *[5.0, 6.0])
        assert undecided(self.pairs(kept, 8, *ratios)).whole
        done = self.pairs(kept, 9, *ratios)
        assert not undecided(done)
        finding = self.ruled(done)
        assert (finding.level, finding.interval) == (Level.PASS, pytest.approx((5.0, 7.0)))

    def test_a_case_that_failed_by_itself_asks_for_no_comparison(self, pingpong):
        slow, fast = self.configurations(pingpong, 20.0, 1.0)
        red = launched_on(replace(slow, limits=below(slow.subject.measured, 0.1)), 3, 20.0)
        red = replace(red, subject=red.repeated, launches=())
        assert repeat_cases.failed(red, None, ended=True)
        assert to_compare([red, fast], [red, fast], None) == []

    def test_a_score_that_has_a_bound_is_measured_again_with_its_baseline(self, pingpong):
        slow, fast = (
            asked(one.subject.measured, score={"fail": 0.9})
            for one in self.configurations(pingpong, 1.2, 1.0)
        )
        baseline = ScoreBaseline("gige", "mpi-1")
        several = to_compare([slow, fast], [slow, fast], baseline)
        assert [(one.baseline, bool(undecided(one).whole)) for one in several] == [
            (baseline, True)
        ] * 2
        assert to_compare([slow, fast], [slow, fast], None) == []
