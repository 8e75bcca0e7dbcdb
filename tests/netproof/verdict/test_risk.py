"""Risks of buyer and seller: estimates, the rule, plans, and those of a file's bounds."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest

from netproof.errors import NetproofError
from netproof.measurement.interval import Side
from netproof.session import session
from netproof.session.session import CheckResult, Session
from netproof.verdict import derive
from netproof.verdict.derive import Scatter
from netproof.verdict.power import with_times
from netproof.verdict.references import ReferenceFile


def drawn(within: float, between: float, sessions: int, launches: int, seed: int) -> list:
    random = np.random.default_rng(seed)
    levels = between * random.standard_normal(sessions)
    return np.exp(levels[:, None] + within * random.standard_normal((sessions, launches))).tolist()


@pytest.mark.parametrize(("within", "between"), [(0.02, 0.1), (0.1, 0.0)])
def test_launches_and_sessions_are_told_apart(within, between):
    found = derive.scatter(drawn(within, between, 400, 5, 1))
    assert found.within == pytest.approx(within, rel=0.1)
    # What launches explain is no scatter of sessions.
    assert found.between == pytest.approx(between, rel=0.15, abs=0.02)
    assert (found.sessions, found.launches) == (400, 2000)


class TestOutcomes:
    SMALL = Scatter(0.01, 0.01, 10, 30)

    def test_far_from_the_bound_everything_is_certain(self):
        assert derive.outcomes(1.0, 0.8, self.SMALL)[Side.WITHIN] == 1
        assert derive.outcomes(0.5, 0.8, self.SMALL)[Side.BEYOND] == 1
        assert derive.outcomes(1.0, 1.3, self.SMALL)[Side.WITHIN] == 1
        assert derive.outcomes(2.0, 1.3, self.SMALL)[Side.BEYOND] == 1

    @pytest.mark.slow
    def test_the_worse_the_network_the_rarer_it_passes(self):
        scattering = Scatter(0.05, 0.05, 5, 15)
        curve = [derive.outcomes(ratio, 0.9, scattering) for ratio in (1.0, 0.95, 0.9, 0.8, 0.6)]
        passed = [one[Side.WITHIN] for one in curve]
        assert passed == sorted(passed, reverse=True)

    def test_a_single_launch_decides_by_its_value_until_others_are_made(self):
        found = derive.outcomes(0.79, 0.8, Scatter(0.0, 0.0, 3, 3), 1)
        assert found[Side.BEYOND] == 1


def passing(plan, ratio: float, scattering: Scatter, *, acceptances: int = 1000, seed: int = 0):
    """The share of simulated acceptances that a network of ``ratio`` passes."""
    random = np.random.default_rng(seed)
    passed = 0
    for _ in range(acceptances):
        levels = math.log(ratio) + scattering.between * random.standard_normal(plan.sessions)
        noise = scattering.within * random.standard_normal((plan.sessions, plan.launches))
        level = np.median(levels[:, None] + noise, axis=1).mean()
        passed += level >= math.log(plan.bound) if plan.bound < 1 else level <= math.log(plan.bound)
    return passed / acceptances


class TestPlan:
    @pytest.mark.parametrize("launches", [1, 3, 5])
    @pytest.mark.parametrize("larger", [True, False])
    @pytest.mark.parametrize(
        ("within", "between", "margin"), [(0.02, 0.03, 0.05), (0.1, 0.05, 0.1), (0.2, 0.2, 0.2)]
    )
    def test_a_thousand_acceptances_have_the_risks_that_it_states(
        self, within, between, margin, launches, larger
    ):
        scattering = Scatter(within, between, 10, 30)
        plan = derive.plan(scattering, margin, launches=launches, larger=larger)
        assert plan.risk <= derive.RISK
        worse = 1 - margin if larger else 1 / (1 - margin)
        # Three standard errors of a share of 5 % of a thousand.
        most = derive.RISK + 3 * math.sqrt(derive.RISK * (1 - derive.RISK) / 1000)
        assert 1 - passing(plan, 1.0, scattering, seed=1) <= most
        assert passing(plan, worse, scattering, seed=2) <= most

    @pytest.mark.parametrize(
        ("scatter", "margin", "said"),
        [*((0.1, margin, "is no share") for margin in (0, 1, -0.1)), (1.0, 0.01, "more than 1000")],
    )
    def test_a_margin_that_is_no_share_or_takes_too_many_sessions_is_refused(
        self, scatter, margin, said
    ):
        with pytest.raises(NetproofError, match=said):
            derive.plan(Scatter(scatter, scatter, 3, 9), margin)


SESSIONS = Path(__file__).resolve().parents[2] / "data" / "sessions"
REFERENCES = """\
ImbPingPong:
  $index: [$partition, $environ, ranks]
  'testbed:.*':
    '.*':
      2:
        latency_us: [6, null, 0.5, us]
        peak_mb_s: [100, null, null, MB/s]
"""


def slowed(result: CheckResult, factor: float) -> CheckResult:
    if not result.measured:
        return result
    measured = result.measured
    launches = [
        dataclasses.replace(
            one,
            curves=(with_times(one.curve, [factor * time for time in one.curve.time_us]),),
        )
        for one in measured.launches
    ]
    return dataclasses.replace(result, measured=measured.with_launches(launches))


@pytest.fixture(scope="module")
def several() -> list[Session]:
    """Three sessions: a recorded one, and the same three times as fast and as slow."""
    stored = session.load(SESSIONS / "healthy.json")
    return [
        dataclasses.replace(stored, results=tuple(slowed(one, factor) for one in stored.results))
        for factor in (1.0, 0.3, 3.0)
    ]


@pytest.fixture
def references(tmp_path) -> ReferenceFile:
    path = tmp_path / "testbed.yaml"
    path.write_text(REFERENCES)
    return ReferenceFile(path)


def of(several, references, margin=0.2):
    found, without = derive.risks_of_sessions(
        several, references, "testbed", "gige", margin, tries=200
    )
    return {
        one.variable: one
        for one in found
        if (one.case.environment, one.case.function) == ("mpich", "PingPong")
    }, without


@pytest.mark.slow
def test_a_bound_has_a_curve_and_a_landmark_without_one_only_a_plan(several, references):
    found, _ = of(several, references)
    latency = found["latency_us"]
    assert latency.bound == pytest.approx(1.5)
    assert latency.agreed == 6
    assert latency.seller() == pytest.approx(1 - latency.curve[1.0][Side.WITHIN])
    assert latency.buyer(0.2) >= latency.buyer(0.5)
    assert (found["peak_mb_s"].bound, found["peak_mb_s"].curve) == (None, {})
    assert found["peak_mb_s"].plan is not None


@pytest.mark.slow
def test_a_case_that_a_session_lacks_has_a_reason(several, references):
    results = tuple(
        one for one in several[2].results if one.case and one.case.function != "PingPong"
    )
    lacking = dataclasses.replace(several[2], results=results)
    found, without = of([*several[:2], lacking], references)
    assert found == {}
    assert {case.function for case in without} == {"PingPong"}
    assert set(without.values()) == {"2 of 3 sessions have measured it"}


def test_two_sessions_do_not_tell(several, references):
    with pytest.raises(NetproofError, match="2 of at least 3 sessions"):
        of(several[:2], references)
