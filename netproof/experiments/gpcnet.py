"""GPCNeT on all nodes of a partition: its network tests alone, and while its congestors run.

The benchmark itself divides the nodes, a fifth for the tests and the others for four congestors. It
runs several times, each time with another division, which it draws by the clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import ClassVar

from netproof.benchmarks.gpcnet import BENCHMARK, RATE, TIME, name_of
from netproof.benchmarks.interface import Output
from netproof.benchmarks.outputs import text_of
from netproof.errors import NetproofError
from netproof.experiments.experiment import Experiment
from netproof.experiments.load import Congested, Factor, Impact, Statistic, too_few
from netproof.measurement.disturbance import NodeLoad, disturbed
from netproof.measurement.interval import of_median
from netproof.session import job_files, node_facts, plan
from netproof.session.plan import PLAN_FILE, JobPlan, Step
from netproof.site.partition import Partition

FOLDER = "gpcnet"

SECONDS = 1800
"""Seconds after which a run is ended. It ends its tests itself, each after some ten seconds."""

PROGRAM = "network_load_test"


@dataclass(frozen=True, kw_only=True)
class GpcnetAsked(Experiment):
    """So many runs on all nodes; an environment has the program in its PATH, and the feature."""

    rounds: int

    TEST, FOLDER, LABEL = "Gpcnet", FOLDER, f"the feature {FOLDER!r}"
    TASK, FEATURES = "launches", (FOLDER,)
    REMEDY: ClassVar[str] = (
        f". Put GPCNeT's {PROGRAM} into the environment's PATH and name the feature in its site's"
        " file"
    )
    LEAST_NODES = 10
    WHY = (
        "GPCNeT takes 10: two for its tests, eight for its congestors; netproof measure load"
        " takes 4"
    )
    FULL_NODES, WORDS = True, "GPCNeT {0.rounds} times, some minutes each"

    def steps(self, planned: JobPlan) -> tuple[Step, ...]:
        """Return a step per round."""
        per_node = planned.partition.ranks_per_node
        placed = (f"--ntasks={self.nodes * per_node}", f"--ntasks-per-node={per_node}")
        command = (*planned.srun, *placed, "--kill-on-bad-exit=1", *plan.RANK, PROGRAM)
        numbers = range(1, self.rounds + 1)
        return tuple(Step(FOLDER, number, command, limit_s=SECONDS) for number in numbers)

    def result(self, folder: Path, jobid: str) -> GpcnetRuns:
        """Return the rounds; NetproofError where none is whole."""
        runs = of_job(folder, jobid)
        if not any(one.tests for one in runs.rounds):
            raise NetproofError(f"no round is whole, the first so: {runs.rounds[0].fault}")
        return runs


@dataclass(frozen=True)
class NetworkTest:
    """A test alone and beside congestors: each time the mean and the 99th percentile, in its unit.

    A percentile of a rate is a low one: 99 in 100 are above it.
    """

    name: str
    unit: str
    alone: tuple[float, float]
    congested: tuple[float, float]


@dataclass(frozen=True)
class GpcnetRound:
    """One run of the program, or the reason for its failure; ``loads``: other load on its nodes.

    ``version``: the program's; ``nodes_of_tests``: on how many nodes its tests ran.
    """

    tests: tuple[NetworkTest, ...]
    loads: tuple[NodeLoad, ...] = ()
    fault: str = ""
    version: str = ""
    nodes_of_tests: int = 0


@dataclass(frozen=True)
class GpcnetRuns(Congested):
    """All rounds of a job."""

    KEY = "netproof_gpcnet"
    CALLED = "run of GPCNeT"

    rounds: tuple[GpcnetRound, ...]

    def _why_not(self, one: GpcnetRound) -> str:
        """Return why a round does not count; empty where it does."""
        return one.fault or "; ".join(disturbed(one.loads, self.where.settings().disturbance))

    @property
    def refused(self) -> tuple[str, ...]:
        """Return why rounds do not count, a sentence each."""
        reasons = enumerate(map(self._why_not, self.rounds), 1)
        return tuple(f"round {number}: {why}" for number, why in reasons if why)

    @cached_property
    def impacts(self) -> tuple[Impact, ...]:
        """Return what congestors cost, by the rounds that count."""
        whole = [one.tests for one in self.rounds if not self._why_not(one)]
        names = dict.fromkeys(test.name for tests in whole for test in tests)
        return tuple(_impact(name, whole, self.where) for name in names)


def of_job(folder: Path, jobid: str) -> GpcnetRuns:
    """Return a job's rounds, each with its fault; NetproofError without a record."""
    planned, job = JobPlan.read(folder / PLAN_FILE), job_files.JobFolder(folder)
    asked = planned.task_of(GpcnetAsked)
    nodes, ranks = asked.nodes, asked.nodes * planned.partition.ranks_per_node

    def round_of(number: int) -> GpcnetRound:
        step = f"{FOLDER}.{number}"
        if fault := job.failure(step):
            return GpcnetRound((), fault=fault)
        path = folder / f"{step}.out"
        try:
            loads = job_files.reported(folder / f"{step}.err", ranks)["loads"]
            output = BENCHMARK.read(text_of(path), str(path))
            ran = output.facts
            if len(output.tables) == len({name_of(one) for one in output.tables}):
                raise NetproofError(f"{path}: is of network_test, and not of {PROGRAM}")
            if (ran["ranks"], ran["nodes"]) != (ranks, nodes):
                why = f"it ran {ran['ranks']} ranks on {ran['nodes']} nodes, and was to run"
                raise NetproofError(f"{path}: {why} {ranks} on {nodes}")
        except (NetproofError, OSError) as error:
            return GpcnetRound((), fault=str(error))
        tests = network_tests(output)
        return GpcnetRound(tests, loads, "", str(output.version), ran["nodes_of_tests"])

    several, there = tuple(map(round_of, range(1, asked.rounds + 1))), planned.where
    nodes_of_job = node_facts.nodes_of_job(folder, jobid)
    return GpcnetRuns(*there, jobid, nodes_of_job, planned.extras, several)


def network_tests(output: Output) -> tuple[NetworkTest, ...]:
    """Return the tests of an output, whose first tables are alone and the others congested."""
    half = len(output.tables) // 2
    figures = [(one.facts["mean"], one.facts["percentile_99"]) for one in output.tables]
    return tuple(
        NetworkTest(name_of(one), one.facts["unit"], *both)
        for one, *both in zip(output.tables[:half], figures[:half], figures[half:], strict=True)
    )


def _impact(name: str, outputs: list[tuple[NetworkTest, ...]], partition: Partition) -> Impact:
    tests = [test for output in outputs for test in output if test.name == name]
    unit, settings = tests[0].unit, partition.load_settings()

    def factor(which: int, most: float | None, why: str) -> Factor:
        figures = [(test.alone[which], test.congested[which]) for test in tests]
        ratios = [alone / loaded if unit == RATE else loaded / alone for alone, loaded in figures]
        value, interval = (None, None) if why else (median(ratios), of_median(ratios))
        return Factor(value, interval, most, why, *map(median, zip(*figures, strict=True)))

    few = too_few(len(outputs))
    each = [one for test in tests for one in (test.alone, test.congested)]
    # Version 1.3 prints such figures of Allreduce where few nodes run the tests.
    odd = any(tail < mean if unit == TIME else tail > mean for mean, tail in each)
    why = "a 99th percentile is better than the mean, which cannot be" if odd else few
    of_mean, of_tail = factor(0, settings.most, few), factor(1, settings.most_99th, why)
    factors = {Statistic.MEAN: of_mean, Statistic.TAIL: of_tail}
    return Impact("", name, "the congestors", factors, len(outputs), unit=unit)
