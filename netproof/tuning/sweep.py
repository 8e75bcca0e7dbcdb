"""A sweep: its launches in their order, the job's result, and its record in a report."""

from __future__ import annotations

import dataclasses
import random
import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netproof.benchmarks import registry
from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.measurement.curve import Curve
from netproof.measurement.disturbance import disturbed
from netproof.measurement.eager_limit import EagerLimit, eager_limit, eager_limit_alongside
from netproof.measurement.launches import median_curve
from netproof.session import job_files, job_scripts, plan
from netproof.session.job_files import Incomplete
from netproof.session.labelled import JobRecord
from netproof.session.measured import Launch
from netproof.session.plan import Step
from netproof.site.partition import Partition
from netproof.tuning import restoring
from netproof.tuning.gains import Made, Tuned, tuned
from netproof.tuning.parameters import Told, is_eager_limit

BETWEEN_DEFAULTS = 2
"""Number of values between one launch of the default and the next."""


@dataclass(frozen=True)
class SweepTurn:
    """A launch to be made: the value (None: the default) and its round.

    ``subject`` and ``launch`` make the name of the step.
    """

    value: str | None
    round: int
    subject: str
    launch: int

    @property
    def step(self) -> str:
        """Return the name of the step."""
        return f"{self.subject}.{self.launch}"


def turns(values: Sequence[str], rounds: int, seed: int) -> tuple[SweepTurn, ...]:
    """Return a sweep's launches in order: values shuffled, the default around every two."""
    shuffle = random.Random(seed)
    made: Counter[str] = Counter()
    found: list[SweepTurn] = []

    def add(value: str | None, number: int) -> None:
        subject = "tuning-default" if value is None else f"tuning-{values.index(value) + 1}"
        made[subject] += 1
        found.append(SweepTurn(value, number, subject, made[subject]))

    for number in range(1, rounds + 1):
        shuffled = list(values)
        shuffle.shuffle(shuffled)
        add(None, number)
        for place, value in enumerate(shuffled, 1):
            add(value, number)
            if place % BETWEEN_DEFAULTS == 0 or place == len(shuffled):
                add(None, number)
    return tuple(found)


def steps(
    several: Sequence[SweepTurn], case: Case, value: Told, partition: Partition, srun: Sequence[str]
) -> tuple[Step, ...]:
    """Return the job steps of a NetPIPE sweep with their values; ``srun``: command and options."""
    variant = (case.function, case.path, case.direction)
    sweep = plan.whole_sweep(partition)
    made = []
    for order, turn in enumerate(several):
        step = plan.netpipe_step(turn.subject, turn.launch, variant, sweep, order, partition, srun)
        made.append(step if turn.value is None else assigned(step, value.of(turn.value)))
    return tuple(made)


def hooked_script(
    several: Sequence[SweepTurn],
    planned: Sequence[Step],
    partition: Partition,
    name: str,
    record: Path,
    *,
    over_tcp: bool,
) -> str:
    """Return the job script of a sweep by the site's hook, which sets the value for each launch.

    ``record``: file with the nodes' own values until they are restored, which happens however the
    script ends.
    """
    lines = job_scripts.head(partition, len(planned), over_tcp=over_tcp, describe_nodes=True)
    lines += [
        ". ./turning.sh",
        f"{shlex.join(['turn_begin', str(record), name, *partition.tuning_hook])} || exit 4",
        "trap 'end_steps; turn_back' EXIT",
    ]
    for turn, step in zip(several, planned, strict=True):
        set_it = "turn_to_own" if turn.value is None else f"turn_to {shlex.quote(turn.value)}"
        lines.append(f"{set_it} || exit 5")
        lines.append(job_scripts.line(step, partition))
    return "\n".join([*lines, "turn_back || exit 6", "trap end_steps EXIT"]) + "\n"


def assigned(step: Step, setting: Told) -> Step:
    """Return the step with the variables and arguments of a value."""
    command = step.command
    if setting.arguments:
        command += f" {shlex.join(setting.arguments)}"
    if setting.variables:
        named = [f"{name}={text}" for name, text in setting.variables.items()]
        command = f"{shlex.join(['env', *named])} {command}"
    return dataclasses.replace(step, command=command)


@dataclass(frozen=True)
class Sweep(JobRecord):
    """The measurements of a sweep, in the order of its launches.

    ``own``: the nodes' values when the job began, each once; () without a hook.
    """

    KEY = "netproof_tuning"
    CALLED = "sweep"
    FORMAT = 2

    case: Case
    parameter: str
    title: str
    told: Told
    jobid: str
    seed: int
    partition_extras: Mapping[str, Any]
    turns: tuple[SweepTurn, ...]
    launches: tuple[Launch, ...]
    own: tuple[str, ...] = ()

    @property
    def already(self) -> str | None:
        """Return the value that all nodes have already, None where they differ or it is unknown."""
        return self.own[0] if len(self.own) == 1 else None

    def made(self) -> list[Made]:
        """Return the launches, as ``gains`` needs them."""
        return [
            Made(turn.value, turn.round, launch.order, launch.curve, not self._disturbing(launch))
            for turn, launch in zip(self.turns, self.launches, strict=True)
        ]

    def tuned(self) -> Tuned:
        """Return its result; NetproofError, with what disturbed it, where it has none."""
        try:
            return tuned(self.made(), self.already)
        except NetproofError as error:
            raise NetproofError(f"{self.title}: {error}{self.disturbance()}") from None

    def disturbance(self) -> str:
        """Return the number of disturbed launches and the first one's reason; empty without any."""
        several = [found for one in self.launches if (found := self._disturbing(one))]
        if not several:
            return ""
        return (
            f"; {len(several)} of {len(self.launches)} launches were disturbed, the first so:"
            f" {'; '.join(several[0])}. Measure while nothing else runs there, or with more rounds"
        )

    def _disturbing(self, launch: Launch) -> tuple[str, ...]:
        """Return what disturbed a launch, by its partition's settings."""
        return disturbed(launch.loads, self.where.settings().disturbance)

    def curves(self) -> dict[str | None, list[Curve]]:
        """Return the launches' curves, by value (None: the default)."""
        found: dict[str | None, list[Curve]] = {}
        for turn, launch in zip(self.turns, self.launches, strict=True):
            found.setdefault(turn.value, []).append(launch.curve)
        return found

    def eager_limits(self) -> dict[str | None, EagerLimit | None] | None:
        """Return the step from eager to rendezvous messages, by value (None: the default).

        The medians' curves decide, those of values together with the default's. A value without a
        step has None; the result is None unless the sweep changes the eager limit.
        """
        if not is_eager_limit(self.parameter):
            return None
        curves = {value: median_curve(several) for value, several in self.curves().items()}
        default = curves.pop(None)
        alongside = {
            value: eager_limit_alongside(curve, default) for value, curve in curves.items()
        }
        return {None: eager_limit(default), **alongside}

    def insist(self) -> None:
        """Raise NetproofError unless each launch has its turn."""
        if len(self.turns) != len(self.launches):
            raise NetproofError("a sweep has not as many launches as turns")


def left_by_job(
    folder: Path, case: Case, partition: Partition, several: Sequence[SweepTurn]
) -> tuple[dict[SweepTurn, Launch], dict[str | None, list[str]], dict[SweepTurn, str]]:
    """Read the result of a job in ``folder``; Incomplete where it has no record of its launches.

    Return launches by their turns; by value, a sentence for each failed launch; and the turns that
    did not start, each with its reason.
    """
    recorded = job_files.records(folder)
    settings = partition.sizes_of(case.benchmark)
    asked = registry.of(case).asked(case, partition.max_message_bytes, settings)
    reader = job_files.reader(folder, case)
    made: dict[SweepTurn, Launch] = {}
    failed: dict[str | None, list[str]] = {}
    not_begun: dict[SweepTurn, str] = {}
    for turn in several:
        try:
            made[turn] = job_files.read_launch(
                folder, turn.step, turn.launch, recorded, case, asked, reader
            )
        except (NetproofError, OSError) as error:
            if turn.step in recorded:
                failed.setdefault(turn.value, []).append(str(error))
            else:
                not_begun[turn] = str(error)
    return made, failed, not_begun


def of_job(
    folder: Path, case: Case, partition: Partition, several: Sequence[SweepTurn]
) -> tuple[Launch, ...]:
    """Return a job's launches in ``folder``; Incomplete, with reasons by value, if some lack."""
    made, failed, not_begun = left_by_job(folder, case, partition, several)
    launches = Counter(turn.value for turn in several)
    reasons = [
        f"{'the default' if value is None else value}: {len(lacking)} of {launches[value]} launches"
        f" failed, the first so: {lacking[0]}"
        for value, lacking in failed.items()
    ]
    if not_begun:
        ran, why = len(several) - len(not_begun), next(iter(not_begun.values()))
        reasons.append(f"the job ended after {ran} of {len(several)} launches: {why}")
    if reasons:
        raise Incomplete(reasons)
    return tuple(made.values())


def own_values(folder: Path) -> tuple[str, ...]:
    """Return the nodes' values when a job began, each once, in order.

    Raise Incomplete where it wrote none, NetproofError where they cannot be read.
    """
    file = folder / restoring.OWN_FILE
    found = restoring.read(file)
    if not found:
        raise Incomplete([f"{file}: is not there: the job did not note what its nodes had"])
    return tuple(sorted({one.value for one in found}))


def newest(
    folder: Path, system: str, settings: Collection[str]
) -> tuple[list[tuple[Sweep, Tuned]], dict[str, str]]:
    """Return the newest sweep of each setting and case of a system, with its result.

    The second value is, by setting, why its newest report has no result. ``folder``: of reports of
    sweeps; may be missing.
    """
    found: dict[tuple[object, ...], tuple[Sweep, Tuned]] = {}
    faults: dict[str, str] = {}
    for name in settings:
        # Reports are named by setting and time, so the newest sorts last.
        for path in sorted(folder.glob(f"run-{name}-*.json")):
            try:
                several = [(one, one.tuned()) for one in Sweep.of_report(path)]
            except NetproofError as error:
                faults[name] = str(error)
                continue
            faults.pop(name, None)
            for one, result in several:
                if one.case.system == system and one.parameter == name:
                    found[(name, *one.case.key())] = (one, result)
    return list(found.values()), faults
