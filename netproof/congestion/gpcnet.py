"""GPCNeT on all nodes of a partition: its network tests alone, and while its congestors run.

The benchmark itself divides the nodes, a fifth for the tests and the others for four congestors. It
runs several times, each time with another division, which it draws by the clock.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from netproof.benchmarks.outputs import text_of
from netproof.congestion import gpcnet_output
from netproof.congestion.factors import LEAST_ROUNDS, BoundedFactor
from netproof.congestion.gpcnet_output import PROGRAM, RATE, TIME, GpcnetOutput, NetworkTest
from netproof.errors import NetproofError
from netproof.measurement.disturbance import NodeLoad, disturbed
from netproof.measurement.interval import Side, of_median, side
from netproof.session import job_files, job_scripts, node_facts, plan, step_words
from netproof.session.labelled import MeasuredJob, Question
from netproof.session.labelled import write_question as write_question
from netproof.site.partition import Partition

FOLDER = "gpcnet"
"""Folder of its reports in the folder of reports, which no verdict reads."""

FEATURE = "gpcnet"
"""Feature of an environment that has the program in its PATH."""

LEAST_NODES = 10
"""Two for its tests, and two for each of four congestors."""

QUESTION_FILE = "gpcnet.json"

SECONDS = 1800
"""Seconds after which a run is ended. It ends its tests itself, each after some ten seconds."""


@dataclass(frozen=True)
class GpcnetQuestion(Question):
    """The task of a job: where, how often, and on how many nodes."""

    FILE = QUESTION_FILE

    rounds: int
    nodes: int
    srun: tuple[str, ...]

    @property
    def ranks(self) -> int:
        """Return the ranks on all nodes together."""
        return self.nodes * self.partition.ranks_per_node


def step_name(number: int) -> str:
    """Return the name of a round's step, from 1."""
    return f"{FOLDER}.{number}"


def script(question: GpcnetQuestion) -> str:
    """Return the job script, with one step per round."""
    command = [
        *question.srun,
        f"--ntasks={question.ranks}",
        f"--ntasks-per-node={question.partition.ranks_per_node}",
        "--kill-on-bad-exit=1",
        *(*plan.RANK, PROGRAM),
    ]
    lines = job_scripts.head(
        question.partition, 0, over_tcp=False, describe_nodes=True, figures_at_once=False
    )
    rounds = range(1, question.rounds + 1)
    lines = [*lines, *(f"step {step_name(one)} {SECONDS} {shlex.join(command)}" for one in rounds)]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class GpcnetRound:
    """One run of the program, or the reason for its failure; ``loads``: other load on its nodes."""

    output: GpcnetOutput | None
    loads: tuple[NodeLoad, ...] = ()
    fault: str = ""


@dataclass(frozen=True)
class GpcnetRuns(MeasuredJob):
    """All rounds of a job."""

    KEY = "netproof_gpcnet"
    CALLED = "run of GPCNeT"

    rounds: tuple[GpcnetRound, ...]


def of_job(folder: Path, jobid: str) -> GpcnetRuns:
    """Return the rounds of a job in ``folder``, each with its fault where it failed.

    Raise NetproofError where the job wrote no record.
    """
    question = GpcnetQuestion.read(folder)
    recorded = job_files.records(folder)
    rounds = range(1, question.rounds + 1)
    return GpcnetRuns(
        *question.where,
        jobid,
        node_facts.nodes_of_job(folder, jobid),
        question.extras,
        tuple(_of_step(folder, step_name(one), question, recorded) for one in rounds),
    )


def _of_step(
    folder: Path,
    step: str,
    question: GpcnetQuestion,
    recorded: Mapping[str, job_files.StepRecord],
) -> GpcnetRound:
    fault = job_files.failure(folder, step, recorded)
    if fault:
        return GpcnetRound(None, fault=fault)
    path = folder / f"{step}.out"
    try:
        _, loads = step_words.reported(folder / f"{step}.err", question.ranks)
        output = gpcnet_output.read(text_of(path), str(path))
    except (NetproofError, OSError) as error:
        return GpcnetRound(None, fault=str(error))
    if (output.ranks, output.nodes) != (question.ranks, question.nodes):
        ran = f"{output.ranks} ranks on {output.nodes} nodes"
        return GpcnetRound(
            None,
            loads,
            f"{path}: it ran {ran}, and was to run {question.ranks} on {question.nodes}",
        )
    return GpcnetRound(output, loads)


@dataclass(frozen=True)
class GpcnetImpact:
    """One test: unit, mean alone and alongside (medians of rounds), and factors."""

    name: str
    unit: str
    alone: float
    alongside: float
    mean: BoundedFactor
    tail: BoundedFactor


@dataclass(frozen=True)
class GpcnetImpacts:
    """Result of all rounds; ``refused``: why rounds do not count, a sentence each."""

    impacts: tuple[GpcnetImpact, ...]
    rounds: int
    refused: tuple[str, ...]

    def beyond(self) -> bool:
        """Check whether a factor exceeds its bound."""
        return any(one.side is Side.BEYOND for one in self._factors())

    def undecided(self) -> bool:
        """Check whether a factor is inconclusive, or too few rounds count for any."""
        return self.rounds < LEAST_ROUNDS or any(one.undecided for one in self._factors())

    def _factors(self) -> list[BoundedFactor]:
        return [factor for one in self.impacts for factor in (one.mean, one.tail)]


def impacts(runs: GpcnetRuns) -> GpcnetImpacts:
    """Return the result of the rounds that count, by the settings of their partition."""
    whole, refused = [], []
    for number, one in enumerate(runs.rounds, 1):
        why = one.fault or "; ".join(disturbed(one.loads, runs.where.settings().disturbance))
        if why or one.output is None:
            refused.append(f"round {number}: {why}")
        else:
            whole.append(one.output)
    names = list(dict.fromkeys(test.name for output in whole for test in output.alone))
    found = tuple(_impact(name, whole, runs.where) for name in names)
    return GpcnetImpacts(found, len(whole), tuple(refused))


def _impact(name: str, outputs: list[GpcnetOutput], partition: Partition) -> GpcnetImpact:
    pairs = [
        (alone, alongside)
        for output in outputs
        for alone, alongside in zip(output.alone, output.alongside, strict=True)
        if alone.name == name
    ]
    settings = partition.load_settings()
    means = [_times(alone.mean, alongside.mean, alone.unit) for alone, alongside in pairs]
    tails = [_times(alone.tail, alongside.tail, alone.unit) for alone, alongside in pairs]
    odd = any(_is_odd(test) for pair in pairs for test in pair)
    why = "a 99th percentile is better than the mean, which cannot be" if odd else ""
    return GpcnetImpact(
        name,
        pairs[0][0].unit,
        median([alone.mean for alone, _ in pairs]),
        median([alongside.mean for _, alongside in pairs]),
        _factor(means, settings.most),
        _factor(tails, settings.most_99th, why),
    )


def _times(alone: float, alongside: float, unit: str) -> float:
    return alone / alongside if unit == RATE else alongside / alone


def _is_odd(test: NetworkTest) -> bool:
    """Check for Allreduce figures that version 1.3 prints where few nodes run the tests."""
    return test.tail < test.mean if test.unit == TIME else test.tail > test.mean


def _factor(ratios: list[float], most: float | None, why: str = "") -> BoundedFactor:
    if not why and len(ratios) < LEAST_ROUNDS:
        why = f"it takes {LEAST_ROUNDS} rounds that count, and has {len(ratios)}"
    if why:
        return BoundedFactor(None, None, most, None, why)
    interval = of_median(ratios)
    where = None if most is None or interval is None else side(interval, 0, most)
    return BoundedFactor(median(ratios), interval, most, where)
