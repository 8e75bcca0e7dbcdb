"""Risks of a file's bounds, from recorded sessions."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from netproof.errors import NetproofError
from netproof.session import session
from netproof.session.measured import Measured
from netproof.session.session import CheckResult, Session
from netproof.verdict import risk
from netproof.verdict.power import with_times
from netproof.verdict.references import ReferenceFile

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
    measured = Measured.from_json(result.measured)
    launches = [
        dataclasses.replace(
            one, curve=with_times(one.curve, [factor * time for time in one.curve.time_us])
        )
        for one in measured.launches
    ]
    changed = measured.with_launches(launches).as_json()
    return dataclasses.replace(result, measured={**result.measured, **changed})


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
    found, without = risk.risks_of_sessions(
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
    assert latency.curve.bound == pytest.approx(1.5)
    assert latency.agreed == 6
    assert 0 <= latency.curve.seller() <= 1
    assert latency.curve.buyer(0.2) >= latency.curve.buyer(0.5)
    assert found["peak_mb_s"].curve is None
    assert found["peak_mb_s"].plan is not None


@pytest.mark.slow
def test_sessions_that_differ_scatter_between_sessions(several, references):
    latency = of(several, references)[0]["latency_us"]
    assert 0.5 < latency.scatter.between < 2
    assert latency.scatter.sessions == 3
    assert latency.plan.sessions > 1


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
