"""Which failures of a run are an answer of its references, so that today's may take their place."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from netproof.criteria import Finding, Level
from netproof.session import session
from netproof.verdict.judge import concerns

SESSIONS = Path(__file__).resolve().parents[2] / "data" / "sessions"


@pytest.fixture(scope="module")
def passed() -> session.CheckResult:
    """A check that passed."""
    stored = session.load(SESSIONS / "passed.json")
    return next(result for result in stored.results if result.measured)


def failed(result: session.CheckResult, reason: str, *levels: str) -> session.CheckResult:
    references = tuple(Finding("reference", Level(level), "it", "so") for level in levels) or None
    return dataclasses.replace(
        result, result="fail", phase="performance", reason=reason, references=references
    )


def test_a_case_that_passed_is_rejudged(passed):
    assert concerns(passed)


@pytest.mark.parametrize("level", ["fail", "undefined", "inconclusive"])
def test_so_is_what_a_reference_was_against(passed, level):
    assert concerns(failed(passed, "any words", "pass", level))


def test_so_is_what_a_reference_failed_by_the_words_of_reframe_alone(passed):
    reason = "performance error: failed to meet reference(s): latency_us=9.5 us, expected 5"
    assert concerns(failed(passed, reason))


@pytest.mark.parametrize("levels", [(), ("pass", "pass")])
def test_an_error_that_is_no_answer_of_the_references_stands(passed, levels):
    reason = "attribute error: 'NoneType' object has no attribute 'landmarks'"
    assert not concerns(failed(passed, reason, *levels))
