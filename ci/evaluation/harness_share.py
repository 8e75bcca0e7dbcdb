"""Measure the cost of the harness: a smoke run, compared with a Slurm job for each step."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from rich import box
from rich.table import Table
from rich.text import Text

from netproof.errors import NetproofError
from netproof.present import terminal
from netproof.session import job_files, plan, session
from netproof.session.plan import JobPlan

ROOT = Path(__file__).resolve().parents[2]
SMOKE = ("reframe", "--system", "testbed:gige", "-S", "launches=1", "-c", "checks", "-r")
"""ReFrame's command in ``ci/quickstart --smoke``."""
MOST_SHARE = 0.25
"""Aim: largest share of the wall time that the harness may take."""
LEAST_FEWER_JOBS = 5.0
"""Aim: how many times more jobs the naive way takes, at least."""
POLL_SECONDS = 0.5
NAIVE_LIMIT_SECONDS = 1200

MISSED, CANNOT_MEASURE = 1, 2

_JOB_CALL = f"bash {plan.SCRIPT}"
_SACCT_FORMAT = "JobIDRaw,State,Submit,Start,End"
_UNFINISHED = ("PENDING", "RUNNING", "COMPLETING", "SUSPENDED", "REQUEUED", "RESIZING")


@dataclass(frozen=True)
class SlurmJob:
    """A job of Slurm's accounting; ``submit`` in seconds since the epoch."""

    jobid: str
    state: str
    submit: float


@dataclass(frozen=True)
class Way:
    """One way to run the same steps: seconds of wall time, seconds inside steps, counts."""

    wall_s: float
    steps_s: float
    steps: int
    slurm_jobs: int

    @property
    def share(self) -> float:
        """Share of the harness: wall time less steps, over wall time."""
        return (self.wall_s - self.steps_s) / self.wall_s


@dataclass(frozen=True)
class Comparison:
    """netproof's way and the naive one, of the same invocation."""

    netproof: Way
    naive: Way

    @property
    def fewer_jobs(self) -> float:
        """Ratio of the naive way's jobs to netproof's."""
        return self.naive.slurm_jobs / self.netproof.slurm_jobs

    def missed(self) -> list[str]:
        """Return a sentence for each missed aim."""
        sentences = []
        if self.netproof.share > MOST_SHARE:
            sentences.append(
                f"the harness's share is {self.netproof.share:.1%}, above {MOST_SHARE:.0%}"
            )
        if self.fewer_jobs < LEAST_FEWER_JOBS:
            sentences.append(
                f"{self.fewer_jobs:.1f} times fewer jobs, and not {LEAST_FEWER_JOBS:g}"
            )
        return sentences

    def as_json(self) -> dict:
        """Return plain values: seconds, counts, shares from 0 to 1."""
        ways = {
            name: {**dataclasses.asdict(way), "share": way.share}
            for name, way in (("netproof", self.netproof), ("naive", self.naive))
        }
        return {
            **ways,
            "fewer_jobs": self.fewer_jobs,
            "aims": {"most_share": MOST_SHARE, "least_fewer_jobs": LEAST_FEWER_JOBS},
            "missed": self.missed(),
        }


def step_seconds(folder: Path) -> dict[str, float]:
    """Read the seconds of each step of a job from its ``launches.tsv``.

    Raises NetproofError if the record is missing or garbled, or a step failed.
    """
    seconds = {}
    for name, record in job_files.records(folder).items():
        if record.status != 0:
            raise NetproofError(f"{folder / name}.err: the step ended with status {record.status}")
        seconds[name] = record.wall_s
    return seconds


def single_plans(folder: Path) -> tuple[str, dict[str, JobPlan]]:
    """Return the job script and, for each step, the plan that runs it alone.

    Nodes are not described. Raises NetproofError if the job script is not as planned.
    """
    job_script = (folder / "rfm_job.sh").read_text()
    if job_script.splitlines()[-1:] != [_JOB_CALL]:
        raise NetproofError(f"{folder / 'rfm_job.sh'}: does not end in {_JOB_CALL!r}")
    whole = JobPlan.read(folder / plan.PLAN_FILE)
    alone = {"task": "launches", "describe_nodes": False, "transport": ()}
    return job_script, {
        step.name: dataclasses.replace(whole, rounds=((step,),), **alone)
        for steps in whole.rounds
        for step in steps
    }


def parse_jobs(text: str) -> list[SlurmJob]:
    """Parse ``sacct --parsable2 --noheader``. Raises NetproofError for a line without a job."""
    jobs = []
    for line in text.splitlines():
        try:
            jobid, state, submit, _, _ = line.split("|")
            # A cancelled job's state also names who cancelled it.
            jobs.append(
                SlurmJob(jobid, state.split()[0], datetime.fromisoformat(submit).timestamp())
            )
        except (ValueError, IndexError) as error:
            raise NetproofError(f"sacct: {line!r} is no {_SACCT_FORMAT}: {error}") from error
    return jobs


def sacct(*selection: str) -> list[SlurmJob]:
    """Return the jobs that Slurm's accounting selects."""
    command = ["sacct", "--allocations", "--parsable2", "--noheader", f"--format={_SACCT_FORMAT}"]
    return parse_jobs(_output([*command, *selection]))


def smoke() -> tuple[Way, list[Path]]:
    """Run the smoke run; return its cost and the folders of its jobs."""
    report = ROOT / "reports" / f"run-harness-{datetime.now():%Y%m%dT%H%M%S}.json"
    log = report.with_suffix(".log")
    report.parent.mkdir(exist_ok=True)
    begun_at, begun = int(time.time()), time.monotonic()
    with log.open("w") as out:
        ran = subprocess.run(
            SMOKE,
            cwd=ROOT,
            env={**os.environ, "RFM_REPORT_FILE": str(report)},
            stdout=out,
            stderr=subprocess.STDOUT,
            check=False,
        )
    wall = time.monotonic() - begun
    if ran.returncode != 0:
        raise NetproofError(f"the smoke run ended with status {ran.returncode}; see {log}")
    folders = [
        Path(result.folder) for result in session.load(report).results if result.case is None
    ]
    seconds = [second for folder in folders for second in step_seconds(folder).values()]
    since = datetime.fromtimestamp(begun_at).isoformat()
    jobs = [job for job in sacct(f"--starttime={since}") if job.submit >= begun_at]
    return Way(wall, sum(seconds), len(seconds), len(jobs)), folders


def naive(folders: Sequence[Path], work: Path) -> Way:
    """Run every step of the jobs in ``folders`` as a Slurm job of its own, below ``work``."""
    places = []
    for folder in folders:
        shared = [*plan.SHELL_FILES, folder / plan.SCRIPT, *folder.glob(plan.SIZE_FILES)]
        job_script, several = single_plans(folder)
        for step, alone in several.items():
            place = work / folder.parent.name / folder.name / step
            place.mkdir(parents=True)
            for source in shared:
                (place / source.name).write_bytes(source.read_bytes())
            (place / "rfm_job.sh").write_text(job_script)
            alone.write(place)
            places.append(place)
    begun = time.monotonic()
    jobids: list[str] = []
    try:
        for place in places:
            command = ["sbatch", "--parsable", f"--chdir={place}", str(place / "rfm_job.sh")]
            jobids.append(_output(command).strip())
        jobs = _wait(jobids)
    except BaseException:
        # Jobs left over would delay the next measurement.
        if jobids:
            subprocess.run(["scancel", *jobids], check=False)
        raise
    wall = time.monotonic() - begun
    for job, place in zip(jobs, places, strict=True):
        if job.state != "COMPLETED":
            raise NetproofError(f"{place}: its job {job.jobid} ended as {job.state}")
    seconds = [second for place in places for second in step_seconds(place).values()]
    return Way(wall, sum(seconds), len(seconds), len(jobs))


def _wait(jobids: Sequence[str]) -> list[SlurmJob]:
    """Wait until all jobs have ended; return them in the order of ``jobids``."""
    deadline = time.monotonic() + NAIVE_LIMIT_SECONDS
    while True:
        jobs = {job.jobid: job for job in sacct(f"--jobs={','.join(jobids)}")}
        waiting = [
            jobid for jobid in jobids if jobid not in jobs or jobs[jobid].state in _UNFINISHED
        ]
        if not waiting:
            return [jobs[jobid] for jobid in jobids]
        if time.monotonic() > deadline:
            raise NetproofError(
                f"{len(waiting)} of {len(jobids)} jobs had not ended after {NAIVE_LIMIT_SECONDS} s"
            )
        time.sleep(POLL_SECONDS)


def _output(command: Sequence[str]) -> str:
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise NetproofError(f"{command[0]} ended with status {ran.returncode}: {ran.stderr}")
    return ran.stdout


def show(comparison: Comparison) -> None:
    """Print both ways and the aims."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    for heading in ("wall s", "in steps s", "harness's share", "steps", "Slurm jobs"):
        table.add_column(heading, justify="right")
    for name, way in (
        ("netproof", comparison.netproof),
        ("a job for each function and launch", comparison.naive),
    ):
        table.add_row(
            name,
            f"{way.wall_s:.1f}",
            f"{way.steps_s:.1f}",
            f"{way.share:.1%}",
            str(way.steps),
            str(way.slurm_jobs),
        )
    out = terminal.console()
    out.print(table)
    out.print(
        f"aims: share at most {MOST_SHARE:.0%}, at least {LEAST_FEWER_JOBS:g} times fewer jobs"
        f" ({comparison.fewer_jobs:.1f} here)"
    )
    for sentence in comparison.missed():
        out.print(Text(f"MISSED {sentence}", "red"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure both ways; return 0 if the aims are met, 1 if one is missed, 2 on an error."""
    parser = argparse.ArgumentParser(prog="ci/harness-share", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print plain JSON and no table")
    options = parser.parse_args(arguments)
    try:
        ours, folders = smoke()
        theirs = naive(folders, ROOT / "output" / f"naive-{datetime.now():%FT%H-%M-%S}")
    except (NetproofError, OSError) as error:
        print(f"ci/harness-share: cannot measure: {error}", file=sys.stderr)
        return CANNOT_MEASURE
    comparison = Comparison(ours, theirs)
    if options.json:
        print(json.dumps(comparison.as_json(), indent=1))
    else:
        show(comparison)
    return MISSED if comparison.missed() else 0
