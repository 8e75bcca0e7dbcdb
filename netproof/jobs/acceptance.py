"""The acceptance job of a partition: all environments on the same nodes, interleaved.

Each environment has a folder in the job's, with a plan of its own. First every case is launched as
often as was asked, environments in turns in random order. What that leaves undecided is launched
again, round by round, until it is decided: whole curves, and the sizes around those that a
criterion flagged. Then what comparing the environments leaves undecided is launched again, each
next to those that it is compared with, and what scatters too much to be compared with another
partition; and then what those launches leave undecided of a case by itself. Whoever reads the job
reads the same files in the same way.
"""

from __future__ import annotations

import itertools
import json
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from netproof.benchmarks import registry
from netproof.criteria import Finding
from netproof.errors import NetproofError, grouped
from netproof.intake import disk
from netproof.jobs.job import RunningJob
from netproof.jobs.repeat_cases import RepeatCase, compared, read_again, undecided
from netproof.measurement.case import Case
from netproof.measurement.disturbance import others_share
from netproof.session import job_files, plan, records
from netproof.session.job_files import Incomplete, JobFolder, JobReport
from netproof.session.measured import Launch, Measured
from netproof.session.plan import PLAN_FILE, JobPlan, Step
from netproof.site.partition import ScoreBaseline
from netproof.verdict import confirmations, engine
from netproof.verdict.engine import Key, Subject
from netproof.verdict.limits import Limits

OPEN_FILE = "open.json"
"""Subjects of the cases of each environment that are undecided before a round."""

NEXT_TO = "-next-to-"
"""Between the subject of a launch for a comparison and the environment of the compared one, which
has its number."""


class EnvironmentJob:
    """One environment of a job: its folder, its plan, and what it has measured so far.

    Its task is the limits of each case.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.plan = JobPlan.read(folder / PLAN_FILE)
        self.partition = self.plan.partition
        self.limits = self.plan.task_of(tuple[Mapping[str, Limits], ...])
        self._launches: dict[str, Launch] = {}

    @cached_property
    def measured(self) -> dict[Case, Measured | Incomplete]:
        """Return each case by its first launches, or why it is not complete; read once."""
        return records.measured_of(self.folder, self.plan)

    def first(self) -> list[RepeatCase]:
        """Return the complete cases, by their first launches."""
        found = []
        for case, limits in zip(self.plan.cases, self.limits, strict=True):
            measured = self.measured[case]
            if isinstance(measured, Measured):
                extras = self.plan.extras, self.plan.environment_extras
                found.append(RepeatCase(Subject.of_extras(measured, *extras), limits))
        return found

    @cached_property
    def job(self) -> JobFolder:
        """Its launches; Incomplete if the record of the steps is missing or damaged."""
        return JobFolder(self.folder)

    def made(self, subject: str) -> int:
        """Return how many launches of a subject there are."""
        return next(n for n in itertools.count() if f"{subject}.{n + 1}" not in self.job.recorded)

    def whole_steps(self, case: Case, subject: str, number: int) -> list[Step]:
        """Return a launch of a whole curve, before the one over the link's healthy twin."""
        step = plan.step_of(case, number, self.partition, self.plan.srun, subject)
        return [step, *plan.twin_of(step, case, self.partition)]

    def around_steps(self, one: RepeatCase) -> list[Step]:
        """Return a launch around a case's flagged sizes, which may take several calls."""
        parts = one.dense()
        number = self.made(parts[0][0]) + 1

        def step(subject: str, sizes: plan.SizeSweep | Sequence[int]) -> Step:
            place = (number, self.partition, self.plan.srun, subject)
            return plan.step_of(one.case, *place, sizes)

        if registry.of(one.case).by_protocol:
            several = zip(parts, one.sweeps(), strict=True)
            return [step(subject, sweep) for (subject, _), sweep in several]
        for name, text in plan.size_files(dict(parts)).items():
            (self.folder / name).write_text(text)
        return [step(*part) for part in parts]

    def launch(self, case: Case, subject: str, number: int, sizes: tuple[int, ...]) -> Launch:
        """Read a launch of a whole curve, once; raise Incomplete, ParseError and OSError."""
        step = f"{subject}.{number}"
        if step not in self._launches:
            twin = NEXT_TO not in subject
            self._launches[step] = self.job.whole_launch(
                step, case, self.partition, sizes, with_twin=twin
            )
        return self._launches[step]


class JobOutcome:
    """Results of a job in ``folder``, by the name of the environment; its task is the baseline.

    ``unread``: why the plan of an environment cannot be read.
    """

    def __init__(self, folder: Path, jobid: str) -> None:
        planned = JobPlan.read(folder / PLAN_FILE)
        self.baseline = planned.task_of(ScoreBaseline) if planned.asked else None
        self.folder, self.jobid = folder, jobid
        self.environments: dict[str, EnvironmentJob] = {}
        self.unread: dict[str, str] = {}
        for name in planned.environments:
            try:
                self.environments[name] = EnvironmentJob(folder / name)
            except (NetproofError, OSError) as error:
                self.unread[name] = str(error)

    def read(self, one: RepeatCase) -> RepeatCase:
        """Return a case with its launches since those of its ``subject``."""
        name = one.case.environment
        environment, sizes = self.environments[name], one.subject.measured.curve.sizes
        launches: list[Launch] = []
        crashes: list[Launch] = []
        faults: list[str] = []
        first = len(one.subject.measured.launches) + 1
        for number in range(first, environment.made(one.step) + 1):
            step = f"{one.step}.{number}"
            crashes += environment.job.crashes(step)
            try:
                launch = environment.launch(one.case, one.step, number, sizes)
                launches.append(replace(self._with_peers(name, one, launch), further=True))
            except (NetproofError, OSError) as error:
                faults.append(str(error))
        around, parts = one.again, () if one.compares else one.dense()
        if parts and (made := environment.made(parts[0][0])):
            place = (environment.folder, one.case, parts, range(1, made + 1))
            around = read_again(*place, jobid=self.jobid)
        return replace(
            one,
            again=around,
            launches=tuple(launches),
            faults=tuple(faults),
            crashes=tuple(crashes),
        )

    def _with_peers(self, name: str, one: RepeatCase, launch: Launch) -> Launch:
        """Return a launch with those paired with it in other environments.

        Its loads are those of the most disturbed one. Raise Incomplete, ParseError and OSError if
        one of them is not complete.
        """
        peers, loads = [], [launch.loads]
        subject, number = f"{one.step}{NEXT_TO}{name}", launch.number
        for other, environment in self.environments.items():
            if other == name or f"{subject}.{number}" not in environment.job.recorded:
                continue
            case = replace(one.case, environment=other)
            paired = environment.launch(case, subject, number, launch.curve.sizes)
            crashes = environment.job.crashes(f"{subject}.{number}")
            loads.append(paired.loads)
            paired = replace(paired, environment=other, crashes=crashes)
            peers.append(replace(paired, ranks=(), loads=(), used={}))
        noisiest = max(loads, key=others_share)
        return replace(launch, peers=tuple(peers), loads=noisiest)

    def first(self) -> list[RepeatCase]:
        """Return the complete cases of all environments, by their first launches."""
        return [one for environment in self.environments.values() for one in environment.first()]

    @cached_property
    def cases(self) -> list[RepeatCase]:
        """Return the complete cases with their repeats; an undecided one has why the job ended."""
        found = [self.read(one) for one in self.first()]
        why = self._ended()
        if not why:
            return found
        try:
            known = disk.json_file(self.folder / OPEN_FILE)
        except (NetproofError, OSError):
            # It did not come to the end of the first launches.
            known = _open(undecided(found))
        return [
            replace(one, faults=(*one.faults, why))
            if one.step in known.get(one.case.environment, ())
            else one
            for one in found
        ]

    def subjects(self, name: str) -> list[Subject]:
        """Return the complete cases of an environment, with their repeats."""
        planned = self.environments[name].plan
        return [
            Subject.of_extras(one, planned.extras, planned.environment_extras)
            for one in self.measured[name].values()
            if isinstance(one, Measured)
        ]

    @cached_property
    def measured(self) -> dict[str, dict[Case, Measured | Incomplete]]:
        """Return each case with its repeats, or why it is not complete."""
        found = {name: dict(one.measured) for name, one in self.environments.items()}
        for one in self.cases:
            first = one.subject.measured
            whole = first.with_launches([*first.launches, *one.launches], one.crashes)
            found[one.case.environment][one.case] = (
                Incomplete("; ".join(one.faults)) if one.faults else replace(whole, again=one.again)
            )
        return found

    @cached_property
    def findings(self) -> Mapping[Key, Sequence[Finding]]:
        """Return what the criteria find in the complete cases, by the keys of these.

        Findings are along each curve, on its crashed launches, and from comparing the environments.
        A job that did not measure the baseline has no scores.
        """
        subjects = [one for name in self.environments for one in self.subjects(name)]
        places = {ScoreBaseline(one.case.partition, one.case.environment) for one in subjects}
        scored = self.baseline in places
        along = confirmations.findings_along(subjects)
        across = engine.across(subjects, self.baseline, scored=scored)
        launched = {one.environment: one.finding for one in confirmations.launched(subjects)}
        found = {}
        for one in subjects:
            key, again = one.case.key(), one.measured.again or ()
            peers = (peer for launch in one.measured.launches for peer in launch.peers)
            crashed = {peer.environment for peer in peers if peer.crashes}
            if one.measured.crashes or any(launch.crashes for launch in again):
                crashed.add(one.case.environment)
            of_launches = (launched[name] for name in sorted(crashed & launched.keys()))
            found[key] = (*along[key], *across.get(key, ()), *of_launches)
        return found

    def _ended(self) -> str:
        """Return why the job did not come to its end, empty if it did."""
        path = self.folder / job_files.JOB_FILE
        try:
            reason = JobReport.read(self.folder).ended
        except (NetproofError, OSError) as error:
            reason = f"it left no report: {error}"
        return f"{path}: the job ended before it had decided this: {reason}" if reason else ""

    def units(self, cases: Iterable[RepeatCase], number: int) -> list[list[tuple[str, Step]]]:
        """Return a round of launches, those together that are to follow each other.

        TCP and MPI of one path and direction are together, of all environments, and environments
        that are compared; every other round is in the reverse order.
        """
        units: defaultdict[tuple[Any, ...], list[tuple[str, Step]]] = defaultdict(list)
        for one in cases:
            case, name = one.case, one.case.environment
            environment = self.environments[name]
            if one.around:
                steps = environment.around_steps(one)
                units[name, case, "around"] = [(name, step) for step in steps]
            if not one.whole:
                continue
            made = environment.made(one.step) + 1
            own = [(name, step) for step in environment.whole_steps(case, one.step, made)]
            others = [
                [(peer, self.environments[peer].whole_steps(case, subject, made)[0])]
                for peer in one.paired
                for subject in [f"{one.step}{NEXT_TO}{name}"]
            ]
            by_protocol = registry.of(case).by_protocol
            together = (case.path, case.direction) if by_protocol else (name, one.step)
            several = [own, *others][:: 1 if number % 2 else -1]
            units[together] += itertools.chain(*several)
        return [*units.values()]


def _open(cases: Iterable[RepeatCase]) -> dict[str, list[str]]:
    return grouped((one.case.environment, one.step) for one in cases if one.open)


def run(job: RunningJob) -> None:
    """Launch all environments' cases, and again what is undecided."""
    parts = {}
    for name in job.plan.environments:
        planned = JobPlan.read(job.folder / name / PLAN_FILE)
        parts[name] = RunningJob(job.folder / name, planned, dry=job.dry, within=job)
    draw = random.Random(job.plan.seed)
    with ExitStack() as stack:
        for part in parts.values():
            stack.enter_context(part.running())
        first, *others = parts.values()
        first.describe(*others)
        for units in itertools.zip_longest(*(one.plan.rounds for one in parts.values())):
            several = list(zip(parts.values(), units, strict=True))
            draw.shuffle(several)
            _launch([(part, step) for part, steps in several for step in steps or ()])
        if job.dry:
            return
        outcome = JobOutcome(job.folder, job.jobid)
        decided = _until_decided(parts, outcome, outcome.first(), draw)
        whole = [
            RepeatCase(one.repeated, one.limits, again=one.again)
            for one in decided
            if not one.faults
        ]
        if compared_with := compared(whole, outcome.baseline):
            _until_decided(parts, outcome, compared_with, draw)
            # What was launched to compare counts for each case by itself, too.
            _until_decided(parts, outcome, [outcome.read(one) for one in outcome.first()], draw)
    # All is decided, whether or not ReFrame is still there to read it.
    job.report()
    for name, one in outcome.environments.items():
        values = records.cases_of(one.folder, one.plan, outcome.measured[name])
        records.write(one.folder / records.JOB_RECORD, {}, {records.CASES: values})


def _launch(several: Iterable[tuple[RunningJob, Step]]) -> None:
    """Launch the steps in their order.

    One over the healthy twin is of the launch before it and, where it is to be alike, of the one
    after it: so every launch is next to its twin's, and half of these are made.
    """
    before: tuple[RunningJob, Step] | None = None
    last: tuple[RunningJob, Step] | None = None
    for part, step in several:
        of_last = last is not None and step.name == plan.twin_name(last[1].name)
        # The last argument is its own file.
        if of_last and before is not None and before[1].command[:-1] == step.command[:-1]:
            part.share(step, *before)
            before = None
        else:
            before, last = last, None if part.launch(step) else (part, step)


def _until_decided(
    parts: Mapping[str, RunningJob],
    outcome: JobOutcome,
    cases: list[RepeatCase],
    draw: random.Random,
) -> list[RepeatCase]:
    """Launch the undecided cases of all environments, round by round, until they are decided."""
    for number in itertools.count(1):
        cases = undecided(cases)
        for place, one in enumerate(cases):
            # What is not complete stays so.
            allowed = number <= one.rounds()
            whole, around = one.whole and allowed and not one.faults, one.around and allowed
            cases[place] = replace(one, whole=whole, around=around)
        known = _open(cases)
        disk.replace(outcome.folder / OPEN_FILE, json.dumps(known) + "\n")
        if not known:
            return cases
        units = outcome.units(cases, number)
        draw.shuffle(units)
        _launch([(parts[name], step) for name, step in itertools.chain(*units)])
        for environment in outcome.environments.values():
            # The records of steps are read again.
            vars(environment).pop("job", None)
        cases = [outcome.read(one) if one.open else one for one in cases]
    raise AssertionError("the count has no end")
