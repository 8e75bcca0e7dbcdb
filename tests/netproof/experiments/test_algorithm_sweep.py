"""A sweep of algorithms: what a job runs, and what one on the testbed left."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import pytest

from netproof.experiments import parameters, sweep
from netproof.experiments.sweep import Sweep, turns
from netproof.measurement.case import Case
from netproof.session.job_files import Incomplete
from netproof.site import site
from netproof.site.partition import Partition

ROOT = Path(__file__).resolve().parents[3]
JOB = ROOT / "tests" / "data" / "jobs" / "algorithms"
CASE = Case("testbed", "gige", "mpich", "imb", "Allreduce", 4, 1)
VALUES = ("ring", "reduce_scatter_allgather", "nonsense")
SEVERAL = turns(VALUES, 3, json.loads((JOB / "plan.json").read_text())["seed"])
SRUN = ["srun", "--mpi=pmi2"]


@pytest.fixture(scope="module")
def partition() -> Partition:
    configuration = site.load(ROOT / "site-config" / "testbed.py")
    extras = configuration["systems"][0]["partitions"][0]["extras"]
    # The machine had other work, which is not what is tested.
    never = {"disturbance": {"others": 1, "steal": 1}}
    return Partition.model_validate({**extras, "criteria": {**extras["criteria"], **never}})


@pytest.fixture
def job(tmp_path) -> Path:
    """A copy of the recorded job, to be damaged."""
    return Path(shutil.copytree(JOB, tmp_path / "job"))


def planned(partition, several=SEVERAL, library="MPICH 5.0.2", values=VALUES) -> Sweep:
    names = parameters.algorithms(library, "Allreduce", values)
    assignment = parameters.library_of(library).setting("Allreduce")
    extras = partition.model_dump()
    made = Sweep(CASE, "algorithm", "Allreduce algorithm", assignment, "", 1, extras, several)
    return dataclasses.replace(made, library=library, names=names)


def left_by(job: Path, partition: Partition, *plan) -> Sweep:
    return sweep.of_job(job, "1", planned(partition, *plan))


def test_each_launch_is_told_its_algorithm_and_the_default_nothing(partition):
    made = sweep.steps(planned(partition), SRUN)
    for turn, step in zip(SEVERAL, made, strict=True):
        words = step.command
        assert step.name == turn.step
        assert "sizes-Allreduce.txt" in words
        assert words[-1] == "Allreduce"
        setting = [word for word in words if word.startswith("MPIR_CVAR")]
        expected = [
            f"MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM={turn.value}",
            "MPIR_CVAR_COLLECTIVE_FALLBACK=print",
        ]
        assert setting == (expected if turn.value else [])
        assert step.label == (turn.value or "")


def test_what_was_refused_is_named_with_what_it_said_and_spoils_no_other(partition):
    tried = left_by(JOB, partition)
    assert list(tried.refused) == ["nonsense"]
    why = tried.refused["nonsense"]
    assert why.startswith("tuning-3.1.err: tuning-3.1 ended with status 143")
    assert "Fatal error in internal_Init_thread" in why
    assert list(tried.fell_back) == ["reduce_scatter_allgather"]
    assert "not usable for the provided" in tried.fell_back["reduce_scatter_allgather"]
    kept = [turn.value for turn in tried.turns]
    assert kept.count("ring") == kept.count("reduce_scatter_allgather") == 3
    assert "nonsense" not in kept
    table = tried.table
    assert table.values == ("reduce_scatter_allgather", "ring")
    assert (table.rounds, len(table.rows)) == (3, 18)


def test_a_value_that_the_library_says_to_ignore_is_refused(partition, job):
    library = "Intel MPI 2021.18.1"
    assert parameters.library_of(library).ignored
    several = turns(("1", "99"), 3, 1)
    ring = [turn.step for turn in SEVERAL if turn.value == "ring"]
    plain = [turn.step for turn in SEVERAL if turn.value is None]
    source = {None: iter(plain), "1": iter(ring), "99": iter(ring)}
    # As Intel MPI 2021.18.1 says it on the testbed.
    said = "MPI startup(): Incorrect algorithm: ALLREDUCE=99, will be ignored\n"
    recorded = dict(line.split("\t", 1) for line in (JOB / "launches.tsv").open())
    lines = ["step\t" + recorded["step"]]
    for turn in several:
        recording = next(source[turn.value], None) or ring[0]
        for kind in ("out", "err"):
            text = (JOB / f"{recording}.{kind}").read_text()
            ignored = said if turn.value == "99" and kind == "out" else ""
            (job / f"{turn.step}.{kind}").write_text(ignored + text)
        lines.append(f"{turn.step}\t{recorded[recording]}")
    (job / "launches.tsv").write_text("".join(lines))
    tried = left_by(job, partition, several, library, ("1", "99"))
    assert tried.refused == {"99": said.strip()}
    assert {turn.value for turn in tried.turns} == {None, "1"}


def test_without_a_launch_of_the_default_there_is_no_sweep(partition, job):
    (job / "tuning-default.2.out").write_text("")
    with pytest.raises(Incomplete) as raised:
        left_by(job, partition)
    said = str(raised.value)
    assert said.startswith("the library's own choice: a launch failed: ")
    assert "tuning-default.2.out: is empty" in said
    lines = (job / "launches.tsv").read_text().splitlines(keepends=True)
    (job / "launches.tsv").write_text("".join(lines[:-2]))
    with pytest.raises(Incomplete, match=r"the job ended after 14 of 18 launches: "):
        left_by(job, partition)


def test_where_every_algorithm_is_refused_each_has_its_reason(partition, job):
    for turn in SEVERAL:
        if turn.value is not None:
            (job / f"{turn.step}.out").write_text("")
    with pytest.raises(Incomplete) as raised:
        left_by(job, partition)
    assert all(f"{value}: " in str(raised.value) for value in VALUES)
