"""A long launch on the testbed: its length, its report, its percentiles, and pauses."""

from __future__ import annotations

import math
import random
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netproof.errors import NetproofError
from netproof.experiments import tails
from netproof.experiments.tails import MOST_CALLS, PAUSE_TIMES, TRIALS, Tail, percentile
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


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[500, [[12.0]]]", r"tails-watch\.json:"),
        ("[500, [[12.0, 10]]]", r"tails-watch\.json:"),
        ("", r"tails-watch\.json:"),
        (None, "did not come to the end of its long launch"),
    ],
)
def test_an_output_that_was_not_watched_to_its_end_is_not_whole(folder, text, reason):
    (folder / tails.WATCH_FILE).unlink()
    if text is not None:
        (folder / tails.WATCH_FILE).write_text(text)
    with pytest.raises(NetproofError, match=reason):
        tails.of_job(folder, "1")


@pytest.mark.slow
@pytest.mark.parametrize(("call_s", "calls"), [(0.002, 6000), (1e-5, MOST_CALLS), (1.0, TRIALS[0])])
def test_as_many_calls_as_fill_the_time(folder, call_s, calls):
    planned = JobPlan.read(folder / PLAN_FILE)
    planned = replace(planned, asked={**planned.asked, "seconds": 12.0})
    walls(folder, 1 + TRIALS[0] * call_s, 1 + TRIALS[1] * call_s)
    step, number = tails.long_step(planned, folder)
    assert number == pytest.approx(calls, rel=0.001)
    assert (step.name, step.limit_s) == ("tail.1", planned.partition.step_limit_s + 24)
    listed = [path for path in folder.glob("sizes-*") if path.name in step.command]
    assert len(listed[0].read_text().splitlines()) == pytest.approx(calls, rel=0.001)
    assert tails.enough(folder) is (call_s == 1.0)


def test_one_long_trial_is_enough_and_one_that_failed_ends_it(folder):
    planned = JobPlan.read(folder / PLAN_FILE)
    walls(folder, 10.0)
    assert tails.enough(folder)
    assert tails.call_s(folder) == 10.0 / TRIALS[0]
    walls(folder, 1.0, status=3)
    with pytest.raises(NetproofError, match=r"trial\.1 ended with status 3"):
        tails.long_step(planned, folder)
    walls(folder)
    with pytest.raises(NetproofError, match="no trial was made"):
        tails.long_step(planned, folder)


def with_times(tail: Tail, times: list[float], **load: float) -> Tail:
    extras = {**tail.partition_extras, "load": load}
    # Nothing disturbs these.
    extras["criteria"] = {"disturbance": {"others": 1, "steal": 1}}
    looks = tuple((100 + 0.0003 * count, count) for count in range(50, len(times), 50))
    looks = (*looks, (100 + 0.0003 * len(times), len(times)))
    return replace(tail, times_us=tuple(times), partition_extras=extras, watched=looks)


@pytest.mark.parametrize(("level", "rank", "few"), [(50.0, 5000, 2), (99.9, 9990, 1000)])
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


def looked_at(tail: Tail, times: list[float], second_half: float) -> Tail:
    """2000 calls seen in 2 s, with so much more between both halves."""
    looks = [(100 + 0.02 * place, 20 * place) for place in range(1, 101)]
    later = [(moment + second_half * (count > 1000), count) for moment, count in looks]
    return replace(with_times(tail, times), watched=tuple(later))


def test_a_pause_has_the_moment_when_its_call_was_seen(recorded):
    times = [500.0] * 2000
    times[1000] = 2_500_000.0
    (only,) = looked_at(recorded, times, 5.0).pauses
    assert (only.until, only.took_us, only.in_call) == (106.02, 5_000_000, True)


def test_a_time_without_calls_is_a_pause_too(recorded):
    """The benchmark waited between two calls, which is in no time."""
    found = looked_at(recorded, [30.0] * 2000, 1.5)
    (only,) = found.pauses
    assert not only.in_call
    assert only.until == 102.52
    assert only.took_us == pytest.approx(1.52e6)
    assert found.paused_share == pytest.approx(1.52 / 3.48)
    assert looked_at(recorded, [30.0] * 2000, 0.05).pauses == ()


def test_a_disturbed_launch_leaves_its_bound_undecided(recorded):
    found = with_times(recorded, [30.0] * 49_800 + [90.0] * 200, most_999th=2.0)
    assert (found.beyond, found.undecided) == (True, False)
    loads = tuple(replace(one, others_share=1.0) for one in found.launch.loads)
    extras = {**found.partition_extras, "criteria": {"disturbance": {"others": 0.2, "steal": 1}}}
    busy = replace(found, partition_extras=extras, launch=replace(found.launch, loads=loads))
    assert busy.disturbed
    assert (busy.beyond, busy.undecided) == (False, True)
