"""The benchmark of change detection finds what it put there, and its aims are met."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ci.evaluation import histories, history, store_benchmark
from ci.evaluation.histories import AFTER, BEFORE, CUSUM, NETPROOF, NORMAL, REAL, Noise, Size

SIZE = Size(150, 200, 300)
THRESHOLD = 2e-3


def least(aim: float) -> float:
    """The least share of so many series that an aim still explains, at 3 standard deviations."""
    return aim - 3 * math.sqrt(aim * (1 - aim) / SIZE.series)


@pytest.fixture(scope="module")
def five_percent():
    change = histories.changed(BEFORE, AFTER, histories.step(0.05))
    return histories.found(NETPROOF, THRESHOLD, NORMAL, SIZE, change)


@pytest.mark.slow
def test_a_step_of_5_percent_is_found_as_often_as_it_is_to_be(five_percent):
    assert five_percent.within(3) >= least(0.80)
    assert five_percent.within(4) >= least(0.93)
    assert five_percent.within(1) <= 0.02


@pytest.mark.slow
def test_false_alarms_come_at_the_rate_that_all_methods_are_brought_to():
    rate = NETPROOF.rate(NORMAL, SIZE, THRESHOLD, BEFORE, seed=1)
    expected = histories.TARGET * rate.nights
    assert rate.alarms == pytest.approx(expected, abs=4 * math.sqrt(expected))


def test_the_cusum_is_brought_to_that_rate():
    threshold = CUSUM.calibrated(NORMAL, SIZE)
    rate = CUSUM.rate(NORMAL, Size(1000, 200, 0), threshold, BEFORE, seed=8)
    assert rate.alarms / rate.nights == pytest.approx(histories.TARGET, rel=0.5)


@pytest.mark.slow
def test_no_bad_night_of_20_percent_is_a_step():
    said = histories.bad_nights(THRESHOLD, NORMAL, SIZE, 0.20)
    assert said.as_step == 0
    assert said.as_such >= 0.98 * said.series


@pytest.mark.slow
def test_a_pool_is_better_than_one_series(five_percent):
    change = histories.changed(BEFORE, AFTER, histories.step(0.05))
    pool = Noise("normal", 4, True)
    pooled = histories.found(NETPROOF, THRESHOLD, pool, Size(0, 0, 100), change)
    assert pooled.within(3) > five_percent.within(3) + 0.05


def test_recorded_noise_is_scaled_to_2_percent_in_the_middle():
    drawn = REAL.drawn(200, 200, 1)
    spread = 1.4826 * np.median(np.abs(drawn), axis=2)
    assert np.median(spread) == pytest.approx(histories.NOISE, rel=0.3)


@pytest.mark.slow
def test_a_change_that_is_not_found_is_counted_as_such():
    change = histories.changed(BEFORE, 5, histories.step(1e-9))
    said = histories.found(NETPROOF, 1e-12, NORMAL, Size(0, 0, 10), change)
    assert (said.within(7), said.median) == (0.0, "not found")


def test_the_tables_have_a_row_for_each_job():
    rows = history.jobs(histories.SMOKE, None)
    cells = [("x",)] * len(rows)
    text = history.tables(list(zip(rows, cells, strict=True)))
    assert text.count("| x |") == len(rows)
    assert {row.table for row in rows} == set(history.HEADS)


@pytest.mark.nightly
@pytest.mark.slow
def test_a_night_more_says_what_all_nights_say_and_the_store_stays_as_it_is(tmp_path):
    folder = tmp_path / "store"
    store_benchmark.make(folder, 3, math.inf)
    before = sorted(path for path in folder.rglob("*") if path.is_file())
    found = history.added_night(folder)
    assert len({one.document for one in found.values()}) == 1
    assert sorted(path for path in folder.rglob("*") if path.is_file()) == before
