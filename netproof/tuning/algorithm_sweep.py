"""A sweep of a collective's algorithms: job script, result and record in the report."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netproof.benchmarks import registry
from netproof.benchmarks.outputs import text_of
from netproof.errors import NetproofError
from netproof.measurement.case import Case
from netproof.session import job_scripts, plan, session
from netproof.session.job_files import Incomplete
from netproof.session.labelled import JobRecord
from netproof.session.plan import Step
from netproof.site.partition import Partition
from netproof.tuning.algorithms import Choice
from netproof.tuning.gains import Winners, winners
from netproof.tuning.parameters import Told
from netproof.tuning.sweep import Sweep, SweepTurn, assigned, left_by_job

PARAMETER = "algorithm"
"""The command's name of the setting."""


@dataclass(frozen=True)
class Remark:
    """A message about a value."""

    value: str
    said: str


@dataclass(frozen=True)
class AlgorithmSweep(JobRecord):
    """A sweep with the algorithms' names, and those that the library did not take.

    ``sweep``: the launches of accepted algorithms and of the library's own choice; ``names``: of
    all values, empty where the value is the name; ``refused``: values that failed in a launch, or
    that the library ignored; ``fell_back``: values that the library replaced by its own choice in
    some calls.
    """

    KEY = "netproof_algorithms"
    CALLED = "sweep of algorithms"
    FORMAT = 2

    sweep: Sweep
    library: str
    names: Mapping[str, str]
    refused: tuple[Remark, ...]
    fell_back: tuple[Remark, ...]

    @property
    def partition_extras(self) -> Mapping[str, Any]:
        """Return the extras of its partition."""
        return self.sweep.partition_extras

    def insist(self) -> None:
        """Raise NetproofError where the parts of its sweep do not fit together."""
        self.sweep.insist()

    def winners(self) -> Winners:
        """Return its table, or raise NetproofError with what was refused or disturbed."""
        try:
            return winners(self.sweep.made())
        except NetproofError as error:
            refused = "".join(f"; {one.value}: {one.said}" for one in self.refused)
            raise NetproofError(
                f"{self.sweep.title} on {self.sweep.case.ranks} ranks: {error}"
                f"{self.sweep.disturbance()}{refused}"
            ) from None


def steps(
    several: Sequence[SweepTurn],
    case: Case,
    choice: Choice,
    partition: Partition,
    srun: Sequence[str],
) -> tuple[Step, ...]:
    """Return the job steps of a sweep, each with its algorithm; ``srun``: command and options."""
    function = registry.function_of(case)
    (plain,) = plan.function_steps([function], case.ranks, 1, partition, srun, 1)
    made = []
    for turn in several:
        step = Step(turn.subject, turn.launch, plain.command)
        if turn.value is not None:
            setting = choice.told.of(turn.value)
            step = assigned(step, Told({**setting.variables, **choice.heard}, setting.arguments))
        made.append(step)
    return tuple(made)


def script(several: Sequence[SweepTurn], planned: Sequence[Step], partition: Partition) -> str:
    """Return the job script: an algorithm that failed once is not tried again."""
    lines = job_scripts.head(partition, len(planned), over_tcp=False, describe_nodes=True)
    lines.append(". ./trying.sh")
    for turn, step in zip(several, planned, strict=True):
        line = job_scripts.line(step, partition)
        lines.append(line if turn.value is None else f"try {line.removeprefix('step ')}")
    return "\n".join(lines) + "\n"


def of_job(
    folder: Path,
    jobid: str,
    case: Case,
    extras: Mapping[str, Any],
    several: Sequence[SweepTurn],
    choice: Choice,
    seed: int,
) -> AlgorithmSweep:
    """Return the result of a job in ``folder``, without the algorithms that the library refused.

    ``extras``: of the partition. Raise Incomplete where a launch of the default failed, where the
    job ended before its last launch, and where no algorithm is left, each with its reason.
    """
    partition = Partition.model_validate(extras)
    made, failed, not_begun = left_by_job(folder, case, partition, several)
    said = {
        value: reasons[0].replace(f"{folder}/", "")
        for value, reasons in failed.items()
        if value is not None
    }
    reasons = [
        f"the library's own choice: a launch failed: {reason}"
        for reason in failed.get(None, ())[:1]
    ]
    late = [(turn, why) for turn, why in not_begun.items() if turn.value not in said]
    if late:
        ran = len(several) - len(not_begun)
        reasons.append(f"the job ended after {ran} of {len(several)} launches: {late[0][1]}")
    if reasons:
        raise Incomplete(reasons)
    ignored = _saying(choice.ignored, folder, made)
    said = {**ignored, **said}
    if len(said) == len(choice.values):
        raise Incomplete([f"{value}: {reason}" for value, reason in said.items()])
    accepted = {turn: launch for turn, launch in made.items() if turn.value not in said}
    sweep = Sweep(
        *(case, PARAMETER, choice.title, choice.told, jobid, seed, extras),
        tuple(accepted),
        tuple(accepted.values()),
    )
    refused, fell_back = (
        tuple(Remark(value, about[value]) for value in choice.values if value in about)
        for about in (said, _saying(choice.fell_back, folder, accepted))
    )
    return AlgorithmSweep(sweep, choice.library, choice.names, refused, fell_back)


def _saying(pattern: str, folder: Path, turns: Iterable[SweepTurn]) -> dict[str, str]:
    """Return the values with a launch that printed the pattern, and their first such line."""
    if not pattern:
        return {}
    found: dict[str, str] = {}
    for turn in turns:
        if turn.value is None or turn.value in found:
            continue
        for kind in ("err", "out"):
            lines = text_of(folder / f"{turn.step}.{kind}").splitlines()
            line = next((line for line in lines if re.search(pattern, line)), None)
            if line is not None:
                found[turn.value] = line.strip()
                break
    return found


def is_in(path: Path) -> bool:
    """Check whether a report has such sweeps; NetproofError for anything else than a report."""
    runs = session.document_of(path)["runs"]
    return any(test.get(AlgorithmSweep.KEY) for run in runs for test in run["testcases"])
