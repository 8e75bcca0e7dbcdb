"""The criteria on recorded cases: along a curve, across configurations, levels of the verdict."""

from __future__ import annotations

import dataclasses

import made_measured
import pytest

from netproof.criteria import Finding, Level
from netproof.criteria.findings import Below
from netproof.criteria.settings import Settings
from netproof.measurement.case import Curve
from netproof.measurement.links import Link, Transport
from netproof.site.partition import ScoreBaseline
from netproof.verdict import confirmations, engine
from netproof.verdict.engine import NOT_TOGETHER, InterleavedLaunch, Subject, paired

TESTBED = Settings.of_site(
    {"curves": {"least_size": 4096}, "dropout": {"least_size": 4096}}, 131072
)


@pytest.fixture
def sick() -> dict[str, Subject]:
    """NetPIPE between two nodes of a switch with a small buffer, by environment and protocol."""
    cases = [one.measured for one in made_measured.recorded("sick").results if one.measured]
    return {
        f"{one.case.environment} {one.case.function}": Subject(one, "gige", TESTBED, {})
        for one in cases
    }


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
    measured = made_measured.slower(subject.measured, factor)
    case = dataclasses.replace(measured.case, environment=environment)
    return dataclasses.replace(subject, measured=dataclasses.replace(measured, case=case))


def test_without_tcp_the_loss_of_mpi_is_undefined_and_fails_unless_there_is_none_to_compare(sick):
    subject = sick["mpich mpi"]
    loss = found(engine.along(subject, None), "MPI loss at the peak")
    assert loss.level is Level.UNDEFINED
    assert engine.rule(subject, loss, None).level is Level.FAIL
    without = dataclasses.replace(subject, absent={"netpipe-tcp": "not built"})
    assert not [one for one in engine.along(without) if "MPI loss" in one.criterion]


class TestRule:
    def test_too_few_launches_confirm_nothing_and_forgive_nothing(self, sick):
        subject = sick["mpich tcp"]
        jump = found(engine.along(subject), "jump")
        measured = made_measured.result_in("sick", "tcp", "mpich").measured.again
        hung = [
            dataclasses.replace(one, curves=(), said=f"launch {number} hung")
            for number, one in enumerate(measured[1:3], 2)
        ]
        lost = (measured[0], *hung)
        finding = engine.rule(subject, jump, confirmations.confirmation(subject, jump, lost))
        assert finding.level is Level.FAIL
        assert "not judged, which takes 3" in finding.why
        assert finding.why.endswith(". Launch 2 hung. Launch 3 hung")

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
        stored = made_measured.recorded("sick")
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

    @pytest.mark.parametrize("baseline", [None, ScoreBaseline("gige", "openmpi5")])
    def test_without_a_baseline_a_score_that_is_asserted_fails(self, sick, baseline):
        shown = engine.across([sick["mpich mpi"]], baseline)[sick["mpich mpi"].case.key()][-1]
        assert shown.level is Level.SHOWN
        asserted = with_settings(sick["mpich mpi"], score=Below(fail=0.5))
        failed = engine.across([asserted], baseline)[asserted.case.key()][-1]
        assert failed.level is Level.FAIL
        assert "the baseline" in failed.why


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
