"""GPCNeT on all nodes of a partition: its network tests alone, and while its congestors run.

The benchmark itself divides the nodes, a fifth for the tests and the others for four congestors. It
runs several times, each time with another division, which it draws by the clock.

The output of its ``network_load_test`` (version 1.3, not compiled as verbose) has three tables: the
tests alone, the same while congestors run, and the factors between both. Any other text between its
first line and its last is refused.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from netproof.benchmarks.outputs import text_of
from netproof.errors import NetproofError, ParseError
from netproof.experiments.load import Factor, Impact, LoadFindings, Statistic, bounded, too_few
from netproof.measurement.disturbance import NodeLoad, disturbed
from netproof.measurement.interval import of_median
from netproof.session import job_files, node_facts, plan, step_output
from netproof.session.labelled import MeasuredJob
from netproof.session.plan import Step
from netproof.site.partition import Partition

FOLDER = "gpcnet"
"""Folder of its reports in the folder of reports, which no verdict reads."""

FEATURE = "gpcnet"
"""Feature of an environment that has the program in its PATH."""

LEAST_NODES = 10
"""Two for its tests, and two for each of four congestors."""

SECONDS = 1800
"""Seconds after which a run is ended. It ends its tests itself, each after some ten seconds."""

PROGRAM = "network_load_test"

ALONE, ALONGSIDE, FACTORS = (
    "Isolated Network Tests",
    "Network Tests running with Congestion Tests",
    "Network Tests running with Congestion Tests - Key Results",
)

_FIRST = re.compile(r"NetworkLoad Tests v(\d+\.\d+)")
_RANKS = re.compile(r" +Test with (\d+) MPI ranks \((\d+) nodes\)")
_TESTS = re.compile(r" +(\d+) nodes running Network Tests")
_CONGESTORS = re.compile(r" +(\d+) nodes running Congestion Tests \(min \d+ nodes per congestor\)")
_LEGEND = re.compile(r" +(Legend|[\w+]+ = .*)")
_RULE = re.compile(r"\+[+-]{70,}\+")
_ROW = re.compile(r" *\|(.+)\|")
_NUMBER = re.compile(r"\d+\.\d")

TIME, RATE = "usec", "MiB/s/rank"


@dataclass(frozen=True)
class NetworkTest:
    """One line of a table: the mean and the 99th percentile of a test, in its unit.

    A percentile of a rate is a low one: 99 in 100 are above it.
    """

    name: str
    mean: float
    tail: float
    unit: str


@dataclass(frozen=True)
class GpcnetOutput:
    """One run: its ranks and nodes, and each test ``alone`` and ``alongside`` the congestors."""

    version: str
    ranks: int
    nodes: int
    nodes_of_tests: int
    alone: tuple[NetworkTest, ...]
    congested: tuple[NetworkTest, ...]


class _Lines:
    """The lines that are not empty from the benchmark's first on, with their numbers."""

    def __init__(self, text: str, path: str) -> None:
        self.path = path
        numbered = [one for one in enumerate(text.splitlines(), 1) if one[1].strip()]
        # A launcher or a library may print before it.
        begins = (at for at, (_, one) in enumerate(numbered) if _FIRST.fullmatch(one.rstrip()))
        self._left = numbered[next(begins, len(numbered)) :][::-1]
        self._last = numbered[-1] if numbered else (0, "")

    def fault(self, reason: str) -> ParseError:
        return ParseError(self.path, *(self._left[-1] if self._left else self._last), reason)

    def next_is(self, pattern: re.Pattern[str]) -> bool:
        return bool(self._left) and pattern.fullmatch(self._left[-1][1].rstrip()) is not None

    def take(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        if not self.next_is(pattern):
            raise self.fault(f"{what} has to stand here")
        return pattern.fullmatch(self._left.pop()[1].rstrip())

    def cells(self, what: str) -> list[str]:
        """Return the cells of a table's row, after the rule above it."""
        self.take(_RULE, f"the line above {what}")
        return [cell.strip() for cell in self.take(_ROW, what)[1].split("|")]

    def at_row(self) -> bool:
        """Check whether a rule with a row below it comes next, which ends with the table."""
        below = len(self._left) > 1 and self._left[-2][1].lstrip().startswith("|")
        return below and self.next_is(_RULE)


def read(text: str, path: str) -> GpcnetOutput:
    """Return one run; ParseError with the line where the program does not print such text."""
    lines = _Lines(text, path)
    version = lines.take(_FIRST, "'NetworkLoad Tests v…'")[1]
    ranks, nodes = map(int, lines.take(_RANKS, "ranks and nodes").groups())
    tests = int(lines.take(_TESTS, "the nodes of the network tests")[1])
    lines.take(_CONGESTORS, "the nodes of the congestion tests")
    while lines.next_is(_LEGEND):
        lines.take(_LEGEND, "the legend")
    alone, alongside = (tuple(_tests(lines, title)) for title in (ALONE, ALONGSIDE))
    if [(one.name, one.unit) for one in alone] != [(one.name, one.unit) for one in alongside]:
        raise lines.fault("the tests alone and those alongside congestors are not the same")
    _insist_on_factors(lines, [one.name for one in alone])
    return GpcnetOutput(version, ranks, nodes, tests, alone, alongside)


def _tests(lines: _Lines, title: str) -> Iterator[NetworkTest]:
    _heads(lines, [[title], ["Name", "Avg", "99%", "Units"]])
    if not lines.at_row():
        raise lines.fault(f"the table {title!r} has no row")
    while lines.at_row():
        cells = lines.cells("a test")
        numbers = cells[1:3]
        whole = len(cells) == 4 and cells[0] and cells[3] in (TIME, RATE)
        if not whole or not all(map(_NUMBER.fullmatch, numbers)):
            raise lines.fault(f"the row before it, {cells}, is no test, two numbers and a unit")
        mean, tail = map(float, numbers)
        if not (mean > 0 and tail > 0):
            raise lines.fault(f"the row before it, {cells}, is of no time or rate above 0")
        yield NetworkTest(cells[0], mean, tail, cells[3])
    lines.take(_RULE, "the last line of the table")


def _insist_on_factors(lines: _Lines, tests: list[str]) -> None:
    """Check the last table, which follows from the others but must be there, and complete."""
    _heads(lines, [[FACTORS], ["Name", "Congestion Impact Factor"], ["", "Avg", "99%"]])
    seen = []
    while lines.at_row():
        cells = lines.cells("a factor")
        if len(cells) != 3 or not all(re.fullmatch(r"\d+\.\dX|infX", one) for one in cells[1:]):
            raise lines.fault(f"the row before it, {cells}, has no test with two factors")
        seen.append(cells[0])
    lines.take(_RULE, "the last line of the table")
    if seen != tests:
        raise lines.fault(f"factors are of {seen}, and tests were {tests}")


def _heads(lines: _Lines, rows: list[list[str]]) -> None:
    for row in rows:
        if lines.cells(f"the title {row}") != row:
            raise lines.fault(f"the row before it is not the title {row}")


def step_name(number: int) -> str:
    """Return the name of a round's step, from 1."""
    return f"{FOLDER}.{number}"


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
    """Return the rounds of a job in ``folder``, each with its fault where it failed.

    ``where``: system, partition and environment; ``extras``: of the partition. Raise NetproofError
    where the job wrote no record.
    """
    ranks = nodes * Partition.model_validate(extras).ranks_per_node
    recorded = job_files.records(folder)
    steps = map(step_name, range(1, rounds + 1))
    several = tuple(_of_step(folder, step, (ranks, nodes), recorded) for step in steps)
    return GpcnetRuns(*where, jobid, node_facts.nodes_of_job(folder, jobid), extras, several)


def _of_step(
    folder: Path,
    step: str,
    planned: tuple[int, int],
    recorded: Mapping[str, job_files.StepRecord],
) -> GpcnetRound:
    """Return one round; ``planned``: its ranks and nodes."""
    fault = job_files.failure(folder, step, recorded)
    if fault:
        return GpcnetRound(None, fault=fault)
    path = folder / f"{step}.out"
    try:
        _, loads = step_output.reported(folder / f"{step}.err", planned[0])
        output = read(text_of(path), str(path))
    except (NetproofError, OSError) as error:
        return GpcnetRound(None, fault=str(error))
    if (output.ranks, output.nodes) == planned:
        return GpcnetRound(output, loads)
    ran = f"{output.ranks} ranks on {output.nodes} nodes"
    why = f"{path}: it ran {ran}, and was to run {planned[0]} on {planned[1]}"
    return GpcnetRound(None, loads, why)


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
        figures = [tuple(getattr(test, figure) for test in pair) for pair in pairs]
        sides = alone, congested = tuple(map(median, zip(*figures, strict=True)))
        if why:
            return Factor(None, None, most, None, why, *sides)
        ratios = [
            alone / congested if unit == RATE else congested / alone for alone, congested in figures
        ]
        known = bounded(median(ratios), of_median(ratios), most)
        return dataclasses.replace(known, alone=alone, loaded=congested)

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
