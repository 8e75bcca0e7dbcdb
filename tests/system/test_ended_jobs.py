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
from pathlib import Path
from random import Random

import pytest
from made_site import SMALL, settings_of
from made_testbed import TESTBED, eventually, started_with

from ci.testbed import network, state
from netproof.session import records, session
from netproof.session.session import CheckResult, Session

pytestmark = [pytest.mark.testbed, pytest.mark.usefixtures("testbed"), pytest.mark.nightly]

ROOT = Path(__file__).resolve().parents[2]
FUNCTIONS = ("PingPong", "Bcast")
ENVIRONMENTS = ("intelmpi", "mpich")
LAUNCHES = 3
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
        names = f"({'|'.join(f'Imb{name}' for name in FUNCTIONS)}).*ranks=2{more}"
        command = (
            *("reframe", "--system", "testbed:gige", "-c", str(ROOT / "checks")),
            *("-n", names, "-S", f"launches={launches}", "-p", "|".join(environments), "-r"),
        )
        shown = run(folder, "env", "-0", **settings).stdout.split("\0")
        environment = dict(entry.split("=", 1) for entry in shown if entry)
        with (folder / "reframe.log").open("w") as log:
            self.process = subprocess.Popen(
                command, cwd=folder, env=environment, stdout=log, stderr=log
            )

    def recorded(self, environment: str = "*") -> list[str]:
        """Names of the launches of an environment that have ended."""
        found = {
            path.parts[-3:]: path for path in self.folder.glob(f"*/**/{environment}/launches.tsv")
        }
        lines = [line for path in found.values() for line in path.read_text().splitlines()[1:]]
        return [line.split("\t")[0] for line in lines]

    def until(self, holds: Callable[[], bool], seconds: float = 120) -> None:
        def goes_on() -> bool:
            assert self.process.poll() is None, (self.folder / "reframe.log").read_text()
            return holds()

        eventually(goes_on, "it takes too long", seconds)

    def measures(self) -> str:
        """Wait for a few launches in each environment; return the job's number."""
        self.until(lambda: all(len(self.recorded(one)) >= 4 for one in ENVIRONMENTS))
        (path,) = self.folder.glob("stage/**/MpiJob*/job_nodes.json")
        (jobid,) = json.loads(path.read_text())
        return str(jobid)

    def queued(self) -> list[str]:
        """Return the numbers of its jobs that have not ended."""
        several = (line.split() for line in ask("squeue", "-h", "-o", "%i %Z").splitlines())
        return [number for number, place in several if place.startswith(f"{self.folder}/")]

    def completed(self) -> set[str]:
        """Return the numbers of its jobs that came to their end, as Slurm has it."""
        noted = (path.read_text() for path in self.folder.glob("*/**/job_nodes.json"))
        jobs = {number for text in noted for number in re.findall(r'"(\d+)":', text)}
        shown = ask("sacct", "-XnPj", ",".join(jobs), "-o", "JobID,State") if jobs else ""
        several = (line.split("|") for line in shown.splitlines())
        return {number for number, state in several if state == "COMPLETED"}

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


def steps_end(jobid: str) -> None:
    """Check that no process of the job's steps is left soon after."""
    eventually(
        lambda: (
            not [
                one
                for one in started_with(f"SLURM_JOB_ID={jobid}")
                if "IMB" in one or "rank.sh" in one
            ]
        ),
        "its steps go on",
        SOON_S,
    )


def checks(stored: Session) -> list[CheckResult]:
    found = [one for one in stored.results if one.case is not None]
    assert len(found) == len(FUNCTIONS) * len(ENVIRONMENTS)
    return found


def cancel(jobid: str) -> None:
    ask("scancel", jobid)


def run_out_of_time(jobid: str) -> None:
    """Slurm takes whole minutes, and looks every half a minute."""
    ask("scontrol", "update", f"jobid={jobid}", "TimeLimit=1")
    eventually(lambda: "RUNNING" not in ask("sacct", "-Xnj", jobid, "-o", "State"), "", 150)


@pytest.fixture
def nodes_back() -> Iterator[None]:
    yield
    subprocess.run([TESTBED, "up"], capture_output=True, check=True)
    with contextlib.suppress(subprocess.CalledProcessError):
        ask("scontrol", "update", "nodename=gige-[1-4]", "state=resume")


def die(node: str) -> Callable[[str], None]:
    """Return what ends a node with all of its processes."""

    def end(jobid: str) -> None:
        name = network.namespace(node)
        inode = (network.NAMED_NAMESPACES / name).stat().st_ino
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if (path / "ns" / "net").stat().st_ino == inode:
                    os.kill(int(path.name), signal.SIGKILL)
        ask("scontrol", "update", f"nodename={node}", "state=down", "reason=died")

    return end


OUTSIDE = "the job was ended from outside|Slurm had ended the job"


@pytest.mark.parametrize(
    ("end", "launches", "reason"),
    [
        (cancel, 3, f"did not run; the job ended before it: ({OUTSIDE})|ended with status 143"),
        (run_out_of_time, 40, "ended before it: Slurm had ended the job|had decided"),
        (die("gige-1"), 3, "did not run|no record|status|had decided"),
        (die("gige-2"), 3, "did not run|no record|status|had decided"),
    ],
    ids=["cancelled", "out of time", "its first node dies", "another node dies"],
)
def test_of_a_job_that_is_ended_each_case_is_whole_or_has_the_reason(
    run, tmp_path, nodes_back, end, launches, reason
):
    job = Ended(run, tmp_path, launches)
    jobid = job.measures()
    end(jobid)
    steps_end(jobid)
    missing = 0
    for one in checks(job.stored()):
        made = [name for name in job.recorded(one.environment) if f"{one.case.function}." in name]
        if one.measured is None:
            missing += 1
            assert one.result == "fail"
            assert re.search(reason, one.reason), one.reason
        else:
            assert len(made) >= len(one.measured.launches) >= LAUNCHES
    assert missing


@pytest.mark.parametrize("kill", range(3))
def test_a_run_that_is_killed_has_what_finished_jobs_measured(run, tmp_path, kill):
    seed = time.time_ns()
    print(f"seed {seed}")
    random = Random(seed)
    # More than MOST_LAUNCHED in all, so that it is not over when it is killed.
    job = Ended(run, tmp_path, 6, "|ImbBcast.*ranks=4|Pairs", ["mpich"])
    job.until(lambda: any(tmp_path.glob("session-*/*+*.json")))
    (folder,) = tmp_path.glob("session-*")
    launched = random.randrange(MOST_LAUNCHED)
    with contextlib.suppress(AssertionError):
        job.until(lambda: len(job.recorded()) >= launched, 150)
    time.sleep(random.uniform(0, 3))
    assert job.process.poll() is None, f"it ended before {launched} launches"
    job.process.kill()
    job.process.wait()
    for number in job.queued() if random.random() < 0.5 else ():
        ask("scancel", number)
    for _ in range(2):
        finished = job.completed()
        asked = ("netproof", "verdict", str(folder), "testbed:gige", "--format", "json")
        judged = run(tmp_path, *asked)
        assert judged.returncode in (1, 3), judged.stderr
        assert records.ENDED_EARLY in judged.stdout
        stored = session.load(folder)
        found = [one.measured for one in stored.results if one.measured]
        found += [one.rounds for one in stored.with_pairs]
        assert finished <= {one.jobid for one in found}
        for one in json.loads(judged.stdout)["cases"]:
            assert one["measured"] or one["faults"]
        eventually(lambda: not job.queued(), "its jobs go on", 300)
    print(f"after {launched} launches: {len(finished)} finished")
