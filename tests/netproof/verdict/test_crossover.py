"""Where a function breaks down: the least rank count at which it is red, and at which sizes."""

from __future__ import annotations

from pathlib import Path

import pytest

from netproof.criteria import Finding, Level
from netproof.session import session
from netproof.verdict import judging
from netproof.verdict.explain import Crossover, crossovers
from netproof.verdict.subject import Ruling
from netproof.verdict.verdict import Judged, Verdict

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
RECORDED = ROOT / "tests" / "data" / "sessions"


@pytest.fixture
def verdict(tmp_path, monkeypatch) -> Verdict:
    monkeypatch.setenv("RFM_CONFIG_PATH", str(ROOT / "site-config"))
    monkeypatch.setenv("RFM_REPORT_FILE", str(tmp_path / "run-{sessionid}.json"))
    return judging.judge_session(
        session.load(RECORDED / "two-switches.json"), system="testbed"
    ).verdict


def of(verdict: Verdict, function: str) -> Crossover:
    return next(
        one
        for one in crossovers(verdict)
        if (one.case.partition, one.case.environment, one.case.function)
        == ("gige", "mpich", function)
    )


def red(judged: Judged, *sizes: int, criterion: str = "envelope") -> Judged:
    """The case, failed by one ruling that speaks of these sizes."""
    finding = Finding(criterion, Level.FAIL, "there", "too slow", value=12.0, size=sizes[0])
    ruling = Ruling(finding, Level.FAIL, "too slow", others=sizes[1:])
    return Judged(judged.case, judged.result, (), rulings=(ruling,), measured=judged.measured)


def test_a_function_that_is_red_nowhere_says_up_to_which_rank_count(verdict):
    found = of(verdict, "Barrier")
    assert found.least is None
    assert found.sentence() == "not red up to 4 ranks"


def test_the_least_red_rank_count_is_where_it_breaks_down(verdict):
    two, four = of(verdict, "Sendrecv").cases
    broken = Crossover((two, red(four, 65536, 131072, 32768)))
    assert broken.least == 4
    assert broken.sentence() == "red at 4 ranks, 32768 to 131072 bytes by envelope; not at 2"


def test_sizes_that_are_no_neighbours_are_listed_apart(verdict):
    two, four = of(verdict, "Sendrecv").cases
    broken = Crossover((red(two, 1024, 65536, criterion="jump"), red(four, 1024, 65536)))
    assert broken.least == 2
    assert broken.sentence() == (
        "red at 2 ranks, 1024, 65536 bytes by jump; at 4 ranks, 1024, 65536 bytes by envelope"
    )


def test_all_criteria_that_fail_it_are_named(verdict):
    (two, _) = of(verdict, "Sendrecv").cases
    several = [red(two, 1024, criterion=name).rulings[0] for name in ("jump", "dropout", "score")]
    broken = Judged(two.case, two.result, (), rulings=tuple(several), measured=two.measured)
    assert (
        Crossover((broken,)).sentence() == "red at 2 ranks, 1024 bytes by jump, dropout and score"
    )


def test_what_did_not_run_broke_down_nowhere_and_is_said(verdict):
    found = of(verdict, "Alltoall")
    assert (found.least, found.missing) == (None, (2, 4))
    assert found.sentence() == "did not run at 2 and 4 ranks"


def test_a_case_that_ended_without_a_curve_is_red_without_sizes(verdict):
    two, four = of(verdict, "Sendrecv").cases
    faulty = Judged(four.case, four.result, ("fail in sanity: ended at its limit",))
    assert Crossover((two, faulty)).sentence() == "red at 4 ranks, not measured whole; not at 2"


def test_a_configuration_of_which_nothing_was_measured_is_left_out(verdict):
    places = {(one.case.partition, one.case.environment) for one in crossovers(verdict)}
    assert places == {
        (partition, environment)
        for partition in ("gige", "fast-ethernet")
        for environment in ("mpich", "intelmpi")
    }


def unsure(judged: Judged) -> Judged:
    """The case, with one ruling that is inconclusive."""
    finding = Finding("envelope", Level.INCONCLUSIVE, "there", "undecided", value=9.0, size=1024)
    ruling = Ruling(finding, Level.INCONCLUSIVE, "undecided")
    return Judged(judged.case, judged.result, (), rulings=(ruling,), measured=judged.measured)


def test_what_is_inconclusive_is_neither_red_nor_not(verdict):
    two, four = of(verdict, "Sendrecv").cases
    above = Crossover((two, unsure(four)))
    assert (above.red, above.least, above.inconclusive) == ((), None, (4,))
    assert above.sentence() == "not red up to 2 ranks; inconclusive at 4 ranks"
    below = Crossover((unsure(two), four))
    assert below.sentence() == "inconclusive at 2 ranks"
    both = Crossover((unsure(two), red(four, 1024)))
    assert both.least == 4
    assert both.sentence() == "red at 4 ranks, 1024 bytes by envelope; inconclusive at 2 ranks"
