"""GPCNeT on all nodes of a partition: its network tests alone, and while its congestors run.

The benchmark itself divides the nodes, a fifth for the tests and the others for four congestors. It
runs several times, each time with another division, which it draws by the clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from netproof.benchmarks.gpcnet import RATE, TIME, GpcnetOutput, read
from netproof.benchmarks.outputs import text_of
from netproof.errors import NetproofError
from netproof.experiments.load import Factor, Impact, LoadFindings, Statistic, known_factor, too_few
from netproof.measurement.disturbance import NodeLoad, disturbed
from netproof.measurement.interval import of_median
from netproof.session import job_files, node_facts, plan
from netproof.session.labelled import MeasuredJob
from netproof.session.plan import Step
from netproof.site.partition import Partition

FOLDER = "gpcnet"
FEATURE = "gpcnet"
"""Feature of an environment that has the program in its PATH."""

LEAST_NODES = 10
WHY = f"GPCNeT takes {LEAST_NODES}: two for its tests, eight for its congestors"

SECONDS = 1800
"""Seconds after which a run is ended. It ends its tests itself, each after some ten seconds."""

PROGRAM = "network_load_test"


def steps(partition: Partition, rounds: int, nodes: int, srun: Sequence[str]) -> tuple[Step, ...]:
    """Return a step per round."""
    command = (
        *srun,
        f"--ntasks={nodes * partition.ranks_per_node}",
        f"--ntasks-per-node={partition.ranks_per_node}",
        "--kill-on-bad-exit=1",
        *(*plan.RANK, PROGRAM),
    )
    numbers = range(1, rounds + 1)
    return tuple(Step(FOLDER, number, command, limit_s=SECONDS) for number in numbers)


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


def of_job(
    folder: Path,
    jobid: str,
    where: tuple[str, str, str],
    extras: Mapping[str, Any],
    rounds: int,
    nodes: int,
) -> GpcnetRuns:
    """Return a job's rounds, each with its fault; NetproofError without a record."""
    ranks = nodes * Partition.model_validate(extras).ranks_per_node
    recorded = job_files.records(folder)

    def round_of(number: int) -> GpcnetRound:
        step = f"{FOLDER}.{number}"
        fault = job_files.failure(folder, step, recorded)
        if fault:
            return GpcnetRound(None, fault=fault)
        path = folder / f"{step}.out"
        try:
            _, loads = job_files.reported(folder / f"{step}.err", ranks)
            output = read(text_of(path), str(path))
        except (NetproofError, OSError) as error:
            return GpcnetRound(None, fault=str(error))
        if (output.ranks, output.nodes) == (ranks, nodes):
            return GpcnetRound(output, loads)
        ran = f"{output.ranks} ranks on {output.nodes} nodes"
        return GpcnetRound(None, loads, f"{path}: it ran {ran}, and was to run {ranks} on {nodes}")

    several = tuple(map(round_of, range(1, rounds + 1)))
    return GpcnetRuns(*where, jobid, node_facts.nodes_of_job(folder, jobid), extras, several)


def findings(runs: GpcnetRuns) -> LoadFindings:
    """Return what congestors cost, by the rounds that count and the settings of their partition."""
    whole, refused = [], []
    for number, one in enumerate(runs.rounds, 1):
        why = one.fault or "; ".join(disturbed(one.loads, runs.where.settings().disturbance))
        if why or one.output is None:
            refused.append(f"round {number}: {why}")
        else:
            whole.append(one.output)
    names = list(dict.fromkeys(test.name for output in whole for test in output.alone))
    return LoadFindings(
        tuple(_impact(name, whole, tuple(refused), runs.where) for name in names), tuple(refused)
    )


def _impact(
    name: str, outputs: list[GpcnetOutput], refused: tuple[str, ...], partition: Partition
) -> Impact:
    pairs = [
        (alone, congested)
        for output in outputs
        for alone, congested in zip(output.alone, output.congested, strict=True)
        if alone.name == name
    ]
    unit, settings = pairs[0][0].unit, partition.load_settings()

    def factor(figure: str, most: float | None, why: str) -> Factor:
        figures = [(getattr(alone, figure), getattr(loaded, figure)) for alone, loaded in pairs]
        if why:
            return Factor(None, None, most, None, why, *map(median, zip(*figures, strict=True)))
        ratios = [alone / loaded if unit == RATE else loaded / alone for alone, loaded in figures]
        return known_factor(median(ratios), of_median(ratios), most, figures)

    few = too_few(len(outputs))
    # Version 1.3 prints such figures of Allreduce where few nodes run the tests.
    odd = any(
        test.tail < test.mean if unit == TIME else test.tail > test.mean
        for pair in pairs
        for test in pair
    )
    why = "a 99th percentile is better than the mean, which cannot be" if odd else few
    factors = {
        Statistic.MEAN: factor("mean", settings.most, few),
        Statistic.TAIL: factor("tail", settings.most_99th, why),
    }
    return Impact("", name, "the congestors", factors, len(outputs), refused, unit=unit)
