"""A load test: its launches, alone or alongside which aggressor.

As in GPCNeT (Chunduri et al., "GPCNeT: designing a benchmark suite for inducing and measuring
contention in HPC networks", SC19), a victim's and an aggressor's nodes are disjoint.

A job's nodes are known only within it, where the launches are drawn.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from statistics import median
from typing import ClassVar, TypeVar

from netproof.benchmarks.outputs import text_of
from netproof.benchmarks.registry import OF_PAIRS
from netproof.errors import NetproofError
from netproof.experiments.experiment import Experiment
from netproof.measurement.case import Case, Curve
from netproof.session import job_files, plan
from netproof.session.job_files import Incomplete, JobFolder
from netproof.session.measured import Launch
from netproof.session.plan import JobPlan, Step
from netproof.session.session import JobRecord
from netproof.site.partition import Partition

SHORT_BYTES = 8
"""GPCNeT's message for latency and Allreduce."""

TURNS_FILE = "load-turns.json"
"""Launches in their order."""
ROW_S = 0.25
"""Seconds per row of an aggressor: its rows show that it sends."""

THROUGHOUT = ("-iter", "1000000,1000000", "-time", str(ROW_S), "-root_shift", "off")
"""Arguments of an aggressor: only its seconds end a row, and the root is always the same rank."""
ONE_CALL = ("-iter", "1")
"""Arguments of a victim: a row is one call."""


class Victim(StrEnum):
    """A measurement between two nodes."""

    LATENCY = "latency"
    BANDWIDTH = "bandwidth"
    ALLREDUCE = "allreduce"

    @property
    def function(self) -> str:
        """Return the function of IMB-MPI1."""
        return "Allreduce" if self is Victim.ALLREDUCE else "PingPong"

    def size(self, most_bytes: int) -> int:
        """Return its message in bytes, where the partition's largest message is ``most_bytes``."""
        return most_bytes if self is Victim.BANDWIDTH else SHORT_BYTES


class Aggressor(StrEnum):
    """A load on all other nodes."""

    INCAST = "incast"
    ALL_TO_ALL = "all-to-all"
    BROADCAST = "broadcast"
    ONE_TO_ONE = "one-to-one"

    @property
    def function(self) -> str:
        """Return the function of IMB-MPI1: libraries mostly gather unequal data without a tree."""
        return ("Gatherv", "Alltoall", "Bcast", "PingPing")[[*Aggressor].index(self)]


class VictimPlace(StrEnum):
    """Place of the victim's two nodes, as far as Slurm knows the switches."""

    ANYWHERE = "anywhere"
    WITHIN = "within a leaf"
    ACROSS = "across leaves"


@dataclass(frozen=True)
class VictimTurn:
    """One launch of a victim: its round (from 1), its place, and alone or alongside its aggressor.

    ``nodes``: the victim's; ``others``: the aggressor's in the order of its ranks, silent in
    launches alone. An incast goes to the first, a broadcast comes from it.
    """

    round: int
    place: VictimPlace
    victim: Victim
    aggressor: Aggressor
    beside: bool
    nodes: tuple[str, ...]
    others: tuple[str, ...]

    @property
    def subject(self) -> str:
        """Return the stem of the names of such launches."""
        when = "beside" if self.beside else "without"
        return f"{self.victim}-{self.place.split()[0]}-{when}-{self.aggressor}"

    @property
    def step(self) -> str:
        """Return the name of its step."""
        return f"{self.subject}.{self.round}"

    @property
    def aggressor_step(self) -> str:
        """Return the name of its aggressor's step."""
        return f"aggressor-{self.step}"


Named = TypeVar("Named", Victim, Aggressor)


def chosen(kind: type[Named], text: str) -> tuple[Named, ...]:
    """Return the members that a list with commas names, or ``all``; NetproofError for others."""
    if text == "all":
        return tuple(kind)
    names = dict.fromkeys(text.split(","))
    unknown = [name for name in names if name not in list(kind)]
    if unknown:
        raise NetproofError(f"unknown {unknown[0]!r}; choose from {', '.join(kind)}")
    return tuple(map(kind, names))


def turns(
    nodes: Sequence[str],
    leaves: Mapping[str, Sequence[str]],
    victims: Sequence[Victim],
    aggressors: Sequence[Aggressor],
    rounds: int,
    seed: int,
) -> tuple[VictimTurn, ...]:
    """Return the launches of a job on ``nodes`` in their order.

    Each round draws nodes, first those that were the victim's least often, so that each is
    measured; and shuffles everything that is compared. Launches alone and alongside follow each
    other in random order. ``leaves``: nodes by switch, empty where Slurm knows none.
    """
    draw = random.Random(seed)
    found: list[VictimTurn] = []
    measured_in: Counter[str] = Counter()
    for number in range(1, rounds + 1):
        places = _drawn(nodes, leaves, draw, measured_in)
        measured_in.update({node for measured, _ in places.values() for node in measured})
        compared = [
            (place, victim, aggressor)
            for place in places
            for victim in victims
            for aggressor in aggressors
        ]
        draw.shuffle(compared)
        for place, victim, aggressor in compared:
            measured, others = places[place]
            # Pairs leave an odd node out.
            odd = aggressor is Aggressor.ONE_TO_ONE and len(others) % 2
            sending = others[:-1] if odd else others
            both = [False, True]
            draw.shuffle(both)
            found += [
                VictimTurn(number, place, victim, aggressor, alongside, measured, sending)
                for alongside in both
            ]
    return tuple(found)


def _drawn(
    nodes: Sequence[str],
    leaves: Mapping[str, Sequence[str]],
    draw: random.Random,
    measured_in: Counter[str],
) -> dict[VictimPlace, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Draw the victim's nodes and the others, by place; ``measured_in``: earlier rounds by node.

    With leaves, the victim is within one, or across two, while the others send the same: from leaf
    to leaf, an incast to a node of the second.
    """

    def shuffled(several: Sequence[str]) -> list[str]:
        """Return them shuffled, those first that were measured least often."""
        return sorted(draw.sample(several, len(several)), key=measured_in.__getitem__)

    below = [[node for node in of_leaf if node in nodes] for of_leaf in leaves.values()]
    wide = [of_leaf for of_leaf in below if len(of_leaf) >= 2]
    if len(wide) < 2:
        drawn_first = shuffled(list(nodes))
        others = draw.sample(drawn_first[2:], len(drawn_first) - 2)
        return {VictimPlace.ANYWHERE: (tuple(drawn_first[:2]), tuple(others))}
    fewest = min(measured_in[node] for of_leaf in wide for node in of_leaf)
    first, second, *_ = sorted(
        draw.sample(wide, len(wide)),
        key=lambda of_leaf: -sum(measured_in[node] == fewest for node in of_leaf),
    )
    one, other, *more = shuffled(first)
    first = [one, other, *draw.sample(more, len(more))]
    last, *more = shuffled(second)
    second = [*draw.sample(more, len(more)), last]
    rest = [draw.sample(one, len(one)) for one in below if set(one).isdisjoint(first + second)]
    known = {node for one in below for node in one}
    rest.append([node for node in nodes if node not in known])

    def place(*measured: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the victim's nodes, and the first other of each leaf, then the second of each."""
        several = [[node for node in one if node not in measured] for one in (second, first, *rest)]
        in_order = itertools.chain(*itertools.zip_longest(*several))
        return measured, tuple(node for node in in_order if node is not None)

    return {
        VictimPlace.WITHIN: place(first[0], first[1]),
        VictimPlace.ACROSS: place(first[0], second[-1]),
    }


@dataclass(frozen=True, kw_only=True)
class LoadAsked(Experiment):
    """Victims between two nodes, alone and alongside aggressors on all others, so many rounds."""

    victims: tuple[Victim, ...]
    aggressors: tuple[Aggressor, ...]
    rounds: int

    TEST, FOLDER, LABEL = "Load", "load", OF_PAIRS.label
    TASK, FEATURES = "load", OF_PAIRS.features
    LEAST_NODES = 4
    WHY: ClassVar[str] = "load takes 4: two for what is measured, two for what congests"

    def words(self, planned: JobPlan) -> str:
        """Return what is measured, in words."""
        count = len(self.victims) * len(self.aggressors) * self.rounds
        return f"{count} times alone and alongside, at each place"

    def files(self, planned: JobPlan) -> dict[str, str]:
        """Return the lists of message sizes: a line for each row that a step must print."""
        partition = planned.partition
        settings, largest = partition.load_settings(), partition.max_message_bytes
        # Longer than any victim may take.
        rows = int(4 * partition.step_limit_s / ROW_S)
        asked = {f"load-{one}": [one.size(largest)] * settings.repetitions for one in self.victims}
        asked |= {f"load-{one}": [aggressor_bytes(partition)] * rows for one in self.aggressors}
        return plan.size_files(asked)

    def result(self, folder: Path, jobid: str) -> JobRecord:
        """Return the launches of victims; NetproofError where none is whole."""
        from netproof.experiments.load import of_job

        loaded = of_job(folder, jobid)
        if all(run.launch is None for run in loaded.runs):
            raise NetproofError(f"no launch is whole, the first so: {loaded.runs[0].fault}")
        return loaded


def read_turns(folder: Path) -> tuple[VictimTurn, ...]:
    """Read the drawn launches; NetproofError where there are none, or the file is damaged."""
    path = folder / TURNS_FILE
    try:
        return job_files.noted(path, tuple[VictimTurn, ...])
    except OSError as error:
        why = f"the job did not come to draw its launches: {error.strerror}; see {folder}'s *.err"
        raise NetproofError(f"{path}: {why}") from error


def repeated(
    job: JobFolder, step: str, case: Case, size: int, wanted: int, what: str
) -> tuple[Launch, tuple[float, ...]]:
    """Return a launch of a function for pairs, and its repetitions' times in µs, each ``what``.

    ``size``: of its messages in bytes. Raise NetproofError unless as many as ``wanted`` are there.
    """
    path = job.folder / f"{step}.{OF_PAIRS.suffix}"
    times: list[float] = []

    def read(_step: str) -> tuple[tuple[Curve, ...], None]:
        times.extend(OF_PAIRS.read_repetitions(text_of(path), str(path), case.function, 2, size))
        return (Curve((size,), (median(times),)),), None

    launch = job.launch(step, case, (size,), read)
    if len(times) != wanted:
        raise Incomplete(f"{step}: has {len(times)} of {wanted} {what}s")
    if min(times) <= 0:
        raise Incomplete(f"{step}: has a {what} that took {min(times)} µs")
    return launch, tuple(times)


def aggressor_bytes(partition: Partition) -> int:
    """Return the bytes of an aggressor's message."""
    return int(min(partition.load_settings().bytes, partition.max_message_bytes))


def steps(turn: VictimTurn, planned: JobPlan) -> tuple[Step, Step | None]:
    """Return the steps of a victim's launch and of its aggressor, None where it is alone."""
    partition = planned.partition

    def words(
        one: Victim | Aggressor, ranks: int, size: int, arguments: Sequence[str]
    ) -> tuple[list[str], list[str]]:
        """Return how a step is started, and its program; all messages have this size in bytes."""
        # Slurm from 24.11 on refuses --nodes together with a file of them.
        placed = ("--distribution=arbitrary", f"--ntasks={ranks}", "--kill-on-bad-exit=1")
        function, sizes = OF_PAIRS.function(one.function), plan.size_file(f"load-{one}")
        arguments = [*arguments, *partition.load_settings().arguments]
        program = OF_PAIRS.command(function, ranks, (size,), sizes, arguments)
        return [*planned.srun, *placed], program

    size = turn.victim.size(partition.max_message_bytes)
    srun, program = words(turn.victim, 2, size, ONE_CALL)
    victim = Step(turn.subject, turn.round, (*srun, *plan.RANK, *program), hosts=turn.nodes)
    if not turn.beside:
        return victim, None
    ranks, size = len(turn.others), aggressor_bytes(partition)
    srun, (name, *program) = words(turn.aggressor, ranks, size, THROUGHOUT)
    # With a single pair IMB prints no groups.
    if turn.aggressor is Aggressor.ONE_TO_ONE and ranks > 2:
        program = [*OF_PAIRS.several_pairs, *program]
    command = (*srun, name, *program)
    return victim, Step(f"aggressor-{turn.subject}", turn.round, command, hosts=turn.others)
