"""Counts of a verdict's cases by result."""

from __future__ import annotations

import pytest

from netproof.verdict.explain import counts


@pytest.mark.parametrize(
    ("session", "system"), [("sick.json", "testbed:gige"), ("two-switches.json", None)]
)
def test_each_case_is_counted_once(judge, session, system):
    found = counts(judge(session, system).verdict)
    assert found.cases == found.passed + found.inconclusive + found.failed + found.not_run
    assert found.cases == len(judge(session, system).verdict.cases)
