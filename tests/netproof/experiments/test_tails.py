"""A long launch on the testbed: its length, and its report."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import pytest

from netproof.errors import NetproofError
from netproof.experiments import tails
from netproof.experiments.tails import MOST_CALLS, TRIALS, Tail
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
    assert len(recorded.times_us) == int((JOB / tails.CALLS_FILE).read_text())
    assert [use.node for use in recorded.launch.ranks] == list(recorded.nodes)
    moments = [recorded.moment(call) for call in range(len(recorded.times_us))]
    assert moments == sorted(moments)
    assert recorded.launch.start < moments[0] < moments[-1]
    # It was seen at most two looks after it.
    assert moments[-1] < recorded.launch.start + recorded.launch.wall_s + 2 * tails.WATCH_S


def test_a_report_keeps_all_of_it(recorded):
    assert Tail.from_json(json.loads(json.dumps(recorded.as_json()))) == recorded


def test_two_trials_tell_what_starting_takes_and_what_a_call_takes(folder):
    first, second = TRIALS
    walls(folder, 1 + first * 0.002, 1 + second * 0.002)
    assert tails.call_s(folder) == pytest.approx(0.002)
    assert not tails.enough(folder)


def test_one_long_trial_is_enough(folder):
    walls(folder, 10.0)
    assert tails.enough(folder)
    assert tails.call_s(folder) == 10.0 / TRIALS[0]


@pytest.mark.parametrize("text", ["", "12.0\n", "12.0\t10\n", "soon\t10\n"])
def test_an_output_that_was_not_watched_to_its_end_is_not_whole(folder, text):
    (folder / tails.WATCH_FILE).write_text(text)
    with pytest.raises(NetproofError, match=r"tails-watch\.tsv: "):
        tails.of_job(folder, "1")


@pytest.mark.slow
@pytest.mark.parametrize(("call_s", "calls"), [(0.002, 6000), (1e-5, MOST_CALLS), (1.0, TRIALS[0])])
def test_as_many_calls_as_fill_the_time(folder, call_s, calls):
    planned = JobPlan.read(folder / PLAN_FILE)
    planned = dataclasses.replace(planned, asked={**planned.asked, "seconds": 12.0})
    walls(folder, 1 + TRIALS[0] * call_s, 1 + TRIALS[1] * call_s)
    step = tails.long_step(planned, folder)
    assert int((folder / tails.CALLS_FILE).read_text()) == pytest.approx(calls, rel=0.001)
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


def test_a_job_that_drew_no_long_launch_says_so(folder):
    (folder / tails.CALLS_FILE).unlink()
    with pytest.raises(NetproofError, match="did not come to draw its long launch"):
        tails.of_job(folder, "1")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"nodes": ["gige-3", "gige-4"]}, "ran on other nodes"),
        ({"times_us": []}, "has no times"),
        ({"times_us": [1.0, -2.0]}, "has no times, or invalid ones"),
        ({"watched": []}, "was not watched until its last call"),
        ({"watched": [[1.0, 5]]}, "was not watched until its last call"),
        ({"partition_extras": {}}, "cannot be read"),
    ],
)
def test_what_is_none_is_refused(recorded, change, said):
    with pytest.raises(NetproofError, match=said):
        Tail.from_json({**recorded.as_json(), **change})
