"""The criteria on recorded cases: along a curve, across configurations, levels of the verdict."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netproof.criteria import Finding, Level, consistency
from netproof.criteria.findings import Below
from netproof.criteria.settings import Settings
from netproof.criteria.shape import JUMP
from netproof.measurement.case import Curve
from netproof.measurement.disturbance import NodeLoad
from netproof.measurement.links import Link, Transport
from netproof.session import session
from netproof.session.measured import Launch
from netproof.site.partition import ScoreBaseline
from netproof.verdict import confirmations, engine
from netproof.verdict.engine import NOT_TOGETHER, InterleavedLaunch, Subject, paired

SESSIONS = Path(__file__).resolve().parents[2] / "data" / "sessions"
TESTBED = Settings.of_site(
    {"curves": {"least_size": 4096}, "dropout": {"least_size": 4096}}, 131072
)


@pytest.fixture(scope="module")
def sick() -> dict[str, Subject]:
    """NetPIPE between two nodes of a switch with a small buffer, by environment and protocol."""
    stored = session.load(SESSIONS / "sick.json")
    cases = [result.measured for result in stored.results if result.measured]
    return {
        f"{measured.case.environment} {measured.case.function}": Subject(
            measured, "gige", TESTBED, {}
        )
        for measured in cases
    }


@pytest.fixture(scope="module")
def measured_again() -> dict[tuple, tuple[Launch, ...]]:
    """Return their repeats at single sizes in the same run."""
    stored = session.load(SESSIONS / "sick.json")
    return {one.case.key(): one.measured.again for one in stored.results if one.measured}


def floors(subjects) -> dict:
    found = engine.compared(subjects, None)
    return {one: finding for one, finding in found if finding.criterion == "floor"}


def with_settings(subject: Subject, **settings) -> Subject:
    changed = dataclasses.replace(subject.settings, **settings)
    return dataclasses.replace(subject, settings=changed)


def found(findings: tuple[Finding, ...], criterion: str) -> Finding:
    (finding,) = (finding for finding in findings if finding.criterion == criterion)
    return finding


def slower(subject: Subject, factor: float, environment: str) -> Subject:
    """The case as another environment would have it that takes ``factor`` times as long."""

    def stretched(curve):
        return dataclasses.replace(curve, time_us=tuple(factor * t for t in curve.time_us))

    measured = subject.measured
    changed = dataclasses.replace(
        measured,
        case=dataclasses.replace(measured.case, environment=environment),
        launches=tuple(
            dataclasses.replace(launch, curves=(stretched(launch.curve),))
            for launch in measured.launches
        ),
    )
    return dataclasses.replace(subject, measured=changed)


def test_without_tcp_the_loss_of_mpi_is_undefined_and_fails_unless_there_is_none_to_compare(sick):
    subject = sick["mpich mpi"]
    loss = found(engine.along(subject, None), "MPI loss at the peak")
    assert loss.level is Level.UNDEFINED
    assert engine.rule(subject, loss, None).level is Level.FAIL
    without = dataclasses.replace(subject, absent={"netpipe-tcp": "not built"})
    assert not [one for one in engine.along(without) if "MPI loss" in one.criterion]


class TestRule:
    def test_too_few_launches_confirm_nothing_and_forgive_nothing(self, sick, measured_again):
        subject = sick["mpich tcp"]
        jump = found(engine.along(subject), "jump")
        measured = measured_again[subject.case.key()]
        hung = [
            dataclasses.replace(one, curves=(), said=f"launch {number} hung")
            for number, one in enumerate(measured[1:3], 2)
        ]
        lost = (measured[0], *hung)
        finding = engine.rule(subject, jump, confirmations.confirmation(subject, jump, lost))
        assert finding.level is Level.FAIL
        assert "not judged, which takes 3" in finding.why
        assert finding.why.endswith(". Launch 2 hung. Launch 3 hung")

    def test_a_warning_stays_one_whatever_closer_sizes_show(self, sick, measured_again):
        subject = with_settings(sick["mpich tcp"], jump=replace(JUMP, warn=4, fail=100))
        jump = found(engine.along(subject), "jump")
        assert jump.level is Level.WARN
        strict = dataclasses.replace(
            confirmations.confirmation(subject, jump, measured_again[subject.case.key()]),
            level=Level.FAIL,
        )
        assert engine.rule(subject, jump, strict).level is Level.WARN

    def test_a_known_flaw_is_shown_with_its_reason(self, sick):
        known = dataclasses.replace(
            sick["mpich tcp"], known={"NetPIPE tcp .*": "ticket 812: the buffer is small"}
        )
        finding = engine.rule(known, found(engine.along(known), "jump"), None)
        assert finding.level is Level.SHOWN
        assert finding.why.endswith(". Known: ticket 812: the buffer is small")
        assert finding.known == "ticket 812: the buffer is small"
        assert finding.forgiven

    def test_more_than_a_link_carries_is_excused_by_nothing(self, sick):
        measured = dataclasses.replace(sick["mpich tcp"].measured, line_rate_mb_s=10.0)
        known = dataclasses.replace(sick["mpich tcp"], measured=measured, known={".*": "known"})
        finding = engine.rule(known, found(engine.along(known), "line rate"), None)
        assert finding.level is Level.FAIL


class TestAcross:
    def test_of_one_case_it_says_what_it_says_of_it_among_all(self, sick):
        members = [sick["mpich mpi"], slower(sick["mpich mpi"], 25, "openmpi4")]
        whole = [*engine.compared(members, None)]
        for one in members:
            alone = [*engine.compared(members, None, only=one)]
            assert alone == [found for found in whole if found[0] is one]

    def test_a_slower_link_is_compared_with_what_it_explains(self, sick):
        fast = dataclasses.replace(sick["intelmpi mpi"], link=Link(10_000, 1500))
        slow = dataclasses.replace(slower(fast, 15, "openmpi4"), link=Link(100, 1500))
        red = []
        for link in (slow.link, fast.link, None):
            one = dataclasses.replace(slow, link=link)
            findings = engine.across([one, fast], None)[one.case.key()]
            if any(finding.level is Level.FAIL for finding in findings):
                red.append(link)
        assert red == [fast.link, None]

    def test_inside_a_node_no_link_explains_anything(self, sick):
        subject = dataclasses.replace(sick["mpich tcp"], link=Link(1000, 1500))
        assert subject.data.crossing == Link(1000, 1500)
        case = dataclasses.replace(subject.case, path="intra-node")
        measured = dataclasses.replace(subject.measured, case=case)
        assert dataclasses.replace(subject, measured=measured).data.crossing is None
        assert sick["mpich tcp"].data.crossing is None

    def test_mpi_that_does_not_go_over_tcp_crosses_the_link_of_what_carries_it(self):
        stored = session.load(SESSIONS / "sick.json")
        results = [one for one in stored.results if one.measured and one.case.path == "inter-node"]
        links = {}
        for one in results:
            extras = {**one.extras["partition_extras"], "rdma": "infiniband"}
            environment = {**one.extras["environment_extras"], "mpi_over_tcp": False}
            measured = one.measured
            links[one.case.function] = Subject.of_extras(measured, extras, environment).link
        assert links["mpi"] == Link(1000, 4096, Transport.INFINIBAND)
        # NPtcp goes over TCP in any case.
        assert links["tcp"] == Link(1000, 1500)

    def test_of_a_collective_as_many_messages_cross_as_its_algorithms_may_send(self, sick):
        case = dataclasses.replace(
            sick["mpich tcp"].case, benchmark="imb", function="Bcast", ranks=64, ranks_per_node=2
        )
        measured = dataclasses.replace(sick["mpich tcp"].measured, case=case)
        link = Link(1000, 1500)
        subject = dataclasses.replace(sick["mpich tcp"], measured=measured, link=link)
        assert subject.data.crossing == replace(link, least=1, most=62)

    @pytest.mark.parametrize("baseline", [None, ScoreBaseline("gige", "openmpi5")])
    def test_without_a_baseline_a_score_that_is_asserted_fails(self, sick, baseline):
        shown = engine.across([sick["mpich mpi"]], baseline)[sick["mpich mpi"].case.key()][-1]
        assert shown.level is Level.SHOWN
        asserted = with_settings(sick["mpich mpi"], score=Below(fail=0.5))
        failed = engine.across([asserted], baseline)[asserted.case.key()][-1]
        assert failed.level is Level.FAIL
        assert "the baseline" in failed.why

    def test_tcp_that_one_environment_measured_is_the_baseline_of_its_partition(self, sick):
        (*_, score) = engine.across([sick["mpich tcp"]], ScoreBaseline("gige", "openmpi5"))[
            sick["mpich tcp"].case.key()
        ]
        assert score.value == pytest.approx(1)
        (*_, score) = engine.across([sick["mpich tcp"]], ScoreBaseline("other", "mpich"))[
            sick["mpich tcp"].case.key()
        ]
        assert score.value is None


class TestFloors:
    def test_only_environments_of_one_partition_and_link_are_compared(self, sick):
        fast = sick["mpich mpi"]
        bad = slower(fast, 5, "openmpi4")
        assert set(floors([fast, bad])) == {fast, bad}
        case = dataclasses.replace(bad.case, partition="other")
        moved = dataclasses.replace(bad, measured=dataclasses.replace(bad.measured, case=case))
        linked = dataclasses.replace(bad, link=Link(100, 1500))
        rdma = dataclasses.replace(
            bad, measured=dataclasses.replace(bad.measured, line_rate_mb_s=None)
        )
        earlier = dataclasses.replace(fast, measured_on="2026-01-02")
        for other in (moved, linked, rdma, earlier):
            assert floors([fast, other]) == {}

    def test_inside_a_node_it_is_shown(self, sick):
        inside = []
        for one in (sick["mpich mpi"], slower(sick["mpich mpi"], 5, "openmpi4")):
            case = dataclasses.replace(one.case, path="intra-node")
            measured = dataclasses.replace(one.measured, case=case)
            inside.append(dataclasses.replace(one, measured=measured))
        findings = floors(inside)
        assert {finding.level for finding in findings.values()} == {Level.SHOWN}

    def test_disturbed_launches_of_either_side_fail_nothing(self, sick):
        busy = NodeLoad("gige-1", "m", 2, 1.0, 0.8, 0.4, 0.0, 0.0, 0.5, 0.0)
        fast, bad = sick["mpich mpi"], slower(sick["mpich mpi"], 100, "openmpi4")
        assert floors([fast, bad])[bad].level is Level.FAIL
        launches = [dataclasses.replace(it, loads=(busy,)) for it in fast.measured.launches]
        noisy = dataclasses.replace(fast, measured=fast.measured.with_launches(launches))
        finding = floors([noisy, bad])[bad]
        assert finding.level is Level.INCONCLUSIVE
        assert "The machine was disturbed: gige-1: others used 40 %" in finding.why

    def test_another_whose_launches_show_nothing_hides_no_failure(self, sick):
        busy = NodeLoad("gige-1", "m", 2, 1.0, 0.8, 0.4, 0.0, 0.0, 0.5, 0.0)
        fast, bad = sick["mpich mpi"], slower(sick["mpich mpi"], 100, "openmpi4")
        faster = slower(fast, 0.5, "openmpi5")
        launches = [dataclasses.replace(it, loads=(busy,)) for it in faster.measured.launches]
        noisy = dataclasses.replace(faster, measured=faster.measured.with_launches(launches))
        assert floors([noisy, bad])[bad].level is Level.INCONCLUSIVE
        finding = floors([noisy, fast, bad])[bad]
        assert (finding.level, finding.against) == (Level.FAIL, str(fast))


def on_ranks(subject: Subject, ranks: int, factor: float) -> Subject:
    """The curve as one of Alltoall on so many ranks, which takes ``factor`` times as long."""
    taken = slower(subject, factor, subject.case.environment)
    case = dataclasses.replace(
        taken.case, benchmark="imb", function="Alltoall", ranks=ranks, ranks_per_node=2
    )
    return dataclasses.replace(taken, measured=dataclasses.replace(taken.measured, case=case))


def over_ranks(subjects, criterion: str) -> dict:
    found = engine.compared(subjects, None)
    return {one: finding for one, finding in found if finding.criterion == criterion}


class TestGrowth:
    def test_each_is_compared_with_the_next_fewer_ranks(self, sick):
        mpi = sick["mpich mpi"]
        four, eight, sixteen = (
            on_ranks(mpi, ranks, factor) for ranks, factor in ((4, 1), (8, 3), (16, 500))
        )
        growths = over_ranks([sixteen, four, eight], "growth")
        assert set(growths) == {eight, sixteen}
        assert growths[eight].against == str(four)
        assert growths[sixteen].against == str(eight)
        # Two a node, 4 ranks have 8 messages on a link at most, 8 ranks 24: more than 7 to 3.
        assert growths[eight].value == pytest.approx(3 / 3)
        assert growths[sixteen].value > 10

    def test_what_takes_longer_on_fewer_ranks_is_reported_for_them(self, sick):
        mpi = sick["mpich mpi"]
        few, many, more = (
            on_ranks(mpi, ranks, factor) for ranks, factor in ((4, 300), (8, 1), (16, 2))
        )
        found = over_ranks([many, more, few], "monotony")
        assert {one: finding.against for one, finding in found.items()} == {
            few: str(many),
            many: str(more),
        }
        assert found[few].value > 10
        assert found[many].value == pytest.approx(0.5)
        findings = engine.across([few, many], None)[few.case.key()]
        (shrunk,) = (one for one in findings if one.criterion == "monotony")
        enough = len(few.measured.launches) >= consistency.LAUNCHES
        assert shrunk.level is (Level.FAIL if enough else Level.SHOWN)


# Which launches of two configurations are compared with each other.

MOST = 1.5
NEAR, FAR = (25.0, 26.0), (150.0, 151.0)


def one(time_us: float, distances: tuple[float, ...] = (), *noise: str) -> InterleavedLaunch:
    """A launch with one size, which its time identifies.

    From 10 µs on it is of the second configuration, and again from 200 µs on.
    """
    name = "mpi-1" if 10 <= time_us < 100 or time_us >= 200 else "mpi-0"
    return Curve((64,), (time_us,)), {name: distances}, noise


def times(rounds) -> list[tuple[float, float]]:
    """The pairs that count, by the times of their launches."""
    pairs = paired(rounds, MOST)
    return [(own.time_us[0], other.time_us[0]) for own, other, why in pairs if not why]


def test_launches_of_one_round_are_a_pair_but_for_those_that_were_disturbed_or_moved():
    rounds = [(one(1), one(10)), (one(2, NEAR), one(20, NEAR)), (one(3, FAR), one(30, FAR))]
    assert times(rounds) == [(1, 10), (2, 20), (3, 30)]
    rounds = [(one(1, NEAR, "busy"), one(10, NEAR, "busy")), (one(2, NEAR), one(20, FAR))]
    assert times(rounds) == []
    assert paired(rounds, MOST)[0][2] == ("busy",)
    rounds = [(one(1, (25.0, 150.0)), one(10, NEAR)), (one(2, NEAR), one(20, NEAR))]
    assert times(rounds) == [(2, 20)]
    (_, left) = paired(rounds, MOST)
    assert "25 ns apart in one half of a launch in mpi-0 and 150 ns in the other" in left[2][0]


def test_without_distances_only_launches_of_one_round_had_one_pace():
    rounds = [(one(1, (), "busy"), one(10, (), "busy")), (one(2), one(20))]
    assert times(rounds) == [(2, 20)]
    # Only one of the rounds knows its paces, so the two cannot be paired.
    rounds = [(one(1, NEAR), one(10, FAR)), (one(2, (), "busy"), one(20))]
    pairs = paired(rounds, MOST)
    assert len(pairs) == 2
    assert all(why for _, _, why in pairs)
    assert NOT_TOGETHER not in pairs[0][2]


distances = st.sampled_from([NEAR, FAR, (25.0, 150.0), ()])
noise = st.sampled_from([(), (), ("busy",)])


@given(st.lists(st.tuples(distances, distances, noise), max_size=12))
def test_each_launch_is_in_one_pair_and_what_counts_is_alike(drawn):
    rounds = [
        (one(100 + number, own, *loads), one(200 + number, other, *loads))
        for number, (own, other, loads) in enumerate(drawn)
    ]
    pairs = paired(rounds, MOST)
    assert sorted(own.time_us[0] for own, _, _ in pairs) == [100 + n for n in range(len(drawn))]
    assert sorted(other.time_us[0] for _, other, _ in pairs) == [200 + n for n in range(len(drawn))]
    for own, other in times(rounds):
        mine, theirs = (drawn[int(own) - 100], drawn[int(other) - 200])
        assert not mine[2]
        assert not theirs[2]
        assert own + 100 == other or mine[0] == theirs[1] in (NEAR, FAR)
    # Nothing that counts is left over: as many as either side has of each distance.
    for distance in (NEAR, FAR):
        mine = sum(own == distance and not loads for own, _, loads in drawn)
        theirs = sum(other == distance and not loads for _, other, loads in drawn)
        found = [
            own
            for own, other in times(rounds)
            if drawn[int(own) - 100][0] == distance == drawn[int(other) - 200][1]
        ]
        with_nobody = sum(() in (own, other) and not loads for own, other, loads in drawn)
        assert min(mine, theirs) - with_nobody <= len(found) <= min(mine, theirs)
