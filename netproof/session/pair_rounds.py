"""Rounds of pairs: all nodes of a job measured two by two; their launches and what they left.

In a round each node has one partner. It is one launch of IMB's PingPong in groups of two ranks, a
rank on each node; or several, where a site lets fewer pairs measure at once. Who is paired with
whom is a list of nodes, in the order of ranks. A PingPong goes one way at a time; where pairs share
uplinks, PingPing goes both ways at once. Last come streams, from the first node of a pair to the
second, which tell the direction in which an accused node is slow.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from netproof import codec
from netproof.benchmarks.outputs import text_of
from netproof.benchmarks.registry import OF_PAIRS
from netproof.errors import NetproofError
from netproof.intake import disk
from netproof.measurement.case import Case, Curve
from netproof.measurement.counters import Counters
from netproof.measurement.disturbance import NodeLoad
from netproof.session import plan
from netproof.session.job_files import Incomplete, JobFolder
from netproof.session.measured import Crash, Launch, RankUse
from netproof.session.plan import Step
from netproof.site.partition import Partition

SUBJECT = "pairs"
"""Stem of the names of a job's rounds, and the label that closes them."""

STREAM_SUBJECT = "stream"
"""Stem of the name of the file of a stream's message sizes."""

PLANNED_FILE = "planned.json"
"""Every launch that was planned so far, in their order, and whether these are all."""

SMALL_BYTES = 4
"""The message whose time is a latency."""


def sizes(most_bytes: int, *, stream: bool = False) -> tuple[int, ...]:
    """The message sizes in bytes of a round: one for latency, one for the rate.

    Of a stream it is one message; all that are under way at once make the largest.
    """
    if stream:
        return (max(SMALL_BYTES, most_bytes // OF_PAIRS.stream_window),)
    return (SMALL_BYTES, most_bytes)


def step(launch: PairLaunch, number: int, partition: Partition, srun: Sequence[str]) -> Step:
    """Return the step of a launch of pairs; ``number``: from 1."""
    settings, nodes = partition.pair_settings(), launch.nodes()
    arguments = settings.arguments or partition.arguments[OF_PAIRS.name]
    if launch.stream:
        arguments = settings.stream_arguments
    name, *words = OF_PAIRS.command(
        OF_PAIRS.function(launch.function),
        2,
        sizes(partition.max_message_bytes, stream=launch.stream),
        plan.size_file(STREAM_SUBJECT if launch.stream else SUBJECT),
        arguments,
    )
    # A single pair is no group among several.
    groups = OF_PAIRS.several_pairs if len(nodes) > 2 else ()
    # Slurm from 24.11 on refuses --nodes together with a file that names them.
    placed = ("--distribution=arbitrary", f"--ntasks={len(nodes)}", "--kill-on-bad-exit=1")
    command = (*srun, *placed, *plan.RANK, name, *groups, *words)
    return Step(SUBJECT, number, command, hosts=nodes)


@dataclass(frozen=True)
class PairLaunch:
    """A launch of disjoint pairs, while all other nodes are idle: as planned, and once it ran.

    ``round``: which it is of, from 1, 0 until it is planned; ``alone``: one pair, a suspect or its
    control, and all other nodes silent; ``why``: what it is made for; ``stream``: its pair's first
    node sends all the time, and the second receives; ``both_ways``: both nodes of each pair send at
    once. ``curves``: one for each pair, none before it ran; ``start`` in seconds since the epoch;
    ``counters``: what the network of its nodes counted, None where that was not recorded;
    ``payload``: bytes that its pairs had to send.
    """

    round: int
    pairs: tuple[tuple[str, str], ...]
    alone: bool = False
    why: str = ""
    stream: bool = False
    both_ways: bool = False
    curves: tuple[Curve, ...] = ()
    number: int = 0
    order: int = 0
    start: float = 0.0
    wall_s: float = 0.0
    ranks: tuple[RankUse, ...] = ()
    loads: tuple[NodeLoad, ...] = ()
    counters: Counters | None = None
    payload: int = 0

    @property
    def function(self) -> str:
        """Return the benchmark's name for it."""
        if self.stream:
            return OF_PAIRS.stream_function
        return OF_PAIRS.both_ways_function if self.both_ways else OF_PAIRS.pairs_function

    def nodes(self) -> tuple[str, ...]:
        """The nodes in the order of ranks."""
        return tuple(node for pair in self.pairs for node in pair)

    @property
    def times_us(self) -> tuple[float, ...]:
        """Return each pair's time of the smallest message."""
        return tuple([curve.time_us[0] for curve in self.curves])

    @property
    def rates_mb_s(self) -> tuple[float, ...]:
        """Return each pair's rate of the largest message."""
        return tuple([curve.sizes[-1] / curve.time_us[-1] for curve in self.curves])


Planned = tuple[tuple[PairLaunch, ...], bool]
"""Every launch that was planned so far, and whether no other will be."""


def write_planned(folder: Path, planned: Planned) -> None:
    """Leave in a job's folder what was planned so far."""
    # A decision waits for it: json is ten times slower if it indents.
    document = json.dumps(codec.encode(planned))
    disk.replace(folder / PLANNED_FILE, document + "\n")


def read_planned(folder: Path) -> Planned:
    """Return the rounds planned so far, none without a launch; raise Incomplete if damaged."""
    path = folder / PLANNED_FILE
    try:
        document = disk.json_file(path)
        return codec.decode(tuple[tuple[PairLaunch, ...], bool], document, "a plan")
    except FileNotFoundError:
        return (), False
    except (NetproofError, OSError) as error:
        raise Incomplete(f"{path}: what was planned cannot be read: {error}") from error


@dataclass(frozen=True)
class PairRounds:
    """All rounds of a job.

    ``nodes``: those of the job, by its own word; ``leaves``: switch to its nodes, as Slurm knows
    them, empty where it knows none; ``parents``: switch to the one above it; ``faults``: why rounds
    are not complete, a sentence each; ``crashes``: launches that were made again; ``deferred``:
    nodes of the partition that other jobs held for longer than the site waits, and ``waited_s``:
    for how many seconds its jobs waited.
    """

    system: str
    partition: str
    environment: str
    nodes: tuple[str, ...]
    launches: tuple[PairLaunch, ...]
    jobid: str
    mode: str
    seed: int
    leaves: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    parents: Mapping[str, str] = dataclasses.field(default_factory=dict)
    faults: tuple[str, ...] = ()
    crashes: tuple[Crash, ...] = ()
    deferred: tuple[str, ...] = ()
    waited_s: float = 0.0

    def __post_init__(self) -> None:
        for one in self.launches:
            if len(one.curves) != len(one.pairs):
                found = f"{len(one.curves)} curves of {len(one.pairs)} pairs"
                raise NetproofError(f"launch {one.number} has {found}")

    def without(self, busy: Iterable[str], waited_s: float) -> PairRounds:
        """Return the rounds, the ``busy`` nodes that the job did not get as deferred."""
        deferred = tuple(sorted(set(busy) - set(self.nodes)))
        return dataclasses.replace(self, deferred=deferred, waited_s=waited_s)

    def measured(self) -> frozenset[str]:
        """The nodes that were measured in some round."""
        return frozenset(node for one in self.launches for node in one.nodes())


def read(
    folder: Path,
    where: tuple[str, str, str],
    most_bytes: int,
    known: Mapping[int, PairLaunch] | None = None,
) -> tuple[tuple[PairLaunch, ...], tuple[str, ...], tuple[Crash, ...]]:
    """The complete launches of a job's folder, why others are not, and those that crashed.

    ``where``: system, partition and environment; ``known``: launches by number that were read
    before and are not read again. Raises Incomplete where the job left no record.
    """
    job = JobFolder(folder)
    planned, _ = read_planned(folder)
    done: list[PairLaunch] = []
    faults: list[str] = []
    crashes: list[Crash] = []
    made = [name for name in job.recorded if name.startswith(f"{SUBJECT}.") and "~" not in name]
    if len(made) > len(planned):
        faults.append(
            f"{folder / PLANNED_FILE}: has {len(planned)} launches, and {len(made)} were made"
        )
    for number, launch in enumerate(planned[: len(made)], 1):
        step = f"{SUBJECT}.{number}"
        crashes += job.crashes(step)
        if known and number in known:
            done.append(known[number])
            continue
        try:
            function = launch.function
            case = Case(*where, OF_PAIRS.name, function, len(launch.nodes()), 1)
            curves: list[Curve] = []
            payloads: list[int] = []
            reader = _reader(folder, function, len(launch.pairs), curves, payloads)
            asked = sizes(most_bytes, stream=launch.stream)
            ran = job.launch(step, case, asked, reader, messages=False)
            done.append(_as_it_ran(launch, ran, curves, asked, payloads[0]))
        except (NetproofError, OSError) as error:
            faults.append(f"{_of_pair(launch)}{error}")
    return tuple(done), tuple(faults), tuple(crashes)


def _of_pair(launch: PairLaunch) -> str:
    """Name the nodes of a launch of one pair; of several pairs it is not known which one failed."""
    return f"{' – '.join(launch.nodes())}: " if len(launch.pairs) == 1 else ""


def _reader(
    folder: Path, function: str, pairs: int, curves: list[Curve], payloads: list[int]
) -> Callable[[str], Curve]:
    """Read a round's output into ``curves``, one a pair, and its bytes into ``payloads``."""

    def read_output(step: str) -> Curve:
        path = folder / f"{step}.{OF_PAIRS.suffix}"
        found, payload = OF_PAIRS.read_pairs(text_of(path), str(path), function, pairs)
        curves.extend(found)
        payloads.append(payload)
        return curves[0]

    return read_output


def _as_it_ran(
    planned: PairLaunch,
    launch: Launch,
    curves: Sequence[Curve],
    asked: tuple[int, ...],
    payload: int,
) -> PairLaunch:
    """A launch with its pairs; Incomplete where its ranks ran elsewhere, or a pair lacks a size."""
    ran_on, nodes = [use.node for use in launch.ranks], planned.nodes()
    if ran_on != list(nodes):
        raise Incomplete(
            f"{SUBJECT}.{launch.number} ran on {', '.join(ran_on)}, and was to run on"
            f" {', '.join(nodes)}, in this order"
        )
    for curve in curves:
        if curve.sizes != asked:
            raise Incomplete(f"{SUBJECT}.{launch.number}: a pair has the sizes {curve.sizes}")
    ran = {name: getattr(launch, name) for name in _AS_IT_RAN}
    return dataclasses.replace(planned, **ran, curves=tuple(curves), payload=payload)


_AS_IT_RAN = ("number", "order", "start", "wall_s", "ranks", "loads", "counters")
