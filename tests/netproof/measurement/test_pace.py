"""How far the CPUs of a node are apart, as a launch's step tells it."""

from __future__ import annotations

import os
import shutil
import subprocess
import types
from pathlib import Path

import pytest

from netproof.errors import ParseError
from netproof.measurement.case import Case
from netproof.measurement.disturbance import Pace, paces, unlike
from netproof.session import job_files

SHELL = Path(__file__).resolve().parents[3] / "netproof" / "run" / "shell"
ERRORS = Path("mpi-intra-node-oneway.1.err")


def test_it_is_read_from_among_other_lines():
    text = "netproof rank 0 on n1: 1 s wall\nnetproof pace on n1\t148\tend\nmore\n"
    assert paces(ERRORS, text, "mpich") == (Pace("mpich", 148.0),)
    assert paces(ERRORS, "netproof rank 0 on n1: 1 s wall\n", "mpich") == ()
    before = "netproof pace on n1\t25\tend\n"
    assert paces(ERRORS, before + text, "mpich") == (Pace("mpich", 25.0), Pace("mpich", 148.0))


def test_what_is_not_known_has_its_reason():
    text = "netproof pace on n1\tabsent: pace: there is one CPU\tend\n"
    assert paces(ERRORS, text, "mpich") == (Pace("mpich", None, "pace: there is one CPU"),)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("netproof pace on n1\t14", "it is not whole"),
        ("netproof pace on n1\t\tend", "it is not whole"),
        ("netproof pace on n1\tnan\tend", "no time in ns"),
        ("netproof pace on n1\t0\tend", "no time in ns"),
        ("netproof pace on n1\t1e999\tend", "no time in ns"),
        ("\n".join(["netproof pace on n1\t1\tend"] * 3), "a pace more than 2 of one launch"),
    ],
)
def test_what_is_damaged_is_refused(text, why):
    with pytest.raises(ParseError, match=why):
        paces(ERRORS, text, "mpich")


def test_launches_are_compared_where_the_cpus_were_as_far_apart():
    near, far = [Pace("mpich", 25.0)] * 2, [Pace("intelmpi", 148.0)] * 2
    assert unlike(near, [Pace("intelmpi", 30.0)] * 2, 1.5) == ""
    assert "25 ns apart for mpich and 148 ns for intelmpi" in unlike(near, far, 1.5)
    assert unlike(far, near, 1.5) == unlike(near, far, 1.5)
    assert unlike((), far, 1.5) == ""
    assert "not known: none" in unlike(near, [Pace("intelmpi", None, "none")], 1.5)


def test_cpus_that_were_moved_during_a_launch_are_not_as_far_apart():
    moved = [Pace("mpich", 148.0), Pace("mpich", 25.0)]
    reason = "25 ns apart in one half of a launch in mpich and 148 ns in the other"
    assert reason in unlike(moved, [Pace("intelmpi", 25.0)] * 2, 1.5)


@pytest.mark.parametrize(("count", "whole"), [(0, False), (1, False), (2, True)])
def test_a_launch_inside_a_node_has_a_pace_for_both_halves(tmp_path, monkeypatch, count, whole):
    case = Case("s", "p", "e", "netpipe", "mpi", 2, 2, path="intra-node")
    launch = types.SimpleNamespace(paces=(Pace("e", 25.0),) * count)
    partition = types.SimpleNamespace(pace=["pace"])
    (tmp_path / job_files.LAUNCHES_FILE).write_text(f"{job_files.LAUNCHES_HEADER}\n")
    monkeypatch.setattr(job_files.JobFolder, "launch", lambda *asked: launch)
    job, step = job_files.JobFolder(tmp_path), "mpi-intra-node-oneway.1"
    if whole:
        assert job.whole_launch(step, case, partition, (1,), with_twin=False) is launch
        return
    with pytest.raises(job_files.Incomplete, match=rf"{step}\.err: .* node's pace {count} times"):
        job.whole_launch(step, case, partition, (1,), with_twin=False)


@pytest.mark.parametrize(
    ("command", "nodes", "want"),
    [
        ("echo 25 148", "1", (Pace("mpich", 25.0), Pace("mpich", 148.0))),
        (
            "printf '2 CPUs\\nneeded\\n' >&2; exit 1",
            "1",
            (Pace("mpich", None, "2 CPUs needed"),) * 2,
        ),
        ("echo 148", "1", (Pace("mpich", None, "148"),) * 2),
        ("echo 25 148 ns", "1", (Pace("mpich", None, "25 148 ns"),) * 2),
        # It gets "watch", and ends when the launch did.
        ('echo "$(cat)25" "${1/watch/148}"', "1", (Pace("mpich", 25.0), Pace("mpich", 148.0))),
        ("true", "1", (Pace("mpich", None, "the command said nothing"),) * 2),
        ("echo 25 148", "2", ()),
        (None, "1", ()),
    ],
)
def test_a_rank_has_it_watched_while_a_launch_inside_one_node_runs(tmp_path, command, nodes, want):
    for sourced in ("load.sh", "counters.sh"):
        shutil.copy(SHELL / sourced, tmp_path)
    if command is not None:
        (tmp_path / "pace.sh").write_text(f"{command}\n")
    slurm = {
        "SLURMD_NODENAME": "n1",
        "SLURM_PROCID": "0",
        "SLURM_LOCALID": "0",
        "SLURM_STEP_NUM_NODES": nodes,
    }
    ran = subprocess.run(
        ["bash", str(SHELL / "rank.sh"), "true"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], **slurm},
        capture_output=True,
        text=True,
        check=True,
    )
    assert paces(ERRORS, ran.stderr, "mpich") == want


def test_it_is_none_of_a_launchs_last_words(tmp_path):
    """The message of a failed launch has its own output, without the pace."""
    errors = tmp_path / "mpi-intra-node-oneway.1.err"
    line = "netproof pace on n1\tabsent: no such file\tend\n"
    errors.write_text(f"NPmpi: Permission denied\n{line}")
    records = tmp_path / job_files.LAUNCHES_FILE
    head = "step\tstart\tend\tstatus\tlimit_s\n"
    records.write_text(f"{head}mpi-intra-node-oneway.1\t1.0\t2.0\t126\t60\n")
    case = Case("s", "p", "e", "netpipe", "mpi", 2, 2, path="intra-node")
    with pytest.raises(job_files.Incomplete) as caught:
        job_files.JobFolder(tmp_path).launch("mpi-intra-node-oneway.1", case, (1,))
    assert "NPmpi: Permission denied" in str(caught.value)
    assert "netproof pace" not in str(caught.value)
