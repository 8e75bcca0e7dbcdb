"""A job of several environments that does not come to its end; the real ReFrame, the real Slurm."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from made_site import SMALL, settings_of
from made_testbed import eventually

from ci.testbed import network, state
from netproof.jobs import pair_rounds
from netproof.jobs.acceptance import JobOutcome
from netproof.measurement.case import Case
from netproof.session import node_facts, records, session
from netproof.session.job_files import Incomplete
from netproof.session.plan import JobPlan
from netproof.session.session import CheckResult, Session

pytestmark = [pytest.mark.testbed, pytest.mark.usefixtures("testbed")]

ROOT = Path(__file__).resolve().parents[2]
TESTBED = ROOT / "ci" / "testbed" / "testbed"
FUNCTIONS = ("PingPong", "Bcast")
ENVIRONMENTS = ("intelmpi", "mpich")
LAUNCHES = 3
KILLS = 5
MOST_LAUNCHED = 30
"""Launches of a run that is killed, about."""
SOON_S = 15
"""Seconds in which steps of a job that is ended have to be gone."""


class Ended:
    """A run in ``folder`` of two functions in ``environments``, with one job of two ranks.

    ``more``: names of checks that have jobs of their own.
    """

    def __init__(
        self, run, folder: Path, launches=LAUNCHES, more: str = "", environments=ENVIRONMENTS
    ) -> None:
        self.folder = folder
        settings = settings_of(folder, **SMALL, twin=[])
        settings["RFM_REPORT_FILE"] = str(folder / "run-0.json")
        names = "|".join(f"Imb{name}" for name in FUNCTIONS)
        names = f"({names}).*ranks=2" + (f"|{more}" if more else "")
        command = (
            *("reframe", "--system", "testbed:gige", "-c", str(ROOT / "checks")),
            *("-n", names, "-S", f"launches={launches}"),
            *("-S", f"ImbJob.functions={','.join(FUNCTIONS)}"),
            *("-p", "|".join(environments), "-r"),
        )
        shown = run(folder, "env", "-0", **settings).stdout.split("\0")
        environment = dict(entry.split("=", 1) for entry in shown if entry)
        with (folder / "reframe.log").open("w") as log:
            self.process = subprocess.Popen(
                command, cwd=folder, env=environment, stdout=log, stderr=log
            )

    def recorded(self, environment: str) -> list[str]:
        """Names of the launches of an environment that have ended."""
        found = [*self.folder.glob(f"stage/**/ImbJob*/{environment}/launches.tsv")]
        return [line.split("\t")[0] for path in found for line in path.read_text().splitlines()[1:]]

    def jobid(self) -> str:
        (path,) = self.folder.glob("stage/**/ImbJob*/job_nodes.json")
        (jobid,) = json.loads(path.read_text())
        return jobid

    def until(self, holds: Callable[[], bool], seconds: float = 120) -> None:
        deadline = time.monotonic() + seconds
        while not holds():
            said = (self.folder / "reframe.log").read_text()
            assert time.monotonic() < deadline, said
            assert self.process.poll() is None, said
            time.sleep(0.2)

    def measures(self, count: int) -> None:
        """Wait for so many launches in each environment."""
        self.until(lambda: all(len(self.recorded(one)) >= count for one in ENVIRONMENTS))

    def all_recorded(self) -> list[str]:
        """Lines of all launches that have ended."""
        found = {path.parts[-3:]: path for path in self.folder.glob("*/**/launches.tsv")}
        return [line for path in found.values() for line in path.read_text().splitlines()[1:]]

    def queued(self) -> list[str]:
        """Return the numbers of its jobs that have not ended."""
        several = (line.split() for line in ask("squeue", "-h", "-o", "%i %Z").splitlines())
        return [number for number, place in several if place.startswith(f"{self.folder}/")]

    def states(self) -> dict[str, str]:
        """Each begun job's number and state, as Slurm has it."""
        noted = (path.read_text() for path in self.folder.glob("*/**/job_nodes.json"))
        jobs = {number for text in noted for number in re.findall(r'"(\d+)":', text)}
        shown = ask("sacct", "-XnPj", ",".join(jobs), "-o", "JobID,State") if jobs else ""
        return dict(line.split("|") for line in shown.splitlines())

    def stored(self) -> Session:
        """Wait for its end."""
        try:
            self.process.wait(300)
        finally:
            if self.process.poll() is None:
                self.process.kill()
        return session.load(self.folder / "run-0.json")


def ask(*command: str) -> str:
    environment = {**os.environ, "SLURM_CONF": str(state.DEFAULT / state.CONF)}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout


def steps_end(job: Ended, jobid: str) -> None:
    """Check that no process of the job's steps is left soon after."""
    mark = f"SLURM_JOB_ID={jobid}".encode()

    def left() -> list[str]:
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = (process / "environ").read_bytes().split(b"\0")
                command = (process / "cmdline").read_bytes()
                if mark in words and (b"IMB" in command or b"rank.sh" in command):
                    found.append(command.decode())
        return found

    deadline = time.monotonic() + SOON_S
    while several := left():
        assert time.monotonic() < deadline, several
        time.sleep(0.2)


def checks(stored: Session) -> list[CheckResult]:
    found = [one for one in stored.results if one.case is not None]
    assert len(found) == len(FUNCTIONS) * len(ENVIRONMENTS)
    return found


def is_whole_or_says_why(job: Ended, stored: Session, reason: str) -> None:
    """Check that each case is measured by all of its launches, or has the reason why not."""
    missing = 0
    for one in checks(stored):
        made = [name for name in job.recorded(one.environment) if f"{one.case.function}." in name]
        if one.measured is None:
            missing += 1
            assert one.result == "fail"
            assert re.search(reason, one.reason), one.reason
        else:
            assert len(made) >= len(one.measured.launches) >= LAUNCHES
    assert missing


def test_a_job_that_is_cancelled(run, tmp_path):
    job = Ended(run, tmp_path)
    job.measures(4)
    jobid = job.jobid()
    ask("scancel", jobid)
    steps_end(job, jobid)
    ended = "the job was ended from outside|Slurm had ended the job"
    reason = f"did not run; the job ended before it: ({ended})|ended with status 143"
    is_whole_or_says_why(job, job.stored(), reason)


@pytest.mark.nightly
def test_a_job_that_is_out_of_time(run, tmp_path):
    job = Ended(run, tmp_path, launches=40)
    job.measures(4)
    jobid = job.jobid()
    ask("scontrol", "update", f"jobid={jobid}", "TimeLimit=1")
    # Slurm takes whole minutes, and looks every half a minute.
    job.until(lambda: "RUNNING" not in ask("sacct", "-Xnj", jobid, "-o", "State"), 150)
    steps_end(job, jobid)
    stored = job.stored()
    is_whole_or_says_why(job, stored, r"ended before it: Slurm had ended the job|had decided")


@pytest.fixture
def dead_node() -> Iterator[Callable[[str], None]]:
    """End a node with all of its processes; it is back at the end."""

    def die(node: str) -> None:
        name = network.namespace(node)
        inodes = {(network.NAMED_NAMESPACES / name).stat().st_ino}
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if (path / "ns" / "net").stat().st_ino in inodes:
                    os.kill(int(path.name), signal.SIGKILL)
        ask("scontrol", "update", f"nodename={node}", "state=down", "reason=died")

    yield die
    subprocess.run([TESTBED, "up"], capture_output=True, check=True)
    with contextlib.suppress(subprocess.CalledProcessError):
        ask("scontrol", "update", "nodename=gige-[1-4]", "state=resume")


@pytest.mark.nightly
@pytest.mark.parametrize("node", ["gige-1", "gige-2"])
def test_a_job_whose_node_dies(run, tmp_path, dead_node, node):
    job = Ended(run, tmp_path)
    job.measures(4)
    jobid = job.jobid()
    dead_node(node)
    steps_end(job, jobid)
    is_whole_or_says_why(job, job.stored(), "did not run|no record|status|had decided")


@pytest.mark.nightly
def test_a_job_that_is_requeued_measures_anew_and_mixes_nothing(run, tmp_path):
    job = Ended(run, tmp_path)
    job.measures(4)
    jobid = job.jobid()
    ask("scontrol", "update", f"jobid={jobid}", "Requeue=1")
    before = {one: job.recorded(one) for one in ENVIRONMENTS}
    ask("scontrol", "requeue", jobid)
    requeued = time.time()
    steps_end(job, jobid)
    job.until(lambda: "PENDING" in ask("squeue", "-hj", jobid, "-o", "%T"), 60)
    # Slurm would wait for two minutes.
    ask("scontrol", "update", f"jobid={jobid}", "StartTime=now")
    stored = job.stored()
    folders = {one.parent.name: one for one in job.folder.glob("*/**/ImbJob*/*/try-1")}.values()
    assert {one.parent.name for one in folders} == {*ENVIRONMENTS}
    for folder in folders:
        first = [line.split("\t")[0] for line in (folder / "launches.tsv").read_text().splitlines()]
        assert [*before[folder.parent.name]] == first[1 : 1 + len(before[folder.parent.name])]
        assert len([*folder.parent.glob("try-*")]) == 1
    for one in checks(stored):
        assert one.measured is not None, one.reason
        assert all(launch.start > requeued for launch in one.measured.launches)


def measured_by_finished(job: Ended) -> dict[Case | str, object]:
    """Return what finished jobs have in their folders: of each case its launches, and rounds."""
    finished = {number for number, state in job.states().items() if state == "COMPLETED"}
    found: dict[Case | str, object] = {}
    for path in [*job.folder.glob("output/**/plan.json"), *job.folder.glob("stage/**/plan.json")]:
        planned = JobPlan.read(path)
        for name in (path.parent / one for one in (*planned.environments, ".")):
            noted = name / node_facts.JOB_NODES_FILE
            jobid = next(iter(json.loads(noted.read_text())), "") if noted.exists() else ""
            if jobid not in finished:
                continue
            if planned.task == "pairs":
                found["pairs"] = pair_rounds.read(path.parent, jobid)[0].launches
            elif name != path.parent:
                measured = JobOutcome(path.parent, jobid).measured[name.name].items()
                found |= {
                    case: None if isinstance(one, Incomplete) else replace(one, jobid=jobid)
                    for case, one in measured
                }
    return found


@pytest.mark.nightly
@pytest.mark.parametrize("kill", range(KILLS))
def test_a_run_that_is_killed_has_all_that_finished_jobs_measured(run, tmp_path, kill):
    seed = time.time_ns()
    print(f"seed {seed}")
    random = Random(seed)
    job = Ended(run, tmp_path, 2, "ImbBcast.*ranks=4|Pairs", ["mpich"])
    job.until(lambda: any(tmp_path.glob("session-*/*+*.json")))
    (folder,) = tmp_path.glob("session-*")
    launched = random.randrange(MOST_LAUNCHED)
    with contextlib.suppress(AssertionError):
        job.until(lambda: len(job.all_recorded()) >= launched, 150)
    time.sleep(random.uniform(0, 3))
    assert job.process.poll() is None, f"it ended before {launched} launches"
    job.process.kill()
    job.process.wait()
    for number in job.queued() if random.random() < 0.5 else ():
        ask("scancel", number)
    for _ in range(2):
        before = measured_by_finished(job)
        judged = run(
            tmp_path, "netproof", "verdict", str(folder), "testbed:gige", "--format", "json"
        )
        assert judged.returncode in (1, 3), judged.stderr
        assert records.ENDED_EARLY in judged.stdout
        stored = session.load(folder)
        after = measured_by_finished(job)
        found: dict[Case | str, object] = {one.case: one.measured for one in stored.results}
        for one in stored.with_pairs:
            found["pairs"] = one.rounds.launches
        assert {key: found.get(key) for key in before} == {key: after[key] for key in before}
        for one in json.loads(judged.stdout)["cases"]:
            assert one["measured"] or one["faults"]
        eventually(lambda: not job.queued(), "its jobs go on", 300)
    print(f"after {launched} launches: {len(before)} finished")
