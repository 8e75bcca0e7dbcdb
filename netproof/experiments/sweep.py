"""A sweep: its launches in their order, the job's result, and its record in a report."""

from __future__ import annotations

import dataclasses
import random
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from netproof.benchmarks.outputs import text_of
from netproof.errors import NetproofError
from netproof.experiments import parameters, restoring
from netproof.experiments.gains import Made, SweepTable, tuned, winners
from netproof.experiments.parameters import BY_NAME, Assignment, is_eager_limit
from netproof.measurement.case import Case
from netproof.measurement.curve import Curve, median_curve
from netproof.measurement.disturbance import disturbed
from netproof.measurement.landmark_table import EagerLimit, eager_limit, eager_limit_alongside
from netproof.session import job_files, plan
from netproof.session.job_files import Incomplete
from netproof.session.labelled import JobRecord
from netproof.session.measured import Launch
from netproof.session.plan import Step

ALGORITHM = "algorithm"
"""The command's name of the setting whose values are a collective's algorithms."""

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


@dataclass(frozen=True)
class Sweep(JobRecord):
    """A sweep as it is planned, then with the measurements in the order of its launches.

    ``own``: the nodes' values when the job began, each once; () without a hook. Of a sweep of
    algorithms, ``library``: as the site names it; ``names``: of all values, empty where the value
    is the name; ``refused``: values that failed in a launch, or that the library ignored, with the
    reason; ``fell_back``: values that the library replaced by its own choice in some calls. Their
    launches are those of accepted algorithms and of the library's own choice.
    """

    KEY = "netproof_tuning"
    CALLED = "sweep"

    case: Case
    parameter: str
    title: str
    assignment: Assignment
    jobid: str
    seed: int
    partition_extras: Mapping[str, Any]
    turns: tuple[SweepTurn, ...]
    launches: tuple[Launch, ...] = ()
    own: tuple[str, ...] = ()
    library: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    fell_back: Mapping[str, str] = field(default_factory=dict)

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

    def table(self) -> SweepTable:
        """Return its result; NetproofError, with what disturbed it, where it has none."""
        try:
            return winners(self.made()) if self.library else tuned(self.made(), self.already)
        except NetproofError as error:
            why = f"{self.title}{f' on {self.case.ranks} ranks' if self.library else ''}: {error}"
            if several := [found for one in self.launches if (found := self._disturbing(one))]:
                why += (
                    f"; {len(several)} of {len(self.launches)} launches were disturbed, the first"
                    f" so: {'; '.join(several[0])}. Measure while nothing else runs there, or with"
                    " more rounds"
                )
            why += "".join(f"; {value}: {reason}" for value, reason in self.refused.items())
            raise NetproofError(why) from None

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


def steps(sweep: Sweep, srun: Sequence[str]) -> tuple[Step, ...]:
    """Return the job steps of a sweep with their values; ``srun``: command and options."""
    case, partition, made = sweep.case, sweep.where, []
    heard = parameters.library_of(sweep.library).heard if sweep.library else {}
    for turn in sweep.turns:
        step = plan.step_of(case, turn.launch, partition, srun, turn.subject)
        if turn.value is not None:
            setting = sweep.assignment.of(turn.value)
            command = (*step.command, *setting.arguments)
            named = [f"{name}={text}" for name, text in {**setting.variables, **heard}.items()]
            if named:
                command = ("env", *named, *command)
            step = dataclasses.replace(step, command=command, label=turn.value)
        made.append(step)
    return tuple(made)


def of_job(folder: Path, jobid: str, planned: Sweep) -> Sweep:
    """Return a sweep with the launches that its job left in ``folder``.

    Raise Incomplete, with the reasons, where a launch of a setting failed, or of the default, where
    the job ended before its last launch, and where no algorithm is left.
    """
    recorded, case = job_files.records(folder), planned.case
    partition, several = planned.where, planned.turns
    asked = plan.sizes_asked(case, partition)
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
    refused: dict[str, str] = {}
    if planned.library:
        own_choice = failed.pop(None, [])[:1]
        refused = {
            str(value): lacking[0].replace(f"{folder}/", "") for value, lacking in failed.items()
        }
        reasons = [f"the library's own choice: a launch failed: {why}" for why in own_choice]
    else:
        launches = Counter(turn.value for turn in several)
        reasons = [
            f"{'the default' if value is None else value}: {len(lacking)} of {launches[value]}"
            f" launches failed, the first so: {lacking[0]}"
            for value, lacking in failed.items()
        ]
    late = [why for turn, why in not_begun.items() if turn.value not in refused]
    if late:
        ran = len(several) - len(not_begun)
        reasons.append(f"the job ended after {ran} of {len(several)} launches: {late[0]}")
    if reasons:
        raise Incomplete(reasons)
    found = dataclasses.replace(planned, jobid=jobid)
    if not planned.library:
        by_hook = planned.parameter in BY_NAME and BY_NAME[planned.parameter].by_hook
        own = own_values(folder) if by_hook else ()
        return dataclasses.replace(found, launches=tuple(made.values()), own=own)
    library = parameters.library_of(planned.library)
    refused = {**_lines_with(library.ignored, folder, made), **refused}
    if len(refused) == len(planned.names):
        raise Incomplete([f"{value}: {reason}" for value, reason in refused.items()])
    accepted = {turn: launch for turn, launch in made.items() if turn.value not in refused}
    fell_back = _lines_with(library.fell_back, folder, accepted)
    return dataclasses.replace(
        found,
        turns=tuple(accepted),
        launches=tuple(accepted.values()),
        refused={value: refused[value] for value in planned.names if value in refused},
        fell_back={value: fell_back[value] for value in planned.names if value in fell_back},
    )


def _lines_with(pattern: str, folder: Path, turns: Iterable[SweepTurn]) -> dict[str, str]:
    """Return the values with a launch that printed the pattern, and their first such line."""
    found: dict[str, str] = {}
    for turn in turns if pattern else ():
        if turn.value is not None and turn.value not in found:
            text = "\n".join(text_of(folder / f"{turn.step}.{kind}") for kind in ("err", "out"))
            if line := next((one for one in text.splitlines() if re.search(pattern, one)), None):
                found[turn.value] = line.strip()
    return found


def own_values(folder: Path) -> tuple[str, ...]:
    """Return the nodes' values when a job began, each once; Incomplete and NetproofError."""
    file = folder / restoring.OWN_FILE
    found = restoring.read(file)
    if not found:
        raise Incomplete([f"{file}: is not there: the job did not note what its nodes had"])
    return tuple(sorted({value for _, _, value in found}))


def results(report: Path) -> list[tuple[Sweep, SweepTable]]:
    """Return the sweeps of a report with their results, the fewest ranks first.

    Raise NetproofError, with the report's path, without one, and where one has no result.
    """
    several = sorted(Sweep.of_report(report), key=lambda sweep: sweep.case.ranks)
    try:
        return [(sweep, sweep.table()) for sweep in several]
    except NetproofError as error:
        raise NetproofError(f"{report}: {error}") from None


def newest(
    folder: Path, system: str, settings: Collection[str]
) -> tuple[list[tuple[Sweep, SweepTable]], dict[str, str]]:
    """Return the newest sweep of each setting and case of a system, with its result.

    The second value is, by setting, why its newest report has no result. ``folder``: of reports of
    sweeps; may be missing.
    """
    found: dict[tuple[object, ...], tuple[Sweep, SweepTable]] = {}
    faults: dict[str, str] = {}
    for name in settings:
        # Reports are named by setting and time, so the newest sorts last.
        for path in sorted(folder.glob(f"run-{name}-*.json")):
            try:
                several = results(path)
            except NetproofError as error:
                faults[name] = str(error)
                continue
            faults.pop(name, None)
            for one, result in several:
                if one.case.system == system and one.parameter == name:
                    found[(name, *one.case.key())] = (one, result)
    return list(found.values()), faults
