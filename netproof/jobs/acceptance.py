"""The acceptance job of a partition: all environments on the same nodes, next to each other.

Each environment has a folder in the job's, with a plan of its own. First every case is launched as
often as was asked, environments in turns in random order. What that leaves undecided is launched
again, in rounds; then what comparing the environments leaves undecided. Whoever reads the job
comes to the same cases by the same files.
"""

from __future__ import annotations

import itertools
import random
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from netproof import codec
from netproof.jobs import describing, repeat_rounds
from netproof.jobs.job import RunningJob
from netproof.jobs.repeat_cases import RepeatCase, compared, undecided
from netproof.jobs.repeat_rounds import RepeatRounds
from netproof.measurement.case import Case
from netproof.session import plan, records, transport
from netproof.session.job_files import Incomplete
from netproof.session.measured import Measured
from netproof.session.plan import PLAN_FILE, JobPlan, PeerEnvironment, Step
from netproof.site.partition import ScoreBaseline
from netproof.verdict.engine import Subject
from netproof.verdict.limits import Limits

REPEATS, COMPARED = "repeats", "compared"
"""Folders of repeat launches in an environment's: what its first launches left undecided, and what
comparing it with others did."""


@dataclass(frozen=True)
class JobAsked:
    """The task of the job: its environments, by the names of their folders."""

    environments: tuple[str, ...]
    baseline: ScoreBaseline | None = None


@dataclass(frozen=True)
class EnvironmentAsked:
    """The task of one environment: ``cases`` as ``records.asked`` has them, with their limits.

    ``extras``: of the environment; ``ranks``: 0 for NetPIPE.
    """

    srun: tuple[str, ...]
    extras: Mapping[str, Any]
    cases: tuple[tuple[Case, Mapping[str, Limits]], ...]
    launches: int
    ranks: int = 0


class EnvironmentJob:
    """One environment of a job: its folder, its plan, and what it has measured so far."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.name = folder, folder.name
        self.plan = JobPlan.read(folder / PLAN_FILE)
        self.asked = codec.decode(EnvironmentAsked, self.plan.asked, f"{folder}: its task")

    @cached_property
    def measured(self) -> dict[Case, Measured | Incomplete]:
        """Return each case by its first launches, or why it is not complete; read once."""
        shared = {
            "partition_extras": self.plan.extras,
            "environment_extras": self.asked.extras,
        }
        cases = [case for case, _ in self.asked.cases]
        return records.measured_of(self.folder, records.asked(cases, self.asked.launches, **shared))

    def first(self) -> list[RepeatCase]:
        """Return the complete cases with what is to be repeated of them."""
        found = []
        for case, limits in self.asked.cases:
            measured = self.measured[case]
            if isinstance(measured, Measured):
                subject = Subject.of_extras(measured, self.plan.extras, self.asked.extras)
                found.append(RepeatCase(subject, limits, self.plan.extras))
        return undecided(found)

    def rounds(
        self, asked: Sequence[RepeatCase], peers: Sequence[PeerEnvironment]
    ) -> tuple[list[list[Step]], dict[str, str]]:
        """Return the rounds of steps of cases, and the files that they need."""
        place = (self.asked.srun, self.plan.seed, self.plan.partition)
        if not self.asked.ranks:
            return repeat_rounds.netpipe_rounds(asked, *place, peers), {}
        rounds = repeat_rounds.imb_rounds(asked, *place, self.asked.ranks, peers)
        return rounds, repeat_rounds.imb_files(asked, peers)


def is_open(asked: Iterable[RepeatCase]) -> bool:
    """Check whether something is to be repeated."""
    return any(one.whole or one.around for one in asked)


class JobOutcome:
    """What a job in ``folder`` measured, by the name of the environment."""

    def __init__(self, folder: Path, jobid: str) -> None:
        task = codec.decode(JobAsked, JobPlan.read(folder / PLAN_FILE).asked, f"{folder}: task")
        self.baseline, self.jobid = task.baseline, jobid
        self.environments = {name: EnvironmentJob(folder / name) for name in task.environments}

    def _read(self, stage: str, asked: Mapping[str, list[RepeatCase]]) -> dict:
        """Return the cases with what was launched again of them in a stage."""
        return {
            name: [
                repeat_rounds.read(
                    self.environments[name].folder / stage,
                    one,
                    jobid=self.jobid,
                    places=repeat_rounds.environments(several),
                )
                for one in several
                if one.whole or one.around
            ]
            for name, several in asked.items()
        }

    @cached_property
    def first(self) -> dict[str, list[RepeatCase]]:
        """Return the complete cases with what is to be repeated of them."""
        return {name: one.first() for name, one in self.environments.items()}

    @cached_property
    def repeated(self) -> dict[str, list[RepeatCase]]:
        """Return the cases that were repeated, with their results."""
        return self._read(REPEATS, self.first)

    @cached_property
    def to_compare(self) -> dict[str, list[RepeatCase]]:
        """Return the cases that comparing the environments leaves undecided."""
        known: dict[str, list[RepeatCase]] = {}
        for name, several in self.first.items():
            done = {one.key: one for one in self.repeated[name]}
            known[name] = []
            for one in several:
                again = done.get(one.key, one)
                if not again.faults:
                    whole = replace(again, subject=again.repeated, launches=(), crashes=())
                    known[name].append(replace(whole, whole=False, around=False))
        everyone = list(itertools.chain(*known.values()))
        return {
            name: undecided(compared(everyone, own, self.baseline)) for name, own in known.items()
        }

    @cached_property
    def compared(self) -> dict[str, list[RepeatCase]]:
        """Return the cases that were repeated for a comparison, with their results."""
        return self._read(COMPARED, self.to_compare)


def run(job: RunningJob) -> None:
    """Launch all environments' cases, and again what is undecided."""
    task = codec.decode(JobAsked, job.plan.asked, f"{job.folder}: its task")
    parts = {
        name: RunningJob(
            job.folder / name,
            JobPlan.read(job.folder / name / PLAN_FILE),
            dry=job.dry,
            within=job,
        )
        for name in task.environments
    }
    draw = random.Random(job.plan.seed)
    with ExitStack() as stack:
        for part in parts.values():
            stack.enter_context(part.running())
        for part in parts.values():
            describing.describe(part)
        for units in itertools.zip_longest(*(one.plan.rounds for one in parts.values())):
            several = list(zip(parts.values(), units, strict=True))
            draw.shuffle(several)
            for part, steps in several:
                for step in steps or ():
                    part.launch(step)
        for part in parts.values():
            if part.plan.transport:
                part.aside(part.plan.transport, transport.LIMIT_S, transport.STEP)
        if job.dry:
            return
        outcome = JobOutcome(job.folder, job.jobid)
        _repeat(parts, outcome, REPEATS, lambda: outcome.first, draw)
        _repeat(parts, outcome, COMPARED, lambda: outcome.to_compare, draw)


def _repeat(
    parts: Mapping[str, RunningJob],
    outcome: JobOutcome,
    stage: str,
    asked: Callable[[], Mapping[str, list[RepeatCase]]],
    draw: random.Random,
) -> None:
    """Launch the undecided cases of all environments, round by round, until they are decided."""
    wanted = {name: several for name, several in asked().items() if is_open(several)}
    several = [_rounds(parts[name], outcome, stage, cases) for name, cases in wanted.items()]
    with ExitStack() as stack:
        for one in several:
            stack.enter_context(one.job.running())
        for number in itertools.count(1):
            draw.shuffle(several)
            made = [one for one in several if one.launch(number)]
            if not made:
                return
            for one in made:
                one.decide(number)


def _rounds(
    part: RunningJob, outcome: JobOutcome, stage: str, asked: Sequence[RepeatCase]
) -> RepeatRounds:
    """Return the rounds of an environment's cases, planned in a folder of their own."""
    environment = outcome.environments[part.folder.name]
    folder = part.folder / stage
    if folder.exists():
        # Slurm requeued the job.
        tries = itertools.count(1)
        old = next(one for n in tries if not (one := part.folder / f"{stage}-try-{n}").exists())
        shutil.move(folder, old)
    folder.mkdir()
    peers = [
        PeerEnvironment(
            name,
            place,
            outcome.environments[name].asked.srun,
            str(outcome.environments[name].folder / outcome.environments[name].plan.setup),
        )
        for place, name in enumerate(repeat_rounds.environments(asked))
    ]
    rounds, files = environment.rounds(asked, peers)
    for source in plan.SHELL_FILES:
        shutil.copy(source, folder)
    if (part.folder / plan.PACE_FILE).exists():
        shutil.copy(part.folder / plan.PACE_FILE, folder)
    for name, text in files.items():
        (folder / name).write_text(text)
    planned = replace(
        part.plan,
        rounds=tuple(map(tuple, rounds)),
        transport=(),
        setup=str(part.folder / part.plan.setup),
        asked=None,
    )
    planned.write(folder)
    return RepeatRounds(RunningJob(folder, planned, within=part), asked)
