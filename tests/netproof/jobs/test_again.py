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
from netproof.session import session
from netproof.session.job_files import JobFolder
from netproof.session.measured import Launch

SESSIONS = Path(__file__).resolve().parents[2] / "data" / "sessions"
CASE = Case("testbed", "gige", "mpich", "netpipe", "tcp", 2, 1)
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


def test_one_sweep_does_for_a_flag_above_small_sizes():
    (sweep,) = netpipe_sweeps([flag(49152, 32768)], ConfirmSettings())
    assert (sweep.lower, sweep.perturbation) == (16384, 1)


def test_neighbours_that_netpipe_leaves_out_have_calls_of_their_own():
    sweeps = netpipe_sweeps([flag(4)], ConfirmSettings())
    assert [(s.lower, s.upper) for s in sweeps[1:]] == [(5, 5)]


def decoded(again: tuple[Launch, ...]) -> tuple[Launch, ...]:
    return codec.decode(tuple[Launch, ...], json.loads(json.dumps(codec.encode(again))), "it")


def test_what_was_measured_again_comes_back_from_a_report():
    stored = session.load(SESSIONS / "sick.json")
    read = [one.measured for one in stored.results if one.measured]
    assert len(read) == 4
    for one in read:
        assert decoded(one.again) == one.again
        assert one.nodes() == ("gige-1", "gige-2")
        assert len(one.again) == 3


def test_calls_that_make_one_launch_keep_the_fastest_rank_and_the_mean():
    first = Curve((4, 8), (4.0, 8.0), None, (2.0, 6.0), (3.0, 7.0))
    second = Curve((5, 8), (5.0, 9.0), None, (1.0, 1.0), (2.0, 2.0))
    assert repeat_cases._merged([first, second]) == Curve(
        (4, 5, 8), (4.0, 5.0, 8.0), None, (2.0, 1.0, 6.0), (3.0, 2.0, 7.0)
    )


@pytest.fixture
def job(tmp_path, monkeypatch) -> Path:
    """Folder of a job of two launches, each of a sweep and a call for one more size."""
    monkeypatch.setattr(JobFolder, "reader", lambda folder, case: reader)
    (tmp_path / "launches.tsv").write_text(
        "step\tstart\tend\tstatus\tlimit_s\n"
        + "".join(
            f"tcp-from-{lower}.{launch}\t1.0\t2.0\t0\t60\n" for launch in (1, 2) for lower in (8, 5)
        )
    )
    for launch in (1, 2):
        for lower in (8, 5):
            (tmp_path / f"tcp-from-{lower}.{launch}.err").write_text(
                "netproof rank 0 on gige-1: 0.5 s wall, 0.1 s user, 0.1 s system\n"
                "netproof rank 1 on gige-2: 0.5 s wall, 0.1 s user, 0.1 s system\n"
            )
    job_nodes(tmp_path)
    return tmp_path


def job_nodes(folder: Path) -> None:
    (folder / "job_nodes.json").write_text('{"7": ["gige-1", "gige-2"]}')


def reader(step: str) -> Curve:
    sizes = (8, 12) if "from-8" in step else (5, 8)
    return Curve(sizes, tuple(10.0 if "from-8" in step else 99.0 for _ in sizes))


PARTS = (("tcp-from-8", (8, 12)), ("tcp-from-5", (5, 8)))


def test_the_calls_of_a_launch_make_one_curve_and_the_first_counts(job):
    measured = repeat_cases.read_again(job, CASE, PARTS, (1, 2), jobid="7")
    assert [one.curves for one in measured] == [(Curve((5, 8, 12), (99.0, 10.0, 10.0)),)] * 2
    assert {one.said for one in measured} == {""}


def test_a_launch_that_failed_is_told_and_the_others_are_used(job):
    record = job / "launches.tsv"
    record.write_text(record.read_text().replace("from-5.2\t1.0\t2.0\t0", "from-5.2\t1.0\t2.0\t1"))
    measured = repeat_cases.read_again(job, CASE, PARTS, (1, 2), jobid="7")
    assert [len(one.curves) for one in measured] == [1, 0]
    assert "tcp-from-5.2 ended with status 1" in measured[1].said


def test_a_job_that_does_not_say_which_nodes_it_had_measured_nothing(job):
    (job / "job_nodes.json").unlink()
    measured = repeat_cases.read_again(job, CASE, PARTS, (1, 2), jobid="7")
    assert [(one.curves, one.steps) for one in measured] == [((), 0)]
    assert "job_nodes.json: cannot be read" in measured[0].said


def test_a_job_that_left_nothing_says_so(tmp_path):
    job_nodes(tmp_path)
    measured = repeat_cases.read_again(tmp_path, CASE, PARTS, 3, jobid="7")
    assert [one.curves for one in measured] == [()]
    assert "the job left no record of its launches" in measured[0].said


CRASHED_ONCE = Path(__file__).resolve().parents[2] / "data" / "jobs" / "crashed-once"
PINGPONG = Case("testbed", "gige", "mpich", "imb", "PingPong", 2, 1)


def test_a_crash_before_a_launch_around_flagged_sizes_is_kept_and_counted():
    reads = JobFolder(CRASHED_ONCE).reader(PINGPONG)
    parts = (("PingPong", reads("PingPong.1").sizes),)
    (jobid,) = json.loads((CRASHED_ONCE / "job_nodes.json").read_text())
    done = repeat_cases.read_again(CRASHED_ONCE, PINGPONG, parts, (1,), jobid=jobid)
    assert [(len(one.curves), one.said, one.steps) for one in done] == [(1, "", 1)]
    ((crash,),) = (one.crashes for one in done)
    assert (crash.number, crash.attempt, crash.status, crash.died_on) == (1, 1, 143, ("gige-2",))
    assert decoded(done) == done
