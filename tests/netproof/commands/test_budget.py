"""A night measures the jobs that waited longest, and no job waits forever."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from netproof.commands.night import left_for_another_night
from netproof.site import site
from netproof.site.matrix import Matrix, PlannedJob, domain_of, jobs, matrix
from netproof.store.durations import Expected, Past

ROOT = Path(__file__).resolve().parents[3]
FIRST = datetime(2026, 11, 1)


@pytest.fixture(scope="module")
def expected() -> Matrix:
    return matrix(site.gather(ROOT / "site-config"), "testbed")


def after(order: list[PlannedJob]) -> Past:
    """Return jobs that ran on days of their own, in this order."""
    days = {job: FIRST + timedelta(days=day) for day, job in enumerate(order)}
    return Past(tried=days, measured=days)


def each(several, seconds: float | None) -> dict[PlannedJob, Expected]:
    return {job: Expected(seconds, "") for job in several}


def test_what_waited_longest_runs_first_and_never_is_longest(expected):
    several = list(jobs(expected))[:4]
    past = after([several[2], several[0], several[3]])
    left = left_for_another_night(each(several, 60), past, expected, 120)
    assert set(several) - set(left) == {several[1], several[2]}
    assert left[several[0]].why == (
        "NetPIPE, last measured 2026-11-02; takes about 60 s, and 0 s were left"
    )
    assert all(one.planned for one in left.values())


def test_a_job_that_does_not_fit_makes_room_for_a_shorter_one(expected):
    long, longer, short = list(jobs(expected))[:3]
    times = {**each([long, short], 60), longer: Expected(600, "")}
    left = left_for_another_night(times, after([long, longer, short]), expected, 120)
    assert set(left) == {longer}


def test_a_job_longer_than_the_budget_runs_alone_when_it_waited_longest(expected):
    long, longer, short = list(jobs(expected))[:3]
    times = {**each([long, short], 60), longer: Expected(6000, "")}
    left = left_for_another_night(times, after([longer, long, short]), expected, 120)
    assert set(left) == {long, short}


def test_a_job_of_unknown_length_runs_alone(expected):
    several = list(jobs(expected))[:3]
    past = after(several[:1])
    left = left_for_another_night(each(several, None), past, expected, 3600)
    assert len(left) == 2
    assert {one.why.partition("; ")[2] for one in left.values()} == {
        "nobody knows yet how long it takes"
    }


def test_the_first_night_measures_all(expected):
    several = list(jobs(expected))
    assert left_for_another_night(each(several, None), Past(), expected, 60) == {}
    assert left_for_another_night(each(several, None), after([several[0]]), expected, 60)


def test_every_contention_domain_has_all_of_the_budget(expected):
    partitions = {
        name: entry.model_copy(update={"contention_domain": name})
        for name, entry in expected.partitions.items()
    }
    apart = dataclasses.replace(expected, partitions=partitions)
    several = jobs(expected)
    left = left_for_another_night(each(several, 60), Past(), apart, 90)
    assert sorted(domain_of(job, apart) for job in set(several) - set(left)) == [
        "fast-ethernet",
        "gige",
    ]


@pytest.mark.parametrize("seconds", [100, 700, None])
def test_night_after_night_every_job_has_its_turn(expected, seconds):
    several = jobs(expected)
    tried: dict[PlannedJob, datetime] = {}
    for night in range(len(several)):
        past = Past(tried=tried, measured=tried)
        left = left_for_another_night(each(several, seconds), past, expected, 600)
        tried = tried | dict.fromkeys(set(several) - set(left), FIRST + timedelta(days=night))
    assert set(tried) == set(several)
