"""Measuring again: what NetPIPE is asked for, and what of it can be used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netproof import codec
from netproof.benchmarks import netpipe
from netproof.criteria import Finding, Level
from netproof.criteria.settings import ConfirmSettings, needed_sizes
from netproof.jobs import repeat_cases
from netproof.jobs.repeat_cases import netpipe_sweeps
from netproof.measurement.case import Case, Curve
from netproof.session.job_files import JobFolder
from netproof.session.measured import Launch

CASE = Case("testbed", "gige", "mpich", "netpipe", "tcp", 2, 1)
CRASHED_ONCE = Path(__file__).resolve().parents[2] / "data" / "jobs" / "crashed-once"
MOST_BYTES = 524288
SIZES = [size for size in netpipe.sizes(1, MOST_BYTES, 0) if size >= 4]


def flag(size: int, *compared: int) -> Finding:
    return Finding("jump", Level.FAIL, "x", "x", size=size, value=20.0, compared_sizes=compared)


@given(st.lists(st.sampled_from(SIZES), min_size=1, max_size=4), st.sampled_from(SIZES))
def test_netpipes_sweeps_have_all_that_confirming_needs(sizes, compared):
    settings = ConfirmSettings(most_bytes=MOST_BYTES)
    flags = [flag(size, compared) for size in sizes]
    measured = {size for sweep in netpipe_sweeps(flags, settings) for size in sweep.sizes()}
    for finding in flags:
        window, needed = needed_sizes(finding, settings)
        assert needed <= measured
        assert len([size for size in measured if size in window]) >= min(8, len(window))
    assert max(measured) <= MOST_BYTES + 1


def test_one_sweep_does_for_a_flag_and_neighbours_that_it_leaves_out_have_calls_of_their_own():
    (sweep,) = netpipe_sweeps([flag(49152, 32768)], ConfirmSettings())
    assert (sweep.lower, sweep.perturbation) == (16384, 1)
    _, *alone = netpipe_sweeps([flag(4)], ConfirmSettings())
    assert [(one.lower, one.upper) for one in alone] == [(5, 5)]


@pytest.fixture
def job(tmp_path, monkeypatch) -> Path:
    """Folder of a job of two launches, each of a sweep and a call for one more size."""
    monkeypatch.setattr(JobFolder, "reader", lambda folder, case: reader)
    names = [f"tcp-from-{lower}.{launch}" for launch in (1, 2) for lower in (8, 5)]
    lines = [f"{name}\t1.0\t2.0\t0\t60\n" for name in names]
    (tmp_path / "launches.tsv").write_text("".join(["step\tstart\tend\tstatus\tlimit_s\n", *lines]))
    said = "netproof rank {} on gige-{}: 0.5 s wall, 0.1 s user, 0.1 s system\n"
    for name in names:
        (tmp_path / f"{name}.err").write_text(said.format(0, 1) + said.format(1, 2))
    (tmp_path / "job_nodes.json").write_text('{"7": ["gige-1", "gige-2"]}')
    return tmp_path


def reader(step: str) -> Curve:
    if "from-8" in step:
        return Curve((8, 12), (10.0, 10.0), None, (2.0, 6.0), (3.0, 7.0))
    return Curve((5, 8), (99.0, 99.0), None, (1.0, 1.0), (2.0, 2.0))


PARTS = (("tcp-from-8", (8, 12)), ("tcp-from-5", (5, 8)))


def test_the_calls_of_a_launch_make_one_curve_and_the_first_counts(job):
    whole = Curve((5, 8, 12), (99.0, 10.0, 10.0), None, (1.0, 2.0, 6.0), (2.0, 3.0, 7.0))
    measured = repeat_cases.read_again(job, CASE, PARTS, (1, 2), jobid="7")
    assert [(one.curves, one.said) for one in measured] == [((whole,), "")] * 2
    # One that failed has why, and the others are used.
    record = job / "launches.tsv"
    record.write_text(record.read_text().replace("from-5.2\t1.0\t2.0\t0", "from-5.2\t1.0\t2.0\t1"))
    measured = repeat_cases.read_again(job, CASE, PARTS, (1, 2), jobid="7")
    assert [len(one.curves) for one in measured] == [1, 0]
    assert "tcp-from-5.2 ended with status 1" in measured[1].said


@pytest.mark.parametrize(
    ("file", "why"),
    [
        ("job_nodes.json", "job_nodes.json: cannot be read"),
        ("launches.tsv", "the job left no record of its launches"),
    ],
)
def test_a_job_that_does_not_say_which_nodes_or_steps_it_had_measured_nothing(job, file, why):
    (job / file).unlink()
    measured = repeat_cases.read_again(job, CASE, PARTS, (1, 2), jobid="7")
    assert [(one.curves, one.steps) for one in measured] == [((), 0)]
    assert why in measured[0].said


def test_a_crash_before_a_launch_around_flagged_sizes_is_kept_and_counted():
    pingpong = Case("testbed", "gige", "mpich", "imb", "PingPong", 2, 1)
    reads = JobFolder(CRASHED_ONCE).reader(pingpong)
    parts = (("PingPong", reads("PingPong.1").sizes),)
    (jobid,) = json.loads((CRASHED_ONCE / "job_nodes.json").read_text())
    done = repeat_cases.read_again(CRASHED_ONCE, pingpong, parts, (1,), jobid=jobid)
    assert [(len(one.curves), one.said, one.steps) for one in done] == [(1, "", 1)]
    ((crash,),) = (one.crashes for one in done)
    assert (crash.number, crash.attempt, crash.status, crash.died_on) == (1, 1, 143, ("gige-2",))
    values = json.loads(json.dumps(codec.encode(done)))
    assert codec.decode(tuple[Launch, ...], values, "it") == done
