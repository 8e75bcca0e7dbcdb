"""A long launch on the testbed: its length, its report, its percentiles, and pauses."""

from __future__ import annotations

import dataclasses
import math
import random
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netproof.errors import NetproofError
from netproof.experiments import tails
from netproof.experiments.tails import (
    BOUNDED,
    MOST_CALLS,
    PAUSE_TIMES,
    TRIALS,
    Tail,
    percentile,
)
from netproof.session import job_files
from netproof.session.plan import PLAN_FILE, JobPlan

JOB = Path(__file__).resolve().parents[2] / "data" / "jobs" / "tails"


@pytest.fixture(scope="module")
def recorded() -> Tail:
    return tails.of_job(JOB, "1")


@pytest.fixture
def folder(tmp_path) -> Path:
    return shutil.copytree(JOB, tmp_path / "job")


def walls(folder: Path, *seconds: float, status: int = 0) -> None:
    """Trials that took so long."""
    lines = ["step\tstart\tend\tstatus\tlimit_s"]
    lines += [
        f"trial.{number}\t100.0\t{100 + wall}\t{status}\t200"
        for number, wall in enumerate(seconds, 1)
    ]
    (folder / "launches.tsv").write_text("".join(f"{line}\n" for line in lines))


def test_a_recorded_job_is_whole(recorded):
    assert len(recorded.times_us) == job_files.noted(JOB / tails.WATCH_FILE, list)[0]
    assert {*recorded.sent_again} == set(recorded.nodes)
    assert recorded.launch.ranks == recorded.nodes
    moments = [recorded.moment(call) for call in range(len(recorded.times_us))]
    assert moments == sorted(moments)
    assert recorded.launch.start < moments[0] < moments[-1]
    # It was seen at most two looks after it.
    assert moments[-1] < recorded.launch.start + recorded.launch.wall_s + 2 * tails.WATCH_S


def test_two_trials_tell_what_a_call_takes_and_one_long_one_is_enough(folder):
    first, second = TRIALS
    walls(folder, 1 + first * 0.002, 1 + second * 0.002)
    assert tails.call_s(folder) == pytest.approx(0.002)
    assert not tails.enough(folder)
    walls(folder, 10.0)
    assert tails.enough(folder)
    assert tails.call_s(folder) == 10.0 / first


@pytest.mark.parametrize(
    "text", ["", "[500, [[12.0]]]", "[500, [[12.0, 10]]]", '[500, [["soon", 10]]]']
)
def test_an_output_that_was_not_watched_to_its_end_is_not_whole(folder, text):
    (folder / tails.WATCH_FILE).write_text(text)
    with pytest.raises(NetproofError, match=r"tails-watch\.json:"):
        tails.of_job(folder, "1")


@pytest.mark.slow
@pytest.mark.parametrize(("call_s", "calls"), [(0.002, 6000), (1e-5, MOST_CALLS), (1.0, TRIALS[0])])
def test_as_many_calls_as_fill_the_time(folder, call_s, calls):
    planned = JobPlan.read(folder / PLAN_FILE)
    planned = dataclasses.replace(planned, asked={**planned.asked, "seconds": 12.0})
    walls(folder, 1 + TRIALS[0] * call_s, 1 + TRIALS[1] * call_s)
    step, number = tails.long_step(planned, folder)
    assert number == pytest.approx(calls, rel=0.001)
    assert (step.name, step.limit_s) == ("tail.1", planned.partition.step_limit_s + 24)
    listed = [path for path in folder.glob("sizes-*") if path.name in step.command]
    assert len(listed[0].read_text().splitlines()) == pytest.approx(calls, rel=0.001)


def test_a_trial_that_failed_ends_it(folder):
    planned = JobPlan.read(folder / PLAN_FILE)
    walls(folder, 1.0, status=3)
    with pytest.raises(NetproofError, match=r"trial\.1 ended with status 3"):
        tails.long_step(planned, folder)
    (folder / "launches.tsv").write_text("step\tstart\tend\tstatus\tlimit_s\n")
    with pytest.raises(NetproofError, match="no trial was made"):
        tails.long_step(planned, folder)


def test_a_launch_that_lacks_calls_is_not_whole(folder):
    path = folder / "tail.1.out"
    lines = path.read_text().splitlines(keepends=True)
    at = next(place for place, line in enumerate(lines) if line.split()[:2] == ["8", "1"])
    path.write_text("".join([*lines[:at], *lines[at + 1 :]]))
    with pytest.raises(NetproofError, match=r"has \d+ of \d+ calls"):
        tails.of_job(folder, "1")


def test_a_job_that_did_not_end_its_long_launch_says_so(folder):
    (folder / tails.WATCH_FILE).unlink()
    with pytest.raises(NetproofError, match="did not come to the end of its long launch"):
        tails.of_job(folder, "1")


def with_times(tail: Tail, times: list[float], **load: float) -> Tail:
    extras = {**tail.partition_extras, "load": load}
    # Nothing disturbs these.
    extras["criteria"] = {"disturbance": {"others": 1, "steal": 1}}
    looks = tuple((100 + 0.0003 * count, count) for count in range(50, len(times), 50))
    looks = (*looks, (100 + 0.0003 * len(times), len(times)))
    return dataclasses.replace(tail, times_us=tuple(times), partition_extras=extras, watched=looks)


@pytest.mark.parametrize(
    ("level", "rank", "few"), [(50.0, 5000, 2), (99.0, 9900, 100), (99.9, 9990, 1000)]
)
def test_a_percentile_is_the_nearest_rank_and_none_that_would_be_the_longest(level, rank, few):
    assert percentile([float(value) for value in range(1, 10_001)], level)[0] == rank
    assert percentile([1.0] * (few - 1), level) is None
    assert percentile([1.0] * (few + 1), level) is not None


@given(st.lists(st.floats(0.1, 1e6), min_size=2, max_size=400))
def test_a_percentile_lies_in_its_interval_and_they_rise(times):
    found = [percentile(sorted(times), level) for level in tails.LEVELS]
    known = [one for one in found if one is not None]
    for one in known:
        assert one[1][0] <= one[0] <= one[1][1]
    values = [value for value, _ in known]
    assert values == sorted(values)


@pytest.mark.slow
def test_intervals_cover_the_truth_in_95_of_100():
    """300 launches of 3,000 calls of an exponential distribution, whose quantiles are known."""
    draw, covered = random.Random(7), dict.fromkeys((50.0, 90.0, 99.0), 0)
    for _ in range(300):
        ordered = sorted(draw.expovariate(1.0) for _ in range(3000))
        for level in covered:
            low, high = percentile(ordered, level)[1]
            covered[level] += low <= -math.log(1 - level / 100) <= high
    # 4 standard errors of a share of 0.95 of 300 are 0.05.
    assert all(count >= 0.9 * 300 for count in covered.values()), covered
    assert any(count < 300 for count in covered.values())


def test_a_pause_is_far_above_the_median_and_the_sites_least(recorded):
    times = [30.0] * 2000
    times[700], times[1500] = 2_000_000.0, 999.0
    (only,) = with_times(recorded, times).pauses
    assert only.took_us == 4_000_000
    several = with_times(recorded, times, pause_us=500).pauses
    assert [one.took_us for one in several] == [4_000_000, 1998]
    slow = [2000.0] * 500 + [2000.0 * PAUSE_TIMES - 1]
    assert with_times(recorded, slow).pauses == ()


def looked_at(tail: Tail, times: list[float], looks: list[tuple[float, int]]) -> Tail:
    return dataclasses.replace(with_times(tail, times), watched=tuple(looks))


def test_a_pause_has_the_moment_when_its_call_was_seen(recorded):
    times = [500.0] * 2000
    times[1000] = 2_500_000.0
    looks = [(100 + 0.02 * place, 20 * place) for place in range(1, 51)]
    looks += [(106 + 0.02 * place, 1000 + 20 * place) for place in range(1, 51)]
    (only,) = looked_at(recorded, times, looks).pauses
    assert (only.until, only.took_us, only.in_call) == (106.02, 5_000_000, True)


def test_a_time_without_calls_is_a_pause_too(recorded):
    """The benchmark waited between two calls, which is in no time."""
    looks = [(100 + 0.02 * place, 20 * place) for place in range(1, 51)]
    looks += [(102.5 + 0.02 * place, 1000 + 20 * place) for place in range(1, 51)]
    found = looked_at(recorded, [30.0] * 2000, looks)
    (only,) = found.pauses
    assert not only.in_call
    assert only.until == 102.52
    assert only.took_us == pytest.approx(1.52e6)
    assert found.paused_share == pytest.approx(1.52 / (looks[-1][0] - looks[0][0]))
    late = [(moment, count) for moment, count in looks if count <= 1000]
    late += [(moment - 1.45, count) for moment, count in looks if count > 1000]
    assert looked_at(recorded, [30.0] * 2000, late).pauses == ()


@pytest.mark.parametrize(
    ("most", "beyond", "undecided"), [(None, False, False), (5.0, False, False), (2.0, True, False)]
)
def test_a_bound_is_of_the_99_9th_percentile_over_the_median(recorded, most, beyond, undecided):
    times = [30.0] * 49_800 + [90.0] * 200
    found = with_times(recorded, times, **({} if most is None else {"most_999th": most}))
    assert found.percentiles[BOUNDED][0] == 90
    assert (found.beyond, found.undecided) == (beyond, undecided)


def test_too_few_calls_or_a_disturbance_leave_a_bound_undecided(recorded):
    few = with_times(recorded, [30.0] * 500, most_999th=2.0)
    assert few.undecided
    assert not few.beyond
    strict = with_times(recorded, [30.0] * 49_000 + [300.0] * 1000, most_999th=2.0)
    assert strict.beyond
    criteria = {"disturbance": {"others": 0.2, "steal": 1}}
    extras = {**strict.partition_extras, "criteria": criteria}
    loads = tuple(dataclasses.replace(one, others_share=0.5) for one in strict.launch.loads)
    launch = dataclasses.replace(strict.launch, loads=loads)
    disturbed = dataclasses.replace(strict, partition_extras=extras, launch=launch)
    assert disturbed.disturbed
    assert disturbed.undecided
    assert not disturbed.beyond
