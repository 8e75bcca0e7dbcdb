"""A sweep of a collective's algorithms: what a job runs, what it left, what a report keeps."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netproof.benchmarks import registry
from netproof.benchmarks.outputs import text_of
from netproof.errors import NetproofError
from netproof.intake.shapes import MAPPING, TEXT, WHOLE, Each, Keys, insist
from netproof.measurement.case import Case
from netproof.session import job_scripts, labelled, plan, session
from netproof.session.job_files import Incomplete
from netproof.session.measured import Launch
from netproof.session.plan import Step
from netproof.site.partition import Partition
from netproof.tuning.algorithms.known import Choice
from netproof.tuning.parameters import Told
from netproof.tuning.sweep import Sweep, SweepTurn, left_by_job, telling
from netproof.tuning.winners import Winners, winners

FORMAT = 1
"""Format of what a test stores of such a sweep in the report; raised when its keys change."""

KEY = "netproof_algorithms"
"""The key under which a test keeps it there."""

PARAMETER = "algorithm"
"""What the command calls it."""

SHAPE = Keys(
    {
        "format": WHOLE,
        "sweep": MAPPING,
        "library": TEXT,
        "names": MAPPING,
        "refused": Each(Keys({"value": TEXT, "said": TEXT})),
        "fell_back": Each(Keys({"value": TEXT, "said": TEXT})),
    }
)


@dataclass(frozen=True)
class Remark:
    """What was said of a value."""

    value: str
    said: str


@dataclass(frozen=True)
class AlgorithmSweep:
    """A sweep with the algorithms' names, and those that the library did not take.

    ``sweep``: the launches of those that it took, and of its own choice; ``names``: of all values,
    empty where the value is the name; ``refused``: values of which a launch failed, or that it said
    to ignore; ``fell_back``: those in whose place it took its own choice in some calls.
    """

    sweep: Sweep
    library: str
    names: Mapping[str, str]
    refused: tuple[Remark, ...]
    fell_back: tuple[Remark, ...]

    def winners(self) -> Winners:
        """Its table; NetproofError, with what was refused or disturbed, where there is none."""
        try:
            return winners(self.sweep.made())
        except NetproofError as error:
            refused = "".join(f"; {one.value}: {one.said}" for one in self.refused)
            raise NetproofError(
                f"{self.sweep.title} on {self.sweep.case.ranks} ranks: {error}"
                f"{self.sweep.disturbance()}{refused}"
            ) from None

    def as_json(self) -> dict[str, Any]:
        """Plain values for ``json``."""
        return {
            "format": FORMAT,
            "sweep": self.sweep.as_json(),
            "library": self.library,
            "names": dict(self.names),
            "refused": [{"value": one.value, "said": one.said} for one in self.refused],
            "fell_back": [{"value": one.value, "said": one.said} for one in self.fell_back],
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> AlgorithmSweep:
        """Of the plain values that ``as_json`` gave; NetproofError where they are none."""
        insist(values, SHAPE, "a sweep of algorithms cannot be read")
        if values["format"] != FORMAT:
            raise NetproofError(
                f"a sweep of algorithms is of format {values['format']}, and this netproof reads"
                f" {FORMAT}"
            )
        return cls(
            Sweep.from_json(values["sweep"]),
            values["library"],
            values["names"],
            tuple(Remark(one["value"], one["said"]) for one in values["refused"]),
            tuple(Remark(one["value"], one["said"]) for one in values["fell_back"]),
        )


def steps(
    several: Sequence[SweepTurn],
    case: Case,
    choice: Choice,
    partition: Partition,
    srun: Sequence[str],
) -> tuple[Step, ...]:
    """The job steps of a sweep, each told its algorithm; ``srun``: command and options."""
    function = registry.function_of(case)
    (plain,) = plan.function_steps([function], case.ranks, 1, partition, srun, 1)
    made = []
    for turn in several:
        step = Step(turn.subject, turn.launch, plain.command)
        if turn.value is not None:
            told = choice.told.of(turn.value)
            step = telling(step, Told({**told.variables, **choice.heard}, told.arguments))
        made.append(step)
    return tuple(made)


def script(several: Sequence[SweepTurn], planned: Sequence[Step], partition: Partition) -> str:
    """Text of the job script: an algorithm that failed once is not tried again."""
    lines = job_scripts.head(partition, len(planned), over_tcp=False, describe_nodes=True)
    lines.append(". ./trying.sh")
    for turn, step in zip(several, planned, strict=True):
        line = job_scripts.line(step, partition)
        lines.append(line if turn.value is None else f"try {line.removeprefix('step ')}")
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Tried:
    """What a job left of a sweep: the turns of what the library took, with their launches.

    ``refused``, ``fell_back``: as ``AlgorithmSweep`` has them.
    """

    turns: tuple[SweepTurn, ...]
    launches: tuple[Launch, ...]
    refused: tuple[Remark, ...]
    fell_back: tuple[Remark, ...]


def of_job(
    folder: Path, case: Case, partition: Partition, several: Sequence[SweepTurn], choice: Choice
) -> Tried:
    """What a job left in ``folder``, without the algorithms that the library refused.

    Raises Incomplete where a launch of the default failed, where the job ended before its last
    launch, and where no algorithm is left, with what was said of each.
    """
    left = left_by_job(folder, case, partition, several)
    said = {
        value: reasons[0].replace(f"{folder}/", "")
        for value, reasons in left.failed.items()
        if value is not None
    }
    reasons = [
        f"the library's own choice: a launch failed: {reason}"
        for reason in left.failed.get(None, ())[:1]
    ]
    late = [(turn, why) for turn, why in left.not_begun.items() if turn.value not in said]
    if late:
        ran = len(several) - len(left.not_begun)
        reasons.append(f"the job ended after {ran} of {len(several)} launches: {late[0][1]}")
    if reasons:
        raise Incomplete(reasons)
    ignored = _saying(choice.ignored, folder, left.made)
    said = {**ignored, **said}
    if len(said) == len(choice.values):
        raise Incomplete([f"{value}: {reason}" for value, reason in said.items()])
    kept = {turn: launch for turn, launch in left.made.items() if turn.value not in said}
    return Tried(
        tuple(kept),
        tuple(kept.values()),
        _remarks(choice, said),
        _remarks(choice, _saying(choice.fell_back, folder, kept)),
    )


def _remarks(choice: Choice, said: Mapping[str, str]) -> tuple[Remark, ...]:
    return tuple(Remark(value, said[value]) for value in choice.values if value in said)


def _saying(pattern: str, folder: Path, turns: Iterable[SweepTurn]) -> dict[str, str]:
    """Values of which a launch printed a line with the pattern, each with its first such line."""
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
    """Whether a report of ReFrame's has such sweeps; NetproofError where it is no report."""
    runs = session.document_of(path)["runs"]
    return any(test.get(KEY) for run in runs for test in run["testcases"])


def of_report(path: Path) -> list[AlgorithmSweep]:
    """The sweeps in a report of ReFrame's; NetproofError where it has none that is whole."""
    return labelled.of_report(path, KEY, AlgorithmSweep.from_json, "sweep of algorithms")
