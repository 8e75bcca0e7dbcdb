"""A job of several environments: next to each other, and launched again where undecided."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from netproof import codec
from netproof.benchmarks.imb import BENCHMARK as IMB
from netproof.jobs import acceptance, describing
from netproof.jobs.acceptance import EnvironmentAsked, JobAsked, JobOutcome
from netproof.jobs.job import RunningJob
from netproof.measurement.case import Case
from netproof.session import plan, session
from netproof.session.measured import Measured
from netproof.session.plan import PLAN_FILE, JobPlan, Step
from netproof.verdict.limits import Limits

DATA = Path(__file__).resolve().parents[2] / "data"
RECORDED = DATA / "jobs" / "crashed-once"
SRUN = ("srun", "--mpi=pmi2")
NODES = ("gige-1", "gige-2")


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The launches that a job makes, each with the folder of its environment, in their order.

    Each prints what a recorded one did; those of the environment ``slow`` 20 times as slow.
    """
    monkeypatch.setenv("SLURM_JOB_ID", "3")
    monkeypatch.setenv("SLURM_JOB_NODELIST", ",".join(NODES))
    monkeypatch.setattr(describing, "describe", lambda _: None)
    monkeypatch.setattr(RunningJob, "_ask", lambda *_: "".join(f"{node}\n" for node in NODES))
    launched: list[str] = []

    def launch(job: RunningJob, step: Step) -> int:
        launched.append(f"{job.folder.relative_to(tmp_path)}/{step.name}")
        setup = Path(step.setup or job.plan.setup)
        environment = setup.parent.name if setup.is_absolute() else job.folder.name
        text = (RECORDED / "PingPong.1.out").read_text()
        if environment == "slow":
            text = re.sub(r"(?m)^( +\d+ +\d+)( +[\d.]+)( +[\d.]+)$", slower, text)
        (job.folder / f"{step.name}.out").write_text(text)
        shutil.copy(RECORDED / "PingPong.1.err", job.folder / f"{step.name}.err")
        job._note(step.name, 1795283530.0 + len(launched), 0, 60)
        return 0

    monkeypatch.setattr(RunningJob, "launch", launch)
    return launched


def slower(row: re.Match[str]) -> str:
    return f"{row[1]}{20 * float(row[2]):13.2f}{float(row[3]) / 20:13.2f}"


def job_of(folder: Path, limits: Mapping[str, Mapping[str, Limits]]) -> RunningJob:
    """A job of IMB's PingPong in these environments, with a case's limits in each."""
    report = session.load(DATA / "sessions" / "faulty.json")
    extras = next(one.extras for one in report.results if one.measured)["partition_extras"]
    extras = {**extras, "criteria": {"launch_spread": {"least_size": 4096}}, "twin": []}
    function = IMB.function("PingPong")
    for name, bounds in limits.items():
        own = folder / name
        own.mkdir()
        case = Case("testbed", "gige", name, "imb", "PingPong", 2, 1)
        steps = plan.function_steps([function], 2, 2, JobPlan(1, extras).partition, SRUN, seed=1)
        asked = EnvironmentAsked(SRUN, {"mpi_over_tcp": True}, ((case, bounds),), 2, 2)
        planned = JobPlan(
            1, extras, tuple((step,) for step in steps), setup="setup.sh", asked=codec.encode(asked)
        )
        planned.write(own)
    asked = JobAsked(tuple(limits))
    planned = JobPlan(1, extras, task="acceptance", describe_nodes=False, asked=codec.encode(asked))
    planned.write(folder)
    return RunningJob(folder, planned)


def ran(job: RunningJob) -> JobOutcome:
    with job.running():
        acceptance.run(job)
    return JobOutcome(job.folder, "3")


def test_environments_take_turns_and_nothing_is_launched_again_that_is_decided(tmp_path, made):
    outcome = ran(job_of(tmp_path, {"mpich": {}, "openmpi": {}}))
    assert [Path(one).name for one in made[::2]] == [Path(one).name for one in made[1::2]]
    assert {Path(one).parent.name for one in made[:2]} == {"mpich", "openmpi"}
    assert len(made) == 4
    for environment in outcome.environments.values():
        (measured,) = environment.measured.values()
        assert isinstance(measured, Measured)
        assert len(measured.launches) == 2
    assert not any(outcome.repeated.values())
    assert not any(outcome.compared.values())


def test_what_is_beyond_a_reference_is_launched_again_in_its_environment_alone(tmp_path, made):
    outcome = ran(job_of(tmp_path, {"mpich": {"latency_us": Limits(0, 1.0)}, "openmpi": {}}))
    again = [one for one in made if "repeats" in one]
    assert again == [f"mpich/repeats/PingPong.{number}" for number in (1, 2, 3)]
    (repeated,) = outcome.repeated["mpich"]
    assert len(repeated.launches) == 3
    assert not repeated.faults
    assert not outcome.repeated["openmpi"]


def test_what_a_comparison_flags_is_launched_again_next_to_what_it_was_compared_with(
    tmp_path, made
):
    outcome = ran(job_of(tmp_path, {"slow": {}, "fast": {}}))
    again = [Path(one).name for one in made if "compared" in one]
    assert len(again) == 12
    assert {name.partition(".")[0] for name in again} == {"PingPong", "PingPong-peer-0"}
    (compared,) = outcome.compared["slow"]
    assert {one.peers[0].environment for one in compared.launches} == {"fast"}
    assert not outcome.compared["fast"]


def test_a_job_that_slurm_requeued_sets_its_repeats_aside(tmp_path, made):
    job = job_of(tmp_path, {"mpich": {"latency_us": Limits(0, 1.0)}})
    ran(job)
    outcome = ran(RunningJob(tmp_path, JobPlan.read(tmp_path / PLAN_FILE)))
    assert (tmp_path / "mpich" / "repeats-try-1" / "PingPong.1.out").exists()
    (repeated,) = outcome.repeated["mpich"]
    assert len(repeated.launches) == 3
    assert len(made) == 10
