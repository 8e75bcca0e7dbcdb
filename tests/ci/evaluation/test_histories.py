"""The benchmark of change detection finds what it put there, and its aims are met."""

from __future__ import annotations

import math

import pytest

from ci.evaluation import histories
from ci.evaluation.histories import AFTER, BEFORE, NORMAL, Size

SIZE = Size(150, 200, 300)
THRESHOLD = 2e-3


def least(aim: float) -> float:
    """The least share of so many series that an aim still explains, at 3 standard deviations."""
    return aim - 3 * math.sqrt(aim * (1 - aim) / SIZE.series)


@pytest.fixture(scope="module")
def five_percent():
    change = histories.changed(BEFORE, AFTER, histories.step(0.05))
    return histories.found(THRESHOLD, NORMAL, SIZE, change)


@pytest.mark.slow
def test_a_step_of_5_percent_is_found_as_often_as_it_is_to_be(five_percent):
    assert five_percent.within(3) >= least(0.80)
    assert five_percent.within(4) >= least(0.93)
    assert five_percent.within(1) <= 0.02


@pytest.mark.slow
def test_false_alarms_come_at_the_rate_that_the_threshold_is_brought_to():
    found, nights = histories.false_alarms(NORMAL, SIZE, THRESHOLD, BEFORE, seed=1)
    expected = histories.TARGET * nights
    assert found == pytest.approx(expected, abs=4 * math.sqrt(expected))


def test_the_tables_have_every_row():
    rows = histories.rows(histories.SMOKE)
    text = histories.tables(rows, [("x",)] * len(rows))
    assert text.count("| x |") == len(rows)
    assert {table for table, *_ in rows} == set(histories.HEADS)
