"""The effects of load: the conclusion, the table, plain values and the page."""

from __future__ import annotations

import dataclasses
import html
from pathlib import Path

import pytest
from made_text import printed

from netproof.experiments import load
from netproof.experiments.load import CauseKind, Factor, LoadCause, Loaded
from netproof.present import loads as shown
from netproof.present.html.folder import page_of

JOB = Path(__file__).resolve().parents[2] / "data" / "jobs" / "load"


@pytest.fixture(scope="module")
def recorded() -> Loaded:
    return load.of_job(JOB, "1")


def conclusion(one: Loaded):
    return shown.load_answer(one)[1][0].sentences


def text_of(one: Loaded) -> str:
    title, answer = shown.load_answer(one)
    return printed([title, *answer])


def test_the_terminal_has_a_line_for_each_and_says_what_is_not_known(recorded):
    text = text_of(recorded)
    assert "testbed:tree mpich under load" in text
    of_pairs = [line for line in text.splitlines() if "one-to-one" in line]
    (within,) = (line for line in of_pairs if "within a leaf" in line)
    assert "0.951 (0.888 to 1.02)" in within
    assert "14.3 ms → 13.5 ms" in within
    assert "99 → 100 %" in within
    assert "not known" in within
    assert "3 rounds on 8 nodes, each alone and alongside back to back" in text
    assert "Not known: a launch has 16 repetitions, and a 99th percentile takes 100." in text


def test_a_factor_has_its_interval_what_came_of_its_bound_and_times_in_a_unit_that_fits():
    for most, more in ((None, ""), (3.0, ""), (1.2, ", above 1.2"), (2.0, ", undecided at 2")):
        factor = Factor(2.0, (1.5, 2.5), most, "", 300.4, 1320.0)
        assert shown.factor_in_words(factor) == f"2 (1.5 to 2.5){more}"
        assert shown.time_in_words(factor) == "300 µs → 1.32 ms"


def test_rounds_that_do_not_count_have_their_reason(recorded):
    runs = tuple(
        dataclasses.replace(run, uncongested="of it there is no record") if run.turn.beside else run
        for run in recorded.runs
    )
    text = text_of(dataclasses.replace(recorded, runs=runs))
    assert "nothing is known: too few rounds count" in text
    assert "Does not count: bandwidth alongside one-to-one, across leaves, round 1: of" in text


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (
            LoadCause(CauseKind.SLOW_PORT, ("n1", "n2"), 1.91, None, 2, True),
            "n1 or n2: slow port: a message takes 1.91 times as long as between the others",
        ),
        (
            LoadCause(CauseKind.LOSING_PORT, ("n1",), 0.0123, None, 2, True),
            "n1: packets lost at its port: 1.2 % of the segments",
        ),
        (
            LoadCause(CauseKind.SMALL_BUFFERS, (), 0.0331, None, 12, False),
            "packets lost at all ports: 3.3 % of the segments are sent again while all others",
        ),
        (
            LoadCause(CauseKind.UPLINKS, (), 1.94, (1.85, 2.03), 6, True),
            "uplinks oversubscribed, 1:1.9: across leaves a message takes 1.94 times as long"
            " (1.85 to 2.03) while pairs cross them",
        ),
    ],
)
def test_a_cause_says_what_where_and_how_it_shows(recorded, cause, words):
    assert shown.cause_in_words(cause).startswith(words)
    one = dataclasses.replace(recorded)
    vars(one)["causes_and_doubts"] = (cause,), ("slow ports: why",)
    assert str(conclusion(one)[1]).startswith(words)
    assert "Inconclusive: slow ports: why." in shown.load_answer(one)[1][2].sentences
    assert words in html.unescape(page_of("Under load", [("answer", *shown.load_answer(one))]))
