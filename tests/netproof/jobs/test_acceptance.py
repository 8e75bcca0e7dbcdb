"""A job of several environments: interleaved, and launched again where undecided."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from netproof import codec
from netproof.criteria import Level
from netproof.jobs import acceptance
from netproof.jobs.acceptance import JobOutcome
from netproof.jobs.job import JobEnded, RunningJob
from netproof.jobs.repeat_cases import RepeatCase
from netproof.measurement.case import Case
from netproof.session import plan, records, session
from netproof.session.measured import Measured
from netproof.session.plan import PLAN_FILE, JobPlan, Step
from netproof.verdict.engine import Subject
from netproof.verdict.limits import Limits

DATA = Path(__file__).resolve().parents[2] / "data"
RECORDED = DATA / "jobs" / "crashed-once"
SRUN = ("srun", "--mpi=pmi2")
NODES = ("gige-1", "gige-2")
SLOWER: dict[str, Callable[[int], int]] = {
    "slow": lambda _: 20,
    "wavering": lambda number: 30 if number > 2 and number % 2 else 20,
}
"""Times that an environment's launch of a number takes of the recorded one's."""


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The launches that a job makes, each with the folder of its environment, in their order.

    Each prints what a recorded one did, slower in the environments of ``SLOWER``.
    """
    monkeypatch.setenv("SLURM_JOB_ID", "3")
    monkeypatch.setenv("SLURM_JOB_NODELIST", ",".join(NODES))
    monkeypatch.setattr(RunningJob, "describe", lambda *_: None)
    monkeypatch.setattr(RunningJob, "_ask", lambda *_: "".join(f"{node}\n" for node in NODES))
    monkeypatch.setattr(RunningJob, "end_steps", lambda _: None)
    launched: list[str] = []

    def launch(job: RunningJob, step: Step) -> int:
        launched.append(f"{job.folder.name}/{step.name}")
        text = (RECORDED / "PingPong.1.out").read_text()
        if factor := SLOWER.get(job.folder.name):
            slower = slowed(factor(int(step.name.rpartition(".")[2])))
            text = re.sub(r"(?m)^( +\d+ +\d+)( +[\d.]+)( +[\d.]+)$", slower, text)
        (job.folder / f"{step.name}.out").write_text(text)
        shutil.copy(RECORDED / "PingPong.1.err", job.folder / f"{step.name}.err")
        job._note(step.name, 1795283530.0 + len(launched), 0, 60)
        return 0

    monkeypatch.setattr(RunningJob, "launch", launch)
    return launched


def slowed(factor: int) -> Callable[[re.Match[str]], str]:
    return lambda row: f"{row[1]}{factor * float(row[2]):13.2f}{float(row[3]) / factor:13.2f}"


def job_of(folder: Path, limits: Mapping[str, Mapping[str, Limits]]) -> RunningJob:
    """A job of IMB's PingPong in these environments, with a case's limits in each."""
    report = session.load(DATA / "sessions" / "faulty.json")
    extras = next(one.extras for one in report.results if one.measured)["partition_extras"]
    extras = {**extras, "criteria": {"curves": {"least_size": 4096}}, "twin": []}
    for name, bounds in limits.items():
        own = folder / name
        own.mkdir()
        case = Case("testbed", "gige", name, "imb", "PingPong", 2, 1)
        partition = JobPlan(1, extras).partition
        steps = tuple((plan.step_of(case, number, partition, SRUN),) for number in (1, 2))
        part_of([case], [bounds], 2, extras, rounds=steps, setup="setup.sh").write(own)
    planned = JobPlan(
        1, extras, task="acceptance", describe_nodes=False, environments=tuple(limits)
    )
    planned.write(folder)
    return RunningJob(folder, planned)


def part_of(cases, limits, launches: int, extras, **planned) -> JobPlan:
    """The plan of these cases in an environment."""
    return JobPlan(
        1,
        extras,
        srun=SRUN,
        environment_extras={"mpi_over_tcp": True},
        cases=tuple(cases),
        launches=launches,
        asked=codec.encode(limits),
        **planned,
    )


def ran(job: RunningJob) -> JobOutcome:
    with job.running():
        acceptance.run(job)
    return JobOutcome(job.folder, "3")


def test_environments_take_turns_and_nothing_is_launched_again_that_is_decided(tmp_path, made):
    outcome = ran(job_of(tmp_path, {"mpich": {}, "openmpi": {}}))
    assert [Path(one).name for one in made[::2]] == [Path(one).name for one in made[1::2]]
    assert {Path(one).parent.name for one in made[:2]} == {"mpich", "openmpi"}
    assert len(made) == 4
    for name, environment in outcome.environments.items():
        (measured,) = environment.measured.values()
        assert isinstance(measured, Measured)
        assert len(measured.launches) == 2
        (one,) = (one for one in outcome.cases if one.case.environment == name)
        assert (one.launches, one.faults) == ((), ())
    # An environment whose plan cannot be read does not take the others with it.
    (tmp_path / "mpich" / PLAN_FILE).write_text("{")
    outcome = JobOutcome(tmp_path, "3")
    assert outcome.measured.keys() == {"openmpi"}
    assert len(outcome.findings) == 1
    assert str(tmp_path / "mpich" / PLAN_FILE) in outcome.unread["mpich"]


BEYOND = {"mpich": {"latency_us": Limits(0, 1.0)}, "openmpi": {}}


def test_what_is_beyond_a_reference_is_launched_again_in_its_environment_alone(tmp_path, made):
    outcome = ran(job_of(tmp_path, BEYOND))
    assert made[4:] == [f"mpich/PingPong.{number}" for number in (3, 4, 5)]
    repeated, other = outcome.cases
    assert [one.number for one in repeated.launches] == [3, 4, 5]
    assert all(one.further for one in repeated.launches)
    assert not repeated.faults
    assert not other.launches
    # It leaves a record with the repeats.
    for name, one in outcome.environments.items():
        values = records.read(one.folder / records.JOB_RECORD)["values"]
        (measured,) = values[records.CASES]["cases"]
        assert measured == next(iter(outcome.measured[name].values()))
        assert len(measured.launches) == (5 if name == "mpich" else 2)
    # A program that was killed has left no report, and what it had decided stays decided.
    (tmp_path / "job.json").unlink()
    (tmp_path / "open.json").unlink()
    assert [one.faults for one in JobOutcome(tmp_path, "3").cases] == [(), ()]


def test_what_a_comparison_flags_is_launched_again_next_to_what_it_was_compared_with(
    tmp_path, made
):
    outcome = ran(job_of(tmp_path, {"slow": {}, "fast": {}}))
    again = made[4:]
    names = {one.partition(".")[0] for one in again}
    assert names == {"slow/PingPong", "fast/PingPong-next-to-slow"}
    assert len(again) == 12
    rounds = [again[first : first + 2] for first in range(0, 12, 2)]
    assert [one[0].startswith("slow/") for one in rounds] == [True, False] * 3
    slow, fast = outcome.cases
    assert {one.peers[0].environment for one in slow.launches} == {"fast"}
    assert not fast.launches
    slow, fast = (outcome.findings[one.case.key()] for one in outcome.cases)
    against = [one for one in slow if one.level is Level.FAIL]
    assert {one.criterion for one in against} == {"envelope", "floor"}
    assert all("testbed:gige fast IMB PingPong" in one.why for one in against)
    assert not [one for one in fast if one.level in (Level.FAIL, Level.INCONCLUSIVE)]
    # Nothing in it measured a baseline.
    assert not [one for one in (*slow, *fast) if one.criterion == "score"]


def test_a_case_of_which_a_launch_crashed_has_the_share_of_its_environment(tmp_path, made):
    job = job_of(tmp_path, {"mpich": {}, "openmpi": {}})
    with job.running():
        acceptance.run(job)
    path = tmp_path / "mpich" / "launches.tsv"
    head, first, *rest = path.read_text().splitlines()
    name, *times, _, limit = first.split("\t")
    crashed = "\t".join((f"{name}~1", *times, "139", limit))
    path.write_text("\n".join((head, crashed, first, *rest, "")))
    (tmp_path / "mpich" / f"{name}~1.err").write_text("")
    mpich, openmpi = (one for one in JobOutcome(tmp_path, "3").findings.values())
    (share,) = (one for one in mpich if one.where == "gige mpich")
    assert "1 of 3 launches crashed" in share.why
    assert not [one for one in openmpi if one.where.startswith("gige ")]


@pytest.mark.parametrize(("number", "mpich", "openmpi"), [(3, None, None), (4, 0, 0), (5, 1, 0)])
def test_a_job_that_is_ended_keeps_what_it_launched_and_says_what_is_open(
    tmp_path, made, monkeypatch, number, mpich, openmpi
):
    whole = RunningJob.launch

    def launch(job: RunningJob, step: Step) -> int:
        if len(made) == number:
            raise JobEnded
        return whole(job, step)

    monkeypatch.setattr(RunningJob, "launch", launch)
    job = job_of(tmp_path, BEYOND)
    with pytest.raises(JobEnded):
        ran(job)
    assert not [*tmp_path.glob(f"*/{records.JOB_RECORD}")]
    outcome = JobOutcome(tmp_path, "3")
    assert len(outcome.cases) == (1 if mpich is None else 2)
    counts = {"mpich": mpich, "openmpi": openmpi}
    why = "the job ended before it had decided this: the job was ended from outside"
    for one in outcome.cases if mpich is not None else ():
        name = one.case.environment
        assert len(one.launches) == counts[name]
        assert [*one.faults] == [f"{tmp_path}/job.json: {why}"] * (name == "mpich")


def test_a_twin_s_launch_is_of_the_launches_on_both_sides_of_it(tmp_path, made, monkeypatch):
    job = job_of(tmp_path, {"slow": {}, "fast": {}})
    twins = [f"{name}/PingPong-twin.{number}" for name in ("slow", "fast") for number in (1, 2, 3)]
    parts = {}
    for name in ("slow", "fast"):
        planned = JobPlan.read(tmp_path / name / PLAN_FILE)
        parts[name] = RunningJob(tmp_path / name, planned, within=job)
        (tmp_path / name / "launches.tsv").write_text("step\tstart\tend\tstatus\tlimit_s\n")
    several = [
        (parts[name], Step(subject, number, command))
        for number in (1, 2, 3)
        for name in ("slow", "fast")
        for subject, command in (
            ("PingPong", ("srun",)),
            ("PingPong-twin", ("twin", "-2" if number == 3 and name == "fast" else "-o", name)),
        )
    ]
    acceptance._launch(several)
    assert [one for one in made if one in twins] == [
        *(f"slow/PingPong-twin.{number}" for number in (1, 2, 3)),
        "fast/PingPong-twin.3",
    ]
    records = [(tmp_path / name / "launches.tsv").read_text().split() for name in parts]
    noted = [one[one.index("PingPong-twin.2") :][:4] for one in records]
    assert noted[0] == noted[1]
    same = [(tmp_path / name / "PingPong-twin.2.err").read_text() for name in parts]
    assert same[0] == same[1]
    made.clear()
    monkeypatch.setattr(RunningJob, "launch", lambda job, step: made.append(step.name) or 1)
    acceptance._launch(several)
    assert len(made) == 12, "a failed one is nobody else's"


def test_netpipe_over_tcp_and_mpi_take_turns_and_no_two_steps_share_a_name(tmp_path):
    report = session.load(DATA / "sessions" / "sick.json")
    several = [
        one.measured
        for one in report.results
        if one.measured and one.measured.case.environment == "mpich"
    ]
    extras = next(one.extras for one in report.results if one.measured)["partition_extras"]
    extras = {**extras, "twin": ["twin"]}
    (tmp_path / "mpich").mkdir()
    cases = [one.case for one in several]
    part_of(cases, [{} for _ in cases], 1, extras).write(tmp_path / "mpich")
    JobPlan(1, extras, environments=("mpich",)).write(tmp_path)
    outcome = JobOutcome(tmp_path, "3")
    (tmp_path / "mpich" / "launches.tsv").write_text("step\tstart\tend\tstatus\tlimit_s\n")
    repeated = []
    for measured in several:
        one = RepeatCase(Subject.of_extras(measured, extras, {}), {})
        repeated.append(replace(one, whole=True, around=bool(one.dense())))
    units = outcome.units(repeated, 1)
    steps = [step.name for unit in units for _, step in unit if "-twin." not in step.name]
    assert len(set(steps)) == len(steps)
    # Each launch of a whole curve has the one over the healthy twin.
    assert "mpi-inter-node-oneway-twin.1" in [step.name for unit in units for _, step in unit]
    place = steps.index("tcp-inter-node-oneway.1")
    assert "mpi-inter-node-oneway.1" in (*steps[place - 1 : place], steps[place + 1])
    dense = {f"{subject}.1" for one in repeated for subject, _ in one.dense()}
    assert dense
    assert dense < {*steps}


def test_what_is_launched_to_compare_and_leaves_a_case_undecided_by_itself_is_repeated(
    tmp_path, made
):
    limits = {"wavering": {"latency_us": Limits(0, 165.0)}, "fast": {}}
    outcome = ran(job_of(tmp_path, limits))
    paired = sum("next-to" in one for one in made)
    own = [one for one in made if one.startswith("wavering/PingPong.")]
    assert paired == 6
    assert len(own) == 12
    (one,) = (one for one in outcome.cases if one.case.environment == "wavering")
    assert len(one.launches) == 10
