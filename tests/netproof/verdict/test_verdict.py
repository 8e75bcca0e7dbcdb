"""Verdicts on sessions, and what they leave open."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from made_measured import matrix_of, recorded, with_results

from netproof.criteria import Level
from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.session.measured import Launch
from netproof.session.session import Session
from netproof.site import matrix as matrix_module
from netproof.site import site
from netproof.site.matrix import Absence, Matrix
from netproof.verdict import FAILED, INCONCLUSIVE, PASSED
from netproof.verdict.judge import judge, unsettled_of
from netproof.verdict.verdict import sentences_of_skipped

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def passed() -> Session:
    """A session in which all that ran passed."""
    return recorded("passed")


@pytest.fixture
def expected(passed) -> Matrix:
    return matrix_of(passed)


def with_first(stored: Session, job: bool, **changes) -> Session:
    """The session with its first job's, or its first check's, result changed."""
    results = list(stored.results)
    first = next(n for n, r in enumerate(results) if (r.case is None) == job)
    results[first] = dataclasses.replace(results[first], **changes)
    return dataclasses.replace(stored, results=tuple(results))


def failures(matrix: Matrix, stored: Session) -> list[str]:
    verdict = judge(matrix, stored)
    assert verdict.status == FAILED
    return [fault for judged in verdict.cases for fault in judged.faults] + list(verdict.faults)


def test_a_fabric_that_is_declared_absent_is_repeated_once(expected, passed):
    def without_verbs(result):
        if result.case is None or result.environment != "intelmpi":
            return result
        extras = {
            **result.extras["environment_extras"],
            "built": {"absent": {"verbs": "no card has it here"}},
        }
        return dataclasses.replace(result, extras={**result.extras, "environment_extras": extras})

    notes = judge(expected, with_results(passed, without_verbs)).notes
    assert notes.count("intelmpi has no verbs: no card has it here") == 1
    assert not any(" has no verbs" in note for note in judge(expected, passed).notes)


def test_a_case_that_is_missing_or_was_not_measured_fails_and_an_expected_failure_passes(
    expected, passed
):
    more = Case("testbed", "gige", "intelmpi", "imb", "Alltoall", 4, 1)
    wanted = dataclasses.replace(expected, cases=(*expected.cases, more))
    assert failures(wanted, passed) == ["did not run: the session does not have it"]
    unmeasured = with_first(passed, job=False, measured=None)
    assert failures(expected, unmeasured) == ["passed for ReFrame, but left no measurement"]
    verdict = judge(expected, with_first(passed, job=False, result="xfail"))
    assert verdict.status == PASSED
    assert "fails as expected" in [judged.expected for judged in verdict.cases]


@pytest.mark.parametrize(
    ("phase", "reason", "said"),
    [
        ("run", "job died\njob died\n", "job died"),
        ("sanity", "sanity error: job died", "job died"),
        # Somebody removed its folder.
        ("cleanup", "file not found error: [Errno 2] No such file: 'x'", "No such file: 'x'"),
    ],
)
def test_a_job_that_died_is_no_network_that_failed_and_no_pass_either(
    expected, passed, phase, reason, said
):
    died = with_first(passed, job=True, result="fail", phase=phase, reason=reason)
    verdict = judge(expected, died)
    (fault,) = verdict.faults
    assert fault.endswith(f": fail in {phase}: {said}")
    assert verdict.status == INCONCLUSIVE
    waited = with_first(died, job=False, result="fail_deps", phase="", reason="", measured=None)
    assert judge(expected, waited).status == INCONCLUSIVE
    failed = with_first(died, job=False, result="fail", phase="performance", reason="too slow")
    assert judge(expected, failed).status == FAILED


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ("skip", "was skipped: the reason is in what ReFrame printed"),
        ("fail_deps", "did not run, since the job that measures for it failed"),
        ("abort", "abort in an unknown phase: "),
        ("xpass", "xpass in an unknown phase: "),
    ],
)
def test_whatever_is_no_pass_fails(expected, passed, result, reason):
    changed = with_first(passed, job=False, result=result, phase="", reason="", measured=None)
    assert failures(expected, changed) == [reason]


def test_a_session_of_which_nothing_was_expected_cannot_be_judged(passed):
    with pytest.raises(NetproofError, match="nothing was to be measured"):
        judge(matrix_of([]), passed)


def test_a_failed_case_beyond_the_matrix_fails_too():
    faulty = recorded("faulty")
    wanted = Case("testbed", "gige", "mpich", "imb", "PingPong", 2, 1)
    verdict = judge(matrix_of([wanted]), faulty)
    assert verdict.status == FAILED
    failed = {judged.case.function for judged in verdict.cases if not judged.passed}
    assert failed == {"Bcast", "Allreduce", "Barrier"}


class TestCriteria:
    """On a switch with a small buffer."""

    @pytest.fixture
    def sick(self) -> Session:
        return recorded("sick")

    @pytest.fixture
    def expected_of_sick(self, sick) -> Matrix:
        return matrix_of(sick)

    def test_a_confirmed_flag_fails_the_case_and_names_the_switch(self, sick, expected_of_sick):
        verdict = judge(expected_of_sick, sick)
        assert verdict.status == FAILED
        failing = [reason for judged in verdict.cases for reason in judged.said(Level.FAIL)]
        assert any("(switch gige): from 32768 to 49152 bytes" in reason for reason in failing)
        assert all(judged.again for judged in verdict.cases)
        # What criteria found in the run has one sentence.
        assert verdict.faults == ()
        over_mpi = [judged for judged in verdict.cases if judged.case.function == "mpi"]
        assert [judged.faults for judged in over_mpi] == [(), ()]

    def test_a_job_that_failed_is_a_fault_and_flags_not_measured_again_stand(
        self, sick, expected_of_sick
    ):
        def changed(result):
            if result.case is None:
                return dataclasses.replace(
                    result, result="fail", phase="run", reason="sbatch: error"
                )
            measured = result.measured and dataclasses.replace(result.measured, again=None)
            return dataclasses.replace(result, measured=measured)

        verdict = judge(expected_of_sick, with_results(sick, changed))
        assert len(verdict.faults) == 2
        assert all("NetpipeJob: fail in run: sbatch: error" in fault for fault in verdict.faults)
        failing = [reason for judged in verdict.cases for reason in judged.said(Level.FAIL)]
        assert any(reason.endswith(". It was not measured again") for reason in failing)

    def test_that_mpi_has_no_tcp_to_compare_with_is_said(self, sick):
        sick = with_results(
            sick, lambda one: one if one.case and one.case.function != "tcp" else None
        )
        over_mpi = [r.case for r in sick.results if r.case is not None]
        first = over_mpi[0]
        without = Absence(first.partition, first.environment, "netpipe-tcp", "not built")
        matrix = dataclasses.replace(matrix_of(over_mpi), absences=(without,))
        said = "no MPI loss, since no environment has NetPIPE over TCP to compare with"
        assert f"1 case has {said}: {first}" in judge(matrix, sick).notes
        assert not any(said in note for note in judge(matrix_of(over_mpi), sick).notes)


def test_a_configuration_that_an_earlier_session_had_fails_the_verdict_unless_it_was_retired(
    passed,
):
    matrix = matrix_of([Case("testbed", "gige", "mpich", "imb", "PingPong", 2, 1)])
    verdict = judge(matrix, passed, [passed])
    assert verdict.status == FAILED
    (fault,) = verdict.faults
    assert fault.startswith("testbed:gige intelmpi: ran in ")
    why = "put it back, or say why it is gone in a partition's extras['retired'] ('gige:intelmpi': "
    assert why in fault
    for change in ({"retired": frozenset({("gige", "intelmpi")})}, {"whole": False}):
        assert judge(dataclasses.replace(matrix, **change), passed, [passed]).faults == ()


def test_of_one_partition_nothing_of_another_is_judged():
    two = recorded("two-switches")
    configuration = site.gather(ROOT / "site-config")
    gige, every = (matrix_module.matrix(configuration, "testbed", some) for some in (["gige"], []))
    one, both = (judge(expected, two).cases for expected in (gige, every))
    measured = {result.case for result in two.results if result.case is not None}
    assert {judged.case for judged in one} == {
        *gige.cases,
        *(case for case in measured if case.partition == "gige"),
    }
    assert {judged.case.partition for judged in one} == {"gige"}
    assert {judged.case.partition for judged in both} == {"gige", "fast-ethernet"}


def crashed(number: int) -> Launch:
    said = "Segmentation fault"
    died = {"attempt": 1, "status": 139, "died_on": ("gige-2",), "said": said}
    return Launch(number, 3, 0.0, 1.0, (), (), **died)


TURN = {"skipped": "last measured 2026-11-18", "planned": True}
DOWN = {"skipped": "partition gige is DOWN", "planned": False}


@pytest.mark.parametrize(
    ("reason", "status", "words"),
    [
        (TURN, PASSED, "deferred: last measured 2026-11-18"),
        (DOWN, INCONCLUSIVE, "NOT MEASURED: partition gige is DOWN"),
    ],
)
def test_a_skipped_case_is_no_longer_expected_and_if_that_was_not_planned_nothing_passes(
    expected, passed, reason, status, words
):
    def skipped(result):
        if result.case is None or result.case.function != "PingPong":
            return result
        return dataclasses.replace(result, result="skip", measured=None, **reason)

    left = with_results(passed, skipped)
    verdict = judge(expected, left)
    assert verdict.status == status
    assert len(verdict.cases) == len(expected.cases) - 1
    assert sentences_of_skipped(verdict.skipped) == [f"1 case of gige intelmpi {words}"]
    failed = with_first(left, job=False, result="fail", phase="performance", reason="too slow")
    assert judge(expected, failed).status == FAILED


class TestCrashes:
    """Launches that crashed before their first figure and were launched again."""

    def crashed(self, stored: Session, *functions: str) -> Session:
        """The session with a crash before the first launch of each of these functions."""

        def change(result):
            if not result.measured or result.case.function not in functions:
                return result
            measured = dataclasses.replace(result.measured, crashes=(crashed(1),))
            return dataclasses.replace(result, measured=measured)

        return with_results(stored, change)

    def counted(self, stored: Session) -> int:
        return sum(len(r.measured.launches) for r in stored.results if r.measured)

    def test_one_is_a_warning_that_names_launch_node_status_and_words(self, expected, passed):
        verdict = judge(expected, self.crashed(passed, "PingPong"))
        assert verdict.status == PASSED
        (warned,) = (one for one in verdict.cases if one.level is Level.WARN)
        (why,) = warned.said(Level.WARN)
        assert warned.case.function == "PingPong"
        assert "launch 1 crashed on gige-2 before its first figure (attempt 1, status 139)" in why
        assert why.endswith("and was launched again; it said: Segmentation fault")
        assert verdict.crashes == f"launches: {self.counted(passed) + 1}, crashed: 1"

    def test_two_are_too_many_where_they_are_above_the_share(self, expected, passed):
        stored = self.crashed(passed, "PingPong", "tcp")
        verdict = judge(expected, stored)
        crashed = sum(one.crashed for one in verdict.launched)
        made = self.counted(passed) + crashed
        assert verdict.status == FAILED
        (fault,) = verdict.faults
        assert fault == (
            f"gige intelmpi: {crashed} of {made} launches crashed ({100 * crashed / made:.2g} %,"
            " flagged above 2 %): Segmentation fault"
        )

    def test_those_around_flagged_sizes_count_too(self):
        def change(result):
            if not result.measured:
                return result
            first, *others = result.measured.again
            first = dataclasses.replace(first, crashes=(crashed(2),))
            measured = dataclasses.replace(result.measured, again=(first, *others))
            return dataclasses.replace(result, measured=measured)

        sick = recorded("sick")
        verdict = judge(matrix_of(sick), with_results(sick, change))
        assert verdict.crashes.endswith(f", crashed: {len(verdict.cases)}")
        for case in verdict.cases:
            said = " ".join(case.said(Level.WARN))
            assert "around flagged sizes launch 2 crashed on gige-2" in said


def test_a_session_of_settings_that_are_no_more_cannot_be_judged(passed):
    def formerly(result):
        extras = {**result.extras.get("partition_extras", {}), "criteria": {"of old": {"warn": 2}}}
        return dataclasses.replace(result, extras={**result.extras, "partition_extras": extras})

    with pytest.raises(NetproofError, match="'of old' is no criterion"):
        unsettled_of(with_results(passed, formerly))
