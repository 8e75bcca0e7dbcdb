"""The criteria on recorded cases: along a curve, across configurations, levels of the verdict."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from pathlib import Path

import pytest
from made_measured import with_figures

from netproof.criteria import Finding, Level, consistency
from netproof.criteria.findings import Below
from netproof.criteria.rate import MPI_LOSS
from netproof.criteria.settings import Settings
from netproof.criteria.shape import JUMP
from netproof.measurement.disturbance import NodeLoad
from netproof.measurement.links import Link, Transport
from netproof.session import session
from netproof.session.measured import MeasuredAgain
from netproof.site.partition import ScoreBaseline
from netproof.verdict import confirmations, engine
from netproof.verdict.engine import Subject

SESSIONS = Path(__file__).resolve().parents[2] / "data" / "sessions"
TESTBED = Settings.of_site(
    {name: {"least_size": 4096} for name in ("envelope", "inversion", "jump", "dropout")}, 131072
)
MPICH = ScoreBaseline("gige", "mpich")


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
def measured_again() -> dict[tuple, MeasuredAgain]:
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
            dataclasses.replace(launch, curve=stretched(launch.curve))
            for launch in measured.launches
        ),
    )
    return dataclasses.replace(subject, measured=changed)


class TestAlong:
    def test_a_sick_switch_is_flagged_where_its_buffer_ends(self, sick):
        jump = found(engine.along(sick["mpich tcp"]), "jump")
        assert (jump.level, jump.size, jump.compared_sizes) == (Level.FAIL, 49152, (32768,))

    def test_a_sentence_names_all_that_one_needs_to_find_the_place(self, sick):
        why = found(engine.along(sick["mpich tcp"]), "jump").why
        assert why.startswith("testbed:gige mpich NetPIPE tcp inter-node oneway (switch gige): ")
        for named in ("49152 bytes", "16.5 times", "above 10 is flagged"):
            assert named in why

    def test_the_loss_of_mpi_is_over_tcp_of_the_same_job(self, sick):
        job = {subject.case.key(): subject for subject in sick.values()}
        loss = found(engine.along(sick["mpich mpi"], job), "MPI loss at the peak")
        mpi, tcp = (
            max(
                rate
                for size, rate in zip(curve.sizes, curve.bandwidth_mb_s, strict=True)
                if size >= 131072
            )
            for curve in (sick["mpich mpi"].measured.curve, sick["mpich tcp"].measured.curve)
        )
        assert loss.value == pytest.approx(1 - mpi / tcp)

    def test_without_tcp_the_loss_of_mpi_is_undefined_and_fails(self, sick):
        subject = sick["mpich mpi"]
        loss = found(engine.along(subject, None), "MPI loss at the peak")
        assert loss.level is Level.UNDEFINED
        assert engine.rule(subject, loss, None).level is Level.FAIL

    def test_where_the_environment_has_no_netpipe_over_tcp_there_is_no_loss_of_mpi(self, sick):
        absent = {"netpipe-tcp": "not built"}
        subject = dataclasses.replace(sick["mpich mpi"], absent=absent)
        assert not [one for one in engine.along(subject) if "MPI loss" in one.criterion]

    def test_what_is_undefined_and_not_asserted_is_shown(self, sick):
        subject = with_settings(sick["mpich mpi"], mpi_loss=replace(MPI_LOSS, warn=None, fail=None))
        loss = found(engine.along(subject, None), "MPI loss at the peak")
        assert engine.rule(subject, loss, None).level is Level.SHOWN

    def test_the_line_rate_is_held_where_there_is_one(self, sick):
        between = engine.along(sick["mpich tcp"])
        assert found(between, "line rate").level is Level.PASS
        inside = dataclasses.replace(
            sick["mpich tcp"],
            measured=dataclasses.replace(sick["mpich tcp"].measured, line_rate_mb_s=None),
        )
        assert "line rate" not in [finding.criterion for finding in engine.along(inside)]

    def test_a_function_without_sizes_has_no_curve_to_judge(self, sick):
        curve = dataclasses.replace(
            sick["mpich tcp"].measured.curve, sizes=(0,), time_us=(7.0,), bandwidth_mb_s=None
        )
        launches = tuple(
            dataclasses.replace(one, curve=curve) for one in sick["mpich tcp"].measured.launches
        )
        measured = dataclasses.replace(sick["mpich tcp"].measured, launches=launches)
        barrier = dataclasses.replace(sick["mpich tcp"], measured=measured)
        assert engine.along(barrier) == ()


class TestRule:
    def test_a_confirmed_flag_counts(self, sick, measured_again):
        subject = sick["mpich tcp"]
        findings = confirmations.rule_all(
            subject, engine.along(subject), measured_again[subject.case.key()]
        )
        (jump,) = (finding for finding in findings if finding.criterion == "jump")
        assert jump.level is Level.FAIL
        assert "confirmed: 3 of 3 launches around 49152 bytes show it again" in jump.why
        assert "on gige-1, gige-2, job " in jump.why

    def test_a_flag_that_was_not_measured_again_counts_as_it_stands(self, sick):
        jump = found(engine.along(sick["mpich tcp"]), "jump")
        finding = engine.rule(sick["mpich tcp"], jump, None)
        assert finding.level is Level.FAIL
        assert finding.why.endswith(". It was not measured again")

    def test_an_unconfirmed_flag_is_shown_and_is_not_red(self, sick, measured_again):
        subject = sick["mpich tcp"]
        jump = found(engine.along(subject), "jump")
        measured = measured_again[subject.case.key()]
        smooth = dataclasses.replace(
            measured,
            launches=tuple(
                dataclasses.replace(curve, time_us=tuple(float(size) for size in curve.sizes))
                for curve in measured.launches
            ),
        )
        confirmation = confirmations.confirmation(subject, jump, smooth)
        finding = engine.rule(subject, jump, confirmation)
        assert finding.level is Level.SHOWN
        assert "unconfirmed: 0 of 3 launches" in finding.why

    def test_too_few_launches_confirm_nothing_and_forgive_nothing(self, sick, measured_again):
        subject = sick["mpich tcp"]
        jump = found(engine.along(subject), "jump")
        measured = measured_again[subject.case.key()]
        lost = dataclasses.replace(
            measured, launches=measured.launches[:1], faults=("launch 2 hung", "launch 3 hung")
        )
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

    def test_a_sentence_is_the_case_and_its_reason_and_only_a_flag_is_forgiven(self, sick):
        shown = 0
        for subject in sick.values():
            for finding in engine.along(subject):
                finding = engine.rule(subject, finding, None)
                assert finding.why == f"{subject}: {finding.reason}"
                assert str(subject) not in finding.reason
                assert not finding.forgiven
                shown += finding.level is Level.SHOWN
        assert shown

    def test_a_known_flaw_of_another_case_excuses_nothing(self, sick):
        known = dataclasses.replace(sick["mpich tcp"], known={"NetPIPE tcp": "no whole case"})
        finding = engine.rule(known, found(engine.along(known), "jump"), None)
        assert finding.level is Level.FAIL

    def test_more_than_a_link_carries_is_excused_by_nothing(self, sick):
        measured = dataclasses.replace(sick["mpich tcp"].measured, line_rate_mb_s=10.0)
        known = dataclasses.replace(sick["mpich tcp"], measured=measured, known={".*": "known"})
        finding = engine.rule(known, found(engine.along(known), "line rate"), None)
        assert finding.level is Level.FAIL

    def test_a_share_that_is_not_defined_is_shown_with_the_reason_and_is_no_failure(self, sick):
        subject = sick["mpich tcp"]
        marks = dataclasses.replace(
            subject.measured.landmarks,
            asymptotic_mb_s=None,
            undefined={"asymptotic_mb_s": "times lie on no line"},
        )
        bent = dataclasses.replace(
            subject, measured=with_figures(subject.measured, landmarks=marks)
        )
        finding = engine.rule(bent, found(engine.along(bent), "line rate"), None)
        assert (finding.own_level, finding.level) == (Level.UNDEFINED, Level.SHOWN)
        assert finding.why.endswith("line rate undefined: times lie on no line")


class TestAcross:
    def test_the_baseline_against_itself_scores_one(self, sick):
        findings = engine.across(list(sick.values()), MPICH)[sick["mpich tcp"].case.key()]
        (score,) = (r for r in findings if r.criterion == "score")
        assert score.value == pytest.approx(1)

    def test_a_score_against_a_disturbed_baseline_says_so(self, sick):
        busy = NodeLoad("gige-1", "m", 2, 1.0, 0.8, 0.4, 0.0, 0.0, 0.5, 0.0)
        noise = "gige-1: others used 40 % of the CPUs"
        baseline = sick["mpich tcp"]
        launches = [dataclasses.replace(it, loads=(busy,)) for it in baseline.measured.launches]
        disturbed = dataclasses.replace(
            baseline, measured=baseline.measured.with_launches(launches)
        )
        other = sick["intelmpi tcp"]
        quiet, noisy = (
            found
            for it in (baseline, disturbed)
            for found in engine.across([it, other], MPICH)[other.case.key()]
            if found.criterion == "score"
        )
        assert quiet.disturbed == ()
        assert noisy.disturbed == (noise,)
        assert noisy.value == quiet.value
        assert noisy.why == f"{quiet.why}. The machine was disturbed: {noise}"
        assert noisy.level is quiet.level

    def test_a_configuration_far_above_the_envelope_is_red_with_every_size(self, sick):
        bad = slower(sick["mpich tcp"], 25, "openmpi4")
        findings = engine.across([sick["mpich tcp"], sick["intelmpi tcp"], bad], MPICH)
        reds = {r.criterion: r for r in findings[bad.case.key()] if r.level is Level.FAIL}
        assert set(reds) == {"envelope", "floor"}
        red = reds["envelope"]
        (open_,) = (r for r in findings[bad.case.key()] if r.level is Level.INCONCLUSIVE)
        sizes = tuple(s for s in bad.measured.curve.sizes if s >= 4096)
        assert tuple(sorted((*red.sizes(), *open_.sizes()))) == sizes
        assert f". Likewise at {len(red.sizes())} sizes in all: 4096, 6144, 12288, " in red.why
        # Where the launches of the sick switch are far apart, more of them have to tell.
        assert open_.sizes() == (8192, 24576, 65536, 524288)

    def test_where_it_is_red_it_says_with_whom_it_was_compared(self, sick):
        bad = slower(sick["mpich tcp"], 25, "openmpi4")
        subjects = [sick["mpich tcp"], sick["intelmpi tcp"], bad]
        findings = engine.across(subjects, MPICH)[bad.case.key()]
        labels = {str(subject) for subject in subjects} - {str(bad)}
        found = findings
        assert all(finding.against in labels for finding in found)
        assert found[-1].against == str(sick["mpich tcp"])
        assert all(finding.interval is not None for finding in found)

    def test_of_one_case_it_says_what_it_says_of_it_among_all(self, sick):
        members = [sick["mpich mpi"], slower(sick["mpich mpi"], 25, "openmpi4")]
        whole = [*engine.compared(members, None)]
        for one in members:
            alone = [*engine.compared(members, None, only=one)]
            assert alone == [found for found in whole if found[0] is one]

    def test_what_is_inconclusive_neither_passes_nor_goes_unsaid(self, sick):
        findings = engine.across([sick["mpich tcp"], sick["intelmpi tcp"]], MPICH)
        envelope, *_ = findings[sick["mpich tcp"].case.key()]
        assert (envelope.level, envelope.own_level) == (Level.INCONCLUSIVE,) * 2
        assert "95% interval" in envelope.why
        assert envelope.sizes() == (8192, 65536, 524288)

    def test_a_flaw_that_is_known_excuses_what_is_inconclusive_too(self, sick):
        known = dataclasses.replace(sick["mpich tcp"], known={".*": "ticket 812"})
        envelope, *_ = engine.across([known, sick["intelmpi tcp"]], MPICH)[known.case.key()]
        assert envelope.level is Level.SHOWN
        assert "Known: ticket 812" in envelope.why

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

    def test_a_red_case_keeps_its_score_and_wears_the_mark(self, sick):
        bad = slower(sick["mpich tcp"], 25, "openmpi4")
        findings = engine.across([sick["mpich tcp"], bad], MPICH)[bad.case.key()]
        (score,) = (r for r in findings if r.criterion == "score")
        assert score.value == pytest.approx(1 / 25)
        assert "red at 4096, 6144" in score.why

    def test_a_lone_configuration_has_no_envelope(self, sick):
        (envelope, _) = engine.across([sick["mpich tcp"]], MPICH)[sick["mpich tcp"].case.key()]
        assert envelope.own_level is Level.UNDEFINED
        assert "is the only configuration" in envelope.why

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

    def test_cases_of_different_functions_are_not_compared(self, sick):
        findings = engine.across([sick["mpich tcp"], sick["mpich mpi"]], MPICH)
        for several in findings.values():
            assert several[0].own_level is Level.UNDEFINED


class TestFloors:
    def test_what_is_slow_as_a_whole_fails_where_the_envelope_does_not(self, sick):
        fast = sick["mpich mpi"]
        bad = slower(fast, 5, "openmpi4")
        findings = engine.across([fast, bad], MPICH)[bad.case.key()]
        levels = {finding.criterion: finding.level for finding in findings}
        assert levels["envelope"] is not Level.FAIL
        assert levels["floor"] in (Level.FAIL, Level.INCONCLUSIVE)
        (floor,) = (one for one in findings if one.criterion == "floor")
        assert floor.value == pytest.approx(0.2)
        assert floor.against == str(fast)
        assert "0.2 times as fast as testbed:gige mpich NetPIPE mpi" in floor.why

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

    def test_it_is_part_of_what_is_said_across_configurations(self, sick):
        mpi = sick["mpich mpi"]
        few, many = on_ranks(mpi, 4, 1), on_ranks(mpi, 8, 300)
        findings = engine.across([few, many], None)[many.case.key()]
        (growth,) = (one for one in findings if one.criterion == "growth")
        enough = len(many.measured.launches) >= consistency.LAUNCHES
        assert growth.level is (Level.FAIL if enough else Level.SHOWN)

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

    def test_other_configurations_and_functions_have_no_growth(self, sick):
        for criterion in ("growth", "monotony"):
            assert over_ranks(sick.values(), criterion) == {}
