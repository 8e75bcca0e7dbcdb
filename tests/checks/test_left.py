"""A run skips the cases that it is to skip, says so, and skips nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from netproof.measurement.case import Case
from netproof.session import plan, session
from netproof.session.plan import SkipReason
from netproof.site import site
from netproof.site.matrix import PlannedJob, job_of, matrix
from netproof.verdict.judge import judge

# Each test runs ReFrame as a whole.
pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
DRY = (
    "reframe",
    "--system",
    "testbed:gige",
    "-c",
    str(ROOT / "checks"),
    "-p",
    "mpich",
    "--dry-run",
)
TURN = SkipReason("last measured 2026-11-18", planned=True)


@pytest.fixture(scope="module")
def expected():
    return matrix(site.gather(ROOT / "site-config"), "testbed", ["gige"])


def leaves(run, folder: Path, cases: list[Case], *options: str) -> session.Session:
    """A dry run that leaves these cases."""
    folder.mkdir(exist_ok=True)
    plan.write_left(folder / "left.json", dict.fromkeys(cases, TURN))
    ran = run(folder, *DRY, *options, NETPROOF_LEFT=str(folder / "left.json"))
    assert ran.returncode == 0, ran.stdout
    return session.load(folder / "run-0.json")


def test_a_job_and_what_waits_for_it_are_left_and_a_job_of_which_a_case_stays_runs(
    run, tmp_path, expected
):
    imb = [
        case for case in expected.cases if case.environment == "mpich" and case.benchmark == "imb"
    ]
    four = [case for case in imb if case.ranks == 4]
    (one,) = [case for case in imb if case.function == "Alltoall" and case.ranks == 2]
    stored = leaves(run, tmp_path, [*four, one])
    skipped = [result for result in stored.results if result.result == "skip"]
    assert {result.skipped.why for result in skipped} == {TURN.why}
    assert sorted(result.case.key() for result in skipped if result.case) == sorted(
        case.key() for case in four
    )
    # The job and what waits for it; a run narrowed by -p has no comparison.
    kinds = sorted(result.kind for result in skipped if not result.case)
    assert kinds == ["curves", "job", "launches"]
    assert {one.result for one in stored.results} == {"pass", "skip"}
    verdict = judge(expected, stored)
    assert sorted(one.key() for one, _ in verdict.skipped) == sorted(case.key() for case in four)
    assert not [fault for fault in verdict.faults if "skip" in fault]


def test_the_functions_beyond_the_default_are_left_without_the_others(run, tmp_path):
    full = matrix(site.gather(ROOT / "site-config"), "testbed", ["gige"], all_functions=True)
    job = PlannedJob("gige", "mpich", "imb", 2, default=False)
    cases = [case for case in full.cases if job_of(case, 2) == job]
    stored = leaves(run, tmp_path, cases, "-R")
    skipped = {result.case.key() for result in stored.results if result.skipped and result.case}
    assert skipped == {case.key() for case in cases}
    assert any(result.case and result.case.function == "PingPong" for result in stored.results)


def test_a_list_that_cannot_be_read_fails_every_job(run, tmp_path):
    (tmp_path / "left.json").write_text("[{")
    ran = run(tmp_path, *DRY, NETPROOF_LEFT=str(tmp_path / "left.json"))
    assert ran.returncode == 1
    failed = [r for r in session.load(tmp_path / "run-0.json").results if r.result == "fail"]
    assert failed
    assert all("does not tell what to leave" in result.reason for result in failed)


def test_nodes_are_measured_in_pairs_unless_all_that_measures_them_is_left(run, tmp_path, expected):
    imb = [case for case in expected.cases if case.benchmark == "imb"]
    here = [case for case in imb if case.environment == "mpich"]
    for cases, result in ((here, "pass"), (imb, "skip")):
        # Both environments; one of them measures it.
        stored = leaves(run, tmp_path / result, cases, "-p", "intelmpi")
        (job,) = [one for one in stored.results if one.name.startswith("PairJob")]
        assert (job.environment, job.result) == ("mpich", result)
